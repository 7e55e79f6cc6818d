"""The multi-rate method: low steps L1 to L7 for each interface kind (003, section IV-A; EQUATIONS.md, 1).

`Krylov`        the servo gets a reduced model of the soft bodies; the full ones follow the servo's forces
`Paper`         003 as printed: contact points at their free position at dt, constraint directions frozen
`Extrapolated`  the same, with contact points carried on at their velocity of L7
`Monolithic`    the reference: every body at the servo's rate, detection at every tick
"""

import numpy as np
from numpy.typing import NDArray

from physics.bodies.chain import ChainState
from physics.collision.topology import LOW, TOOL
from physics.exchange.buffer import make_control, publish, writer_slot
from physics.exchange.constraint_frame import (
    BASE_TICK,
    EXACT,
    EXTRAPOLATED,
    FRESH,
    FROZEN,
    GEOMETRY,
    HELD,
    N_CONTACTS,
    REDUCED,
    make_frame,
)
from physics.exchange.force_log import make_force_log
from physics.exchange.handle import Handle
from physics.exchange.port import make_port
from physics.exchange.ring import ring_available, ring_release
from physics.exchange.tool_state import make_tool_state
from physics.math3 import rotate_by
from physics.reduction.interface_model import adopt, make_interface_state, replay, store
from physics.systems.assembly import make_high_rate
from physics.systems.high_rate import MAX_SWEEPS, REACH, STEP, HighRate, tick
from physics.systems.low_rate import LowRate
from physics.systems.members import Member, RigidMember
from physics.systems.reduced_frame import Tangent, linearise, write_reduced
from physics.systems.scene import Scene

READY_SHARE = 0.4
"""Share of a low period, in lock-step, between the frame's last full integration and its publication; in
threads, it is the time that the algebra of `finish` takes."""


class Krylov(LowRate):
    """The reduced interface. The full bodies are integrated under the servo's recorded forces."""

    kind = "krylov"

    def __init__(self, scene: Scene, high: HighRate) -> None:
        super().__init__(scene, high)
        self.shifts = [self.dt, self.DT]
        if scene.numbers.shifts == 3:
            self.shifts.append(float(np.sqrt(self.dt * self.DT)))
        self.frame = Handle(high.frame)
        self.model = Handle(make_interface_state(scene.capacity))
        self.log = Handle(high.log)
        self.tangents: list[Tangent] = []
        self.chosen, self.near = np.zeros(0, np.int32), 0

    def begin(self) -> None:
        """L1 to L5: candidates for the frame's whole life, tangents, and A^-1 J^T at every shift."""
        with self.timed("L1 proximity"):
            self.read_tool()
            # the frame appears up to a period from now and serves for another; half a period in hand
            self.find_pairs(2.5 * self.DT)
            self.chosen, self.near = self.choose_slots()
        with self.timed("L3-L5 tangent and columns"):
            slots = self.member_slots(self.chosen)
            self.tangents = [
                linearise(member, self.shifts, self._loaded_columns(local), self.pool)
                for member, (_, local) in zip(self.scene.members, slots, strict=True)
            ]

    def _loaded_columns(self, local: NDArray[np.intp]) -> NDArray[np.intp]:
        """The likeliest points of a member, as many as the basis has room for."""
        room = self.scene.numbers.max_columns // (3 * len(self.shifts))
        return local[:room]

    def finish(self, until: int, present: int | None = None) -> None:
        """L6: the full bodies up to `until` under the servo's forces. L7: reduce, replay, publish.

        In threads the frame is brought up to the tick `present`, by default to all that the log holds then.
        """
        with self.timed("L6 integrate"):
            points, forces = self.drain(until)
            self.integrate_members([t.factors[0] for t in self.tangents], points, forces)
            self.tick = until
        with self.timed("L7 reduce and publish"):
            chosen, near = self._with_loaded()
            f = self.open_frame(REDUCED, chosen, near)
            for low, (tangent, (slots, local)) in enumerate(
                zip(self.tangents, self.member_slots(chosen), strict=True)
            ):
                write_reduced(
                    tangent, self.high.frame, f, low, slots, local, self.scene.capacity.modes, near, self.dt, self.pool
                )
            self._replay_known(f, present)
            self.hand_over(f)

    def _with_loaded(self) -> tuple[NDArray[np.int32], int]:
        """The chosen slots, and those that the servo pressed on meanwhile: their forces must find a slot."""
        missing = np.setdiff1d(self.loaded, self.chosen).astype(np.int32)
        room = self.scene.capacity.slots - len(missing)
        return np.concatenate([self.chosen[:room], missing]), self.near

    def _replay_known(self, f: int, present: int | None) -> None:
        """Bring the frame up to `present` ticks; the servo replays what comes after."""
        ring_release(self.high.log.ring, max(0, self.tick - self._released))
        self._released = self.present = self.tick
        if self.lock_step:
            return
        # ticks still being written are not in the log: its ring says how many are complete
        self.present = self.tick + int(ring_available(self.high.log.ring)) if present is None else present
        if self.present == self.tick:
            return
        adopt(self.frame, f, self.model)
        mask = len(self.high.log.tick) - 1
        for done in range(self.tick, self.present):
            replay(self.frame, f, self.model, self.log, done & mask, self.dt)
        store(self.frame, f, self.model, self.present)

    _released = 0


