"""A primal-dual interior point on the product of Coulomb's cones: few steps, whatever W's condition.

With x = r / scale and u = scale (W r + b) / unit, scaled so that the cone of every contact is the unit one,
the problem (De Saxce & Feng 1998) reads

    y = u + sigma(u_t) n,    x o y = 0,    x and y in the cones,    sigma = sqrt(|u_t|^2 + gap^2)

where o is the cones' Jordan product and gap = x . y / n. Each step is Newton's on it (the direction of
Alizadeh, Haeberly & Overton, SIAM J. Optim. 1998), all of sigma's slope included, towards x o y = target:

    (X (G + ridge I) + Y) dx = target - x o y - X lack,    G = (I + n d sigma / d u_t) W,    dy = G dx + lack

with Mehrotra's predictor and corrector (SIAM J. Optim. 1992), Gondzio's correctors, which bring single
products back to the others (Comput. Optim. Appl. 1996), and, where the boundary is still near, one of two
plain centred directions. The ridge, proportional to sqrt(gap), is there for a singular W, whose forces are
not unique; it vanishes with the gap. Where even that leads nowhere, sigma's slope is left out for a step:
sigma then lags behind as in the fixed point of Acary, Cadoux, Lemarechal & Malick (ZAMM 2011), each of whose
problems is convex. Friction as second-order cones by interior points: Acary, Armand, Nguyen & Shpakovych
(Second-order cone programming for rolling friction contact mechanics, 2024).

A contact without friction keeps its normal row alone. Newton's matrix has W's pattern: its diagonal blocks
carry what every contact is for itself. With a `shift`, s of each contact [m], in place of mu |u_t|, it solves

    u + s n in K*,   r in K,   r . (u + s n) = 0,   u = W r + b:

the convex problem of Acary, Cadoux, Lemarechal & Malick, the least of 1/2 r W r + r (b + s n) on K.
"""

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, project_cone, relative_natural_map, relative_residual, runaway
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers import factors
from palpo.physics.contact.solvers.operator import operator, own_entries, times
from palpo.physics.contact.solvers.products import dot, unit_cones
from palpo.physics.contact.solvers.relaxation import starting_force
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel

ATTEMPTS = ((0.1, False), (1.0, False), (0.1, True), (0.01, True))
"""Ridge over sqrt(gap), W's diagonal blocks scaled to 1, and whether a short step lags: one that stalls
starts anew with the next."""

LEAST_GAP = 1e-16
"""Gap below which the ridge does not shrink any more."""

BACK = 0.99
"""Share of the way to the boundary that a step takes."""

SHORT, CENTRES = 0.3, (0.3, 0.8)
"""A step shorter than that makes room for one towards these shares of the gap."""

CORRECTORS, LONG, AHEAD, GAIN, NEAR = 3, 0.9, 0.3, 0.1, 0.1
"""A step below LONG is recentred up to so many times: AHEAD of it, products come within NEAR of their target;
that is kept if it gains GAIN of AHEAD."""

PATIENCE, FALL = 12, 0.9
"""Steps without a residual of FALL times the least, after which a solve has stalled."""

SMALLEST = 1e-12
"""Step at which the boundary holds it fast."""

CONTINUE, CONVERGED, STALLED = range(3)

STATE = np.dtype(
    (np.record, [(name, np.int64) for name in ("steps", "idle", "lags", "held")]
     + [(name, np.float64) for name in ("gap", "residual", "unit", "ridge")])
)  # fmt: skip
"""Factorisations, steps since the residual fell, whether short steps lag, whether the shift is held; gap,
least relative residual, force times displacement of 1 [N m], ridge."""


class Interior(NamedTuple):
    """What an interior-point solve carries from step to step, for n contacts; N = 3 n."""

    factor: Any  # of Newton's matrix (palpo.physics.contact.solvers.factors)
    scale: NDArray[np.float64]  # (N,) r = scale x [N]
    x: NDArray[np.float64]  # (N,) force, in the unit cones
    y: NDArray[np.float64]  # (N,) displacement, in the unit cones
    dx: NDArray[np.float64]  # (4, N) directions tried
    dy: NDArray[np.float64]  # (4, N)
    lack: NDArray[np.float64]  # (N,) u + sigma n - y
    slope: NDArray[np.float64]  # (n, 2) d sigma / d u_t
    force: NDArray[np.float64]  # (N,) r in the cones [N]
    offset: NDArray[np.float64]  # (N,) W r + b [m]
    best: NDArray[np.float64]  # (N,) force of the least residual [N]
    state: NDArray[Any]  # (1,) of STATE
    scratch: NDArray[np.float64]  # (3, 3)
    shift: NDArray[np.float64]  # (n,) [m] where it is held


