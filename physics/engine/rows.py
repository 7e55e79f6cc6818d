"""The rows of joints and contacts: what they touch, and b, what they are without contact force.

b = g + sum_b J_b d_b, with J_b the rows' map to body b and d_b its displacement without contact.
"""

from palpo.physics.contract.contacts import add_point, batch_of, part_of
from palpo.physics.contract.memory import recall
from palpo.physics.contract.stages import DONE, FREE, NOT_FINITE, PLACE, POINT, ROTATION
from palpo.physics.engine.cavities import add_cavities, free_volumes
from palpo.physics.engine.joints import SLIDE
from palpo.physics.engine.table import ask, ask_all
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_difference, quat_multiply, quat_rotate, tangent_basis


@kernel
def _drop_what_has_no_room(e):
    """Contacts past the room of a body's batch are lost; only one that touches itself can have so many."""
    contacts = e.contacts
    for b in range(e.bodies.unit.shape[0]):
        batch = batch_of(e, b)
        left = batch.what.shape[0] - batch.count[0]
        for k in range(e.cavities.count[0]):
            left -= (e.cavities.body[k, 0] == b) + (e.cavities.body[k, 1] == b)
        for k in range(contacts.count[0].found):
            left -= (contacts.body[k, 0] == b) + (contacts.body[k, 1] == b)
            if left < 0:
                contacts.count[0].lost += contacts.count[0].found - k
                contacts.count[0].found = k
                break


@kernel
def _joint_axes(e, k, out):
    """out (3, 3) = rows of joint k: the world's axes, or a slide's free direction and two across."""
    joints = e.joints
    for i in range(3):
        for j in range(3):
            out[i, j] = 1.0 if i == j else 0.0
    if joints.what[k] != SLIDE:
        return DONE
    body, along = joints.carrier[k, 0], out[0]
    if body < 0:
        for i in range(3):
            along[i] = joints.direction[k, i]
    else:
        part = part_of(e, body)
        part.count[0], part.what[0] = 1, ROTATION
        for i in range(3):
            part.slots[0, i] = joints.carrier[k, 1] if i == 0 else 0
            part.weights[0, i] = 1.0 if i == 0 else 0.0
        if ask(e, body, PLACE, e.bodies.part[body]) != DONE:
            return NOT_FINITE
        quat_rotate(part.q[0], joints.direction[k], along)
    tangent_basis(along, out[1], out[2])
    return DONE


@kernel
def set_rows(e):
    """Every body's points in joints and contacts, its fields of cavities, and where they are."""
    joints, contacts, frame, none = e.joints, e.contacts, e.vectors[:3], e.vectors[3]
    first = joints.what.shape[0]
    for b in range(e.bodies.unit.shape[0]):
        batch_of(e, b).count[0] = 0
    for i in range(3):
        none[i] = 0.0
    for k in range(first):
        what = ROTATION if joints.what[k] == ROTATION else POINT
        if _joint_axes(e, k, frame) != DONE:
            return NOT_FINITE
        for side in range(2):
            e.at[k, side] = add_point(
                batch_of(e, joints.body[k, side]), what, joints.slots[k, side], joints.weights[k, side],
                none, k, frame, 1.0 - 2.0 * side,
            )  # fmt: skip
    _drop_what_has_no_room(e)
    e.wants[0].v = 0
    for k in range(contacts.count[0].found):
        if contacts.restitution[k] > 0.0:
            e.wants[0].v = 1
        for side in range(2):
            e.at[first + k, side] = add_point(
                batch_of(e, contacts.body[k, side]), POINT, contacts.slots[k, side],
                contacts.weights[k, side], contacts.arm[k, side], first + k, contacts.frame[k],
                1.0 - 2.0 * side,
            )  # fmt: skip
    add_cavities(e)
    return place(e)