class Literal(LowRate):
    """003 as printed: low-rate problem with the proxy at DT, constraint data of L1 shared with the servo.

    Rows that touch only low-rate bodies do not appear at high rate; their L6 forces go into x_soft_free^dt.
    """

    motion = HELD

    def __init__(self, scene: Scene, high: HighRate) -> None:
        super().__init__(scene, high)
        self.proxy = _proxy(scene)
        self.proxy_handle = Handle(self.proxy)
        self.due = 0

    def begin(self) -> None:
        """L1 to L7; the frame is ready and waits for its publication."""
        scene, low = self.scene, self.proxy
        with self.timed("L1 proximity"):
            self.read_proxy_points()
            self.find_pairs(2.0 * self.DT)
            self.chosen, self.near = self.choose_slots()
            self.near = min(len(self.chosen), scene.capacity.near)
            self.chosen = self.chosen[: self.near]
        with self.timed("L2 impose proxy"):
            self.impose_proxy()
        with self.timed("L3 free motion"):
            slots = self.member_slots(self.chosen)
            motions = list(self.pool.map(self._free_motion, scene.members))
        with self.timed("L4-L5 violation and compliance"):
            f_low = self._low_frame(slots, motions)
        with self.timed("L6 solve"):
            tick(self.proxy_handle)
        with self.timed("L7 correct"):
            forces = self._low_forces(f_low)
            self._shared_frame(slots, motions, forces)
            self._correct(motions, forces)

    def read_proxy_points(self) -> None:
        """Points as L7 predicted them; 003 detects between them, not between the servo's (L1 before L2)."""
        servo_state, control = self.high.state, self.high.state_control
        self.read_tool()
        self.servo = {
            name: getattr(servo_state, name)[self.tool_slot].copy()
            for name in ("x", "q", "v", "w", "target", "target_q", "target_v", "target_w")
        }
        self.servo_tick = int(servo_state.tick[self.tool_slot])
        del control

    def impose_proxy(self) -> None:
        """L2: the servo's positions, orientations and velocities, and its hold with the target of t + DT."""
        low, servo = self.proxy, self.servo
        if self.servo_tick >= 0:
            for name in ("x", "q", "v", "w"):
                getattr(low.tool, name)[:] = servo[name]
            low.hold.target[:], low.hold.target_q[:] = servo["target"], servo["target_q"]
            low.port.position[:] = servo["target"] + self.DT * servo["target_v"]
            low.port.orientation[:] = servo["target_q"]
            rotate_by(self.DT * servo["target_w"], low.port.orientation)
            low.hold.rest[:] = [1.0, 0.0, 0.0, 0.0]
        else:
            low.port.position[:], low.port.orientation[:] = self.high.port.position, self.high.port.orientation
        low.counter[0] = max(self.servo_tick, 1)
        low.log.ring[:] = make_force_log(16, 1).ring
        low.log.tick[:] = -1

    def _free_motion(self, member: Member) -> "_Motion":
        """L3 for a soft body, at both steps."""
        body = member.body
        body.linearise()
        factors = [body.factor(h) for h in (self.DT, self.dt)]
        free = [body.free_velocity(factor, h) for factor, h in zip(factors, (self.DT, self.dt), strict=True)]
        return _Motion(member, factors, free)

    def _low_frame(self, slots: list, motions: list["_Motion"]) -> int:
        """L4 and L5 at DT: the low-rate problem's slots, free steps and W_soft^DT."""
        f = _held_frame(self.proxy, self, self.chosen)
        for low, (motion, (own, local)) in enumerate(zip(motions, slots, strict=True)):
            _write_held(self.proxy, f, low, motion, own, local, 0, self.DT)
        publish(self.proxy.frame_control)
        return f

    def _low_forces(self, f: int) -> NDArray[np.float64]:
        """L6's forces on every chosen point, (k, 3) [N]; and of rows that touch low-rate bodies only."""
        rows, roles = self.proxy.rows, self.scene.topology.body_role
        total, own = np.zeros((len(self.chosen), 3)), np.zeros((len(self.chosen), 3))
        for k in range(int(rows.count.sum())):
            force = rows.direction[k].T @ rows.r[3 * k : 3 * k + 3]
            soft_only = rows.tool_frame[k, 0] < 0
            for slot, share in zip(rows.slot[k], rows.share[k], strict=True):
                if slot >= 0:
                    total[slot] += share * force
                    if soft_only and k >= rows.count[0]:
                        own[slot] += share * force
        del roles, f
        self._soft_only = own
        return total

    def _shared_frame(self, slots: list, motions: list["_Motion"], forces: NDArray[np.float64]) -> None:
        """What the servo gets: J, x_soft_free^dt with the soft-only forces, W_soft^dt, contacts."""
        high, frame, contacts = self.high, self.high.frame, self.proxy.contacts
        f = _held_frame(high, self, self.chosen, self.motion)
        frame.head[f, GEOMETRY] = FROZEN
        for low, (motion, (own, local)) in enumerate(zip(motions, slots, strict=True)):
            member = motion.member
            load = member.columns(local) @ self._soft_only[own].reshape(-1)
            extra = member.body.correction_velocity(motion.factors[1], self.dt, load)
            _write_held(high, f, low, motion, own, local, 1, self.dt)
            step = frame.slot_step[f, own] + self.dt * (member.columns(local).T @ extra).reshape(-1, 3)
            frame.slot_x[f, own] += step
            frame.slot_step[f, own] = 0.0
            if self.motion == EXTRAPOLATED:
                final = motion.free[0] + member.body.correction_velocity(
                    motion.factors[0], self.DT, member.columns(local) @ forces[own].reshape(-1)
                )
                frame.slot_v[f, own] = (member.columns(local).T @ final).reshape(-1, 3)
        touches_tool = (self.scene.topology.body_role[contacts.body[: contacts.count[0]]] == TOOL).any(axis=1)
        kept = np.flatnonzero(touches_tool)
        n = len(kept)
        frame.head[f, N_CONTACTS] = n
        frame.contact_identity[f, :n] = contacts.identity[kept]
        frame.contact_points[f, :n] = contacts.points[kept]
        frame.contact_weights[f, :n] = contacts.weights[kept]
        frame.contact_arms[f, :n] = contacts.arms[kept]
        frame.contact_frame[f, :n] = contacts.frame[kept]
        frame.contact_mu[f, :n] = contacts.mu[kept]
        frame.contact_body[f, :n] = contacts.body[kept]
        self._ready = f

    def _correct(self, motions: list["_Motion"], forces: NDArray[np.float64]) -> None:
        """L7: corrected motion of the soft bodies; the proxy's own was made by the solve."""
        for motion, (own, local) in zip(motions, self.member_slots(self.chosen), strict=True):
            member, body = motion.member, motion.member.body
            load = member.columns(local) @ forces[own].reshape(-1)
            body.advance(motion.free[0] + body.correction_velocity(motion.factors[0], self.DT, load), self.DT)

    def finish(self, until: int, present: int | None = None) -> None:
        """Publish what `begin` made ready."""
        ring_release(self.high.log.ring, until - self.tick)
        self.tick = self.present = until
        self.high.frame.head[self._ready, BASE_TICK] = until
        self.hand_over(self._ready)


