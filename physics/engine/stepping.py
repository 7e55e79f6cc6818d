"""Newton's method on all contacts of a set at once at the servo, between accelerated sweeps.

Once the statuses are right a few steps (palpo.physics.contact.solvers.semi_smooth_newton) end a problem at
any tolerance. Where a fine body presses a coarse one, contacts share the freedoms of one facet, W is nearly
singular, and sweeps crawl: there steps help most. A step factors the rows of what bears, which costs as much
as a good part of their number in sweeps, so that it is not the first thing tried.
"""

from palpo.physics.contact.solvers import semi_smooth_newton as newton
from palpo.physics.contact.solvers.anderson import CONTINUE, CONVERGED, advance, begin
from palpo.physics.contact.solvers.semi_smooth_newton import SemiSmooth
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.relaxing import end_sweeps
from palpo.physics.engine.solve import CHUNK, bound, lent, solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.numerics.kernels import kernel

FIRST, STEPS = 8, 8
"""Sweeps before Newton's method, for where little has changed they do, and its steps. It is turned to again
whenever the sweeps have doubled: once they have come nearer it may succeed."""

SMALL = 24
"""Most contacts for which steps are made where the time of a solve is limited: none looks at the clock, and
those of so few take no longer than some dozen sweeps."""


@kernel
def solve_stepping(p, s):
    """Sweeps and steps on the contacts' rows; sweeps alone where joints have been eliminated."""
    first, last, a, told = p.rows[0], p.rows[1], s.acceleration, s.told[0]
    w, mu, before, turn = view_square(p.w, last), p.mu[: (last - first) // 3], told.sweeps, FIRST
    begin(w, p.b, mu, p.r, p.u, first, a)
    limit, code = bound(w, p.b, p.r, first, last), CONTINUE
    while code == CONTINUE:
        sweeps = lent(s, before + a.state[0].sweeps, CHUNK)
        if sweeps == 0:
            break
        sweeps = min(sweeps, turn - a.state[0].sweeps)
        code = advance(w, p.b, mu, p.r, p.u, first, told.tolerance, limit, sweeps, a)
        if code != CONTINUE or a.state[0].sweeps < turn:
            continue
        turn *= 2
        if first == 0 and (s.settings[0].seconds == 0.0 or last <= 3 * SMALL):
            code = _step(p, s, w, mu, limit)
    end_sweeps(p, s, w, code)


@kernel
def _step(p, s, w, mu, limit):
    """Newton's steps from the best force so far; where they better it, the sweeps go on from there."""
    n, a, told, way = p.rows[1], s.acceleration, s.told[0], s.bordered.way
    steps = SemiSmooth(
        way.matrix, way.words, way.step, way.bearing, way.status, way.right[:n], way.change[:n], way.r[:n],
        way.u[:n], way.trial[:n], way.ahead[:n], way.state, way.scratch,
    )  # fmt: skip
    newton.begin(w, p.b[:n], mu, a.best[:n], steps)
    newton.advance(w, p.b[:n], mu, told.tolerance, limit, STEPS, steps)
    if not steps.state[0].residual < a.state[0].residual:
        return CONTINUE
    sweeps = a.state[0].sweeps
    for i in range(n):
        p.r[i] = steps.r[i]
    begin(w, p.b, mu, p.r, p.u, 0, a)
    a.state[0].sweeps = sweeps
    return CONVERGED if a.state[0].residual <= told.tolerance else CONTINUE


@solver
def newton_unit(p, s):
    """Newton's method between accelerated sweeps."""
    solve_stepping(p, s)
    return DONE
