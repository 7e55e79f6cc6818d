"""Block Gauss-Seidel at the servo, until a sweep changes the forces by less than the tolerance."""

from palpo.physics.contact.laws import asked_force, natural_map_norm, relative_error
from palpo.physics.contact.shaft_law import shaft_map_norm
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contact.solvers.gauss_seidel import sweep_contacts
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.solve import CHUNK, bound, lent, solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.numerics.kernels import kernel


@kernel
def _error(w, b, mu, limits, r, u, first, scratch):
    """(e, || r || [N]) of the contacts in the rows from `first` on, and of the points of shafts after
    them."""
    contacts, shafts = mu.shape[0], limits.shape[0]
    error, size = natural_map_norm(w, mu, r, u, first, contacts, scratch)
    if shafts > 0:
        more, along = shaft_map_norm(w, limits, r, u, first + 3 * contacts, shafts)
        error, size = (error**2 + more**2) ** 0.5, (size**2 + along**2) ** 0.5
    return relative_error(error, size, asked_force(w, b, first, contacts + shafts)), size


@kernel
def solve_sweeping(p, s):
    """Sweeps over the contacts' rows."""
    first, last, told, start = p.rows[0], p.rows[1], s.told[0], s.start
    n, w = (last - first) // 3, view_square(p.w, last)
    mu, limits = p.mu[: n - p.shafts[0]], p.limits[: p.shafts[0]]
    limit = bound(w, p.b, p.r, first, last)
    for i in range(first, last):
        start[i - first] = p.r[i]
    chunk = CHUNK if s.settings[0].seconds > 0.0 else s.settings[0].sweeps
    sweeps = 1
    while sweeps > 0:
        sweeps = lent(s, told.sweeps, chunk)
        done = sweep_contacts(w, p.b, mu, limits, p.r, p.u, p.status, first, told.tolerance, sweeps, s.work)
        told.sweeps += done
        if done < sweeps:
            break
    set_offset(w, p.b, p.r, p.u, first, last)
    error, size = _error(w, p.b, mu, limits, p.r, p.u, first, s.work)
    if not size <= limit:
        told.flags |= SOLVE_DIVERGED
        told.divergences += 1
        for i in range(first, last):
            p.r[i] = start[i - first]
        set_offset(w, p.b, p.r, p.u, first, last)
        error, size = _error(w, p.b, mu, limits, p.r, p.u, first, s.work)
    told.residual = error


@solver
def gauss_seidel_unit(p, s):
    """Block Gauss-Seidel."""
    solve_sweeping(p, s)
    return DONE
