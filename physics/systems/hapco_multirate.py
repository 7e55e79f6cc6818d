"""HapCo at two rates: contacts and W in the slow loop, the contact forces in the servo.

Detection and the gathering of W grow with the square of the number of contacts, and change slowly. So the
slow loop does both at the newest equilibrium and publishes them as a frame. The servo moves the frame of the
mobile body with the hand, takes the free gaps of the frame's contacts at its present pose, and solves on the
frame's W, from the forces of the last tick. The rest is `physics.systems.hapco_tick`, whose kernels both
loops are made of.

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

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.physics.arrays import all_finite, copy, copy_rows
from palpo.physics.bodies.boundary import place_surface
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.collision.contact_surface import weighted_point
from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import OPEN, STICK
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.buffer import (
    acquire,
    is_fresh,
    make_control,
    publish,
    published_count,
    reader_slot,
    taken_count,
    writer_slot,
)
from palpo.physics.exchange.contact_frame import (
    ContactFrame,
    Equilibrium,
    make_contact_frame,
    make_equilibrium,
)
from palpo.physics.exchange.durations import StepTimes
from palpo.physics.exchange.handle import Handle, HandleType
from palpo.physics.exchange.lent_clock import read_clock
from palpo.physics.exchange.patience import PATIENCE_PERIODS, is_overdue, patience_of, renewed, wait
from palpo.physics.exchange.port import NOT_FINITE, STATUS_AGE, STATUS_SWEEPS, end_tick
from palpo.physics.exchange.quasistatic_frame import SET_LIVE
from palpo.physics.kernels import callback, inlined, kernel
from palpo.physics.math3 import matvec3_transposed, quat_to_matrix
from palpo.physics.systems.hapco import Detection
from palpo.physics.systems.hapco_servo import Hold, make_servo, smallest_servo
from palpo.physics.systems.hapco_tick import (
    LOST_CONTACTS,
    SETTINGS_ID,
    STEP,
    TICK,
    QuasistaticServo,
    _delassus,
    _detect,
    _feedback,
    _free_frame,
    _free_motion,
    _judge,
    _matrix,
    _pose,
    _posed,
    _publish,
    _settled,
    _shape,
    _solve,
    _start,
    _yield_frame,
)
from palpo.physics.systems.working_set import (
    SOLVES,
    SPENT,
    admit,
    gather_matrix,
    gather_rows,
    scatter,
    start_set,
)

# Entries of MultirateServo.counter; the frame in force is the servo's SETTINGS_ID
CALLS, ADOPTED_AT, WAITED, PATIENCE = range(4)


class MultirateServo(NamedTuple):
    """Everything that a tick reads and writes."""

    servo: QuasistaticServo
    counter: NDArray[np.int64]  # (4,)
    frame: ContactFrame
    frame_control: NDArray[np.int64]
    state: Equilibrium
    state_control: NDArray[np.int64]


@kernel
def _separation(s, slots, weights, k, out):
    """out (3,) = mobile point less fixed point k of slots and weights (2, c, 3) [m], fixed body's axes."""
    p, q = s.tracker.vectors[0], s.tracker.vectors[1]
    weighted_point(s.mobile.x, slots[0, k], weights[0, k], p)
    weighted_point(s.fixed.x, slots[1, k], weights[1, k], q)
    for i in range(3):
        p[i] -= q[i]
    matvec3_transposed(s.fixed.rotation, p, out)


@kernel
def _take_frame(m):
    """Adopt the newest frame if there is one; its settings, too."""
    s, f = m.servo, reader_slot(m.frame_control)
    if not is_fresh(m.frame_control):
        return f
    f, _ = acquire(m.frame_control)
    frame, mobile, fixed = m.frame, s.mobile, s.fixed
    copy(frame.settings[f], s.live)
    for i in range(2):
        s.port.live[i] = s.live[SET_LIVE + i]
    s.counter[SETTINGS_ID] = frame.id[f]
    m.counter[ADOPTED_AT] = s.counter[TICK]
    m.counter[WAITED] = 0
    told = frame.patience[f]
    m.counter[PATIENCE] = renewed(s.port, m.counter[PATIENCE], told[0], told[1])
    copy_rows(frame.mobile_u[f], mobile.u)
    copy_rows(frame.fixed_u[f], fixed.u)
    s.tracker.gap[0] = frame.nearest[f]
    place_surface(mobile.boundary.rest, mobile.u, mobile.position, mobile.rotation, mobile.x)
    place_surface(fixed.boundary.rest, fixed.u, fixed.position, fixed.rotation, fixed.x)
    _take_contacts(s, frame, f)
    return f


