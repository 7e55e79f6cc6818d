"""Global Uzawa as 001 pays for it: each visit gathers its offset from the forces of all contacts.

N. Talbi's thesis, (2.69): x_ab = b_a + sum of W_ab r_b over the other contacts b, nine products each, moved
or not, so that every sweep costs 9 n^2 products. The program's own sweeps keep u = W r + b instead and hand
on changes only (physics.contact.solvers.block): what does not move costs nothing there, and the orders of
growth of the two are of different things.
"""

from time import perf_counter

import numpy as np

from palpo.physics.contact.laws import judge, runaway
from palpo.physics.contact.problem import ContactProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers.family import FORMULATIONS
from palpo.physics.contact.solvers.relaxation import UZAWA, Local, starting_force, stiffnesses
from palpo.physics.contact.solvers.uzawa import uzawa_contact
from palpo.physics.numerics.kernels import kernel


def uzawa(
    problem: ContactProblem, stop: Stop, *, rho: str = "rho_min", printed: bool = False, outer_error: float
) -> ContactResult:
    """`family.uzawa` of global reach under its relative stop |dr| <= outer_error |r|, with dense visits.

    The forces are those of that solver, but for the order in which products are summed. The wall time that
    `stop` allows is not looked at.
    """
    started = perf_counter()
    local = Local(UZAWA, FORMULATIONS["bipotential"][printed])
    w, r = np.ascontiguousarray(problem.w), starting_force(problem)
    bound = runaway(problem)
    done, settled = dense_sweeps(
        w, problem.b, problem.mu, stiffnesses(problem, rho), local, outer_error, bound, stop.max_iterations,
        r, np.zeros((6, 3)),
    )  # fmt: skip
    reason: Reason = "converged" if settled else "iterations"
    return judge(problem, stop, r, done, reason, started)


@kernel
def dense_sweeps(w, b, mu, rho, local, limit, bound, sweeps, r, work):
    """Up to `sweeps` sweeps on r (3 n,); (sweeps done, whether the last one changed r by limit |r| at most).

    w (3 n, 3 n), b (3 n,), mu (n,), rho (n, 2); work (6, 3). It also ends where |r| passes `bound` [N].
    """
    n = mu.shape[0]
    own, free = work[0], work[1]
    for sweep in range(sweeps):
        change, size = 0.0, 0.0
        for k in range(n):
            i = 3 * k
            block = w[i : i + 3, i : i + 3]
            for c in range(3):
                own[c] = r[i + c]
                free[c] = b[i + c]
                for j in range(3 * n):
                    free[c] += w[i + c, j] * r[j]
            for c in range(3):
                free[c] -= block[c, 0] * own[0] + block[c, 1] * own[1] + block[c, 2] * own[2]
            uzawa_contact(local, block, free, mu[k], rho[k, 0], rho[k, 1], own, work[2], work[3], work[4])
            for c in range(3):
                change += (own[c] - r[i + c]) ** 2
                size += own[c] ** 2
                r[i + c] = own[c]
        if change <= limit * limit * size:
            return sweep + 1, True
        if not size <= bound * bound:
            return sweep + 1, False
    return sweeps, False
