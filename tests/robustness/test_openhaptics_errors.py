"""Every fault of a Touch has its own sentence; warnings go on, the rest fades to zero without a jump."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from palpo.app.cli.progress import Silent
from palpo.app.report.outcome import FAILED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.haptics.backends.openhaptics import OpenHapticsDevice, find
from palpo.haptics.backends.openhaptics_library import (
    BAD_READING,
    ERRORS,
    WARN,
    HdLibrary,
    explain,
    let_find,
    library_folders,
)
from palpo.haptics.backends.openhaptics_library import (
    FATAL as FATAL_ONES,
)
from palpo.haptics.backends.openhaptics_thread import TouchThread
from palpo.haptics.backends.openhaptics_tick import touch_callback
from palpo.haptics.control import finished_reason, tick_count
from palpo.haptics.drain import drain_rows
from palpo.haptics.errors import HapticsError
from palpo.haptics.reasons import STOP_DEVICE_LOST
from palpo.haptics.recording import read_recording
from tests.libhd.bench import DEPTH, LONG, SENT, STIFFNESS, press, readings, touch_wall, wait
from tests.libhd.stand_in import DEFAULT, LEFT, NAME, NAMES, SOURCE, fresh_stand_in
from tests.stand_in_library import build

ROOT = Path(__file__).parents[2]
PRESSED = STIFFNESS * DEPTH
"""Force of the steady press [N]."""
FADE = 50
"""Ticks of the fade."""
FAULT_AT = 400
UNKNOWN = 0x0777
WARNINGS = [code for code, error in ERRORS.items() if error.severity == WARN]
FATAL = [code for code, error in ERRORS.items() if error.severity == FATAL_ONES and code != BAD_READING] + [
    UNKNOWN
]
OK, NEEDS_UPDATE, NEEDS_MANUAL_INPUT = 0x5000, 0x5001, 0x5002
RESET, AUTO, INKWELL = 1, 2, 4


@pytest.fixture
def stand_in():
    made = fresh_stand_in()
    made.script(DEFAULT, press())
    yield made
    made.disconnect()


def run_to_its_end(wall):
    """Let a fault end the run; the thread that has ended."""
    with OpenHapticsDevice() as device:
        thread = TouchThread(wall.servo, device).start()
        assert thread.join(LONG)
    return thread


def assert_fades(forces, first):
    """A steady press until `first`, then a straight ramp to zero within the fade: nowhere a jump."""
    steady, ramp = forces[first - 100 : first], forces[first : first + FADE]
    assert steady == pytest.approx(np.tile([-PRESSED, 0.0, 0.0], (100, 1)), abs=1e-12)
    assert ramp[:, 0] == pytest.approx(-PRESSED * (1.0 - np.arange(1, FADE + 1) / FADE), abs=1e-12)
    assert (forces[first + FADE - 1 :] == 0.0).all()


def test_warnings_are_unknown_properties_warm_motors_and_exceeded_limits_and_nothing_else():
    assert [ERRORS[code].name for code in WARNINGS] == [
        "HD_INVALID_ENUM",
        "HD_WARM_MOTORS",
        "HD_EXCEEDED_MAX_FORCE",
        "HD_EXCEEDED_MAX_FORCE_IMPULSE",
        "HD_EXCEEDED_MAX_VELOCITY",
    ]


def test_every_error_has_a_sentence_of_its_own():
    sentences = [explain(code) for code in (*ERRORS, UNKNOWN)]
    assert len(set(sentences)) == len(sentences)
    assert all("\n" not in sentence and len(sentence) < 110 for sentence in sentences)


# ---- while a servo runs


@pytest.mark.parametrize("code", WARNINGS, ids=hex)
def test_a_warning_is_told_and_counted_and_the_force_stays(stand_in, code):
    stand_in.fault(DEFAULT, code, 300, 320)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, FAULT_AT)
        assert thread.running and thread.reason == "running"
        assert thread.events() == {explain(code): 20}
        assert thread.events() == {}, "told once"
    assert thread.reason == "stop requested"
    forces = stand_in.forces(DEFAULT)
    assert forces[250:FAULT_AT] == pytest.approx(np.tile([-PRESSED, 0, 0], (FAULT_AT - 250, 1)), abs=1e-12)


@pytest.mark.parametrize("code", FATAL, ids=hex)
def test_any_other_error_fades_the_force_on_the_device_and_is_the_reason(stand_in, code):
    stand_in.fault(DEFAULT, code, FAULT_AT - 1, FAULT_AT, internal=-7)
    wall = touch_wall()
    thread = run_to_its_end(wall)
    assert thread.reason == explain(code, -7)
    assert finished_reason(wall.servo) == STOP_DEVICE_LOST
    assert thread.events() == {explain(code, -7 if code == UNKNOWN else 0): 1}
    assert_fades(stand_in.forces(DEFAULT), FAULT_AT)
    assert len(stand_in.forces(DEFAULT)) == FAULT_AT + FADE
    assert not stand_in.output(DEFAULT) and not stand_in.running()
    assert (stand_in.counts["illegal"], stand_in.counts["scheduled"]) == (0, 0)


def test_of_several_errors_the_first_fatal_one_is_the_reason(stand_in):
    for code in (0x0200, 0x0304, 0x0204):
        stand_in.fault(DEFAULT, code, FAULT_AT, FAULT_AT + 1)
    stand_in.fault(DEFAULT, 0x0300, FAULT_AT + 5, FAULT_AT + 6)
    thread = run_to_its_end(touch_wall())
    assert thread.reason == explain(0x0304)
    assert thread.events() == dict.fromkeys(map(explain, (0x0200, 0x0204, 0x0300, 0x0304)), 1)


def test_a_device_unplugged_in_mid_run_ends_it_with_its_own_sentence(stand_in):
    stand_in.unplug(DEFAULT, FAULT_AT)
    wall = touch_wall()
    thread = run_to_its_end(wall)
    assert thread.reason == "the device was lost; check its cable and power (HD_COMM_ERROR, -1)"
    assert_fades(drain_rows(wall.servo)[:, SENT], FAULT_AT)
    assert (stand_in.forces(DEFAULT)[FAULT_AT:] == 0.0).all()
    assert stand_in.counts["illegal"] == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_pose_that_is_not_finite_is_never_felt(stand_in, bad):
    script = np.vstack([press(), np.tile(press()[-1], (FAULT_AT - 201, 1)), press()[-1:]])
    script[-1, 12] = bad
    stand_in.script(DEFAULT, script)
    wall = touch_wall()
    thread = run_to_its_end(wall)
    assert thread.reason == explain(BAD_READING)
    assert_fades(stand_in.forces(DEFAULT), FAULT_AT)


def test_a_device_disabled_by_others_sends_its_force_to_no_other_device(stand_in):
    stand_in.script(LEFT, readings(np.tile([-0.01, 0.0, 0.0], (1, 1))))
    walls = touch_wall(), touch_wall()
    with OpenHapticsDevice() as a, OpenHapticsDevice(NAMES[LEFT]) as b:
        lost, other = TouchThread(walls[0].servo, a).start(), TouchThread(walls[1].servo, b).start()
        wait(walls[0].servo, FAULT_AT)
        a.library.hd.hdDisableDevice(a.handle)
        assert lost.join(LONG)
        assert lost.reason == explain(0x0104)
        assert_fades(drain_rows(walls[0].servo)[:, SENT], tick_count(walls[0].servo) - FADE)
        wait(walls[1].servo, tick_count(walls[1].servo) + 100)
        assert other.running and other.reason == "running"
        other.stop()
        assert other.join(LONG)
    assert (stand_in.forces(LEFT) == 0.0).all()


def test_an_exception_in_the_block_fades_and_stops(stand_in):
    wall = touch_wall()
    with (
        pytest.raises(RuntimeError, match="outside"),
        OpenHapticsDevice() as device,
        TouchThread(wall.servo, device),
    ):
        wait(wall.servo, FAULT_AT)
        raise RuntimeError("outside")
    forces = stand_in.forces(DEFAULT)
    assert_fades(forces, len(forces) - FADE)
    assert not stand_in.initialised(DEFAULT) and not stand_in.running()


def test_a_scheduler_that_never_calls_is_an_error_at_the_opening(stand_in):
    stand_in.stall(0)
    with pytest.raises(HapticsError, match="scheduler of the default device has not called for 1 s"):
        OpenHapticsDevice()
    assert not stand_in.initialised(DEFAULT) and not stand_in.running()


def test_a_scheduler_that_calls_no_more_is_an_error_at_the_start(stand_in):
    wall = touch_wall()
    with OpenHapticsDevice() as device:
        stand_in.stall(stand_in.counts["ticks"])
        thread = TouchThread(wall.servo, device)
        with pytest.raises(HapticsError, match="scheduler of the default device has not called for 1 s"):
            thread.start()
    assert not thread.running and thread.join(0.0)
    assert finished_reason(wall.servo) == STOP_DEVICE_LOST
    assert stand_in.counts["scheduled"] == 0 and not stand_in.initialised(DEFAULT) and not stand_in.running()


def test_a_scheduler_that_falls_silent_in_mid_run_ends_it_and_the_device_is_disabled(stand_in):
    wall = touch_wall()
    with OpenHapticsDevice() as device:
        stand_in.stall(stand_in.counts["ticks"] + FAULT_AT)
        thread = TouchThread(wall.servo, device).start()
        assert thread.join(LONG)
    assert thread.reason == "the scheduler of the default device has not called for 0.25 s"
    silent = "the scheduler of the default device does not call: the force is not known, let go"
    assert thread.events() == {silent: 1}
    assert finished_reason(wall.servo) == STOP_DEVICE_LOST
    assert_fades(drain_rows(wall.servo)[:, SENT], FAULT_AT)
    assert not stand_in.initialised(DEFAULT) and not stand_in.running()
    # a call that comes after all does nothing and asks for no more
    late_call = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p)(touch_callback.address)
    ticks = tick_count(wall.servo)
    assert late_call(thread._data.address) == 0
    assert tick_count(wall.servo) == ticks and len(stand_in.forces(DEFAULT)) == FAULT_AT


def test_a_slow_scheduler_is_seen_in_the_share_of_ticks_served(stand_in):
    stand_in.slow(3_000_000)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 200)
        # one tick in three periods, within a period at either end; fewer if the machine is late as well
        assert thread.served() < 1 / 3 + 0.01


# ---- before


def assert_refused(words, name=None):
    with pytest.raises(HapticsError) as refusal:
        OpenHapticsDevice(name)
    assert words in str(refusal.value) and "\n" not in str(refusal.value)
    found = find(name)
    assert not found.ok and found.sentence == str(refusal.value)


def test_no_device_and_a_wrong_name_are_refused_by_name(stand_in):
    assert_refused('the device "Right Hand" cannot be opened: the device is not connected', "Right Hand")
    stand_in.connect(DEFAULT, 0)
    assert_refused("the default device cannot be opened: the device is not connected")


@pytest.mark.parametrize(
    ("status", "style", "remedy"),
    [
        (NEEDS_MANUAL_INPUT, INKWELL, "put the stylus into the inkwell"),
        (NEEDS_MANUAL_INPUT, AUTO, "move the stylus slowly through its whole workspace"),
        (NEEDS_MANUAL_INPUT, RESET, "bring the arm to its reset position"),
    ],
)
def test_a_device_that_is_not_calibrated_says_what_to_do(stand_in, status, style, remedy):
    stand_in.calibration(DEFAULT, status, style)
    assert_refused(f"the default device is not calibrated: {remedy}")
    assert not stand_in.initialised(DEFAULT)


@pytest.mark.parametrize("style", [AUTO, INKWELL, AUTO | INKWELL])
def test_a_calibration_that_only_needs_an_update_is_updated(stand_in, style):
    stand_in.calibration(DEFAULT, NEEDS_UPDATE, style)
    with OpenHapticsDevice() as device:
        assert device.library.hd.hdCheckCalibration() == OK
    assert stand_in.counts["illegal"] == 0


def test_a_device_is_opened_once(stand_in):
    with OpenHapticsDevice(), pytest.raises(HapticsError, match="leads a hand already"):
        OpenHapticsDevice()


def test_a_rate_that_the_scheduler_does_not_have_is_refused(stand_in):
    wall = touch_wall(rate_hz=750.0)
    refused = pytest.raises(HapticsError, match="scheduler does not run at 750 Hz")
    with OpenHapticsDevice() as device, refused:
        TouchThread(wall.servo, device).start()
    assert not stand_in.running()


def test_two_servos_on_one_scheduler_have_one_rate(stand_in):
    slow, fast = touch_wall(rate_hz=500.0), touch_wall()
    refused = pytest.raises(HapticsError, match="1000 Hz cannot share")
    with OpenHapticsDevice() as a, OpenHapticsDevice(NAMES[LEFT]) as b, TouchThread(slow.servo, a), refused:
        TouchThread(fast.servo, b).start()


def test_a_library_of_another_kind_is_refused_by_the_function_that_it_lacks(stand_in):
    find()
    from pyOpenHaptics import hd_define

    with pytest.raises(HapticsError, match="libHD lacks hdInitDevice"):
        HdLibrary(ctypes.CDLL("libm.so.6"), hd_define)


def test_closing_twice_disables_once(stand_in):
    device = OpenHapticsDevice()
    device.close()
    device.close()
    assert stand_in.counts["illegal"] == 0


def test_a_whole_run_whose_device_is_unplugged_ends_in_the_device_s_own_words(stand_in, tmp_path):
    stand_in.unplug(DEFAULT, 600)
    path = tmp_path / "run.h5"
    done = run(Options("probe", device="touch", record=path, baseline=False, duration=30.0))
    assert done.status == FAILED
    lost = "the device was lost; check its cable and power (HD_COMM_ERROR, -1)"
    assert done.result["exit_reason"] == f"the servo stopped: {lost}"
    assert done.result["servo"]["stop_reason"] == "the device was lost"
    assert read_recording(path).closed


def test_a_warning_at_every_tick_is_said_once_and_counted(stand_in, tmp_path):
    stand_in.fault(DEFAULT, WARNINGS[0], 100, 1000)
    said = []

    class Heard(Silent):
        def say(self, words):
            said.append(words)

    options = Options("probe", device="touch", baseline=False, duration=1.2)
    done = run(options, Heard())
    warm = explain(WARNINGS[0])
    assert said.count(warm) == 1
    assert [words for words in done.result["warnings"] if words.startswith(warm)] == [f"{warm}, 900 times"]


HANGING = """
import sys, time
from palpo.haptics.backends.openhaptics import OpenHapticsDevice
from palpo.haptics.backends.openhaptics_thread import TouchThread
from palpo.haptics.errors import HapticsError
from tests.libhd.bench import touch_wall, wait
from tests.libhd.stand_in import DEFAULT, fresh_stand_in

