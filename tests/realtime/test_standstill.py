"""A program that was stopped and goes on: the force that its device held fades, and comes back slowly."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.replay import replay
from palpo.haptics.flags import STOOD_STILL
from palpo.haptics.limiter import LET_GO
from palpo.haptics.recording import read_recording
from tests.realtime.pressed_run import FADE, LONG, RECOVERY, start

pytestmark = [pytest.mark.realtime, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]
STOPPED = 1.0
"""Seconds for which the program is."""


def vector(columns, name):
    return np.stack([columns[f"{name}_{axis}"] for axis in "xyz"], axis=1)


def until_recovered(path):
    """Wait for so many ticks after the standstill."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        flags = read_recording(path).columns["flags"]
        found = np.flatnonzero(flags & STOOD_STILL)
        if len(found) and len(flags) > found[-1] + 2 * RECOVERY:
            return
        time.sleep(0.05)
    raise AssertionError("the program did not go on")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The recording of a run that was stopped in the middle, its path, and what the program said."""
    path = tmp_path_factory.mktemp("stopped") / "run.h5"
    program = start(path, "safety.passivity='observe'", stdout=subprocess.PIPE)
    program.send_signal(signal.SIGSTOP)
    os.waitpid(program.pid, os.WUNTRACED)
    time.sleep(STOPPED)
    program.send_signal(signal.SIGCONT)
    until_recovered(path)
    program.send_signal(signal.SIGTERM)
    said, _ = program.communicate(timeout=LONG)
    assert program.returncode == 128 + signal.SIGTERM
    return read_recording(path), path, said


@pytest.fixture(scope="module")
def late(stopped):
    """The tick that came late."""
    return int(np.argmax(stopped[0].columns["late_us"]))


def test_the_servo_sees_how_long_it_stood_still(stopped, late):
    """What it was due for lay within a period of when it was stopped."""
    columns = stopped[0].columns
    assert columns["late_us"][late] >= 1e6 * (STOPPED - 1e-3)
    assert columns["flags"][late] & STOOD_STILL and not columns["flags"][late - 1] & STOOD_STILL


def test_the_force_falls_from_the_first_tick_on_to_zero(stopped, late):
    size = np.linalg.norm(vector(stopped[0].columns, "sent"), axis=1)
    assert size[late - 1] > 0.2
    assert size[late] <= size[late - 1] * (1.0 - 1.0 / FADE) * (1.0 + 1e-9)
    assert (np.diff(size[late - 1 : late + FADE]) <= 1e-12).all() and size[late + FADE - 1] == 0.0


def test_the_force_comes_back_no_faster_than_after_a_wait(stopped, late):
    """A share of the command that rises by 1 / RECOVERY a tick at most, and is whole again."""
    columns = stopped[0].columns
    after = slice(late + FADE - 1, late + FADE + 2 * RECOVERY - 1)
    assert not (columns["flags"][after][1:] & STOOD_STILL).any(), "the machine is too busy for this test"
    gain = np.linalg.norm(vector(columns, "sent")[after], axis=1)
    gain /= np.linalg.norm(vector(columns, "force")[after], axis=1)
    assert np.diff(gain).max() <= 1.0 / RECOVERY + 1e-9
    assert gain[0] == 0.0 and gain[-1] == pytest.approx(1.0, abs=1e-9)


def test_no_energy_comes_of_it(stopped, late):
    """The hand has paid for what it gets back, but for the spring that lets go."""
    energy, sent = stopped[0].columns["energy_J"], vector(stopped[0].columns, "sent")
    held = sent[late - 1] @ sent[late - 1] / (2.0 * LET_GO)
    assert energy[late:].max() <= max(energy[: late + 1].max(), 0.0) + held


def test_a_standstill_is_told_and_repeated_bit_for_bit(stopped):
    _, path, said = stopped
    assert "The servo was suspended" in said
    assert replay(path).result["exit_status"] == FINISHED
