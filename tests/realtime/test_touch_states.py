"""A Touch in each state that a real one comes in: no force where none may be, and a sentence why."""

import time
from dataclasses import replace

import numpy as np
import pytest

from palpo.app.devices import touch as touch_device
from palpo.app.devices.table import choose
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.haptics.backends import openhaptics_prepare
from palpo.haptics.backends.guardian import Guardian
from palpo.haptics.backends.openhaptics import OpenHapticsDevice, find
from palpo.haptics.backends.openhaptics_library import load
from palpo.haptics.backends.openhaptics_thread import TouchThread
from palpo.haptics.control import is_frozen, tick_count
from palpo.haptics.device import EXTERNAL, make_virtual_device
from palpo.haptics.device_spec import PHANTOM_DESKTOP, TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.errors import HapticsError
from palpo.haptics.guard import Motors
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.row import NAMES
from palpo.haptics.servo import Servo
from palpo.haptics.workspace import quaternion_from_axis_angle
from tests.libhd.bench import (
    DEPTH,
    SENT,
    STIFFNESS,
    press,
    readings,
    recorded_device,
    touch_wall,
    transform,
    wait,
)
from tests.libhd.stand_in import DEFAULT, LEFT, READING, fresh_stand_in
from tests.libhd.stand_in import NAMES as DEVICES

PRESSED = STIFFNESS * DEPTH
MANUAL, NEEDS_UPDATE, OK = 0x5002, 0x5001, 0x5000
AUTO, INKWELL = 2, 4
SAFETY_SWITCH, VELOCITY, ANGULAR, CLAMPING = 0x2001, 0x2051, 0x2053, 0x4001


@pytest.fixture
def stand_in():
    made = fresh_stand_in()
    made.script(DEFAULT, press())
    yield made
    made.disconnect()


