"""The two rates in one thread, in the exact ratio of the rates and without a clock.

A frame becomes visible one low period after its low step begins, as it does in threads, or later where low
steps take longer; or at once, which the result of a run then names (`latency`). Everything is reproducible
bit for bit.
"""

from collections.abc import Callable, Sequence
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from palpo.physics.engine.servo import tick
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import OK, WAITING
from palpo.physics.systems.multirate.interfaces import READY_SHARE, make_low_rates
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.scene import Scene

LOOK = 2
"""Ticks after which a low loop that is done looks whether it is asked for more before its time."""


class LoopClock:
    """When a low loop makes its steps, counted in calls of the servo's tick."""

    def __init__(self, low: LowRate, kind: str, latency: str, durations: Sequence[float]) -> None:
        self.low, self.kind, self.latency = low, kind, latency
        self.ratio = 1 if kind == "monolithic" else low.loop.ratio
        self._durations = cycle(durations)
        self.next = self._due = self._takes = 0
        self._begun = self.idle = False

    def is_due(self, tick: int) -> bool:
        """Whether low work is due before this tick, or asked for.

        One of several loops goes no further while the scene waits for another: its own frame is not taken.
        """
        if self.low.others and self._begun and not self.low.adopted():
            return False
        return tick >= self.next or (self.idle and self.low.asked())

    def step(self, tick: int, made: int, starting: Callable[[], object]) -> None:
        """Low work that is due before this tick, when the scene has made so many."""
        low = self.low
        if self.kind == "monolithic":
            self._begin(starting)
            self.next += self.ratio
        elif self.latency == "none":
            self._begin(starting)
            low.finish(made)
            self.idle, self.next = True, tick + self.ratio
        else:
            if not self._begun:
                # attachments need a frame at the very first tick
                self._begin(starting)
                low.finish(made)
                self._begun = True
            elif not self.idle:
                # the full integration ends while the frame's algebra is still to be done
                behind = round(READY_SHARE * self._takes) if self.kind == "krylov" else 0
                # ticks before this one have no state of the last model
                first = int(low.link.in_force["adopted_at"][low.link.loop[0]]) + 1
                low.finish(max(low.tick, min(first, made), made - behind), made)
                if tick < self._due:
                    self.idle, self.next = True, self._due
                    return
            self._begin(starting)
            self._takes = max(1, round(next(self._durations) * self.ratio))
            self.idle, self.next, self._due = False, tick + self._takes, tick + self.ratio

    def _begin(self, starting: Callable[[], object]) -> None:
        starting()
        self.low.begin()


