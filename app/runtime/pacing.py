"""The rates follow the machine: how often slow steps are made, and of what, by how long the last ones took.

Rungs lead down from the scene's wish: first lower rates, to 10 Hz (at 20 Hz the force differs from that of
everything at the servo's rate by 1% at most where nothing lands: `palpo study multirate-accuracy`); then
fewer columns, fewer candidate contacts. A recording keeps what each step had, and a replay repeats that.
Pictures are not made fewer: their thread gives way to the loops, and steps took as long with 8 as with 18 of
them a second.

It begins on a rate that leaves more room than the first steps need. It goes down, before most are late,
once two in a row have missed their period or a few of the last fifty hardly kept it: to the rate that all
but these few keep, so that a slow step now and then costs a rung at most. It goes up after a while in which
steps would have left room in a shorter period. A rung that was lost again is next tried after twice the
time, so that nothing swings to and fro.
"""

from collections import deque
from collections.abc import Sequence

from palpo.config.schema.scene import BaseScene
from palpo.physics.engine.slow_loop import SlowLoop
from palpo.physics.exchange.budget import Budget

SLOWEST_HZ = 10.0
"""Rates are lowered this far."""
SERIES = (1.0, 1.25, 1.6, 2.0, 2.5, 3.15, 4.0, 5.0, 6.3, 8.0)
"""Preferred numbers, R10 of ISO 3: the rates in each decade."""
COLUMN_SHARES = (0.75, 0.5, 0.35, 0.25)
CONTACT_SHARES = (0.5,)

WINDOW = 50
"""Steps that are looked back on."""
SLOW = 4
"""So many of these steps without room are too many."""
SEEN = 24
"""Steps by which it goes up, at least: otherwise those of the last HOLD seconds."""
BELOW, ABOVE, START = 1.1, 1.3, 1.6
"""A period over the time of a step: the least room, what a higher rate must leave, and the first rate: steps
before a run have both processors to themselves, and touch little."""
HOLD, LONGEST_HOLD = 2.0, 64.0
"""Seconds on a rung before it is left upward: at first, and after the most failures."""


def rungs_of(
    period: int, servo_hz: float, spares: Sequence[str] = (), slowest_hz: float = 0.0
) -> list[Budget]:
    """From the wish, a slow period [ticks], down: what the slow loop gets.

    spares: "columns", "contacts", as the slow loop can do with less of them; slowest_hz: the lowest rate that
    it can do with, if that is above SLOWEST_HZ.
    """
    budgets = [Budget(period)]
    for rate in sorted((10.0**k * n for k in range(1, 4) for n in SERIES), reverse=True):
        longer = round(servo_hz / rate)
        if longer > budgets[-1].period and rate >= max(SLOWEST_HZ, slowest_hz):
            budgets.append(Budget(longer))
    if "columns" in spares:
        budgets += [budgets[-1]._replace(columns=share) for share in COLUMN_SHARES]
    if "contacts" in spares:
        budgets += [budgets[-1]._replace(contacts=share) for share in CONTACT_SHARES]
    return budgets


def adapts(spec: BaseScene) -> bool:
    """Whether the machine may lower a scene's rates: by `rates.adapt`, else unless `--set` gave one."""
    if spec.rates.adapt is not None:
        return spec.rates.adapt
    keys = (text.partition("=")[0].strip() for text in spec.origin.overrides)
    return not any(key == "rates.low_hz" or key.endswith(".rate_hz") for key in keys)


