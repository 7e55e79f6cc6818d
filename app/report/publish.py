"""A run's report: pictures and an animation of the scene, then the page."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.animation import animated
from palpo.app.report.outcome import Outcome
from palpo.app.report.page import NO_PICTURES, write_report
from palpo.app.runtime.machine import machine_info
from palpo.config.schema.view import View
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render.camera import Camera
from palpo.render.gl import RenderUnavailable
from palpo.render.offscreen import Offscreen
from palpo.render.overlays import Overlays, force_scale
from palpo.render.scene_view import visible_points

Picture = NDArray[np.uint8]
WIDTH, HEIGHT = 1100, 700
FILM_WIDTH, FILM_HEIGHT = 640, 400
FAR = 5.0
"""Scene lengths from its middle beyond which the camera does not follow."""


def publish(folder: Path, done: Outcome) -> Path:
    """Write the report; the page's path. A machine without OpenGL gets the sentence that says so."""
    pictures, film, why = [], b"", NO_PICTURES
    try:
        pictures = take_pictures(done.geometry, done.states, done.view)
        film = take_film(done.geometry, done.film, done.view)
    except RenderUnavailable as missing:
        why = str(missing)
    return write_report(
        folder, done.result, done.series, pictures, done.config_text, machine_info(), why, film
    )


def take_pictures(
    geometry: SceneGeometry, states: Sequence[tuple[str, SceneState]], view: View
) -> list[tuple[str, Picture]]:
    """Pictures (h, w, 3) of titled states from one camera; raises RenderUnavailable where there is no EGL."""
    if not states:
        return []
    camera = camera_of(geometry, [state for _, state in states], view)
    with Offscreen(geometry, states[0][1], WIDTH, HEIGHT) as photographer:
        return [(title, photographer.picture(state, camera, title=title)) for title, state in states]


def take_film(geometry: SceneGeometry, states: Sequence[SceneState], view: View) -> bytes:
    """The states one after another as a GIF; empty with fewer than two. Raises as `take_pictures`."""
    if len(states) < 2:
        return b""
    camera = camera_of(geometry, states, view)
    # one scale throughout: an arrow grows with its force
    scale = min(force_scale(geometry, state) for state in states)
    overlays = Overlays(labels=False, force_scale=scale)
    with Offscreen(geometry, states[0], FILM_WIDTH, FILM_HEIGHT) as photographer:
        frames = [photographer.picture(state, camera, overlays) for state in states]
    return animated(frames, [state.time for state in states])


def camera_of(geometry: SceneGeometry, states: Sequence[SceneState], view: View) -> Camera:
    """From the side that the scene looks from, as near as lets everything be seen in all states."""
    seen = [visible_points(geometry, state) for state in states]
    # a body that flew apart must not take the camera with it
    near = [p for p in seen if np.nanmax(np.abs(p - geometry.centre)) < FAR * geometry.length]
    points = np.vstack(near or seen[:1])
    angle = float(np.degrees(view.field_of_view))
    camera = Camera.looking("perspective", points, WIDTH / HEIGHT, field_of_view=angle)
    if view.eye is None:
        return camera
    back = np.array(view.eye) - np.array(view.target if view.target is not None else camera.target)
    azimuth = float(np.degrees(np.arctan2(back[0], back[2])))
    elevation = float(np.degrees(np.arcsin(back[1] / np.linalg.norm(back))))
    return replace(camera, azimuth=azimuth, elevation=elevation).fit(points, WIDTH / HEIGHT)
