"""A run's report: pictures and an animation of the scene, then the page."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.animation import animated
from palpo.app.report.draw import camera_of, drawn
from palpo.app.report.outcome import Outcome
from palpo.app.report.page import NO_PICTURES, write_report
from palpo.app.runtime.machine import machine_info
from palpo.config.schema.view import View
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.render.gl import RenderUnavailable
from palpo.render.offscreen import Offscreen
from palpo.render.overlays import Overlays

Picture = NDArray[np.uint8]
WIDTH, HEIGHT = 1100, 700
FILM_WIDTH, FILM_HEIGHT = 640, 400


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
    camera = camera_of(geometry, [state for _, state in states], view, WIDTH / HEIGHT)
    with Offscreen(geometry, states[0][1], WIDTH, HEIGHT) as photographer:
        return [(title, photographer.picture(state, camera, title=title)) for title, state in states]


def take_film(geometry: SceneGeometry, states: Sequence[SceneState], view: View) -> bytes:
    """The states one after another as a GIF; empty with fewer than two. Raises as `take_pictures`."""
    if len(states) < 2:
        return b""
    camera = camera_of(geometry, states, view, WIDTH / HEIGHT)
    frames = drawn(geometry, states, camera, (FILM_WIDTH, FILM_HEIGHT), Overlays(labels=False))
    return animated(list(frames), [state.time for state in states])
