"""Laws of the Touch: libHD's units and axes, the servo's own forces on its scheduler, two devices, no GIL."""

import subprocess
import sys
import threading
from ctypes.util import find_library

import numpy as np
import pytest
from hypothesis import given
from numba import cfunc, njit, types

from palpo.app.runtime.rigs import Start
from palpo.app.systems.multirate.rig import MultirateRig
from palpo.config.load import load_scene
from palpo.haptics.backends import foreign, openhaptics_library, openhaptics_tick
from palpo.haptics.backends.openhaptics import OpenHapticsDevice, find
from palpo.haptics.backends.openhaptics_reading import convert_reading
from palpo.haptics.backends.openhaptics_thread import TouchThread
from palpo.haptics.device_spec import PHANTOM_DESKTOP, TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.servo import Servo
from palpo.haptics.workspace import make_workspace, quaternion_matrix
from palpo.physics.exchange.port import make_port
from tests.libhd.bench import (
    DEPTH,
    POSE,
    SENT,
    STIFFNESS,
    external,
    press,
    readings,
    recorded_device,
    repeat,
    touch_wall,
    transform,
    wait,
)
from tests.libhd.stand_in import DEFAULT, LEFT, NAMES, fresh_stand_in
from tests.realtime.busy import busy_python
from tests.realtime.drawn_poses import quaternions

ROUNDING = 1e-14
"""The same operations on forces of a few newtons, in two compilations [N]."""


@pytest.fixture
def stand_in():
    made = fresh_stand_in()
    yield made
    made.disconnect()


# ---- units and axes


def convert(matrix, velocity=(0, 0, 0), buttons=0, port=None):
    port = make_port() if port is None else port
    good = convert_reading(matrix, np.array(velocity, float), np.array([buttons], np.int32), port)
    return port, good


def test_millimetres_become_metres_and_the_axes_and_angles_stay():
    port, good = convert(transform([0.01, -0.02, 0.03]), [100.0, -200.0, 300.0], 2)
    assert good
    assert port.position == pytest.approx([0.01, -0.02, 0.03], rel=1e-15)
    assert port.velocity == pytest.approx([0.1, -0.2, 0.3], rel=1e-15)
    assert port.buttons[0] == 2


@given(quaternions)
def test_the_quaternion_turns_every_vector_as_the_transform_does(q):
    port, good = convert(transform([0, 0, 0], q))
    assert good
    assert np.linalg.norm(port.orientation) == pytest.approx(1.0, abs=1e-15)
    # a matrix of entries rounded to 1e-16, divided by a component of at least one half
    assert quaternion_matrix(port.orientation) == pytest.approx(quaternion_matrix(q), abs=1e-14)


@pytest.mark.parametrize("axis", np.vstack([np.eye(3), np.ones((1, 3)) / np.sqrt(3)]))
@pytest.mark.parametrize("short_of_half", [0.0, 1e-9, 1e-5])
def test_half_turns_about_any_axis_lose_no_digits(axis, short_of_half):
    half = 0.5 * (np.pi - short_of_half)
    q = np.concatenate([[np.cos(half)], np.sin(half) * axis])
    port, _ = convert(transform([0, 0, 0], q))
    assert abs(port.orientation @ q) == pytest.approx(1.0, abs=1e-15)
    assert port.orientation * np.sign(port.orientation @ q) == pytest.approx(q, abs=1e-15)


def test_a_quarter_turn_about_the_axis_toward_the_user_takes_right_to_up():
    columns = np.eye(4)
    columns[0, :2], columns[1, :2] = [0.0, 1.0], [-1.0, 0.0]  # the images of x and of y, column by column
    port, _ = convert(columns.ravel())
    assert port.orientation == pytest.approx([np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)], abs=1e-15)


def test_a_stylus_that_turns_on_and_on_never_flips_its_quaternion():
    port = make_port()
    before = port.orientation.copy()
    for angle in np.linspace(0.0, 4 * np.pi, 400):
        turn = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * np.array([0.6, 0.0, 0.8])])
        convert(transform([0, 0, 0], turn), port=port)
        assert port.orientation @ before > 0.99
        before = port.orientation.copy()


@pytest.mark.parametrize("spoil", [(0, np.nan), (12, np.inf), (slice(0, 11), 0.0), (5, 1e6)])
def test_a_pose_that_is_none_leaves_the_last_good_one(spoil):
    port, _ = convert(transform([0.01, 0.0, 0.0], [0.6, 0.8, 0.0, 0.0]))
    good = np.concatenate([port.position, port.orientation])
    bad = transform([0.02, 0.0, 0.0])
    bad[spoil[0]] = spoil[1]
    assert not convert(bad, port=port)[1]
    assert np.concatenate([port.position, port.orientation]).tolist() == good.tolist()


def test_the_callback_uses_the_numbers_that_pyopenhaptics_defines(stand_in):
    find()
    from pyOpenHaptics import hd_define

    ours = [name for name in vars(openhaptics_tick) if name.startswith("HD_")]
    assert len(ours) == 11
    for name in ours:
        assert getattr(openhaptics_tick, name) == getattr(hd_define, name), name
    for code, error in openhaptics_library.ERRORS.items():
        theirs = getattr(hd_define, error.name, code)
        # the one number that it has wrong
        assert theirs == (0x103 if error.name == "HD_INVALID_OPERATION" else code), error.name


