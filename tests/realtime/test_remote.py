"""A remote hand over real sockets on this machine: late and lost messages, farewell, silence, a whole run."""

import socket
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

from palpo.app.cli.hand import lend_hand
from palpo.app.cli.progress import Silent
from palpo.app.devices.table import choose
from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.config.load import load_scene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.backends.udp import SIZE, Channel, SceneThread, endpoint, make_hand_servo
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import ServoThread
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.remote import RHO, SILENCE, WORDS
from palpo.haptics.servo import Servo
from tests.libhd.bench import SENT, external, recorded_device, repeat, wait
from tests.servo.wall import make_wall

LONG = 20.0
HOME = "127.0.0.1"
ROUNDING = 1e-12


class Relay:
    """A network between the two ends: every message is late by `delay` [s] and now and then lost."""

    def __init__(self, scene_port, delay, loss):
        self.delay, self.loss, self.rng = delay, loss, np.random.default_rng(3)
        self.hand, self.scene = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.hand.bind((HOME, 0))
        self.scene.connect((HOME, scene_port))
        for one in (self.hand, self.scene):
            one.setblocking(False)
        self.port, self.caller, self.flying, self.over = self.hand.getsockname()[1], None, [], False
        self.lost = self.passed = 0
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.hand.close()
        self.scene.close()

    def take(self, one):
        while True:
            try:
                data, sender = one.recvfrom(4096)
            except OSError:
                return
            if one is self.hand:
                self.caller = sender
            if self.rng.random() < self.loss:
                self.lost += 1
            else:
                self.flying.append((time.monotonic() + self.delay, one, data))

    def run(self):
        while not self.over:
            for one in (self.hand, self.scene):
                self.take(one)
            now = time.monotonic()
            for _, one, data in [flight for flight in self.flying if flight[0] <= now]:
                self.passed += 1
                try:
                    self.scene.send(data) if one is self.hand else self.hand.sendto(data, self.caller)
                except OSError:
                    continue
            self.flying = [flight for flight in self.flying if flight[0] > now]
            time.sleep(1e-3)


def hand_of(channel, seconds=8.0):
    """A servo of a simulated Touch whose hand swings in and out of a wall at x = 0."""
    t = np.arange(round(seconds * 1000)) * 1e-3
    x = -0.008 * np.cos(2 * np.pi * t)
    device = make_mock(TOUCH, np.column_stack([x, 0 * t, 0 * t]))._replace(resolution=0.0)
    limits = make_limits(TOUCH.max_force, max_rate=5000.0, fades=AT_ONCE)
    return make_hand_servo(channel, device, limits, 1000.0)


def wall_of():
    return make_wall(external(), 300.0, limits=make_limits(3.3, fades=AT_ONCE))


def joined(delay=0.0, loss=0.0):
    """(relay, the scene's channel, the hand's channel), which have heard each other."""
    scene, hand = Channel(), Channel(TOUCH.max_force)
    relay = Relay(scene.listen(HOME, 0), delay, loss)
    hand.connect(HOME, relay.port)
    end = time.monotonic() + LONG
    while not (hand.answered() and scene.answered()):
        assert time.monotonic() < end
        hand.call()
        if scene.answered():
            scene.call()
        time.sleep(0.01)
    assert scene.largest == TOUCH.max_force
    return relay, scene, hand


@pytest.mark.parametrize(("delay", "loss"), [(0.0, 0.0), (0.05, 0.05), (0.2, 0.05)])
def test_over_real_sockets_the_hand_feels_the_wall_and_no_energy_is_made(delay, loss):
    relay, scene, hand = joined(delay, loss)
    wall = wall_of()
    held, alive = hand_of(hand)
    with relay, scene, hand:
        with ServoThread(held), SceneThread(wall.servo, scene):
            wait(wall.servo, 3500)
        # what really was at each end, after the last tick of both
        paid = hand.line.end.joules["paid"][0] + scene.line.end.joules["paid"][0]
        given = hand.line.end.joules["given"][0] + scene.line.end.joules["given"][0]
        own = hand.line.end.joules
        assert own["heard"][0] <= scene.line.end.joules["paid"][0]
    del alive
    assert given <= paid + ROUNDING
    assert own["given"][0] <= RHO * own["paid"][0] + own["heard"][0] + ROUNDING
    assert scene.line.end.joules["given"][0] <= (1.0 - RHO) * scene.line.end.joules["heard"][0] + ROUNDING
    assert np.abs(drain_rows(wall.servo)[:, SENT[0]]).max() > 0.3, "the wall was touched"
    assert own["paid"][0] > 2e-3, "and felt"
    if loss:
        assert relay.lost > 0


