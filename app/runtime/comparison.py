"""How a replay differs from its recording."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.outcome import (
    vectors,
)
from palpo.haptics.recording import Recording
from palpo.physics.numerics.arithmetic import arithmetic

CLOCKED = ("late_us", "step_us")
"""Columns that the clock makes."""


ELSEWHERE = 0.05
"""RMS difference, over the range that the recording has, up to which a run of another arithmetic is the same.

So near is a snap scene's force known at all (`palpo study snap-accuracy`): its contacts are grouped anew in
each step, which roundings decide where they are alike, and its click may be a tick early. Other scenes come
nearer by orders of magnitude."""


MOVED_AND_FELT = ("p", "held_", "force_", "sent_")
"""Vectors that are compared so; counts, flags and residuals may differ by what one tick is early."""


@dataclass(frozen=True)
class Comparison:
    """How a replay differs from its recording."""

    ticks: int
    """Ticks compared."""
    columns: int
    largest: float
    """Largest difference of any value."""
    worst: str
    """Column of the first difference, empty if there is none."""
    first_tick: int
    complete: bool
    """Whether all ticks that were to be compared are there."""
    off: float
    """Largest RMS difference of a vector of MOVED_AND_FELT over its range in the recording [-]."""
    elsewhere: str
    """What was another where the recording was made; empty where bits are to be equal."""

    @property
    def equal(self) -> bool:
        """Bit for bit."""
        return not self.worst

    @property
    def same(self) -> bool:
        """Equal, or, for a recording from elsewhere, within ELSEWHERE."""
        return self.equal or bool(self.elsewhere and self.complete and self.off <= ELSEWHERE)

    def told(self) -> dict[str, Any]:
        """For a result."""
        return {
            "equal": self.equal,
            "same": self.same,
            "made_elsewhere": self.elsewhere,
            "off": self.off,
            "ticks": self.ticks,
            "columns": self.columns,
            "max_difference": self.largest,
            "first_tick": None if self.equal else self.first_tick,
        }

    def words(self) -> str:
        """For people."""
        if self.equal:
            return f"equal bit for bit: {self.ticks:,} ticks, {self.columns} columns, largest difference 0"
        found = (
            f"first at tick {self.first_tick} in {self.worst}, largest difference {self.largest:.3g}, "
            f"motion and force off by {100.0 * self.off:.2g}% RMS of their range"
        )
        if not self.elsewhere:
            return f"differs from the recording: {found}"
        limit = f"{100.0 * ELSEWHERE:g}% that another arithmetic may make"
        return (
            f"made elsewhere ({self.elsewhere}), where last bits are others: "
            f"{'the same within' if self.same else 'differs by more than'} the {limit}: {found}"
        )


def compare(recording: Recording, known: int, columns: Mapping[str, NDArray]) -> Comparison:
    """Every value of every column that the clock does not make, over the first `known` ticks."""
    n = min(known, len(columns["tick"]))
    first, worst, largest = known, "", 0.0
    # an earlier version kept fewer
    names = [name for name in columns if name not in CLOCKED and name in recording.columns]
    for name in names:
        was, is_now = recording.columns[name][:n].astype(float), columns[name][:n]
        same = (was == is_now) | (np.isnan(was) & np.isnan(is_now))
        if same.all():
            continue
        gap = np.abs(was - is_now)[~same]
        largest = max(largest, float(np.nanmax(gap, initial=0.0)))
        tick = int(np.flatnonzero(~same)[0])
        if tick < first or not worst:
            first, worst = tick, name
    if not worst and n < known:
        first, worst = n, "tick"
    off = max(_off(recording, columns, name, n) for name in MOVED_AND_FELT)
    elsewhere = made_elsewhere(recording.meta)
    return Comparison(n, len(names), largest, worst, first, n == known, off, elsewhere)


def _off(recording: Recording, columns: Mapping[str, NDArray], vector: str, n: int) -> float:
    """RMS length of a vector's difference over the diagonal of the box that it moves in."""
    names = [f"{vector}{axis}" for axis in "xyz"]
    was = vectors(recording.columns, *names)[:n]
    apart = vectors(columns, *names)[:n] - was
    if not apart.any():
        return 0.0
    size = float(np.linalg.norm(np.ptp(was, axis=0)))
    return float(np.sqrt((apart**2).sum(axis=1).mean())) / size if size > 0.0 else np.inf


def made_elsewhere(meta: Mapping[str, Any]) -> str:
    """What decides last bits and was another when a recording was made, in words; empty if nothing was."""
    was, now = meta.get("arithmetic"), arithmetic()
    if was is None:
        return "it does not say where"
    return ", ".join(
        f"{name} {was.get(name, 'unknown')} there, {value} here"
        for name, value in now.items()
        if was.get(name) != value
    )
