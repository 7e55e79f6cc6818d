"""HapCo at two rates: contacts and W in the slow loop, the contact forces in the servo.

Detection and the gathering of W grow with the square of the number of contacts, and change slowly. So the
slow loop does both at the newest equilibrium and publishes them as a frame. The servo moves the frame of the
mobile body with the hand, takes the free gaps of the frame's contacts at its present pose, and solves on the
frame's W, from the forces of the last tick. The rest is `physics.systems.hapco.tick`: both loops are engines
of the same bodies, whose shapes are frozen in the servo, and whose frame stays where it is in the slow loop.

**What is frozen** for a frame's life: the pairs, their material points and normals; W, with the coupling's
columns, about the pose in which they were found; and the shape of the bodies where the arms of the moment and
the picture need it. All of these differ from the present ones in proportion to what the hand has moved since,
so that the error is of first order in the low period. At rest nothing differs.

**Memory.** Friction holds on across frames by the contacts' identity. A contact's remainder is its mobile
point less its fixed point when it was anchored; where a new frame has other points, the remainder changes by
what the separation does. The equilibrium itself tells the separation, as u = W r + b, so that the servo needs
no deformed surface.

A contact is felt only once a frame has it: the collision tolerance must exceed what the hand approaches in
two low periods.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.physics.collision.tracked_contacts import separation, tell
from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import STICK
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.equilibrium import gather, push, scatter, settled, solve, tell_statuses, warm_start
from palpo.physics.engine.rows import free_motion
from palpo.physics.engine.solve import open_step
from palpo.physics.engine.tick import aim, end, let_go, tell_shapes
from palpo.physics.engine.working_set import SOLVES, admit, gather_matrix, start_set
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.buffer import is_fresh, make_control, publish, reader_slot, writer_slot
from palpo.physics.exchange.contact_frame import (
    ContactFrame,
    Equilibrium,
    make_contact_frame,
    make_equilibrium,
)
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.exchange.patience import none_in_force, wait, waits
from palpo.physics.exchange.port import NOT_FINITE, end_tick
from palpo.physics.numerics.arrays import all_finite, copy, copy_rows
from palpo.physics.numerics.kernels import callback, inlined, kernel
from palpo.physics.numerics.math3 import dot3, matvec3, matvec3_transposed
from palpo.physics.systems.hapco.frames import adopt
from palpo.physics.systems.hapco.servo import smallest_servo
from palpo.physics.systems.hapco.tick import QuasistaticServo, feedback, pose, publish_picture


class MultirateServo(NamedTuple):
    """Everything that a tick reads and writes."""

    servo: QuasistaticServo
    calls: NDArray[np.int64]  # (1,) of the tick
    in_force: NDArray[Any]  # (1,) of palpo.physics.exchange.patience.IN_FORCE
    frame: ContactFrame
    frame_control: NDArray[np.int64]
    state: Equilibrium
    state_control: NDArray[np.int64]


@kernel
def _separation(s, slots, weights, k, out):
    """out (3,) = mobile point less fixed point k of slots and weights (2, c, 3) [m], fixed body's axes."""
    apart = s.tracked.vectors[0]
    separation(s.tracked, slots, weights, k, apart)
    matvec3_transposed(s.tracked.rotation_2, apart, out)


@kernel
def _take_frame(m):
    """Adopt the newest frame if there is one; its settings, too."""
    s, f = m.servo, reader_slot(m.frame_control)
    if not is_fresh(m.frame_control):
        return f
    f = adopt(m)
    tell_shapes(s.engine)
    _take_contacts(s, m.frame, f)
    return f


@kernel
def _take_contacts(s, frame, f):
    """The frame's contacts; those that there were before keep their forces and their slips."""
    contacts, anchors = s.tracked.found, s.tracked.anchors
    now, then = s.tracked.tracker.vectors[2], s.tracked.tracker.vectors[3]
    clear_anchors(anchors)
    for k in range(contacts.count[0].found):
        add_anchor(anchors, contacts.identity[k])
        copy(contacts.force[k], anchors.force[k])
        copy(contacts.remainder[k], anchors.remainder[k])
        for side in range(2):
            copy(contacts.slots[side, k], anchors.slots[side, k])
            copy(contacts.weights[side, k], anchors.weights[side, k])
    contacts.count[0] = frame.count[f]
    for k in range(contacts.count[0].found):
        contacts.identity[k] = frame.identity[f, k]
        contacts.triangle[k] = frame.triangle[f, k]
        copy_rows(frame.axes[f, k], contacts.frame[k])
        for side in range(2):
            copy(frame.slots[f, side, k], contacts.slots[side, k])
            copy(frame.weights[f, side, k], contacts.weights[side, k])
        old = find_anchor(anchors, contacts.identity[k])
        _separation(s, contacts.slots, contacts.weights, k, now)
        if old < 0:
            copy(now, contacts.remainder[k])
            contacts.force[k] = 0.0
            continue
        _separation(s, anchors.slots, anchors.weights, old, then)
        copy(anchors.force[old], contacts.force[k])
        for i in range(3):
            contacts.remainder[k, i] = anchors.remainder[old, i] + (now[i] - then[i])


