"""A script of one row a tick that is evaluated as time goes on, a few seconds ahead of those who read it.

Row k lies at k % ROWS, so that a script of hours takes no more room than one of seconds, and the servo still
only reads what stands there. Whoever fills is not pressed by the clock; if it stops altogether, readers keep
the last row that they were told of, as they do at the script's end.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import load_acquire, store_release
from palpo.physics.numerics.kernels import inlined, kernel

ROWS = 1 << 14
"""Rows that are kept: 16 s at 1 kHz, and four low periods of the slowest low rate."""
BATCH = 1 << 10
"""Rows that are filled at a time, and that stay for readers who lag behind the tick that was told."""


@inlined
def row_at(known, rows, tick):
    """Index of a tick's row among `rows` kept ones; the last known row, known[0] - 1, from there on."""
    return min(tick, load_acquire(known, 0) - 1) % rows


@kernel
def _announce(known, n):
    store_release(known, 0, n)


class Ahead:
    """Fills the tables of a script; one thread may.

    script(first, stop): the rows of these ticks for each table, (stop - first, ...). ticks: rows there are.
    tables: they hold the rows 0 to len - 1 already, len the lesser of `ticks` and ROWS. known (1,): rows that
    readers may ask for.
    """

    def __init__(
        self,
        script: Callable[[int, int], Sequence[NDArray[np.float64]]],
        ticks: int,
        tables: Sequence[NDArray[np.float64]],
        known: NDArray[np.int64],
    ) -> None:
        self.ticks = ticks
        self._script, self._tables, self._known = script, tuple(tables), known

    def keep(self, tick: int) -> None:
        """Fill what readers may ask for soon, now that `tick` ticks are done."""
        known = int(self._known[0])
        stop = min(self.ticks, tick + ROWS - BATCH)
        if stop <= known or stop < min(self.ticks, known + BATCH):
            return
        for first in range(max(known, tick - BATCH), stop, BATCH):
            end = min(first + BATCH, stop)
            places = np.arange(first, end) % ROWS
            for table, values in zip(self._tables, self._script(first, end), strict=True):
                table[places] = values
            _announce(self._known, end)