@kernel
def _take_contacts(s, frame, f):
    """The frame's contacts; those that there were before keep their forces and their slips."""
    contacts, anchors = s.contacts, s.anchors
    now, then = s.tracker.vectors[2], s.tracker.vectors[3]
    clear_anchors(anchors)
    for k in range(contacts.count[0]):
        add_anchor(anchors, contacts.identity[k])
        copy(contacts.force[k], anchors.force[k])
        copy(contacts.remainder[k], anchors.remainder[k])
        for side in range(2):
            copy(contacts.slots[side, k], anchors.slots[side, k])
            copy(contacts.weights[side, k], anchors.weights[side, k])
    copy(frame.count[f], contacts.count)
    s.counter[LOST_CONTACTS] += contacts.count[1]
    for k in range(contacts.count[0]):
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
    contacts, p, rotation = s.contacts, s.problem, s.fixed.rotation
    apart, local = s.tracker.vectors[0], s.tracker.vectors[1]
    for k in range(contacts.count[0]):
        matvec3_transposed(rotation, p.force[k], contacts.force[k])
        if p.status[k] == STICK:
            continue
        frame = contacts.frame[k]
        for i in range(3):
            apart[i] = 0.0
            for j in range(3):
                apart[i] += rotation[i, j] * contacts.remainder[k, j]
        for i in range(3):
            local[i] = p.u[3 * k] * frame[0, i]
            for d in range(1, 3):
                along = p.u[3 * k + d]
                for j in range(3):
                    along += frame[d, j] * apart[j]
                local[i] += along * frame[d, i]
        matvec3_transposed(rotation, local, contacts.remainder[k])


@kernel
def _publish_state(m):
    """The equilibrium for the slow loop."""
    s, out, w = m.servo, m.state, writer_slot(m.state_control)
    contacts, n = s.contacts, s.contacts.count[0]
    out.calls[w] = m.counter[CALLS]
    copy(s.mobile.position, out.position[w])
    copy(s.mobile.orientation, out.orientation[w])
    out.n_contacts[w] = n
    for k in range(n):
        out.identity[w, k], out.triangle[w, k] = contacts.identity[k], contacts.triangle[k]
        copy(s.problem.force[k], out.force[w, k])
        out.status[w, k] = s.problem.status[k]
        for side in range(2):
            copy(contacts.slots[side, k], out.slots[w, side, k])
            copy(contacts.weights[side, k], out.weights[w, side, k])
    publish(m.state_control)


@inlined
def frame_matrix(m, f):
    """W of the servo's present contacts, shape (3 n, 3 n), over the memory of the frame in slot f."""
    n = 3 * m.servo.contacts.count[0]
    return view_square(m.frame.w[f], n)


@kernel
def _solve_set(s, whole):
    """Forces of the working set, which grows by what sinks in, out of W of all contacts; the flags.

    Here the offsets under given forces cost no more than the columns of W that bear. -1 if not posed.
    """
    p, part, n = s.problem, s.problem.part, s.contacts.count[0]
    set_offset(whole, p.b, p.r, p.u, 0, 3 * n)
    start_set(s.contacts.force, n, part)
    admit(n, p.u, 3, part)
    began, flags = read_clock(s.clock), 0
    for left in range(SOLVES, 0, -1):
        gather_rows(n, p.b, p.mu, p.r, part)
        w = _matrix(s)
        gather_matrix(whole, part, w)
        if not _posed(s):
            return -1
        flags = _solve(s, w, began)
        scatter(n, part, p.r, p.u)
        set_offset(whole, p.b, p.r, p.u, 0, 3 * n)
        if not all_finite(p.u[: 3 * n]):
            return -1
        if _settled(s, w) or flags != 0 or left == 1:
            break
        admit(n, p.u, 3, part)
    s.port.status[STATUS_SWEEPS] = part.count[SPENT]
    _judge(s, _matrix(s))
    return flags


