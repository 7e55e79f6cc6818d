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
from itertools import pairwise
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import Stop
from palpo.physics.errors import InputError
from palpo.physics.suction.border_springs import BorderSprings, joined_blocks, springs_under_suction
from palpo.physics.suction.cavity_rows import Walls, fill_cavity_rows, seeped, seeping
from palpo.physics.suction.contact_search import ContactSearch, Ground
from palpo.physics.suction.contacts import (
    COUNT,
    keep_rows,
    make_rows,
    pressing,
    recall_forces,
    remember_forces,
)
from palpo.physics.suction.cup_blocks import CupBlocks, whole
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.enclosure import enclosure_of
from palpo.physics.suction.found_cavities import FoundCavities, found_cavities
from palpo.physics.suction.gas import Air
from palpo.physics.suction.labels import Thresholds
from palpo.physics.suction.network import Lines, PumpedCups
from palpo.physics.suction.pressure import make_gas
from palpo.physics.suction.pressure_solver import PressureSolver
from palpo.physics.suction.sides import Motion, Side, SoftSide

STAGES = ("free motion", "collision", "cavities", "constraints", "solution", "correction")
"""Columns of `Suction.times`."""

HISTORY = 4096
"""Steps whose times and counts are kept."""

ROUNDS = 4
"""Most solutions in a step, each with the rows that the one before was found to lack."""

PARTING = 0.05
"""How fast [m/s] bodies that overlap come apart. Undone in one step, an overlap of a long step would become
a speed of it over h in a short one, at the expense of nothing: this one lifts a body by 0.13 mm."""

SLACK = 0.01
"""How far a gap without a row may close beyond the contact distance, over that distance."""

STOP = Stop(1e-6, 300)

Array = NDArray[np.float64]
T = TypeVar("T")


