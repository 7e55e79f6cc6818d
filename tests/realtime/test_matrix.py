"""Every shipped scene in threads: paused, stepped, changed, reset, recorded and repeated."""

import time
from dataclasses import replace

import pytest

from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.keeping import options_again
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.flags import PAUSING
from palpo.haptics.recording import read_recording
from tests.scenes.changed_runs import SCENES, assert_repeated, changes

WAITS = 60.0
"""Seconds after which what must come has not."""


@pytest.mark.realtime
@pytest.mark.parametrize("scene", SCENES)
def test_in_threads_it_is_paused_stepped_changed_reset_and_repeated(scene, tmp_path):
    path = tmp_path / "run.h5"
    session = Session(Options(scene, device="mock", duration=WAITS, record=path, baseline=False))
    session.prepare()
    servo, asked = session.rig.servo, changes(session)
    due = [0]

    def step() -> None:
        stood = int(tick_count(servo))
        due.append(stood + session.step_once())

    def change() -> None:
        for key, value in asked:
            session.change(key, value)

    known = [0]

    def taken() -> bool:
        known.append(session.slow.steps)
        return session.slow._changes.empty()

    steps = [
        (lambda: tick_count(servo) > 50, lambda: session.pause(True)),
        (lambda: is_frozen(servo), step),
        (lambda: tick_count(servo) == due[-1] and is_frozen(servo), lambda: session.pause(False)),
        (lambda: tick_count(servo) > due[-1], change),
        (taken, lambda: None),
        (lambda: session.slow.steps > known[-1] + 3, session.end),
    ]
    deadline = time.monotonic() + WAITS

    def watch(_state, _fresh) -> None:
        if steps and steps[0][0]():
            steps.pop(0)[1]()
        assert time.monotonic() < deadline, f"{len(steps)} things to do are left"
        time.sleep(1e-3)

    done = session.run(watch)
    assert not steps, done.result["exit_reason"]
    assert (done.result["exit_reason"], done.status) == ("finished", FINISHED)
    assert (read_recording(path).columns["flags"] & PAUSING).any()
    assert_repeated(path, asked)
    again = Session(replace(options_again(session), duration=0.05))
    again.prepare()
    assert again.run().status == FINISHED