@kernel
def tick(m):
    """One step of the servo. Returns OK or NOT_FINITE; force and moment are on m.servo.port.

    While a frame is overdue by far the scene's time stands still (palpo.physics.exchange.patience).
    """
    s, counter = m.servo, m.counter
    counter[CALLS] += 1
    age = s.counter[TICK] - counter[ADOPTED_AT]
    if s.counter[SETTINGS_ID] > 0 and is_overdue(age, counter[PATIENCE], m.frame_control):
        counter[WAITED] += 1
        return wait(s.port, age + counter[WAITED])
    _pose(s)
    f = _take_frame(m)
    _free_frame(s)
    _free_motion(s)
    _start(s)
    flags = _solve_set(s, frame_matrix(m, f))
    if flags < 0:
        return end_tick(s.port, NOT_FINITE, s.port.status[STATUS_AGE])
    _yield_frame(s)
    _remember(s)
    mobile = s.mobile
    place_surface(mobile.boundary.rest, mobile.u, mobile.position, mobile.rotation, mobile.x)
    status = _feedback(s, flags)
    age = s.counter[TICK] - counter[ADOPTED_AT]
    s.counter[TICK] += 1
    _publish(s)
    _publish_state(m)
    return end_tick(s.port, status, age)


@kernel
def _anchor(low, state, g):
    """What touches in the state of slot g holds on to the points of the last frame, or to the servo's own."""
    anchors, contacts = low.anchors, low.contacts
    clear_anchors(anchors)
    for k in range(state.n_contacts[g]):
        if state.status[g, k] == OPEN:
            continue
        new = add_anchor(anchors, state.identity[g, k])
        anchors.sticks[new] = state.status[g, k] == STICK
        anchors.triangle[new] = state.triangle[g, k]
        for side in range(2):
            anchors.slots[side, new] = state.slots[g, side, k]
            anchors.weights[side, new] = state.weights[g, side, k]
    for k in range(contacts.count[0]):
        old = find_anchor(anchors, contacts.identity[k])
        if old >= 0:
            anchors.triangle[old] = contacts.triangle[k]
            for side in range(2):
                anchors.slots[side, old] = contacts.slots[side, k]
                anchors.weights[side, old] = contacts.weights[side, k]


@kernel
def find_frame(m, low, g):
    """Contacts of the equilibrium in slot g, found on the slow loop's own bodies; the settings are theirs."""
    state, contacts = m.state, low.contacts
    if state.calls[g] >= 0:
        _anchor(low, state, g)
        low.mobile.position[:] = state.position[g]
        low.mobile.orientation[:] = state.orientation[g]
        quat_to_matrix(low.mobile.orientation, low.mobile.rotation)
        contacts.count[0] = state.n_contacts[g]
        for k in range(contacts.count[0]):
            low.problem.force[k] = state.force[g, k]
            for side in range(2):
                contacts.slots[side, k] = state.slots[g, side, k]
                contacts.weights[side, k] = state.weights[g, side, k]
        _shape(low)
    _detect(low)


@kernel
def fill_frame(m, low):
    """The contacts that `find_frame` has found and their W, to the writer's slot."""
    out, f, contacts = m.frame, writer_slot(m.frame_control), low.contacts
    n = contacts.count[0]
    out.settings[f] = low.live
    out.mobile_u[f] = low.mobile.u
    out.fixed_u[f] = low.fixed.u
    out.nearest[f] = low.tracker.gap[0]
    out.count[f] = contacts.count
    for k in range(n):
        out.identity[f, k], out.triangle[f, k] = contacts.identity[k], contacts.triangle[k]
        out.axes[f, k] = contacts.frame[k]
        for side in range(2):
            out.slots[f, side, k] = contacts.slots[side, k]
            out.weights[f, side, k] = contacts.weights[side, k]
    _free_frame(low)
    _free_motion(low)
    part = low.problem.part
    part.inside[:n] = True
    gather_rows(n, low.problem.b, low.problem.mu, low.problem.r, part)
    _delassus(low, out.w[f, : 9 * n * n].reshape((3 * n, 3 * n)))


def make_multirate(
    mobile: QuasistaticBody,
    fixed: QuasistaticBody,
    detection: Detection | None = None,
    hold: Hold | None = None,
    settings: NDArray[np.float64] | None = None,
    dt: float = 1e-3,
    ratio: int = 20,
    clock: int = 0,
) -> tuple[MultirateServo, "ContactLoop"]:
    """The servo's side of two bodies where they stand now, and the slow loop's.

    ratio: servo ticks in a low period; the rest as palpo.physics.systems.hapco_servo.make_servo.
    """
    m = _with_exchange(make_servo(mobile, fixed, detection, hold, settings, dt, clock=clock), ratio)
    return m, ContactLoop(m, make_servo(mobile, fixed, detection, hold, settings, dt), ratio)


