"""Laws of devices whose deflection is a speed: their reports, the motion they make, and how they are lost."""

import os
import struct
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.app.devices.table import choose
from palpo.app.report.outcome import FAILED, FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.haptics.backends import gamepad, spacemouse
from palpo.haptics.device import MAILBOX, make_virtual_device
from palpo.haptics.drain import drain_rows
from palpo.haptics.errors import HapticsError
from palpo.haptics.led import FAR, LONGEST
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.rate import (
    DEAD,
    QUIET,
    SPEED,
    TURN,
    Deflection,
    LedPose,
    RateThread,
    speed_of,
)
from palpo.haptics.row import NAMES
from palpo.haptics.workspace import quaternion_matrix
from tests.libhd.bench import wait
from tests.servo.wall import make_wall

PLACE = [NAMES.index(f"device_p{axis}") for axis in "xyz"]
UPRIGHT = [1.0, 0.0, 0.0, 0.0]
number = st.integers(-32768, 32767)


def report(kind, *axes):
    return bytes([kind]) + struct.pack(f"<{len(axes)}h", *axes)


# ---- reports of a SpaceMouse


@given(number, number, number, number, number, number)
def test_one_report_of_a_new_model_says_what_two_of_an_old_one_say(x, y, z, a, b, c):
    new = spacemouse.decode(report(1, x, y, z, a, b, c), Deflection())
    old = spacemouse.decode(report(2, a, b, c), spacemouse.decode(report(1, x, y, z), Deflection()))
    assert new == old
    assert all(-1.0 <= value <= 1.0 for value in (*new.along, *new.about))


@pytest.mark.parametrize(
    ("axes", "along"),
    [
        ((350, 0, 0), (1, 0, 0)),
        ((0, 350, 0), (0, 0, 1)),
        ((0, 0, 350), (0, -1, 0)),
        ((-175, 0, 0), (-0.5, 0, 0)),
    ],
)
def test_right_toward_the_user_and_down_are_the_servo_s_x_z_and_minus_y(axes, along):
    assert spacemouse.decode(report(1, *axes), Deflection()).along == pytest.approx(along)
    # turns go by the same axes, which are right-handed in both
    assert spacemouse.decode(report(2, *axes), Deflection()).about == pytest.approx(along)


def test_buttons_come_by_themselves_and_leave_the_knob_where_it_is():
    before = spacemouse.decode(report(1, 100, 0, 0), Deflection())
    after = spacemouse.decode(bytes([3, 0b101, 0]), before)
    assert after == before._replace(buttons=0b101)
    assert spacemouse.decode(bytes([3, 0, 0]), after).buttons == 0


@given(st.binary(max_size=6))
def test_what_is_no_report_changes_nothing(noise):
    before = Deflection((0.1, 0.2, 0.3), (0.4, 0.5, 0.6), 3)
    assert spacemouse.decode(noise, before) == before or noise[:1] == b"\x03"


# ---- a gamepad's events


def event(value, kind, number):
    return gamepad.EVENT.pack(0, value, kind, number)


def test_sticks_lead_right_up_and_toward_the_user_and_turn():
    axes = {}
    for k, value in ((0, 32767), (1, 16384), (4, -32767), (3, -32768)):
        gamepad.decode(event(value, gamepad.AXIS | gamepad.INITIAL, k), axes, 0)
    found = gamepad.deflection_of(axes, 0)
    assert found.along == pytest.approx((1.0, 1.0, 0.5), abs=1e-4)
    assert found.about == pytest.approx((0.0, 1.0, 0.0))


def test_buttons_of_a_gamepad_are_kept_until_they_are_let_go():
    buttons = gamepad.decode(event(1, gamepad.BUTTON, 0), {}, 0)
    buttons = gamepad.decode(event(1, gamepad.BUTTON, 4), {}, buttons)
    assert buttons == 0b10001
    assert gamepad.decode(event(0, gamepad.BUTTON, 0), {}, buttons) == 0b10000
    assert gamepad.decode(event(1, gamepad.BUTTON, 200), {}, buttons) == buttons


# ---- from deflection to motion


