"""Whatever ends a run from outside, the force fades and the recording is whole: real signals to processes."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from palpo.app.runtime.endings import (
    CTRL_CLOSE,
    CTRL_LOGOFF,
    CTRL_SHUTDOWN,
    HANGUP,
    SIGNALLED,
    Endings,
    watch_console,
)
from palpo.haptics.flags import EMERGENCY, STOPPING
from palpo.haptics.recording import read_recording
from tests.realtime.pressed_run import (
    EMERGENCY_FADE,
    FADE,
    LONG,
    PRESSED,
    ROOT,
    command,
    start,
    until_pressed,
)

pytestmark = [pytest.mark.realtime, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]


def assert_faded(path, at_most=FADE, emergency=False):
    """The hand was pushed until the stop; then the force went to zero, in no more ticks than these."""
    recording = read_recording(path)
    assert recording.closed
    columns = recording.columns
    stopping = np.flatnonzero(columns["flags"] & STOPPING)
    size = np.linalg.norm([columns[f"sent_{axis}"] for axis in "xyz"], axis=0)
    assert size[stopping[0] - 1] > 0.2
    assert size[-1] == 0.0
    assert 0 < len(stopping) <= at_most + 1
    assert bool((columns["flags"] & EMERGENCY).any()) == emergency
    # the gain falls: no tick of the fade is stronger than the one before, but for the block's own vibration
    assert (np.diff(size[stopping]) < 0.02).all()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda n: n.name)
def test_a_signal_fades_the_force_and_closes_the_recording(tmp_path, number):
    path = tmp_path / "run.h5"
    program = start(path)
    program.send_signal(number)
    program.communicate(timeout=LONG)
    assert program.returncode == SIGNALLED + number
    assert_faded(path)


@pytest.mark.parametrize("name", ["SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGXCPU"])
def test_a_signal_that_would_end_the_process_where_it_stands_fades_as_an_emergency(tmp_path, name):
    path, number = tmp_path / "run.h5", getattr(signal, name)
    program = start(path)
    program.send_signal(number)
    _, said = program.communicate(timeout=LONG)
    assert program.returncode == SIGNALLED + number
    assert_faded(path, at_most=EMERGENCY_FADE, emergency=True)
    assert f"ended by {name}" in said or program.stdout is None


@pytest.mark.parametrize(
    ("first", "second"),
    [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGINT), (signal.SIGHUP, signal.SIGTERM)],
    ids=lambda n: n.name,
)
def test_a_second_signal_hurries_the_fade_and_kills_nothing(tmp_path, first, second):
    path = tmp_path / "run.h5"
    program = start(path)
    program.send_signal(first)
    time.sleep(5e-3)
    program.send_signal(second)
    program.communicate(timeout=LONG)
    assert program.returncode == SIGNALLED + first
    recording = read_recording(path)
    assert_faded(path, emergency=bool((recording.columns["flags"] & EMERGENCY).any()))


def test_a_closed_terminal_fades_the_force_and_closes_the_recording(tmp_path):
    import pty

    path = tmp_path / "run.h5"
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execv(sys.executable, command(path))
    said = b""
    while b"first tick" not in said:
        said += os.read(terminal, 4096)
    until_pressed(path)
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == SIGNALLED + HANGUP
    assert_faded(path)


def test_what_was_told_to_ignore_a_closed_terminal_goes_on(tmp_path):
    path = tmp_path / "run.h5"
    program = start(path, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    program.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert program.poll() is None
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=LONG)
    assert program.returncode == SIGNALLED + signal.SIGTERM
    assert_faded(path)


STUCK = """
import ctypes, sys, threading, time
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.haptics.reasons import RUNNING
from palpo.haptics.control import finished_reason, tick_count

session = Session(Options("probe", tuple(sys.argv[1:]), device="mock", baseline=False, duration=100))
session.prepare()
servo, mutex, locked = session.rig.servo, (ctypes.c_char * 256)(), []
lock = ctypes.CDLL(None).pthread_mutex_lock

def tell():
    while finished_reason(servo) == RUNNING:
        time.sleep(1e-3)
    print("faded", float(abs(servo.sent).max()), flush=True)

def hang(_state, _fresh):
    if tick_count(servo) > 400:
        print("pressed", float(abs(servo.sent).max()), flush=True)
        lock(mutex)
        lock(mutex)

threading.Thread(target=tell, daemon=True).start()
session.run(hang)
"""


def test_a_main_thread_that_hangs_keeps_neither_the_force_nor_the_process():
    program = subprocess.Popen(
        [sys.executable, "-c", STUCK, *PRESSED],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    word, force = program.stdout.readline().split()
    assert word == "pressed" and float(force) > 0.2
    program.send_signal(signal.SIGTERM)
    assert program.stdout.readline() == "faded 0.0\n"
    assert program.poll() is None
    program.send_signal(signal.SIGTERM)
    _, said = program.communicate(timeout=LONG)
    assert program.returncode == SIGNALLED + signal.SIGTERM
    assert said.endswith("of the second signal and was abandoned; the force is off\n")


class Kernel32:
    """The one function of it that is called."""

    def __init__(self):
        self.handlers = []

    def SetConsoleCtrlHandler(self, routine, add):
        if add:
            self.handlers.append(routine)
        else:
            self.handlers.remove(routine)
        return 1


@pytest.mark.parametrize("event", [CTRL_CLOSE, CTRL_LOGOFF, CTRL_SHUTDOWN])
def test_a_closed_console_asks_for_the_fade_and_waits_for_the_end(event):
    kernel32, asked = Kernel32(), []
    endings = Endings(asked.append, lambda: True)
    undo = watch_console(kernel32, ctypes.CFUNCTYPE, endings.close_console)
    (handler,) = kernel32.handlers
    # Ctrl-C and Ctrl-Break are left to Python
    assert (handler(0), handler(1), asked) == (0, 0, [])
    answers = []
    system = threading.Thread(target=lambda: answers.append(handler(event)))
    system.start()
    end = time.monotonic() + LONG
    while not asked and time.monotonic() < end:
        time.sleep(1e-3)
    assert asked == [False] and endings.number == HANGUP
    # the process lasts until the handler returns
    assert system.is_alive()
    endings.__exit__()
    system.join(LONG)
    assert answers == [1]
    undo()
    assert kernel32.handlers == []
