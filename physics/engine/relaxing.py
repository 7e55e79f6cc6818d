"""Anderson's method, and the bi-potential Uzawa's of 001 (N. Talbi's thesis, 2.8.2), at the servo.

Stopped short, either gives the force of the least residual met. Too large a rho makes the sweeps of the
latter swing or grow; a relative residual does not tell a force of that kind from a small one, so that in
newtons it must be no worse than the starting force, which is given otherwise.
"""

from palpo.physics.contact.laws import BIPOTENTIAL, natural_map_norm, relative_natural_map
from palpo.physics.contact.solvers.anderson import CONTINUE, advance, begin
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contact.solvers.relaxation import (
    DIVERGED,
    PHYSICAL,
    UZAWA,
    Local,
    Outer,
    least_stiffness,
    relax_sweeps,
)
from palpo.physics.contact.solvers.uzawa import DISPLACEMENT, ONCE
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.solve import CHUNK, bound, lent, solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.numerics.kernels import inlined, kernel

LOCAL_STEPS = 20
"""Most steps of a local visit, which the next one goes on from: between two looks at the clock 66 contacts
make some 2e4."""


@kernel
def solve_anderson(p, s):
    """Anderson's method on the contacts' rows."""
    first, last, a, told = p.rows[0], p.rows[1], s.acceleration, s.told[0]
    w, mu, before = view_square(p.w, last), p.mu[: (last - first) // 3], told.sweeps
    begin(w, p.b, mu, p.r, p.u, first, a)
    limit, code = bound(w, p.b, p.r, first, last), CONTINUE
    while code == CONTINUE:
        sweeps = lent(s, before + a.state[0].sweeps, CHUNK)
        if sweeps == 0:
            break
        code = advance(w, p.b, mu, p.r, p.u, first, told.tolerance, limit, sweeps, a)
    end_sweeps(p, s, w, code)


@kernel
def solve_uzawa(p, s):
    """Uzawa's method on contacts that are all there is."""
    n, a, told, settings = p.rows[1], s.acceleration, s.told[0], s.settings[0]
    w, mu, before = view_square(p.w, n), p.mu[: n // 3], told.sweeps
    begin(w, p.b, mu, p.r, p.u, 0, a)
    at_start, length = _error(p, s, w, p.r), 0.0
    for i in range(n):
        s.start[i] = p.r[i]
        length = max(length, abs(p.b[i]))  # L: the largest free gap or slip [m]
    rho = settings.rho if settings.rho > 0.0 else least_stiffness(w)
    a.step[: n // 3] = settings.rho_factor * rho
    rule = DISPLACEMENT if settings.local == 1 else ONCE
    local = Local(UZAWA, BIPOTENTIAL, rule, settings.uzawa_error * length, False, LOCAL_STEPS)
    kind, error = settings.error_kind, settings.gauss_seidel_error
    error = error * length if kind == PHYSICAL else error
    outer, code = Outer(kind, error, told.tolerance, bound(w, p.b, p.r, 0, n)), CONTINUE
    while code == CONTINUE:
        sweeps = lent(s, before + a.state[0].sweeps, CHUNK)
        if sweeps == 0:
            break
        code, done, a.state[0].residual = relax_sweeps(
            w, p.b, mu, a.step, local, outer, sweeps, p.r[:n], p.u[:n], a.best[:n], a.state[0].residual,
            s.work,
        )  # fmt: skip
        a.state[0].sweeps += done
    end_sweeps(p, s, w, _choose(p, s, w, code, at_start))


@kernel
def _error(p, s, w, r):
    """|| r - Proj(r - rho (u + mu |u_t| n)) || [N] of the force r; u follows it."""
    n = p.rows[1]
    set_offset(w, p.b, r, p.u, 0, n)
    return natural_map_norm(w, p.mu, r, p.u, 0, n // 3, s.work)[0]


@kernel
def _choose(p, s, w, code, at_start):
    """a.best becomes the force to give, and p.r is spent; DIVERGED where that is the one at the start."""
    n, a = p.rows[1], s.acceleration
    ended = code != CONTINUE and code != DIVERGED
    if code != DIVERGED:
        set_offset(w, p.b, p.r, p.u, 0, n)
        error = relative_natural_map(w, p.b, p.mu, p.r, p.u, 0, n // 3, s.work)[0]
        if ended or error < a.state[0].residual:
            a.state[0].residual = error
            for i in range(n):
                a.best[i] = p.r[i]
    if ended or _error(p, s, w, a.best) <= at_start:
        return code
    sweeps = a.state[0].sweeps
    for i in range(n):
        p.r[i] = s.start[i]
    begin(w, p.b, p.mu[: n // 3], p.r, p.u, 0, a)
    a.state[0].sweeps = sweeps
    return DIVERGED


@inlined
def end_sweeps(p, s, w, code):
    """The best force is given."""
    first, a, told = p.rows[0], s.acceleration, s.told[0]
    if code == DIVERGED:
        told.flags |= SOLVE_DIVERGED
        told.divergences += 1
    for i in range(first, p.rows[1]):
        p.r[i] = a.best[i - first]
    set_offset(w, p.b, p.r, p.u, first, p.rows[1])
    told.sweeps += a.state[0].sweeps
    told.residual = a.state[0].residual


@solver
def anderson_unit(p, s):
    """Anderson's method."""
    solve_anderson(p, s)
    return DONE


@solver
def uzawa_unit(p, s):
    """Uzawa's method: one step a visit, or steps to a stop."""
    solve_uzawa(p, s)
    return DONE
