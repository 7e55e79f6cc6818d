"""Laws of a Haply Inverse3 against a stand-in of the maker's service: axes, forces, silence and ends."""

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from palpo.app.cli.progress import Silent
from palpo.app.devices.table import choose
from palpo.app.report.outcome import FAILED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.haptics.backends import haply_bridge
from palpo.haptics.backends.haply_bridge import SERVICE, decode, encode
from palpo.haptics.control import request_pause, tick_count
from palpo.haptics.drain import drain_rows
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.row import NAMES
from palpo.haptics.servo import Servo
from palpo.haptics.workspace import quaternion_matrix
from tests.haply.service import Service, state_of
from tests.libhd.bench import SENT, external, recorded_device, repeat, wait
from tests.servo.wall import make_wall

PLACE = [NAMES.index(f"device_p{axis}") for axis in "xyz"]
AXES = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
"""Servo's axes from the service's: x right, y away, z up become x right, y up, z toward the user."""
LONG = 20.0
ROOT = Path(__file__).parents[2]


def told(message):
    return decode(json.dumps(message))


@pytest.fixture
def service():
    with Service() as made:
        yield made
    assert made.illegal == []


def opened(service):
    from palpo.haptics.backends.haply import HaplyDevice

    return HaplyDevice(service.address)


def thread_of(wall, device):
    from palpo.haptics.backends.haply import HaplyThread

    return HaplyThread(wall.servo, device)


def wall_of():
    return make_wall(external(), 300.0, limits=make_limits(10.0, fades=AT_ONCE))


# ---- messages


