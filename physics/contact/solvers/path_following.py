"""Following paths to a solution: Newton of the whole problem is tried from time to time from where one is."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, relative_residual, runaway
from palpo.physics.contact.problem import ContactProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers import semi_smooth_newton

Array = NDArray[np.float64]

POLISH, BITES, BITE = 12, 3, 0.1
"""Steps of Newton, of which so many must bring the residual to a share."""

ROUGH, SINCE = 0.1, 0.5
"""Residual below which Newton is tried, and what is left of the path over that of the last try."""


class Walk(Protocol):
    """A walk along a path to a solution."""

    factors: int
    """Factorisations so far."""
    tried: float
    """What was left where Newton was tried last."""

    @property
    def left(self) -> float:
        """What is left of the parameter that vanishes at the path's end."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to follow."""

    @property
    def force(self) -> Array:
        """r, shape (3 n,), in the cones [N]."""

    def step(self) -> bool:
        """One step along the path; whether there was any."""


def follow(
    problem: ContactProblem,
    stop: Stop,
    started: float,
    best: Array,
    least: float,
    walks: Sequence[Callable[[Array], Walk]],
) -> ContactResult:
    """The best force met on walks, each begun where the one before is lost, until one is good enough.

    walks: each makes a walk, given the best force so far. best, least: a force (3 n,) and its residual, given
    back where none on the way is better. A force past `runaway` loses a walk.
    """
    if least <= stop.tolerance:
        return judge(problem, stop, best, 0, "converged", started)
    newton, bound = semi_smooth_newton.make_semi_smooth(problem.n_contacts), runaway(problem)
    w, done = np.ascontiguousarray(problem.w), 0
    for begin in walks:
        walk, spent = begin(best), 0
        while not walk.ended and walk.step():
            r = walk.force
            if not np.linalg.norm(r) <= bound:
                break
            error = relative_residual(problem, r)
            if error < least:
                least, best = error, r
            spare = stop.max_iterations - done - walk.factors - spent
            if error < ROUGH and walk.left < SINCE * walk.tried and least > stop.tolerance and spare > 0:
                walk.tried = walk.left
                most = min(POLISH, spare)
                found, error, steps = polish(problem, w, r, stop.tolerance, bound, most, newton)
                spent, spare = spent + steps, spare - steps
                if error < least:
                    least, best = error, found
            if least <= stop.tolerance or spare <= 0 or perf_counter() - started >= stop.seconds:
                reason: Reason = "iterations" if spare <= 0 else "time"
                return judge(problem, stop, best, done + walk.factors + spent, reason, started)
        done += walk.factors + spent
    return judge(problem, stop, best, done, "stalled", started)


def polish(
    problem: ContactProblem,
    w: Array,
    r: Array,
    tolerance: float,
    bound: float,
    most: int,
    a: semi_smooth_newton.SemiSmooth,
) -> tuple[Array, float, int]:
    """Newton's force from r, its residual and steps; given up where it does not bite."""
    s = semi_smooth_newton
    s.begin(w, problem.b, problem.mu, r, a)
    mark = a.state["residual"].item()
    for step in range(1, most + 1):
        code = s.advance(w, problem.b, problem.mu, tolerance, bound, 1, a)
        if code != s.CONTINUE:
            break
        if step % BITES == 0:
            if a.state["residual"].item() > BITE * mark:
                break
            mark = a.state["residual"].item()
    return a.r.copy(), a.state["residual"].item(), a.state["steps"].item()
