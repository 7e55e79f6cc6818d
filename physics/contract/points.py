"""The engine's table of bodies as kernels read it: a body's points, and which bodies a row block is of."""

from palpo.physics.exchange.handle import handle_like
from palpo.physics.numerics.kernels import inlined, kernel


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
