"""Block Gauss-Seidel on a W that is kept sparse: the sweeps of `relaxation` over the entries that there are.

Large problems of many bodies have a W whose contacts hang together through one body only; a visit then costs
its own row, and storage the entries.
"""

import math
from time import perf_counter

import numpy as np

from palpo.physics.contact.laws import solve_contact
from palpo.physics.contact.problem import ContactResult, Reason, SparseProblem, Stop
from palpo.physics.contact.residual import (
    asked_force,
    diagonal_only,
    judge,
    natural_map_norm,
    relative_error,
    runaway,
)
from palpo.physics.contact.solvers.block import open_block
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
from palpo.physics.kernels import kernel


def solve(problem: SparseProblem, stop: Stop) -> ContactResult:
    """Block Gauss-Seidel with the exact local law until the residual is at most `stop.tolerance`.

    It ends as `relaxation.relax` does; the time that `stop` allows is looked at after every OFTEN sweeps.
    """
    started = perf_counter()
    w, b, mu, n = problem.w, problem.b, problem.mu, problem.n_contacts
    blocks, diagonal = _blocks(problem), diagonal_only(w)
    r, u, work = starting_force(problem), np.zeros(3 * n), np.zeros((15, 3))
    best, bound = r.copy(), runaway(problem)
    asked = float(asked_force(diagonal, b, 0, n))
    code, done, least = CONTINUE, 0, math.inf
    reason: Reason = "iterations"
    while code == CONTINUE and done < stop.max_iterations:
        if done and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        u[:] = w @ r + b
        code, sweeps, least = sparse_sweeps(
            w.data, w.indices, w.indptr, blocks, diagonal, mu, (stop.tolerance, bound, least, asked),
            min(OFTEN, stop.max_iterations - done), r, u, best, work,
        )  # fmt: skip
        done += sweeps
    if code in (CONTINUE, DIVERGED):
        r = best
    return judge(problem, stop, r, done, REASONS.get(code, reason), started)


def _blocks(problem: SparseProblem) -> np.ndarray:
    """W_aa of every contact, shape (n, 3, 3)."""
    n = problem.n_contacts
    out = np.zeros((n, 3, 3))
    w = problem.w.tocoo()
    own = w.row // 3 == w.col // 3
    np.add.at(out, (w.row[own] // 3, w.row[own] % 3, w.col[own] % 3), w.data[own])
    return out


@kernel
def sparse_sweeps(data, indices, indptr, blocks, diagonal, mu, limits, sweeps, r, u, best, work):
    """Up to `sweeps` sweeps on r (3 n,), u = W r + b before and after; as `relax_sweeps` returns.

    data, indices, indptr: W by rows. limits: tolerance, the largest |r| [N], the least residual so far, whose
    force is best (3 n,), and the force that b asks for [N].
    """
    tolerance, bound, least, asked = limits
    own, free = work[0], work[1]
    change, size = 0.0, 0.0
    for sweep in range(sweeps):
        change, size = 0.0, 0.0
        for k in range(mu.shape[0]):
            i = 3 * k
            open_block(blocks[k], r, u, i, own, free)
            if blocks[k, 0, 0] <= 0.0:  # nothing yields along the normal: no force could part it
                own[:] = 0.0
            else:
                solve_contact(blocks[k], free, mu[k], own)
            for c in range(3):
                size += own[c] ** 2
                step = own[c] - r[i + c]
                if step != 0.0:
                    change += step * step
                    r[i + c] = own[c]
                    # W is symmetric: its row serves as its column
                    for p in range(indptr[i + c], indptr[i + c + 1]):
                        u[indices[p]] += step * data[p]
        if not size <= bound * bound:
            return DIVERGED, sweep + 1, least
        still = change <= STILL * STILL * size
        if still or change <= (NEAR * tolerance) ** 2 * size or sweep == sweeps - 1:
            error, own_size = natural_map_norm(diagonal, mu, r, u, 0, mu.shape[0], work[2:])
            error = relative_error(error, own_size, asked)
            if error < least:
                least = error
                best[:] = r
            if error <= tolerance:
                return CONVERGED, sweep + 1, least
            if still:
                return SETTLED, sweep + 1, least
    return CONTINUE, sweeps, least
