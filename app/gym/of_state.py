"""What environments share whose episodes are states of a scene."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from palpo.app.gym.artist import Artist
from palpo.app.library.state import State

Observation = NDArray[np.float32]


class StateEnv(gymnasium.Env[Observation, Observation]):
    """An environment with a state, from its first reset on, that can be drawn."""

    def __init__(self, render_mode: str | None) -> None:
        self.render_mode = render_mode
        self._state: State | None = None
        self._artist = Artist()

    def render(self) -> Any:
        """A picture (480, 640, 3) of the present state; raises RenderUnavailable where there is no EGL."""
        if self.render_mode is None or self._state is None:
            return None
        state = self._state
        return self._artist.picture(state, lambda: state.rig.visual, state.tick)

    def close(self) -> None:
        """Give threads and the picture's resources back."""
        self._artist.close()
        if self._state is not None:
            self._state.close()
            self._state = None
