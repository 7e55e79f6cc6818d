"""Durations by the million in little room: counted in bins, with the largest and the last ones exact.

There are 64 logarithmic bins to a decade from 0.1 us to 10 s, so that a percentile is known to 3.7%.
"""

import math
from collections import deque

import numpy as np
from numpy.typing import NDArray

BINS_PER_DECADE, DECADES, SMALLEST_NS = 64, 8, 100.0
BINS = BINS_PER_DECADE * DECADES
SHARES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
RECENT = 50
"""Durations that are kept as they were: a second of low steps at 50 Hz."""


def bin_edges_us() -> NDArray[np.float64]:
    """Edges of the bins [us], shape (BINS + 1,)."""
    return SMALLEST_NS * 1e-3 * 10.0 ** (np.arange(BINS + 1) / BINS_PER_DECADE)


def percentile_us(histogram: NDArray[np.int64], share: float) -> float:
    """Duration [us] that this share of the counts does not exceed, by log interpolation within its bin."""
    total = int(histogram.sum())
    if total == 0:
        return 0.0
    below = np.concatenate([[0], np.cumsum(histogram)])
    k = int(np.searchsorted(below[1:], share * total))
    fraction = (share * total - below[k]) / histogram[k]
    return float(SMALLEST_NS * 1e-3 * 10.0 ** ((k + fraction) / BINS_PER_DECADE))


def percentiles_us(histogram: NDArray[np.int64], largest: float) -> dict[str, float]:
    """p50, p99, p999 and max [us]; largest: the exact maximum [us]."""
    # a bin's upper edge may lie above the largest value that fell into it
    summary = {name: min(percentile_us(histogram, share), largest) for name, share in SHARES.items()}
    return summary | {"max": float(largest)}


class Durations:
    """Any number of durations [s]."""

    def __init__(self) -> None:
        self.count = 0
        self.last = self.largest = 0.0
        self._histogram = np.zeros(BINS, np.int64)
        self._recent: deque[float] = deque(maxlen=RECENT)

    def add(self, seconds: float) -> None:
        """Count one; what is shorter than the smallest bin counts in the first."""
        k = int(BINS_PER_DECADE * math.log10(max(1e9 * seconds, SMALLEST_NS) / SMALLEST_NS))
        self._histogram[min(k, BINS - 1)] += 1
        self._recent.append(seconds)
        self.count += 1
        self.last, self.largest = seconds, max(self.largest, seconds)

    def recent(self) -> list[float]:
        """The last RECENT of them, the newest last."""
        return list(self._recent)

    def summary_ms(self) -> dict[str, float]:
        """p50, p99, p999 and max [ms]; empty without durations."""
        if not self.count:
            return {}
        summary = percentiles_us(self._histogram, 1e6 * self.largest)
        return {name: 1e-3 * value for name, value in summary.items()}


class StepTimes:
    """Wall times of the named parts of a loop's steps, and of whole steps: the sums of their parts.

    A step has each part once at most, so that a part that comes again begins the next one.
    """

    def __init__(self, *names: str) -> None:
        """names: parts that are known before they come."""
        self._names = names
        self.clear()

    def clear(self) -> None:
        """Forget all that was counted."""
        self.parts = {name: Durations() for name in self._names}
        self._whole = Durations()
        self._step: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Count the time of a part [s]."""
        if name in self._step:
            self._end()
        self._step[name] = seconds
        self.parts.setdefault(name, Durations()).add(seconds)

    def _end(self) -> None:
        if self._step:
            self._whole.add(sum(self._step.values()))
            self._step = {}

    def whole(self) -> Durations:
        """Times of whole steps; whoever asks ends the present one."""
        self._end()
        return self._whole

    def last(self, name: str) -> float:
        """The last time of a part [s]; zero for one that has not come yet."""
        return self.parts[name].last if name in self.parts else 0.0

    def summary_ms(self) -> dict[str, dict[str, float]]:
        """p50, p99, p999 and max [ms] by part; a part that never came has none."""
        return {name: part.summary_ms() for name, part in self.parts.items()}
