"""Suction cups: one step of thesis 000, algorithm 1, in its order.

    free motion             A dv = b                                       (3.1)
    collision               gaps, normals, closest points                  (3.2.1)
    cavities                found, paired, measured, followed              (3.2.2 to 3.2.6)
    constraints             W = h^2 H A^-1 H^T, offsets of the free motion (3.6, 3.7, 3.9)
    solution                contacts, friction and gas laws together       (algorithm 2)
    correction              dv += h A^-1 (H_c^T r + H_p^T (p - P_atm))     (3.3)

Collision and cavities are those of the step's start, where the surfaces touch as the last solution left them,
and not of the free motion as in the thesis: without the pressure that holds it the rim would have lifted, and
every seal would be lost before the solution could keep it. Gaps and volumes of the end follow from the free
motion linearly, b_c = gap + h H_c v_free and V_free = V + h H_p v_free.

Only rows that may matter are made: those whose gap the free motion all but closes, or that carried a force.
If the solution then closes another one, its row is added and the problem solved again.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers.anderson import DIVERGED, SWEEPS
from palpo.physics.contact.solvers.relaxation import project_cones
from palpo.physics.errors import InputError
from palpo.physics.suction.contacts import (
    COUNT,
    Pair,
    add_bulge_rows,
    add_ground_rows,
    add_vertex_rows,
    keep_rows,
    make_rows,
    recall_forces,
    remember_forces,
)
from palpo.physics.suction.cup_blocks import CupBlocks, make_blocks, whole
from palpo.physics.suction.enclosure import Enclosure
from palpo.physics.suction.gaps import Gaps, choose_points, make_gaps, measure, move_target
from palpo.physics.suction.gas import Air
from palpo.physics.suction.labels import Thresholds
from palpo.physics.suction.network import PumpedCups
from palpo.physics.suction.pressure import Gas, advance, begin, finish, make_workspace
from palpo.physics.suction.roughness import Seal
from palpo.physics.suction.sides import Motion, RigidSide, Side, SoftSide
from palpo.physics.suction.tracking import FLAT

STAGES = ("free motion", "collision", "cavities", "constraints", "solution", "correction")
"""Columns of `Suction.times`."""

HISTORY = 4096
"""Steps whose times and counts are kept."""

ROUNDS = 4
"""Most solutions in a step, each with the rows that the one before was found to lack."""

SLACK = 0.01
"""How far a gap without a row may close beyond the contact distance, over that distance."""

STOP = Stop(1e-6, 300)

Array = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class CupSpec:
    """One soft body with cups. mu: of it on the partner. roughness [m]: depth of the pockets between both.

    seed: node on its outside, None to find one. cavities: most of them that are kept. seal: how high a gap
    rough contact leaves by its pressure (palpo.physics.suction.roughness.seal_of), from which the flow of air
    under the rim follows; None for a rim that is tight up to the sealing distance.
    """

    body: HeldBody
    mu: float = 0.6
    roughness: float = 1e-5
    seed: int | None = None
    cavities: int = 8
    seal: Seal | None = None


@dataclass(frozen=True, eq=False)
class Ground:
    """An endless ground under the partner: its height [m], mu, and which vertices of it may touch it."""

    height: float
    mu: float
    vertices: NDArray[np.int64]


class Suction:
    """Cups against one partner: `step` advances all by h [s].

    partner: a FixedSide, RigidSide or SoftSide (physics/suction/sides.py), made with the same `capacity`, the
    most rows. exact: borders on the iso-line.
    stop: of the solver. accelerated: see palpo.physics.suction.pressure.

    Written from outside between steps: gauge [Pa], pressure given against the atmosphere, None where the air
    is shut in; pumped, the pump that all cups share, or None; mu (cups,); handles and loads of the bodies.
    Read after a step: rows and their forces r (3 c,) [N]; of `cavity_count` cavities cavity_cup, pressure
    [Pa], volume [m3], amount [mol], identity and flat, each (k,); hold (cups, 6) [N, N m]: wrench on each
    driven handle; diverged, how many solutions did: of them the forces of the least residual were kept, but
    the pressures and the air of the step's start; problem; times (HISTORY, 6) [s] and counts (HISTORY, 4),
    rows, candidates, sweeps and rounds, of step i at i % HISTORY.

    Who has to know a step's problem before its loads are known calls its halves: `detect` and `settle`, each
    after `move_freely`; `assemble` between them.
    """

    def __init__(
        self, cups: Sequence[CupSpec], partner: Side, limits: Thresholds, air: Air, h: float = 0.01, *,
        ground: Ground | None = None, gauge: float | None = None, exact: bool = True,
        stop: Stop = STOP, accelerated: bool = True, capacity: int = 512,
    ) -> None:  # fmt: skip
        if not partner.surface.closed:
            raise InputError("the partner's surface is open, and air would pass through it: close it.")
        self.cups = [SoftSide(spec.body, capacity) for spec in cups]
        self.partner = partner
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="palpo-suction")
        self.sides: list[Side] = [*self.cups, partner]
        self.limits, self.air, self.h, self.ground = limits, air, h, ground
        self.gauge, self.stop, self.accelerated = gauge, stop, accelerated
        self.pumped: PumpedCups | None = None
        self.mu = np.array([spec.mu for spec in cups])
        self.enclosures = [
            Enclosure(
                cup, partner, limits, spec.roughness, spec.cavities, _vertex(cup, spec.seed), exact, spec.seal
            )
            for cup, spec in zip(self.cups, cups, strict=True)
        ]
        self._partner_gaps = [make_gaps(len(partner.local)) for _ in cups]
        m = len(partner.local)
        self._start = np.cumsum([0, *(len(cup.local) + m for cup in self.cups)])
        self._memory = np.zeros((int(self._start[-1]) + m, 3))
        self._pressing = [np.zeros(len(cup.local)) for cup in self.cups]
        self._seen = [cup.local.copy() for cup in self.cups]
        self._way = [0.0 for _ in self.cups]
        self.candidates, self.rows = make_rows(capacity), make_rows(capacity)
        most = 3 * capacity + sum(len(e.volume) for e in self.enclosures)
        self._w, self._b = np.zeros(most * most), np.zeros(most)
        self._x, self._u = np.zeros(most), np.zeros(most)
        self._workspace = make_workspace(capacity, most - 3 * capacity)
        self.r = np.zeros(0)
        self.steps, self.time, self.diverged = 0, 0.0, 0
        self.times, self.counts = np.zeros((HISTORY, len(STAGES))), np.zeros((HISTORY, 4), np.int64)
        self.hold = np.zeros((len(cups), 6))
        self.walls: list[tuple[Motion, Motion]] = []
        self._yields: list[tuple[Motion, Motion]] = []
        self.free: list[Motion] = []
        self._problem = np.zeros((0, 0)), np.zeros(0)
        self._blocks: CupBlocks | None = None
        self.gas_error = 0.0
        self._forget_cavities()

    def close(self) -> None:
        """End the worker threads."""
        self._pool.shutdown()

    def step(self) -> None:
        """One step of h. Raises FloatingPointError when a state is no longer finite."""
        marks = [perf_counter()]
        self.move_freely()
        marks.append(perf_counter())
        self.detect(marks)
        self.settle(marks)

    def detect(self, marks: list[float] | None = None) -> None:
        """Collision and cavities at the present state. marks: gets the times at which both end."""
        for stage in (self._collide, self._find_cavities):
            stage()
            if marks is not None:
                marks.append(perf_counter())

    def settle(self, marks: Sequence[float] = (0.0, 0.0, 0.0, 0.0)) -> None:
        """Constraints, solution, correction, after `move_freely` and `detect`, in whichever order.

        marks: times at which the stages before began and ended. Raises FloatingPointError as `step`.
        """
        spent = np.zeros(3)
        began = perf_counter()
        self._choose_rows()
        spent[0] = perf_counter() - began
        for rounds in range(1, ROUNDS + 1):
            began = perf_counter()
            w, b = self._constrain()
            constrained = perf_counter()
            self._solve(w, b)
            solved = perf_counter()
            complete = self._correct() or rounds == ROUNDS
            spent += np.diff([began, constrained, solved, perf_counter()])
            if complete:
                break
        began = perf_counter()
        self._finish()
        spent[2] += perf_counter() - began
        k = self.steps % HISTORY
        self.times[k, :3], self.times[k, 3:] = np.diff(marks), spent
        sweeps = int(self._workspace.count[SWEEPS])
        self.counts[k] = self.rows.size[COUNT], self.candidates.size[COUNT], sweeps, rounds
        self.steps += 1
        self.time += self.h

    def move_freely(self) -> None:
        """The motion of all bodies without contact and pressure, `free`, under their present loads."""
        self.free = self._side_by_side(lambda i: self.sides[i].free_motion(self.h))

    def _side_by_side(self, work: Callable[[int], T], count: int | None = None) -> list[T]:
        """work(i) of the first `count` sides, or of all, on two threads where two have much to do."""
        sides = range(len(self.sides) if count is None else count)
        if sum(isinstance(self.sides[i], SoftSide) for i in sides) < 2:
            return [work(i) for i in sides]
        return list(self._pool.map(work, sides))

    def _collide(self) -> None:
        """Gaps of cups' and partner's vertices, and all rows that could be made."""
        partner, kept, alarm = self.partner, self.limits.contact, self.limits.alarm
        partner.place_surface()
        origin, turn = partner.axes
        self._local, world = [], origin + partner.local @ turn.T
        candidates = self.candidates
        candidates.size[:] = 0
        for i, cup in enumerate(self.cups):
            cup.place_surface()
            x = np.ascontiguousarray((cup.local - origin) @ turn)
            self._local.append(x)
            gaps, other = self.enclosures[i].gaps, self._partner_gaps[i]
            near = choose_points(x, alarm, partner.odometer, gaps)
            measure(partner.target, partner.local, x, gaps.asked[:near], partner.odometer, gaps)
            self._ask_partner(i, x, other)
            triangles = cup.target.surface.triangles
            number, m = len(self.cups), len(x)
            pair = Pair(i, number, self.mu[i], alarm, kept, turn)
            add_vertex_rows(
                gaps, pair, cup.local, cup.nodes, cup.place, partner.nodes, partner.target.surface.triangles,
                self._start[i], candidates,
            )  # fmt: skip
            add_bulge_rows(
                other, gaps, pair, world, cup.nodes, cup.place, partner.nodes, triangles, self._start[i] + m,
                candidates,
            )  # fmt: skip
        if self.ground is not None:
            add_ground_rows(
                world, self.ground.vertices, partner.nodes, self.ground.height, alarm, kept, len(self.cups),
                self.ground.mu, self._start[-1], candidates,
            )  # fmt: skip

    def _ask_partner(self, i: int, x: Array, gaps: Gaps) -> None:
        """Gaps of the partner's vertices from cup i at x, both in the partner's axes."""
        partner, cup = self.partner, self.cups[i]
        self._way[i] += float(np.sqrt(((x - self._seen[i]) ** 2).sum(axis=1).max()))
        self._seen[i] = x
        near = choose_points(partner.local, self.limits.alarm, self._way[i], gaps)
        if near:
            move_target(cup.target, x)
            measure(cup.target, x, partner.local, gaps.asked[:near], self._way[i], gaps)

    def _find_cavities(self) -> None:
        """Cavities of all cups, their volumes and gradients as forces of a unit pressure."""
        self._forget_cavities()
        turn = self.partner.axes[1]
        cup_of, walls = [], []

        def find(i: int) -> None:
            self.enclosures[i].find(self._local[i], self.air)
            self.enclosures[i].find_flow(self._local[i], self._pressing[i], self.air)

        self._side_by_side(find, len(self.cups))
        for i, enclosure in enumerate(self.enclosures):
            if self.steps == 0:
                enclosure.require_start(self._local[i])
            for k in enclosure.active:
                cup_of.append((i, int(k)))
                own = self.cups[i].force_of_wall(enclosure.gradient[k] @ turn.T)
                walls.append((own, self.partner.force_of_wall(enclosure.partner_gradient[k])))
        tracks = [self.enclosures[i].tracks for i, _ in cup_of]
        self.walls = walls
        n = len(cup_of)
        self.cavity_cup = np.array([i for i, _ in cup_of], np.int64)
        self.identity = np.array([t.identity[k] for t, (_, k) in zip(tracks, cup_of, strict=True)], np.int64)
        self.flat = np.array([t.state[k] == FLAT for t, (_, k) in zip(tracks, cup_of, strict=True)], bool)
        self.amount = np.array([t.air[k] for t, (_, k) in zip(tracks, cup_of, strict=True)], float)
        self.volume = np.array([self.enclosures[i].volume[k] for i, k in cup_of], float)
        self.start_volume = self.volume.copy()
        if self.gauge is None:
            self.pressure = self.air.pressure(self.amount, self.volume)
        else:
            self.pressure = np.full(n, self.air.atmosphere + self.gauge)
        self.cavity_count = n

    def seeping(self) -> Array:
        """s = h G [m3/Pa] (k + 1, k + 1) between the present cavities and, last, the outside."""
        k = self.cavity_count
        out = np.zeros((k + 1, k + 1))
        first = 0
        for enclosure in self.enclosures:
            last = first + len(enclosure.active)
            own, its = [*range(first, last), k], [*enclosure.active.tolist(), -1]
            out[np.ix_(own, own)] = self.h * enclosure.conductance[np.ix_(its, its)]
            first = last
        return out

    def _choose_rows(self) -> None:
        """What the walls yield, and the offsets of all candidates.

        Wanted at first: what free motion all but closes, or carried a force.
        """
        owns = self._side_by_side(self._own_yields, len(self.cups))
        others = [self.partner.respond(other, self.h) for _, other in self.walls]
        self._yields = list(zip([y for yields in owns for y in yields], others, strict=True))
        candidates = self.candidates
        n = int(candidates.size[COUNT])
        self._offset = np.zeros(3 * n)
        for number, side in enumerate(self.sides):
            side.take_rows(candidates, number)
            side.add_displacement(self.free[number], self.h, self._offset)
        self._offset[::3] += candidates.gap[:n]
        held = self._memory[candidates.identity[:n]].any(axis=1)
        self._wanted = held | (self._offset[::3] < self.limits.sealing)

    def _own_yields(self, i: int) -> list[Motion]:
        """What the walls of cup i yield to a unit pressure in each of its cavities."""
        own = [wall for j, (wall, _) in enumerate(self.walls) if self.cavity_cup[j] == i]
        return [self.cups[i].respond(wall, self.h) for wall in own]

    def _constrain(self) -> tuple[Array, Array]:
        """W and b of the wanted rows and of the cavities, in memory that the next ones share."""
        h, rows, k = self.h, self.rows, self.cavity_count
        keep_rows(self.candidates, self._wanted, rows)
        n = 3 * int(rows.size[COUNT])
        size = n + k
        w = self._w[: size * size].reshape(size, size)
        span = self._spans()
        for first, past in pairwise((3 * span).tolist()):
            w[first:past, first:past] = 0.0
        w[n:], w[:, n:] = 0.0, 0.0
        b = self._b[:size]
        b[:n] = self._offset.reshape(-1, 3)[self._wanted].ravel()
        for number, side in enumerate(self.sides):
            side.take_rows(rows, number)
        self._side_by_side(lambda i: self.sides[i].find_compliance(h))
        last = len(self.cups)
        for side in self.sides:
            side.add_compliance(w, span)
        for j in range(k):
            i = int(self.cavity_cup[j])
            column = np.zeros(n)
            (own, other), (own_yield, other_yield) = self.walls[j], self._yields[j]
            self.cups[i].add_displacement(own_yield, h, column)
            self.partner.add_displacement(other_yield, h, column)
            w[:n, n + j] = column
            w[n + j, :n] = column
            for m in range(k):
                (own_2, other_2) = self.walls[m]
                shared = h * float((other_2 * other_yield).sum())
                if self.cavity_cup[m] == i:
                    shared += h * float((own_2 * own_yield).sum())
                w[n + j, n + m] = shared
            free = float((own * self.free[i]).sum() + (other * self.free[last]).sum())
            b[n + j] = self.start_volume[j] + h * free
        # the last bits of a product depend on its order
        w[n:, n:] = 0.5 * (w[n:, n:] + w[n:, n:].T)
        self._blocks = None
        if len(span) > 2 and n:
            half = self.partner.half if isinstance(self.partner, RigidSide) else np.zeros((n, 6))
            self._blocks = make_blocks(span, half)
        self._problem = w, b
        return w, b

    def _spans(self) -> NDArray[np.int64]:
        """Where the rows of each cup begin, and of the ground: blocks that only a partner's six motions join.

        A soft partner joins them in more ways: then all rows are one block.
        """
        n = int(self.rows.size[COUNT])
        if len(self.cups) == 1 or isinstance(self.partner, SoftSide):
            return np.array([0, n])
        return np.searchsorted(self.rows.body[:n, 0], np.arange(len(self.cups) + 2)).astype(np.int64)

    @property
    def problem(self) -> tuple[Array, Array]:
        """The last W and b, of the rows and then of the cavities."""
        w, b = self._problem
        return (w, b) if self._blocks is None else (whole(w, self._blocks), b)

    def assemble(self) -> tuple[Array, Array]:
        """W and b of all candidates, which become the rows, and of the cavities; copies of them."""
        self._choose_rows()
        self._wanted[:] = True
        self._constrain()
        w, b = self.problem
        return w.copy(), b.copy()

    def remembered(self) -> Array:
        """Forces (3 c,) [N] of the last step on the present rows, 0 on those that are new."""
        r = np.zeros(3 * int(self.rows.size[COUNT]))
        recall_forces(self.rows, self._memory, r)
        return r

    def _solve(self, w: Array, b: Array) -> None:
        """Contacts, friction and gas laws."""
        size = len(b)
        n = size - self.cavity_count
        mu = self.rows.mu[: n // 3]
        x, u = self._x[:size], self._u[:size]
        recall_forces(self.rows, self._memory, x)
        project_cones(mu, x[:n])
        gas = Gas(
            np.full(self.cavity_count, self.gauge is not None), self.pressure.copy(), self.amount.copy(),
            np.zeros(self.cavity_count), np.ones(self.cavity_count), self.seeping(), self.air.atmosphere,
            self.air.largest, self.air.rt,
        )  # fmt: skip
        a = self._workspace
        blocks = self._blocks
        bound = begin(w, b, mu, x, u, gas, self.accelerated, a, blocks)
        code = advance(w, b, mu, x, u, gas, self.stop.tolerance, bound, self.stop.max_iterations, a, blocks)
        self.gas_error = finish(w, b, mu, x, u, gas, a, blocks)
        if code == DIVERGED:
            # its pressures mean nothing, and air that it let out would be lost for good
            self.diverged += 1
            gas.pressure[:], gas.volume[:], gas.amount[:] = self.pressure, self.start_volume, self.amount
        self.r, self._gas = x[:n].copy(), gas
        remember_forces(self.rows, self.r, self._memory)

    def _keep_pressing(self) -> None:
        """How hard each cup's vertices press on the partner (n,) [N]; a bulge's force is its triangle's."""
        rows, last = self.rows, len(self.cups)
        n = int(rows.size[COUNT])
        for i, cup in enumerate(self.cups):
            its = (rows.body[:n] == (i, last)).all(axis=1)
            share = rows.weights[:n][its, 0] * self.r[::3][its, None]
            force = np.bincount(rows.nodes[:n][its, 0].ravel(), share.ravel(), len(cup.body.x))
            self._pressing[i][:] = force[cup.nodes]

    def _correct(self) -> bool:
        """The motion with all forces; False where it closes a gap that had no row, which then is wanted."""
        h, candidates = self.h, self.candidates
        gauge = self._gas.pressure - self.air.atmosphere

        def motion(number: int) -> Motion:
            side = self.sides[number]
            force = side.force_of_rows(self.r)
            for j, (own, other) in enumerate(self.walls):
                if number == len(self.cups):
                    force = force + gauge[j] * other
                elif number == self.cavity_cup[j]:
                    force = force + gauge[j] * own
            return side.respond(force, h)

        self._motion = self._side_by_side(motion)
        if self._wanted.all():
            complete = True
        else:
            end = self._offset.copy()
            for number, side in enumerate(self.sides):
                side.take_rows(candidates, number)
                side.add_displacement(self._motion[number], h, end)
            lacking = ~self._wanted & (end[::3] < -max(SLACK * self.limits.contact, 1e-7))
            self._wanted = self._wanted | lacking
            complete = not lacking.any()
        return complete

    def _finish(self) -> None:
        """Move the bodies and keep the air."""
        h = self.h
        self.pressure, self.volume, self.amount = self._gas.pressure, self._gas.volume, self._gas.amount
        self._keep_air()
        self._keep_pressing()
        if self.pumped is not None:
            self._pump(self.pumped)
        for number, side in enumerate(self.sides):
            motion = self.free[number] + self._motion[number]
            if not np.isfinite(motion).all():
                raise FloatingPointError("the state of a body is no longer finite.")
            if number < len(self.cups):
                body = self.cups[number].body
                if body.handle is not None and body.handle.driven:
                    self.hold[number] = body.holding_wrench(motion, h)
            side.finish(motion, h)

    def _pump(self, pumped: PumpedCups) -> None:
        """Let air flow between cups and pump, each cup by its roomiest cavity."""
        mouth = np.full(len(self.cups), -1)
        for j in np.argsort(self.volume, kind="stable"):
            if self.volume[j] > 0.0:
                mouth[self.cavity_cup[j]] = j
        attached = mouth >= 0
        pressure, volume = (
            np.where(attached, np.append(a, 0.0)[mouth], 0.0) for a in (self.pressure, self.volume)
        )
        held = pumped.step(pressure, volume, attached, self.h)
        its = mouth[attached]
        self.amount[its] = held[attached] / self.air.rt
        self.pressure[its] = held[attached] / self.volume[its]
        self._keep_air()

    def _keep_air(self) -> None:
        """Amounts and volumes become those with which the next step begins."""
        first = 0
        for enclosure in self.enclosures:
            last = first + len(enclosure.active)
            enclosure.commit(self.amount[first:last], self.volume[first:last])
            first = last

    def _forget_cavities(self) -> None:
        self.cavity_count = 0
        self.walls, self._yields = [], []
        self.cavity_cup, self.identity = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.flat = np.zeros(0, bool)
        self.pressure, self.volume, self.amount = np.zeros(0), np.zeros(0), np.zeros(0)
        self.start_volume = np.zeros(0)


def _vertex(cup: SoftSide, node: int | None) -> int | None:
    """The vertex of the surface at a node; InputError where it is inside the body."""
    if node is None:
        return None
    vertex = np.flatnonzero(cup.nodes == node)
    if not vertex.size:
        raise InputError(f"the seed, node {node}, is not on the surface of {cup.body.name!r}.")
    return int(vertex[0])
