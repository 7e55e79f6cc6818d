"""The reduced interface: low steps when the servo gets a small model of the soft bodies (EQUATIONS.md, 1).

The full bodies are where the servo has brought its model of them: it tells that model's state at each tick,
so that action equals reaction over every period. Then the low loop hands down their next Galerkin model, on
the columns that L5 computes anyway, which begins where the servo is (palpo.physics.reduction.handing_on). No
tick is made again, since nothing would answer to its forces, under which a squeezed block topples; but a body
that was jolted makes the last few itself (palpo.physics.reduction.past). Only where a state is not known any
more, since a step took too long, are the recorded forces replayed on a copy of the model.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.pair_gaps import gaps_at
from palpo.physics.contact.laws import OPEN
from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.buffer import ring_release
from palpo.physics.exchange.constraint_frame import REDUCED
from palpo.physics.exchange.frames import PATIENCE_PERIODS
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.reduction.body_model import BodyModel
from palpo.physics.reduction.handing_on import hand_on, sweep_fields
from palpo.physics.reduction.interface_model import (
    InterfaceState,
    adopt,
    is_astray,
    make_interface_state,
    store,
)
from palpo.physics.reduction.past import Past, Tail
from palpo.physics.reduction.point_freedoms import among
from palpo.physics.reduction.reduced_frame import Page
from palpo.physics.reduction.reductions import make_reduction
from palpo.physics.reduction.replay import make_led, replay_ticks
from palpo.physics.reduction.soft_reduction import SoftReduction
from palpo.physics.systems.multirate.candidates import (
    by_turns,
    expected_arrival,
    fastest,
    gained,
    points_by,
    shared_out,
    tool_points,
)
from palpo.physics.systems.multirate.high_state import HighRate, Link
from palpo.physics.systems.multirate.low_rate import LowRate
from palpo.physics.systems.multirate.member import Member
from palpo.physics.systems.multirate.scene import Loop, Scene

LIFE = 2.5
"""Times that a step takes for which candidates must do: their frame appears after one, and after another one
that of a step that is asked for, or that had begun already; half in hand."""

LEAST = 0.004
"""Seconds that a step is always expected to take: it is asked for a little before it begins."""

FORGET = 0.7
"""Share of the longest step so far that the next one is still expected to take, by step."""

USED = 0.5
"""Share of the way to the first pair without candidate that a hand must have come before a step is asked for:
where that pair found no room, a new step at the same place would leave it out again."""

IMPACT = 3
"""So many contacts more under load, and half as many as there were, tell of an impact: the next step begins
at once, since a tangent of before the impact serves badly after it."""

QUICK = 1.0
"""Reaches of a contact (`Numbers.reach`) that a tool may have gone since the last step began before the next
one is asked for: a frame is made about the contacts of then, and what it misses grows with that way."""

OWN_TICKS = 4
"""Ticks at the end of a period that a body makes itself where it was jolted (`past.JOLT`)."""

SERVES = 1.5
"""Times that a step takes to the middle of its frame's service to a quick hand: until the next is done."""

EXPECTED = 5
"""Points that are expected to touch, for each that only may."""

AIR_PATIENCE = (0.15, 3)
"""Seconds and periods where air holds bodies together: the cavity that a frame has is served with the shape
that it was found at. With every frame 50 ms late a cup is still lifted, with 80 ms it lets go; single frames
may be 140 ms late, and the time for which the scene waits is way that the hand has lost."""

SPANNED = {1: [1], 2: [0, 1], 3: [0, 1, 2]}
"""By the number of shifts, which of the steps dt, DT and sqrt(dt DT) the basis has columns at. What a step
of dt alone would add is local: the slots' own compliance stands for it (`reduced_frame.write_modes`)."""


