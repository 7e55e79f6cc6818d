"""Runs of scenes without a clock: what they report, and that a recording repeats them, bit for bit where it
was made, to a stated tolerance elsewhere."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from palpo.app.report.outcome import FAILED, FINISHED, plain
from palpo.app.runtime.comparison import made_elsewhere
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import DIFFERENT, replay
from palpo.app.runtime.session import Session, run
from palpo.app.visual.solids import capsule_surface, rotate
from palpo.haptics.flags import STOPPING
from palpo.haptics.recording import read_recording
from palpo.physics.numerics.arithmetic import arithmetic

ROOT = Path(__file__).parents[2]
DISTRIBUTION = {"p50", "p99", "p999", "max"}
# The ball is on the block from the first tick: contact, friction and lift within a fifth of a second.
TOUCHING = (
    "bodies.probe.placement.position=[0, 0.041, 0]",
    "device.path=[[0, 0, 0.041, 0], [0.08, 0, 0.037, 0], [0.16, 0.01, 0.037, 0], [0.24, 0.01, 0.045, 0]]",
    "workspace.offset=[0, 0.041, 0]",
)
PROBE = Options("probe", TOUCHING, lock_step=True)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "probe.h5"
    return path, run(replace(PROBE, record=path))


def test_a_result_holds_what_a_report_needs(recorded):
    result = recorded[1].result
    assert recorded[1].status == FINISHED
    assert result["interface"] == "krylov"
    assert result["latency"] == "one period of the slow loop"
    assert {"rate_hz", "steps", "missed", "stale", "late_us", "step_us"} <= set(result["servo"])
    assert {"rate_hz", "steps", "step_ms", "overruns", "contacts_max"} <= set(result["slow"])
    assert set(result["servo"]["step_us"]) == DISTRIBUTION == set(result["slow"]["step_ms"])
    assert all(set(times) == DISTRIBUTION for times in result["slow"]["by_step_ms"].values())
    assert {"final", "mean_last_half_second", "max_norm"} <= set(result["force_N"])
    assert result["mass_kg"]["probe"] == pytest.approx(0.03)
    assert result["slow"]["contacts_max"] > 0
    assert 0.0 < result["force_N"]["max_norm"] < 50.0
    assert json.loads(json.dumps(plain(result)))["scene"] == "probe"


def test_the_force_has_faded_at_the_end_of_a_run(recorded):
    columns = read_recording(recorded[0]).columns
    assert columns["sent_y"][-1] == 0.0
    assert np.abs(columns["sent_y"]).max() > 0.0


def test_a_recording_tells_what_it_was_made_of(recorded):
    recording = read_recording(recorded[0])
    assert recording.closed
    assert recording.meta["scene"]["overrides"] == list(TOUCHING)
    assert "[tool.hold]" in recording.meta["scene"]["text"]
    assert recording.meta["driver"] == "lock-step"
    assert np.array_equal(recording.columns["tick"], np.arange(len(recording.columns["tick"])))
    assert np.array_equal(recording.low_steps["step"], np.arange(len(recording.low_steps["step"])))


def test_two_runs_in_lock_step_are_the_same_file_but_for_nothing(recorded, tmp_path):
    run(replace(PROBE, record=tmp_path / "again.h5"))
    first, second = read_recording(recorded[0]), read_recording(tmp_path / "again.h5")
    for name, values in first.columns.items():
        assert np.array_equal(values, second.columns[name]), name


@pytest.mark.portable
def test_a_run_in_lock_step_is_repeated_bit_for_bit(recorded):
    again = replay(recorded[0])
    assert again.status == FINISHED
    assert again.result["replay"]["equal"]
    assert again.result["replay"]["max_difference"] == 0.0
    assert again.result["replay"]["columns"] >= 40


def from_elsewhere(recorded, tmp_path, share):
    """The recording as of another kind of processor, its forces off by a share of the largest."""
    path = tmp_path / "elsewhere.h5"
    shutil.copy(recorded[0], path)
    with h5py.File(path, "r+") as file:
        meta = json.loads(bytes(file.attrs["meta"]).decode())
        meta["arithmetic"]["processor"] = "z80"
        file.attrs["meta"] = np.bytes_(json.dumps(meta).encode())
        force = file["servo/force_y"]
        force[...] += share * np.abs(force[...]).max()
    return path


@pytest.mark.portable
def test_a_recording_tells_what_decides_its_last_bits_and_where_it_differs_the_replay_says_so(
    recorded, tmp_path
):
    assert read_recording(recorded[0]).meta["arithmetic"] == arithmetic()
    assert made_elsewhere({"arithmetic": arithmetic()}) == ""
    assert made_elsewhere({}) == "it does not say where"
    again = replay(from_elsewhere(recorded, tmp_path, 1e-9))
    assert again.status == FINISHED and not again.result["replay"]["equal"] and again.result["replay"]["same"]
    said = again.result["exit_reason"]
    assert said.startswith("made elsewhere (processor z80 there") and "the same within the 5% that" in said


def test_a_recording_from_elsewhere_that_is_farther_off_than_another_arithmetic_explains_fails(
    recorded, tmp_path
):
    again = replay(from_elsewhere(recorded, tmp_path, 0.2))
    assert again.status == DIFFERENT and not again.result["replay"]["same"]
    assert "differs by more than the 5% that another arithmetic may make" in again.result["exit_reason"]


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["Haswell", "Prescott"])
def test_a_run_of_another_kind_of_processor_is_repeated_within_the_stated_tolerance(processor, tmp_path):
    path = tmp_path / "run.h5"
    code = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from palpo.app.runtime.session import run; from tests.scenes.test_run import PROBE\n"
        "run(replace(PROBE, record=Path(sys.argv[1])))\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(path)],
        cwd=ROOT,
        env=os.environ | {"OPENBLAS_CORETYPE": processor},
        check=True,
    )
    again = replay(path)
    found = again.result["replay"]
    assert again.status == FINISHED
    if os.environ.get("OPENBLAS_CORETYPE") != processor and made_elsewhere(read_recording(path).meta):
        assert found["made_elsewhere"].startswith("rounding ")
        # a smooth contact: roundings may choose other columns for the reduced models, and any two of these
        # differ by no more than a model from the whole scene: 0.06% here (palpo study multirate-accuracy)
        assert found["off"] < 6e-4
    else:
        assert found["equal"]


def test_a_replay_that_differs_says_where_and_fails(recorded, tmp_path):
    altered = tmp_path / "altered.h5"
    shutil.copy(recorded[0], altered)
    with h5py.File(altered, "r+") as file:
        file["servo/force_y"][150] += 1e-15 + 1e-12
    again = replay(altered)
    assert again.status == DIFFERENT
    assert again.result["replay"]["first_tick"] == 150
    assert "force_y" in again.result["exit_reason"]


def test_another_scene_can_be_run_under_a_recorded_hand(recorded):
    again = replay(recorded[0], "beams")
    assert "replay" not in again.result
    running = np.count_nonzero(~read_recording(recorded[0]).columns["flags"] & STOPPING)
    # this hand starts off the beams and pulls, so that no force was sent that would have to fade
    assert again.result["servo"]["steps"] > running
    assert again.result["force_N"]["max_norm_sent"] == 0.0


def test_a_foreign_trajectory_starts_at_the_held_point(tmp_path):
    path = tmp_path / "hand.csv"
    t = np.linspace(0.0, 0.3, 31)
    rows = np.c_[t, 500.0 + 10 * np.sin(t), 20 + 0 * t, 0 * t]
    np.savetxt(path, rows, delimiter=",", header="t,x,y,z", comments="")
    session = Session(replace(PROBE, device=f"replay:{path}", unit="mm", overrides=()))
    session.prepare()
    outcome = session.run()
    position = outcome.series["position_m"]
    # the probe's centre at rest; the scene's own file may move it
    start = session.spec.tool_body.placement.position
    np.testing.assert_allclose(position[0], start, atol=1e-12)
    # 10 mm times sin 0.3, by a cubic spline through 100 Hz samples
    assert position[-1, 0] - position[0, 0] == pytest.approx(0.01 * np.sin(0.3), abs=1e-6)
    assert outcome.result["servo"]["steps"] >= 301


@pytest.mark.parametrize("kind", ["paper", "extrapolated", "monolithic"])
def test_every_kind_of_interface_runs_in_lock_step(kind):
    outcome = run(replace(PROBE, interface=kind, duration=0.1))
    assert outcome.status == FINISHED
    assert outcome.result["interface"] == kind


def test_a_run_that_breaks_fades_keeps_its_recording_and_says_so(tmp_path):
    path = tmp_path / "broken.h5"
    session = Session(replace(PROBE, record=path))
    session.prepare()
    session.rig.scene.members[0].body.v[:] = np.nan
    outcome = session.run()
    assert outcome.status == FAILED
    assert "finite" in outcome.result["exit_reason"] or "failure" in outcome.result["exit_reason"]
    recording = read_recording(path)
    assert recording.closed
    assert len(recording.columns["tick"]) > 0
    assert np.isfinite([recording.columns[f"sent_{c}"] for c in "xyz"]).all()
    assert recording.columns["sent_y"][-1] == 0.0


@pytest.mark.parametrize(("radius", "length"), [(0.01, 0.0), (0.004, 0.03)])
def test_round_shapes_are_closed_and_face_outward(radius, length):
    x, triangles = capsule_surface(radius, length)
    a, b, c = x[triangles[:, 0]], x[triangles[:, 1]], x[triangles[:, 2]]
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0
    exact = np.pi * radius**2 * length + 4.0 / 3.0 * np.pi * radius**3
    # inscribed facets of 15 degrees lose 2 % around and as much along
    assert 0.94 * exact < volume < exact
    edges = np.sort(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    assert (np.unique(edges, axis=0, return_counts=True)[1] == 2).all()


def test_a_quarter_turn_about_z_takes_x_to_y():
    q = np.array([np.cos(np.pi / 4), 0.0, 0.0, np.sin(np.pi / 4)])
    np.testing.assert_allclose(rotate(q, np.eye(3)[:1]), np.eye(3)[1:2], atol=1e-15)
