"""Runs in threads: what a clock decided is in the recording, and one thread repeats it bit for bit."""

import time
from dataclasses import replace

import numpy as np
import pytest

from palpo.app.report.outcome import FAILED, FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session, run
from palpo.haptics.recording import read_recording
from palpo.physics.exchange.port import CONTACTS_LOST, WAITING

TOUCHING = (
    "bodies.probe.placement.position=[0, 0.041, 0]",
    "device.path=[[0, 0, 0.041, 0], [0.3, 0, 0.035, 0], [0.6, 0.01, 0.035, 0], [0.9, 0.01, 0.045, 0]]",
    "workspace.offset=[0, 0.041, 0]",
)
PROBE = Options("probe", TOUCHING, device="mock", baseline=False)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "threads.h5"
    return path, run(replace(PROBE, record=path))


def test_a_run_in_threads_ends_when_its_path_does(recorded):
    outcome = recorded[1]
    assert outcome.status == FINISHED
    assert outcome.result["driver"] == "threads"
    assert outcome.result["servo"]["steps"] >= 900
    assert outcome.result["slow"]["steps"] > 1
    assert outcome.states[-1][0] == "At the end"


def test_a_scene_that_no_hand_leads_comes_to_its_end_however_slow_its_steps_are():
    """Each takes two periods and a half: by the servo's time the run would end before the half of it."""
    ticks = 150
    session = Session(
        Options("suction-gripper", ("rates.low_hz=50",), device="mock", baseline=False, duration=1e-3 * ticks)
    )
    session.prepare()
    low, make = session.rig.low, session.rig.low.step
    last = 2.5 * session.rig.ratio * session.rig.dt

    def slowly() -> int:
        time.sleep(last)
        return make()

    low.step = slowly  # type: ignore[method-assign]
    outcome = session.run()
    assert outcome.status == FINISHED
    made = round(session.rig.built.suction.time / session.rig.dt)
    assert ticks - 2 * session.rig.ratio <= made < ticks + session.rig.ratio
    assert any("slow motion" in warning for warning in outcome.result["warnings"])


def test_every_frame_is_adopted_and_none_from_the_future(recorded):
    recording = read_recording(recorded[0])
    frames, steps = recording.columns["frame"], recording.low_steps
    seen, first = np.unique(frames, return_index=True)
    # the last frame may come when the servo has already faded
    assert set(seen) >= set(steps["frame"][:-1])
    adopted = dict(zip(seen, first, strict=True))
    # a machine that is too busy makes the scene wait: its own ticks are those in which it did not
    waiting = (recording.columns["tick_flags"] & WAITING) != 0
    scene = np.concatenate([[0], np.cumsum(~waiting)])
    for frame, begin, until, present in zip(
        *(steps[k] for k in ("frame", "begin_tick", "until_tick", "present_tick")), strict=True
    ):
        assert scene[max(begin, 0)] <= until <= present
        if frame in adopted:
            assert present <= scene[adopted[frame]]
    assert (np.diff(steps["begin_tick"]) > 0).all()


def test_a_run_in_threads_is_repeated_bit_for_bit(recorded):
    again = replay(recorded[0])
    assert again.result["replay"]["equal"], again.result["exit_reason"]
    assert again.result["replay"]["ticks"] == len(read_recording(recorded[0]).columns["tick"])


@pytest.mark.parametrize("kind", ["paper", "extrapolated"])
def test_the_literal_kinds_are_repeated_bit_for_bit_too(tmp_path, kind):
    path = tmp_path / "run.h5"
    run(replace(PROBE, record=path, interface=kind, duration=0.6))
    columns = read_recording(path).columns
    assert columns["contacts"].max() > 0 and not (columns["tick_flags"] & CONTACTS_LOST).any()
    again = replay(path)
    assert again.result["replay"]["equal"], again.result["exit_reason"]


def test_a_body_that_is_not_finite_stops_the_run_with_its_recording_kept(tmp_path):
    path = tmp_path / "broken.h5"
    session = Session(replace(PROBE, record=path))
    session.prepare()
    session.rig.scene.members[0].body.v[:] = np.nan
    outcome = session.run()
    assert outcome.status == FAILED
    recording = read_recording(path)
    assert recording.closed
    assert np.isfinite([recording.columns[f"sent_{c}"] for c in "xyz"]).all()


def test_an_error_in_the_slow_loop_stops_the_servo(monkeypatch):
    session = Session(PROBE)
    session.prepare()
    steps = []

    def fail_later() -> int:
        steps.append(1)
        if len(steps) > 1:
            raise ValueError("out of paper")
        return make()

    make = session.rig.low.step
    monkeypatch.setattr(session.rig.low, "step", fail_later)
    outcome = session.run()
    assert outcome.status == FAILED
    assert "out of paper" in outcome.result["exit_reason"]
    assert outcome.result["servo"]["stop_reason"] == "stop requested"