@cfunc(types.void(types.CPointer(types.int32)))
def error_through_memory(words):
    words[0], words[1], words[2] = 0x0302, -7, 16


def test_an_error_struct_that_comes_back_through_memory_is_read_as_one_in_registers(monkeypatch):
    """As x86-64 Windows returns it; the stand-in's comes back in registers."""
    monkeypatch.setattr(foreign, "_THROUGH_MEMORY", True)
    call_for_error = foreign.call_for_error

    @njit
    def code_and_internal(address):
        info = call_for_error(address)
        return info & 0xFFFFFFFF, info >> 32

    assert code_and_internal(error_through_memory.address) == (0x0302, -7)


# ---- what a device states


def test_a_device_is_what_it_states_in_si_units(stand_in):
    with OpenHapticsDevice() as touch:
        found, spec = touch.identity, touch.spec()
    assert (found.model, found.vendor, found.driver, found.serial) == (
        "Touch",
        "3D Systems",
        "4.3.0",
        "T-0001",
    )
    assert (found.update_rate, found.input_dof, found.output_dof) == (1000, 6, 3)
    assert (found.max_force, found.max_continuous_force) == (3.3, 0.88)
    assert (found.max_stiffness, found.max_damping) == pytest.approx((1020.0, 3.0))
    assert found.usable_workspace == pytest.approx((-0.08, -0.06, -0.035, 0.08, 0.06, 0.035))
    assert spec.workspace == pytest.approx((0.16, 0.12, 0.07))
    # the device's own reach, and what its motors stand
    assert spec.reach == tuple(map(pytest.approx, ((-0.21, -0.11, -0.085), (0.21, 0.205, 0.13))))
    assert spec.continuous_force == 0.88
    assert (spec.resolution, spec.buttons, spec.mass) == (TOUCH.resolution, TOUCH.buttons, TOUCH.mass)
    with OpenHapticsDevice(NAMES[LEFT]) as desktop:
        assert desktop.spec().max_force == PHANTOM_DESKTOP.max_force
        assert desktop.spec().resolution == PHANTOM_DESKTOP.resolution


def test_finding_a_device_leaves_it_closed_and_an_open_one_alone(stand_in):
    assert find().ok and "Touch (3D Systems, driver 4.3.0" in find().sentence
    assert not stand_in.initialised(DEFAULT)
    with OpenHapticsDevice():
        assert find().ok and find().sentence.startswith("in use")
        assert stand_in.initialised(DEFAULT)
    assert not stand_in.initialised(DEFAULT)
    assert stand_in.counts["illegal"] == 0 and not stand_in.running()


# ---- the servo on the scheduler


def test_forces_on_the_device_are_those_of_the_lock_step_servo_tick_for_tick(stand_in):
    stand_in.hand(DEFAULT, 0.008, 2.0)
    wall = touch_wall(make_limits(TOUCH.max_force))
    with OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 1200)
    rows, applied = drain_rows(wall.servo), stand_in.forces(DEFAULT)
    assert thread.reason == "stop requested" and len(rows) == len(applied)
    reference = touch_wall(make_limits(TOUCH.max_force))
    reference = Servo(reference.servo.state._replace(device=recorded_device(rows)))
    repeat(reference, rows)
    lock_step = drain_rows(reference)
    assert np.abs(applied).max() > 1.0, "the stylus felt the wall"
    assert applied == pytest.approx(lock_step[:, SENT], abs=ROUNDING)
    assert (applied[-1] == 0.0).all()


def test_the_device_is_used_in_order_and_left_without_force(stand_in):
    stand_in.script(DEFAULT, press())
    wall = touch_wall()
    with OpenHapticsDevice() as device:
        with TouchThread(wall.servo, device):
            wait(wall.servo, 300)
            assert stand_in.output(DEFAULT)
        assert not stand_in.output(DEFAULT) and not stand_in.running()
    counts = stand_in.counts
    assert (counts["illegal"], counts["scheduled"], counts["starts"]) == (0, 0, 2)
    assert stand_in.forces(DEFAULT)[250] == pytest.approx([-STIFFNESS * DEPTH, 0, 0], abs=ROUNDING)


def test_a_servo_that_is_asked_to_stop_ends_by_itself_and_another_can_follow(stand_in):
    stand_in.script(DEFAULT, press())
    with OpenHapticsDevice() as device:
        for _ in range(2):
            wall = touch_wall()
            thread = TouchThread(wall.servo, device).start()
            assert thread.running and thread.reason == "running" and not thread.join(0.0)
            thread.stop()
            assert thread.join(5.0) and not thread.running
            assert thread.reason == "stop requested" and thread.error is None
    assert stand_in.counts["illegal"] == 0