def until(thread, condition, seconds=20.0):
    """Until a condition holds, hearing what the device says meanwhile."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        assert thread.running, thread.reason
        thread.events()
        time.sleep(1e-3)


def never_jumps(forces, recovery=250):
    """Whether the force changes by no more than a fade or a recovery moves it."""
    # a press at 30 mm/s on the wall, the fade of 50 ticks, and nothing else
    most = max(PRESSED / 50, STIFFNESS * 6e-3 / 199) * (1.0 + 1e-9)
    return np.abs(np.diff(forces[:, 0], prepend=0.0)).max() <= most


# ---- before a run: calibration on a running scheduler, without force


def test_a_device_that_is_not_calibrated_until_its_scheduler_runs_is_opened(stand_in):
    stand_in.ready_after(DEFAULT, 40)
    with OpenHapticsDevice() as device:
        assert device.identity.model == "Touch"
    assert len(stand_in.forces(DEFAULT)) == 0, "no frame was made with the force on"
    assert (stand_in.counts["illegal"], stand_in.running()) == (0, 0)


def test_the_inkwell_is_a_step_that_is_told_and_waited_for(stand_in):
    stand_in.calibration(DEFAULT, MANUAL, INKWELL)
    told = []

    def tell(words):
        told.append(words)
        if words:
            stand_in.inkwell(DEFAULT)

    with OpenHapticsDevice(patience=20.0, tell=tell):
        assert stand_in.updates(DEFAULT) == 1
    assert "put the stylus into the inkwell until its light is steady" in told[0] and told[-1] == ""
    assert stand_in.counts["illegal"] == 0 and not stand_in.output(DEFAULT)


def test_whoever_gives_up_waiting_is_not_kept(stand_in):
    stand_in.calibration(DEFAULT, MANUAL, INKWELL)
    told = []
    with pytest.raises(HapticsError, match="not calibrated: put the stylus into the inkwell"):
        OpenHapticsDevice(patience=1e9, tell=told.append, given_up=lambda: bool(told))
    assert not stand_in.initialised(DEFAULT) and not stand_in.running()


def test_the_device_of_a_run_shows_its_step_as_state(stand_in, monkeypatch):
    stand_in.calibration(DEFAULT, MANUAL, INKWELL)
    device, heard = choose(Options("probe", device="touch")), []

    def hear(words):
        heard.append(device.state)
        stand_in.inkwell(DEFAULT)

    device.heard = hear
    session = Session(Options("probe", device="touch"))
    with session._open as stack:
        device.open(session.spec, stack)
    assert heard == ["the default device wants to be calibrated: put the stylus into the inkwell until its "
                     "light is steady"] and device.state == ""  # fmt: skip


# ---- in mid-run


def test_a_calibration_that_wants_an_update_in_mid_run_gets_it_at_zero_force_and_nothing_jumps(stand_in):
    stand_in.drift(DEFAULT, 300, 0.0, 30.0, 0.0)
    wall = touch_wall()
    said = []
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device, said.append) as thread:
        until(thread, lambda: stand_in.updates(DEFAULT) == 1)
        until(thread, lambda: not is_frozen(wall.servo))
        wait(wall.servo, tick_count(wall.servo) + 400)
        thread.events()
        assert thread.running and thread.state == ""
    rows, forces = drain_rows(wall.servo), stand_in.forces(DEFAULT)
    # the stand-in refuses an update that comes under force or within a frame
    assert stand_in.counts["illegal"] == 0 and thread.reason == "stop requested"
    assert never_jumps(forces)
    assert rows[-60, SENT] == pytest.approx([-PRESSED, 0.0, 0.0], abs=1e-12), "the force has come back"
    # the origin moved by 30 mm, the hand in the scene did not
    assert np.abs(np.diff(rows[:, NAMES.index("py")])).max() < 1e-12
    assert np.ptp(rows[:, NAMES.index("device_py")]) == pytest.approx(0.03)
    assert any("updates its calibration" in words for words in said) and said[-1] == ""


def test_a_run_with_an_update_of_the_calibration_is_repeated_bit_for_bit(stand_in):
    from palpo.haptics.control import grant_ticks, request_pause
    from palpo.haptics.drivers import servo_run
    from palpo.haptics.flags import PAUSING

    stand_in.drift(DEFAULT, 300, 0.0, 30.0, 0.0)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        until(thread, lambda: stand_in.updates(DEFAULT) == 1 and not is_frozen(wall.servo))
        wait(wall.servo, tick_count(wall.servo) + 300)
    rows = drain_rows(wall.servo)
    again = touch_wall()
    again = Servo(again.servo.state._replace(device=recorded_device(rows)))
    pausing = rows[:, NAMES.index("flags")].astype(int) & PAUSING > 0
    assert pausing.sum() == 50
    for k in range(len(rows) - 50):
        request_pause(again, bool(pausing[k]))
        if pausing[k]:
            grant_ticks(again, 1)
        servo_run(again, 1)
    lock_step = drain_rows(again)
    assert (lock_step[:, SENT] == rows[: len(lock_step), SENT]).all() and len(lock_step) == len(rows) - 50


def test_a_safety_switch_that_opens_fades_the_force_and_says_so(stand_in):
    stand_in.switch(DEFAULT, 100, 400, 700)
    wall = touch_wall()
    said = []
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device, said.append) as thread:
        assert device.has[0]
        until(thread, lambda: thread.state != "")
        assert thread.state == "the safety switch of the stylus is open: hold it to feel"
        until(thread, lambda: thread.state == "")
        wait(wall.servo, tick_count(wall.servo) + 300)
        assert thread.running
    forces = stand_in.forces(DEFAULT)
    assert (forces[400:700] == 0.0).all(), "its own electronics take the force at once"
    assert never_jumps(forces[700:]), "it comes back by and by"
    assert forces[-60] == pytest.approx([-PRESSED, 0.0, 0.0], abs=1e-12)


def test_a_switch_that_is_never_closed_is_taken_for_none(stand_in):
    far = 1 << 40
    stand_in.switch(DEFAULT, far, far, far)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 300)
        assert thread.state == ""
    assert drain_rows(wall.servo)[250, SENT] == pytest.approx([-PRESSED, 0.0, 0.0], abs=1e-12)


def test_a_driver_that_cuts_the_force_of_a_fast_stylus_is_answered_by_a_fade_and_a_slow_return(stand_in):
    script = np.vstack([press(), np.repeat(press()[-1:], 200, axis=0)])
    script[300, 16] = 900.0
    script = np.vstack([script, script[-1:]])
    stand_in.script(DEFAULT, script)
    stand_in.velocity_limit(DEFAULT, 800.0)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        until(thread, lambda: thread.state != "")
        assert "took the force" in thread.state
        until(thread, lambda: thread.state == "" and not is_frozen(wall.servo))
        wait(wall.servo, tick_count(wall.servo) + 300)
        assert thread.running
    forces = stand_in.forces(DEFAULT)
    off = int(np.argmax(forces[300:, 0] == 0.0)) + 300
    assert off == 300 and never_jumps(forces[off:])
    assert forces[-100] == pytest.approx([-PRESSED, 0.0, 0.0], abs=1e-12)
    assert stand_in.counts["illegal"] == 0


def test_a_force_that_the_device_fails_to_give_fades_and_comes_back(stand_in):
    stand_in.script(DEFAULT, press())
    stand_in.fault(DEFAULT, 0x0204, 400, 420)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        heard = {}
        end = time.monotonic() + 20.0
        while tick_count(wall.servo) < 1200:
            assert time.monotonic() < end and thread.running, thread.reason
            heard |= thread.events()
            time.sleep(1e-3)
    assert any("HD_FORCE_ERROR" in words for words in heard)
    forces = stand_in.forces(DEFAULT)
    # held from the first error on, faded within 50 ticks and a few to hear of it, back once it is over
    pressed, off = forces[300:380, 0], np.flatnonzero(forces[300:1200, 0] == 0.0) + 300
    assert pressed == pytest.approx(-PRESSED) and 400 < off[0] < 460 and off[-1] < 480
    assert never_jumps(forces) and forces[-100, 0] == pytest.approx(-PRESSED)
    assert stand_in.counts["illegal"] == 0


def test_a_force_that_it_never_gives_again_stays_off(stand_in):
    stand_in.script(DEFAULT, press())
    stand_in.fault(DEFAULT, 0x0204, 400, 10**9)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        until(thread, lambda: tick_count(wall.servo) > 440 and thread.state != "")
        for _ in range(300):
            time.sleep(1e-3)
            thread.events()
    forces = np.abs(stand_in.forces(DEFAULT)[460:, 0])
    # between two errors it is let on for the tick in which the error is not known yet
    assert len(forces) and forces.max() <= 2.0 * PRESSED / 250


# ---- what drivers call it, and the rates that they have


@pytest.mark.parametrize("name", [b"Default PHANToM", b"Default Device"])
def test_a_driver_that_knows_no_default_device_is_asked_by_the_names_of_all_generations(stand_in, name):
    stand_in.named(DEFAULT, name)
    with OpenHapticsDevice() as device:
        assert device.answers_to == name.decode() and device.identity.model == "Touch"
        assert Guardian(device.answers_to)._name == name.decode()
    assert find().ok


def test_a_default_device_in_use_is_not_replaced_by_another_that_a_default_name_means(stand_in):
    stand_in.named(LEFT, b"Default PHANToM")
    library = load()
    taken = library.hd.hdInitDevice(None)
    with pytest.raises(HapticsError, match="the device is in use already"):
        OpenHapticsDevice()
    assert not stand_in.initialised(LEFT)
    library.hd.hdDisableDevice(taken)


def test_where_nothing_is_connected_the_sentence_is_that_of_the_default_device(stand_in):
    stand_in.connect(DEFAULT, 0)
    with pytest.raises(HapticsError, match=r"the default device cannot be opened: .*HD_COMM_CONFIG_ERROR"):
        OpenHapticsDevice()


def test_a_scheduler_whose_rate_nobody_may_set_is_used_as_it_is(stand_in):
    stand_in.fixed_rate(1000)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device):
        wait(wall.servo, 300)
    assert stand_in.forces(DEFAULT)[280, 0] == pytest.approx(-PRESSED) and stand_in.counts["illegal"] == 0


def test_one_of_another_rate_is_refused_in_words(stand_in):
    stand_in.fixed_rate(500)
    wall = touch_wall()
    with (
        OpenHapticsDevice() as device,
        pytest.raises(HapticsError, match="does not run at 1000 Hz but at 500"),
        TouchThread(wall.servo, device),
    ):
        pass
    assert not stand_in.running()


@pytest.mark.parametrize("temperature", [0.5, 0.9, 1.0, 35.0])
def test_motors_that_report_their_heat_take_the_force_back_to_the_lasting_one(stand_in, temperature):
    stand_in.motors(DEFAULT, temperature, 0.0)
    wall = touch_wall(make_limits(1.5, max_rate=1e9, fades=AT_ONCE, ceiling=3.3))
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device):
        assert device.has[1]
        wait(wall.servo, 500)
    rows = drain_rows(wall.servo)
    # degrees are no share of the largest temperature
    share = {0.5: 0.0, 0.9: 0.5, 1.0: 1.0, 35.0: 0.0}[temperature]
    allowed = 3.3 - share * (3.3 - 0.88)
    assert np.linalg.norm(rows[450, SENT]) == pytest.approx(min(PRESSED, allowed), rel=1e-6)
    assert rows[450, NAMES.index("allowance")] == pytest.approx(allowed / 3.3)


def test_a_touch_gives_its_full_force_for_seconds_and_its_lasting_one_for_ever(stand_in):
    """The thermal budget of the device's own figures, with a time constant that a test can wait for."""
    stand_in.script(DEFAULT, readings([[0.02, 0.0, 0.0]]))
    with OpenHapticsDevice() as device:
        spec = device.spec()
        limits = make_limits(
            spec.max_force,
            fades=AT_ONCE,
            motors=Motors(continuous_force=spec.continuous_force, thermal_time=0.5),
        )
        wall = touch_wall(limits)
        with TouchThread(wall.servo, device):
            wait(wall.servo, 2500)
    force = np.linalg.norm(stand_in.forces(DEFAULT), axis=1)
    assert force.max() == pytest.approx(3.3) and force[2400] == pytest.approx(0.88, rel=0.02)
    # the windings' temperature of what the device really got never exceeds the lasting one
    heat = 0.0
    for f in force:
        heat += 2e-3 * ((f / 0.88) ** 2 - heat)
        assert heat <= 1.0 + 1e-9