def _with_exchange(servo: QuasistaticServo, ratio: int) -> MultirateServo:
    capacity = servo.contacts.gap.size
    return MultirateServo(
        servo, np.array([0, 0, 0, PATIENCE_PERIODS * ratio]),
        make_contact_frame(servo.mobile.u.shape[0], servo.fixed.u.shape[0], capacity), make_control(),
        make_equilibrium(capacity), make_control(),
    )  # fmt: skip


class ContactLoop:
    """The slow loop's work (palpo.app.runtime.system.LowLoop): the frame at the newest equilibrium.

    values: settings of the next frame, shape (SETTINGS,). ratio: servo ticks in a low period of the scene.
    """

    spares: tuple[str, ...] = ()

    def __init__(self, m: MultirateServo, low: QuasistaticServo, ratio: int) -> None:
        self.high, self.side, self.values = m, low, low.live.copy()
        self.budget, self._wished = Budget(ratio), ratio
        self.times = StepTimes("detection", "W")
        self.frame_id = self.tick = self.present = self.lost_slots = 0
        self._slot = 0

    def set_budget(self, budget: Budget) -> None:
        """The next frames' period."""
        self.budget = budget

    def begin(self) -> None:
        """Find the contacts, gather W."""
        start = perf_counter()
        self._slot = int(acquire(self.high.state_control)[0])
        self.side.live[:] = self.values
        lost = int(self.side.counter[LOST_CONTACTS])
        find_frame(self.high, self.side, self._slot)
        self.lost_slots = int(self.side.counter[LOST_CONTACTS]) - lost
        found = perf_counter()
        fill_frame(self.high, self.side)
        self.times.add("detection", found - start)
        self.times.add("W", perf_counter() - found)

    def begun(self) -> int:
        """Calls of the tick that the equilibrium of the last `begin` had behind it, -1 for none."""
        return int(self.high.state.calls[self._slot])

    def complete(self) -> int:
        """Ticks done by now."""
        return int(self.high.servo.counter[TICK])

    def finish(self, until: int, present: int | None = None) -> None:
        """Publish the frame."""
        self.frame_id += 1
        frame, w = self.high.frame, writer_slot(self.high.frame_control)
        frame.id[w] = self.frame_id
        frame.patience[w] = patience_of(self.budget.period, self._wished, self.high.servo.value[STEP])
        publish(self.high.frame_control)
        self.tick = until
        self.present = until if present is None else present

    def asked(self) -> bool:
        """Never before a step is due."""
        return False

    def adopted(self) -> bool:
        """Whether the servo has taken the last frame."""
        control = self.high.frame_control
        return bool(taken_count(control) >= published_count(control))

    def check(self) -> None:
        """Nothing of the slow loop can break."""

    def close(self) -> None:
        """There are no worker threads."""


class ContactLock:
    """Both loops in one thread: a frame becomes visible one low period after its step begins."""

    def __init__(self, low: ContactLoop, ratio: int) -> None:
        self.low, self.ratio, self.tick = low, ratio, 0

    def advance(self, n: int, ticks: Callable[[int], object]) -> None:
        """n ticks, made by `ticks(k)` in spans, with the low steps between."""
        stop = self.tick + n
        while self.tick < stop:
            if self.tick % self.ratio == 0:
                if self.tick == 0:
                    self.low.begin()
                self.low.finish(self.tick)
                self.low.begin()
            span = min(stop - self.tick, self.ratio - self.tick % self.ratio)
            ticks(span)
            self.tick += span


_CONTENT = typeof(_with_exchange(smallest_servo(), 1))


@callback(types.int32(HandleType(_CONTENT)))
def multirate_tick(state):
    """`int32 f(void *)`: one tick of the MultirateServo behind the handle; its status."""
    return tick(state)


def tick_data(m: MultirateServo) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    if typeof(m) != _CONTENT:
        raise TypeError("this multi-rate servo is not laid out as the compiled tick expects")
    return Handle(m)
