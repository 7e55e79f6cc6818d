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

What follows is a body of the servo's engine (palpo.physics.compliance.followed).

What is frozen for a frame's life, as in palpo.physics.systems.hapco.two_rates: the pairs, their points and
normals, W, and the shapes for the picture. Points and normals are those of the foretold pose. The slow loop's
bodies follow the hand by themselves: the servo tells it the hand's motion only, no force, so that the two do
not form a loop.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.compliance.followed import (
    FOLLOWED,
    FORETOLD,
    UNLOADING,
    Followed,
    displacement,
    make_followed,
    power,
    world_force,
)
from palpo.physics.compliance.surface import SURFACE
from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.contract.links import FRAME, TELL, link
from palpo.physics.contract.stages import DONE, Body, make_batch
from palpo.physics.engine.build import Bound, make_engine
from palpo.physics.engine.servo import TickState
from palpo.physics.engine.servo import make_servo as make_tick_state
from palpo.physics.exchange.buffer import is_fresh, make_control, publish, writer_slot
from palpo.physics.exchange.frames import make_frames
from palpo.physics.exchange.hand_state import HandState, make_hand_state, write_hand
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import CONTACTS_LOST, TOUCHES
from palpo.physics.exchange.tangent_frame import TangentFrame, make_tangent_frame
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import dot3
from palpo.physics.systems.hapco.frames import adopt
from palpo.physics.systems.hapco.servo import SOLVERS, BodyPair, make_bodies, smallest_bodies
from palpo.physics.systems.hapco.tick import QuasistaticServo, draw_bodies

SLIDES = 1e-3
"""Slip in shares of the collision tolerance below which a contact on its cone may as well stick."""


class TangentServo(NamedTuple):
    """What a servo that follows tangents exchanges."""

    servo: QuasistaticServo
    following: Followed
    frame: TangentFrame  # the same as of `following`
    way: NDArray[np.float64]  # (6,) scratch
    state: HandState
    state_control: NDArray[np.int64]


@kernel
def _put_by(m, f):
    """The forces of the frame in slot f by their contacts' identity, world axes."""
    frame, to, anchors = m.frame, m.following, m.servo.tracked.anchors
    clear_anchors(anchors)
    for k in range(frame.count[f].found):
        kept = add_anchor(anchors, frame.identity[f, k])
        world_force(to, k, anchors.force[kept])


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
    """The newest frame comes into force if there is one, its settings too; where to follow it from."""
    if not is_fresh(m.servo.frames.control[0]):
        return
    _put_by(m, m.following.slot[0])
    f, frame, to, grip = adopt(m), m.frame, m.following, m.servo.grip
    to.slot[0], to.mu[0] = f, m.servo.live[0].friction
    _go_on(m, f)
    displacement(grip.goal, grip.goal_q, frame.behind[f], frame.behind_q[f], m.way)
    to.mode[0] = UNLOADING if power(frame.release[f], m.way) > 0.0 else FORETOLD


@kernel
def _tell_numbers(m):
    """The numbers that go with the force: its contacts are the frame's, not the engine's."""
    s, to = m.servo, m.following
    status, info, found, active = s.port.status[0], s.port.info[0], m.frame.count[to.slot[0]], 0
    for k in range(found.found):
        active += to.force[k, 0] > 0.0
    copy(s.hand.force, info.total)
    info.depth, info.residual = 0.0, to.cut[0]
    status.contacts, status.rows = active, 3 * found.found
    status.felt = TOUCHES if active > 0 else 0
    status.flags = CONTACTS_LOST if found.lost > 0 else 0


@kernel
def _publish_picture(m):
    """The picture of this tick, with the shapes of the frame."""
    s, frame, to, f = m.servo, m.frame, m.following, m.following.slot[0]
    out, w = s.picture, writer_slot(s.picture_control)
    draw_bodies(s, w, s.hand.orientation)
    out.n_contacts[w] = frame.count[f].found
    for k in range(frame.count[f].found):
        r = to.force[k]
        for i in range(3):
            out.contact_point[w, k, i] = s.hand.position[i] + frame.arm[f, k, i]
        world_force(to, k, out.contact_force[w, k])
        sliding = r[1] * r[1] + r[2] * r[2] >= ((1.0 - SLIDES) * to.mu[0] * r[0]) ** 2
        out.contact_status[w, k] = (SLIP if sliding else STICK) if r[0] > 0.0 else OPEN
    publish(s.picture_control)


@kernel
def _tell_hand(m):
    """The hand's pose and velocity for the slow loop."""
    s, out, w = m.servo, m.state, writer_slot(m.state_control)
    write_hand(out, w, s.ticks[0], s.hand, s.hand.orientation)
    copy(m.following.velocity, out.velocity[w])
    publish(m.state_control)


def _with_exchange(side: QuasistaticServo, ratio: int, clock: int = 0) -> TangentServo:
    """Bodies whose shapes come with frames, one in `ratio` ticks, and a third that brings the forces."""
    side.mobile.frozen[0] = side.fixed.frozen[0] = True
    capacity, hand = side.tracked.found.gap.size, side.hand
    frame = make_tangent_frame(side.mobile.u.shape[0], side.fixed.u.shape[0], capacity)
    following = make_followed(frame, hand.position, hand.orientation)
    surfaces = [
        Body(SURFACE, Handle(state), make_batch(0)._replace(x=x))
        for state, x in ((side.mobile, side.mobile_x), (side.fixed, side.fixed_x))
    ]
    built = make_engine(
        [*surfaces, FOLLOWED.bind(following)], SOLVERS, 1, float(side.engine.step[0]),
        hands={0: hand, 2: hand}, clock=clock,
    )  # fmt: skip
    points = built.batches[0]
    side = side._replace(
        engine=built.engine, points=points, grip=side.grip._replace(points=points), frames=make_frames(ratio)
    )
    return TangentServo(side, following, frame, np.zeros(6), make_hand_state(), make_control())


@link(_with_exchange(smallest_bodies(), 1))
def tangent_link(stage, m, h):
    """The stages of palpo.physics.contract.links."""
    if stage == FRAME:
        _take_frame(m)
    elif stage == TELL:
        _tell_numbers(m)
        _publish_picture(m)
        _tell_hand(m)
    return DONE


def make_servo(pair: BodyPair) -> tuple[TickState, TangentServo]:
    """The servo of a pair, and what it exchanges with a slow loop.

    Raises InputError as `make_bodies`, and for a frame that is not where the hand is.
    """
    if not pair.hold.direct:
        raise InputError("to follow tangents the frame must be where the hand is (hold direct)")
    side = _with_exchange(make_bodies(pair), pair.ratio, pair.clock)
    own, links = side.servo, [Bound.bind(tangent_link, side)]
    return make_tick_state(own.engine, [own.grip], links, own.ticks, own.frames), side