def test_two_devices_by_name_each_feel_their_own_wall_on_one_scheduler(stand_in):
    right, left = press(), press()
    left[:, 12] *= -0.5
    stand_in.script(DEFAULT, right)
    stand_in.script(LEFT, left)
    walls = touch_wall(), touch_wall(one_sided=False)
    with (
        OpenHapticsDevice() as a,
        OpenHapticsDevice(NAMES[LEFT]) as b,
        TouchThread(walls[0].servo, a) as first,
    ):
        with TouchThread(walls[1].servo, b):
            wait(walls[1].servo, 300)
            with pytest.raises(HapticsError, match="before a servo runs"):
                OpenHapticsDevice("Third")
        wait(walls[0].servo, len(stand_in.forces(DEFAULT)) + 100)
        assert first.running, "the scheduler goes on for the other device"
    one, two = stand_in.forces(DEFAULT), stand_in.forces(LEFT)
    assert one[250] == pytest.approx([-STIFFNESS * DEPTH, 0, 0], abs=ROUNDING)
    assert two[250] == pytest.approx([0.5 * STIFFNESS * DEPTH, 0, 0], abs=ROUNDING)
    counts = stand_in.counts
    assert (counts["illegal"], counts["starts"], counts["scheduled"]) == (0, 3, 0)


def test_the_real_tick_gives_the_forces_of_the_lock_step_run(stand_in):
    touching = ("bodies.probe.placement.position=[0, 0.041, 0]",)
    offset = np.array([0.0, 0.041, 0.0])
    down = np.zeros((200, 3))
    down[:, 1] = -0.006 * np.linspace(0.0, 1.0, 200)
    stand_in.script(DEFAULT, readings(down))
    limits = make_limits(TOUCH.max_force, fades=AT_ONCE)

    def rig(device):
        spec = load_scene("probe", touching)
        place = make_workspace(offset=offset)
        made = MultirateRig(spec, Start(lambda _held: device, place, limits, "krylov"))
        # the frame that the first tick needs, and no other: the servo is alone
        made.low.step()
        made.low.publish(0)
        return made

    touch = rig(external())
    with OpenHapticsDevice() as device, TouchThread(touch.servo, device) as thread:
        wait(touch.servo, 240)
    rows, applied = drain_rows(touch.servo), stand_in.forces(DEFAULT)
    assert thread.reason == "stop requested"
    rows_of_device = rows.copy()
    # the script's own numbers: a subtraction of the offset would round
    rows_of_device[:, POSE[:3]] = (1e-3 * readings(down)[:, 12:15])[np.minimum(np.arange(len(rows)), 199)]
    reference = rig(recorded_device(rows_of_device))
    repeat(reference.servo, rows)
    for made in (touch, reference):
        made.low.close()
    assert np.linalg.norm(applied, axis=1).max() > 0.1, "the ball touched the block"
    assert applied == pytest.approx(drain_rows(reference.servo)[:, SENT], abs=ROUNDING)


def test_pyopenhaptics_own_device_runs_unmodified_against_the_stand_in(stand_in):
    stand_in.hand(DEFAULT, 0.005, 2.0)
    find()
    from pyOpenHaptics import hd
    from pyOpenHaptics.hd_callback import hd_callback
    from pyOpenHaptics.hd_device import HapticDevice

    seen = []
    enough = threading.Event()

    @hd_callback
    def wall():
        x = hd.get_transform()[3][0]
        force = [-0.3 * x if x > 0.0 else 0.0, 0.0, 0.0]
        hd.set_force(force)
        seen.append(force)
        if len(seen) >= 200:
            enough.set()

    device = HapticDevice(wall)
    assert device.__vendor__() == "3D Systems"
    assert enough.wait(20.0)
    device.close()
    applied = stand_in.forces(DEFAULT)
    assert applied[: len(seen)].tolist() == seen[: len(applied)]
    assert applied[:, 0].min() < -0.1
    assert stand_in.counts["illegal"] == 0


@pytest.mark.realtime
def test_beside_a_busy_python_thread_the_servo_is_served():
    """A callback that waited for the interpreter would wait 5 ms for every tick and be served a fifth."""
    stand_in = fresh_stand_in()
    stand_in.hand(DEFAULT, 0.008, 2.0)
    wall = touch_wall(make_limits(TOUCH.max_force))
    with busy_python(), OpenHapticsDevice() as device, TouchThread(wall.servo, device) as thread:
        wait(wall.servo, 2000)
        served = thread.served()
    assert served > 0.5


# ---- only when asked for

LOOK = """
import sys
from palpo.haptics.backends.openhaptics import find
assert "pyOpenHaptics" not in sys.modules, "imported before it was asked for"
{before}
found = find()
assert not found.ok
print(found.sentence)
"""


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("", "libHD was not found"),
        ("sys.modules['pyOpenHaptics'] = None", "pyOpenHaptics is not installed; pip install palpo[touch]"),
        ("sys.platform = 'darwin'", "does not exist for darwin"),
    ],
)
def test_what_is_missing_is_one_sentence_without_a_traceback(before, words):
    if before == "" and find_library("HD"):
        pytest.skip("this machine has a libHD")
    done = subprocess.run(
        [sys.executable, "-c", LOOK.format(before=before)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout and done.stdout.count("\n") == 1
