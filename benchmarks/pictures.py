"""What a picture costs: scenes in the middle of their path, drawn as in the window, but without one."""

import time
from itertools import cycle, islice

import numpy as np

from palpo.app.report.draw import camera_of
from palpo.app.report.gallery import run
from palpo.app.report.outcome import distribution
from palpo.app.runtime.desk import HEIGHT, WIDTH
from palpo.benchmarks.timing import Figures, bare_loop_us, within
from palpo.config.load import load_scene
from palpo.render import gl
from palpo.render.framebuffer import Framebuffer, window_samples
from palpo.render.offscreen import open_context
from palpo.render.overlays import Overlays
from palpo.render.scene_view import SceneView

SCENES = ("wire", "probe", "organ", "suction-gripper")
MOMENTS = (0.5, 1.5)
"""Seconds of a scene's path between which its states are drawn."""
MOST_MS = 12.0
"""Of the processor's time for a picture."""


def pictures(drawn: int = 100, scenes: tuple[str, ...] = SCENES) -> Figures:
    """Time of the processor and of the clock for a picture of 1280 x 800, without the panel."""
    found = {scene: _picture(scene, drawn) for scene in scenes}
    return found | {"bare loop us": bare_loop_us()}


def _picture(scene: str, drawn: int) -> Figures:
    geometry, states = run(scene, [MOMENTS[1]])
    states = [state for state in states if state.time >= MOMENTS[0]]
    camera = camera_of(geometry, states, load_scene(scene).view, WIDTH / HEIGHT)
    context, overlays = open_context(), Overlays()
    samples = window_samples(gl.renderer())
    frame, backdrop, shown = (Framebuffer(WIDTH, HEIGHT, n) for n in (samples, samples, 0))
    view = SceneView(geometry, states[0], smooth=not samples)
    backdrop.bind()
    view.draw_backdrop(camera, WIDTH, HEIGHT, overlays)
    cpu, wall = [], []
    for state in islice(cycle(states), drawn):
        began = time.process_time(), time.perf_counter()
        frame.take(backdrop, WIDTH)
        view.draw_bodies(state, camera, WIDTH, HEIGHT, overlays)
        frame.copy(shown)
        gl.glFinish()
        ended = time.process_time(), time.perf_counter()
        cpu.append(ended[0] - began[0])
        wall.append(ended[1] - began[1])
    for kept in (view, frame, backdrop, shown):
        kept.delete()
    renderer = gl.renderer()
    context.close()
    return {
        "drawn by": renderer,
        "cpu ms": distribution(np.array(cpu), 1e3),
        "clock ms": distribution(np.array(wall), 1e3),
        "target cpu ms": within(1e3 * float(np.median(cpu)), MOST_MS),
    }
