"""All rates of a scene in one thread, in the exact ratio of the rates and without a clock.

A frame becomes visible one period after its slow step begins, as it does in threads, or later where slow
steps take longer; or at once, which the result of a run then names (`latency`). Everything is reproducible
bit for bit.
"""

from collections.abc import Callable, Sequence
from itertools import cycle

from palpo.physics.engine.slow_loop import SlowLoop

LOOK = 2
"""Ticks after which a slow loop that is done looks whether it is asked for more before its time."""


class LoopClock:
    """When a slow loop makes its steps, counted in calls of the servo's tick."""

    def __init__(self, low: SlowLoop, latency: str, durations: Sequence[float], several: bool) -> None:
        self.low, self.several = low, several
        self.latency = "none" if low.each_tick else latency
        self.ratio = 1 if low.each_tick else low.ratio
        self._durations = cycle(durations)
        self.next = self._due = self._takes = 0
        self._begun = self.idle = False

    def is_due(self, tick: int) -> bool:
        """Whether slow work is due before this tick, or asked for.

        One of several loops goes no further while the scene waits for another: its own frame is not taken.
        """
        if self.several and self._begun and not self.low.in_force():
            return False
        return tick >= self.next or (self.looks and self.low.wants_step())

    @property
    def looks(self) -> bool:
        """Whether its loop may ask for a step now."""
        return self.idle and self.low.asks

    def step(self, tick: int, made: int, starting: Callable[[], object]) -> None:
        """Slow work that is due before this tick, when the scene has made so many."""
        low = self.low
        if self.latency == "none":
            self._begin(starting)
            low.publish(made)
            self.idle, self.next = True, tick + self.ratio
            return
        if not self._begun:
            # attachments need a frame at the very first tick
            self._begin(starting)
            low.publish(made)
            self._begun = True
        elif not self.idle:
            # the full integration ends while the frame's algebra is still to be done;
            # ticks before the frame in force have no state of its model
            behind, first = round(low.ready_share * self._takes), low.followed_from
            low.publish(max(low.tick, min(first, made), made - behind), made)
            if tick < self._due:
                self.idle, self.next = True, self._due
                return
        self._begin(starting)
        self._takes = max(1, round(next(self._durations) * self.ratio))
        self.idle, self.next, self._due = False, tick + self._takes, tick + self.ratio

    def _begin(self, starting: Callable[[], object]) -> None:
        starting()
        self.low.step()


class LockedLoops:
    """The slow loops of a scene, the quickest first, and its servo's ticks by turns.

    latency: "period" or "none", how old a frame is when it is first felt. durations: periods that each slow
    step takes, in turn and then over again: more than one as on a machine that is late, less as on one that
    waits, and may be asked for a step before it is due.
    """

    def __init__(
        self, lows: Sequence[SlowLoop], latency: str = "period", durations: Sequence[float] = (1.0,)
    ) -> None:
        self.lows, self.latency = lows, latency
        self.clocks = [LoopClock(low, latency, durations, len(lows) > 1) for low in lows]
        self.ratio = self.clocks[0].ratio
        """Ticks in a period of the quickest loop."""
        self.tick = 0
        """Calls of the servo's tick: those that waited are no ticks of the scene."""
        self.starting: Callable[[], object] = lambda: None
        """Called before each slow step begins, when the frame of the one before is out."""

    @property
    def made(self) -> int:
        """Ticks of the scene: all calls but those that waited for a frame."""
        return int(self.lows[0].ticks["done"][0])

    def advance(self, n: int, ticks: Callable[[int], object]) -> None:
        """n ticks, made by `ticks(k)` in spans of k, with the slow steps that fall between them."""
        stop = self.tick + n
        while self.tick < stop:
            for clock in self.clocks:
                if clock.is_due(self.tick):
                    clock.step(self.tick, self.made, self.starting)
            looks = any(clock.looks or clock.next <= self.tick for clock in self.clocks)
            due = [clock.next for clock in self.clocks if clock.next > self.tick]
            span = min([stop, self.tick + LOOK if looks else stop, *due]) - self.tick
            ticks(span)
            self.tick += span