class Paper(Literal):
    """Contact points stand still between low steps."""

    kind = "paper"


class Extrapolated(Literal):
    """Contact points go on at their velocity of L7, within limits."""

    kind = "extrapolated"
    motion = EXTRAPOLATED


class Monolithic(LowRate):
    """The reference: one low step a tick, no latency, exact free motion and compliance at dt."""

    kind = "monolithic"

    def begin(self) -> None:
        """Detection, free motion and compliance at dt; the frame is visible at once."""
        with self.timed("L1 proximity"):
            self.read_tool()
            self.find_pairs(2.0 * self.dt)
            self.chosen, _ = self.choose_slots()
            self.chosen = self.chosen[: self.scene.capacity.near]
        with self.timed("L3 free motion"):
            motions = list(self.pool.map(self._free_motion, self.scene.members))
        with self.timed("L4-L5 violation and compliance"):
            f = _held_frame(self.high, self, self.chosen)
            for low, (motion, (own, local)) in enumerate(
                zip(motions, self.member_slots(self.chosen), strict=True)
            ):
                _write_held(self.high, f, low, motion, own, local, 0, self.dt)
            self.hand_over(f)
        self.motions = motions

    def _free_motion(self, member: Member) -> "_Motion":
        body = member.body
        body.linearise()
        factor = body.factor(self.dt)
        return _Motion(member, [factor], [body.free_velocity(factor, self.dt)])

    def finish(self, until: int, present: int | None = None) -> None:
        """Correct the bodies with the forces of the tick that has just been made."""
        with self.timed("L7 correct"):
            points, forces = self.drain(until)
            for motion in self.motions:
                member, body = motion.member, motion.member.body
                own = np.flatnonzero((points >= member.first) & (points < member.first + member.count))
                load = member.columns(points[own].astype(np.intp) - member.first) @ forces[0, own].reshape(-1)
                body.advance(motion.free[0] + body.correction_velocity(motion.factors[0], self.dt, load), self.dt)
            self.release(until - self.tick)
            self.tick = until
            self.loaded = points.astype(np.intp)