class Suction:
    """Cups against one partner: `step` advances all by h [s].

    partner: a side of physics/suction/sides.py, made with the same `capacity`, the most rows. exact: borders
    on the iso-line. stop, accelerated: of the `solver`.

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

    amount: Array
    volume: Array
    start_volume: Array

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
        self.limits, self.air, self.h, self.gauge = limits, air, h, gauge
        self.pumped: PumpedCups | None = None
        self.mu = np.array([spec.mu for spec in cups])
        self.enclosures = [
            enclosure_of(cup, spec, partner, limits, exact) for cup, spec in zip(self.cups, cups, strict=True)
        ]
        self._search = ContactSearch(
            self.cups, partner, limits, ground, [e.gaps for e in self.enclosures], capacity
        )
        self._memory = np.zeros((self._search.identities, 3))
        self._pressing = [np.zeros(len(cup.local)) for cup in self.cups]
        self.candidates, self.rows = self._search.candidates, make_rows(capacity)
        most = 3 * capacity + sum(len(e.volume) for e in self.enclosures)
        self._w, self._b = np.zeros(most * most), np.zeros(most)
        self.solver = PressureSolver(capacity, most - 3 * capacity, stop, accelerated)
        self.steps, self.time, self.diverged = 0, 0.0, 0
        self.times, self.counts = np.zeros((HISTORY, len(STAGES))), np.zeros((HISTORY, 4), np.int64)
        self.r, self.hold, self.free = np.zeros(0), np.zeros((len(cups), 6)), list[Motion]()
        self._yields: Walls = []
        self._problem = np.zeros((0, 0)), np.zeros(0)
        self._blocks: CupBlocks | None = None
        self.springs: BorderSprings | None = None
        self._lines: Lines | None = None
        self._forget_cavities()

    def close(self) -> None:
        """End the worker threads."""
        self._pool.shutdown()

    def take_step(self, h: float) -> None:
        """The next steps are of h [s]; only between two of them."""
        if h != self.h:
            self.h = h
            for side in self.sides:
                if isinstance(side, SoftSide):
                    # a body's factor, and what couples it to its handle, belong to the last one
                    side.body.keep_factors(())

    def step(self) -> None:
        """One step of h. Raises FloatingPointError when a state is no longer finite."""
        marks = [perf_counter()]
        self.move_freely()
        marks.append(perf_counter())
        self.detect(marks)
        self.settle(marks)

    def detect(self, marks: list[float] | None = None) -> None:
        """Collision and cavities at the present state, after `move_freely`: how far gaps are looked for.

        marks: gets the times at which both end.
        """
        for stage in (lambda: self._search.collide(self.mu, self.free[-1], self.h), self._find_cavities):
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
        self.counts[k] = self.rows.size[COUNT], self.candidates.size[COUNT], self.solver.sweeps, rounds
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

    def _find_cavities(self) -> None:
        """Cavities of all cups, their volumes and gradients as forces of a unit pressure."""
        self._forget_cavities()

        def find(i: int) -> None:
            self.enclosures[i].find(self._search.local[i], self.air)
            self.enclosures[i].find_flow(self._search.local[i], self._pressing[i], self.air)

        self._side_by_side(find, len(self.cups))
        if self.steps == 0:
            for enclosure, local in zip(self.enclosures, self._search.local, strict=True):
                enclosure.require_start(local)
        self._take_cavities(found_cavities(self.enclosures, self.cups, self.partner))
        if self.gauge is None:
            self.pressure = self.air.pressure(self.amount, self.volume)
        else:
            self.pressure = np.full(self.cavity_count, self.air.atmosphere + self.gauge)
        if self.pumped is not None:
            self._lines = self.pumped.couple(self.cavity_cup, self.pressure, self.volume, self.h)

    def seeping(self) -> Array:
        """s = h G [m3/Pa] (k + 1, k + 1) between the present cavities and, last, the outside."""
        under_rims = seeping(self.enclosures, self.h)
        return under_rims if self._lines is None else under_rims + self._lines.seeping

    def supplied(self) -> Array:
        """n [mol] (k,) of the present cavities with what a pump's lines bring in the step."""
        if self._lines is None:
            return self.amount.copy()
        return np.asarray(self.amount + self._lines.amount / self.air.rt)

    def _choose_rows(self) -> None:
        """What the walls yield, and the offsets of all candidates.

        Wanted at first: what free motion all but closes, or carried a force.
        """
        owns = self._side_by_side(self._own_yields, len(self.cups))
        others = [self.partner.respond(other, self.h) for _, other in self.walls]
        self._yields = list(zip([y for yields in owns for y in yields], others, strict=True))
        self.springs = springs_under_suction(
            self.enclosures, self.pressure - self.air.atmosphere, self.cups, self.partner, self.h
        )
        candidates, n = self.candidates, int(self.candidates.size[COUNT])
        self._offset = np.zeros(3 * n)
        for number, side in enumerate(self.sides):
            side.take_rows(candidates, number)
            side.add_displacement(self.free[number], self.h, self._offset)
        self._offset[::3] += np.maximum(candidates.gap[:n], -PARTING * self.h)
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
        for side in self.sides:
            side.add_compliance(w, span)
        fill_cavity_rows(
            w, b, self.cavity_cup, self.walls, self._yields, self.start_volume, self.sides, self.free, h
        )
        if self.springs is not None:
            self.springs.take_out(w, b, self.walls, self.cavity_cup, self.sides, self.free, h, span)
        self._blocks = joined_blocks(span, self.partner, self.springs, h) if len(span) > 2 and n else None
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
        given = np.full(self.cavity_count, self.gauge is not None)
        gas = make_gas(self.air, self.supplied(), self.pressure, given, self.seeping())
        mu = self.rows.mu[: self.rows.size[COUNT]]
        self.r, converging = self.solver.solve(w, b, mu, self.remembered(), gas, self._blocks)
        if not converging:
            # its pressures mean nothing, and air that it let out would be lost for good
            self.diverged += 1
            gas.pressure[:], gas.volume[:], gas.amount[:] = self.pressure, self.start_volume, self.amount
        self._gas = gas
        remember_forces(self.rows, self.r, self._memory)

    def _correct(self) -> bool:
        """The motion with all forces; False where it closes a gap that had no row, which then is wanted."""
        h, candidates = self.h, self.candidates
        gauge = self._gas.pressure - self.air.atmosphere
        pulled = list(zip(self.cavity_cup, gauge, self.walls, strict=True))
        if self.springs is not None:
            pulls = self.springs.forces(np.concatenate([self.r, gauge]))
            pulled += zip(self.springs.cup_of, pulls, self.springs.pulls, strict=True)

        def motion(number: int) -> Motion:
            side = self.sides[number]
            force = side.force_of_rows(self.r)
            for cup, pull, (own, other) in pulled:
                if number == len(self.cups):
                    force = force + pull * other
                elif number == cup:
                    force = force + pull * own
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
        before = self.amount
        self.pressure, self.volume, self.amount = self._gas.pressure, self._gas.volume, self._gas.amount
        self._keep_air()
        for i, cup in enumerate(self.cups):
            self._pressing[i][:] = pressing(self.rows, self.r, i, len(self.cups), len(cup.body.x))[cup.nodes]
        if self.pumped is not None and self._lines is not None:
            gained = (self.amount - before) * self.air.rt
            lost = seeped(self.enclosures, self.pressure, self.air.atmosphere, h)
            self.pumped.settle(float((gained + lost)[self._lines.mouths].sum()), h)
        for number, side in enumerate(self.sides):
            motion = self.free[number] + self._motion[number]
            if not np.isfinite(motion).all():
                raise FloatingPointError("the state of a body is no longer finite.")
            if number < len(self.cups):
                body = self.cups[number].body
                if body.handle is not None and body.handle.driven:
                    self.hold[number] = body.holding_wrench(motion, h)
            side.finish(motion, h)

    def _keep_air(self) -> None:
        """Amounts and volumes become those with which the next step begins."""
        first = 0
        for enclosure in self.enclosures:
            last = first + len(enclosure.active)
            enclosure.commit(self.amount[first:last], self.volume[first:last])
            first = last

    def _forget_cavities(self) -> None:
        self._take_cavities(found_cavities((), (), self.partner))
        self._yields, self.springs, self.pressure = [], None, np.zeros(0)

    def _take_cavities(self, found: FoundCavities) -> None:
        """Those of the step, with the air and the volumes with which it begins."""
        self.cavity_cup, self.cavity_count = found.cup, len(found.cup)
        self.walls, self.identity, self.flat = found.walls, found.identity, found.flat
        self.amount, self.volume, self.start_volume = found.amount, found.volume, found.volume.copy()
