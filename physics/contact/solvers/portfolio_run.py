"""One solve of the portfolio: its sweeps, the best force so far, and what may yet be spent."""

from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import contact_statuses
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers import admm, anderson, interior_point, semi_smooth_newton
from palpo.physics.contact.solvers.bearing_part import BearingPart, unchecked
from palpo.physics.contact.solvers.first_sweeps import begin_again, sweep_first, sweep_on_first
from palpo.physics.contact.solvers.relaxation import starting_force

Array = NDArray[np.float64]


class Sweeps:
    """Accelerated sweeps from the warm start, which can be taken up again."""

    def __init__(self, problem: ContactProblem, tolerance: float, bound: float,
                 a: anderson.Acceleration | None = None) -> None:  # fmt: skip
        """a: room that another lends, of which it does not ask any more."""
        n = problem.n_contacts
        self.problem, self.tolerance, self.bound = problem, tolerance, bound
        self.w, self.r, self.u = np.ascontiguousarray(problem.w), starting_force(problem), np.zeros(3 * n)
        self.a = anderson.make_acceleration(n) if a is None else a

    def begin(self) -> None:
        """From the warm start, with plain sweeps first."""
        anderson.begin(self.w, self.problem.b, self.problem.mu, self.r, self.u, 0, self.a)

    def begin_again(self, r: Array) -> None:
        """From the force r in the cones, to which plain sweeps have led."""
        self.r[:] = r
        begin_again(self.w, self.problem.b, self.problem.mu, self.r, self.u, self.a)

    @property
    def done(self) -> int:
        return self.a.state["sweeps"].item()

    @property
    def least(self) -> float:
        return self.a.state["residual"].item()

    @property
    def best(self) -> Array:
        """The force of that residual, shape (3 n,), for reading."""
        return self.a.best[: len(self.r)]

    def first(self, budget: int) -> tuple[int, int, BearingPart, "Sweeps | None"]:
        """The first from no force: how they ended, how many, and those of a part that is left to solve."""
        p, part = self.problem, BearingPart(self.problem, self.w)
        code, spent, w, b, mu, r, u, tolerance = sweep_first(
            self.w, p.b, p.mu, self.r, self.u, self.tolerance, self.bound, budget, part.chosen, part.status,
            self.a,
        )  # fmt: skip
        if not len(b):
            return code, spent, part, None
        part.count = len(mu)
        alone = Sweeps(unchecked(w, b, mu, r), tolerance, self.bound, self.a)
        alone.r, alone.u = r, u
        return code, spent, part, alone

    def go_on_first(self, budget: int) -> int:
        """Those after the plain ones; TRY_NEWTON is one of what they may end with."""
        p, status = self.problem, np.empty((2, self.problem.n_contacts), np.int32)
        code: int = sweep_on_first(
            self.w, p.b, p.mu, self.r, self.u, self.tolerance, self.bound, budget, status, self.a
        )
        return code

    def advance(self, sweeps: int) -> int:
        p = self.problem
        return anderson.advance(
            self.w, p.b, p.mu, self.r, self.u, 0, self.tolerance, self.bound, sweeps, self.a
        )

    def statuses(self) -> NDArray[np.int32]:
        """OPEN, STICK or SLIP of each contact, shape (n,)."""
        status = np.empty(self.problem.n_contacts, np.int32)
        contact_statuses(self.w, self.problem.mu, self.r, self.u, status)
        return status


class Run:
    """One solve: the best force so far, what was spent, and when to end."""

    def __init__(self, stop: Stop, started: float, sweeps: Sweeps, best: Array, least: float) -> None:
        self.problem, self.stop, self.started, self.sweeps = sweeps.problem, stop, started, sweeps
        self.bound, self.w = sweeps.bound, sweeps.w
        self.best, self.least = best, least
        self.done = 0
        """Sweeps, factorisations and alternations."""
        self.spent_out = False
        """Whether what is left of the budget holds no unit of what comes next."""
        self.whole: Run | None = None
        self.part: BearingPart | None = None
        """The run that this one solves the bearing part of, and which part."""
        self.newton: semi_smooth_newton.SemiSmooth | None = None
        self.alternation: admm.Alternation | None = None
        self._point: interior_point.Interior | None = None

    @property
    def point(self) -> interior_point.Interior:
        """Room for an interior point, its matrix shared with Newton's."""
        if self._point is None:
            point = interior_point.make_interior(self.w, self.problem.n_contacts)
            if self.newton is not None:
                point = point._replace(factor=point.factor._replace(matrix=self.newton.matrix))
            self._point = point
        return self._point

    @property
    def over(self) -> bool:
        """Whether it is converged or nothing may be spent any more."""
        return self.least <= self.stop.tolerance or self.spent_out or self.left <= 0 or self.late

    @property
    def left(self) -> int:
        return self.stop.max_iterations - self.done

    def units(self, chunk: int, unit: int = 1) -> int:
        """As many units as chunk and budget hold. What is cut short at no other place looks nowhere else.

        Were the residual looked at where a budget happens to end, a larger one could miss that force.
        """
        allowed = min(chunk, self.left) // unit * unit
        self.spent_out = self.spent_out or allowed <= 0
        return max(allowed, 0)

    @property
    def late(self) -> bool:
        return self.done > 0 and perf_counter() - self.started >= self.stop.seconds

    def spend(self, done: int, residual: float, r: Array) -> None:
        """Account for what a solver did, and keep its force if it is the best."""
        self.done += done
        better = residual < self.least
        if better:
            self.least = residual
            self.best[:] = r
        if self.whole is not None:
            self.whole.done += done
            if better:  # a force at which the budget happens to end is not looked at: see `units`
                self.whole.look(self)

    def of_part(self, part: BearingPart, sweeps: Sweeps) -> "Run":
        """A run of the part alone, which has begun with those sweeps."""
        stop = replace(self.stop, tolerance=sweeps.tolerance, max_iterations=self.left)
        run = Run(stop, self.started, sweeps, sweeps.best.copy(), sweeps.least)
        run.whole, run.part = self, part
        self.look(run)
        return run

    def look(self, run: "Run") -> None:
        """Ask the part's force what it leaves of all contacts."""
        if run.part is not None and (run.left > 0 or run.least <= run.stop.tolerance):
            self.spend(0, run.part.put_back(run.best), run.part.r)
