"""A servo that stood still: the force that its device held fades, nothing jumps, it comes back slowly."""

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.haptics import silence
from palpo.haptics.backends.guardian import HUNG, LOOK, LOST, RESTS, guard
from palpo.haptics.clutch import CATCH_UP_SPEED
from palpo.haptics.control import request_pause
from palpo.haptics.flags import STOOD_STILL
from palpo.haptics.limiter import LET_GO, LONGEST_LATENESS
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.polled import PATIENCE
from palpo.haptics.servo import make_servo
from palpo.haptics.silence import BLIND, Silence
from palpo.haptics.step import servo_step
from palpo.haptics.summary import servo_summary
from palpo.haptics.workspace import make_workspace
from palpo.physics.exchange.port import OK, make_port
from tests.servo.hand import columns, external
from tests.servo.wall import make_wall

ROOT = Path(__file__).parents[2]
T, K = 1e-3, 600.0
DEPTH = 2e-3
PRESSED = (DEPTH, 0.0, 0.0)
FADE, RECOVERY = 50, 250
"""Ticks of the limits' own fades."""
LIMITS = make_limits(1e9, max_rate=1e15, fades=AT_ONCE)
LONG = 3_000_000_000
"""Lateness of a program that was stopped for 3 s [ns]."""


def go(servo, points, late=0):
    """A tick at each point (n, 3) [m], the first one so late [ns]; the rows."""
    for point in np.atleast_2d(points):
        servo.device_port.position[:] = point
        servo_step(servo, late, 0)
        late = 0
    return columns(servo)


def pressed(scale=1.0, **options):
    """A hand held in a wall at full gain."""
    wall = make_wall(external(), K, limits=LIMITS, workspace=make_workspace(scale), **options)
    go(wall.servo, [np.array(PRESSED) / scale] * 3)
    return wall


def after(wall, point, ticks=400, late=LONG):
    """The rows after a standstill in which the hand went to a point (3,) [m] and rests there."""
    return go(wall.servo, [point] * ticks, late)


def test_the_force_fades_and_comes_back_as_slowly_as_after_a_wait():
    wall = pressed()
    rows = after(wall, PRESSED)
    gain = np.r_[1.0 - np.arange(1, FADE + 1) / FADE, np.minimum(np.arange(1, 351) / RECOVERY, 1.0)]
    np.testing.assert_allclose(rows["sent_x"], -K * DEPTH * gain, atol=1e-12)
    assert (rows["flags"] & STOOD_STILL > 0).tolist() == [True] * FADE + [False] * 350
    assert servo_summary(wall.servo)["limits"]["standstills"] == 1


