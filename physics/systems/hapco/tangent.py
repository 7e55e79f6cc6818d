"""HapCo with hundreds of contacts that bear: solved in the slow loop, followed along tangents in the servo.

At 1 kHz nothing of the size of W can even be read. So the slow loop solves the whole problem, at its own
rate, twice on one W: where the hand was when the step began, from which friction goes on, and where the
hand is going to be while the frame is in force, foretold from its velocity. Of the second solution it
publishes the forces r and their derivative S by the pose of the mobile body's frame while no contact
changes its status (palpo.physics.contact.tangents). With d the hand's way from the foretold pose, the servo
takes

    r + S d,  each contact's force brought back into its cone,

which is exact on the frame's contacts until a contact changes its status; what changes is kept within its
cone, and the forces of its neighbours follow with the next frame. The cost is that of 3 n times 6 products.

**Where the hand turns back** what slid comes to stick, all at once, which no derivative of the forward
motion knows. The frame tells the power of friction on what slides by the frame's velocity: negative as long
as the slip goes on. Where it is positive, be it on a frame that foretold the slip of a hand which has
turned since, the servo goes on from the forces that it has by a second derivative, in which all that bears
sticks, and brings them back into the cones at each tick, so that it comes to slide anew. Friction is thus
not set back to a slip that never came, which would give the hand energy.

**Before it touches** the slow loop solves for a pose pushed in along the contacts' normals until one bears.
Its tangent, cut at zero, is the contact force from the touch on.

What is frozen for a frame's life, as in palpo.physics.systems.hapco.two_rates: the pairs, their points and
normals, W, and the shapes for the picture. Points and normals are those of the foretold pose. The slow loop's
bodies follow the hand by themselves: the servo tells it the hand's motion only, no force, so that the two do
not form a loop.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import OPEN, SLIP, STICK, scale_to_disc
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.tick import aim, tell_shapes
from palpo.physics.exchange.buffer import is_fresh, make_control, publish, reader_slot, writer_slot
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.exchange.patience import none_in_force, wait, waits
from palpo.physics.exchange.port import CONTACTS_LOST, NOT_FINITE, OK, TOUCHES, end_tick
from palpo.physics.exchange.tangent_frame import HandState, TangentFrame, make_hand_state, make_tangent_frame
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import callback, kernel
from palpo.physics.numerics.math3 import cross3, dot3, quat_difference
from palpo.physics.systems.hapco.frames import adopt
from palpo.physics.systems.hapco.servo import smallest_servo
from palpo.physics.systems.hapco.tick import QuasistaticServo, draw_bodies, pose, tell_hand

SMOOTHING = 0.01
"""Time constant of the velocity by which it is foretold [s]."""
SLIDES = 1e-3
"""Slip in shares of the collision tolerance below which a contact on its cone may as well stick."""
FORETOLD, UNLOADING = range(2)
"""Whether forces follow from the foretold pose, or from those of the last tick."""


class Following(NamedTuple):
    """Where the servo is on a frame."""

    mode: NDArray[np.int64]  # (1,) FORETOLD or UNLOADING
    force: NDArray[np.float64]  # (c, 3) of the last tick [N], contacts' axes
    last: NDArray[np.float64]  # (3,) [m] the hand at the last tick
    last_q: NDArray[np.float64]  # (4,)
    velocity: NDArray[np.float64]  # (6,) [m/s], [rad/s] smoothed
    way: NDArray[np.float64]  # (3, 6) scratch
    vectors: NDArray[np.float64]  # (4, 3) scratch


class TangentServo(NamedTuple):
    """Everything that a tick reads and writes."""

    servo: QuasistaticServo
    calls: NDArray[np.int64]  # (1,) of the tick
    in_force: NDArray[Any]  # (1,) of palpo.physics.exchange.patience.IN_FORCE
    following: Following
    frame: TangentFrame
    frame_control: NDArray[np.int64]
    state: HandState
    state_control: NDArray[np.int64]


@kernel
def _way(s, position, orientation, out):
    """out (6,) = the hand's motion from that pose."""
    for i in range(3):
        out[i] = s.hand.position[i] - position[i]
    quat_difference(s.hand.orientation, orientation, out[3:6])


@kernel
def _power(release, way):
    """Work of friction on what slides over a way (6,) [J]."""
    total = 0.0
    for i in range(6):
        total += release[i] * way[i]
    return total