@kernel
def _remember(s):
    """What each contact starts the next tick from: its force, and where it is anchored unless it sticks."""
    found, contacts, u, rotation = s.tracked.found, s.engine.contacts, s.engine.u, s.tracked.rotation_2
    apart, local = s.tracked.tracker.vectors[0], s.tracked.tracker.vectors[1]
    for k in range(found.count[0].found):
        matvec3_transposed(rotation, contacts.force[k], found.force[k])
        if contacts.status[k] == STICK:
            continue
        frame = found.frame[k]
        matvec3(rotation, found.remainder[k], apart)
        for i in range(3):
            local[i] = u[3 * k] * frame[0, i]
            for d in range(1, 3):
                local[i] += (u[3 * k + d] + dot3(frame[d], apart)) * frame[d, i]
        matvec3_transposed(rotation, local, found.remainder[k])


@kernel
def _publish_state(m):
    """The equilibrium for the slow loop."""
    s, out, w = m.servo, m.state, writer_slot(m.state_control)
    found, contacts, at = s.tracked.found, s.engine.contacts, s.mobile.frame.now
    out.calls[w] = m.calls[0]
    copy(at.position, out.position[w])
    copy(at.orientation, out.orientation[w])
    out.n_contacts[w] = found.count[0].found
    for k in range(found.count[0].found):
        out.identity[w, k], out.triangle[w, k] = found.identity[k], found.triangle[k]
        copy(contacts.force[k], out.force[w, k])
        out.status[w, k] = contacts.status[k]
        for side in range(2):
            copy(found.slots[side, k], out.slots[w, side, k])
            copy(found.weights[side, k], out.weights[w, side, k])
    publish(m.state_control)


@inlined
def frame_matrix(m, f):
    """W of the servo's present contacts, shape (3 n, 3 n), over the memory of the frame in slot f."""
    n = 3 * m.servo.tracked.found.count[0].found
    return view_square(m.frame.w[f], n)


@kernel
def _see_offsets(e, whole):
    """u of all contacts under the forces so far, by W of them all; False where it is no number."""
    n = e.contacts.count[0].found
    set_offset(whole, e.b, e.r, e.u, 0, 3 * n)
    for k in range(n):
        e.gap[k] = e.u[3 * k]
    return all_finite(e.u[: 3 * n])


@kernel
def _solve_set(e, whole):
    """Forces of the working set, which grows by what sinks in, out of W of all contacts.

    Here the offsets under given forces cost no more than the columns of W that bear.
    """
    n = e.contacts.count[0].found
    warm_start(e)
    start_set(e.contacts.force, n, e.inside)
    if not _see_offsets(e, whole):
        return NOT_FINITE
    admit(e.gap, n, e.inside)
    open_step(e.solver)
    for left in range(SOLVES, 0, -1):
        gather(e)
        rows = e.problem.rows[1]
        gather_matrix(whole, e.member, view_square(e.problem.w, rows))
        if not all_finite(e.problem.w[: rows * rows]) or solve(e) != DONE:
            return NOT_FINITE
        scatter(e)
        if not _see_offsets(e, whole):
            return NOT_FINITE
        if settled(e) or e.solver.told[0].flags != 0 or left == 1:
            break
        admit(e.gap, n, e.inside)
    tell_statuses(e)
    return push(e)


@kernel
def _step(m, f):
    """From the frame's contacts to the equilibrium at the hand's present pose; DONE or NOT_FINITE."""
    s, e = m.servo, m.servo.engine
    if let_go(e) != DONE:
        return NOT_FINITE
    e.contacts.count[0].found = 0
    e.contacts.count[0].lost = 0
    tell(s.tracked, e.contacts)
    if free_motion(e) != DONE or _solve_set(e, frame_matrix(m, f)) != DONE:
        return NOT_FINITE
    return end(e)


@kernel
def tick(m):
    """One step of the servo. Returns OK or NOT_FINITE; force and moment are on m.servo.port.

    While a frame is overdue by far the scene's time stands still (palpo.physics.exchange.patience).
    """
    s, e, in_force = m.servo, m.servo.engine, m.in_force[0]
    m.calls[0] += 1
    if waits(in_force, s.engine.now[0], m.frame_control):
        return wait(s.port, s.engine.now[0] - in_force.adopted_at + in_force.waited)
    pose(s)
    if aim(e) != DONE or _step(m, _take_frame(m)) != DONE:
        return end_tick(s.port, NOT_FINITE, s.port.status[0].age)
    _remember(s)
    status = feedback(s)
    publish_picture(s)
    _publish_state(m)
    return end_tick(s.port, status, s.engine.now[0] - 1 - in_force.adopted_at)


def with_exchange(servo: QuasistaticServo, ratio: int) -> MultirateServo:
    """A servo whose shapes come with frames, and so do its contacts; ratio: its ticks in a low period."""
    servo.mobile.frozen[0] = servo.fixed.frozen[0] = True
    engine = servo.engine
    servo = servo._replace(engine=engine._replace(detector=engine.detector[:0]))
    capacity = servo.tracked.found.gap.size
    return MultirateServo(
        servo, np.zeros(1, np.int64), none_in_force(ratio),
        make_contact_frame(servo.mobile.u.shape[0], servo.fixed.u.shape[0], capacity),
        make_control(), make_equilibrium(capacity), make_control(),
    )  # fmt: skip


_CONTENT = typeof(with_exchange(smallest_servo(), 1))


@callback(types.int32(HandleType(_CONTENT)))
def multirate_tick(state):
    """`int32 f(void *)`: one tick of the MultirateServo behind the handle; its status."""
    return tick(state)


def tick_data(m: MultirateServo) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    return handle_for(m, _CONTENT, "multi-rate servo")
