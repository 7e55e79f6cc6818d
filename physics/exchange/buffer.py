"""Wait-free triple buffer: one writer, one reader, whole frames, newest wins.

Three slots: the writer fills its own, one atomic exchange trades it for the middle one, and the reader
trades its own for the middle one when that is marked fresh. Neither side ever waits or retries, and a slot
belongs to exactly one side at any time, so no frame can tear. The data are the user's arrays with leading
dimension 3, indexed by the slot; a slot that comes back to the writer holds an old frame, so the writer
fills every field that the reader looks at.

Wait-free single-producer single-consumer ring: rows in order, the newest dropped and counted when full.

Only the indices live here; the rows are the user's arrays with the ring's capacity as leading dimension.
Producer: slot = ring_push_slot(ring); if slot >= 0, fill rows[slot] and ring_commit(ring).
Consumer: n = ring_available(ring); read rows[ring_slot(ring, i)] for i < n; ring_release(ring, n).
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import CACHE_LINE, exchange, load_acquire, store_release
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


SLOTS = 3
"""Leading dimension of every array that goes through a triple buffer."""

_MIDDLE, _WRITER, _READER = 0, CACHE_LINE, 2 * CACHE_LINE
_FRESH, _SLOT = 4, 3  # bits of the middle word: a frame the reader has not taken; the slot's index


def make_control() -> NDArray[np.int64]:
    """Control words of an empty triple buffer, shape (24,): the middle, the writer's, the reader's line."""
    control = np.zeros(3 * CACHE_LINE, dtype=np.int64)
    control[_WRITER], control[_MIDDLE], control[_READER] = 0, 1, 2
    return control


@kernel
def writer_slot(control):
    """Slot that the writer may fill; it changes at every `publish`."""
    return control[_WRITER]


@kernel
def publish(control):
    """Hand the writer's slot over as the newest frame; a frame that the reader never took is dropped."""
    control[_WRITER] = exchange(control, _MIDDLE, control[_WRITER] | _FRESH) & _SLOT
    store_release(control, _WRITER + 1, control[_WRITER + 1] + 1)


@kernel
def acquire(control):
    """(slot, fresh): the newest published frame's slot, and whether it is newer than at the last call.

    The slot stays the reader's until its next `acquire`. Before the first publication it holds whatever
    the arrays were made with; `taken_count` tells.
    """
    if load_acquire(control, _MIDDLE) & _FRESH == 0:
        return control[_READER], False
    control[_READER] = exchange(control, _MIDDLE, control[_READER]) & _SLOT
    store_release(control, _READER + 1, control[_READER + 1] + 1)
    return control[_READER], True


@kernel
def published_count(control):
    """Frames published so far; any thread may ask."""
    return load_acquire(control, _WRITER + 1)


@kernel
def taken_count(control):
    """Fresh frames that the reader took so far; any thread may ask."""
    return load_acquire(control, _READER + 1)


@kernel
def is_fresh(control):
    """Would the next `acquire` bring a newer frame? Only the reader's side may ask."""
    return load_acquire(control, _MIDDLE) & _FRESH != 0


@kernel
def reader_slot(control):
    """Slot that the reader holds; it changes at an `acquire` that finds a fresh frame."""
    return control[_READER]
