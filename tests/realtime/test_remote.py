"""A remote hand over real sockets on this machine: who is heard, delay and loss, farewell, whole runs."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

from palpo.app.cli.hand import lend_hand, print_hand
from palpo.app.cli.progress import Silent
from palpo.app.devices.device import KEY_VARIABLE
from palpo.app.devices.table import choose
from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.config.load import load_scene
from palpo.haptics.backends.channel import HAND, SCENE, Channel, SceneThread, endpoint
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.backends.sealing import new_key, sealing_functions, secret_of
from palpo.haptics.backends.udp import SIZE, listen, make_hand_servo, make_line, send_datagram
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import ServoThread
from palpo.haptics.errors import HapticsError
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.remote import JUMP, SILENCE
from palpo.haptics.servo import Servo
from tests.libhd.bench import SENT, external, recorded_device, repeat, wait
from tests.servo.wall import make_wall

LONG = 60.0
HOME = "127.0.0.1"
SHARED = "a key of these tests"
ROUNDING = 1e-12


class Relay:
    """A network between the two ends: every datagram is late by `delay` [s] and now and then lost."""

    def __init__(self, scene_port, delay, loss):
        self.delay, self.loss, self.rng = delay, loss, np.random.default_rng(3)
        self.hand, self.scene = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.hand.bind((HOME, 0))
        self.scene.connect((HOME, scene_port))
        for one in (self.hand, self.scene):
            one.setblocking(False)
        self.port, self.caller, self.flying, self.over = self.hand.getsockname()[1], None, [], False
        self.lost = self.passed = 0
        self.to_scene, self.to_hand = [], []
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
                (self.to_scene if one is self.hand else self.to_hand).append(data)
                try:
                    self.scene.send(data) if one is self.hand else self.hand.sendto(data, self.caller)
                except OSError:
                    continue
            self.flying = [flight for flight in self.flying if flight[0] > now]
            time.sleep(1e-3)


def hand_of(channel, seconds=8.0):
    """A servo of a simulated Touch, its encoder and friction included, that swings in and out of a wall."""
    t = np.arange(round(seconds * 1000)) * 1e-3
    x = -0.008 * np.cos(2 * np.pi * t)
    device = make_mock(TOUCH, np.column_stack([x, 0 * t, 0 * t]))
    limits = make_limits(TOUCH.max_force, fades=AT_ONCE)
    return make_hand_servo(channel.line, device, limits, 1000.0)


def wall_of():
    return make_wall(external(), 300.0, limits=make_limits(3.3, fades=AT_ONCE))


class Joined:
    """Both ends, which know each other; `running` starts both servos, which have ended before sockets close.

    A servo that outlives its socket would read and write the next one of the same descriptor.
    """

    def __init__(self, delay=0.0, loss=0.0):
        self.scene = Channel(SCENE, SHARED)
        self.hand = Channel(HAND, SHARED, TOUCH.max_force, TOUCH.resolution)
        self.relay = Relay(self.scene.listen(HOME, 0), delay, loss)
        self.wall = wall_of()
        self.held, self.alive = hand_of(self.hand)
        self.hand.call(HOME, self.relay.port)
        assert self.scene.join(LONG) and self.hand.join(LONG)
        assert self.scene.largest == TOUCH.max_force
        self.hand_thread, self.scene_thread = ServoThread(self.held), None
        self.hand_thread.prepare()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop_hand()
        if self.scene_thread is not None:
            self.scene_thread.stop()
            assert self.scene_thread.join(LONG)
        self.relay.__exit__()
        self.scene.close()
        self.hand.close()

    def start_hand(self):
        self.hand.begin()
        self.hand_thread.start()

    def running(self):
        beginner = threading.Thread(target=self.start_hand, daemon=True)
        beginner.start()
        self.scene_thread = SceneThread(self.wall.servo, self.scene).start()
        beginner.join(LONG)
        return self.scene_thread

    def stop_hand(self):
        self.hand_thread.stop()
        self.hand_thread.join(LONG)


@pytest.mark.parametrize(("delay", "loss"), [(0.005, 0.0), (0.05, 0.05), (0.2, 0.2)])
def test_over_real_sockets_the_hand_feels_the_wall_and_no_energy_is_made(delay, loss):
    with Joined(delay, loss) as both:
        thread = both.running()
        wait(both.wall.servo, 3500)
        thread.stop()
        assert thread.join(LONG)
        both.stop_hand()
        own, other = both.hand.line.end.joules, both.scene.line.end.joules
        assert own["granted"][0] <= other["passed"][0]
        assert other["granted"][0] <= own["passed"][0]
        assert own["given"][0] <= own["paid"][0] + ROUNDING
        assert own["given"][0] + other["given"][0] <= own["paid"][0] + other["paid"][0] + ROUNDING
        assert np.abs(drain_rows(both.wall.servo)[:, SENT[0]]).max() > 0.3, "the wall was touched"
        assert own["paid"][0] > 2e-3, "and felt"
        if loss:
            assert both.relay.lost > 0


def test_the_scene_s_forces_are_those_of_its_lock_step_servo_tick_for_tick_beside_a_busy_thread():
    over = threading.Event()

    def burn():
        while not over.is_set():
            sum(range(1000))

    with Joined() as both:
        burner, interval = threading.Thread(target=burn, daemon=True), sys.getswitchinterval()
        sys.setswitchinterval(1e-5)  # the network of this test is a thread of Python too, and must keep up
        burner.start()
        try:
            thread = both.running()
            wait(both.wall.servo, 1500)
            thread.stop()
            assert thread.join(LONG)
            both.stop_hand()
        finally:
            over.set()
            sys.setswitchinterval(interval)
            burner.join()
        rows = drain_rows(both.wall.servo)
    reference = wall_of()
    reference = Servo(reference.servo.state._replace(device=recorded_device(rows)))
    repeat(reference, rows)
    assert drain_rows(reference)[:, SENT] == pytest.approx(rows[:, SENT], abs=1e-14)


def test_a_hand_that_says_farewell_ends_the_scene_with_a_fade_and_a_sentence():
    with Joined() as both:
        thread = both.running()
        wait(both.wall.servo, 700)
        both.stop_hand()
        both.hand.close()
        assert thread.join(LONG)
        assert thread.reason == "the other end of the remote hand has ended"
        sent = drain_rows(both.wall.servo)[:, SENT]
    assert not sent[-1].any() and np.abs(np.diff(sent, axis=0)).max() < 1e-3 * JUMP + ROUNDING


def test_a_scene_that_says_farewell_ends_the_hand():
    with Joined() as both:
        thread = both.running()
        wait(both.wall.servo, 700)
        thread.stop()
        assert thread.join(LONG)
        assert not both.hand.gone
        both.scene.close()
        end = time.monotonic() + LONG
        while not both.hand.gone or both.held.sent.any():
            assert time.monotonic() < end
            time.sleep(1e-3)
        assert both.hand.lost == "the other end of the remote hand has ended"
        both.stop_hand()


def test_a_network_that_falls_silent_ends_both_with_a_fade_and_a_sentence():
    with Joined() as both:
        thread = both.running()
        wait(both.wall.servo, 700)
        both.relay.loss = 1.0
        assert thread.join(LONG)
        silent = f"the other end of the remote hand has not been heard for {SILENCE:g} s"
        assert thread.reason == silent
        assert not drain_rows(both.wall.servo)[-1, SENT].any()
        # and the hand's own force fades, for its frame is old
        end = time.monotonic() + LONG
        while both.held.sent.any() or not both.hand.gone:
            assert time.monotonic() < end
            time.sleep(1e-3)
        assert both.hand.lost == silent
        both.stop_hand()


# ---- who is heard


def test_who_has_not_the_key_is_not_heard_and_keeps_nobody_out():
    with Channel(SCENE, SHARED) as scene, Channel(HAND, "another key, as long", 3.3) as stranger:
        port = scene.listen(HOME, 0)
        stranger.call(HOME, port)
        assert not stranger.join(0.5) and not scene.join(0.2)
        with Channel(HAND, SHARED, 3.3) as hand:
            hand.call(HOME, port)
            assert hand.join(LONG) and scene.join(LONG)
            assert not stranger.join(0.2)


@pytest.mark.parametrize("largest", [-5.0, 0.0, float("nan"), float("inf"), 1e9])
def test_a_hand_that_names_no_force_is_not_led_by(largest):
    with Channel(SCENE, SHARED) as scene, Channel(HAND, SHARED, 3.3) as hand:
        hand.largest = largest
        hand.call(HOME, scene.listen(HOME, 0))
        assert not scene.join(0.4)


def test_what_was_recorded_of_another_session_is_not_heard_in_this_one():
    with Joined() as both:
        thread = both.running()
        wait(both.wall.servo, 300)
        thread.stop()
        assert thread.join(LONG)
        both.stop_hand()
        both.hand.close()
        time.sleep(0.05)
        recorded = list(both.relay.to_scene)
    assert any(len(data) == SIZE for data in recorded) and any(len(data) != SIZE for data in recorded)
    with Channel(SCENE, SHARED) as scene, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as replay:
        port = scene.listen(HOME, 0)
        for data in recorded:
            replay.sendto(data, (HOME, port))
        assert not scene.join(0.5)
        # not even by whoever sits where the hand's datagrams come from
        with Joined() as both:
            both.running()
            wait(both.wall.servo, 200)
            before = int(both.scene.line.end.words["newest"][0])
            for data in recorded:
                both.relay.scene.send(data)
            wait(both.wall.servo, 400)
            # a farewell is among them
            assert int(both.scene.line.end.words["newest"][0]) > before and not both.scene.gone
            both.stop_hand()


def test_noise_changes_nothing_from_the_hand_s_own_place_or_from_a_stranger_s():
    rng = np.random.default_rng(5)
    with Joined() as both, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        both.running()
        wait(both.wall.servo, 200)
        port = both.scene._socket.getsockname()[1]
        seen = both.relay.to_scene[-1]
        noise = [b"", b"x", b"\xff" * SIZE, b"\x00" * (SIZE + 8), rng.bytes(SIZE)]
        # one bit of a datagram of this very session, its count moved on
        for place in (0, 7, 8, SIZE // 2, SIZE - 1):
            turned = bytearray(seen)
            turned[place] ^= 64
            noise.append(bytes(turned))
        for data in noise:
            stranger.sendto(data, (HOME, port))
            both.relay.scene.send(data)
        at = int(both.scene.line.end.words["newest"][0])
        wait(both.wall.servo, 400)
        words, end = both.scene.line.end.words, both.scene.line.end
        assert at <= words["newest"][0] < at + 5000 and not words["left"][0]
        assert np.isfinite(end.vector).all() and np.abs(end.vector).max() < 0.02
        both.stop_hand()


def test_a_refused_datagram_hides_none_that_waits():
    """What the other end sent before it closed is behind the error of what was sent to it since."""
    here, there = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    with here, there:
        for one in (here, there):
            one.bind((HOME, 0))
            one.setblocking(False)
        here.connect(there.getsockname())
        there.connect(here.getsockname())
        lines = [make_line(one.fileno(), 3.3, 0.0, 1e-3, sealing_functions()) for one in (here, there)]
        for line, order in zip(lines, (1, -1), strict=True):
            line.keys[:] = np.arange(64, dtype=np.uint8).reshape(2, 32)[::order]
        send_datagram(lines[1], np.zeros(3), lines[1].end.turn, 0, True)
        there.close()
        here.send(b"nobody listens to this")
        time.sleep(0.2)  # until both are there
        listen(lines[0])
        assert lines[0].end.words["left"][0]


# ---- whole runs


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((HOME, 0))
        return free.getsockname()[1]


def test_a_whole_run_is_touched_from_another_end_and_ends_both(monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, SHARED)
    port, results = free_port(), []

    def lend():
        results.append(lend_hand(f"{HOME}:{port}", SHARED, "mock", progress=Silent()))

    lender = threading.Thread(target=lend, daemon=True)
    lender.start()
    done = run(Options("probe", device=f"remote:{port}", baseline=False, duration=3.0))
    lender.join(LONG)
    assert done.status == FINISHED and done.result["device"] == f"remote hand at {HOME}:{port}"
    assert results[0].well and results[0].reason == "the other end of the remote hand has ended"
    assert results[0].ticks > 1000 and results[0].joules["paid"] > 0.0


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_two_plain_commands_find_each_other_by_the_key_that_is_said_and_each_says_when_the_other_goes(ending):
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if name != KEY_VARIABLE}
    palpo = [sys.executable, "-m", "palpo"]
    common = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
    scene = subprocess.Popen([*palpo, "run", "probe", "--device", f"remote:{port}", "--headless"], **common)
    told, said = "", ""
    try:
        while not (key := re.search(r"--key (\S+)", told)):
            told += scene.stdout.readline()
            assert scene.poll() is None, told
        calling = [*palpo, "hand", f"{HOME}:{port}", "--key", key[1], "--device", "mock"]
        hand = subprocess.Popen(calling, **common)
        try:
            while "at the other end" not in said:
                said += hand.stdout.readline()
                assert hand.poll() is None, said
            time.sleep(1.0)
            hand.send_signal(ending)
            told += scene.communicate(timeout=LONG)[0]
        finally:
            hand.kill()
            hand.wait()
    finally:
        scene.kill()
        scene.wait()
    ended = "has ended" if ending == signal.SIGINT else f"has not been heard for {SILENCE:g} s"
    assert f"the other end of the remote hand {ended}" in " ".join(told.split()), told


# ---- before


@pytest.mark.parametrize("text", ["", "x", "host:", "host:0", "70000", "host:-1"])
def test_a_place_that_is_none_is_refused_in_a_sentence(text):
    with pytest.raises(HapticsError, match=r"give PORT or HOST:PORT|name the port"):
        choose(Options("probe", device=f"remote:{text}"))


def test_a_place_is_this_machine_unless_another_is_named():
    assert endpoint("7420") == (HOME, 7420) and endpoint("0.0.0.0:7420") == ("0.0.0.0", 7420)


def test_a_key_that_is_missing_or_could_be_guessed_is_a_sentence(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    with pytest.raises(HapticsError, match="--key: give the key"):
        print_hand("7420", None, "mock", None)
    with pytest.raises(HapticsError, match="fewer than 16 letters"):
        secret_of("short")
    assert new_key() != new_key() and len(secret_of(new_key())) == 32
    assert secret_of(f" {SHARED}\n") == secret_of(SHARED)


def test_a_port_that_is_taken_and_a_scene_that_is_not_there_are_sentences(monkeypatch):
    with Channel(SCENE, SHARED) as one, Channel(SCENE, SHARED) as two:
        port = one.listen(HOME, 0)
        with pytest.raises(HapticsError, match=f"no hand can call at {HOME}:{port}"):
            two.listen(HOME, port)
    monkeypatch.setattr("palpo.app.cli.hand.PATIENCE", 0.2)
    with pytest.raises(HapticsError, match="no scene has answered"):
        lend_hand(f"{HOME}:{port}", SHARED, "mock", progress=Silent())


def test_a_hand_that_nobody_waits_for_any_more_is_given_up(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    device = choose(Options("probe", device="remote:7421"))
    heard = []
    device.heard = heard.append
    device.given_up = True
    with ExitStack() as stack, pytest.raises(HapticsError, match="no hand has called"):
        device.open(load_scene("probe"), stack)
    assert "palpo hand HOST:7421 --key" in heard[0]
