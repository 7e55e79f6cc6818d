"""The slow loop: slow steps in their own thread, one a slow period, beside the servo.

A scene may have several slow loops, each with a thread, a rate and a pace of its own. The first one leads: it
makes the changes that an operator asks for, keeps the hand's path ahead, and leaves the picture.

A step begins when the servo has adopted the frame of the one before, so that each frame is felt and a replay
needs only the ticks at which steps begin and frames appear, and what each step was allowed to cost
(palpo.app.runtime.pacing). A step that takes longer than its period is an overrun; the next begins at once.
So does one that the physics asks for before it is due.
"""

import math
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import Protocol

import numpy as np

from palpo.app.cli.refusal import account
from palpo.app.runtime.live import SLEW, changed, way_to
from palpo.app.runtime.pacing import Pacer
from palpo.app.runtime.rigs import Rig
from palpo.haptics.control import finished_reason, tick_count
from palpo.haptics.drivers import servo_run
from palpo.haptics.reasons import RUNNING
from palpo.haptics.recording import Recorder
from palpo.haptics.row import Column
from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.durations import Durations
from palpo.physics.exchange.snapshot import COUNTERS, OVERFLOW
from palpo.physics.numerics.compilations import COMPILATIONS


class Clock(Protocol):
    """What tells the time to a loop."""

    def now(self) -> float:
        """Seconds since any moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait at least so long."""
        ...


class HandPath(Protocol):
    """What a hand follows, read by the servo."""

    def keep(self, tick: int) -> None:
        """Fill what the servo may ask for soon, now that `tick` ticks are done."""
        ...


