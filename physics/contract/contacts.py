"""The contacts of a step, from whatever finds them, and how the engine asks for them.

    int32 detector(int64 stage, state *, contacts *, double h)

A detector knows two or more bodies' points by the arrays that SHAPE fills, or asks their units itself. Its
stages:

    FIND    append the contacts of this step
    AGAIN   after forces were found: AGAIN where points may have been missed, else DONE; FIND comes once more
    KEEP    after END: remember what the next step wants to know

Contacts are remembered by the engine (palpo.physics.contract.memory), but for those of a detector that keeps
material points itself: it fills `offset` and `force`, and says so in `anchored`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from palpo.physics.exchange.contact_count import CONTACT_COUNT
from palpo.physics.exchange.handle import HandleType, handle_like
from palpo.physics.numerics.kernels import callback, inlined, kernel


@inlined
def batch_of(e, b):
    """The points of body b in joints, contacts and cavities."""
    return handle_like(e.batch, e.bodies.batch[b])


@inlined
def part_of(e, b):
    """Those of the working set."""
    return handle_like(e.batch, e.bodies.part[b])


@inlined
def body_of(e, block, side):
    """The body on that side of a row block: of joints, then contacts, then cavities. -1 for none."""
    joints, contacts = e.joints.what.shape[0], e.contacts.count[0].found
    if block < joints:
        return e.joints.body[block, side]
    if block < joints + contacts:
        return e.contacts.body[block - joints, side]
    return e.cavities.body[block - joints - contacts, side]


@inlined
def solved_block(e, k, members):
    """The row block that is number k of the problem solved, whose contacts are the working set."""
    first = e.joints.what.shape[0]
    if k < first:
        return k
    if k < first + members:
        return first + e.member[k - first]
    return k - members + e.contacts.count[0].found


@kernel
def add_point(batch, what, slots, weights, arm, block, frame, sign):
    """Number of a new point of a batch, whose rows are sign times frame (3, 3)."""
    k = batch.count[0]
    batch.count[0] = k + 1
    batch.what[k], batch.block[k] = what, block
    for i in range(3):
        batch.slots[k, i], batch.weights[k, i], batch.arm[k, i] = slots[i], weights[i], arm[i]
        for j in range(3):
            batch.axes[k, i, j] = sign * frame[i, j]
    return k


@kernel
def copy_point(source, k, out, block):
    """Point k of a batch is also the next of another, in that row block."""
    add_point(
        out, source.what[k], source.slots[k], source.weights[k], source.arm[k], block, source.axes[k], 1.0
    )


FIND, MISSED, KEEP = range(3)
"""Stages."""

AGAIN = 4
"""What MISSED returns where detection should be repeated; else DONE of palpo.physics.contract.stages."""


class Contacts(NamedTuple):
    """n contacts, room for c; a contact pushes body 1 along its normal, away from body 2."""

    count: NDArray[np.void]  # type: ignore[assignment]  # (1,) of CONTACT_COUNT
    identity: NDArray[np.int64]  # (c,) the same contact's in each step, among those of its two bodies
    body: NDArray[np.int32]  # (c, 2)
    slots: NDArray[np.int32]  # (c, 2, 3) points of each body, as palpo.physics.contract.stages.Batch has them
    weights: NDArray[np.float64]  # (c, 2, 3)
    arm: NDArray[np.float64]  # (c, 2, 3) [m] from the weighted points to where they touch
    frame: NDArray[np.float64]  # (c, 3, 3) rows n, t1, t2, world axes
    gap: NDArray[np.float64]  # (c,) [m] at the step's start, as the law sees it
    mu: NDArray[np.float64]  # (c,)
    viscosity: NDArray[np.float64]  # (c,) [s/m] by which mu rises with the slip's speed
    restitution: NDArray[np.float64]  # (c,)
    give: NDArray[np.float64]  # (c,) [m/N] by which its sides approach each other beside the bodies' motion
    limits: NDArray[np.float64]  # (c, 2) least and most force along the normal [N] of a point of a shaft,
    # which is held across it (palpo.physics.contact.shaft_law); infinite for contacts
    give_along: NDArray[np.float64]  # (c,) [m/N] of such a point, by which it gives along its normal
    sheet: NDArray[
        np.bool_
    ]  # (c,) whether such a point is of a sheet, which is free along its second tangent
    anchored: NDArray[np.bool_]  # (c,) whether the detector has filled the next two
    offset: NDArray[np.float64]  # (c, 3) [m] slip since friction last gave way, world axes
    force: NDArray[np.float64]  # (c, 3) on body 1 [N], world axes: of the last step, later of this one
    status: NDArray[np.int32]  # (c,) OPEN, STICK or SLIP of this step


def make_contacts(capacity: int) -> Contacts:
    """None."""
    c = capacity
    return Contacts(
        np.zeros(1, CONTACT_COUNT), np.zeros(c, np.int64), np.zeros((c, 2), np.int32),
        np.zeros((c, 2, 3), np.int32), np.zeros((c, 2, 3)), np.zeros((c, 2, 3)), np.zeros((c, 3, 3)),
        np.zeros(c), np.zeros(c), np.zeros(c), np.zeros(c), np.zeros(c), np.full((c, 2), np.inf),
        np.zeros(c), np.zeros(c, np.bool_), np.zeros(c, np.bool_),
        np.zeros((c, 3)), np.zeros((c, 3)), np.zeros(c, np.int32),
    )  # fmt: skip


CONTACTS = typeof(make_contacts(1))


@inlined
def is_shaft(contacts, k):
    """Whether contact k is a point of a shaft; all that are come after the others."""
    return contacts.limits[k, 1] < np.inf


@kernel
def append(contacts, identity, first, second):
    """Number of a new contact of two bodies, without force, slip or arm; -1 where there is no room left."""
    k = contacts.count[0].found
    if k == contacts.gap.shape[0]:
        contacts.count[0].lost += 1
        return -1
    contacts.count[0].found = k + 1
    begin(contacts, k, identity, first, second)
    return k


@kernel
def begin(contacts, k, identity, first, second):
    """Contact k is a new one."""
    contacts.identity[k] = identity
    contacts.body[k, 0], contacts.body[k, 1] = first, second
    contacts.mu[k] = contacts.viscosity[k] = contacts.restitution[k] = contacts.give[k] = 0.0
    contacts.anchored[k] = contacts.sheet[k] = False
    contacts.limits[k, 0] = contacts.limits[k, 1] = np.inf
    for i in range(3):
        contacts.offset[k, i] = contacts.force[k, i] = 0.0
        for side in range(2):
            contacts.arm[k, side, i] = 0.0


def detector(smallest: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a detector's function (stage, state, contacts, h) for states laid out like `smallest`."""
    arguments = types.int64, HandleType(typeof(smallest)), HandleType(CONTACTS), types.float64
    return callback(types.int32(*arguments))


@intrinsic
def call_detector(typing_context, address, stage, state, contacts, h):
    """Call the detector at an int64 address on the addresses of its state and of the contacts."""

    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        c_type = ir.FunctionType(ir.IntType(32), [word, word, word, ir.DoubleType()])
        return builder.call(builder.inttoptr(args[0], c_type.as_pointer()), args[1:])

    word = types.int64
    return types.int32(word, word, word, word, types.float64), codegen