class Krylov(LowRate):
    """Low steps of the reduced interface."""

    kind = "krylov"
    spares: tuple[str, ...] = ("columns", "contacts")
    patience = 0.2, PATIENCE_PERIODS
    apart = asks = True
    ready_share = 0.4

    def __init__(self, scene: Scene, high: HighRate, link: Link, loops: Sequence[Loop], own: int = 0) -> None:
        super().__init__(scene, high, link, loops, own)
        self.frame = Handle(self.link.frame)
        self.state = make_interface_state(self.loop.capacity)
        self.model = Handle(self.state)
        self.log = Handle(self.link.log)
        self._work = np.zeros(len(self.members))
        """What the servo's forces did to each body [J] in the ticks that it follows."""
        self._led = make_led()
        self.led = Handle(self._led)
        self.reductions = [
            make_reduction(
                member.body, self._shifts(), SPANNED[scene.numbers.shifts], scene.numbers.max_columns
            )
            for member in self.members
        ]
        if scene.air is not None:
            self.patience = AIR_PATIENCE
            # a late step is followed at once: a lower rate would make all frames later; and with a quarter of
            # the columns a cup is not lifted
            self.slowest_hz, self.spares = np.inf, ()
        self.chosen, self.near = np.zeros(0, np.int32), 0
        self._published = -1
        """Slot of the frame that `state` belongs to; it is not written before the next."""
        self._at_base: tuple[NDArray[np.float64], ...] = ()
        """The state that frame was made with, at `tick`."""
        self._then, self._now = (make_interface_state(self.loop.capacity) for _ in range(2))
        """The servo's states at the tick that the full bodies are brought to, and at a later one."""
        self._own_ticks = 0 if scene.holds_low_bodies_together() else OWN_TICKS
        """Joints and air are known to the model alone, so that bodies which they hold together make none."""
        self._astray = False
        """Whether the last model went astray, so that nothing follows it."""
        self._followed, self._worked = 0, np.zeros(len(self.members))
        """Id of the frame whose model the former is of, 0 where that is not known; the work by then [J]."""
        self._last: list[BodyModel] = []
        """The bodies' models in that frame, while the next one's are made."""
        self._released = 0
        self._takes = self.DT
        """How long a step is expected to take [s]."""
        self._complete_until = self._pairs_until = np.inf
        """Readings of the odometer up to which no pair can touch that the last search has not found, and none
        that the last frame does not have."""
        self._ask_from = 0.0
        """Reading of the odometer below which no step is asked for, see USED."""
        self._without_slot = 0
        """Points of candidates that the last frame had no room for."""
        self._placed_at, self._gained = -1, self.u
        """Ticks behind the tool when its points were placed last; their accelerations by then [m/s2]."""
        self._bearing, self._pace = 0, 0.0
        """Contacts under load when the last step began, and how quickly the odometer went [m/s]."""

    def _shifts(self) -> list[float]:
        """Step sizes [s] of the columns: servo, low period, and their geometric mean if there are three."""
        steps = [self.dt, self.DT, float(np.sqrt(self.dt * self.DT))]
        return steps[: max(2, self.scene.numbers.shifts)]

    def set_budget(self, budget: Budget) -> None:
        """Shifts and columns of the next models."""
        super().set_budget(budget)
        columns = int(budget.columns * self.scene.numbers.max_columns)
        for reduction in self.reductions:
            reduction.afford(self._shifts(), columns)

    def make(self) -> int:
        """L1 to L5: candidates for the frame's whole life, tangents, and A^-1 J^T at every shift."""
        with self.timed("L1 proximity"):
            self.read_tool()
            self._place_and_look_back()
            if self.blades:
                for reduction in self.reductions:
                    reduction.wait()
            self.plan_paths(self._takes)
            self.find_pairs(0.0, self._reach_of_candidates(), self._reach_of_folds())
            used_up, without = self.odometer > self._pairs_until, self._without_slot
            self._complete_until = float(self.due_of(self.broadphase.complete))
            self.chosen, self.near = self.choose_slots()
            # far points may go without a slot: what counts is whether they came near before the next frame
            self._without_slot, self.lost_slots = self.lost_slots, without if used_up else 0
        with self.timed("L3-L5 tangent and columns"):
            for reduction, (_, local) in zip(self.reductions, self.member_slots(self.chosen), strict=True):
                reduction.prepare(local, self.pool)
        return self.calls()

    def part(self, member: Member, was: NDArray[np.int64]) -> None:
        """See LowRate; its model goes on, too, and those that are kept for the picture."""
        super().part(member, was)
        low = self.members.index(member)
        former = self.reductions[low]
        assert isinstance(former, SoftReduction)
        self.reductions[low] = former.cut_on(was)
        self.drawn.change(low, lambda model: former.extended(model, was))

    def fill(self, slot: int, frame_tick: int | None) -> int:
        """L7: reduce, and replay on the frame the ticks that the full bodies do not contain."""
        self.find_cavities()
        with self.timed("L7 reduce and publish"):
            chosen = self._with_loaded()
            f = self.open_frame(REDUCED, chosen, self.near)
            self._pairs_until = min(self._complete_until, self.left_out)
            self._ask_from = self.odometer + USED * max(0.0, self._pairs_until - self.odometer)
            frame, of_members = self.link.frame, list(self.member_slots(chosen))
            needs = [r.need(len(local)) for r, (_, local) in zip(self.reductions, of_members, strict=True)]
            shares = shared_out(needs, self.loop.capacity.modes)
            self._last = [reduction.model for reduction in self.reductions]
            for low, (slots, local) in enumerate(of_members):
                limit = int(frame.head["n_modes"][f]) + shares[low]
                page = Page(frame, f, low, slots, local, self.near, self.dt, limit)
                self.reductions[low].write(page, self.pool)
            present = self._bring_to_present(f, frame_tick)
            if self.drawn.wanted:
                self.drawn.keep(self.frame_id + 1, tuple(reduction.drawn() for reduction in self.reductions))
            for member in self.members:
                self.u[member.first : member.first + member.count] = member.body.velocities()
            self.bound_speed(f, (present - self.tick) * self.dt)
        return present

    def foresee(self) -> None:
        """See SlowLoop."""
        for reduction in self.reductions:
            reduction.renew(self.pool)

    def follow(self, tick: int) -> None:
        """L6: the full bodies up to `tick`, to where the servo has the model."""
        with self.timed("L6 follow"):
            self._follow(tick)
        if self.invalid():
            raise FloatingPointError(f"the state of body {self.invalid()!r} is no longer finite")

    def _follow(self, until: int) -> None:
        self._followed = 0
        if until > self.tick:
            ended = self._then
            if self._read(until, self.frame_id, ended):
                self._followed = self.frame_id
                self._work[:] = self._work_by(until) - self._worked
            else:
                ended = self._made_again(until)
            self._worked = self._work_by(until)
            self._astray = self._is_astray(ended, self._published)
            tail = self._tail(until)
            points, forces = self.drain(until)
            span = (until - self.tick) * self.dt
            for low, (member, reduction) in enumerate(zip(self.members, self.reductions, strict=True)):
                own = np.flatnonzero((points >= member.first) & (points < member.first + member.count))
                local = points[own].astype(np.intp) - member.first
                if self._astray:
                    # it stays where it was when the model began, at rest, until the hand has let go
                    member.body.v = np.zeros_like(member.body.v)
                    if isinstance(member.body, SoftBody):
                        member.body.remember(span)
                else:
                    last = tail and Tail(tail, forces[-self._own_ticks :, own])
                    load, work = forces[:, own].sum(axis=0), float(self._work[low])
                    reduction.follow(ended, low, Past(load, local, work, span, last))
            self.loaded = points.astype(np.intp)

    def _tail(self, until: int) -> InterfaceState | None:
        """Where the servo had the model before the ticks that bodies make themselves, where that is known."""
        before = until - self._own_ticks
        known = self._followed and self.tick < before < until
        return self._now if known and self._read(before, self._followed, self._now) else None

    def _made_again(self, until: int) -> InterfaceState:
        """The last frame's model at `until`, by its own ticks, whose work is booked."""
        if self._at_base:
            for now, then in zip(self.state, self._at_base, strict=True):
                now[:] = then
        self._work[:] = 0.0
        self._replay(self._published, self.tick, until)
        return InterfaceState(*(part.copy() for part in self.state))

    def _is_astray(self, state: InterfaceState, f: int) -> bool:
        """Whether slot f's model, in that state, moves as no body can."""
        return bool(is_astray(state.rate, int(self.link.frame.head["n_modes"][f])))

    def _work_by(self, tick: int) -> NDArray[np.float64]:
        """What forces have done to each body [J] in so many ticks."""
        log = self.link.models
        return log.work[(tick - 1) & (len(log.tick) - 1)].copy()

    def _read(self, tick: int, frame: int, out: InterfaceState) -> bool:
        """The servo's state after so many ticks, where it is known and of that frame's model."""
        log = self.link.models
        row = (tick - 1) & (len(log.tick) - 1)
        if frame == 0 or log.tick[row] != tick - 1 or log.frame[row] != frame:
            return False
        out.z[:], out.rate[:] = log.z[row], log.rate[row]
        out.centre[:], out.q[:] = log.centre[row], log.q[row]
        out.velocity[:], out.spin[:] = log.velocity[row], log.spin[row]
        for low in range(len(out.q)):
            quat_to_matrix(out.q[low], out.axes[low])
        return True

    def _replay(self, f: int, first: int, until: int) -> None:
        """Those ticks on the model of slot f, their work added to that of each body."""
        replay_ticks(self.frame, f, self.model, self.led, self.log, first, until, self.dt, self._work)

    def _reach_of_candidates(self) -> float:
        """Gap [m] up to which pairs are candidates: what can be covered until fresh ones come.

        At the present speed they last until the next step is due and a step and a half beyond; a hand may
        gain speed for LIFE, and is noticed then (`wants_step`), or the loop has begun a step by itself.
        """
        numbers = self.scene.numbers
        pace = self._speed_of_tools()
        self._pace = max(pace, self._speed_of_others()) + self._soft_speed()
        self._bearing = self._bearing_now()
        steady = max(self.DT, self._takes) + (LIFE - 1.0) * self._takes
        gained = 0.5 * numbers.acceleration * (LIFE * self._takes) ** 2
        return numbers.alarm + self._pace * steady + gained

    def _reach_of_folds(self) -> float:
        """The same of pairs of a body with itself, by its own speed: no tool makes it fold all at once."""
        steady = max(self.DT, self._takes) + (LIFE - 1.0) * self._takes
        return self.scene.numbers.alarm + self._soft_speed() * steady

    def _speed_of_tools(self) -> float:
        """Of their fastest point, or the sum of two tools' that may meet [m/s]."""
        fastest = sorted(
            float(np.sqrt((self.u[first:last] ** 2).sum(axis=1)).max(initial=0.0))
            for first, last in self.scene.tool_spans()
        )
        return sum(fastest[-2:])

    def _bearing_now(self) -> int:
        """Contacts under load in the tool state that was read last."""
        state, k = self.link.state, self.tool_slot
        return int(np.count_nonzero(state.contact_status[k, : state.n_contacts[k]] != OPEN))

    def in_force(self) -> bool:
        """Whether the servo has ended a tick on the last frame.

        A step that began within that tick would find no state of its model, and make ticks again after all.
        """
        if not super().in_force():
            return False
        log, done = self.link.models, self.known()
        return done == 0 or int(log.frame[(done - 1) & (len(log.tick) - 1)]) == self.frame_id

    def wants_step(self) -> bool:
        """The odometer has all but used up the candidates, an impact made contacts, or the hand is quick."""
        since, before, known = self.read_at, self.odometer, self._bearing
        self.read_tool()
        ticks = self.read_at - since
        if ticks > 0:
            self._pace = (self.odometer - before) / (ticks * self.dt)
        need = self._pace * self._takes + 0.5 * self.scene.numbers.acceleration * self._takes**2
        left = self._pairs_until - self.odometer
        if left < need and self.odometer > self._ask_from:
            return True
        if self._bearing_now() >= known + max(IMPACT, 0.5 * known):
            return True
        return len(self.chosen) > 0 and self._way_of_tools() > QUICK * self.scene.numbers.reach

    def _way_of_tools(self) -> float:
        """Farthest [m] that a point of theirs is from where it was when the last step began."""
        points, x, u = self.scene.tool_points, np.empty_like(self.x), np.empty_like(self.u)
        way = 0.0
        for first, stop in self.scene.tool_spans():
            tool_points(first, stop, points.frame, points.lever, *self.servo_tool(), x, u)
            way = max(way, fastest(x[first:stop] - self.x[first:stop]))
        return way

    def _place_and_look_back(self) -> None:
        """Place all points, and find what the tools' have gained since the last step."""
        before, span = self.u.copy(), (self.read_at - self._placed_at) * self.dt
        self.place_points(self.servo_tool())
        self._gained = gained(self.scene.tool_spans(), before, self.u, span, self.scene.numbers.acceleration)
        self._placed_at = self.read_at

    def ranked(self, within: float) -> NDArray[np.int32]:
        """Points under load that will bear on, others that will bear, those that tools have left; by turns
        EXPECTED that are expected to touch and one that may, whatever the hand does."""
        topology, pairs, gravity = self.topology, self.pairs, self.gravity
        will = points_by(topology, pairs, self._gaps_in_service(), self.scene.numbers.reach)
        stay = self.loaded[among(self.loaded, will, len(self.x))]
        expected = expected_arrival(topology, pairs, self.x, self.u, self.gaps, gravity, self.arrival)
        first, last = points_by(topology, pairs, expected), points_by(topology, pairs, self.arrival)
        turns = by_turns([*(first[k::EXPECTED] for k in range(EXPECTED)), last])
        return np.concatenate([stay, will, self.loaded, turns]).astype(np.int32)

    def _gaps_in_service(self) -> NDArray[np.float64]:
        """Gaps [m] of candidates in the middle of the time that the frame serves, if all move on as now."""
        span, numbers = SERVES * self._takes, self.scene.numbers
        way = span * self.u + 0.5 * span**2 * self._gained
        if fastest(way) <= numbers.reach:
            return self.gaps
        return gaps_at(self.topology, self.pairs, self.x + way, numbers.skin)

    def _with_loaded(self) -> NDArray[np.int32]:
        """The chosen slots, and those that the servo pressed on meanwhile: their forces must find a slot."""
        has = np.zeros(len(self.x), bool)
        has[self.chosen] = True
        missing = self.loaded[~has[self.loaded]].astype(np.int32)
        return np.concatenate([self.chosen[: self.loop.capacity.slots - len(missing)], missing])

    def _bring_to_present(self, f: int, frame_tick: int | None) -> int:
        """Replay on the frame the ticks up to `frame_tick`; the servo replays what comes after."""
        ring_release(self.link.log.ring, max(0, self.tick - self._released))
        self._released = self.tick
        # ticks still being written are not in the log: its ring says how many are complete
        present = self.known() if frame_tick is None else frame_tick
        before, self._published = self._published, f
        adopt(self.frame, f, self.model)
        self._led.count[0] = -1
        self._at_base = tuple(part.copy() for part in self.state)
        if present > self.tick:
            handed = self._followed > 0 and self._read(present, self._followed, self._now)
            if self._astray or (handed and self._is_astray(self._now, before)):
                pass  # the new one begins at rest
            elif handed:
                for low, (last, source) in enumerate(zip(self._last, self.reductions, strict=True)):
                    hand_on(last, source, low, self._then, self._now, self.state)
                sweep_fields(self.link.frame, f, InterfaceState(*self._at_base), self.state)
            else:
                self._replay(f, self.tick, present)
            store(self.frame, f, self.model, present, self.dt)
        if self.read_at >= 0:
            # the first frame is made before there are ticks to count
            self._takes = max((present - self.read_at) * self.dt, FORGET * self._takes, LEAST)
        return present