@kernel
def _put_by(m, f):
    """The forces of the frame in slot f by their contacts' identity, world axes."""
    frame, to, anchors = m.frame, m.following, m.servo.tracked.anchors
    clear_anchors(anchors)
    for k in range(frame.count[f].found):
        kept = add_anchor(anchors, frame.identity[f, k])
        axes, r = frame.axes[f, k], to.force[k]
        for i in range(3):
            anchors.force[kept, i] = axes[0, i] * r[0] + axes[1, i] * r[1] + axes[2, i] * r[2]


@kernel
def _go_on(m, f):
    """From the forces of the last tick, and those that the slow loop found at contacts that are new."""
    frame, to, anchors = m.frame, m.following, m.servo.tracked.anchors
    for k in range(frame.count[f].found):
        kept = find_anchor(anchors, frame.identity[f, k])
        if kept < 0:
            copy(frame.held[f, k], to.force[k])
        else:
            for i in range(3):
                to.force[k, i] = dot3(frame.axes[f, k, i], anchors.force[kept])


@kernel
def _take_frame(m):
    """Adopt the newest frame if there is one, its settings too; where to follow it from."""
    s, f = m.servo, reader_slot(m.frame_control)
    if not is_fresh(m.frame_control):
        return f
    _put_by(m, f)
    f, frame, to = adopt(m), m.frame, m.following
    _go_on(m, f)
    _way(s, frame.behind[f], frame.behind_q[f], to.way[0])
    to.mode[0] = UNLOADING if _power(frame.release[f], to.way[0]) > 0.0 else FORETOLD
    return f


@kernel
def _follow(m, f):
    """Forces at the hand's present pose; the share of them that the cones take off.

    Where the hand goes against the slip that was foretold, the forces go on from those of the last tick.
    """
    s, frame, to = m.servo, m.frame, m.following
    step, mu = to.way[0], s.live[0].friction
    _way(s, to.last, to.last_q, step)
    if to.mode[0] == FORETOLD and _power(frame.release[f], step) > 0.0:
        to.mode[0] = UNLOADING
    foretold, way = to.mode[0] == FORETOLD, step
    if foretold:
        way = to.way[1]
        _way(s, frame.ahead[f], frame.ahead_q[f], way)
    cut, size, r = 0.0, 0.0, to.vectors[0]
    for k in range(frame.count[f].found):
        base = frame.force[f, k] if foretold else to.force[k]
        slope = frame.tangent[f, k] if foretold else frame.elastic[f, k]
        for i in range(3):
            row = slope[i]
            r[i] = base[i] + (
                row[0] * way[0] + row[1] * way[1] + row[2] * way[2]
                + row[3] * way[3] + row[4] * way[4] + row[5] * way[5]
            )  # fmt: skip
        normal = max(0.0, r[0])
        share = scale_to_disc(r[1], r[2], mu * normal)
        cut += (r[0] - normal) ** 2 + (1.0 - share) ** 2 * (r[1] ** 2 + r[2] ** 2)
        size += r[0] ** 2 + r[1] ** 2 + r[2] ** 2
        to.force[k, 0], to.force[k, 1], to.force[k, 2] = normal, share * r[1], share * r[2]
    copy(s.hand.position, to.last)
    copy(s.hand.orientation, to.last_q)
    return (cut / size) ** 0.5 if size > 0.0 else 0.0


@kernel
def _feel(m, f, cut):
    """Force and moment on the hand, and the numbers that go with them; returns the tick's status."""
    s, frame, to = m.servo, m.frame, m.following
    status, hand, n, active = s.port.status[0], s.hand, m.frame.count[f].found, 0
    world, moment = to.vectors[2], to.vectors[3]
    for i in range(3):
        hand.force[i] = hand.torque[i] = 0.0
        hand.held[i] = hand.position[i]
    for k in range(n):
        axes, r = frame.axes[f, k], to.force[k]
        active += r[0] > 0.0
        for i in range(3):
            world[i] = axes[0, i] * r[0] + axes[1, i] * r[1] + axes[2, i] * r[2]
        cross3(frame.arm[f, k], world, moment)
        for i in range(3):
            hand.force[i] += world[i]
            hand.torque[i] += moment[i]
    s.port.info[0].depth, s.port.info[0].residual = 0.0, cut
    status.sweeps = status.replayed = 0
    status.contacts, status.rows, status.frame = active, 3 * n, s.live_id[0]
    status.felt = TOUCHES if active > 0 else 0
    status.flags = CONTACTS_LOST if frame.count[f].lost > 0 else 0
    return tell_hand(s)


