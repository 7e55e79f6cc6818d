"""Pictures for the report: which moments of a run are kept, and how they are taken."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from config.schema.view import View
from physics.exchange.snapshot import SceneGeometry, SceneState
from render.camera import Camera
from render.offscreen import Offscreen
from render.scene_view import visible_points

WIDTH, HEIGHT = 1100, 700
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


def take_pictures(
    geometry: SceneGeometry, states: Sequence[tuple[str, SceneState]], view: View
) -> list[tuple[str, NDArray[np.uint8]]]:
    """Pictures (h, w, 3) of titled states from one camera; raises RenderUnavailable where none can be drawn."""
    if not states:
        return []
    camera = camera_of(geometry, [state for _, state in states], view)
    with Offscreen(geometry, states[0][1], WIDTH, HEIGHT) as photographer:
        return [(title, photographer.picture(state, camera, title=title)) for title, state in states]


def camera_of(geometry: SceneGeometry, states: Sequence[SceneState], view: View) -> Camera:
    """The scene's camera; what it leaves open is chosen so that all states fit."""
    points = np.vstack([visible_points(geometry, state) for state in states])
    camera = Camera.looking("perspective", points, WIDTH / HEIGHT, field_of_view=float(np.degrees(view.field_of_view)))
    if view.eye is None:
        return camera
    target = np.array(view.target if view.target is not None else camera.target)
    back = np.array(view.eye) - target
    distance = float(np.linalg.norm(back))
    azimuth = float(np.degrees(np.arctan2(back[0], back[2])))
    elevation = float(np.degrees(np.arcsin(back[1] / distance)))
    return Camera(tuple(target.tolist()), distance, azimuth, elevation, float(np.degrees(view.field_of_view)))


def _force(state: SceneState) -> float:
    """Norm of the force on the hand [N]; zero before there is one."""
    norm = float(np.linalg.norm(state.hand_force))
    return norm if np.isfinite(norm) else 0.0