def make_interior(w: Any, n_contacts: int) -> Interior:
    """Room for solves with an operator w of n_contacts contacts."""
    n = 3 * n_contacts
    return Interior(
        factors.make_factor(w), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((4, n)), np.zeros((4, n)),
        np.zeros(n), np.zeros((n_contacts, 2)), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(1, STATE),
        np.zeros((3, 3)), np.zeros(n_contacts),
    )  # fmt: skip


@kernel
def begin(w, b, mu, ridge, lags, a):
    """Start at the middle of the cones; the best force so far is none.

    lags: where a step is short, sigma's slope is left out.
    """
    unit = unit_cones(own_entries(w), b, mu, a.offset, a.scale)
    for k in range(mu.shape[0]):
        i = 3 * k
        a.best[i] = a.best[i + 1] = a.best[i + 2] = 0.0
        a.x[i], a.x[i + 1], a.x[i + 2] = 1.0, 0.0, 0.0
        a.y[i], a.y[i + 1], a.y[i + 2] = 1.0, 0.0, 0.0
    state = a.state[0]
    state.steps, state.idle, state.lags, state.held = 0, 0, 1 if lags else 0, 0
    state.gap, state.residual, state.unit, state.ridge = 1.0, np.inf, unit, ridge


@kernel
def advance(w, b, mu, tolerance, bound, steps, a):
    """Up to `steps` factorisations more after `begin`, one more where the last step lags.

    w: an operator; b (N,), mu (n,); a.best is the projected force of the least residual met,
    |r| <= `bound` [N]. Returns CONVERGED where that residual is at most `tolerance`, STALLED where steps lead
    nowhere, else CONTINUE.
    """
    rows = b.shape[0]
    last = a.state[0].steps + steps
    while True:
        error = _evaluate(w, b, mu, bound, a)
        if error <= tolerance:
            return CONVERGED
        if not error < np.inf or a.state[0].idle > PATIENCE:
            return STALLED
        if a.state[0].steps >= last:
            return CONTINUE
        ridge = a.state[0].ridge * max(a.state[0].gap, LEAST_GAP) ** 0.5
        _assemble(w, mu, ridge, a)
        a.state[0].steps += 1
        if not factors.factor(a.factor):
            return STALLED
        chosen, step = _choose(w, mu, ridge, a)
        if step < SHORT and a.state[0].lags:
            for i in range(rows):
                a.dx[3, i], a.dy[3, i] = a.dx[chosen, i], a.dy[chosen, i]
            a.slope[:] = 0.0
            _assemble(w, mu, ridge, a)
            a.state[0].steps += 1
            if not factors.factor(a.factor):
                return STALLED
            other, longer = _choose(w, mu, ridge, a)
            chosen, step = (other, longer) if longer > step else (3, step)
        if not step > SMALLEST:
            return STALLED
        a.state[0].idle += 1
        for i in range(rows):
            a.x[i] += step * a.dx[chosen, i]
            a.y[i] += step * a.dy[chosen, i]


@inlined
def _evaluate(w, b, mu, bound, a):
    """Force, offset, gap, slope and lack of where x and y are; the relative residual of the force."""
    n, rows, unit = mu.shape[0], b.shape[0], a.state[0].unit
    for k in range(n):
        i = 3 * k
        for c in range(3):
            a.force[i + c] = a.scale[i + c] * a.x[i + c]
        project_cone(a.force[i : i + 3], mu[k], a.force[i : i + 3])
    times(w, a.force, a.offset)
    for i in range(rows):
        a.offset[i] += b[i]
    held = a.state[0].held == 1
    if held:  # the map adds mu |u_t|
        for k in range(n):
            i = 3 * k
            a.offset[i] += a.shift[k] - mu[k] * (a.offset[i + 1] ** 2 + a.offset[i + 2] ** 2) ** 0.5
    error, size = relative_natural_map(own_entries(w), b, mu, a.force, a.offset, 0, n, a.scratch)
    if not 0.0 < size <= bound:
        error = np.inf
    if error < a.state[0].residual:
        if error < FALL * a.state[0].residual:
            a.state[0].idle = 0
        a.state[0].residual = error
        for i in range(rows):
            a.best[i] = a.force[i]
    gap = dot(a.x, a.y) / n
    a.state[0].gap = gap
    for k in range(n):
        i = 3 * k
        for c in range(3):
            a.lack[i + c] = a.offset[i + c] * a.scale[i + c] / unit
        shift, e1, e2 = 0.0, 0.0, 0.0
        if mu[k] > 0.0:
            shift = (a.lack[i + 1] ** 2 + a.lack[i + 2] ** 2 + (0.0 if held else gap * gap)) ** 0.5
            if not held:
                e1, e2 = a.lack[i + 1] / shift, a.lack[i + 2] / shift
        a.slope[k, 0], a.slope[k, 1] = e1, e2
        a.lack[i] += shift - a.y[i]
        a.lack[i + 1] -= a.y[i + 1]
        a.lack[i + 2] -= a.y[i + 2]
    return error


