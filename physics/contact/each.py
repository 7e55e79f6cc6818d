"""Solved contact by contact: a solver's residual is tightened until each contact is within the tolerance.

The natural map is of all contacts together: beside heavy ones a light one may be a third off at 1e-8.
"""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from palpo.physics.contact.errors import own_errors
from palpo.physics.contact.problem import AnyProblem, ContactResult, Stop

TIGHTER, FINEST = 0.1, 1e-17
"""The residual is asked to fall by this share at least, and never below the second."""


def solve_each(
    problem: AnyProblem, stop: Stop, solve: Callable[[AnyProblem, Stop], ContactResult]
) -> ContactResult:
    """`solve` repeated from its own force, with a smaller tolerance, until no contact's error over its own
    force is above `stop.tolerance`; "stalled" where the residual falls no further and one is.

    Iterations and time are those of all solves together, and `stop` limits them so.
    """
    started, tolerance, done = perf_counter(), stop.tolerance, 0
    while True:
        left = max(stop.seconds - (perf_counter() - started), 0.0)
        result = solve(problem, Stop(tolerance, stop.max_iterations - done, left))
        done += result.iterations
        worst = float(own_errors(problem, result.r).max(initial=0.0))
        held = worst <= stop.tolerance and result.residual <= stop.tolerance
        tolerance *= min(TIGHTER, stop.tolerance / max(worst, stop.tolerance))
        if held or not result.converged or done >= stop.max_iterations or tolerance < FINEST:
            break
        problem = replace(problem, warm=result.r)
    reason = "converged" if held else "stalled" if result.converged else result.reason
    return replace(result, iterations=done, converged=held, reason=reason, seconds=perf_counter() - started)
