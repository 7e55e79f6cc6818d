"""States of a scene as pictures, without a display: from where they are seen, and one after another."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from palpo.config.schema.view import View
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render.camera import Camera
from palpo.render.offscreen import Offscreen
from palpo.render.overlays import Overlays, force_scale
from palpo.render.scene_view import visible_points

FAR = 5.0
"""Scene lengths from its middle beyond which the camera does not follow."""


def drawn(
    geometry: SceneGeometry,
    states: Sequence[SceneState],
    camera: Camera,
    size: tuple[int, int],
    overlays: Overlays | None = None,
) -> Iterator[NDArray[np.uint8]]:
    """A picture (h, w, 3) of each state, of `size` pixels (width, height).

    Arrows have one scale throughout, so that an arrow grows with its force. Raises RenderUnavailable where
    there is no OpenGL.
    """
    scale = min(force_scale(geometry, state) for state in states)
    overlays = replace(overlays or Overlays(), force_scale=scale)
    with Offscreen(geometry, states[0], *size) as photographer:
        for state in states:
            yield photographer.picture(state, camera, overlays)


def near_points(geometry: SceneGeometry, state: SceneState) -> NDArray[np.float64]:
    """What a picture of the state ought to hold (n, 3) [m]; nothing of one in which a body flew far away."""
    points = visible_points(geometry, state)
    # it must not take the camera with it
    return points if np.abs(points - geometry.centre).max() < FAR * geometry.length else points[:0]


def camera_of(
    geometry: SceneGeometry,
    states: Sequence[SceneState],
    view: View,
    aspect: float,
    also: NDArray[np.float64] | None = None,
) -> Camera:
    """From the side that the scene looks from, as near as lets everything be seen in all states.

    aspect: width over height of the picture. also: more points (n, 3) [m] to be seen.
    """
    seen = [near_points(geometry, state) for state in states]
    points = np.vstack(seen if any(map(len, seen)) else [visible_points(geometry, states[0])])
    points = points if also is None else np.vstack([points, also])
    angle = float(np.degrees(view.field_of_view))
    camera = Camera.looking("perspective", points, aspect, field_of_view=angle)
    if view.eye is None:
        return camera
    back = np.array(view.eye) - np.array(view.target if view.target is not None else camera.target)
    azimuth = float(np.degrees(np.arctan2(back[0], back[2])))
    elevation = float(np.degrees(np.arcsin(back[1] / np.linalg.norm(back))))
    return replace(camera, azimuth=azimuth, elevation=elevation).fit(points, aspect)
