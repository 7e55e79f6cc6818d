"""Pictures of an environment's present state."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.snapshot import COUNTERS
from palpo.render.camera import Camera
from palpo.render.offscreen import Offscreen
from palpo.render.scene_view import visible_points

WIDTH, HEIGHT = 640, 480


class Artist:
    """Draws one body of a simulation after the other; raises RenderUnavailable where there is no EGL."""

    def __init__(self) -> None:
        self._of: object = None
        self._visual: Any = None
        self._photographer: Offscreen | None = None

    def picture(self, of: object, visual: Callable[[], Any], tick: int) -> NDArray[np.uint8]:
        """What `visual()` shows at a tick, (480, 640, 3); it is asked once as long as `of` stays the same."""
        if self._of is not of:
            self.close()
            self._of, self._visual = of, visual()
        seen = self._visual
        seen.publish(seen.take_tool(), tick, np.zeros(len(COUNTERS), np.int64))
        state, _ = seen.latest()
        if self._photographer is None:
            self._photographer = Offscreen(seen.geometry, state, WIDTH, HEIGHT)
            self._camera = Camera.looking("perspective", visible_points(seen.geometry, state), WIDTH / HEIGHT)
        return self._photographer.picture(state, self._camera)

    def close(self) -> None:
        """Give the picture's resources back."""
        if self._photographer is not None:
            self._photographer.close()
        self._photographer, self._of = None, None
