"""Bodies with a low loop, in a step of the engine: their frames, and the log that their loops read."""

from palpo.physics.contact.laws import OPEN, STICK
from palpo.physics.contract.contacts import batch_of
from palpo.physics.contract.stages import ADOPT, DONE, FREE, MOVED, NOT_FINITE, POINT
from palpo.physics.engine.table import ask, ask_all
from palpo.physics.exchange.force_log import add_force, close_entry, lead, open_entry
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import quat_rotate


@kernel
def _move_anchor(e, k, entry, by):
    """What contact k remembers as its slip is longer by a vector (3,), world axes; entry: its place there."""
    memory, own, back = e.memory, e.vectors[1], e.memory.back
    q = batch_of(e, e.contacts.body[k, 1]).q[e.at[e.joints.what.shape[0] + k, 1]]
    for i in range(4):
        back[i] = q[i] if i == 0 else -q[i]
    quat_rotate(back, by, own)
    for i in range(3):
        memory.offset[memory.present[0], entry, i] += own[i]


@kernel
def adopt(e):
    """Every body takes its newest frame, if one waits; what sticks follows points that jump with it.

    The bodies are asked with the points of the last step's joints and contacts. An anchor stays where it is
    on its body: a contact whose points jump returns to it.
    """
    if ask_all(e, ADOPT, e.bodies.batch) != DONE:
        return NOT_FINITE
    contacts, first, jump, entry = e.contacts, e.joints.what.shape[0], e.vectors[0], -1
    for k in range(contacts.count[0].found):
        if contacts.anchored[k] or contacts.status[k] == OPEN:
            continue
        entry += 1
        jumps = False
        for i in range(3):
            jump[i] = 0.0
        for side in range(2):
            batch, at = batch_of(e, contacts.body[k, side]), e.at[first + k, side]
            if batch.frame[0].fresh == 1 and batch.frame[0].stays == 1:
                jumps = True
                for i in range(3):
                    jump[i] += batch.d[at, i] if side == 0 else -batch.d[at, i]
        if jumps:
            _move_anchor(e, k, entry, jump)
    return DONE


@kernel
def see_yield(e):
    """v of the points of bodies that stay where frames have them: how far forces would move them."""
    for b in range(e.bodies.batch.shape[0]):
        batch = batch_of(e, b)
        if batch.frame[0].stays == 0:
            continue
        if ask(e, b, MOVED, e.bodies.batch[b]) != DONE:
            return NOT_FINITE
        for k in range(batch.count[0]):
            for i in range(3):
                batch.v[k, i] = batch.d[k, i]
        if ask(e, b, FREE, e.bodies.batch[b]) != DONE:
            return NOT_FINITE
        for k in range(batch.count[0]):
            for i in range(3):
                batch.v[k, i] -= batch.d[k, i]
    return DONE


@kernel
def keep_yield(e):
    """After END: contacts will yield anew, by what `see_yield` found, so their slip is short of it."""
    contacts, first, by, entry = e.contacts, e.joints.what.shape[0], e.vectors[0], -1
    for k in range(contacts.count[0].found):
        if contacts.anchored[k] or contacts.status[k] == OPEN:
            continue
        entry += 1
        stays = False
        for i in range(3):
            by[i] = 0.0
        for side in range(2):
            batch, at = batch_of(e, contacts.body[k, side]), e.at[first + k, side]
            if batch.frame[0].stays == 1:
                stays = True
                for d in range(1, 3):
                    axis = batch.axes[at, d]
                    along = axis[0] * batch.v[at, 0] + axis[1] * batch.v[at, 1] + axis[2] * batch.v[at, 2]
                    for i in range(3):
                        by[i] -= along * contacts.frame[k, d, i]
        if stays:
            _move_anchor(e, k, entry, by)


@inlined
def _clings(e, block):
    """Whether a block is a contact that sticks between bodies of one loop, while there are cavities."""
    k = block - e.joints.what.shape[0]
    if e.cavities.count[0] == 0 or k >= e.contacts.count[0].found:
        return False
    return e.contacts.status[k] == STICK and e.contacts.body[k, 0] == e.contacts.body[k, 1]


@kernel
def log_forces(e, b, log):
    """The forces of the step that has ended on body b, by its own points, for the loop that integrates it.

    Points that joints hold are told with where they are now, and where air holds bodies together, those that
    stick on another one of the same loop: of two that large forces press and pull together, what is logged
    leaves little, in which a light one would get lost.
    """
    batch, part, joints = batch_of(e, b), e.vectors[0], e.joints.what.shape[0]
    entry = open_entry(log, e.now[0] - 1)
    if entry < 0:
        return
    for k in range(batch.count[0]):
        for c in range(3):
            weight = batch.weights[k, c]
            if weight == 0.0:
                continue
            for i in range(3):
                part[i] = weight * batch.f[k, i]
            add_force(log, entry, batch.slots[k, c], part, 1.0)
            if (
                weight == 1.0
                and batch.what[k] == POINT
                and (batch.block[k] < joints or _clings(e, batch.block[k]))
            ):
                lead(log, entry, batch.slots[k, c], batch.x[k])
    close_entry(log)
