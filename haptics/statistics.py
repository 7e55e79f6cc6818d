"""Counters and histograms of a servo: fixed arrays filled by the compiled loop, summarised outside.

Durations go into the bins of `palpo.physics.exchange.durations`; the maximum is kept exactly.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.durations import BINS, BINS_PER_DECADE, SMALLEST_NS, percentiles_us
from palpo.physics.numerics.kernels import kernel

COUNTS = np.dtype([("steps", np.int64), ("missed", np.int64), ("stale", np.int64), ("skipped", np.int64)])
"""Steps, missed deadlines, steps on a stale frame, and periods skipped to catch up."""

LATE, STEP = 0, 1
"""Rows of the histograms."""


class Statistics(NamedTuple):
    """What a servo counts."""

    counts: NDArray[np.void]
    """Shape (1,) of COUNTS."""
    histograms: NDArray[np.int64]
    """Lateness and step time, shape (2, BINS)."""
    maxima: NDArray[np.int64]
    """Largest lateness and step time [ns], shape (2,)."""


def make_statistics() -> Statistics:
    """Statistics of a servo that has not run."""
    return Statistics(np.zeros(1, COUNTS), np.zeros((2, BINS), np.int64), np.zeros(2, np.int64))


@kernel
def count_duration(statistics, kind, ns):
    """Count a duration [ns] as LATE or STEP; below the smallest bin it counts in the first."""
    k = int(BINS_PER_DECADE * math.log10(max(ns, SMALLEST_NS) / SMALLEST_NS))
    statistics.histograms[kind, min(k, BINS - 1)] += 1
    statistics.maxima[kind] = max(statistics.maxima[kind], ns)


def summarise_duration(statistics: Statistics, kind: int) -> dict[str, float]:
    """p50, p99, p999 and max [us] of the lateness or the step time."""
    return percentiles_us(statistics.histograms[kind], statistics.maxima[kind] * 1e-3)


def summarise(statistics: Statistics, period_ns: int) -> dict[str, object]:
    """{rate_hz, steps, missed, stale, skipped, late_us, step_us}; durations as p50, p99, p999 and max."""
    counts = {name: int(statistics.counts[name][0]) for name in COUNTS.names or ()}
    return {
        "rate_hz": 1e9 / period_ns,
        **counts,
        "late_us": summarise_duration(statistics, LATE),
        "step_us": summarise_duration(statistics, STEP),
    }