# ---- what a device may lack


@pytest.mark.parametrize("name", [SAFETY_SWITCH, ANGULAR, CLAMPING, VELOCITY])
def test_a_property_that_a_device_does_not_know_ends_no_run(stand_in, name):
    stand_in.refuse(DEFAULT, name)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 300)
        assert thread.running and thread.reason == "running"
    assert drain_rows(wall.servo)[250, SENT] == pytest.approx([-PRESSED, 0.0, 0.0], abs=1e-12)


def test_the_driver_is_asked_to_clamp_what_exceeds_its_force(stand_in):
    with OpenHapticsDevice():
        assert stand_in.clamping(DEFAULT)


def test_the_soft_edge_lies_where_each_device_says_that_its_reach_ends(stand_in):
    with OpenHapticsDevice(DEVICES[LEFT]) as desktop:
        reach = desktop.spec().reach
    assert PHANTOM_DESKTOP.reach[0][0] == -np.inf
    assert np.array(reach) == pytest.approx(np.array([[-0.2, -0.15, -0.1], [0.2, 0.25, 0.15]]))


def test_the_angular_velocity_is_that_of_the_poses(stand_in):
    """A stylus that turns evenly, with a driver that reports no angular velocity at all."""
    rate, axis = 2.0, np.array([0.6, 0.0, 0.8])
    script = np.zeros((1000, READING))
    for k in range(len(script)):
        script[k, :16] = transform([-0.01, 0.0, 0.0], quaternion_from_axis_angle(axis, rate * 1e-3 * k))
    stand_in.script(DEFAULT, script)
    wall = touch_wall()
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL, velocity_cutoff_hz=30.0)
    wall.servo = Servo(wall.servo.state._replace(device=device))
    with OpenHapticsDevice() as opened, TouchThread(wall.servo, opened):
        wait(wall.servo, 900)
    rows = drain_rows(wall.servo)
    spins = rows[100:900, [NAMES.index(f"device_w{a}") for a in "xyz"]]
    # a script's poses are a frame apart, the scheduler's ticks nearly so: the mean is that of the angle gone
    turned = rate * 1e-3 * 800 / (rows[900, NAMES.index("late_us")] * 0 + 0.8)
    assert np.median(spins, axis=0) == pytest.approx(turned * axis, rel=0.05)