def test_a_second_standstill_in_the_fade_does_not_prolong_it_and_one_after_it_fades_anew():
    wall = pressed()
    first = after(wall, PRESSED, FADE // 2)
    rest = after(wall, PRESSED, FADE // 2)
    assert rest["sent_x"][-1] == 0.0 and (np.diff(np.r_[first["sent_x"], rest["sent_x"]]) > 0.0).all()
    risen = after(wall, PRESSED, RECOVERY // 2, late=0)["sent_x"][-1]
    again = after(wall, PRESSED, FADE // 2)["sent_x"]
    assert 0.0 > again[0] > risen and again[-1] == 0.0
    assert servo_summary(wall.servo)["limits"]["standstills"] == 2


def test_a_busy_machine_is_no_standstill():
    wall = pressed()
    rows = after(wall, PRESSED, 10, late=LONGEST_LATENESS)
    np.testing.assert_array_equal(rows["sent_x"], -K * DEPTH)
    assert LONGEST_LATENESS == 50_000_000


def test_the_first_tick_of_a_run_has_none_to_be_late_after():
    wall = make_wall(external(), K, limits=LIMITS)
    rows = after(wall, PRESSED, 3)
    np.testing.assert_array_equal(rows["sent_x"], -K * DEPTH)


def test_a_standstill_in_a_pause_is_none():
    wall = pressed()
    request_pause(wall.servo, True)
    after(wall, PRESSED, 60, late=0)
    after(wall, PRESSED, 5)
    request_pause(wall.servo, False)
    rows = after(wall, PRESSED, 300, late=0)
    assert not (rows["flags"] & STOOD_STILL).any()
    assert rows["sent_x"][-1] == -K * DEPTH


def fallen(rows):
    """The rows, and after how many the force is zero: the fade, or one where the hand has drawn all of it."""
    flagged = rows["flags"] & STOOD_STILL > 0
    n = int(flagged.sum())
    assert 0 < n <= FADE and flagged[:n].all()
    return rows, n


places = st.tuples(*[st.floats(-0.05, 0.05)] * 3)


@given(places, st.sampled_from([1.0, 1.5]))
@settings(deadline=None, max_examples=40)
def test_wherever_the_hand_went_meanwhile_the_force_only_falls_and_its_direction_stays(place, scale):
    wall = pressed(scale)
    before = scale * K * DEPTH
    rows, n = fallen(after(wall, place))
    size = -rows["sent_x"]
    assert size[0] <= before * (1.0 - 1.0 / FADE) + 1e-12 and size[n - 1] == 0.0
    assert (np.diff(size[:n]) <= 1e-12).all()
    assert np.diff(size[n - 1 :]).max() <= before / RECOVERY + 1e-12
    np.testing.assert_allclose(rows["sent"][:, 1:], 0.0, atol=1e-12)


@given(places, st.sampled_from([1.0, 1.5]))
@settings(deadline=None, max_examples=40)
def test_wherever_the_hand_went_meanwhile_the_tool_does_not_jump_there(place, scale):
    """It yields to what the hand has drawn, at most the way of a spring of LET_GO, then catches up slowly."""
    wall = pressed(scale)
    start = wall.servo.port.position.copy()
    rows, n = fallen(after(wall, place))
    steps = np.linalg.norm(np.diff(np.vstack([start, rows["p"]]), axis=0), axis=1)
    assert steps[:n].sum() <= scale * scale * K * DEPTH / LET_GO + 1e-12
    assert steps[n:].max() <= CATCH_UP_SPEED * T + 1e-12


def test_a_hand_that_was_pushed_in_meanwhile_is_not_thrown_back():
    wall = pressed()
    rows = after(wall, (0.03, 0.0, 0.0))
    np.testing.assert_allclose(rows["sent_x"][-1], -K * DEPTH, rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1.5])
@pytest.mark.parametrize("seed", range(12))
def test_however_the_hand_moves_and_the_servo_stands_still_it_gives_no_more_than_it_takes(seed, scale):
    """But for the standstill's own tick, in which the device itself holds the force, and for what a sampled
    spring leaks, K step^2 / 2 a tick; once a standstill that of the spring that lets go."""
    rng = np.random.default_rng(seed)
    wall = make_wall(external(), K, limits=LIMITS, workspace=make_workspace(scale))
    speed = 0.2
    x, work, leak, last = np.array([-1e-3, 0.0, 0.0]), 0.0, 0.0, None
    for k in range(60):
        target = np.append(rng.uniform(-4e-3, 4e-3), rng.uniform(-2e-3, 2e-3, 2)) / scale
        n = max(1, round(np.linalg.norm(target - x) * scale / (speed * T)))
        late = LONG if k % 3 == 2 else 0
        if late:
            x = x + rng.uniform(-0.02, 0.02, 3)
            leak += 0.5 * LET_GO * (speed * T) ** 2
        points = x + np.arange(1, n + 1)[:, None] / n * (target - x)
        rows = go(wall.servo, points, late)
        for i, (point, sent) in enumerate(zip(points, rows["sent"], strict=True)):
            if last is not None and not (late and i == 0):
                step = point - last[0]
                work += last[1] @ step
                leak += 0.5 * scale**2 * K * step @ step * last[1].any()
                assert work <= leak + 1e-12
            last = point, sent
        x = target


def test_all_hands_of_a_servo_stand_still_together_whatever_the_scene_commands():
    led = make_servo(0, 0, make_port(), external(), LIMITS)
    wall = make_wall(external(), K, limits=LIMITS, led=[led])
    led.port.status["code"], led.port.force[1] = OK, 1.0
    wall.servo.device_port.position[:] = PRESSED
    for _ in range(3):
        servo_step(wall.servo, 0, 0)
    assert led.sent[1] == 1.0
    led.port.force[0] = 5.0
    for k in range(FADE):
        assert led.sent[1] == pytest.approx(1.0 - k / FADE)
        servo_step(wall.servo, LONG if k == 0 else 0, 0)
        assert led.sent[0] == 0.0
    assert led.sent[1] == wall.servo.sent[0] == 0.0


# ---- who watches


class Time:
    """A clock that a test moves."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(silence.time, "monotonic", lambda: self.now)


def test_silence_is_what_somebody_has_listened_to(monkeypatch):
    world = Time(monkeypatch)
    heard = Silence()
    for count in range(1, 4):
        world.now += 5.0
        assert heard.after(count) == 0.0
    # nobody listened for an hour: the program was stopped as a whole
    world.now += 3600.0
    assert heard.after(3) == BLIND < PATIENCE
    for k in range(1, 100):
        world.now += 0.01
        assert heard.after(3) == pytest.approx(BLIND + 0.01 * k)
    assert heard.after(4) == 0.0


class Ward(Time):
    """A guardian's world: at each look the heart may beat, and `over` comes after some looks."""

    def __init__(self, monkeypatch, beats, frees=True, looks=200):
        super().__init__(monkeypatch)
        self.heart, self.frees, self.done = np.zeros(1, np.int64), frees, []
        self._beats, self._looks = itertools.chain(beats, itertools.repeat(None)), looks
        self.begun = self.now
        guard(self.heart, self, self.take, lambda: self.done.append(("end", self.now - self.begun)))

    def wait(self, seconds):
        self.now += seconds
        self._looks -= 1
        beat = next(self._beats)
        if callable(beat):
            beat(self)
        elif beat is not None:
            self.heart[0] = beat
        return self._looks <= 0

    def take(self):
        self.done.append(("take", self.now - self.begun))
        return self.frees


def test_a_heart_that_beats_is_left_alone(monkeypatch):
    assert Ward(monkeypatch, range(1, 200)).done == []


def test_a_heart_that_has_not_begun_or_rests_is_left_alone(monkeypatch):
    assert Ward(monkeypatch, []).done == []
    assert Ward(monkeypatch, [1, 2, RESTS]).done == []


def test_a_heart_that_stops_has_its_device_taken_once(monkeypatch):
    ((what, when),) = Ward(monkeypatch, [1, 2, 3]).done
    assert what == "take"
    assert 3 * LOOK + HUNG <= when + 1e-9 <= 3 * LOOK + HUNG + 2 * LOOK


def test_a_program_that_keeps_its_device_is_ended_later(monkeypatch):
    (taken, _), (ended, when) = Ward(monkeypatch, [1, 2, 3], frees=False).done
    assert (taken, ended) == ("take", "end")
    assert 3 * LOOK + LOST <= when + 1e-9 <= 3 * LOOK + LOST + 2 * LOOK


def test_a_heart_that_beats_again_in_time_ends_nothing(monkeypatch):
    pause = [None] * round(0.5 * (HUNG + LOST) / LOOK)
    ward = Ward(monkeypatch, [1, *pause, *range(2, 50)], frees=False, looks=80)
    assert [what for what, _ in ward.done] == ["take"]


def test_a_guardian_that_slept_with_its_machine_takes_nothing(monkeypatch):
    def sleep(ward):
        ward.now += 3600.0

    assert Ward(monkeypatch, [1, 2, sleep, *range(3, 50)], looks=50).done == []


ELSEWHERE = """
import time
from palpo.haptics import clock
scratch = clock.make_scratch()
now = clock.now_ns(scratch)
clock.sleep_until(now + 2_000_000, scratch)
print(now - time.monotonic_ns(), clock.now_ns(scratch) >= now + 2_000_000, clock.WAITER)
"""
SLEPT = 100_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have one monotonic clock")
def test_the_servo_s_clock_counts_the_time_that_the_machine_slept():
    """In a time namespace of Linux, which looks to a program like a machine that has slept for so long."""
    namespace = ["unshare", "--user", "--map-root-user", "--time", "--boottime", str(SLEPT), "--fork"]
    if shutil.which("unshare") is None or subprocess.run([*namespace, "true"], check=False).returncode:
        pytest.skip("this system lets nobody make a time namespace")
    command = [*namespace, sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    ahead, kept, waiter = done.stdout.split()
    assert int(ahead) * 1e-9 == pytest.approx(SLEPT, abs=60.0)
    assert (kept, waiter) == ("True", "clock_nanosleep")
