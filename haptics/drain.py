"""Rows that a servo has recorded, out of its ring."""

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.row import COLUMNS, OWN
from palpo.haptics.servo import Servo
from palpo.physics.exchange.buffer import ring_available, ring_release, ring_slot
from palpo.physics.numerics.kernels import kernel


@kernel
def _copy_rows(ring, rows, out):
    n = min(ring_available(ring), out.shape[0])
    for i in range(n):
        slot = ring_slot(ring, i)
        for j in range(out.shape[1]):
            out[i, j] = rows[slot, j]
    ring_release(ring, n)
    return n


def drain_rows(servo: Servo) -> NDArray[np.float64]:
    """Take all recorded rows out of the ring, shape (n, columns); one thread only may drain.

    The columns are those of `palpo.haptics.row.columns_of` its hands.
    """
    out = np.empty((len(servo.rows), len(COLUMNS)))
    rows = out[: _copy_rows(servo.ring, servo.rows, out)]
    # who is led has pushed its row of a tick before the leader has
    own = [_drained(led, rows) for led in servo.led]
    return np.hstack([rows, *(more[:, OWN] for more in own)]) if own else rows


def _drained(led: Servo, leader: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows of the leader's ticks (n, len(COLUMNS)); NaN where one was lost."""
    out = np.full_like(leader, np.nan)
    if not len(leader):
        return out
    taken = np.empty_like(leader)
    while (n := int(_copy_rows(led.ring, led.rows, taken[:1]))) and taken[0, 0] < leader[0, 0]:
        pass
    n += int(_copy_rows(led.ring, led.rows, taken[n:])) if n else 0
    place = np.searchsorted(leader[:, 0], taken[:n, 0])
    there = place < len(leader)
    out[place[there]] = taken[:n][there]
    return out
