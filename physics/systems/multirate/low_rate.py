"""The low-rate loop of a multi-rate scene: what every interface kind shares.

A step finds candidates, linearises and does the expensive algebra; what is published are the bodies' points
in use as slots, how they move and yield, and the pairs among them. The times of the named steps are kept for
the report.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.chain_models import ChainState
from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.broadphase import BroadPhase
from palpo.physics.collision.growing_surface import GrowingSurface
from palpo.physics.collision.proximity_contacts import Pairs
from palpo.physics.collision.topology import LOW
from palpo.physics.engine.slow_loop import SlowLoop
from palpo.physics.exchange.budget import Budget
from palpo.physics.exchange.buffer import acquire, ring_available, ring_overflow, ring_release, writer_slot
from palpo.physics.exchange.constraint_frame import (
    FRESH,
    ConstraintFrame,
)
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.kernels import kernel
from palpo.physics.reduction.body_model import BodyModel, DrawnModels
from palpo.physics.systems.multirate.candidates import distinct, fastest, points_by, tool_points
from palpo.physics.systems.multirate.frame_pairs import (
    OWN,
    joined_points,
    not_searched,
    standing,
    write_pairs,
)
from palpo.physics.systems.multirate.high_state import HighRate, Link
from palpo.physics.systems.multirate.member import Member
from palpo.physics.systems.multirate.member_cavities import points_of
from palpo.physics.systems.multirate.scene import Loop, Scene


@kernel
def gather_forces(count, point, force, tick, n, n_points):
    """The points under load in n ticks from `tick` on, (k,), ascending, and the forces on them (n, k, 3)."""
    mask, place, size = point.shape[0] - 1, np.zeros(n_points, np.int64), 0
    for t in range(n):
        e = (tick + t) & mask
        for k in range(count[e]):
            size += 1 - place[point[e, k]]
            place[point[e, k]] = 1
    points, out = np.empty(size, np.int32), np.zeros((n, size, 3))
    size = 0
    for p in range(n_points):
        if place[p] == 1:
            points[size], place[p] = p, size
            size += 1
    for t in range(n):
        e = (tick + t) & mask
        for k in range(count[e]):
            for i in range(3):
                out[t, place[point[e, k]], i] += force[e, k, i]
    return points, out


MOST_LOOKS = 1000
"""Times that a loop looks for a state of the servo with models of the others' bodies that are kept."""


