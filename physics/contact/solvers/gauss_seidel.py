"""Block Gauss-Seidel: contact after contact, each solved with the others' forces held (Jean & Moreau 1992).

The kernel is what the servo calls; `solve` is the same on a `ContactProblem`.
"""

import numpy as np
from numba import njit

from physics.contact.laws import solve_contact
from physics.contact.problem import ContactProblem, ContactResult
from physics.contact.residual import natural_map_residual


@njit(nogil=True, cache=True)
def sweep_contacts(w, b, mu, r, u, status, first, n_contacts, tolerance, max_sweeps, scratch):
    """Block Gauss-Seidel on the rows from `first` on, three a contact; r is the start and the result.

    w (rows, rows), b, r and u (rows,), all contiguous; mu and status (n_contacts,). u is kept equal to
    W r + b over those rows, so that a contact whose force does not change costs nothing to the others.
    Stops when a sweep changes the force by less than tolerance |r|. Returns the sweeps done; writes status.
    scratch: (2, 3) at least.
    """
    last = first + 3 * n_contacts
    free, own = scratch[0], scratch[1]
    for i in range(first, last):
        u[i] = b[i]
    ahead = u[first:last]
    for i in range(first, last):
        if r[i] != 0.0:
            _add_row(ahead, w[i, first:last], r[i])
    for sweep in range(max_sweeps):
        change, size = 0.0, 0.0
        for k in range(n_contacts):
            i = first + 3 * k
            block = w[i : i + 3, i : i + 3]
            for c in range(3):
                own[c] = r[i + c]
            for c in range(3):
                free[c] = u[i + c] - block[c, 0] * own[0] - block[c, 1] * own[1] - block[c, 2] * own[2]
            status[k] = solve_contact(block, free, mu[k], own)
            for c in range(3):
                step = own[c] - r[i + c]
                size += own[c] ** 2
                if step != 0.0:
                    change += step * step
                    r[i + c] = own[c]
                    _add_row(ahead, w[i + c, first:last], step)
        if change <= tolerance * tolerance * size:
            return sweep + 1
    return max_sweeps


@njit(inline="always")
def _add_row(u, row, factor):
    """u += factor row. W is symmetric: its row serves as its column, and lies in one piece.

    Both start at 0, so that no index can be negative and the loop takes several columns an instruction.
    """
    for j in range(row.shape[0]):
        u[j] += factor * row[j]


def solve(problem: ContactProblem, tolerance: float = 1e-8, max_sweeps: int = 5000) -> ContactResult:
    """Block Gauss-Seidel until a sweep changes the force by less than `tolerance` times the force."""
    n = problem.n_contacts
    r = np.zeros(3 * n) if problem.warm is None else problem.warm.astype(float)
    status = np.zeros(n, np.int32)
    w, b, u = np.ascontiguousarray(problem.w), np.ascontiguousarray(problem.b), np.zeros(3 * n)
    sweeps = sweep_contacts(w, b, problem.mu, r, u, status, 0, n, tolerance, max_sweeps, np.zeros((2, 3)))
    residual = natural_map_residual(w, problem.b, problem.mu, r)
    return ContactResult(r, status, int(sweeps), residual, bool(sweeps < max_sweeps))
