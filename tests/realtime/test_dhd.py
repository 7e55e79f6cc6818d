"""Laws of Force Dimension devices and the Falcon: axes, forces and torques tick for tick, and every fault."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.app.devices.table import choose
from palpo.app.report.outcome import FAILED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.haptics.backends import dhd
from palpo.haptics.backends.dhd import DhdDevice, DhdThread, find
from palpo.haptics.backends.dhd_library import DhdLibrary, candidates, load, spec_of
from palpo.haptics.backends.dhd_tick import convert_pose, dhd_data, dhd_read, dhd_write, make_dhd_tick
from palpo.haptics.control import finished_reason, is_frozen, request_stop, tick_count
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.guard import Motors
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.row import NAMES
from palpo.haptics.servo import Servo, poll_device
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.exchange.port import make_port
from tests.libdhd.stand_in import FALCON, READING, SIGMA, fresh_stand_in
from tests.libhd.bench import SENT, external, recorded_device, repeat, wait
from tests.realtime.busy import busy_python
from tests.realtime.drawn_poses import quaternions, unit
from tests.servo.wall import make_wall

ROUNDING = 1e-14
STIFFNESS, DEPTH = 300.0, 5e-3
PRESSED, FADE = STIFFNESS * DEPTH, 50
AXES = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
"""Servo's axes from libdhd's: x toward the user, y right, z up become x right, y up, z toward the user."""
TURNED = [NAMES.index(f"sent_torque_{axis}") for axis in "xyz"]


@pytest.fixture
def stand_in():
    made = fresh_stand_in()
    yield made
    made.disconnect()


def readings(positions, rotation=None, buttons=0):
    """A script of poses at positions (n, 3) [m] of the servo's axes, at rest."""
    table = np.zeros((len(positions), READING))
    table[:, :3] = np.asarray(positions) @ AXES
    table[:, 3:12] = (AXES.T @ (np.eye(3) if rotation is None else rotation) @ AXES).ravel()
    table[:, 15] = buttons
    return table


def press():
    """From 1 mm before the wall to DEPTH in it within 200 ticks."""
    x = np.concatenate([np.linspace(-1e-3, DEPTH, 200), np.full(1, DEPTH)])
    return readings(np.column_stack([x, 0.0 * x, 0.0 * x]))


def wall_of(limits=None, **options):
    return make_wall(external(), STIFFNESS, limits=limits or make_limits(12.0, fades=AT_ONCE), **options)


