"""Which moments of a run are kept for the report's pictures and its animation."""

import math

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.rigs import Rig
from palpo.haptics.control import tick_count
from palpo.physics.exchange.snapshot import SceneState

SHARES = (0.2, 0.4, 0.6, 0.8)
"""Parts of the run at which a picture is taken, beside its start, its end and its largest force."""


FILM_PERIOD = 0.1
"""Seconds of the scene between two states of the animation, as long as there are few enough."""
FILM_STATES = 96
"""States of the animation, at most."""


class Film:
    """States at an even pace. Whenever there are too many, every second goes and the pace halves."""

    def __init__(self, period: float = FILM_PERIOD, most: int = FILM_STATES) -> None:
        self.period, self.most = period, most
        self.states: list[SceneState] = []

    def look(self, state: SceneState) -> None:
        """Keep the state, which must not change any more, if it is time for the next."""
        # by the clock of the film, not from the last state, whose own lateness would add up
        beat = self._beat(state)
        if self.states and beat <= self._beat(self.states[-1]):
            return
        self.states.append(state)
        if len(self.states) > self.most:
            del self.states[1::2]
            self.period *= 2

    def _beat(self, state: SceneState) -> int:
        # what falls short of one by rounding counts as it
        return math.floor(state.time / self.period + 1e-6)


class Album:
    """Keeps a few of the states that it is shown, and a film of them all."""

    def __init__(self, duration: float) -> None:
        self.film = Film()
        self._due = [share * duration for share in SHARES]
        self._kept: list[tuple[str, SceneState]] = []
        self._strongest: SceneState | None = None
        self._last: SceneState | None = None
        self._deep: list[tuple[float, ...]] = []

    def look(self, state: SceneState, rig: Rig) -> None:
        """Keep a copy of the state if its moment has come, and how deep the rig's needles are."""
        if needles := rig.needles():
            self._deep.append((float(tick_count(rig.servo)) * rig.dt, *(needle.inside for needle in needles)))
        if not np.isfinite(state.vertices).all():
            return
        kept = state.copy()
        if self._last is None:
            self._kept.append(("At the start", kept))
        self._last = kept
        self.film.look(kept)
        if self._due and state.time >= self._due[0]:
            del self._due[0]
            self._kept.append((f"At {state.time:.2f} s", kept))
        if self._strongest is None or _force(kept) > _force(self._strongest):
            self._strongest = kept

    def depths(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        """Length of each needle that is inside [m] at these times [s], (n, needles)."""
        if not self._deep:
            return np.zeros((len(time), 0))
        at, *inside = np.array(self._deep).T
        return np.stack([np.interp(time, at, one) for one in inside], axis=1)

    def states(self) -> list[tuple[str, SceneState]]:
        """Titles and states in the order of time."""
        states = list(self._kept)
        if self._strongest is not None and _force(self._strongest) > 0.0:
            title = f"Largest force, {_force(self._strongest):.2f} N, at {self._strongest.time:.2f} s"
            states.append((title, self._strongest))
        if self._last is not None and self._last.time > 0.0:
            states.append(("At the end", self._last))
        return sorted(states, key=lambda titled: titled[1].time)


def _force(state: SceneState) -> float:
    """Norm of the force on the hand [N]; zero before there is one."""
    norm = float(np.linalg.norm(state.hand_force))
    return norm if np.isfinite(norm) else 0.0
