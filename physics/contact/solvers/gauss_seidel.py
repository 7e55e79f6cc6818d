"""Block Gauss-Seidel: contact after contact, each solved with the others' forces held (Jean & Moreau 1992).

The kernel is what the servo calls; `solve` is the same on a `ContactProblem`.
"""

import numpy as np
from numba import njit

from physics.contact.laws import solve_contact
from physics.contact.problem import ContactProblem, ContactResult
from physics.contact.residual import natural_map_residual


@njit(nogil=True, cache=True)
def sweep_contacts(w, b, mu, r, status, n_contacts, tolerance, max_sweeps, scratch):
    """Block Gauss-Seidel on the leading 3 n_contacts rows of w and b; r is the start and the result.

    Stops when a sweep changes the force by less than tolerance |r|. Returns the sweeps done. Writes
    status (n_contacts,). scratch: (2, 3) at least.
    """
    n = 3 * n_contacts
    free, own = scratch[0], scratch[1]
    for sweep in range(max_sweeps):
        change, size = 0.0, 0.0
        for k in range(n_contacts):
            i = 3 * k
            u0, u1, u2 = 0.0, 0.0, 0.0
            row0, row1, row2 = w[i], w[i + 1], w[i + 2]
            for j in range(n):
                f = r[j]
                u0 += row0[j] * f
                u1 += row1[j] * f
                u2 += row2[j] * f
            block = w[i : i + 3, i : i + 3]
            for c in range(3):
                own[c] = r[i + c]
            free[0] = b[i] + u0 - block[0, 0] * own[0] - block[0, 1] * own[1] - block[0, 2] * own[2]
            free[1] = b[i + 1] + u1 - block[1, 0] * own[0] - block[1, 1] * own[1] - block[1, 2] * own[2]
            free[2] = b[i + 2] + u2 - block[2, 0] * own[0] - block[2, 1] * own[1] - block[2, 2] * own[2]
            status[k] = solve_contact(block, free, mu[k], own)
            for c in range(3):
                change += (own[c] - r[i + c]) ** 2
                size += own[c] ** 2
                r[i + c] = own[c]
        if change <= tolerance * tolerance * size:
            return sweep + 1
    return max_sweeps


def solve(problem: ContactProblem, tolerance: float = 1e-8, max_sweeps: int = 5000) -> ContactResult:
    """Block Gauss-Seidel until a sweep changes the force by less than `tolerance` times the force."""
    n = problem.n_contacts
    r = np.zeros(3 * n) if problem.warm is None else problem.warm.astype(float)
    status = np.zeros(n, np.int32)
    w = np.ascontiguousarray(problem.w)
    sweeps = sweep_contacts(w, problem.b, problem.mu, r, status, n, tolerance, max_sweeps, np.zeros((2, 3)))
    residual = natural_map_residual(w, problem.b, problem.mu, r)
    return ContactResult(r, status, int(sweeps), residual, bool(sweeps < max_sweeps))
