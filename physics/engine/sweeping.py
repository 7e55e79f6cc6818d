"""Block Gauss-Seidel at the servo, until a sweep changes the forces by less than the tolerance."""

from palpo.physics.contact.laws import relative_natural_map
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contact.solvers.gauss_seidel import sweep_contacts
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.solve import CHUNK, bound, lent, solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.numerics.kernels import kernel


@kernel
def solve_sweeping(p, s):
    """Sweeps over the contacts' rows."""
    first, last, told, start = p.rows[0], p.rows[1], s.told[0], s.start
    n, w = (last - first) // 3, view_square(p.w, last)
    limit = bound(w, p.b, p.r, first, last)
    for i in range(first, last):
        start[i - first] = p.r[i]
    chunk = CHUNK if s.settings[0].seconds > 0.0 else s.settings[0].sweeps
    sweeps = 1
    while sweeps > 0:
        sweeps = lent(s, told.sweeps, chunk)
        done = sweep_contacts(w, p.b, p.mu, p.r, p.u, p.status, first, n, told.tolerance, sweeps, s.work)
        told.sweeps += done
        if done < sweeps:
            break
    set_offset(w, p.b, p.r, p.u, first, last)
    error, size = relative_natural_map(w, p.b, p.mu, p.r, p.u, first, n, s.work)
    if not size <= limit:
        told.flags |= SOLVE_DIVERGED
        told.divergences += 1
        for i in range(first, last):
            p.r[i] = start[i - first]
        set_offset(w, p.b, p.r, p.u, first, last)
        error, size = relative_natural_map(w, p.b, p.mu, p.r, p.u, first, n, s.work)
    told.residual = error


@solver
def gauss_seidel_unit(p, s):
    """Block Gauss-Seidel."""
    solve_sweeping(p, s)
    return DONE