class Pacer:
    """Chooses among rungs, the first of which is the wish, by the times of slow steps; a single one stays.

    dt: servo period [s]. It reads no clock.
    """

    def __init__(self, rungs: Sequence[Budget], dt: float) -> None:
        self.rungs, self.dt = list(rungs), dt
        self.changes = self.misses = 0
        """Changes of the rung; steps that took longer than their period."""
        self.took = 0.0
        """Time [s] of a step by which the present rung was chosen, or that was seen on it."""
        self._at = 0
        self._times: deque[float] = deque(maxlen=WINDOW)
        self._since = 0.0
        self._hold = HOLD
        self._raised = False

    @property
    def rung(self) -> Budget:
        """What the next step gets."""
        return self.rungs[self._at]

    @property
    def period(self) -> float:
        """The present slow period [s]."""
        return self.rung.period * self.dt

    def begin(self, times: Sequence[float]) -> None:
        """Start on the first rate that leaves room for steps of these times [s]."""
        self.took = _longest(times)
        self._at = self._first(self.took, START)

    def note(self, seconds: float) -> bool:
        """Count a step; whether the next ones get another rung."""
        period = self.period
        self.misses += seconds > period
        self._times.append(seconds)
        times = [*self._times]
        self._since += max(seconds, period)
        slow = sorted(times)[-SLOW] if len(times) >= SLOW else 0.0
        last = min(times[-2:]) if len(times) > 1 else 0.0
        if BELOW * slow > period or last > period:
            self.took = max(slow, last)
            below = min(self._at + 1, len(self.rungs) - 1)
            return self._go(max(below, self._first(self.took, BELOW)))
        if len(times) >= SEEN:
            self.took = _longest(times[-max(SEEN, round(HOLD / period)) :])
            return self._since >= self._hold and self._go(self._better())
        return False

    def words(self) -> str:
        """The rate and why, in one line."""
        budget, wish = self.rung, self.rungs[0].period
        less = [
            f"{100.0 * share:.0f}% of the {name}"
            for name, share in (("columns", budget.columns), ("contacts", budget.contacts))
            if share < 1.0
        ]
        asked = f" of {1.0 / (wish * self.dt):.3g}" if budget.period != wish else ""
        rate = ", ".join([f"slow loop at {1.0 / self.period:.3g}{asked} Hz", *less])
        ms = 1e3 * self.took
        told = f"{ms:.2g}" if ms < 10.0 else f"{ms:.0f}"
        return f"{rate}: a step takes {told} ms here"

    def _first(self, seconds: float, room: float) -> int:
        """The first rate whose period is so many times as long as a step; the lowest if none is."""
        longest = self.rungs[-1].period
        fits = (r.period == longest or r.period * self.dt >= room * seconds for r in self.rungs)
        return next(i for i, fit in enumerate(fits) if fit)

    def _better(self) -> int:
        """The best rate that leaves room; where it is not the rate that was lowered last, the rung before."""
        before = max(0, self._at - 1)
        if self.rungs[before].period != self.rung.period:
            return min(self._at, self._first(self.took, ABOVE))
        # products of columns with columns are the most that grows with them
        more = (self.rungs[before].columns / self.rung.columns) ** 2
        return before if more * self.took * ABOVE <= self.period else self._at

    def _go(self, to: int) -> bool:
        """Take a rung; whether it is another one."""
        if to == self._at:
            if self._since > LONGEST_HOLD:
                self._hold = HOLD
            return False
        down = to > self._at
        if down and self._raised and self._since < LONGEST_HOLD:
            self._hold = min(2.0 * self._hold, LONGEST_HOLD)
        self._at, self._raised, self._since = to, not down, 0.0
        self.changes += 1
        self._times.clear()
        return True


def pacers_of(spec: BaseScene, lows: Sequence[SlowLoop], free: bool) -> list[Pacer]:
    """What chooses the rate of each slow loop, by its ticks in a period and what it can do with less of.

    free: whether a rate may be lowered, where the scene allows it.
    """
    rates = spec.rates
    ladders = (rungs_of(low.ratio, rates.servo_hz, low.spares, low.slowest_hz) for low in lows)
    free = free and adapts(spec)
    return [Pacer(rungs if free else rungs[:1], rates.dt) for rungs in ladders]


def _longest(times: Sequence[float]) -> float:
    """The longest time but one, as anything may stop a machine once; zero without any."""
    return sorted(times)[-2:][0] if times else 0.0
