"""Two hands with different devices in one scene: each feels its own, and what ends one ends both."""

import socket
import threading

import numpy as np
import pytest

from palpo.app.cli.hand import lend_hand
from palpo.app.cli.progress import Silent
from palpo.app.devices.device import KEY_VARIABLE
from palpo.app.devices.hands import Together, chosen
from palpo.app.report.outcome import FAILED, FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session, run
from palpo.config.load import load_scene
from palpo.haptics.errors import HapticsError
from palpo.haptics.recording import read_recording
from tests.libdhd.stand_in import FALCON, SIGMA
from tests.libdhd.stand_in import fresh_stand_in as fresh_dhd
from tests.libhd.bench import readings as touch_readings
from tests.libhd.stand_in import DEFAULT, LEFT
from tests.libhd.stand_in import fresh_stand_in as fresh_hd
from tests.realtime.test_deflected import hid, report
from tests.realtime.test_dhd import AXES
from tests.realtime.test_dhd import readings as dhd_readings
from tests.realtime.test_haply import Service
from tests.servo.test_hands import SCENE

__all__ = ["hid"]
DEEP = 4e-3
"""How far each hand goes down: its ball hangs 1 mm over the block."""
ROUNDING = 1e-12
SHARED = "a key of these tests"


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "two-balls.toml"
    path.write_text(SCENE.replace('title = "two balls over a block"', 'title = "two"\ndescription = "two"'))
    return str(path)


def down(ticks=300):
    """A way down, at rest first and at its end (n, 3) [m]."""
    y = np.concatenate([np.zeros(100), -np.linspace(0.0, DEEP, ticks), [-DEEP]])
    return np.column_stack([0.0 * y, y, 0.0 * y])


@pytest.fixture
def touch():
    made = fresh_hd()
    made.script(DEFAULT, touch_readings(down()))
    yield made
    made.disconnect()


@pytest.fixture
def sigma():
    made = fresh_dhd()
    made.script(SIGMA, dhd_readings(down()))
    yield made
    made.disconnect()


def vectors(columns, name, hand=""):
    return np.stack([columns[f"{name}_{axis}{hand}"] for axis in "xyz"], axis=1)


def test_a_touch_and_a_force_dimension_press_one_body_each_by_its_own_force(touch, sigma, scene, tmp_path):
    path = tmp_path / "two.h5"
    options = Options(scene, device="touch", further=("forcedimension",), baseline=False, duration=1.5,
                      record=path)  # fmt: skip
    done = run(options)
    assert done.status == FINISHED, done.result["exit_reason"]
    assert done.result["device"] == "Touch and Force Dimension"
    columns = read_recording(path).columns
    one, two = vectors(columns, "sent"), vectors(columns, "sent", "_2")
    assert one[-200:-60, 1].min() > 0.05 and two[-200:-60, 1].min() > 0.05
    # what either library was told is what the rows say of its hand
    told, other = touch.forces(DEFAULT), sigma.sent(SIGMA)[:, :3] @ AXES.T
    n, m = min(len(told), len(one)), min(len(other), len(two))
    assert n > 1000 and m > 1000
    assert told[:n] == pytest.approx(one[:n], abs=ROUNDING)
    assert other[:m] == pytest.approx(two[:m], abs=ROUNDING)
    assert touch.counts["illegal"] == 0 and sigma.illegal() == 0
    assert not touch.output(DEFAULT) and not sigma.force(SIGMA)
    repeated = replay(path)
    assert repeated.result["replay"]["equal"], repeated.result["exit_reason"]


def test_two_touches_share_one_scheduler_and_each_is_told_its_own_force(touch, scene, tmp_path):
    touch.script(LEFT, touch_readings(down()))
    path = tmp_path / "two.h5"
    options = Options(scene, device="touch", further=("touch:Left Hand",), baseline=False, duration=1.5,
                      record=path)  # fmt: skip
    done = run(options)
    assert done.status == FINISHED, done.result["exit_reason"]
    assert done.result["device"] == 'Touch and Touch "Left Hand"'
    columns = read_recording(path).columns
    for device, hand in ((DEFAULT, ""), (LEFT, "_2")):
        rows, told = vectors(columns, "sent", hand), touch.forces(device)
        n = min(len(told), len(rows))
        assert n > 1000 and rows[-200:-60, 1].min() > 0.05
        assert told[:n] == pytest.approx(rows[:n], abs=ROUNDING)
        assert not touch.output(device)
    assert touch.counts["illegal"] == 0
    repeated = replay(path)
    assert repeated.result["replay"]["equal"], repeated.result["exit_reason"]


@pytest.mark.parametrize("device", [DEFAULT, LEFT])
def test_of_two_touches_the_one_that_is_unplugged_fades_both(touch, scene, tmp_path, device):
    touch.script(LEFT, touch_readings(down()))
    touch.unplug(device, 900)
    path = tmp_path / "lost.h5"
    options = Options(scene, device="touch", further=("touch:Left Hand",), baseline=False, duration=60.0,
                      record=path)  # fmt: skip
    done = run(options)
    assert done.status == FAILED
    columns = read_recording(path).columns
    for hand in ("", "_2"):
        sent = np.linalg.norm(vectors(columns, "sent", hand), axis=1)
        assert sent.max() > 0.05 and sent[-1] == 0.0 and np.abs(np.diff(sent)).max() < 0.5
    assert not touch.output(DEFAULT) and not touch.output(LEFT)


def test_one_touch_is_not_led_by_two_hands(touch, scene):
    with pytest.raises(HapticsError, match="the default device leads a hand already; name another one"):
        run(Options(scene, device="touch", further=("touch",), baseline=False, duration=0.1))