class LockStep:
    """All rates of a scene. The scene's bodies move: one scene serves one run.

    durations: low periods that each low step takes, in turn and then over again: more than one as on a
    machine that is late, less as on one that waits, and may be asked for a step before it is due.
    """

    def __init__(
        self, scene: Scene, kind: str = "krylov", latency: str = "period", durations: Sequence[float] = (1.0,)
    ) -> None:
        self.scene, self.kind, self.latency = scene, kind, latency
        self.servo, self.side, self.lows = make_low_rates(kind, scene)
        self.high = self.side.high
        self.handle = Handle(self.servo)
        self.clocks = [LoopClock(low, kind, latency, durations) for low in self.lows]
        self.ratio = self.clocks[0].ratio
        """Ticks in a period of the quickest loop."""
        self.tick = 0
        """Calls of the servo's tick: those that waited are no ticks of the scene."""
        self._slips = np.zeros((len(self.side.held), 3))
        """How far [m] `run` has led each hand while the scene stood still: it slips by that."""
        self.starting: Callable[[], object] = lambda: None
        """Called before each low step begins, when the frame of the one before is out."""
        self._row = 0
        self.broken = ""
        """Why a low step of `run` could not be made, in words; empty while all could."""

    @property
    def low(self) -> LowRate:
        """The quickest low loop, which is the only one where there is but one."""
        return self.lows[0]

    @property
    def made(self) -> int:
        """Ticks of the scene: all calls but those that waited for a frame."""
        return int(self.high.engine.now[0])

    def close(self) -> None:
        """End the low loops' worker threads."""
        self.low.close()

    def advance(self, n: int, ticks: Callable[[int], object]) -> None:
        """n ticks, made by `ticks(k)` in spans of k, with the low steps that fall between them."""
        stop = self.tick + n
        while self.tick < stop:
            for clock in self.clocks:
                if clock.is_due(self.tick):
                    clock.step(self.tick, self.made, self.starting)
            looks = any(clock.idle or clock.next <= self.tick for clock in self.clocks)
            due = [clock.next for clock in self.clocks if clock.next > self.tick]
            span = min([stop, self.tick + LOOK if looks else stop, *due]) - self.tick
            ticks(span)
            self.tick += span
            if self.kind == "monolithic" and self.made > self.low.tick:
                self.low.finish(self.made)

    def run(
        self,
        positions: NDArray[np.float64],
        orientations: NDArray[np.float64] | None = None,
        others: Sequence[NDArray[np.float64]] = (),
    ) -> dict[str, NDArray]:
        """Lead the hand's target along positions (n, 3) [m], one a tick, without any device between.

        others: positions (n, 3) [m] of the hands of further tools, which stand where they are without.
        While the scene stands still the hands slip. Returns by name, one row a tick: force (n, 3) the
        constraint sum, reaction (n, 3) of the hold on the hand, felt (n, hands, 3) what each device is told,
        held (n, 3), tool (n, frames, 3), depth, contacts, sweeps, residual. Stops early at a tick that fails,
        or at a low step, whose reason then is in `broken`.
        """
        n = len(positions)
        port, high = self.high.port, self.high
        trace = {
            "force": np.zeros((n, 3)), "reaction": np.zeros((n, 3)), "held": np.zeros((n, 3)),
            "tool": np.zeros((n, len(high.held.tool.x), 3)), "depth": np.zeros(n), "residual": np.zeros(n),
            "felt": np.zeros((n, len(self.side.held), 3)),
            "contacts": np.zeros(n, np.int64), "sweeps": np.zeros(n, np.int64), "rows": np.zeros(n, np.int64),
        }  # fmt: skip
        failed = [n]

        def ticks(span: int) -> None:
            for _ in range(span):
                i = self._row
                if failed[0] < n:
                    return
                before = [held.port.position.copy() for held in self.side.held]
                for held, way, slip in zip(self.side.held, (positions, *others), self._slips, strict=False):
                    held.port.position[:] = way[i] - slip
                if orientations is not None:
                    port.orientation[:] = orientations[i]
                if tick(self.handle) != OK:
                    failed[0] = i
                    return
                if port.status["flags"][0] & WAITING:
                    for held, slip, place in zip(self.side.held, self._slips, before, strict=True):
                        slip += held.port.position - place
                        held.port.position[:] = place
                trace["force"][i] = port.info["total"][0]
                trace["felt"][i] = [held.port.force for held in self.side.held]
                trace["reaction"][i] = -high.held.hold.force[:3]
                trace["held"][i] = port.info["held"][0]
                trace["tool"][i] = high.held.tool.x
                trace["depth"][i], trace["residual"][i] = port.info["depth"][0], port.info["residual"][0]
                trace["contacts"][i], trace["sweeps"][i] = (
                    port.status["contacts"][0],
                    port.status["sweeps"][0],
                )
                trace["rows"][i] = high.engine.contacts.count[0]["found"]
                self._row += 1

        self._row = 0
        while self._row < n and failed[0] == n:
            try:
                self.advance(1, ticks)
            except FloatingPointError as error:
                self.broken = str(error)
                break
        made = min(self._row, failed[0])
        return {name: values[:made] for name, values in trace.items()}