# ---- bus and poses


def test_a_slow_bus_is_told_and_the_run_goes_on(stand_in):
    stand_in.bus(DEFAULT, 2500)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        said = {}
        end = time.monotonic() + 20.0
        while not any("is slow" in words for words in said) and time.monotonic() < end:
            said |= thread.events()
            time.sleep(0.01)
        assert thread.running
        spent = thread._tick.spent[0].copy()
    assert any("the bus of the default device is slow" in words for words in said)
    assert not any("calls late" in words for words in said)
    # a frame's begin takes what it was set to, and its end no time
    assert spent["bus"] >= 2_500_000 * spent["calls"] and spent["at_bus"] > 0


def test_a_late_call_is_not_taken_for_a_slow_bus_by_the_schedulers_own_time(stand_in):
    stand_in.held(2500)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        said = {}
        end = time.monotonic() + 20.0
        while not any("calls late" in words for words in said) and time.monotonic() < end:
            said |= thread.events()
            time.sleep(0.01)
        assert thread.running
        spent = thread._tick.spent[0].copy()
    assert not any("is slow" in words for words in said)
    # by the stand-in's own clock no call came before what holds it up had ended
    assert spent["call"] >= 2_500_000 * spent["calls"]
    # a busy machine may take the processor from bus and scene too, but not in every tick
    assert spent["at_call"] > spent["at_bus"] + spent["at_scene"]
    assert "called " in device.timing and "to late calls" in thread.scheduler


