"""Wait-free single-producer single-consumer ring: rows in order, the newest dropped and counted when full.

Only the indices live here; the rows are the user's arrays with the ring's capacity as leading dimension.
Producer: slot = ring_push_slot(ring); if slot >= 0, fill rows[slot] and ring_commit(ring).
Consumer: n = ring_available(ring); read rows[ring_slot(ring, i)] for i < n; ring_release(ring, n).
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import CACHE_LINE, load_acquire, store_release
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel

# Head and tail count rows for ever (2^63 of them); the slot is the count modulo the capacity.
_HEAD, _TAIL, _MASK = 0, CACHE_LINE, 2 * CACHE_LINE
_OVERFLOW = _HEAD + 1  # the producer's own line: only it counts what it dropped


def make_ring(capacity: int) -> NDArray[np.int64]:
    """Indices of an empty ring, shape (24,). Raises InputError unless the capacity is a power of two."""
    if capacity < 1 or capacity & (capacity - 1):
        raise InputError(f"ring capacity {capacity} must be a power of two")
    ring = np.zeros(3 * CACHE_LINE, dtype=np.int64)
    ring[_MASK] = capacity - 1
    return ring


@kernel
def ring_push_slot(ring):
    """Slot for the next row, or -1 when the ring is full (counted; the row is to be dropped)."""
    if ring[_HEAD] - load_acquire(ring, _TAIL) > ring[_MASK]:
        store_release(ring, _OVERFLOW, ring[_OVERFLOW] + 1)
        return -1
    return ring[_HEAD] & ring[_MASK]


@kernel
def ring_commit(ring):
    """Make the row in the slot of the last `ring_push_slot` visible to the consumer."""
    store_release(ring, _HEAD, ring[_HEAD] + 1)


@kernel
def ring_available(ring):
    """Rows that the consumer may read."""
    return load_acquire(ring, _HEAD) - ring[_TAIL]


@kernel
def ring_slot(ring, i):
    """Slot of the i-th oldest unread row, i < `ring_available`."""
    return (ring[_TAIL] + i) & ring[_MASK]


@kernel
def ring_release(ring, n):
    """Give the n oldest rows back to the producer."""
    store_release(ring, _TAIL, ring[_TAIL] + n)


@kernel
def ring_overflow(ring):
    """Rows dropped because the ring was full; any thread may ask."""
    return load_acquire(ring, _OVERFLOW)
