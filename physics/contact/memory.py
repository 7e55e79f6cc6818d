"""What a contact remembers from tick to tick: its force, to start the solver from, and its stick offset.

The stick offset is the tangential distance from the contact's anchor: zero when the contact is made,
unchanged by slip (which moves the anchor along), and otherwise whatever the solver left undone, so that a
sticking contact returns to its anchor and never creeps. It is carried by contact identity, across low-rate
refreshes too.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.kernels import kernel


class ContactMemory(NamedTuple):
    """Two generations, of which `count[2]` says which one is the present."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (3,) contacts of generation 0 and 1; the present generation
    identity: NDArray[np.int64]  # (2, capacity)
    force: NDArray[np.float64]  # (2, capacity, 3) [N] world axes
    offset: NDArray[np.float64]  # (2, capacity, 3) [m] world axes
    points: NDArray[np.int32]  # (2, capacity, 2, 3) points of both sides
    weights: NDArray[np.float64]  # (2, capacity, 2, 3)


def make_contact_memory(capacity: int) -> ContactMemory:
    """An empty memory."""
    return ContactMemory(
        np.zeros(3, np.int64), np.zeros((2, capacity), np.int64), np.zeros((2, capacity, 3)),
        np.zeros((2, capacity, 3)), np.full((2, capacity, 2, 3), -1, np.int32), np.zeros((2, capacity, 2, 3)),
    )  # fmt: skip


@kernel
def recall(memory, contacts, c, k, rows):
    """Start block k (contact c) from its remembered force, and add its stick offset to b_t."""
    g = memory.count[2]
    found = -1
    n = memory.count[g]
    # contacts come in a stable order, so the search starts where the contact was
    for i in range(n):
        j = (c + i) % n
        if memory.identity[g, j] == contacts.identity[c]:
            found = j
            break
    for d in range(3):
        rows.r[3 * k + d] = 0.0
    if found < 0:
        return
    for d in range(3):
        row = rows.direction[k, d]
        f, o = memory.force[g, found], memory.offset[g, found]
        rows.r[3 * k + d] = row[0] * f[0] + row[1] * f[1] + row[2] * f[2]
        if d > 0:
            rows.b[3 * k + d] += row[0] * o[0] + row[1] * o[1] + row[2] * o[2]


@kernel
def remember(memory, contacts, rows, offset):
    """Make the contacts of this tick the present generation.

    offset (contacts, 3): tangential offset from the anchor that the next tick starts from, in (n, t1, t2).
    """
    g = 1 - memory.count[2]
    n = contacts.count[0]
    for c in range(n):
        k = rows.count[0] + c
        memory.identity[g, c] = contacts.identity[c]
        for i in range(3):
            memory.force[g, c, i] = (
                rows.direction[k, 0, i] * rows.r[3 * k]
                + rows.direction[k, 1, i] * rows.r[3 * k + 1]
                + rows.direction[k, 2, i] * rows.r[3 * k + 2]
            )
            memory.offset[g, c, i] = (
                rows.direction[k, 1, i] * offset[c, 1] + rows.direction[k, 2, i] * offset[c, 2]
            )
            for s in range(2):
                memory.points[g, c, s, i] = contacts.points[c, s, i]
                memory.weights[g, c, s, i] = contacts.weights[c, s, i]
    memory.count[g] = n
    memory.count[2] = g
