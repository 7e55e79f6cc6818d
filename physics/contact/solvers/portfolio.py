"""Five solvers behind one name: whatever the problem, the one that suits it, and no clock in the choice.

Accelerated sweeps (`anderson`) cost next to nothing to try, and the first few show which contacts bear: where
not all do, those alone are solved (`bearing_part`), until no other is called for. Once hardly one changes its
status any more, or a step costs next to nothing (`newton_pays`), semi-smooth Newton is tried from where they
are: mostly that is after the first sweeps, and a step or two end it. It is given up at once where it does not
bite. An interior-point solve costs about the same for every problem: that is its price. So sweeps go on for
as long as they have cost less than that and have prospects.

Then the interior point, first from near the best force, which leaves the end to Newton. What it leaves
unsolved, a singular W without a centred path or a coupling of normal and tangent that is not monotone, goes
round between alternating directions, sweeps on the problem scaled to equal diagonal blocks, and Newton, each
from the best force so far and for longer each time. Each round ends with what is slow and gets where no
descent does: the solution is followed from where nothing touches (`lifting`), which is sure where W is
regular, and the central path round its folds (`homotopy`), the first time from its middle too.

Every choice depends on residuals, statuses and counts alone, in work units: a unit is a product with W. So a
replay repeats it bit for bit, and a larger budget, from eight sweeps on, gives a result that is no worse.
"""

import math
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, relative_residual, runaway
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, SparseProblem, Stop
from palpo.physics.contact.solvers import admm, anderson, interior_point
from palpo.physics.contact.solvers.bearing_part import BearingPart
from palpo.physics.contact.solvers.first_sweeps import PARTS, TRY_NEWTON
from palpo.physics.contact.solvers.portfolio_run import Run, Sweeps
from palpo.physics.contact.solvers.portfolio_turns import (
    AGAIN,
    INTERIOR,
    POLISH,
    ROUND,
    Scaled,
    alternate,
    interior,
    lift,
    newton,
    sweep_first,
    sweep_on,
    sweep_while_it_pays,
    walk,
)
from palpo.physics.contact.solvers.relaxation import starting_force

Array = NDArray[np.float64]

SPARSE_SWEEPS, SPARSE_SHARE = 2000, 8
"""Sweeps over a sparse W before it is factored: about what an interior-point solve costs there. Each further
round has twice as many, and a share of one to so many in alternations."""


def solve(problem: AnyProblem, stop: Stop) -> ContactResult:
    """Whichever of four solvers gets the residual to `stop.tolerance` first; of three where W is sparse.

    Iterations are sweeps, factorisations and alternations together. Gives back the force of the least
    residual, whatever ended it: never worse than the warm start, or than no force.
    """
    started = perf_counter()
    if isinstance(problem, SparseProblem):
        return _solve_sparse(problem, stop, started)
    sweeps = Sweeps(problem, stop.tolerance, runaway(problem))
    sweeps.begin()
    run = Run(stop, started, sweeps, sweeps.best.copy(), sweeps.least)
    if problem.warm is None or not problem.warm.any():
        code, run.done, part, alone = sweeps.first(stop.max_iterations)
        if code == anderson.CONVERGED and alone is None:
            return judge(problem, stop, sweeps.best, run.done, "converged", started)
        # a larger budget would not look where this one ends
        run.spent_out = (alone or sweeps).done <= anderson.PLAIN
        if alone is None:
            run.spend(0, sweeps.least, sweeps.best)
            if code == TRY_NEWTON:
                newton(run, POLISH)
        else:
            run.spend(0, relative_residual(problem, sweeps.r), sweeps.r)
            _solve_parts(run, part, alone, code)
    if not run.over:
        _try_all(run)
    reason: Reason = "stalled"
    if run.left <= 0 or run.spent_out:
        reason = "iterations"
    elif run.late:
        reason = "time"
    return judge(problem, stop, run.best, run.done, reason, started)