@given(st.floats(-2.0, 2.0, allow_nan=False))
def test_speed_is_odd_bounded_and_none_in_the_dead_zone(d):
    assert speed_of(-d, SPEED) == -speed_of(d, SPEED)
    assert abs(speed_of(d, SPEED)) <= SPEED
    assert (speed_of(d, SPEED) == 0.0) == (abs(d) <= DEAD)


def test_full_deflection_is_the_full_speed_and_half_of_it_by_the_square():
    assert speed_of(1.0, SPEED) == SPEED
    assert speed_of(0.5, SPEED) == pytest.approx(SPEED * ((0.5 - DEAD) / (1 - DEAD)) ** 2)
    assert not speed_of([np.nan, np.inf], SPEED).any()


def test_a_held_knob_goes_as_far_as_its_speed_and_time_and_no_farther_than_the_border():
    led = LedPose([0.1, 0.2, 0.3], UPRIGHT)
    for _ in range(100):
        led.move(Deflection((1.0, 0.0, -1.0)), 0.01)
    assert led.position == pytest.approx([0.1 + SPEED, 0.2, 0.3 - SPEED])
    for _ in range(1000):
        led.move(Deflection((1.0, 0.0, 0.0)), 0.01)
    assert led.position[0] == pytest.approx(0.1 + FAR)
    led.move(Deflection((-1.0, 0.0, 0.0)), 3600.0)
    assert led.position[0] == pytest.approx(0.1 + FAR - SPEED * LONGEST), "a program that slept does not jump"


def test_a_twist_turns_about_the_device_s_own_axes_by_its_angle():
    led = LedPose(np.zeros(3), UPRIGHT)
    for _ in range(100):
        led.move(Deflection(about=(0.0, 1.0, 0.0)), 0.01)
    turned = quaternion_matrix(led.orientation) @ [0.0, 0.0, 1.0]
    assert turned == pytest.approx([np.sin(TURN), 0.0, np.cos(TURN)], abs=1e-12)


class Knob:
    """A source that a test deflects; `gone` has it unplugged."""

    title = "a knob"

    def __init__(self):
        self.deflection, self.gone, self.quiet, self.closed = Deflection(), False, False, False

    def read(self, patience):
        time.sleep(patience)
        if self.gone:
            raise OSError(19, "No such device")
        return None if self.quiet else self.deflection

    def close(self):
        self.closed = True


def led_wall():
    device = make_virtual_device([[0.0, 0.0, 0.0]], source=MAILBOX)
    return make_wall(device, 300.0, limits=make_limits(3.3, fades=AT_ONCE, hand_speed=np.inf))


def test_a_deflected_knob_leads_the_hand_and_a_silent_one_leaves_it():
    wall, knob = led_wall(), Knob()
    with RateThread(wall.servo, knob):
        wait(wall.servo, 50)
        knob.deflection = Deflection((1.0, 0.0, 0.0))
        wait(wall.servo, 400)
        knob.quiet = True
        wait(wall.servo, 400 + round(2e3 * QUIET) + 600)
    x = drain_rows(wall.servo)[:, PLACE[0]]
    assert x[399] > 0.01 and (np.diff(x) >= 0.0).all()
    # the deflection that was last heard is forgotten, and the hand comes to rest
    assert x[-1] - x[-100] < 1e-4


def test_a_knob_that_is_unplugged_ends_the_run_with_a_fade_and_a_sentence():
    wall, knob = led_wall(), Knob()
    knob.deflection = Deflection((0.5, 0.0, 0.0))
    thread = RateThread(wall.servo, knob).start()
    wait(wall.servo, 300)
    knob.gone = True
    assert thread.join(20.0)
    assert thread.reason == "a knob was lost; plug it in again (No such device)"
    sent = drain_rows(wall.servo)[:, NAMES.index("sent_x")]
    assert sent.min() < 0.0 and sent[-1] == 0.0
    assert np.abs(np.diff(sent)).max() <= abs(sent.min()) / 50 * 1.01 + 300.0 * SPEED * 1e-3


