"""Block Gauss-Seidel on a W that is kept sparse: sweeps as in `relaxation`, over its blocks."""

import math
from time import perf_counter

import numpy as np

from palpo.physics.contact.laws import solve_contact
from palpo.physics.contact.problem import ContactResult, Reason, SparseProblem, Stop
from palpo.physics.contact.residual import (
    asked_force,
    judge,
    natural_map_norm,
    relative_error,
    runaway,
)
from palpo.physics.contact.solvers.block import open_block
from palpo.physics.contact.solvers.block_rows import add_force, block_rows, set_offsets
from palpo.physics.contact.solvers.relaxation import (
    CONTINUE,
    CONVERGED,
    DIVERGED,
    NEAR,
    OFTEN,
    REASONS,
    SETTLED,
    STILL,
    starting_force,
)
from palpo.physics.numerics.kernels import kernel


def solve(problem: SparseProblem, stop: Stop) -> ContactResult:
    """Block Gauss-Seidel with the exact local law until the residual is at most `stop.tolerance`.

    It ends as `relaxation.relax` does; the time that `stop` allows is looked at after every OFTEN sweeps.
    """
    started = perf_counter()
    w, b, mu, n = block_rows(problem.w), problem.b, problem.mu, problem.n_contacts
    r, u, work = starting_force(problem), np.zeros(3 * n), np.zeros((15, 3))
    best, bound = r.copy(), runaway(problem)
    asked = float(asked_force(w.own, b, 0, n))
    code, done, least = CONTINUE, 0, math.inf
    reason: Reason = "iterations"
    while code == CONTINUE and done < stop.max_iterations:
        if done and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        code, sweeps, least = sparse_sweeps(
            w, b, mu, (stop.tolerance, bound, least, asked), min(OFTEN, stop.max_iterations - done), r, u,
            best, work,
        )  # fmt: skip
        done += sweeps
    if code in (CONTINUE, DIVERGED):
        r = best
    return judge(problem, stop, r, done, REASONS.get(code, reason), started)


@kernel
def sparse_sweeps(w, b, mu, limits, sweeps, r, u, best, work):
    """Up to `sweeps` sweeps on r (3 n,), u = W r + b after them; as `relax_sweeps` returns.

    limits: tolerance, the largest |r| [N], the least residual so far, whose force is best (3 n,), and the
    force that b asks for [N].
    """
    tolerance, bound, least, asked = limits
    own, free = work[0], work[1]
    change, size = 0.0, 0.0
    set_offsets(w, b, r, u)
    for sweep in range(sweeps):
        change, size = 0.0, 0.0
        for k in range(mu.shape[0]):
            i = 3 * k
            block = w.own[i : i + 3, i : i + 3]
            open_block(block, r, u, i, own, free)
            if block[0, 0] <= 0.0:  # nothing yields along the normal: no force could part it
                own[:] = 0.0
            else:
                solve_contact(block, free, mu[k], own)
            moved = 0.0
            for c in range(3):
                size += own[c] ** 2
                step = own[c] - r[i + c]
                r[i + c], own[c] = own[c], step
                moved += step * step
            if moved > 0.0:
                change += moved
                add_force(w, k, own[0], own[1], own[2], u)
        if not size <= bound * bound:
            return DIVERGED, sweep + 1, least
        still = change <= STILL * STILL * size
        if still or change <= (NEAR * tolerance) ** 2 * size or sweep == sweeps - 1:
            error, own_size = natural_map_norm(w.own, mu, r, u, 0, mu.shape[0], work[2:])
            error = relative_error(error, own_size, asked)
            if error < least:
                least = error
                best[:] = r
            if error <= tolerance:
                return CONVERGED, sweep + 1, least
            if still:
                return SETTLED, sweep + 1, least
    return CONTINUE, sweeps, least
