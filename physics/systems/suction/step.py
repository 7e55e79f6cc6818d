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

Contacts, their memory and the solver are the engine's, and bodies answer its stages
(palpo.physics.systems.suction.rows). Only contacts that may matter are solved for: those whose gap the free
motion all but closes, or that carried a force. If the solution then closes another one, it joins them and the
problem is solved again.
"""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.held_factor import LARGE
from palpo.physics.compliance.full import Motion
from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers.relaxation import project_cones
from palpo.physics.engine.pressing import TURNS, press
from palpo.physics.engine.solve import make_solver, open_step
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.gas.flood import Thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.network import Lines, PumpedCups
from palpo.physics.gas.pressure import make_gas
from palpo.physics.gas.wall_regions import Walls
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.border_springs import springs_under_suction
from palpo.physics.suction.cavity_rows import FoundCavities, found_cavities, seeped, seeping
from palpo.physics.suction.contact_search import ContactSearch, Ground
from palpo.physics.suction.cup_spec import CupSpec, enclosure_of
from palpo.physics.suction.sides import ContactSide, SoftSide
from palpo.physics.systems.suction.renewals import early
from palpo.physics.systems.suction.rows import StepRows
from palpo.physics.systems.suction.side_by_side import SideBySide

STAGES = ("free motion", "collision", "cavities", "constraints", "solution", "correction")
"""Columns of `Suction.times`."""

FREE_MOTION, COLLISION, CAVITIES, CONSTRAINTS, SOLUTION, CORRECTION = range(6)

HISTORY = 4096
"""Steps whose times and counts are kept."""

ROUNDS = 4
"""Most solutions in a step, each with the contacts that the one before was found to lack."""

SLACK = 0.01
"""How far a contact that is not solved for may close beyond the contact distance, over that distance."""

STOP = Stop(1e-6, 300)

SWEPT, FIRMEST = 100, 256
"""Sweeps before Newton's method: of steps of 10 ms most end within them, in long ones stiff springs bear on
little mass and extrapolated sweeps may run away. And most contacts for it: it factors all that bear."""

Array = NDArray[np.float64]
T = TypeVar("T")


class Suction:
    """Cups against one partner: `step` advances all by h [s].

    partner: a side of physics/suction/sides.py, made with the same `capacity`, the most contacts. exact:
    borders on the iso-line. stop: see `take_stop`. accelerated: whether sweeps are extrapolated.

    Written from outside between steps: gauge [Pa], pressure given against the atmosphere, None where the air
    is shut in; pumped, the pump that all cups share, or None; mu (cups,); handles and loads of the bodies.
    Read after a step: contacts, those of the engine, of which `solved` (m,) were solved for, with forces r
    (3 m,) [N]; of `cavity_count` cavities cavity_cup, pressure [Pa], volume [m3], amount [mol], identity and
    flat, each (k,); hold (cups, 6) [N, N m]: wrench on each driven handle; diverged, how many solutions did:
    of them the forces of the least residual were kept, but the pressures and the air of the step's start;
    problem; times (HISTORY, 6) [s] and counts (HISTORY, 4), contacts solved for and found, sweeps and rounds,
    of step i at i % HISTORY.

    Who has to know a step's problem before its loads are known calls its halves: `detect` and `settle`, each
    after `move_freely`; `assemble` between them.
    """

    amount: Array
    volume: Array
    start_volume: Array

    def __init__(
        self, cups: Sequence[CupSpec], partner: ContactSide, limits: Thresholds, air: OutsideAir,
        h: float = 0.01, *, ground: Ground | None = None, gauge: float | None = None, exact: bool = True,
        stop: Stop = STOP, accelerated: bool = True, capacity: int = 512,
    ) -> None:  # fmt: skip
        if not partner.surface.closed:
            raise InputError("the partner's surface is open, and air would pass through it: close it.")
        self.cups = [SoftSide(spec.body, capacity, spec.folds) for spec in cups]
        # factors that no longer stay in a cache together, as that of one large body does not alone
        many = sum(spec.body.entries for spec in cups) > LARGE
        for spec in cups:
            spec.body.single = many
        self.partner = partner
        self._two = SideBySide()
        self.sides: list[ContactSide] = [*self.cups, partner]
        self.limits, self.air, self.h, self.gauge = limits, air, h, gauge
        self.pumped: PumpedCups | None = None
        self.mu = np.array([spec.mu for spec in cups])
        self.enclosures = [
            enclosure_of(cup, spec, partner, limits, exact) for cup, spec in zip(self.cups, cups, strict=True)
        ]
        gaps = [enclosure.gaps for enclosure in self.enclosures]
        self._search = ContactSearch(self.cups, partner, limits, ground, gaps, capacity, self._side_by_side)
        self.contacts = self._search.contacts
        cavities = sum(len(e.volume) for e in self.enclosures)
        self.rows = StepRows(self.sides, self._search, capacity, cavities, self._side_by_side)
        self._pressing = [np.zeros(len(cup.local)) for cup in self.cups]
        self._x, self._u = np.zeros((2, 3 * capacity + cavities))
        walls = min(capacity, FIRMEST), cavities
        self.solver = make_solver(capacity + -(-cavities // 3), walls=walls)
        self._accelerated = accelerated
        self._solver, self._start = Handle(self.solver), np.zeros(2 * cavities)
        self.take_stop(stop)
        self.steps, self.time, self.diverged = 0, 0.0, 0
        self.times, self.counts = np.zeros((HISTORY, len(STAGES))), np.zeros((HISTORY, 4), np.int64)
        self._since = 0.0
        self.r, self.hold, self.free = np.zeros(0), np.zeros((len(cups), 6)), list[Motion | None]()
        self._lines: Lines | None = None
        self._forget_cavities()

    def close(self) -> None:
        """End the worker thread."""
        self._two.close()

    def take_stop(self, stop: Stop) -> None:
        """The next solutions end at this residual, or after so many sweeps."""
        settings = self.solver.settings
        settings["tolerance"], settings["sweeps"] = stop.tolerance, stop.max_iterations

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
        self.move_freely()
        self.detect()
        self.settle()

    def move_freely(self) -> None:
        """Begin the motion of all bodies without contact and pressure under their present loads.

        In `free` those of soft ones are None until `settle` finds them, with all that it solves for.
        """
        self._since = perf_counter()
        self.free = self._side_by_side(lambda i: self.sides[i].begin(self.h))
        bodies = [cup.body for cup in self.cups]
        for i in early(np.array([body.wear for body in bodies]), np.array([body.age for body in bodies])):
            bodies[i].renews = True
        self._note(FREE_MOTION)

    def free_motions(self) -> list[Motion]:
        """Those of all bodies, after `move_freely`."""
        return self._side_by_side(lambda i: self.sides[i].free_motion(self.h))

    def detect(self) -> None:
        """Collision and cavities at the present state, after `move_freely`: how far gaps are looked for."""
        self._since = perf_counter()
        self._search.find(self.mu, self.free[-1], self.h)
        self._note(COLLISION)
        self._find_cavities()
        self._note(CAVITIES)

    def settle(self) -> None:
        """Constraints, solution, correction, after `move_freely` and `detect`, in whichever order.

        Raises FloatingPointError as `step`.
        """
        self._since = perf_counter()
        self._set_rows()
        rounds, refined = 0, False
        while True:
            rounds += 1
            self.rows.assemble(self.h)
            self._note(CONSTRAINTS)
            self._solve()
            self._note(SOLUTION)
            complete = self._respond() or rounds >= ROUNDS
            if complete and not refined:
                refined, complete = True, not self.rows.refine(self.free, self._motion, self.h)
            self._note(CORRECTION)
            if complete:
                break
        self._finish()
        self._note(CORRECTION)
        sweeps = int(self.solver.told["sweeps"][0])
        self.counts[self.steps % HISTORY] = len(self.rows.solved), self.rows.count, sweeps, rounds
        self.steps += 1
        self.time += self.h
        self.times[self.steps % HISTORY] = 0.0

    def _note(self, stage: int) -> None:
        """That stage of the step took the time since the last one."""
        now = perf_counter()
        self.times[self.steps % HISTORY, stage] += now - self._since
        self._since = now

    def _side_by_side(self, work: Callable[[int], T], count: int | None = None) -> list[T]:
        """work(i) of the first `count` sides, or of all, on two threads where two have much to do."""
        count = len(self.sides) if count is None else count
        if sum(isinstance(side, SoftSide) for side in self.sides[:count]) < 2:
            return [work(i) for i in range(count)]
        return self._two(work, count)

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

    def conductance(self, i: int, walls: Walls | None) -> float:
        """What the rim of cup i would let out of all its cavities over other walls, as the last step found
        them [m3/(Pa s)]."""
        enclosure = self.enclosures[i]
        kept, before = enclosure.walls, enclosure.conductance.copy()
        enclosure.take_walls(walls)
        enclosure.find_flow(self._search.local[i], self._pressing[i], self.air)
        found = float(enclosure.conductance[:-1, -1].sum())
        enclosure.take_walls(kept)
        enclosure.conductance[:] = before
        return found

    def seeping(self) -> Array:
        """s = h G [m3/Pa] (k + 1, k + 1) between the present cavities and, last, the outside."""
        under_rims = seeping(self.enclosures, self.h)
        return under_rims if self._lines is None else under_rims + self._lines.seeping

    def supplied(self) -> Array:
        """n [mol] (k,) of the present cavities with what a pump's lines bring in the step."""
        if self._lines is None:
            return self.amount.copy()
        return np.asarray(self.amount + self._lines.amount / self.air.rt)

    def _set_rows(self) -> None:
        """The rows of all contacts and cavities, and which contacts to solve for at first."""
        gauge = self.pressure - self.air.atmosphere
        springs = springs_under_suction(self.enclosures, gauge, self.cups, self.partner)
        self.free = self.rows.set(self.walls, self.start_volume, springs, self.free, self.h)
        self.rows.choose(self.limits.sealing, self.limits.contact, self.h)

    def assemble(self) -> tuple[Array, Array]:
        """W and b of all contacts, which are those to solve for, and of the cavities; copies of them."""
        self._set_rows()
        self.rows.inside[:] = True
        self.rows.assemble(self.h)
        w, b = self.problem
        return w.copy(), b.copy()

    @property
    def problem(self) -> tuple[Array, Array]:
        """The last W and b, of the contacts and then of the cavities."""
        return self.rows.whole()

    @property
    def solved(self) -> NDArray[np.int64]:
        """Numbers of the contacts that the last problem was of, shape (m,)."""
        return self.rows.solved

    def _solve(self) -> None:
        """Contacts, friction and gas laws together."""
        rows, given = self.rows, np.full(self.cavity_count, self.gauge is not None)
        w, b, mu = rows.w, rows.b, self.contacts.mu[rows.solved]
        gas = make_gas(self.air, self.supplied(), self.pressure, given, self.seeping())
        n, x, u = 3 * len(mu), self._x[: len(b)], self._u[: len(b)]
        start = self._start[: 2 * len(given)].reshape(2, -1)
        x[:n] = rows.remembered()
        project_cones(mu, x[:n])
        told, settings = self.solver.told, self.solver.settings
        most = int(settings["sweeps"][0])
        firmly = self._accelerated and len(mu) <= FIRMEST
        settings["sweeps"] = min(SWEPT, most) if firmly else most
        open_step(self._solver)
        told["tolerance"] = settings["tolerance"]
        press(w, b, mu, x, u, gas, start, self._solver, 0, self._accelerated, rows.blocks)
        settings["sweeps"] = most
        if firmly and told["flags"][0]:
            # from the best forces so far, and the air of the step's start
            gas.amount[:] = self.supplied()
            spent = int(told["sweeps"][0])
            open_step(self._solver)
            press(rows.whole()[0], b, mu, x, u, gas, start, self._solver, TURNS, True, None)
            told["sweeps"] += spent
        if told["flags"][0] & SOLVE_DIVERGED:
            # its pressures mean nothing, and air that it let out would be lost for good
            self.diverged += 1
            gas.pressure[:], gas.volume[:], gas.amount[:] = self.pressure, self.start_volume, self.amount
        self._gas, self.r = gas, x[:n].copy()
        rows.keep(self.r)

    def _respond(self) -> bool:
        """The motion with all forces; False where it closes contacts not solved for, which then are."""
        x = np.concatenate([self.r, self._gas.pressure - self.air.atmosphere])
        self._motion = self.rows.push(x, self.h)
        return not self.rows.admit(self._motion, self.h, max(SLACK * self.limits.contact, 1e-7))

    def _finish(self) -> None:
        """Move the bodies, remember the contacts and keep the air."""
        h, before = self.h, self.amount
        self.pressure, self.volume, self.amount = self._gas.pressure, self._gas.volume, self._gas.amount
        self._keep_air()
        self.rows.remember(self._u)
        if self.pumped is not None and self._lines is not None:
            gained = (self.amount - before) * self.air.rt
            lost = seeped(self.enclosures, self.pressure, self.air.atmosphere, h)
            self.pumped.settle(float((gained + lost)[self._lines.mouths].sum()), h)
        self._side_by_side(self._end)

    def _end(self, number: int) -> None:
        """The step of one side."""
        side, h = self.sides[number], self.h
        motion = self.free[number] + self._motion[number]
        if not np.isfinite(motion).all():
            raise FloatingPointError("the state of a body is no longer finite.")
        if number < len(self.cups):
            body = self.cups[number].body
            self._pressing[number][:] = self.rows.pressing(self.r, number)[self.cups[number].nodes]
            if body.handle is not None and body.handle.driven:
                self.hold[number] = body.holding_wrench(motion, h)
        side.finish(motion, h)

    def _keep_air(self) -> None:
        """Amounts and volumes become those with which the next step begins."""
        first = 0
        for enclosure in self.enclosures:
            last = first + len(enclosure.active)
            own = slice(first, last)
            enclosure.commit(self.identity[own], self.amount[own], self.volume[own])
            first = last

    def _forget_cavities(self) -> None:
        self._take_cavities(found_cavities((), (), self.partner))
        self.pressure = np.zeros(0)

    def _take_cavities(self, found: FoundCavities) -> None:
        """Those of the step, with the air and the volumes with which it begins."""
        self.cavity_cup, self.cavity_count = found.cup, len(found.cup)
        self.walls, self.identity, self.flat = found.walls, found.identity, found.flat
        self.amount, self.volume, self.start_volume = found.amount, found.volume, found.volume.copy()
