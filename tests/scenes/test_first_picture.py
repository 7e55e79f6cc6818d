"""The picture before the loops run: the scene as its file has it, with nothing compiled for it."""

import os
import subprocess
import sys

import numpy as np
import pytest

from palpo.app.systems.multirate.build import build_scene
from palpo.app.systems.multirate.picture import Visual
from palpo.app.visual.rest import rest_picture
from palpo.config.load import list_scenes, load_scene
from palpo.physics.systems.multirate.lock_step import LockStep

MULTIRATE = [name for name in list_scenes() if load_scene(name).system == "multirate"]


@pytest.mark.parametrize("name", ["beams", "eye", "needle", "probe", "wire"])
def test_it_is_the_scene_that_the_loops_begin_with(name):
    spec = load_scene(name)
    geometry, state = rest_picture(spec)
    lock = LockStep(build_scene(spec), "krylov", spec.interface.latency)
    built = Visual(spec, lock.scene, lock.high).geometry
    lock.low.close()
    for shown, real in zip(geometry.drawables, built.drawables, strict=True):
        assert (shown.name, shown.kind, shown.radius) == (real.name, real.kind, real.radius)
        np.testing.assert_array_equal(shown.triangles, real.triangles)
        at, length = built.rest[real.span], geometry.length
        np.testing.assert_allclose(state.vertices[shown.span], at, atol=1e-12 * length)


@pytest.mark.parametrize("name", [name for name in list_scenes() if name not in MULTIRATE])
def test_every_scene_has_one(name):
    spec = load_scene(name)
    geometry, state = rest_picture(spec)
    assert np.isfinite(state.vertices).all()
    assert sum(d.n_vertices for d in geometry.drawables) == len(state.vertices)
    assert len(geometry.drawables) >= 2


COUNT = """
import numba.core.event as events
seen = []

class Counter(events.Listener):
    def on_start(self, event):
        seen.append(event)

    def on_end(self, event):
        pass

events.register("numba:compile", Counter())
from palpo.app.visual.rest import rest_picture
from palpo.config.load import load_scene
for name in ("wire", "hapco-block", "suction-cube"):
    rest_picture(load_scene(name))
print(len(seen))
"""


def test_nothing_is_compiled_for_it(tmp_path):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COUNT], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "0"
