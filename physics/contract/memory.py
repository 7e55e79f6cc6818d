"""What contacts remember from step to step: their force, to start the solver from, and their slip.

Coulomb's law needs the tangential displacement since friction last gave way, not since the last step. That is
the offset from the contact's anchor: zero when the contact is made, unchanged by slip, which moves the anchor
along, and otherwise whatever the solver left undone, so that a sticking contact returns to its anchor and
never creeps. Force and offset are kept in the axes of body 2, which carries the anchor.

How far it slipped in the last step is remembered, too: a surface may rub the more, the faster it slides.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import STICK
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import quat_rotate


class Memory(NamedTuple):
    """Two generations of up to c contacts, one of which is the present one."""

    present: NDArray[np.int64]  # (1,) 0 or 1
    count: NDArray[np.int64]  # type: ignore[assignment]  # (2,) contacts of each
    identity: NDArray[np.int64]  # (2, c)
    body: NDArray[np.int32]  # (2, c, 2)
    force: NDArray[np.float64]  # (2, c, 3) on body 1 [N], axes of body 2
    offset: NDArray[np.float64]  # (2, c, 3) [m], axes of body 2
    slipped: NDArray[np.float64]  # (2, c) [m] in that step
    back: NDArray[np.float64]  # (4,) scratch


def make_memory(capacity: int) -> Memory:
    """Nothing is remembered."""
    c = capacity
    return Memory(
        np.zeros(1, np.int64), np.zeros(2, np.int64), np.zeros((2, c), np.int64),
        np.zeros((2, c, 2), np.int32), np.zeros((2, c, 3)), np.zeros((2, c, 3)), np.zeros((2, c)),
        np.zeros(4),
    )  # fmt: skip


@inlined
def _find(memory, contacts, c, near):
    """Where contact c stands in the present generation, looked for from `near` on; -1 for nowhere."""
    g = memory.present[0]
    n = memory.count[g]
    for i in range(n):
        k = (near + i) % n
        if (
            memory.identity[g, k] == contacts.identity[c]
            and memory.body[g, k, 0] == contacts.body[c, 0]
            and memory.body[g, k, 1] == contacts.body[c, 1]
        ):
            return k
    return -1


@kernel
def recall(memory, contacts, c, q, h, near=-1):
    """Force and offset of contact c, whose body 2 has the orientation q (4,); none if it is new.

    near: about where it was in the last step; contacts come in a stable order, so at c if that is not told.
    Its friction rises by its viscosity times the speed of the slip in the last step of h [s].
    """
    g, k = memory.present[0], _find(memory, contacts, c, c if near < 0 else near)
    if k >= 0:
        quat_rotate(q, memory.force[g, k], contacts.force[c])
        quat_rotate(q, memory.offset[g, k], contacts.offset[c])
        contacts.mu[c] += contacts.viscosity[c] * memory.slipped[g, k] / h


@kernel
def open_memory(memory):
    """The generation of this step begins."""
    memory.count[1 - memory.present[0]] = 0


@inlined
def _keep_strain(contacts, c):
    """offset += -give times the tangential force: what gives way in contact c is not yet taken back."""
    n, force, along = contacts.frame[c, 0], contacts.force[c], 0.0
    for i in range(3):
        along += n[i] * force[i]
    for i in range(3):
        contacts.offset[c, i] -= contacts.give[c] * (force[i] - along * n[i])


@kernel
def remember(memory, contacts, c, u, q):
    """Contact c with the offsets u (3,) that this step left [m]; q (4,): orientation of body 2 at its end."""
    g, back, frame = 1 - memory.present[0], memory.back, contacts.frame[c]
    k = memory.count[g]
    memory.count[g] = k + 1
    memory.identity[g, k] = contacts.identity[c]
    for i in range(2):
        memory.body[g, k, i] = contacts.body[c, i]
    for i in range(4):
        back[i] = q[i] if i == 0 else -q[i]
    quat_rotate(back, contacts.force[c], memory.force[g, k])
    sticks = contacts.status[c] == STICK
    memory.slipped[g, k] = 0.0 if sticks else math.sqrt(u[1] * u[1] + u[2] * u[2])
    for i in range(3):
        contacts.offset[c, i] = u[1] * frame[1, i] + u[2] * frame[2, i] if sticks else 0.0
    if contacts.give[c] > 0.0:
        _keep_strain(contacts, c)
    quat_rotate(back, contacts.offset[c], memory.offset[g, k])


@kernel
def close_memory(memory):
    """The generation of this step becomes the present one."""
    memory.present[0] = 1 - memory.present[0]
