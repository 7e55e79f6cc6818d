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

What the two loops of HapCo exchange: contacts with their W, slow to fast; where they are, fast to slow.

Every array has the three slots of a triple buffer as its leading dimension; at most c contacts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.tracked_contacts import separation
from palpo.physics.collision.tracked_contacts import tell as tell_contacts
from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import STICK
from palpo.physics.contract.contacts import FIND, detector
from palpo.physics.contract.links import BOOK, FRAME, TELL, link
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.build import Bound
from palpo.physics.engine.servo import TickState
from palpo.physics.engine.servo import make_servo as make_tick_state
from palpo.physics.exchange.buffer import SLOTS, make_control, publish, writer_slot
from palpo.physics.exchange.contact_count import CONTACT_COUNT
from palpo.physics.exchange.frames import make_frames
from palpo.physics.exchange.hand_state import HandState, make_hand_state, write_hand
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import dot3, matvec3, matvec3_transposed
from palpo.physics.systems.hapco.frames import adopt
from palpo.physics.systems.hapco.servo import BodyPair, make_bodies, smallest_bodies
from palpo.physics.systems.hapco.tick import QuasistaticServo, tell


class ContactFrame(NamedTuple):
    """Contacts found at one pose, slow loop to servo; see physics.collision.mobile_contacts.Contacts."""

    mobile_u: NDArray[np.float64]  # (3, s1, 3) displacement of the boundary [m], body axes
    fixed_u: NDArray[np.float64]  # (3, s2, 3)
    nearest: NDArray[np.float64]  # (3,) least gap of all vertices [m]
    count: NDArray[np.void]  # type: ignore[assignment]  # (3,) of CONTACT_COUNT
    identity: NDArray[np.int64]  # (3, c)
    triangle: NDArray[np.int32]  # (3, c)
    slots: NDArray[np.int32]  # (3, 2, c, 3)
    weights: NDArray[np.float64]  # (3, 2, c, 3)
    axes: NDArray[np.float64]  # (3, c, 3, 3) rows n, t1, t2, world axes
    w: NDArray[np.float64]  # (3, 9 c^2) W of n contacts [m/N], packed in the first 9 n^2 entries


class ContactPlaces(NamedTuple):
    """Where the contacts are at the end of a tick, servo to slow loop, beside a HandState."""

    identity: NDArray[np.int64]  # (3, c)
    triangle: NDArray[np.int32]  # (3, c)
    slots: NDArray[np.int32]  # (3, 2, c, 3)
    weights: NDArray[np.float64]  # (3, 2, c, 3)


def make_contact_frame(n_mobile: int, n_fixed: int, contacts: int) -> ContactFrame:
    """No contacts between bodies of that many boundary nodes."""
    c = contacts
    return ContactFrame(
        np.zeros((SLOTS, n_mobile, 3)),
        np.zeros((SLOTS, n_fixed, 3)), np.full(SLOTS, np.inf), np.zeros(SLOTS, CONTACT_COUNT),
        np.zeros((SLOTS, c), np.int64), np.zeros((SLOTS, c), np.int32), np.zeros((SLOTS, 2, c, 3), np.int32),
        np.zeros((SLOTS, 2, c, 3)), np.zeros((SLOTS, c, 3, 3)), np.zeros((SLOTS, 9 * c * c)),
    )  # fmt: skip


def make_contact_places(contacts: int) -> ContactPlaces:
    """Of no contacts yet."""
    c = contacts
    return ContactPlaces(
        np.zeros((SLOTS, c), np.int64), np.zeros((SLOTS, c), np.int32), np.zeros((SLOTS, 2, c, 3), np.int32),
        np.zeros((SLOTS, 2, c, 3)),
    )  # fmt: skip


class MultirateServo(NamedTuple):
    """What the servo of two loops exchanges."""

    servo: QuasistaticServo
    fresh: NDArray[np.bool_]  # (1,) whether a frame has come whose contacts are to be taken
    frame: ContactFrame
    state: HandState
    places: ContactPlaces
    state_control: NDArray[np.int64]


@kernel
def _separation(s, slots, weights, k, out):
    """out (3,) = mobile point less fixed point k of slots and weights (2, c, 3) [m], fixed body's axes."""
    apart = s.tracked.vectors[0]
    separation(s.tracked, slots, weights, k, apart)
    matvec3_transposed(s.tracked.rotation_2, apart, out)


@kernel
def _take_frame(m):
    """The newest frame comes into force, if there is one; the detector takes its contacts."""
    f = adopt(m)
    if f >= 0:
        m.servo.engine.offer[0], m.fresh[0] = f, True


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
    s, out, places, w = m.servo, m.state, m.places, writer_slot(m.state_control)
    found, contacts = s.tracked.found, s.engine.contacts
    write_hand(out, w, s.ticks[0], s.hand, s.mobile.frame.now.orientation)
    out.n_contacts[w] = found.count[0].found
    for k in range(found.count[0].found):
        places.identity[w, k], places.triangle[w, k] = found.identity[k], found.triangle[k]
        copy(contacts.force[k], out.contact_force[w, k])
        out.contact_status[w, k] = contacts.status[k]
        for side in range(2):
            copy(found.slots[side, k], places.slots[w, side, k])
            copy(found.weights[side, k], places.weights[w, side, k])
    publish(m.state_control)


_SMALLEST = smallest_bodies()


def _with_exchange(servo: QuasistaticServo, ratio: int) -> MultirateServo:
    """Bodies whose shapes come with frames, and so do their contacts; ratio: ticks in a low period."""
    servo.mobile.frozen[0] = servo.fixed.frozen[0] = True
    capacity = servo.tracked.found.gap.size
    frame = make_contact_frame(servo.mobile.u.shape[0], servo.fixed.u.shape[0], capacity)
    servo = servo._replace(engine=servo.engine._replace(offered=frame.w), frames=make_frames(ratio))
    return MultirateServo(
        servo, np.zeros(1, np.bool_), frame, make_hand_state(capacity), make_contact_places(capacity),
        make_control(),
    )  # fmt: skip


_EXCHANGE = _with_exchange(_SMALLEST, 1)


@detector(_EXCHANGE)
def offered_unit(stage, m, contacts, h):
    """The stages of palpo.physics.contract.contacts: the contacts that the frame in force has."""
    if stage == FIND:
        if m.fresh[0]:
            m.fresh[0] = False
            _take_contacts(m.servo, m.frame, m.servo.engine.offer[0])
        tell_contacts(m.servo.tracked, contacts)
    return DONE


@link(_EXCHANGE)
def two_rate_link(stage, m, h):
    """The stages of palpo.physics.contract.links."""
    if stage == FRAME:
        _take_frame(m)
    elif stage == BOOK:
        _remember(m.servo)
    elif stage == TELL:
        code = tell(m.servo)
        _publish_state(m)
        return code
    return DONE


def make_servo(pair: BodyPair) -> tuple[TickState, MultirateServo]:
    """The servo of a pair, and what it exchanges with a slow loop; raises as `make_bodies`."""
    side = _with_exchange(make_bodies(pair, pair.clock), pair.ratio)
    found = Bound.bind(offered_unit, side)
    own = side.servo
    own.engine.detector[0], own.engine.detector_state[0] = found.unit.address, found.handle.address
    links = [Bound.bind(two_rate_link, side)]
    return make_tick_state(own.engine, [own.grip], links, own.ticks, own.frames, [found]), side