@kernel
def _publish_picture(m, f):
    """The picture of this tick, with the shapes of the frame."""
    s, frame, to = m.servo, m.frame, m.following
    out, w = s.picture, writer_slot(s.picture_control)
    draw_bodies(s, w, s.hand.orientation)
    out.n_contacts[w] = frame.count[f].found
    mu = s.live[0].friction
    for k in range(frame.count[f].found):
        axes, r = frame.axes[f, k], to.force[k]
        for i in range(3):
            out.contact_point[w, k, i] = s.hand.position[i] + frame.arm[f, k, i]
            out.contact_force[w, k, i] = axes[0, i] * r[0] + axes[1, i] * r[1] + axes[2, i] * r[2]
        sliding = r[1] * r[1] + r[2] * r[2] >= ((1.0 - SLIDES) * mu * r[0]) ** 2
        out.contact_status[w, k] = (SLIP if sliding else STICK) if r[0] > 0.0 else OPEN
    publish(s.picture_control)


@kernel
def _tell_hand(m):
    """The hand's pose and velocity for the slow loop."""
    s, to = m.servo, m.following
    out, w = m.state, writer_slot(m.state_control)
    out.calls[w] = m.calls[0]
    copy(s.hand.position, out.position[w])
    copy(s.hand.orientation, out.orientation[w])
    copy(to.velocity, out.velocity[w])
    publish(m.state_control)


@kernel
def _lead(m):
    """The hand's pose from the port, and its smoothed velocity."""
    s, to = m.servo, m.following
    before, turn = to.vectors[2], to.vectors[3]
    for i in range(3):
        before[i] = s.hand.position[i]
    pose(s)
    if s.engine.now[0] == 0:
        copy(s.hand.position, to.last)
        copy(s.hand.orientation, to.last_q)
        return
    step = s.engine.step[0]
    share = step / (step + SMOOTHING)
    quat_difference(s.hand.orientation, to.last_q, turn)
    for i in range(3):
        to.velocity[i] += share * ((s.hand.position[i] - before[i]) / step - to.velocity[i])
        to.velocity[3 + i] += share * (turn[i] / step - to.velocity[3 + i])


@kernel
def tick(m):
    """One step of the servo. Returns OK or NOT_FINITE; force and moment are on m.servo.port.

    While a frame is overdue by far the scene's time stands still (palpo.physics.exchange.patience).
    """
    s, in_force = m.servo, m.in_force[0]
    m.calls[0] += 1
    if waits(in_force, s.engine.now[0], m.frame_control):
        return wait(s.port, s.engine.now[0] - in_force.adopted_at + in_force.waited)
    _lead(m)
    f = _take_frame(m)
    status = _feel(m, f, _follow(m, f))
    if status != OK or aim(s.engine) != DONE or tell_shapes(s.engine) != DONE:
        return end_tick(s.port, NOT_FINITE, s.port.status[0].age)
    _publish_picture(m, f)
    s.engine.now[0] += 1
    _tell_hand(m)
    return end_tick(s.port, status, s.engine.now[0] - 1 - in_force.adopted_at)


def with_exchange(servo: QuasistaticServo, ratio: int) -> TangentServo:
    """A servo whose shapes and forces come with frames, one in `ratio` ticks."""
    servo.mobile.frozen[0] = servo.fixed.frozen[0] = True
    capacity = servo.tracked.found.gap.size
    following = Following(
        np.zeros(1, np.int64), np.zeros((capacity, 3)), servo.hand.position.copy(),
        servo.hand.orientation.copy(), np.zeros(6), np.zeros((3, 6)), np.zeros((4, 3)),
    )  # fmt: skip
    return TangentServo(
        servo, np.zeros(1, np.int64), none_in_force(ratio), following,
        make_tangent_frame(servo.mobile.u.shape[0], servo.fixed.u.shape[0], capacity), make_control(),
        make_hand_state(), make_control(),
    )  # fmt: skip


_CONTENT = typeof(with_exchange(smallest_servo(), 1))


@callback(types.int32(HandleType(_CONTENT)))
def tangent_tick(state):
    """`int32 f(void *)`: one tick of the TangentServo behind the handle; its status."""
    return tick(state)


def tick_data(m: TangentServo) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    return handle_for(m, _CONTENT, "tangent servo")