@kernel
def place(e):
    """Where the points are, which all but a detector that remembers want to know."""
    wanted = e.joints.what.shape[0] > 0 or e.cavities.count[0] > 0
    for k in range(e.contacts.count[0].found):
        wanted = wanted or not e.contacts.anchored[k]
    return ask_all(e, PLACE, e.bodies.batch) if wanted else DONE


@kernel
def relative(e, block, body, field, out):
    """out (3,) = rows of a block times d (field 0) or v (field 1) of its bodies."""
    for i in range(3):
        out[i] = 0.0
    for side in range(2):
        batch, k = batch_of(e, body[side]), e.at[block, side]
        values = batch.d[k] if field == 0 else batch.v[k]
        for i in range(3):
            axis = batch.axes[k, i]
            out[i] += axis[0] * values[0] + axis[1] * values[1] + axis[2] * values[2]


@kernel
def _joint_offset(e, k, out):
    """out (3,) = how far apart the sides of joint k are [m] or [rad]."""
    joints, want = e.joints, e.vectors[1]
    one, two = batch_of(e, joints.body[k, 0]), batch_of(e, joints.body[k, 1])
    i, j = e.at[k, 0], e.at[k, 1]
    if joints.what[k] == ROTATION:
        quat_multiply(joints.reference[k], two.q[j], want)
        quat_difference(one.q[i], want, out)
    else:
        for c in range(3):
            out[c] = one.x[i, c] - two.x[j, c]


@kernel
def bounce(e, k):
    """h eps v of contact k along its normal [m]: what it closed by, share eps, it is to open by."""
    if e.contacts.restitution[k] == 0.0:
        return 0.0
    speed = e.vectors[1]
    relative(e, e.joints.what.shape[0] + k, e.contacts.body[k], 1, speed)
    return e.step[0] * e.contacts.restitution[k] * speed[0]


@kernel
def free_motion(e):
    """b: offsets of joints, gaps and slips of contacts, without contact force; and what is foreseen."""
    joints, contacts, away, apart = e.joints, e.contacts, e.vectors[0], e.vectors[2]
    if set_rows(e) != DONE or ask_all(e, FREE, e.bodies.batch) != DONE:
        return NOT_FINITE
    first = joints.what.shape[0]
    e.count[0].lost += contacts.count[0].lost
    for k in range(first):
        _joint_offset(e, k, apart)
        relative(e, k, joints.body[k], 0, away)
        for i in range(3):
            axis = batch_of(e, joints.body[k, 0]).axes[e.at[k, 0], i]
            e.b[3 * k + i] = axis[0] * apart[0] + axis[1] * apart[1] + axis[2] * apart[2] + away[i]
    for k in range(contacts.count[0].found):
        body, row = contacts.body[k], 3 * (first + k)
        if not contacts.anchored[k]:
            recall(e.memory, contacts, k, batch_of(e, body[1]).q[e.at[first + k, 1]], e.step[0])
        relative(e, first + k, body, 0, away)
        for i in range(3):
            offset = contacts.gap[k]
            if i > 0:
                axis, slip = contacts.frame[k, i], contacts.offset[k]
                offset = axis[0] * slip[0] + axis[1] * slip[1] + axis[2] * slip[2]
            e.b[row + i] = offset + away[i]
        e.b[row] += bounce(e, k)
    free_volumes(e)
    _foresee(e)
    return DONE


@kernel
def _foresee(e):
    """gap: of each contact after the free motion of the bodies that do move by it."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    for k in range(contacts.count[0].found):
        e.gap[k] = contacts.gap[k]
        for side in range(2):
            body = contacts.body[k, side]
            if not e.bodies.springs_back[body]:
                batch, i = batch_of(e, body), e.at[first + k, side]
                axis, d = batch.axes[i, 0], batch.d[i]
                e.gap[k] += axis[0] * d[0] + axis[1] * d[1] + axis[2] * d[2]
        e.gap[k] = min(e.gap[k] + bounce(e, k), contacts.gap[k])