class WallClock:
    """The machine's."""

    def now(self) -> float:
        """See Clock."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """See Clock."""
        time.sleep(seconds)


PROBES = 10
"""Slow steps that are measured before a run."""
LOOK = 2e-3
"""Seconds between two looks at whether a step is asked for before it is due."""
NAP = 2e-4
"""Seconds between two looks at whether the servo has adopted a frame."""

SCHEDULE = (
    Column("step", "1", "number of the slow step, from 0", "i8"),
    Column("frame", "1", "id of the frame that it published", "i8"),
    Column("begin_tick", "1", "servo ticks that the tool state of its L1 had behind it, -1: none", "i8"),
    Column("until_tick", "1", "the full bodies contain the forces of the scene's ticks before it", "i8"),
    Column("present_tick", "1", "the frame itself contains the forces of the scene's ticks before it", "i8"),
    Column("period_ticks", "1", "slow period that the step had", "i8"),
    Column("columns_share", "1", "share of the scene's columns that it had", "f8"),
    Column("contacts_share", "1", "share of the room for candidate contacts that it had", "f8"),
)
OF_SEVERAL = (
    Column("loop", "1", "slow loop that made the step, from 0", "i8"),
    Column("adopted_tick", "1", "ticks that the servo had done when it adopted the frame, -1: not yet", "i8"),
)

ADOPTED = len(SCHEDULE) + 1
"""Place of `adopted_tick` in a row."""


def step_columns(names: Sequence[str], several: bool = False) -> tuple[Column, ...]:
    """Columns of the slow steps in a recording: the schedule, which a replay needs, and what took how long.

    several: whether the scene has several slow loops.
    """
    times = [Column(f"{re.sub(r'[^A-Za-z0-9]+', '_', name)}_ms", "ms", f"time of {name}") for name in names]
    schedule = SCHEDULE + OF_SEVERAL if several else SCHEDULE
    return *schedule, Column("total_ms", "ms", "time of the whole step"), *times


class SlowThread:
    """Makes slow steps and publishes what there is to see; `start` does so in a thread until the servo ends.

    beside: the loops that it leads, each of one of the rig's other slow loops.
    """

    def __init__(
        self, rig: Rig, names: Sequence[str], recorder: Recorder | None = None, path: HandPath | None = None,
        pacer: Pacer | None = None, clock: Clock | None = None, number: int = 0,
        others: Sequence[Pacer | None] = (),
    ) -> None:  # fmt: skip
        """path: what is to keep the hand's path ahead of the servo. pacer None keeps the scene's own rate.

        number: which of the rig's slow loops. others: the pacers of those that it leads.
        """
        self.rig, self.visual, self.names, self._recorder = rig, rig.visual, tuple(names), recorder
        self._path, self.number = path, number
        self.low, self._several = rig.lows[number], len(rig.lows) > 1
        self.pacer = pacer or Pacer([Budget(self.low.ratio)], rig.dt)
        self._clock = clock or WallClock()
        self.budget = self.pacer.rung
        self.low.set_budget(self.budget)
        further = len(rig.lows) - 1 if number == 0 else 0
        pacers = [*others, *[None] * further][:further]
        self.beside = [
            SlowThread(rig, names, recorder, pacer=other, clock=clock, number=k)
            for k, other in enumerate(pacers, start=1)
        ]
        self._failure = ""
        self.compiled = len(COMPILATIONS.names)  # kernels, when the loop was made
        self._unbooked: list[float] = []
        """Of several loops: the row of the last step, until it is known when its frame was adopted."""
        self.steps = 0
        self.seconds = Durations()
        """Wall times of the steps in threads."""
        self.lost_slots = 0
        self.counters = np.zeros(len(COUNTERS), np.int64)
        self._changes: SimpleQueue[tuple[str, bool]] = SimpleQueue()
        self._ways: dict[str, list[str]] = {}
        """By key: the changes still to be made, one at each slow step."""
        self._stepping = threading.Lock()
        """Held during each step."""
        self._thread = threading.Thread(target=self._run, name="slow", daemon=True)

    @property
    def period(self) -> float:
        """The present slow period [s]."""
        return self.budget.period * self.rig.dt

    @property
    def recorder(self) -> Recorder | None:
        """What keeps the steps."""
        return self._recorder

    @recorder.setter
    def recorder(self, recorder: Recorder | None) -> None:
        self._book_last()
        self._recorder = recorder
        for other in self.beside:
            other.recorder = recorder

    @property
    def failure(self) -> str:
        """An empty string, or why this loop or one beside it ended by itself."""
        return self._failure or next((loop.failure for loop in self.beside if loop.failure), "")

    @failure.setter
    def failure(self, why: str) -> None:
        self._failure = why

    @property
    def overruns(self) -> int:
        """Steps that took longer than their period, of the loops beside it too."""
        return self.pacer.misses + sum(loop.overruns for loop in self.beside)

    def use(self, budget: Budget) -> None:
        """What the next steps may cost; only between two of them."""
        if budget != self.budget:
            self.budget = budget
            self.low.set_budget(budget)

    @property
    def loops(self) -> tuple["SlowThread", ...]:
        """This one and those beside it."""
        return self, *self.beside

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Within it no loop makes a step."""
        with ExitStack() as held:
            for loop in self.loops:
                held.enter_context(loop._stepping)
            yield

    def first(self, kept: bool = False) -> bool:
        """The first frames, made before the servo starts; False if one failed.

        kept: of a state that was kept in a pause, which may have frames that the servo is still to take.
        """
        made = (kept and not self.low.in_force()) or self._guarded(self.step)
        return made and all(loop.first(kept) for loop in self.beside)

    def start(self) -> None:
        """The threads, after the first frames."""
        self._thread.start()
        for loop in self.beside:
            loop.start()

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end, which comes when the servo has ended."""
        if self._thread.is_alive():
            self._thread.join(timeout)
        for loop in self.beside:
            loop.join(timeout)

    def ask(self, text: str, at_once: bool = False) -> None:
        """Make the change `text` from the next slow step on, in even steps; any thread may ask.

        at_once: in that step alone, as a recording has it.
        """
        self._changes.put((text, at_once))

    def take_changes(self) -> None:
        """Make the changes that are due; the recording keeps them with the number of the next step.

        What takes the rig long to get ready for is made, and recorded, once it is.
        """
        steps = max(1, math.ceil(SLEW / self.period - 1e-9))
        while not self._changes.empty():
            text, at_once = self._changes.get()
            key = text.partition("=")[0].strip()
            if at_once:
                self._make(text)
                self._ways.pop(key, None)
            else:
                self._ways[key] = way_to(self.rig.spec, text, steps)
        for key in list(self._ways):
            text = self._ways[key][0]
            if not self.rig.ready(changed(self.rig.spec, text)):
                continue
            if not self._ways[key][1:]:
                del self._ways[key]
            else:
                self._ways[key].pop(0)
            self._make(text)
        self.rig.go_over(self.period)

    def _make(self, text: str) -> None:
        """This change, which the recording keeps."""
        self.rig.change(changed(self.rig.spec, text))
        if self.recorder is not None:
            self.recorder.append_change(self.steps, text)

    def step(self) -> None:
        """One whole slow step; the bodies are brought to the last complete tick."""
        low, start = self.low, self._clock.now()
        self._book_last()
        if self.number == 0:
            self.take_changes()
            self.lead()
        begun, tick = low.step(), low.known()
        slot = self.visual.take_tool() if self.number == 0 else -1
        low.publish(tick)
        self.seconds.add(self._clock.now() - start)
        self.book((low.frame_id, begun, tick, low.frame_tick), self.seconds.last)
        if self.number == 0:
            self.show(slot, tick)
        low.check()
        # the first one has all factors to make, and no servo waits for it
        if self.steps > 1 and self.pacer.note(self._clock.now() - start):
            self.use(self.pacer.rung)

    def lead(self) -> None:
        """Keep the hand's path ahead of the servo."""
        if self._path is not None:
            self._path.keep(int(tick_count(self.rig.servo)))

    def book(self, schedule: tuple[int, int, int, int], seconds: float) -> None:
        """Count a step; its row in the recording has frame, begin tick, until tick, present tick, and times.

        seconds: of the whole step; zero books the times of its parts as zero, too.
        """
        times = self.low.times
        self.lost_slots += self.low.lost_slots > 0
        if self.recorder is not None:
            parts = [1e3 * times.last(name) if seconds else 0.0 for name in self.names]
            row = [self.steps, *schedule, *self.budget]
            if self._several:
                self._unbooked = [*row, self.number, -1, 1e3 * seconds, *parts]
            else:
                self.recorder.append_low_step([*row, 1e3 * seconds, *parts])
        self.steps += 1

    def _book_last(self) -> None:
        """Of several loops: the last step's row, with the tick at which its frame was adopted."""
        row, self._unbooked = self._unbooked, []
        if row and self._recorder is not None:
            row[ADOPTED] = self.low.taken_at()
            self._recorder.append_low_step(row)

    def show(self, slot: int, tick: int) -> None:
        """Publish the picture."""
        counted = self.rig.servo.statistics.counts[0]
        self.counters[:3] = counted["missed"], counted["stale"], self.overruns
        self.counters[OVERFLOW] = self.lost_slots
        self.visual.publish(slot, tick, self.counters)

    def _run(self) -> None:
        due = self._clock.now() + self.period
        while self._wait(due):
            due = min(due, self._clock.now())
            if not self._guarded(self.step):
                break
            due = max(due + self.period, self._clock.now())

    def _guarded(self, step: Callable[[], None]) -> bool:
        """Make a step; False, with the reason kept, if it failed: then the servo must fade."""
        try:
            with self._stepping:
                step()
        except Exception as error:
            self.failure = f"the slow loop stopped: {account(error)}"
            return False
        return True

    def _wait(self, due: float) -> bool:
        """Sleep until a step is due and the servo has the last frame; False once the servo has ended."""
        while finished_reason(self.rig.servo) == RUNNING:
            left = due - self._clock.now()
            if left > 0:
                if self.low.in_force() and self.low.wants_step():
                    return True
                self._clock.sleep(min(left, LOOK))
            elif not self.low.in_force():
                self._clock.sleep(NAP)
            else:
                return True
        return False


