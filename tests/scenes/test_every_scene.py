"""Every shipped scene runs, whatever the last bits of its generated coordinates are on this processor."""

from dataclasses import replace

import numpy as np
import pytest

from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.config.load import list_scenes
from palpo.haptics.recording import read_recording
from palpo.physics.mesh.beam import BeamLine
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh

SNAP = sorted(scene for scene in list_scenes() if scene.startswith("snap"))
TICKS = 60
"""Three slow periods."""
SHORT = Options("", device="mock", lock_step=True, baseline=False, duration=1e-3 * TICKS)
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]


def without_training(patch):
    """No scene may need PyTorch."""
    patch.setattr(
        "palpo.app.cli.train_distance.train_distance", lambda *_, **__: pytest.fail("a network is trained")
    )


def nudged(points):
    """Points (n, 3), each coordinate a unit in the last place of the largest up or down."""
    rng = np.random.default_rng(points.size)
    return points + np.spacing(np.abs(points).max()) * rng.choice((-1.0, 1.0), points.shape)


def nudge(patch, mesh, attribute):
    """Every mesh of a kind, as it is made, has its coordinates nudged."""
    make = mesh.__init__

    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        object.__setattr__(self, attribute, nudged(getattr(self, attribute)))

    patch.setattr(mesh, "__init__", made)


def assert_it_runs(scene, folder):
    done = run(replace(SHORT, scene=scene, record=folder / "run.h5"))
    assert done.status == FINISHED, done.result["exit_reason"]
    columns = read_recording(folder / "run.h5").columns
    assert len(columns["tick"]) >= TICKS
    assert all(np.isfinite(values).all() for values in columns.values())


@pytest.mark.parametrize("scene", sorted(list_scenes()))
def test_a_shipped_scene_runs_with_every_generated_coordinate_a_unit_in_the_last_place_off(
    scene, tmp_path, monkeypatch
):
    """So do generated meshes differ between processors."""
    without_training(monkeypatch)
    for mesh, attribute in (
        (TetMesh, "nodes"), (HexMesh, "nodes"), (BeamLine, "nodes"), (SurfaceMesh, "vertices"),
    ):  # fmt: skip
        nudge(monkeypatch, mesh, attribute)
    assert_it_runs(scene, tmp_path)


@pytest.mark.portable
@pytest.mark.parametrize("scene", SNAP)
def test_a_snap_scene_runs_on_this_processor_without_pytorch(scene, tmp_path, monkeypatch):
    without_training(monkeypatch)
    assert_it_runs(scene, tmp_path)
