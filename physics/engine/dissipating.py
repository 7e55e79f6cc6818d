"""Maximal dissipation at the servo: each contact by bisection, the set by relaxation (002, IV-B)."""

from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contact.solvers.maximal_dissipation import (
    CONTINUE,
    CONVERGED,
    COULOMB,
    DIVERGED,
    Progress,
    Relaxation,
    advance,
    begin,
)
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.solve import CHUNK, bound, lent, solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.numerics.kernels import kernel


@kernel
def solve_dissipating(p, s):
    """Sweeps over the contacts' rows; where they do not converge, the force of least residual is given."""
    first, last, told, a = p.rows[0], p.rows[1], s.told[0], s.acceleration
    w, mu, before = view_square(p.w, last), p.mu[: (last - first) // 3], told.sweeps
    progress = Progress(s.work[2], s.work[3], a.best, s.work[0:2])
    chunk = CHUNK if s.settings[0].seconds > 0.0 else s.settings[0].sweeps
    law, steady = COULOMB, Relaxation(1.0, 1.0, 1.0)
    limit, code, done = bound(w, p.b, p.r, first, last), CONTINUE, 0
    begin(w, p.b, mu, p.r, p.u, first, steady, progress)
    while code == CONTINUE:
        sweeps = lent(s, before + done, chunk)
        if sweeps == 0:
            break
        code, more = advance(
            law, w, p.b, mu, p.r, p.u, first, steady, told.tolerance, limit, sweeps, progress
        )
        done += more
    if code == DIVERGED:
        told.flags |= SOLVE_DIVERGED
        told.divergences += 1
    if code != CONVERGED:
        for i in range(first, last):
            p.r[i] = a.best[i - first]
        set_offset(w, p.b, p.r, p.u, first, last)
    told.sweeps += done
    told.residual = progress.least[0]


@solver
def maximal_dissipation_unit(p, s):
    """Maximal dissipation."""
    solve_dissipating(p, s)
    return DONE
