"""The last seconds of some quantities, for the panel's plots: one thread adds, another reads."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

KEPT = 600
"""Entries: 12 s of slow steps at 50 Hz."""


class History:
    """Times and values of named quantities, in a ring."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._rows = np.zeros((KEPT, 1 + len(self.names)))
        self._count = 0

    def add(self, seconds: float, values: Iterable[float]) -> None:
        """One entry."""
        self._rows[self._count % KEPT] = (seconds, *values)
        self._count += 1

    def latest(self, span: float) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """Times (n,) of the last `span` seconds, ascending, and the quantities (n,) by name."""
        n = self._count
        # the oldest entry may be written over meanwhile
        rows = self._rows[np.arange(max(0, n - KEPT + 1), n) % KEPT]
        rows = rows[rows[:, 0] > rows[-1, 0] - span] if len(rows) else rows
        return rows[:, 0], dict(zip(self.names, rows[:, 1:].T, strict=True))