@pytest.mark.parametrize("which", ["first", "second"])
def test_either_that_is_unplugged_fades_both_and_is_named(touch, sigma, scene, tmp_path, which):
    if which == "first":
        touch.unplug(DEFAULT, 700)
    else:
        sigma.unplug(SIGMA, 700)
    path = tmp_path / "lost.h5"
    options = Options(scene, device="touch", further=("forcedimension",), baseline=False, duration=60.0,
                      record=path)  # fmt: skip
    done = run(options)
    assert done.status == FAILED
    assert ("sigma.7" in done.result["exit_reason"]) == (which == "second"), done.result["exit_reason"]
    columns = read_recording(path).columns
    for hand in ("", "_2"):
        sent = np.linalg.norm(vectors(columns, "sent", hand), axis=1)
        assert sent[-1] == 0.0 and np.abs(np.diff(sent)).max() < 0.5


def test_a_force_that_one_device_switches_off_is_off_for_both_and_comes_back(sigma, scene):
    with Service() as service:
        options = Options(scene, device="forcedimension", further=(f"haply:{service.address}",),
                          baseline=False, duration=1.0)  # fmt: skip
        done = run(options)
        assert done.status == FINISHED, done.result["exit_reason"]
        assert done.result["device"] == "Force Dimension and Haply Inverse3"
        assert len(service.forces["04BA"]) > 100


def lent(scene, hid):
    """A run whose first hand is a SpaceMouse's and whose second is at the other end of a network.

    The outcome, what the other end came to, and how far each hand went [m].
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hid.reports.append(report(1, 0, 0, 350, 0, 0, 0))
    results = []

    def lend():
        results.append(lend_hand(f"127.0.0.1:{port}", SHARED, "mock", progress=Silent()))

    lender = threading.Thread(target=lend, daemon=True)
    lender.start()
    # the lent hand waits for half a second, and pays into its channel before it leads far
    options = Options(scene, device="spacemouse", further=(f"remote:{port}",), baseline=False, duration=2.2)
    session = Session(options)
    session.prepare()
    ports = [servo.device_port for servo in (session.rig.servo, *session.rig.servo.led)]
    begun = [port.position.copy() for port in ports]
    done = session.run()
    lender.join(20.0)
    moved = [float(np.linalg.norm(port.position - x)) for port, x in zip(ports, begun, strict=True)]
    return done, results[0], moved


def test_a_remote_hand_and_a_spacemouse_lead_a_tool_each(hid, scene, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, SHARED)
    # a machine that stands still for a quarter of a second loses the hand at the other end, as it should
    for _ in range(4):
        done, hand, moved = lent(scene, hid)
        if done.status == FINISHED:
            break
    assert done.status == FINISHED, done.result["exit_reason"]
    assert hand.well and hand.ticks > 300 and min(moved) > 1e-3


def test_two_devices_of_one_maker_are_told_apart_by_their_serial_numbers(sigma, scene, tmp_path):
    sigma.script(FALCON, dhd_readings(down()))
    path = tmp_path / "two.h5"
    options = Options(scene, device="forcedimension:77", further=("forcedimension:1234",), baseline=False,
                      duration=1.5, record=path)  # fmt: skip
    done = run(options)
    assert done.status == FINISHED, done.result["exit_reason"]
    assert done.result["device"] == "Force Dimension 77 and Force Dimension 1234"
    columns = read_recording(path).columns
    for device, hand in ((FALCON, ""), (SIGMA, "_2")):
        rows, told = vectors(columns, "sent", hand), sigma.sent(device)[:, :3] @ AXES.T
        n = min(len(told), len(rows))
        assert n > 1000 and rows[-200:-60, 1].min() > 0.05
        assert told[:n] == pytest.approx(rows[:n], abs=ROUNDING)
    assert sigma.illegal() == 0 and not sigma.force(SIGMA) and not sigma.force(FALCON)


def test_one_device_is_not_led_by_two_hands(sigma, scene):
    one = "forcedimension:77"
    with pytest.raises(HapticsError, match=r"no device 77; there is .*, number 1, which does not"):
        run(Options(scene, device=one, further=(one,), baseline=False, duration=0.1))
    assert not sigma.open(FALCON)


def test_what_several_devices_say_is_counted_together_and_all_are_left():
    left = []

    class Driver:
        servo, scheduler = None, ""

        def __init__(self, name, **said):
            self.name, self.said = name, said

        def events(self):
            return self.said

        def join(self, timeout):
            return True

        def leave(self):
            left.append(self.name)

    first, *others = Driver("a", held=2), Driver("b", held=3, hot=1), Driver("c", hot=4)
    together = Together(first, others)
    assert together.events() == {"held": 5, "hot": 5}
    assert together.join(0.0) and left == ["b", "c"]


def test_what_cannot_stand_second_is_refused_in_words(scene):
    spec = load_scene(scene)
    for further, words in (
        (("touch",), "its own scheduler calls the servo of all hands, so name it first"),
        (("mock", "mock"), "this scene has 2 hands; name no more devices"),
        (("nonsense",), "there is no such device"),
    ):
        with pytest.raises(HapticsError, match=words):
            chosen(spec, Options(scene, device="mock"), further)
    with pytest.raises(HapticsError, match="one pointer leads one hand"):
        chosen(spec, Options(scene, device="mouse", window=True), ("mouse",))
    with pytest.raises(HapticsError, match="this scene has one hand"):
        chosen(load_scene("probe"), Options("probe", device="mock"), ("mock",))


def test_hands_that_nobody_names_are_simulated(scene):
    devices = chosen(load_scene(scene), Options(scene, device="mock"), ())
    assert [device.word for device in devices] == ["mock", "mock"]
