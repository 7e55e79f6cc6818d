"""Block Gauss-Seidel: contact after contact, each solved with the others' forces held (Jean & Moreau 1992).

The kernel is what the servo calls; `solve` is the same on a `ContactProblem`, judged by the residual.
"""

from palpo.physics.contact.laws import solve_contact
from palpo.physics.contact.problem import AnyProblem, ContactResult, Stop
from palpo.physics.contact.shaft_law import solve_shaft
from palpo.physics.contact.solvers.block import close_block, open_block, set_offset
from palpo.physics.contact.solvers.relaxation import EXACT, Local, relax, stiffnesses
from palpo.physics.numerics.kernels import kernel


@kernel
def sweep_contacts(w, b, mu, limits, r, u, status, first, tolerance, max_sweeps, scratch):
    """Block Gauss-Seidel on the rows from `first` on, three a contact; r is the start and the result.

    w (rows, rows), b, r and u (rows,), all contiguous; mu (c,) of contacts, and after them limits (s, 2) of
    points of shafts (`solve_shaft`); status (c + s,). u is kept equal to W r + b over those rows, so that a
    contact whose force does not change costs nothing to the others.
    Stops when a sweep changes the force by less than tolerance |r|. Returns the sweeps done; writes status.
    scratch: (2, 3) at least.
    """
    contacts = mu.shape[0]
    blocks = contacts + limits.shape[0]
    last = first + 3 * blocks
    free, own = scratch[0], scratch[1]
    set_offset(w, b, r, u, first, last)
    ahead = u[first:last]
    for sweep in range(max_sweeps):
        change, size = 0.0, 0.0
        for k in range(blocks):
            i = first + 3 * k
            block = w[i : i + 3, i : i + 3]
            open_block(block, r, u, i, own, free)
            if k < contacts:
                status[k] = solve_contact(block, free, mu[k], own)
            else:
                limit = limits[k - contacts]
                status[k] = solve_shaft(block, free, limit[0], limit[1], own)
            for c in range(3):
                size += own[c] ** 2
            change = close_block(w, r, ahead, i, first, last, own, change)
        if change <= tolerance * tolerance * size:
            return sweep + 1
    return max_sweeps


def solve(problem: AnyProblem, stop: Stop) -> ContactResult:
    """Block Gauss-Seidel until the natural map's residual is at most `stop.tolerance`; W dense or sparse."""
    return relax(problem, stop, Local(EXACT), stiffnesses(problem, "rho_min"))