class LowRate(SlowLoop):
    """State of a low-rate loop and the steps that its kinds have in common.

    `high` is the servo's side, `link` what is exchanged with it: frames go to its buffer, tool states and
    forces come back.
    """

    kind = ""
    apart = False
    """Whether each body has a loop of its own."""

    def __init__(self, scene: Scene, high: HighRate, link: Link, loops: Sequence[Loop], own: int = 0) -> None:
        """own: which of the scene's low loops this is."""
        numbers = scene.numbers
        super().__init__(high.frames, high.ticks, loops[own].ratio, numbers.dt, own)
        self.scene, self.high, self.link, self.loop = scene, high, link, loops[own]
        self.members = self.loop.members
        self.others: list[LowRate] = []
        """The other low loops, whose bodies this one sees as the servo has them."""
        self.DT = self.dt * self.ratio
        self.whose = standing(scene, self.loop, [loop for loop in loops if loop is not self.loop])
        self.x = scene.rest.copy()
        self.u = np.zeros_like(self.x)
        self.drawn = DrawnModels()
        """What the picture finds the bodies by, where the servo moves them."""
        self.pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="palpo-low")
        self._surfaces = {
            blade.spec.member.number: GrowingSurface(scene.topology, blade.spec.member.number)
            for blade in scene.blades
        }
        """Of the bodies that blades may cut."""
        self.broadphase = self._search()
        self.topology = Handle(scene.topology)
        self.pairs, self.arrival = Pairs(*(np.zeros(0, np.int32) for _ in range(3))), np.zeros(0)
        self.gaps, self.due = np.zeros(0), np.zeros(0)
        self.tool_slot = 0
        self._seen: list[tuple[BodyModel, ...]] = []
        """The models that the servo had of the others' bodies in that state of the tool."""
        self.gravity = numbers.gravity
        self.read_at, self.odometer = -1, 0.0
        """Ticks behind the tool state that was read last, and its odometer [m]: its slot may be written again
        during a step, once the picture has read too."""
        self.left_out = np.inf
        """Reading of the odometer at which a pair that found no slots in the last frame may be in reach."""
        self.lost_pairs = 0
        """Candidates that found no room so far."""
        self.crushed: dict[str, tuple[int, int]] = {}
        """By body: most of its elements that a step left turned inside out, and how many steps left some."""
        self.loaded: NDArray[np.intp] = np.zeros(0, np.intp)
        self.booked: Callable[[NDArray[np.int32], NDArray[np.float64]], None] | None = None
        """Told at each step the points (k,) and the impulses (k, 3) [N s] that the tool's constraints gave
        the bodies there: the servo's logged forces as they are integrated."""
        points = np.append(scene.attachments.points, scene.attachments.turn)
        roles = scene.topology.body_role[scene.topology.point_body[np.maximum(points, 0)]]
        attached = np.unique(points[(points >= 0) & (roles == LOW)])
        self.paths = [path for path in scene.needles if path.spec.member in self.members]
        """Of needles in bodies of this loop."""
        self.blades = [path for path in scene.blades if path.spec.member in self.members]
        """Of blades in them."""
        self.attached = attached[self.whose[scene.topology.point_body[attached]] == OWN]
        self._heard: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]] = (
            np.zeros(0, np.int64), np.zeros(0), np.zeros(0),
        )  # fmt: skip
        """Cavities of the tool state that was read last, their amounts [mol] and volumes [m3]."""
        if scene.air is not None:
            walls = scene.air.members
            self.attached = np.union1d(self.attached, points_of(walls)).astype(self.attached.dtype)

    def _search(self) -> BroadPhase:
        """Among the bodies' surfaces as they are now."""
        scene, numbers, t = self.scene, self.scene.numbers, self.scene.topology
        soft = [member for member in self.members if isinstance(member.body, SoftBody)]
        return BroadPhase(
            t, scene.rest, scene.capacity.pairs, numbers.alarm, numbers.acceleration,
            not_searched(scene, self.whose), joined_points(scene), scene.rigid(),
            # sides of a cut bear on each other in the body itself
            [member.number for member in soft if not isinstance(member.body, CutBody)],
            np.concatenate([np.zeros(0, np.int32), *(m.first + m.body.fixed for m in soft)]),
            np.concatenate([np.zeros(0, np.int64), *(s.parted for s in self._surfaces.values())]),
        )  # fmt: skip

    def close(self) -> None:
        """End the worker threads; of the first loop, those of the others too."""
        self.pool.shutdown()
        if self.number == 0:
            for other in self.others:
                other.close()

    def set_budget(self, budget: Budget) -> None:
        """See SlowLoop."""
        super().set_budget(budget)
        self.DT = budget.period * self.dt

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Book the wall time of a named step [s]."""
        start = time.perf_counter()
        yield
        self.times.add(name, time.perf_counter() - start)

    def calls(self) -> int:
        """Calls of the servo's tick that the tool state which was read last had behind it, -1 for none."""
        return int(self.link.state.calls[self.tool_slot])

    def known(self) -> int:
        """Ticks whose forces are in the log by now, or in the full bodies."""
        return self.tick + int(ring_available(self.link.log.ring))

    def check(self) -> None:
        """Raise RuntimeError where forces of the servo were lost, FloatingPointError for a broken body; note
        one that is crushed."""
        if self.invalid():
            raise FloatingPointError(f'body "{self.invalid()}" is not finite')
        for member in self.members:
            soft = isinstance(member.body, SoftBody)
            count = int(np.count_nonzero(member.body.volume_ratios() <= 0.0)) if soft else 0
            if count:
                most, steps = self.crushed.get(member.body.name, (0, 0))
                self.crushed[member.body.name] = max(most, count), steps + 1
        log = self.link.log
        if ring_overflow(log.ring):
            behind = len(log.tick) * self.dt
            raise RuntimeError(f"it fell more than {behind:.1f} s behind the servo, whose forces are lost")

    # ---- steps in common

    def read_tool(self) -> None:
        """Take the servo's newest tool state, and the models by which it tells where others' bodies are."""
        for _ in range(MOST_LOOKS):
            self.tool_slot, _ = acquire(self.link.state_control)
            state, k = self.link.state, self.tool_slot
            frames = [int(state.frame[k, other.number]) for other in self.others]
            self._seen = [other.drawn.of(f) for other, f in zip(self.others, frames, strict=True)]
            # another loop may have sent several frames since that state: a newer one has a model that is kept
            if all(bool(models) or f == 0 for models, f in zip(self._seen, frames, strict=True)):
                break
        else:
            raise RuntimeError("another loop has forgotten the frame that the servo has of it")
        if state.tick[k] < 0:
            tool = self.scene.tool_frames()
            state.x[k], state.q[k], state.v[k], state.w[k] = tool.x, tool.q, tool.v, tool.w
            hold = self.high.held.hold
            state.target[k], state.target_q[k] = hold.target, hold.target_q
            state.gravity[k] = self.scene.numbers.gravity
        self.read_at, self.odometer = int(state.tick[k]), float(state.odometer[k])
        # what an operator changes reaches other loops by way of the servo, at a tick that a recording knows
        self.gravity = state.gravity[k].copy() if self.number else self.scene.numbers.gravity
        for member in self.members:
            member.body.gravity[:] = self.gravity
        if self.scene.air is not None:
            n = int(state.n_cavities[k])
            air = state.cavity_air[k, :n]
            self._heard = state.cavity[k, :n].copy(), air[:, 0].copy(), air[:, 1].copy()

    def find_cavities(self) -> None:
        """The shut-in air at the full bodies' present state, with what the servo has made of it."""
        if self.scene.air is not None:
            with self.timed("cavities"):
                self.scene.air.enclosure.commit(*self._heard)
                self.scene.air.find()

    def place_points(self, tool: ChainState) -> None:
        """Positions and velocities of all points, with the tool's frames where `tool` has them.

        Points that follow a script are read by the ticks; their rows are kept ahead of them.
        """
        self.scene.script.keep(self.known())
        points = self.scene.tool_points
        for start, stop in self.scene.tool_spans():
            tool_points(start, stop, points.frame, points.lever, *tool, self.x, self.u)
        for member in self.members:
            self._place(member)
        for other, models in zip(self.others, self._seen, strict=True):
            self._place_others(other, models)

    def _place(self, member: Member) -> None:
        """Positions and velocities of a body's points."""
        self.x[member.span], self.u[member.span] = member.body.positions(), member.body.velocities()

    def _place_others(self, other: "LowRate", models: tuple[BodyModel, ...]) -> None:
        """Positions and velocities of the bodies of another loop, as the servo has them."""
        told, k, j = self.link.state, self.tool_slot, other.number
        for low, model in enumerate(models):
            span = other.members[low].span
            centre, turn = told.centre[k, j, low], told.orientation[k, j, low]
            self.x[span] = model.positions(told.z[k, j], centre, turn)
            self.u[span] = model.velocities(
                told.rate[k, j], self.x[span] - centre, turn, told.velocity[k, j, low], told.spin[k, j, low]
            )

    def plan_paths(self, takes: float) -> None:
        """Where needles will go while steps take so long [s], where blades are, and what they have cut."""
        for path in self.paths:
            told = self.link.state.inserted[self.tool_slot, path.number]
            path.look(self.x, self.u, told, takes)
            self._place(path.spec.member)
        for blade in self.blades:
            told, member = self.link.state.incised[self.tool_slot, blade.number], blade.spec.member
            was = blade.look(self.x, bool(told["inside"]), partial(self._fits, member))
            if was is not None:
                self.part(member, was)
            self._place(member)

    def part(self, member: Member, was: NDArray[np.int64]) -> None:
        """A body has been cut on, as CutBody.cut_on tells: its surface is another one."""
        assert isinstance(member.body, CutBody)
        self.scene.rest[member.span] = member.body.at_rest()
        self.broadphase = self._search()

    def _fits(self, member: Member, triangles: NDArray[np.int32]) -> bool:
        """Whether the scene has room for these triangles as a body's surface, which they are then."""
        return self._surfaces[member.number].renew(member.first + triangles.astype(np.int64))

    def servo_tool(self) -> ChainState:
        """The frames of all tools as the servo last published them."""
        state, k = self.link.state, self.tool_slot
        return ChainState(state.x[k], state.q[k], state.v[k], state.w[k])

    def find_pairs(self, horizon: float, within: float | None = None, own: float = np.inf) -> None:
        """L1: candidate pairs for the next `horizon` seconds, and the earliest time that each can touch.

        within: the gap [m] up to which all pairs are candidates instead; own: those of a body with itself.
        """
        skin = self.scene.numbers.skin
        found = self.broadphase.find(self.x, self.u, horizon, skin, within, own)
        self.pairs, self.arrival, self.gaps = found
        if within is None:
            self.lost_pairs += self.broadphase.dropped
        self.due = self.due_of(self.gaps)

    def due_of(self, gaps: ArrayLike) -> Any:
        """Readings of the servo's odometer up to which pairs with these gaps [m] now stay out of reach.

        The soft bodies are those of `self.tick`; what they may have moved since is taken off.
        """
        late = max(0, self.read_at - self.tick) * self.dt
        moved = late * (self._soft_speed() + 0.5 * late * float(np.linalg.norm(self.gravity)))
        return self.odometer + np.asarray(gaps) - self.scene.numbers.reach - moved

    def choose_slots(self, within: float = np.inf) -> tuple[NDArray[np.int32], int]:
        """Points that the frame must carry, likeliest contacts first; and how many of them are `near`.

        Attached points and those of needles' paths come first, then others as `ranked`. The near ones of a
        body stand side by side.
        """
        capacity = self.scene.capacity
        inside = [path.points() for path in self.paths] + [blade.points() for blade in self.blades]
        kept = np.concatenate([self.attached, *inside]).astype(np.int32)
        chosen = distinct(np.concatenate([kept, self.ranked(within)]).astype(np.int32))
        share = self.budget.contacts
        room = max(int(share * capacity.slots), len(kept))
        self.lost_slots = max(0, len(chosen) - room)
        chosen = chosen[:room]
        near = min(len(chosen), capacity.near, max(int(share * capacity.near), len(kept)))
        whose = self.scene.topology.point_body[chosen[:near]]
        chosen[:near] = chosen[:near][np.argsort(whose, kind="stable")]
        return chosen, near

    def ranked(self, within: float) -> NDArray[np.int32]:
        """Points under load, then those that can touch within that time [s], the earliest first."""
        first = points_by(self.topology, self.pairs, self.arrival, within)
        return np.concatenate([self.loaded.astype(np.int32), first])

    def open_frame(self, motion: int, chosen: NDArray[np.int32], near: int, link: Link | None = None) -> int:
        """Writer's slot with its slots, pairs and heads filled; members and contacts are still to come.

        link: whose buffer it is; the servo's if not given.
        """
        scene, link = self.scene, link or self.link
        frame = link.frame
        f = int(writer_slot(link.frame_control))
        frame.head[f], head = 0, frame.head[f]
        head["id"], head["motion"], head["geometry"] = self.frame_id + 1, motion, FRESH
        head["n_slots"], head["n_near"], head["base_tick"] = len(chosen), near, self.tick
        frame.slot_of[f] = -1
        frame.slot_of[f, chosen] = np.arange(len(chosen))
        frame.slot_point[f, : len(chosen)] = chosen
        frame.slot_step[f, : len(chosen)] = 0.0
        frame.slot_v[f, : len(chosen)] = 0.0
        frame.gravity[f] = self.gravity
        settings = frame.settings[f]
        settings["tolerance"] = scene.numbers.tolerance
        settings["sweeps"] = scene.numbers.sweeps_high if link is self.link else scene.numbers.sweeps_low
        settings["hold"] = scene.hold.gains[0]
        frame.friction[f] = scene.mu
        frame.extrapolation[f] = scene.numbers.max_distance, scene.numbers.max_time
        frame.compliance[f, : 3 * near, : 3 * near] = 0.0
        frame.mode_body[f] = 0
        if scene.air is not None:
            scene.air.write(frame, f)
        for path in self.paths:
            path.write(frame, f)
        for blade in self.blades:
            blade.write(frame, f)
        self._write_pairs(frame, f)
        return f

    def _write_pairs(self, frame: ConstraintFrame, f: int) -> None:
        """Pairs whose points of own bodies all have a slot."""
        room = Pairs(frame.pair_kind[f], frame.pair_first[f], frame.pair_second[f])
        frame.head["n_pairs"][f], self.left_out = write_pairs(
            self.topology, self.pairs, self.due, frame.slot_of[f], self.whose, room, frame.pair_due[f]
        )

    def member_slots(self, chosen: NDArray[np.int32]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """For each member: its slots and its local numbers there."""
        out = []
        for member in self.members:
            slots = np.flatnonzero((chosen >= member.first) & (chosen < member.first + member.count))
            out.append((slots, chosen[slots].astype(np.intp) - member.first))
        return out

    def bound_speed(self, f: int, late: float = 0.0) -> None:
        """Of slot f, whose bodies may have fallen for `late` [s] since they had the known velocities."""
        self.link.frame.soft_speed[f] = self._soft_speed() + late * float(np.linalg.norm(self.gravity))

    def _soft_speed(self) -> float:
        """Bound on the speed of low-rate points [m/s]: twice the fastest of them, and never below a crawl."""
        return self._speed_of(self.members)

    def _speed_of(self, members: Sequence[Member]) -> float:
        first = [(member.first, member.first + member.count) for member in members]
        quickest = max((fastest(self.u[a:b]) for a, b in first), default=0.0)
        return 2.0 * quickest + 0.05

    def _speed_of_others(self) -> float:
        """The same of the bodies of other loops, zero without any."""
        return max((self._speed_of(other.members) for other in self.others), default=0.0)

    def drain(self, until: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Forces of the ticks self.tick .. until - 1: the points concerned (k,) and (ticks, k, 3) [N]."""
        log = self.link.log
        points, forces = gather_forces(
            log.used, log.point, log.force, self.tick, until - self.tick, len(self.x)
        )
        if self.booked is not None:
            self.booked(points, self.dt * forces.sum(axis=0))
        return points, forces

    def release(self, ticks: int) -> None:
        """Give log entries back to the servo."""
        ring_release(self.link.log.ring, ticks)

    def invalid(self) -> str:
        """Name of a body whose state is not finite, or an empty string."""
        for member in self.members:
            if member.body.invalid():
                return self.scene.names[member.number]
        return ""