# ---- whole runs against stand-ins of hidapi and of the kernel's interface


class FakeHid:
    """hidapi's module hid: one SpaceMouse that reports what a test says, at the rate of a real one."""

    def __init__(self):
        self.reports, self.open, self.gone, self.shut = [], 0, False, False
        entry = {"vendor_id": 0x256F, "product_id": 0xC635, "path": b"/dev/hidraw7", "usage_page": 1}
        self.entries = [
            entry | {"usage": 6, "product_string": "SpaceMouse Compact"},
            entry | {"usage": 8, "product_string": "SpaceMouse Compact"},
            entry | {"vendor_id": 1, "usage": 8, "product_string": "a keyboard"},
        ]

    def enumerate(self):
        return self.entries

    def device(self):
        return SimpleNamespace(open_path=self.open_path, read=self.read, close=self.close)

    def open_path(self, path):
        if self.shut:
            raise OSError("open failed")
        assert path == b"/dev/hidraw7"
        self.open += 1

    def read(self, size, milliseconds):
        assert size == 64
        time.sleep(1e-3 * min(milliseconds, 8))
        if self.gone:
            raise OSError("read error")
        return list(self.reports[0]) if self.reports else []

    def close(self):
        self.open -= 1


@pytest.fixture
def hid(monkeypatch):
    made = FakeHid()
    monkeypatch.setattr(spacemouse, "hid_module", lambda: made)
    return made


def test_a_spacemouse_is_found_by_its_knob_s_interface_and_named(hid):
    assert [entry["usage"] for entry in spacemouse.found()] == [8]
    assert spacemouse.find() == (True, "ready: SpaceMouse Compact") and hid.open == 0
    assert spacemouse.found("compact") and not spacemouse.found("Pro")
    hid.shut = True
    ok, words = spacemouse.find()
    assert not ok and "99-spacemouse.rules" in words
    hid.entries.clear()
    assert spacemouse.find() == (False, "no SpaceMouse; check its cable, or its receiver")


def test_without_hidapi_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "hid", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert spacemouse.find() == (False, "hidapi is not installed; pip install palpo[spacemouse]")


def test_a_whole_run_is_led_by_a_spacemouse_and_leaves_it_closed(hid):
    hid.reports.append(report(1, 0, 0, 350, 0, 0, 0))
    done = run(Options("probe", device="spacemouse", baseline=False, duration=1.0))
    assert done.status == FINISHED and done.result["device"] == "SpaceMouse Compact"
    assert hid.open == 0


def test_a_whole_run_whose_spacemouse_is_unplugged_ends_in_its_own_words(hid):
    threading.Timer(1.0, lambda: setattr(hid, "gone", True)).start()
    # it may be gone before the first tick: that is the same end
    done = run(Options("probe", device="spacemouse", baseline=False, duration=30.0))
    assert done.status == FAILED
    assert "SpaceMouse Compact was lost; plug it in again (read error)" in done.result["exit_reason"]


def test_a_gamepad_is_read_until_it_is_gone(tmp_path):
    os.mkfifo(tmp_path / "js0")
    source = gamepad.Gamepad(tmp_path)
    writer = os.open(tmp_path / "js0", os.O_WRONLY)
    os.write(writer, event(32767, gamepad.AXIS, 0) + event(1, gamepad.BUTTON, 1))
    assert source.read(5.0) == Deflection((1.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0b10)
    # a stick that is held still says nothing, and is held all the same
    assert source.read(0.01).along[0] == 1.0
    os.close(writer)
    with pytest.raises(OSError, match="no longer there"):
        source.read(5.0)
    source.close()


def test_no_gamepad_is_one_sentence(tmp_path):
    with pytest.raises(HapticsError, match="has no js0"):
        gamepad.Gamepad(tmp_path)


@pytest.mark.parametrize("word", ["spacemouse", "gamepad"])
def test_neither_is_taken_unasked_nor_in_lock_step(word):
    with pytest.raises(HapticsError, match="lock-step"):
        choose(Options("probe", device=word, lock_step=True))
    assert not type(choose(Options("probe", device=word))).there(Options("probe"))