def test_a_bus_that_blocks_for_a_moment_is_told_and_goes_on_without_a_jump(stand_in):
    stand_in.block(DEFAULT, 300, 120)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        said = {}
        while tick_count(wall.servo) < 500:
            assert thread.running
            said |= thread.events()
            time.sleep(1e-3)
    assert any("does not call: the force is not known" in words for words in said)
    assert never_jumps(stand_in.forces(DEFAULT))


def test_calls_that_are_dropped_leave_no_jump_and_the_run_goes_on(stand_in):
    stand_in.drop(300, 360)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 500)
        assert thread.running
    assert never_jumps(stand_in.forces(DEFAULT)) and stand_in.counts["illegal"] == 0


def test_a_bus_that_blocks_for_good_ends_the_run_in_words(stand_in):
    stand_in.block(DEFAULT, 300, 700)
    wall = touch_wall()
    with OpenHapticsDevice() as device:
        thread = TouchThread(wall.servo, device).start()
        while thread.running:
            time.sleep(1e-3)
        assert "has not called for 0.25 s" in thread.reason
        time.sleep(0.6)
        assert thread.join(5.0)


def test_one_pose_of_a_glitch_is_not_felt(stand_in):
    script = np.vstack([press(), np.repeat(press()[-1:], 300, axis=0)])
    script[350, 12:15] = [90.0, 20.0, -40.0]
    stand_in.script(DEFAULT, script)
    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 480)
        assert thread.running
    forces = stand_in.forces(DEFAULT)
    assert forces[250:460] == pytest.approx(np.tile([-PRESSED, 0.0, 0.0], (210, 1)), abs=1e-12)


def test_opening_and_running_make_one_frame_of_a_device_in_each_tick(stand_in):
    """The stand-in refuses a second one, as HD_ONE_FRAME_LIMIT has it; two devices have one each."""
    walls = touch_wall(), touch_wall()
    with (
        OpenHapticsDevice() as a, OpenHapticsDevice(DEVICES[LEFT]) as b,
        TouchThread(walls[0].servo, a), TouchThread(walls[1].servo, b),
    ):  # fmt: skip
        wait(walls[1].servo, 200)
    assert stand_in.counts["illegal"] == 0


def test_a_paused_servo_is_no_silent_device(stand_in):
    from palpo.haptics.control import request_pause

    wall = touch_wall()
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 100)
        request_pause(wall.servo, True)
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            assert thread.running, thread.reason
            time.sleep(1e-3)
        assert is_frozen(wall.servo)
        request_pause(wall.servo, False)
        wait(wall.servo, tick_count(wall.servo) + 50)


# ---- one run after another


def test_a_reset_at_a_window_takes_the_device_that_is_open(stand_in, monkeypatch):
    options = Options("probe", device="touch", window=True)
    session = Session(options)
    for _ in range(2):
        device = choose(options)
        with session._open as stack:
            assert device.open(session.spec, stack).name == "Touch"
            opened = device._opened
        assert stand_in.initialised(DEFAULT) and not stand_in.output(DEFAULT)
    assert touch_device._kept[None] is opened
    touch_device._close_all()
    assert not stand_in.initialised(DEFAULT)
    device = choose(replace(options, window=False))
    with session._open as stack:
        device.open(session.spec, stack)
    assert not stand_in.initialised(DEFAULT), "without a window it is left as it was found"


def test_a_device_that_was_lost_is_opened_anew(stand_in):
    stand_in.unplug(DEFAULT, 100)
    options = Options("probe", device="touch", window=True)
    session, device, wall = Session(options), choose(options), touch_wall()
    with session._open as stack:
        device.open(session.spec, stack)
        thread = device.driver(wall.servo).start()
        assert thread.join(20.0)
    assert not stand_in.initialised(DEFAULT) and not touch_device._kept


def test_finding_a_device_that_wants_its_inkwell_says_so_and_does_not_wait_long(stand_in):
    stand_in.calibration(DEFAULT, MANUAL, INKWELL)
    begun = time.monotonic()
    found = find()
    assert not found.ok and "inkwell" in found.sentence
    assert time.monotonic() - begun < 10.0


def test_the_state_before_the_first_call_is_the_callback_s(stand_in):
    with pytest.raises(TypeError, match="laid out"):
        openhaptics_prepare.preparing_data((1, 2))
    assert TOUCH.continuous_force == np.inf, "a simulated Touch has no motors that warm"