def test_right_away_and_up_are_the_servo_s_x_minus_z_and_y():
    device, pose = told(state_of([0.01, 0.02, 0.03]))
    assert device == "04BA"
    assert pose[:6] == pytest.approx([0.01, 0.03, -0.02, 0.1, 0.3, -0.2])
    assert pose[6:] == [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_of_several_arms_the_one_of_the_wanted_id_is_heard_with_the_grip_in_its_place():
    first, second = (state_of([x, 0, 0], [w, 0, 0, z], device=one)
                     for x, w, z, one in ((0.01, 1, 0, "04BA"), (0.02, 0, 1, "07CD")))  # fmt: skip
    both = {name: first[name] + second[name] for name in first}
    for wanted, (x, w) in {"04BA": (0.01, 1.0), "": (0.01, 1.0), "07CD": (0.02, 0.0)}.items():
        device, pose = decode(json.dumps(both), wanted)
        assert device == (wanted or "04BA") and (pose[0], pose[6]) == (x, w)
    assert decode(json.dumps(both), "0000") is None


def test_two_arms_of_one_service_are_open_side_by_side_and_another_is_not_there():
    from palpo.haptics.backends.haply import HaplyDevice

    with Service(("04BA", "07CD")) as two, HaplyDevice(two.address, wanted="07CD") as second:
        with HaplyDevice(two.address, wanted="04BA") as first:
            assert (first.title, second.title) == ("Inverse3 04BA", "Inverse3 07CD")
        with pytest.raises(HapticsError, match="no Inverse3 0000; check its power"):
            HaplyDevice(two.address, wanted="0000")
    ways = {"haply:07CD": ("07CD", SERVICE), "haply:ws://x:1": ("", "ws://x:1"),
            "haply:07CD@ws://x:1": ("07CD", "ws://x:1")}  # fmt: skip
    for word, (wanted, address) in ways.items():
        device = choose(Options("probe", device=word))
        assert (device.id, device.address) == (wanted, address)


@pytest.mark.parametrize("axis", np.eye(3))
def test_a_point_of_a_turned_grip_is_where_the_service_has_it(axis):
    turn = np.concatenate([[np.cos(0.4)], np.sin(0.4) * axis])
    _, pose = told(state_of(np.zeros(3), turn))
    point = np.array([0.3, -0.5, 0.7])
    theirs = AXES @ quaternion_matrix(turn) @ point
    assert quaternion_matrix(pose[6:10]) @ AXES @ point == pytest.approx(theirs, abs=1e-15)


def test_a_force_does_the_work_that_it_does_in_the_servo_s_axes():
    force = np.array([1.0, -2.0, 3.0])
    values = json.loads(encode("a", force))["inverse3"][0]["commands"]["set_cursor_force"]["values"]
    theirs = [values[axis] for axis in "xyz"]
    step = np.array([0.1, 0.2, 0.3])
    assert np.dot(theirs, step) == pytest.approx(force @ (AXES @ step))


def test_buttons_are_a_mask_in_the_order_of_their_names():
    _, pose = told(state_of(np.zeros(3), [1, 0, 0, 0], {"a": True, "b": False, "c": True}))
    assert pose[10] == 0b101


@pytest.mark.parametrize("message", [{}, {"inverse3": []}])
def test_a_message_without_a_device_is_none(message):
    assert told(message) is None


def spoilt(**changes):
    """A message with parts of its arm's state replaced."""
    message = state_of(np.zeros(3))
    message["inverse3"][0]["state"] |= changes
    return message


def gripped(grip):
    return state_of(np.zeros(3)) | {"verse_grip": grip}


HUGE = "1" + "0" * 400
MISFITS = {
    "an arm without a state": json.dumps({"inverse3": [{"device_id": "a"}]}),
    "a number for arms": json.dumps({"inverse3": 3}),
    "not a number": json.dumps(spoilt(cursor_position={"x": np.nan, "y": 0.0, "z": 0.0})),
    "an infinite velocity": json.dumps(spoilt(cursor_velocity={"x": 0.0, "y": np.inf, "z": 0.0})),
    "a number beyond all": json.dumps(spoilt(cursor_position="P")).replace(
        '"P"', f'{{"x": {HUGE}, "y": 0.0, "z": 0.0}}'
    ),
    "words for a number": json.dumps(spoilt(cursor_position={"x": "1", "y": 0.0, "z": 0.0})),
    "truth for a number": json.dumps(spoilt(cursor_position={"x": True, "y": 0.0, "z": 0.0})),
    "a list for a vector": json.dumps(spoilt(cursor_position=[0.0, 0.0, 0.0])),
    "words for a grip": json.dumps(gripped(["grip"])),
    "a grip alone": json.dumps(gripped({"state": {}})),
    "a list for a grip's state": json.dumps(gripped([{"state": [1.0, 0.0, 0.0, 0.0]}])),
    "an orientation of three": json.dumps(gripped([{"state": {"orientation": {"w": 1.0, "x": 0.0}}}])),
    "many buttons": json.dumps(gripped([{"state": {"buttons": dict.fromkeys(map(str, range(99)), True)}}])),
    "a long name": json.dumps(state_of(np.zeros(3), device="a" * 100_000)),
    "depth": "[" * 100_000 + "]" * 100_000,
    "depth within": '{"inverse3": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
    "half a message": json.dumps(state_of(np.zeros(3)))[:-9],
    "no message": "",
    "null": "null",
    "bytes that are no text": b'{"inverse3": "\xff\xfe"}',
}  # fmt: skip


@pytest.mark.parametrize("text", MISFITS.values(), ids=MISFITS)
def test_what_is_no_message_does_not_fit(text):
    with pytest.raises(ValidationError):
        decode(text)


def test_whatever_a_message_becomes_it_fits_or_does_not():
    """Bytes of a sound message changed at random: never another error, never a number that is not finite."""
    whole = json.dumps(state_of([0.01, 0.02, 0.03], [1, 0, 0, 0], {"a": True})).encode()
    rng, fitted = np.random.default_rng(28), 0
    for _ in range(3000):
        text = bytearray(whole)
        for k in rng.integers(len(text), size=rng.integers(1, 4)):
            text[k] = rng.choice(list(b'0123456789-+.eE{}[]",: ntfalsue\\\xff\x00'))
        try:
            _, pose = decode(bytes(text)) or ("", [0.0])
            fitted += 1
        except ValidationError:
            continue
        assert np.isfinite(pose).all()
    assert 100 < fitted < 2900


# ---- the servo beside its process


def test_the_device_gets_the_forces_of_the_lock_step_servo_beside_a_busy_python_thread(service):
    wall, over = wall_of(), threading.Event()

    def burn():
        while not over.is_set():
            sum(range(1000))

    burner = threading.Thread(target=burn, daemon=True)
    with opened(service) as device:
        assert device.title == "Inverse3 04BA"
        burner.start()
        try:
            with thread_of(wall, device) as thread:
                wait(wall.servo, 1500)
        finally:
            over.set()
            burner.join()
    assert thread.reason == "stop requested"
    rows = drain_rows(wall.servo)
    reference = wall_of()
    reference = Servo(reference.servo.state._replace(device=recorded_device(rows)))
    repeat(reference, rows)
    sent = rows[:, SENT]
    assert drain_rows(reference)[:, SENT] == pytest.approx(sent, abs=1e-14)
    assert sent[:, 0].min() == pytest.approx(-1.5, abs=1e-9)
    # what the service was told is what the servo sent, or nothing
    told = np.array(service.forces["04BA"]) @ AXES.T
    known = {tuple(np.round(force, 12)) for force in np.vstack([sent, np.zeros((1, 3))])}
    assert {tuple(np.round(force, 12) + 0.0) for force in told} <= known
    assert not told[-1].any(), "it is left without force"


def test_a_service_that_ends_fades_the_run_with_a_sentence(service):
    wall = wall_of()
    with opened(service) as device:
        thread = thread_of(wall, device).start()
        wait(wall.servo, 500)
        service.gone = True
        assert thread.join(LONG)
        assert thread.reason.startswith("Inverse3 04BA was lost: Haply's service at ws://127.0.0.1")
    sent = drain_rows(wall.servo)[:, SENT]
    assert not sent[-1].any() and np.abs(np.diff(sent[-51:], axis=0)).max() <= 1.5 / 50 * 1.001


def test_a_service_that_falls_silent_fades_the_run_with_a_sentence(service):
    wall = wall_of()
    with opened(service) as device:
        thread = thread_of(wall, device).start()
        wait(wall.servo, 500)
        service.silent = True
        assert thread.join(LONG)
        assert "has sent no pose for 0.25 s" in thread.reason
    assert not drain_rows(wall.servo)[-1, SENT].any()


def test_messages_that_do_not_fit_are_counted_and_the_run_goes_on(service):
    wall = wall_of()
    with opened(service) as device:
        with thread_of(wall, device) as thread:
            wait(wall.servo, 300)
            for text in MISFITS.values():
                service.misfits.append(text)
                wait(wall.servo, tick_count(wall.servo) + 50)
        assert thread.reason == "stop requested"
        assert device.shared.state[haply_bridge.SKIPPED] == len(MISFITS)


def test_a_service_that_only_says_what_does_not_fit_fades_the_run_with_a_sentence(service):
    wall = wall_of()
    with opened(service) as device:
        thread = thread_of(wall, device).start()
        wait(wall.servo, 500)
        service.misfits = ["{"] * 1_000_000
        assert thread.join(LONG)
        assert "messages that do not fit" in thread.reason
    assert not drain_rows(wall.servo)[-1, SENT].any()


def test_a_device_that_is_unplugged_from_its_service_is_named(service):
    wall = wall_of()
    with opened(service) as device:
        thread = thread_of(wall, device).start()
        wait(wall.servo, 300)
        service.empty = True
        assert thread.join(LONG)
        assert (
            thread.reason == "Inverse3 04BA was lost: no Inverse3; check its power and cable, and Haply Hub"
        )
    # one that comes back finds no force that waits for it
    assert np.any(service.forces["04BA"]) and not np.any(service.forces["04BA"][-1])


def test_a_servo_that_stands_still_leaves_no_force_at_the_service(service):
    """The process sends zero for a force that nobody renews, as it would if the servo hung."""
    wall = wall_of()
    with opened(service) as device:
        with thread_of(wall, device):
            wait(wall.servo, 600)
            request_pause(wall.servo, True)
            time.sleep(0.5)
            assert not np.any(service.forces["04BA"][-1])
        count = len(service.forces["04BA"])
        time.sleep(0.5)
        assert len(service.forces["04BA"]) > count and not np.any(service.forces["04BA"][-1])
    assert tick_count(wall.servo) > 600


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGSTOP])
def test_a_program_that_is_killed_or_stopped_leaves_no_force_at_the_service(service, ending):
    """The process beside it closes the connection after a last zero, or renews nothing and sends zero."""
    program = subprocess.Popen([sys.executable, "-m", "tests.haply.pressed", service.address], cwd=ROOT)
    forces, end = service.forces["04BA"], time.monotonic() + 60.0
    try:
        while not (forces and np.linalg.norm(forces[-1]) > 1.4):
            assert time.monotonic() < end and program.poll() is None
            time.sleep(1e-3)
        program.send_signal(ending)
        began = time.monotonic()
        while np.any(forces[-1]):
            # a servo that left no force for 50 ms has gone; what lies between may be late on a busy machine
            assert time.monotonic() - began < 1.0, "the last force stays"
            time.sleep(1e-3)
        print(f"Haply, {ending.name}: no force after {1e3 * (time.monotonic() - began):.0f} ms")
        time.sleep(0.2)
        assert not np.any(forces[-1])
    finally:
        program.kill()
        program.wait()