stand_in = fresh_stand_in()
stand_in.hang(300)
wall = touch_wall()
with OpenHapticsDevice() as device:
    thread = TouchThread(wall.servo, device).start()
    while thread.running:
        time.sleep(1e-3)
    begun = time.monotonic()
    thread.stop()
    print(thread.join(5.0), time.monotonic() - begun < 3.0, stand_in.initialised(DEFAULT))
    print(thread.reason)
try:
    OpenHapticsDevice()
except HapticsError as refused:
    print(refused)
"""


def test_a_callback_that_never_returns_keeps_nobody_waiting_and_is_told():
    fresh_stand_in().disconnect()
    done = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    ended, reason, refused = done.stdout.splitlines()
    # the device is disabled, though its scheduler waits for ever
    assert ended == "True True 0"
    assert reason == (
        "the scheduler of the default device has not called for 0.25 s; "
        "libHD does not answer: the force is not known, let go of the stylus"
    )
    assert refused.startswith("libHD does not answer any more")


KILLED = """
import sys, time
from palpo.haptics.backends.openhaptics import OpenHapticsDevice
from palpo.haptics.backends.openhaptics_thread import TouchThread
from tests.libhd.bench import touch_wall, wait

wall = touch_wall()
with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
    wait(wall.servo, 100)
    print("running", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("killed", [True, False])
def test_a_killed_program_s_device_is_disabled_by_another_process(tmp_path, killed):
    fresh_stand_in().disconnect()
    build(SOURCE, NAME, tmp_path)
    journal = tmp_path / "journal"
    places = {"LD_LIBRARY_PATH": str(tmp_path), "STANDIN_JOURNAL": str(journal)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | places,
    ) as program:  # fmt: skip
        assert program.stdout.readline() == "running\n"
        began = time.monotonic()
        if killed:
            program.kill()
        program.stdin.close()
        program.wait(LONG)
    own = [f"{program.pid} init", f"{program.pid} force on"]
    if not killed:
        # in order: nobody else has touched it
        assert journal.read_text().splitlines() == [
            *own, f"{program.pid} force off", f"{program.pid} disable",
        ]  # fmt: skip
        return
    while len(journal.read_text().splitlines()) < 5 and time.monotonic() < began + LONG:
        time.sleep(1e-3)
    print(f"Touch, SIGKILL: disabled after {1e3 * (time.monotonic() - began):.0f} ms")
    *before, init, off, disable = journal.read_text().splitlines()
    assert before == own
    guardian = init.split()[0]
    assert guardian != str(program.pid)
    assert [init, off, disable] == [f"{guardian} {event}" for event in ("init", "force off", "disable")]


HUNG = """
import ctypes, os, signal, sys, threading
from palpo.haptics.backends.openhaptics import OpenHapticsDevice
from palpo.haptics.backends.openhaptics_thread import TouchThread
from tests.libhd.bench import touch_wall, wait
from tests.libhd.stand_in import fresh_stand_in

stand_in = fresh_stand_in()
wall = touch_wall()
with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
    wait(wall.servo, 100)
    print("running", flush=True)
    if sys.stdin.readline() == "hang":
        # the device's thread, in a callback that does not return, and every thread of Python's
        stand_in.library.standin_hang(0)
        lock, mutex = ctypes.PyDLL(None).pthread_mutex_lock, (ctypes.c_char * 256)()
        lock(mutex)
        lock(mutex)
    sys.stdin.read()
"""


def events(journal, n):
    """The first n events as (process, event), once they are there."""
    end = time.monotonic() + LONG
    while len(lines := journal.read_text().splitlines()) < n and time.monotonic() < end:
        time.sleep(0.01)
    return [(int(process), event) for process, _, event in (line.partition(" ") for line in lines)]


@contextmanager
def held_device(tmp_path, exclusive):
    """A program that holds the stand-in's device, and the journal of what is done to that."""
    fresh_stand_in().disconnect()
    build(SOURCE, NAME, tmp_path)
    journal = tmp_path / "journal"
    places = {"LD_LIBRARY_PATH": str(tmp_path), "STANDIN_JOURNAL": str(journal)}
    places |= {"STANDIN_EXCLUSIVE": str(tmp_path / "taken")} if exclusive else {}
    with subprocess.Popen(
        [sys.executable, "-c", HUNG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | places,
    ) as program:  # fmt: skip
        try:
            assert program.stdout.readline() == "running\n"
            yield program, journal
        finally:
            program.kill()


TAKEN = ["init", "force off", "disable"]


def test_a_stopped_program_s_device_is_disabled_and_the_program_left(tmp_path):
    with held_device(tmp_path, exclusive=False) as (program, journal):
        program.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        _, _, *taken = events(journal, 5)
        print(f"Touch, SIGSTOP: disabled after {1e3 * (time.monotonic() - began):.0f} ms")
        assert program.poll() is None
        assert [event for _, event in taken] == TAKEN
        assert {process for process, _ in taken} != {program.pid}


@pytest.mark.parametrize("how", ["stop", "hang"])
def test_a_program_that_hangs_and_keeps_its_device_is_ended_and_the_device_disabled(tmp_path, how):
    with held_device(tmp_path, exclusive=True) as (program, journal):
        if how == "stop":
            program.send_signal(signal.SIGSTOP)
        else:
            program.stdin.write("hang")
            program.stdin.close()
        assert program.wait(LONG) == -signal.SIGKILL
        own, taken = events(journal, 5)[:2], events(journal, 5)[2:]
        assert own == [(program.pid, "init"), (program.pid, "force on")]
        assert [event for _, event in taken] == TAKEN


def test_a_program_that_was_stopped_for_a_moment_keeps_its_device(tmp_path):
    with held_device(tmp_path, exclusive=False) as (program, journal):
        for _ in range(5):
            program.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            program.send_signal(signal.SIGCONT)
            time.sleep(0.2)
        program.stdin.write("\n")
        program.stdin.close()
        assert program.wait(LONG) == 0
        own = ["init", "force on", "force off", "disable"]
        assert events(journal, 4) == [(program.pid, event) for event in own]


# ---- Windows


def test_the_folders_of_hd_dll_are_those_that_hold_it(tmp_path):
    there, sdk = tmp_path / "there", tmp_path / "sdk"
    for folder in (there, tmp_path / "empty", sdk / "lib" / "x64"):
        folder.mkdir(parents=True)
    for folder in (there, sdk / "lib" / "x64"):
        (folder / "HD.dll").touch()
    path = os.pathsep.join(map(str, (tmp_path / "empty", there, tmp_path / "missing", there)))
    found = library_folders({"PATH": path, "OH_SDK_BASE": str(sdk)})
    assert found == [there, sdk / "lib" / "x64"]
    assert library_folders({}) == []
    added = []
    let_find(found, added.append)
    # os.add_dll_directory takes absolute paths only
    assert added == [str(folder.resolve()) for folder in found]