def step_times(rig: Rig, steps: int = PROBES) -> list[list[float]]:
    """Wall times [s] of slow steps of a rig that is warm, without the ticks between them, for each of its low
    loops; it moves on."""
    if len(rig.lows) > 1:
        return _times_of_several(rig, steps)
    times = []
    for _ in range(steps):
        between = 0.0

        def ticks(n: int) -> None:
            nonlocal between
            began = time.perf_counter()
            servo_run(rig.servo, n)
            between += time.perf_counter() - began

        start = time.perf_counter()
        rig.lock.advance(rig.ratio, ticks)
        times.append(time.perf_counter() - start - between)
    return [times]


def _times_of_several(rig: Rig, steps: int) -> list[list[float]]:
    """The same by what the loops book of the parts of their steps."""
    lows = rig.lows
    spent: list[list[float]] = [[] for _ in lows]
    frames = [low.frame_id for low in lows]
    for _ in range(steps * max(low.ratio for low in lows) // rig.ratio):
        rig.lock.advance(rig.ratio, lambda n: servo_run(rig.servo, n))
        for k, low in enumerate(lows):
            if low.frame_id > frames[k]:
                frames[k] = low.frame_id
                spent[k].append(sum(low.times.last(name) for name in low.times.parts))
    return spent


def lock_step_run(
    rig: Rig, slow: SlowThread, ticks: int, make: Callable[[int], object], each: Callable[[], object]
) -> None:
    """Up to tick `ticks`, by spans of make(k) and the slow steps between; `each` is called after a period.

    Times of steps are booked as zero, so that two recordings are the same bit for bit.
    """
    lock, ratio = rig.lock, rig.ratio
    while lock.tick < ticks and finished_reason(rig.servo) == RUNNING:
        start = lock.tick
        slow.take_changes()
        slow.lead()
        lock.advance(min(ratio, ticks - start), make)
        low = rig.low
        slow.book((low.frame_id, start, low.tick, low.frame_tick), 0.0)
        slow._book_last()
        slow.show(slow.visual.take_tool(), lock.tick)
        for low in rig.lows:
            low.check()
        each()
