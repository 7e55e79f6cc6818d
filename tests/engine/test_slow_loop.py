"""A slow loop's frames: numbered, taken once, aged by their own measure; steps and ticks by turns."""

import numpy as np
import pytest

from palpo.physics.engine.lock_step import LOOK, LockedLoops
from palpo.physics.engine.servo import make_ticks
from palpo.physics.engine.slow_loop import SettingsLoop, SlowLoop
from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.frames import LEAST, make_frames, take_frame, waits
from palpo.physics.numerics.kernels import kernel

DT, RATIO = 1e-3, 10


@kernel
def take(frames, j, ticks):
    """Slot of loop j's newest frame, or -1."""
    return take_frame(frames, j, ticks[0])


@kernel
def is_late(frames, j, now):
    """Whether the servo has to wait for loop j."""
    return waits(frames, j, now)


class Noted(SlowLoop):
    """Notes the ticks at which it makes steps and fills frames."""

    asks = True

    def __init__(self, frames, ticks, ratio=RATIO, number=0):
        super().__init__(frames, ticks, ratio, DT, number)
        self.made, self.filled, self.wanted = [], [], False

    def make(self):
        self.made.append(self.known())
        return self.known()

    def fill(self, slot, frame_tick):
        self.filled.append((self.known(), self.tick))
        return self.tick if frame_tick is None else frame_tick

    def wants_step(self):
        return self.wanted


def by_turns(*ratios, latency="period", durations=(1.0,)):
    """Loops of these ratios beside a servo that takes their frames, and the spans of its ticks."""
    frames, ticks, spans = make_frames(*ratios), make_ticks(), []
    loops = [Noted(frames, ticks, ratio, j) for j, ratio in enumerate(ratios)]

    def make(n):
        spans.append(n)
        for _ in range(n):
            ticks["calls"] += 1
            for j in range(len(loops)):
                take(frames, j, ticks)
            ticks["done"] += 1

    return LockedLoops(loops, latency, durations), loops, make, spans


def test_a_frame_comes_into_force_once_and_tells_its_loop_when():
    frames, ticks = make_frames(RATIO), make_ticks()
    loop = Noted(frames, ticks)
    assert loop.in_force() and take(frames, 0, ticks) == -1
    loop.step()
    slot = loop.slot
    loop.publish(0)
    assert not loop.in_force() and loop.taken_at() == -1 and loop.slot != slot
    ticks["calls"], ticks["done"] = 8, 5
    assert take(frames, 0, ticks) == slot and take(frames, 0, ticks) == -1
    assert loop.in_force() and loop.taken_at() == 7 and loop.followed_from == 6
    assert frames.in_force["frame"][0] == loop.frame_id == 1


def test_a_frame_is_waited_for_as_long_after_it_came_as_its_loop_says():
    frames, ticks = make_frames(RATIO), make_ticks()
    loop = Noted(frames, ticks)
    ticks["done"] = 40
    loop.set_budget(Budget(2 * RATIO))
    loop.publish(0)
    take(frames, 0, ticks)
    patience = round(LEAST / DT)
    assert frames.in_force["stretch"][0] == RATIO
    assert not is_late(frames, 0, 40 + patience - 1) and is_late(frames, 0, 40 + patience)
    assert frames.in_force["waited"][0] == 1
    loop.publish(0)
    assert not is_late(frames, 0, 40 + patience)


def test_nobody_waits_for_settings():
    frames, ticks, told = make_frames(0), make_ticks(), []
    loop = SettingsLoop(frames, ticks, RATIO, DT, "these", lambda slot, values: told.append((slot, values)))
    slot = loop.slot
    assert loop.step() == -1
    loop.publish(0)
    assert told == [(slot, "these")] and take(frames, 0, ticks) == slot
    assert not is_late(frames, 0, 10**9) and frames.in_force["patience"][0] == 0


def test_a_frame_is_felt_a_period_after_its_step_began_or_at_once():
    lock, (loop,), make, _ = by_turns(RATIO)
    lock.advance(4 * RATIO, make)
    assert loop.made == [0, *range(0, 4 * RATIO, RATIO)]
    assert loop.filled == [(k, k) for k in range(0, 4 * RATIO, RATIO)]
    lock, (loop,), make, _ = by_turns(RATIO, latency="none")
    lock.advance(4 * RATIO, make)
    assert loop.made == [k for k, _ in loop.filled] == [*range(0, 4 * RATIO, RATIO)]


@pytest.mark.parametrize("spans", [[40], [1] * 40, [7, 3, 30]])
def test_steps_do_not_depend_on_the_spans_that_are_asked_for(spans):
    lock, loops, make, _ = by_turns(RATIO, 2 * RATIO)
    for span in spans:
        lock.advance(span, make)
    whole, others, all_at_once, _ = by_turns(RATIO, 2 * RATIO)
    whole.advance(40, all_at_once)
    for one, other in zip(loops, others, strict=True):
        assert one.made == other.made and one.filled == other.filled
    assert lock.tick == lock.made == 40


def test_steps_that_take_long_follow_each_other_and_short_ones_wait_to_be_due():
    lock, (loop,), make, _ = by_turns(RATIO, durations=(2.5,))
    lock.advance(100, make)
    assert np.all(np.diff(loop.made[1:]) == 25)
    lock, (loop,), make, _ = by_turns(RATIO, durations=(0.5,))
    lock.advance(100, make)
    assert np.all(np.diff(loop.made[1:]) == RATIO)
    assert np.all(np.diff([tick for _, tick in loop.filled[1:]]) == RATIO)


def test_a_loop_that_is_done_makes_the_step_that_it_wants_within_a_look():
    lock, (loop,), make, spans = by_turns(RATIO, durations=(0.1,))
    lock.advance(3, make)
    loop.wanted = True
    lock.advance(LOOK, make)
    assert loop.made[-1] <= 3 + LOOK and len(loop.made) == 3
    loop.asks, loop.wanted = False, False
    lock.advance(100, make)
    assert max(spans) > LOOK
