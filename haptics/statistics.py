"""Counters and histograms of a servo: fixed arrays filled by the compiled loop, summarised outside.

Durations go into logarithmic bins, 64 to a decade from 0.1 us to 10 s, so that a percentile is known to
3.7%; the maximum is kept exactly.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from physics.kernels import kernel

BINS_PER_DECADE, DECADES, SMALLEST_NS = 64, 8, 100.0
BINS = BINS_PER_DECADE * DECADES

STEPS, MISSED, STALE_STEPS, SKIPPED = 0, 1, 2, 3
LATE, STEP = 0, 1


class Statistics(NamedTuple):
    """What a servo counts."""

    counters: NDArray[np.int64]
    """Steps, missed deadlines, steps on a stale frame, periods skipped to catch up; shape (4,)."""
    histograms: NDArray[np.int64]
    """Lateness and step time, shape (2, BINS)."""
    maxima: NDArray[np.int64]
    """Largest lateness and step time [ns], shape (2,)."""


def make_statistics() -> Statistics:
    """Statistics of a servo that has not run."""
    return Statistics(np.zeros(4, np.int64), np.zeros((2, BINS), np.int64), np.zeros(2, np.int64))


@kernel
def count_duration(statistics, kind, ns):
    """Count a duration [ns] as LATE or STEP; below the smallest bin it counts in the first."""
    k = int(BINS_PER_DECADE * math.log10(max(ns, SMALLEST_NS) / SMALLEST_NS))
    statistics.histograms[kind, min(k, BINS - 1)] += 1
    statistics.maxima[kind] = max(statistics.maxima[kind], ns)


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


def summarise_duration(statistics: Statistics, kind: int) -> dict[str, float]:
    """p50, p99, p999 and max [us] of the lateness or the step time."""
    largest = statistics.maxima[kind] * 1e-3
    histogram = statistics.histograms[kind]
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    # a bin's upper edge may lie above the largest value that fell into it
    summary = {name: min(percentile_us(histogram, share), largest) for name, share in shares.items()}
    return summary | {"max": float(largest)}


def summarise(statistics: Statistics, period_ns: int) -> dict[str, object]:
    """{rate_hz, steps, missed, stale, skipped, late_us, step_us}; durations as p50, p99, p999 and max."""
    steps, missed, stale, skipped = (int(count) for count in statistics.counters)
    return {
        "rate_hz": 1e9 / period_ns,
        "steps": steps,
        "missed": missed,
        "stale": stale,
        "skipped": skipped,
        "late_us": summarise_duration(statistics, LATE),
        "step_us": summarise_duration(statistics, STEP),
    }
