"""The driver without a clock of a system whose slow step takes no time (app.runtime.system.LockStepper)."""

from collections.abc import Callable

from palpo.app.runtime.rigs import LowLoop


class PromptLock:
    """Both rates in one thread: each slow step ends, and its frame is there, before the next tick."""

    def __init__(self, low: LowLoop, ratio: int) -> None:
        self.low, self.ratio, self.tick = low, ratio, 0

    def advance(self, n: int, ticks: Callable[[int], object]) -> None:
        """n ticks, made by `ticks(k)` in spans, with the slow steps between."""
        stop = self.tick + n
        while self.tick < stop:
            if self.tick % self.ratio == 0:
                self.low.begin()
                self.low.finish(self.tick)
            span = min(stop - self.tick, self.ratio - self.tick % self.ratio)
            ticks(span)
            self.tick += span