@inlined
def _assemble(w, mu, ridge, a):
    """matrix = X (G + ridge I) + Y by rows, where X z = x o z; a contact without friction: dx_t = 0."""
    unit, x, y, s, own = a.state[0].unit, a.x, a.y, a.scale, a.scratch
    for k in range(mu.shape[0]):
        i = 3 * k
        f0, f1, f2 = s[i] / unit, s[i + 1] / unit, s[i + 2] / unit
        x0, x1, x2 = x[i], x[i + 1], x[i + 2]
        e1, e2 = a.slope[k, 0], a.slope[k, 1]
        own[0, 0], own[0, 1], own[0, 2] = x0 * f0, (x0 * e1 + x1) * f1, (x0 * e2 + x2) * f2
        own[1, 0], own[1, 1], own[1, 2] = x1 * f0, (x1 * e1 + x0) * f1, x1 * e2 * f2
        own[2, 0], own[2, 1], own[2, 2] = x2 * f0, x2 * e1 * f1, (x2 * e2 + x0) * f2
        factors.fill(a.factor, w, k, own, s)
        block = factors.own_block(a.factor, k)
        y0, y1, y2 = y[i] + ridge * x0, y[i + 1] + ridge * x1, y[i + 2] + ridge * x2
        block[0, 0] += y0
        block[0, 1] += y1
        block[0, 2] += y2
        block[1, 0] += y1
        block[1, 1] += y0
        block[2, 0] += y2
        block[2, 2] += y0


@inlined
def _choose(w, mu, ridge, a):
    """The direction that is taken, by number, and how far."""
    gap, n = a.state[0].gap, mu.shape[0]
    _direct(w, mu, ridge, 0.0, -1, 0, a)
    step, after = _reach(mu, 0, a), 0.0
    for i in range(a.x.shape[0]):
        after += (a.x[i] + step * a.dx[0, i]) * (a.y[i] + step * a.dy[0, i])
    centre = min(1.0, max(1e-6, after / (n * gap))) ** 3
    _direct(w, mu, ridge, centre * gap, 0, 1, a)
    chosen, step = 1, _reach(mu, 1, a)
    for _ in range(CORRECTORS):
        if step < LONG:
            _recentre(w, mu, ridge, centre * gap, min(1.0, step + AHEAD), chosen, a)
            other = _reach(mu, 3 - chosen, a)
            if other < step + GAIN * AHEAD:
                break
            chosen, step = 3 - chosen, other
    for share in CENTRES:
        if step < SHORT:
            spare = 3 - chosen
            _direct(w, mu, ridge, share * gap, -1, spare, a)
            other = _reach(mu, spare, a)
            if other > step:
                chosen, step = spare, other
    return chosen, step


@kernel
def _direct(w, mu, ridge, target, corrected, j, a):
    """dx[j], dy[j] towards x o y = target; less dx o dy of the direction `corrected` unless that is -1."""
    x, y, d, dy, p = a.x, a.y, a.dx[j], a.dy[j], a.lack
    ex, ey = a.dx[max(corrected, 0)], a.dy[max(corrected, 0)]
    for k in range(mu.shape[0]):
        i = 3 * k
        z0, z1, z2 = y[i] + p[i], y[i + 1] + p[i + 1], y[i + 2] + p[i + 2]
        c0 = target - (x[i] * z0 + x[i + 1] * z1 + x[i + 2] * z2)
        c1 = -(x[i] * z1 + z0 * x[i + 1])
        c2 = -(x[i] * z2 + z0 * x[i + 2])
        if corrected >= 0:
            c0 -= ex[i] * ey[i] + ex[i + 1] * ey[i + 1] + ex[i + 2] * ey[i + 2]
            c1 -= ex[i] * ey[i + 1] + ey[i] * ex[i + 1]
            c2 -= ex[i] * ey[i + 2] + ey[i] * ex[i + 2]
        d[i], d[i + 1], d[i + 2] = c0, c1, c2
    _finish(w, mu, ridge, j, a)
    for i in range(a.x.shape[0]):
        dy[i] += p[i]


@kernel
def _finish(w, mu, ridge, j, a):
    """dx[j] = matrix^-1 dx[j], dy[j] = (G + ridge) dx[j]."""
    rows, unit, d, dy = a.scale.shape[0], a.state[0].unit, a.dx[j], a.dy[j]
    factors.solve(a.factor, d)
    for i in range(rows):
        a.force[i] = a.scale[i] * d[i]
    times(w, a.force, dy)
    for i in range(rows):
        dy[i] = dy[i] * a.scale[i] / unit
    for k in range(mu.shape[0]):
        i = 3 * k
        dy[i] += a.slope[k, 0] * dy[i + 1] + a.slope[k, 1] * dy[i + 2]
        for c in range(3):
            dy[i + c] += ridge * d[i + c]