def until(thread, condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end and thread.running, thread.reason
        thread.events()
        time.sleep(1e-3)


# ---- axes


@given(quaternions, st.tuples(unit, unit, unit).map(np.array))
def test_a_point_of_the_tool_is_where_the_device_has_it(q, point):
    """Any point on the turned and moved end, in the servo's axes and in libdhd's, is the same point."""
    rotation, position = quaternion_matrix(q), np.array([0.01, -0.02, 0.03])
    port = make_port()
    pose = np.concatenate([position, rotation.ravel()])
    assert convert_pose(pose, np.array([0.1, 0.2, 0.3]), np.zeros(16), port)
    theirs = AXES @ (rotation @ point + position)
    ours = quaternion_matrix(port.orientation) @ (AXES @ point) + port.position
    assert ours == pytest.approx(theirs, abs=1e-14)
    assert port.velocity == pytest.approx([0.2, 0.3, 0.1], rel=1e-15)


@pytest.mark.parametrize("spoil", [(0, np.nan), (5, np.inf), (slice(3, 12), 0.0)])
def test_a_reading_that_is_none_leaves_the_port_as_it_was(spoil):
    port = make_port()
    pose = np.concatenate([[0.01, 0.0, 0.0], np.eye(3).ravel()])
    pose[spoil[0]] = spoil[1]
    assert not convert_pose(pose, np.zeros(3), np.zeros(16), port)
    assert not port.position.any() and port.orientation.tolist() == [1.0, 0.0, 0.0, 0.0]


# ---- what it is


def test_the_watchdog_is_set_by_expert_calls_read_back_and_told(stand_in):
    """The library refuses them unless they are enabled, which they are for nothing else."""
    with DhdDevice() as device:
        assert device.watchdog == 0.02 and stand_in.watchdog(SIGMA) == 160
        assert not stand_in.expert()
        assert device.library.call.dhdSetWatchdog(0, device.id) < 0, "as the maker's does"
        assert stand_in.watchdog(SIGMA) == 160
    stand_in.unwatched(SIGMA, 1)
    with DhdDevice() as without:
        assert without.watchdog == 0.0 and "no watchdog" in without.watched
        assert not stand_in.expert()


def test_the_motors_of_a_program_that_is_stuck_are_limp_after_the_watchdog_s_time(stand_in):
    stand_in.script(SIGMA, press())
    stand_in.block(SIGMA, 600, 300)
    wall = wall_of()
    with DhdDevice() as device:
        thread = DhdThread(wall.servo, device).start()
        until(thread, lambda: tick_count(wall.servo) >= 599)
        assert stand_in.motors(SIGMA) == pytest.approx(PRESSED, rel=0.05)
        began = time.monotonic()
        while stand_in.motors(SIGMA) > 0.0:
            assert time.monotonic() < began + 0.15, "the last force stays"
        print(f"Force Dimension, stuck: no force after {1e3 * (time.monotonic() - began):.0f} ms")
        thread.stop()
        thread.join(20.0)


def test_devices_are_found_by_serial_number_or_name_and_closed_again(stand_in):
    with DhdDevice() as first, DhdDevice("77") as second:
        assert (first.title, second.title) == ("sigma.7 1234", "Falcon 77")
        assert (first.spec().max_force, first.spec().max_torque) == (20.0, 0.4)
        assert (second.spec().max_force, second.spec().max_torque) == (8.0, 0.0)
        assert stand_in.gravity(SIGMA) and stand_in.watchdog(SIGMA) == 160
        assert stand_in.force(SIGMA) and stand_in.force(FALCON)
    with DhdDevice("falcon") as named:
        assert named.serial == 77
    assert not stand_in.open(SIGMA) and not stand_in.open(FALCON)
    assert not stand_in.force(SIGMA) and not stand_in.force(FALCON)
    watched = "its watchdog takes the force after 20 ms of silence"
    assert find() == (True, f"ready: sigma.7 1234, 20 N, 0.4 N m, {watched}")
    assert stand_in.illegal() == 0


def test_a_device_that_there_is_not_is_refused_by_what_there_is(stand_in):
    with pytest.raises(HapticsError, match=r"no device 99; there is sigma\.7 1234, Falcon 77"):
        DhdDevice("99")
    stand_in.disconnect()
    assert find() == (False, "no Force Dimension device or Falcon; check cable and power")
    assert not choose(Options("probe", lock_step=True)).hardware


def test_a_model_without_figures_gets_careful_ones():
    assert spec_of("something new", False).max_force == 8.0
    assert spec_of("omega.7", False).max_torque == 0.0 < spec_of("delta.6", True).max_torque


def test_a_device_that_is_not_calibrated_is_told_and_waited_for_without_force(stand_in):
    stand_in.uncalibrated(FALCON, 20)
    told = []
    with DhdDevice("77", 20.0, told.append):
        assert len(stand_in.sent(FALCON)) == 0
    assert "push its grip all the way in" in told[0] and told[-1] == ""
    stand_in.uncalibrated(FALCON, 1 << 40)
    with pytest.raises(HapticsError, match="is not calibrated"):
        DhdDevice("77", 0.1)
    with pytest.raises(HapticsError, match="is not calibrated"):
        DhdDevice("77", 1e9, told.append, lambda: True)
    assert not stand_in.open(FALCON)


def test_a_device_with_motors_finds_its_origin_by_itself_once_that_was_said(stand_in, monkeypatch):
    monkeypatch.setattr(dhd, "NOTICE", 0.1)
    stand_in.drives(SIGMA, 1)
    stand_in.uncalibrated(SIGMA, 1 << 40)
    # nobody was told: it does not move
    with pytest.raises(HapticsError, match="is not calibrated"):
        DhdDevice("1234", 0.05)
    assert stand_in.found(SIGMA) == 0
    # whoever gives up meanwhile stops it
    with pytest.raises(HapticsError, match="is not calibrated"):
        DhdDevice("1234", 20.0, str, lambda: True)
    assert stand_in.found(SIGMA) == 0
    told = []
    with DhdDevice("1234", 20.0, told.append) as device:
        assert device.serial == 1234 and "keep your hands off" in told[0]
    assert stand_in.found(SIGMA) == 1 and not stand_in.open(SIGMA) and stand_in.illegal() == 0


# ---- the servo that polls it


def test_forces_and_torques_are_the_lock_step_servo_s_tick_for_tick_beside_a_busy_thread(
    stand_in,
):
    """Nothing of a tick is Python's: a thread that never lets go of the interpreter burns beside it."""
    stand_in.hand(SIGMA, 0.008, 2.0)
    limits = make_limits(20.0, motors=Motors(0.4))
    wall = wall_of(limits)
    wall.port.torque[:] = [0.02, -0.05, 0.01]
    with busy_python(), DhdDevice() as device, DhdThread(wall.servo, device) as thread:
        wait(wall.servo, 1200)
    rows, sent = drain_rows(wall.servo), stand_in.sent(SIGMA)
    assert thread.reason == "stop requested" and len(rows) == len(sent)
    reference = wall_of(limits)
    reference.port.torque[:] = [0.02, -0.05, 0.01]
    reference = Servo(reference.servo.state._replace(device=recorded_device(rows)))
    repeat(reference, rows)
    lock_step = drain_rows(reference)
    assert np.abs(sent[:, :3]).max() > 1.0 and np.abs(sent[:, 3:]).max() == pytest.approx(0.05, rel=1e-6)
    assert sent[:, :3] @ AXES.T == pytest.approx(lock_step[:, SENT], abs=ROUNDING)
    assert sent[:, 3:] @ AXES.T == pytest.approx(lock_step[:, TURNED], abs=ROUNDING)
    assert not sent[-1].any() and not stand_in.force(SIGMA) and stand_in.illegal() == 0


def test_without_a_clock_the_same_functions_give_the_same_forces_each_time(stand_in):
    found = []
    for _ in range(2):
        stand_in.reset()
        stand_in.hand(SIGMA, 0.008, 2.0)
        wall = wall_of()
        with DhdDevice() as device:
            tick = make_dhd_tick(wall.servo, [device.library.address(n) for n in dhd_names()], device.id)
            data = dhd_data(tick)
            poll_device(wall.servo, dhd_read.address, dhd_write.address, data.address)
            servo_run(wall.servo, 1000)
        found.append(stand_in.sent(SIGMA))
    assert len(found[0]) == 1000 and np.abs(found[0]).max() > 1.0
    # its spin, which the wall does not feel, is by the clock
    assert (found[0] == found[1]).all()


def dhd_names():
    from palpo.haptics.backends.dhd_tick import FUNCTIONS

    return FUNCTIONS


def test_a_falcon_whose_wrist_has_no_motors_is_sent_no_torque(stand_in):
    stand_in.script(FALCON, press())
    with DhdDevice("77") as device:
        wall = wall_of(make_limits(8.0, fades=AT_ONCE, motors=Motors(device.spec().max_torque)))
        wall.port.torque[:] = [0.1, 0.2, 0.3]
        with DhdThread(wall.servo, device):
            wait(wall.servo, 300)
    # the stand-in counts a torque on such a device as misuse
    assert stand_in.illegal() == 0
    assert stand_in.sent(FALCON)[250] == pytest.approx([0.0, -PRESSED, 0.0, 0.0, 0.0, 0.0], abs=1e-12)


def test_two_different_devices_each_feel_their_own_wall(stand_in):
    stand_in.script(SIGMA, press())
    stand_in.script(FALCON, press() * 0.5 + readings([[0.0, 0.0, 0.0]]) * 0.5)
    walls = wall_of(), wall_of()
    with (
        DhdDevice() as a, DhdDevice("77") as b,
        DhdThread(walls[0].servo, a), DhdThread(walls[1].servo, b),
    ):  # fmt: skip
        wait(walls[0].servo, 300)
        wait(walls[1].servo, 300)
    assert stand_in.sent(SIGMA)[250, 1] == pytest.approx(-PRESSED, abs=1e-12)
    assert stand_in.sent(FALCON)[250, 1] == pytest.approx(-0.5 * PRESSED, abs=1e-12)


def test_its_buttons_are_the_servo_s(stand_in):
    stand_in.script(FALCON, readings([[0.0, 0.0, 0.0]], buttons=5))
    wall = wall_of(make_limits(8.0, fades=AT_ONCE))
    with DhdDevice("77") as device, DhdThread(wall.servo, device):
        wait(wall.servo, 50)
    assert (drain_rows(wall.servo)[:, NAMES.index("buttons")] == 5).all()


# ---- faults


def ended(wall, device):
    thread = DhdThread(wall.servo, device).start()
    assert thread.join(20.0)
    return thread


def test_a_device_that_is_unplugged_ends_the_run_with_a_fade_and_a_sentence(stand_in):
    stand_in.script(SIGMA, press())
    stand_in.unplug(SIGMA, 400)
    wall = wall_of()
    with DhdDevice() as device:
        thread = ended(wall, device)
    assert thread.reason == "sigma.7 1234 was lost; check its cable and power (communication error)"
    sent = drain_rows(wall.servo)[:, SENT]
    first = len(sent) - FADE
    assert sent[first - 50 : first, 0] == pytest.approx(-PRESSED, abs=1e-12)
    assert sent[first:, 0] == pytest.approx(-PRESSED * (1.0 - np.arange(1, FADE + 1) / FADE), abs=1e-12)


def test_a_call_that_fails_now_and_then_is_told_and_the_run_goes_on(stand_in):
    stand_in.script(SIGMA, press())
    stand_in.deaf(SIGMA, 300, 302)
    wall = wall_of()
    with DhdDevice() as device, DhdThread(wall.servo, device) as thread:
        wait(wall.servo, 400)
        assert thread.running
        assert any("did not answer" in words for words in thread.events())
    assert drain_rows(wall.servo)[380, SENT] == pytest.approx([-PRESSED, 0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(("cause", "words"), [(1, "press it to feel"), (6, "hold it to feel")])
def test_a_force_that_the_operator_switched_off_fades_and_comes_back_with_the_button(stand_in, cause, words):
    stand_in.script(SIGMA, press())
    stand_in.off(SIGMA, cause, 400, 900)
    wall, told = wall_of(), []
    with DhdDevice() as device, DhdThread(wall.servo, device, told.append) as thread:
        until(thread, lambda: is_frozen(wall.servo))
        assert words in thread.state
        until(thread, lambda: thread.state == "" and not is_frozen(wall.servo))
        wait(wall.servo, tick_count(wall.servo) + 300)
        thread.events()
    sent = stand_in.sent(SIGMA)[:, 1]
    back = int(np.argmax(np.abs(sent[900:]) > 0.0)) + 900
    assert not sent[600:back].any(), "no force is sent while it is off"
    assert np.abs(np.diff(sent[back - 1 :])).max() <= PRESSED / 50 * (1 + 1e-9), "and none comes at once"
    assert any(words in said for said in told) and told[-1] == ""


def test_a_force_that_the_device_took_for_speed_is_switched_on_again_at_zero(stand_in):
    stand_in.script(SIGMA, press())
    stand_in.off(SIGMA, 2, 400, 0)
    wall = wall_of()
    with DhdDevice() as device, DhdThread(wall.servo, device) as thread:
        until(thread, lambda: is_frozen(wall.servo))
        until(thread, lambda: not is_frozen(wall.servo))
        wait(wall.servo, tick_count(wall.servo) + 300)
        assert thread.running and thread.state == ""
    sent = stand_in.sent(SIGMA)[:, 1]
    assert sent[-60] == pytest.approx(-PRESSED, abs=1e-12)
    assert np.abs(np.diff(sent[210:])).max() <= PRESSED / 50 * (1 + 1e-9)


def test_saturated_motors_are_told_and_counted(stand_in):
    stand_in.script(SIGMA, press())
    stand_in.saturate(SIGMA, 1.0)
    wall, heard = wall_of(), 0
    with DhdDevice() as device, DhdThread(wall.servo, device) as thread:
        wait(wall.servo, 300)
        heard = sum(thread.events().values())
    assert heard >= 100


def test_a_library_that_does_not_return_is_left_and_told(stand_in):
    stand_in.block(SIGMA, 300, 900)
    wall = wall_of()
    with DhdDevice() as device:
        thread = DhdThread(wall.servo, device).start()
        while thread.running:
            time.sleep(1e-3)
        assert thread.reason == "the device has not answered for 0.25 s: the force is not known, let go of it"
        begun = time.monotonic()
        thread.stop()
        assert thread.join(5.0) and time.monotonic() - begun < 1.0
        time.sleep(1.0)  # the call returns, and the thread must find its data
    assert finished_reason(wall.servo) != 0


def test_a_whole_run_whose_device_is_unplugged_ends_in_the_device_s_own_words(stand_in):
    stand_in.unplug(SIGMA, 600)
    done = run(Options("probe", device="forcedimension", baseline=False, duration=30.0))
    assert done.status == FAILED
    assert done.result["exit_reason"].startswith("the servo stopped: sigma.7 1234 was lost")


# ---- the library


def test_a_library_of_another_kind_is_refused_by_the_function_that_it_lacks():
    import ctypes

    with pytest.raises(HapticsError, match="libdhd lacks dhdGetDeviceCount"):
        DhdLibrary(ctypes.CDLL("libm.so.6"))


def test_the_sdk_s_folder_is_looked_into_first(tmp_path):
    place = tmp_path / "lib" / "release" / "lin-x86_64-gcc"
    place.mkdir(parents=True)
    for name in ("libdhd.so.3.17.6", "libdrd.so.3.17.6"):
        (place / name).touch()
    found = candidates({"FORCEDIM_SDK": str(tmp_path)}, "linux")
    assert found[:2] == [str(place / "libdrd.so.3.17.6"), str(place / "libdhd.so.3.17.6")]
    assert candidates({}, "win32")[-2:] == ["drd64.dll", "dhd64.dll"]


def test_without_the_library_it_is_one_sentence(tmp_path):
    code = (
        "from palpo.haptics.backends import dhd_library as d\n"
        "d.candidates = lambda *_: ['libnone.so']\n"
        "try:\n    d.load()\nexcept Exception as why:\n    print(why)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.startswith("libdhd was not found; install") and done.stdout.count("\n") == 1


def test_the_functions_are_laid_out_for_every_servo(stand_in):
    with DhdDevice(), pytest.raises(TypeError, match="laid out"):
        dhd_data((1, 2))
    assert load() is load()
    wall = wall_of()
    request_stop(wall.servo)
