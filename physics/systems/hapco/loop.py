"""The slow loop of HapCo at two rates: it finds the contacts and gathers W, about the newest equilibrium."""

from time import perf_counter

from palpo.physics.collision.tracked_contacts import find as find_tracked
from palpo.physics.compliance.surface_state import HELD
from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import OPEN, STICK
from palpo.physics.contract.contacts import append
from palpo.physics.contract.stages import DONE, END
from palpo.physics.engine.equilibrium import delassus, gather, push_all
from palpo.physics.engine.rows import free_motion, set_rows
from palpo.physics.engine.servo import TickState
from palpo.physics.engine.slow_loop import SlowLoop
from palpo.physics.engine.table import ask_all
from palpo.physics.engine.tick import begin, let_go, tell_shapes
from palpo.physics.exchange.buffer import acquire
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.hapco.servo import BodyPair, make_bodies
from palpo.physics.systems.hapco.tick import FIXED, MOBILE, QuasistaticServo, put_settings
from palpo.physics.systems.hapco.two_rates import MultirateServo, make_servo


@kernel
def _anchor(tracked, m, g):
    """What touches in the state of slot g holds on to the points of the last frame, or to the servo's own."""
    anchors, found, state, places = tracked.anchors, tracked.found, m.state, m.places
    clear_anchors(anchors)
    for k in range(state.n_contacts[g]):
        if state.contact_status[g, k] == OPEN:
            continue
        new = add_anchor(anchors, places.identity[g, k])
        anchors.sticks[new] = state.contact_status[g, k] == STICK
        anchors.triangle[new] = places.triangle[g, k]
        for side in range(2):
            copy(places.slots[g, side, k], anchors.slots[side, new])
            copy(places.weights[g, side, k], anchors.weights[side, new])
    for k in range(found.count[0].found):
        old = find_anchor(anchors, found.identity[k])
        if old >= 0:
            anchors.triangle[old] = found.triangle[k]
            for side in range(2):
                copy(found.slots[side, k], anchors.slots[side, old])
                copy(found.weights[side, k], anchors.weights[side, old])


@kernel
def _shape(low, m, g):
    """The slow loop's own bodies in the equilibrium of slot g, the frame where it is."""
    e, frame, contacts, state, places = low.engine, low.mobile.frame, low.engine.contacts, m.state, m.places
    grip = frame.grip[0]
    frame.grip[0] = HELD
    copy(state.position[g], low.hand.position)
    copy(state.orientation[g], low.hand.orientation)
    contacts.count[0].found = 0
    contacts.count[0].lost = 0
    for k in range(state.n_contacts[g]):
        c = append(contacts, places.identity[g, k], MOBILE, FIXED)
        copy(state.contact_force[g, k], contacts.force[c])
        contacts.anchored[c] = True
        for side in range(2):
            copy(places.slots[g, side, k], contacts.slots[c, side])
            copy(places.weights[g, side, k], contacts.weights[c, side])
        for i in range(3):
            for j in range(3):
                contacts.frame[c, i, j] = 1.0 if i == j else 0.0
            e.r[3 * c + i] = contacts.force[c, i]
    if begin(e) == DONE and set_rows(e) == DONE and push_all(e) == DONE:
        ask_all(e, END, e.bodies.batch)
    frame.grip[0] = grip


@kernel
def find_frame(m, low, g):
    """Contacts of the equilibrium in slot g, found on the slow loop's own bodies; the settings are theirs."""
    put_settings(low)
    if m.state.calls[g] >= 0:
        _anchor(low.tracked, m, g)
        _shape(low, m, g)
    tell_shapes(low.engine)
    low.engine.contacts.count[0].found = 0
    low.engine.contacts.count[0].lost = 0
    find_tracked(low.tracked, low.engine.contacts)


@kernel
def fill_frame(m, low, f):
    """The contacts that `find_frame` has found and their W, to slot f."""
    out, found, e = m.frame, low.tracked.found, low.engine
    n = found.count[0].found
    out.mobile_u[f] = low.mobile.u
    out.fixed_u[f] = low.fixed.u
    out.nearest[f] = low.tracked.tracker.gap[0]
    out.count[f] = found.count[0]
    for k in range(n):
        out.identity[f, k], out.triangle[f, k] = found.identity[k], found.triangle[k]
        out.axes[f, k] = found.frame[k]
        for side in range(2):
            out.slots[f, side, k] = found.slots[side, k]
            out.weights[f, side, k] = found.weights[side, k]
    let_go(e)
    free_motion(e)
    for k in range(n):
        e.inside[k] = True
    gather(e)
    delassus(e)
    copy(e.problem.w, out.w[f, : 9 * n * n])


def make_multirate(pair: BodyPair) -> tuple[TickState, MultirateServo, "ContactLoop"]:
    """The servo of a pair, what it exchanges, and the slow loop; raises as `make_bodies`."""
    servo, m = make_servo(pair)
    return servo, m, ContactLoop(m, make_bodies(pair), pair.ratio)


class ContactLoop(SlowLoop):
    """The slow loop that offers contacts and their W, at the newest equilibrium.

    low: its own bodies. values: settings of the next frame, (1,) of VALUES. ratio: servo ticks in a period by
    the scene.
    """

    parts: tuple[str, ...] = ("detection", "W")

    def __init__(self, m: MultirateServo, low: QuasistaticServo, ratio: int) -> None:
        servo = m.servo
        super().__init__(servo.frames, servo.ticks, ratio, float(servo.engine.step[0]), parts=self.parts)
        self.high, self.side, self.values = m, low, low.live.copy()
        self._high, self._low = Handle(m), Handle(low)

    def take_values(self) -> None:
        """The settings of the next frame are those of its own bodies, too."""
        self.side.live[:] = self.high.servo.settings[self.slot] = self.values

    def make(self) -> int:
        """Find the contacts, gather W."""
        start, state = perf_counter(), int(acquire(self.high.state_control)[0])
        self.take_values()
        find_frame(self._high, self._low, state)
        self.lost_slots = int(self.side.tracked.found.count[0]["lost"])
        found = perf_counter()
        fill_frame(self._high, self._low, self.slot)
        self.times.add("detection", found - start)
        self.times.add("W", perf_counter() - found)
        return int(self.high.state.calls[state])

    def fill(self, slot: int, frame_tick: int | None) -> int:
        """The frame is as the step has made it."""
        return self.tick if frame_tick is None else frame_tick