def _solve_sparse(problem: SparseProblem, stop: Stop, started: float) -> ContactResult:
    """Sweeps and an interior point; then a small problem goes on dense, a large one with sweeps and
    alternations in turns, each from the best force so far."""
    sweeps = anderson.Sweeps(problem, stop.tolerance, anderson.FEW)
    best, least, done, reason = sweeps.a.best.copy(), sweeps.least, 0, "iterations"
    turns, length = iter((_sparse_sweeps, _sparse_interior)), SPARSE_SWEEPS
    before = math.inf
    while least > stop.tolerance and done < stop.max_iterations:
        if done and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        turn = next(turns, None)
        if turn is None and problem.small:
            seconds = stop.seconds - (perf_counter() - started)
            part = replace(stop, max_iterations=stop.max_iterations - done, seconds=seconds)
            found = solve(replace(problem, warm=best).dense(), part)
            return judge(problem, stop, found.r, done + found.iterations, found.reason, started)
        if turn is None:
            if least == before:  # a whole round has led nowhere
                reason = "stalled"
                break
            before, length = least, 2 * length
            turns = iter((_sparse_sweeps, _sparse_alternations))
            continue
        seconds = stop.seconds - (perf_counter() - started)
        part = replace(stop, max_iterations=stop.max_iterations - done, seconds=seconds)
        spent, r = turn(replace(problem, warm=best), part, sweeps, length)
        done += spent
        error = relative_residual(problem, r)
        if error < least:
            least, best = error, r
    ended: Reason = reason  # type: ignore[assignment]
    return judge(problem, stop, best, done, ended, started)


def _sparse_sweeps(
    problem: SparseProblem, part: Stop, sweeps: anderson.Sweeps, length: int
) -> tuple[int, Array]:
    """Sweeps on from where they were left, or from a better force that another solver has found since."""
    if problem.warm is not None and relative_residual(problem, problem.warm) < sweeps.least:
        sweeps.start(starting_force(problem))
    had = sweeps.done
    sweeps.run(min(length, part.max_iterations), part.seconds)
    return max(sweeps.done - had, 1), sweeps.a.best.copy()


def _sparse_interior(
    problem: SparseProblem, part: Stop, sweeps: anderson.Sweeps, length: int
) -> tuple[int, Array]:
    found = interior_point.solve(problem, replace(part, max_iterations=min(INTERIOR, part.max_iterations)))
    return max(found.iterations, 1), found.r


def _sparse_alternations(
    problem: SparseProblem, part: Stop, sweeps: anderson.Sweeps, length: int
) -> tuple[int, Array]:
    most = min(length // SPARSE_SHARE, part.max_iterations)
    found = admm.solve(problem, replace(part, max_iterations=most))
    return max(found.iterations, 1), found.r


def _solve_parts(run: Run, part: BearingPart, sweeps: Sweeps, code: int) -> None:
    """The part that bears from where its first sweeps have ended, and larger ones where it calls for more.

    What that leaves unsolved goes on with sweeps over all contacts from the best force.
    """
    alone = run.of_part(part, sweeps)
    if code == TRY_NEWTON:
        newton(alone, POLISH)
    for left in range(PARTS, -1, -1):
        if not alone.over:
            _try_usual(alone)
        if run.over:
            return
        part.put_back(alone.best)
        if not (left and part.grow()):
            break
        problem, tolerance = part.taken_out(run.stop.tolerance)
        sweeps = Sweeps(problem, tolerance, run.bound, sweeps.a)
        sweeps.begin_again(sweeps.r)
        alone = run.of_part(part, sweeps)
        sweep_first(alone)
    run.sweeps.begin_again(run.best)
    sweep_first(run)


FIRST_ATTEMPT, *OTHER_ATTEMPTS = interior_point.ATTEMPTS


def _try_usual(run: Run) -> None:
    """What ends most problems: sweeps while they pay, interior points, sweeps again, alternations."""
    price = sweep_while_it_pays(run)
    interior(run, *FIRST_ATTEMPT, near=True)
    newton(run, POLISH)
    interior(run, *FIRST_ATTEMPT)
    newton(run, POLISH)
    sweep_on(run, int(AGAIN * price))
    newton(run, POLISH)
    alternate(run, ROUND)
    newton(run, POLISH)


def _try_all(run: Run) -> None:
    _try_usual(run)
    for attempt in OTHER_ATTEMPTS:
        interior(run, *attempt)
        newton(run, POLISH)
    scaled, length, before = Scaled(run), ROUND, math.inf
    while not run.over and not (scaled.still and run.least == before):
        before = run.least
        scaled.sweep(length)
        newton(run, POLISH)
        alternate(run, length)
        newton(run, POLISH)
        interior(run, *FIRST_ATTEMPT, near=True)
        newton(run, POLISH)
        lift(run, length // ROUND)
        walk(run, length == ROUND)
        length *= 2