def test_no_service_and_no_device_are_sentences(service):
    from palpo.haptics.backends.haply import HaplyDevice, find

    service.empty = True
    with pytest.raises(HapticsError, match="no Inverse3; check its power"):
        opened(service)
    ok, words = find("ws://127.0.0.1:9")
    assert not ok and "Haply's service at ws://127.0.0.1:9 was lost, or is not there" in words
    with pytest.raises(HapticsError, match="has named no device"):
        HaplyDevice(service.address, lambda: True)


def test_a_whole_run_whose_service_ends_ends_in_its_own_words(service):
    class Heard(Silent):
        def say(self, words):
            if words.startswith("first tick"):
                threading.Timer(0.3, lambda: setattr(service, "gone", True)).start()

    options = Options("probe", device=f"haply:{service.address}", baseline=False, duration=60.0)
    done = run(options, Heard())
    assert done.status == FAILED
    assert "Inverse3 04BA was lost" in done.result["exit_reason"]


def test_the_memory_holds_a_sentence_whole(tmp_path):
    path = tmp_path / "shared"
    path.write_bytes(bytes(haply_bridge.SIZE))
    shared, other = haply_bridge.shared_views(path), haply_bridge.shared_views(path)
    haply_bridge.begin(shared)
    haply_bridge.say(shared, "x" * 1000, haply_bridge.OVER)
    assert haply_bridge.said(other) == "x" * (haply_bridge.WORDS - 1)
    assert other.state[0] == haply_bridge.OVER
