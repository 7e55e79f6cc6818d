"""The servo's force history, high rate to low: what it pressed on every low-rate point, tick by tick.

The low loop integrates the full soft bodies under exactly these forces, so that action equals reaction
over every period; new frames are brought to the present by replaying them. Points are named by their
global number, so an entry outlives the frame that it was made under.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import make_ring, ring_commit, ring_push_slot
from palpo.physics.exchange.resident import resident
from palpo.physics.numerics.kernels import inlined


class ForceLog(NamedTuple):
    """A ring of ticks. The producer may read its own past until the ring wraps around."""

    ring: NDArray[np.int64]
    tick: NDArray[np.int64]  # (capacity,)
    used: NDArray[np.int64]  # (capacity,) entries in use
    point: NDArray[np.int32]  # (capacity, width) global points (or rotations)
    force: NDArray[np.float64]  # (capacity, width, 3) [N] or [N m], world axes
    led: NDArray[np.bool_]  # (capacity, width) whether a joint holds the point
    place: NDArray[np.float64]  # (capacity, width, 3) [m] where the tick left a point that is led
    dropped: NDArray[np.int64]  # (1,) forces beyond the width


def make_force_log(ticks: int, width: int) -> ForceLog:
    """An empty log of `ticks` (a power of two) entries with room for `width` points each."""
    return ForceLog(
        ring=make_ring(ticks),
        tick=np.full(ticks, -1, np.int64),
        used=resident(ticks, np.int64),
        point=resident((ticks, width), np.int32),
        force=resident((ticks, width, 3)),
        led=resident((ticks, width), np.bool_),
        place=resident((ticks, width, 3)),
        dropped=np.zeros(1, np.int64),
    )


@inlined
def open_entry(log, tick):
    """Slot of a new entry, or -1 when the low loop has not drained the ring for its whole length."""
    slot = ring_push_slot(log.ring)
    if slot >= 0:
        log.tick[slot] = tick
        log.used[slot] = 0
    return slot


@inlined
def add_force(log, slot, point, f, scale):
    """Add scale * f to a point's force in the open entry."""
    n = log.used[slot]
    for k in range(n):
        if log.point[slot, k] == point:
            for i in range(3):
                log.force[slot, k, i] += scale * f[i]
            return
    if n == log.point.shape[1]:
        log.dropped[0] += 1
        return
    log.point[slot, n], log.led[slot, n] = point, False
    for i in range(3):
        log.force[slot, n, i] = scale * f[i]
    log.used[slot] = n + 1


@inlined
def lead(log, slot, point, x):
    """A point under load in the open entry is held by a joint, and the tick leaves it at x (3,) [m]."""
    for k in range(log.used[slot]):
        if log.point[slot, k] == point:
            log.led[slot, k] = True
            for i in range(3):
                log.place[slot, k, i] = x[i]


@inlined
def close_entry(log):
    """Publish the open entry."""
    ring_commit(log.ring)