class _Motion:
    """Factors and free velocities of a member, at each step size in turn."""

    def __init__(self, member: Member, factors: list, free: list[NDArray[np.float64]]) -> None:
        self.member, self.factors, self.free = member, factors, free


def _held_frame(high: HighRate, loop: LowRate, chosen: NDArray[np.int32], motion: int = EXACT) -> int:
    """An open frame in the buffer of `high` whose slots all have their compliance precomputed."""
    keep = loop.high
    loop.high = high
    f = loop.open_frame(motion, chosen, len(chosen))
    loop.high = keep
    return f


def _write_held(
    high: HighRate, f: int, low: int, motion: _Motion, slots: NDArray[np.intp], local: NDArray[np.intp],
    which: int, h: float,
) -> None:  # fmt: skip
    """Positions, free steps and exact compliance h^2 J A_h^-1 J^T of a member's slots."""
    frame, member = high.frame, motion.member
    turns = member.turns(local)
    frame.floating[f, low] = 0
    frame.slot_body[f, slots] = low
    frame.slot_turns[f, slots] = turns
    frame.slot_x[f, slots] = np.where(turns[:, None] == 1, 0.0, member.positions()[local])
    frame.slot_q[f, slots] = member.orientations(local)
    columns = member.columns(local)
    frame.slot_step[f, slots] = h * (columns.T @ motion.free[which]).reshape(-1, 3)
    if len(slots):
        half = motion.factors[which].half_solve_many(columns)
        rows = (3 * slots[:, None] + np.arange(3)).reshape(-1)
        frame.compliance[f][np.ix_(rows, rows)] = h * h * (half.T @ half)


def _proxy(scene: Scene) -> HighRate:
    """A tick of its own for the low-rate problem, at DT."""
    state = scene.tool
    low = make_high_rate(
        scene, ChainState(*(a.copy() for a in state)), make_port(), make_frame(scene.capacity), make_control(),
        make_tool_state(len(state.x), scene.capacity.contacts), make_control(), make_force_log(16, 4096),
    )  # fmt: skip
    low.value[STEP] = scene.numbers.low_dt
    low.value[REACH] = max(scene.numbers.reach, 1.0 * scene.numbers.low_dt)
    low.setting[MAX_SWEEPS] = scene.numbers.sweeps_low
    return low


def make_low_rate(kind: str, scene: Scene, high: HighRate) -> LowRate:
    """The low-rate loop of an interface kind."""
    kinds = {k.kind: k for k in (Krylov, Paper, Extrapolated, Monolithic)}
    return kinds[kind](scene, high)


__all__ = ["FRESH", "LOW", "RigidMember", "make_low_rate", "writer_slot"]
