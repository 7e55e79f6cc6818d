"""The convex relaxation of Coulomb's law, and the fixed point on it that leads back to the law.

With s of each contact held, u + s n in K* perp r in K is convex (Acary, Cadoux, Lemarechal & Malick, ZAMM 91,
2011). s = 0 is the relaxation: the associated law, by which what slides lifts off at mu |u_t|. Coulomb's law
is the fixed point s = mu |u_t|, u that of the convex problem at s. References: slow, without a proof that the
fixed point contracts, each step as sure as a convex problem is.
"""

import math
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, relative_residual, runaway
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers import factors, interior_point
from palpo.physics.contact.solvers.operator import operator
from palpo.physics.contact.solvers.relaxation import project_cones, starting_force

Array = NDArray[np.float64]

RIDGES = (1.0, 0.1)
"""Of the interior point, one after the other."""

INNER, STEPS = 1e-2, 80
"""The convex problems' tolerance over the solve's, and most interior-point steps of one."""

PATIENCE, UNSOLVED = 30, 1e-3
"""Convex problems without a lesser residual, and the residual of one of them, that end the fixed point."""


def solve_convex(
    problem: AnyProblem, shift: Array, tolerance: float, most: int, until: float = math.inf
) -> tuple[Array, float, int]:
    """The force of the problem with mu |u_t| held at `shift`, its own relative natural map, and the steps.

    until: perf_counter() after which no step begins.
    """
    p, n, w = interior_point, problem.n_contacts, operator(problem)
    best, least, done, a = np.zeros(3 * n), math.inf, 0, p.make_interior(w, n)
    for ridge in RIDGES:
        p.begin(w, problem.b, problem.mu, ridge, False, a)
        a.shift[:], a.state["held"], code, before = shift, 1, p.CONTINUE, done
        while code == p.CONTINUE and done < most and not (done and perf_counter() > until):
            code = p.advance(w, problem.b, problem.mu, tolerance, math.inf, 1, a)
            factors.raise_held_back(a.factor)
            done = before + a.state["steps"].item()
        if a.state["residual"].item() < least:
            best, least = a.best.copy(), a.state["residual"].item()
        if code != p.STALLED:
            break
    return best, least, done


def convex_residual(problem: AnyProblem, shift: Array, r: Array) -> float:
    """|r - P_K(r - rho (u + s n))| / |r|, rho = 1 / mean(diag W); 0 where zero forces are right."""
    u = problem.w @ r + problem.b
    u[0::3] += shift
    mean = float(problem.w.diagonal().mean())
    image = r - u / (mean if mean > 0.0 else 1.0)
    project_cones(problem.mu, image)
    error, size = float(np.linalg.norm(r - image)), float(np.linalg.norm(r))
    if error > 0.0:
        return error / size if size > 0.0 else np.inf
    return 0.0


def fixed_point(problem: AnyProblem, stop: Stop) -> ContactResult:
    """Convex problems, one an iteration, until the residual is at most `stop.tolerance`."""
    started, best = perf_counter(), starting_force(problem)
    least, done = relative_residual(problem, best), 0
    until = started + stop.seconds
    reason: Reason = "iterations"
    shift, idle, bound = np.zeros(problem.n_contacts), 0, runaway(problem)
    while least > stop.tolerance and done < stop.max_iterations:
        r, left, _ = solve_convex(problem, shift, INNER * stop.tolerance, STEPS, until)
        done += 1
        error = relative_residual(problem, r)
        idle = 0 if error < least else idle + 1
        if error < least and np.linalg.norm(r) <= bound:
            least, best = error, r
        if perf_counter() >= until:
            reason = "time"
            break
        u = (problem.w @ r + problem.b).reshape(-1, 3)
        following = problem.mu * np.hypot(u[:, 1], u[:, 2])
        if not left <= UNSOLVED or idle > PATIENCE or (following == shift).all():
            reason = "stalled"
            break
        shift = following
    return judge(problem, stop, best, done, reason, started)


def relaxation(problem: AnyProblem, stop: Stop) -> ContactResult:
    """The associated law, s = 0; iterations are interior-point steps. Coulomb's law where nothing slides."""
    started = perf_counter()
    if not problem.n_contacts:
        return judge(problem, stop, starting_force(problem), 0, "converged", started)
    until = started + stop.seconds if math.isfinite(stop.seconds) else math.inf
    r, _, done = solve_convex(
        problem, np.zeros(problem.n_contacts), INNER * stop.tolerance, stop.max_iterations, until
    )
    return judge(problem, stop, r, done, "stalled", started)