@inlined
def _recentre(w, mu, ridge, target, step, j, a):
    """Direction 3 - j = direction j and what brings the products, a step ahead, near the target (Gondzio)."""
    low, high = NEAR * target, target / NEAR
    one, was, other = a.dx[j], a.dy[j], 3 - j
    d, dy = a.dx[other], a.dy[other]
    for k in range(mu.shape[0]):
        i = 3 * k
        x0, x1, x2 = a.x[i] + step * one[i], a.x[i + 1] + step * one[i + 1], a.x[i + 2] + step * one[i + 2]
        y0, y1, y2 = a.y[i] + step * was[i], a.y[i + 1] + step * was[i + 1], a.y[i + 2] + step * was[i + 2]
        v0, v1, v2 = x0 * y0 + x1 * y1 + x2 * y2, x0 * y1 + y0 * x1, x0 * y2 + y0 * x2
        t = (v1 * v1 + v2 * v2) ** 0.5
        p, q = v0 + t, v0 - t  # eigenvalues
        p = max(-high, min(max(p, low), high) - p)
        q = max(-high, min(max(q, low), high) - q)
        e1, e2 = (v1 / t, v2 / t) if t > 0.0 else (0.0, 0.0)
        d[i] = 0.5 * (p + q)
        d[i + 1], d[i + 2] = 0.5 * (p - q) * e1, 0.5 * (p - q) * e2
    _finish(w, mu, ridge, other, a)
    for i in range(a.x.shape[0]):
        d[i] += one[i]
        dy[i] += was[i]


@inlined
def _reach(mu, j, a):
    """BACK times the longest step along direction j that stays in all cones, at most 1."""
    out = 1.0 / BACK
    for k in range(mu.shape[0]):
        out = min(out, _longest(a.x, a.dx[j], 3 * k, mu[k]), _longest(a.y, a.dy[j], 3 * k, mu[k]))
    return BACK * out


@inlined
def _longest(x, d, i, mu):
    """The longest step t with x + t d in the unit cone of the rows from i on; the half-line if mu = 0."""
    out = -x[i] / d[i] if d[i] < 0.0 else np.inf
    if mu > 0.0:
        square = d[i] * d[i] - d[i + 1] * d[i + 1] - d[i + 2] * d[i + 2]
        half = x[i] * d[i] - x[i + 1] * d[i + 1] - x[i + 2] * d[i + 2]
        inside = x[i] * x[i] - x[i + 1] * x[i + 1] - x[i + 2] * x[i + 2]
        under = half * half - square * inside
        if under >= 0.0:
            root = under**0.5
            for q in (-half - root, root - half):
                if q != 0.0 and inside / q > 0.0:
                    out = min(out, inside / q)
    return out


def solve(
    problem: AnyProblem, stop: Stop, *, ridge: float | None = None, lags: bool = False
) -> ContactResult:
    """Interior-point steps until the residual is at most `stop.tolerance`; an iteration is a factorisation.

    Starts at the middle of the cones whatever the warm start, which is only given back where no step is
    better. ridge: over sqrt(gap), in place of ATTEMPTS one after the other; lags goes with it. Raises
    InputError for a ridge that is not positive.
    """
    started = perf_counter()
    if ridge is not None and not (ridge > 0.0 and math.isfinite(ridge)):
        raise InputError(f"ridge = {ridge} must be positive and finite")
    attempts = ATTEMPTS if ridge is None else ((float(ridge), lags),)
    b, mu, best = problem.b, problem.mu, starting_force(problem)
    least = relative_residual(problem, best)
    if least <= stop.tolerance:
        return judge(problem, stop, best, 0, "converged", started)
    w, done, bound = operator(problem), 0, runaway(problem)
    a = make_interior(w, problem.n_contacts)
    reason: Reason = "stalled"
    for tried, lagging in attempts:
        code, before = CONTINUE, done
        begin(w, b, mu, tried, lagging, a)
        while code == CONTINUE and done < stop.max_iterations and not _late(started, stop, done):
            steps = 1 if math.isfinite(stop.seconds) else stop.max_iterations - done
            code = advance(w, b, mu, stop.tolerance, bound, steps, a)
            factors.raise_held_back(a.factor)
            done = before + a.state["steps"].item()
        if a.state["residual"].item() < least:
            least, best = a.state["residual"].item(), a.best.copy()
        if code != STALLED:
            reason = "iterations" if done >= stop.max_iterations else "time"
            break
    return judge(problem, stop, best, done, reason, started)


def _late(started: float, stop: Stop, done: int) -> bool:
    return done > 0 and perf_counter() - started >= stop.seconds