def test_the_scene_s_forces_are_those_of_its_lock_step_servo_tick_for_tick_beside_a_busy_thread():
    relay, scene, hand = joined()
    wall, over = wall_of(), threading.Event()
    held, alive = hand_of(hand)

    def burn():
        while not over.is_set():
            sum(range(1000))

    burner = threading.Thread(target=burn, daemon=True)
    burner.start()
    try:
        with relay, scene, hand, ServoThread(held), SceneThread(wall.servo, scene):
            wait(wall.servo, 1500)
    finally:
        over.set()
        burner.join()
    del alive
    rows = drain_rows(wall.servo)
    reference = wall_of()
    reference = Servo(reference.servo.state._replace(device=recorded_device(rows)))
    repeat(reference, rows)
    assert drain_rows(reference)[:, SENT] == pytest.approx(rows[:, SENT], abs=1e-14)


def test_a_hand_that_says_farewell_ends_the_scene_with_a_fade_and_a_sentence():
    relay, scene, hand = joined()
    wall = wall_of()
    held, alive = hand_of(hand)
    with relay, scene:
        thread = SceneThread(wall.servo, scene).start()
        with hand, ServoThread(held):
            wait(wall.servo, 700)
        assert thread.join(LONG)
        assert thread.reason == "the other end of the remote hand has ended"
    del alive
    sent = drain_rows(wall.servo)[:, SENT]
    assert not sent[-1].any() and np.abs(np.diff(sent, axis=0)).max() < 0.5


def test_a_hand_that_falls_silent_ends_the_scene_with_a_fade_and_a_sentence():
    relay, scene, hand = joined()
    wall = wall_of()
    held, alive = hand_of(hand)
    with scene, hand, ServoThread(held):
        with relay:
            thread = SceneThread(wall.servo, scene).start()
            wait(wall.servo, 700)
        assert thread.join(LONG)
        assert thread.reason == f"the other end of the remote hand has not been heard for {SILENCE:g} s"
        # and the hand's own force fades, for its frame is old
        end = time.monotonic() + LONG
        while held.sent.any():
            assert time.monotonic() < end
            time.sleep(1e-3)
    del alive
    assert not drain_rows(wall.servo)[-1, SENT].any()


def test_what_is_no_message_and_who_is_not_the_hand_is_not_heard():
    relay, scene, hand = joined()
    with relay, scene, hand, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind((HOME, 0))
        heard = scene.line.end.words["newest"][0]
        port = scene._socket.getsockname()[1]
        for noise in (b"", b"x", b"\xff" * SIZE, b"\x00" * (SIZE + 8), np.full(WORDS, np.nan).tobytes()):
            stranger.sendto(noise, (HOME, port))
            relay.scene.send(noise)
        time.sleep(0.05)
        assert scene.answered()
        # its own hand's last calls may still have come; none of the noise moved anything
        assert not scene.line.end.words["left"][0] and np.isfinite(scene.line.end.vector).all()
        assert scene.line.end.words["newest"][0] >= heard


def test_a_whole_run_is_touched_from_another_end_and_ends_both(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((HOME, 0))
        port = free.getsockname()[1]
    results = []

    def lend():
        results.append(lend_hand(f"{HOME}:{port}", "mock", progress=Silent()))

    lender = threading.Thread(target=lend, daemon=True)
    lender.start()
    done = run(Options("probe", device=f"remote:{port}", baseline=False, duration=3.0))
    lender.join(LONG)
    assert done.status == FINISHED and done.result["device"] == f"remote hand at {HOME}:{port}"
    assert results[0].well and results[0].reason == "the other end of the remote hand has ended"
    assert results[0].ticks > 1000 and results[0].joules["paid"] > 0.0


# ---- before


@pytest.mark.parametrize("text", ["", "x", "host:", "host:0", "70000", "host:-1"])
def test_a_place_that_is_none_is_refused_in_a_sentence(text):
    with pytest.raises(HapticsError, match=r"give PORT or HOST:PORT|name the port"):
        choose(Options("probe", device=f"remote:{text}"))


def test_a_place_is_this_machine_unless_another_is_named():
    assert endpoint("7420") == (HOME, 7420) and endpoint("0.0.0.0:7420") == ("0.0.0.0", 7420)


def test_a_port_that_is_taken_and_a_scene_that_is_not_there_are_sentences(monkeypatch):
    with Channel() as one, Channel() as two:
        port = one.listen(HOME, 0)
        with pytest.raises(HapticsError, match=f"no hand can call at {HOME}:{port}"):
            two.listen(HOME, port)
    monkeypatch.setattr("palpo.app.cli.hand.PATIENCE", 0.2)
    with pytest.raises(HapticsError, match="no scene has answered"):
        lend_hand(f"{HOME}:{port}", "mock", progress=Silent())


def test_a_hand_that_nobody_waits_for_any_more_is_given_up():
    device = choose(Options("probe", device="remote:7421"))
    heard = []
    device.heard = heard.append
    device.given_up = True
    with ExitStack() as stack, pytest.raises(HapticsError, match="no hand has called"):
        device.open(load_scene("probe"), stack)
    assert "palpo hand HOST:7421" in heard[0]
