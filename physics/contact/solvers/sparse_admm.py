"""The alternating directions of `admm` where W is sparse: the same iteration in whole arrays.

W + rho I has W's pattern and is factored sparse; an iteration is a solve with that factor.
"""

import math
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.contact.problem import ContactResult, Reason, SparseProblem, Stop
from palpo.physics.contact.residual import judge, relative_residual, runaway
from palpo.physics.contact.solvers.admm import (
    BALANCE,
    EXPONENT,
    FLATTEST,
    OFTEN,
    POWERS,
    PROXIMAL,
    RELAXATION,
)
from palpo.physics.contact.solvers.relaxation import project_cones, starting_force
from palpo.physics.contact.solvers.scaling import unit_blocks
from palpo.physics.contact.solvers.sparse_factor import SparseFactor

Array = NDArray[np.float64]


class Alternation:
    """Where a solve is: x, y and z, shape (3 n,), on W and b scaled so that the contacts' blocks are 1."""

    def __init__(self, problem: SparseProblem, r: Array) -> None:
        self.problem, self.bound = problem, runaway(problem)
        self.scale = unit_blocks(problem)
        spread = sp.diags_array(self.scale)
        self.w = sp.csr_array(spread @ problem.w @ spread)
        self.b, self.done = problem.b * self.scale, 0
        self.y = r / self.scale
        self.x, self.best, self.least = self.y.copy(), r.copy(), relative_residual(problem, r)
        self.z = self.w @ self.y + self.b
        self.z[0::3] += self._shift()
        self.factor = SparseFactor(self.w)
        most, least = self._spectrum()
        self.change = (most / least) ** EXPONENT
        self.rho = math.sqrt(most * least) * self.change
        self.factor.refactor(PROXIMAL + self.rho)

    def _shift(self) -> Array:
        return self.problem.mu * np.hypot(self.z[1::3], self.z[2::3])

    def _spectrum(self) -> tuple[float, float]:
        """L by products and m by solves with W + FLATTEST L I."""
        x = np.asarray(1.0 + 0.5 * (np.arange(self.y.size) % 7), np.float64)
        size = 0.0
        for _ in range(POWERS):
            x = self.w @ x
            size = float(np.linalg.norm(x))
            x /= size if size > 0.0 else 1.0
        most = max(size, 1e-300)
        self.factor.refactor(FLATTEST * most)
        x = np.asarray(1.0 - 0.5 * (np.arange(self.y.size) % 5), np.float64)
        for _ in range(POWERS):
            x = self.factor.solve(x)
            size = float(np.linalg.norm(x))
            x /= size
        return most, max(FLATTEST * most, 1.0 / size - FLATTEST * most)

    def advance(self, iterations: int, tolerance: float, relaxation: float = RELAXATION) -> Reason:
        """Up to so many iterations more; why they ended."""
        for done in range(1, iterations + 1):
            right = PROXIMAL * self.x + self.rho * self.y + self.z - self.b
            right[0::3] -= self._shift()
            self.x = self.factor.solve(right)
            over = relaxation * self.x + (1.0 - relaxation) * self.y
            y = over - self.z / self.rho
            project_cones(self.problem.mu, y)
            self.z -= self.rho * (over - y)
            primal, dual = np.linalg.norm(self.x - y), self.rho * np.linalg.norm(y - self.y)
            self.y = y
            self.done += 1
            if self.done % OFTEN and done < iterations:
                continue
            r = self.scale * y
            error = relative_residual(self.problem, r) if np.linalg.norm(r) <= self.bound else math.inf
            if error < self.least:
                self.least, self.best = error, r
            if error <= tolerance:
                return "converged"
            if not math.isfinite(error):
                return "stalled"
            if self.done % OFTEN == 0 and not 1.0 / BALANCE <= primal / max(dual, 1e-300) <= BALANCE:
                self.rho *= self.change if primal > dual else 1.0 / self.change
                self.factor.refactor(PROXIMAL + self.rho)
        return "iterations"


def solve(problem: SparseProblem, stop: Stop, relaxation: float = RELAXATION) -> ContactResult:
    """Alternate until the residual is at most `stop.tolerance`; an iteration is a solve with the factor."""
    started, r = perf_counter(), starting_force(problem)
    if relative_residual(problem, r) <= stop.tolerance:
        return judge(problem, stop, r, 0, "converged", started)
    a, reason = Alternation(problem, r), "iterations"
    while reason == "iterations" and a.done < stop.max_iterations:
        if a.done and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        reason = a.advance(min(OFTEN, stop.max_iterations - a.done), stop.tolerance, relaxation)
    ended: Reason = reason  # type: ignore[assignment]
    return judge(problem, stop, a.best, a.done, ended, started)
