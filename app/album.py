"""Which moments of a run are kept for the report's pictures."""

import numpy as np

from physics.exchange.snapshot import SceneState

SHARES = (0.2, 0.4, 0.6, 0.8)
"""Parts of the run at which a picture is taken, beside its start, its end and its largest force."""


class Album:
    """Keeps a few of the states that it is shown."""

    def __init__(self, duration: float) -> None:
        self._due = [share * duration for share in SHARES]
        self._kept: list[tuple[str, SceneState]] = []
        self._strongest: SceneState | None = None
        self._last: SceneState | None = None

    def look(self, state: SceneState) -> None:
        """Keep a copy of the state if its moment has come."""
        if not np.isfinite(state.vertices).all():
            return
        kept = state.copy()
        if self._last is None:
            self._kept.append(("At the start", kept))
        self._last = kept
        if self._due and state.time >= self._due[0]:
            del self._due[0]
            self._kept.append((f"At {state.time:.2f} s", kept))
        if self._strongest is None or _force(kept) > _force(self._strongest):
            self._strongest = kept

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
