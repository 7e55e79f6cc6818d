"""Maximal dissipation: each contact by bisection, the set by successive over-relaxation.

002, section IV-B (28), after Hwangbo, Lee & Hutter, Per-contact iteration method for solving contact
dynamics (IEEE RA-L 2018) and Preclik, Eibl & Ruede, The maximum dissipation principle (Comput. Mech. 2018).
EQUATIONS.md, section 3, corrects (28).

*One contact*, u = W r + b with b_n < 0. On the plane u_n = 0 the rest is tangential:

    r_n = n - k.r_t,    u_t = S r_t - p,    n = -b_n / W_nn,    k = W_nt / W_nn

with S = W_tt - W_nn k k^T and -p the slip of a frictionless contact. Plane and cone meet in the ellipse
|r_t| = mu r_n. A sliding force lies on it with its slip collinear and opposed, u_t = -lambda r_t:

    (S + lambda I) r_t = p,    lambda > 0

This curve of forces starts outside of the ellipse, at the force that would stick (lambda = 0), and ends
inside, at r_t = 0. Bisection of lambda finds where it enters. Hwangbo et al. bisect on the ellipse for the
direction; along the curve there is always a bracket, and every trial is dissipative.

*As printed*, (28) asks for the least of r.W r / 2 + b.r on the ellipse. Its slip leaves along the normal of
the ellipse, u_t = -lambda (r_t / |r_t| + mu k), not against the friction: it trades direction for a smaller
normal force, and is Coulomb's law only where W_nt = 0.

*Jamming.* Where W_nn + mu W_nt.e <= 0, friction along e closes the contact faster than its normal force
parts it, and the ellipse is open along e. No point of the curve crosses there: the contact sticks, or slides
along another direction. Nothing is divided by that sum before it is known to be positive.
"""

import math
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import OPEN, SLIP, STICK, judge, project_cone, relative_natural_map, runaway
from palpo.physics.contact.problem import ContactProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers.block import close_block, open_block, set_offset
from palpo.physics.contact.solvers.relaxation import starting_force
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel

COULOMB, ELLIPSE = 0, 1
"""Slip against the friction; the least of (28) on the ellipse, as printed, where it is closed."""

CUTS, WIDTH = 60, 1e-15
"""Most cuts of the bisection, and the width of lambda / (lambda + tr W) at which it ends."""

ROUNDING = 1e-15
"""Share of tr W_aa added to S: a singular S keeps a sticking force."""

NEAR, OFTEN = 10.0, 16
"""The residual is asked after a sweep that moves less than NEAR tolerances, and after every OFTEN sweeps."""

STILL = 1e-15
"""|dr| / |r| of a sweep that moves nothing but roundings."""

CHUNK = 2e5
"""Products between two looks at the clock, about 0.1 ms, where a solve is limited in time."""

CONTINUE, CONVERGED, STALLED, DIVERGED = range(4)
REASONS: dict[int, Reason] = {
    CONTINUE: "iterations", CONVERGED: "converged", STALLED: "stalled", DIVERGED: "diverged",
}  # fmt: skip


@kernel
def dissipate(law, w, b, mu, r):
    """Force r, shape (3,), of a single contact u = w r + b with w (3, 3) positive semidefinite, w_nn > 0.

    Exact to roundings, whatever r was. Returns OPEN, STICK or SLIP.
    """
    if b[0] >= 0.0:
        r[0] = 0.0
        r[1] = 0.0
        r[2] = 0.0
        return OPEN
    n = -b[0] / w[0, 0]
    k1, k2 = w[1, 0] / w[0, 0], w[2, 0] / w[0, 0]
    p1, p2 = -b[1] - w[1, 0] * n, -b[2] - w[2, 0] * n
    trace = w[0, 0] + w[1, 1] + w[2, 2]
    s11 = w[1, 1] - k1 * w[1, 0] + ROUNDING * trace
    s12 = w[1, 2] - k1 * w[2, 0]
    s22 = w[2, 2] - k2 * w[2, 0] + ROUNDING * trace
    # stick: S r_t = p, times det S
    det = s11 * s22 - s12 * s12
    y1, y2 = s22 * p1 - s12 * p2, s11 * p2 - s12 * p1
    f_high = _depth(det, mu * n, mu * k1, mu * k2, y1, y2)
    if det > 0.0 and f_high >= 0.0:
        r[0] = n - (k1 * y1 + k2 * y2) / det
        r[1] = y1 / det
        r[2] = y2 / det
        return STICK
    m1, m2 = mu * k1, mu * k2
    # what lambda multiplies in the equation of the curve: Q r_t + q
    q11, q12, q22, q1, q2 = trace, 0.0, trace, 0.0, 0.0
    if law == ELLIPSE and m1 * m1 + m2 * m2 < 1.0:
        q11, q12, q22 = trace * (1.0 - m1 * m1), -trace * m1 * m2, trace * (1.0 - m2 * m2)
        q1, q2 = trace * mu * n * m1, trace * mu * n * m2
    # x = tr W / (tr W + lambda): 0 inside of the ellipse, 1 outside
    low, high, f_low, last = 0.0, 1.0, 1.0, 0
    for _ in range(CUTS):
        x = low - f_low * (high - low) / (f_high - f_low)
        z = 1.0 - x
        a11, a12, a22 = x * s11 + z * q11, x * s12 + z * q12, x * s22 + z * q22
        c1, c2 = x * p1 - z * q1, x * p2 - z * q2
        det = a11 * a22 - a12 * a12
        y1, y2 = a22 * c1 - a12 * c2, a11 * c2 - a12 * c1
        f = _depth(det, mu * n, m1, m2, y1, y2)
        if f >= 0.0:
            low, f_low = x, f
            f_high *= 0.5 if last > 0 else 1.0
            last = 1
        else:
            high, f_high = x, f
            f_low *= 0.5 if last < 0 else 1.0
            last = -1
        if abs(f) <= WIDTH or high - low <= WIDTH * high:
            break
    length = (y1 * y1 + y2 * y2) ** 0.5
    if length > 0.0:
        y1, y2 = y1 / length, y2 / length
    r[0] = n / max(1.0 + m1 * y1 + m2 * y2, ROUNDING)
    r[1] = mu * r[0] * y1
    r[2] = mu * r[0] * y2
    return SLIP


@inlined
def _depth(det, radius, m1, m2, y1, y2):
    """(mu r_n - |r_t|) / (|mu r_n| + |r_t|) of r_t = y / det, mu r_n = radius - m.r_t: 1 to -1 outward."""
    length = (y1 * y1 + y2 * y2) ** 0.5
    reach = radius * det - m1 * y1 - m2 * y2
    whole = abs(reach) + length
    return (reach - length) / whole if whole > 0.0 else 0.0


class Relaxation(NamedTuple):
    """Successive over-relaxation: r <- Proj_K(r + alpha (r_a - r)) at each contact, r_a by bisection.

    From sweep to sweep alpha <- floor + decay (alpha - floor), as Hwangbo et al. with alpha <= 1, where the
    projection removes roundings only. Where W is nearly singular, alpha above 1 may save half of the sweeps,
    and near 2 it may never converge. 1 throughout is block Gauss-Seidel.
    """

    start: float = 1.0
    decay: float = 1.0
    floor: float = 1.0


class Progress(NamedTuple):
    """What a solve of up to n contacts carries from sweep to sweep; N = 3 n."""

    alpha: NDArray[np.float64]  # (1,) of the next sweep
    least: NDArray[np.float64]  # (1,) least relative residual
    best: NDArray[np.float64]  # (N,) its force [N]
    scratch: NDArray[np.float64]  # (2, 3)


def make_progress(n_contacts: int) -> Progress:
    """Room for a solve of up to n_contacts contacts."""
    return Progress(np.zeros(1), np.zeros(1), np.zeros(3 * n_contacts), np.zeros((2, 3)))


@kernel
def begin(w, b, mu, r, u, first, relaxation, progress):
    """Start on the contacts in the rows from `first` on, at the force r in the cones; sets u = W r + b there.

    w (rows, rows), b, r and u (rows,), contiguous; mu (n,).
    """
    rows = 3 * mu.shape[0]
    progress.alpha[0] = relaxation.start
    progress.least[0] = np.inf
    copy(r[first : first + rows], progress.best[:rows])
    set_offset(w, b, r, u, first, first + rows)
    _residual(w, b, mu, r, u, first, progress)


@kernel
def advance(law, w, b, mu, r, u, first, relaxation, tolerance, bound, sweeps, progress):
    """Up to `sweeps` sweeps more after `begin`. Returns (code, sweeps done).

    CONVERGED where the natural map's relative residual is at most `tolerance`, STALLED where a sweep moves
    nothing and it is not, DIVERGED where |r| passes `bound` [N], else CONTINUE. progress.best is the force
    of the least residual seen, the start's among them.
    """
    n, last = mu.shape[0], first + 3 * mu.shape[0]
    own, free = progress.scratch[0], progress.scratch[1]
    ahead = u[first:last]
    if progress.least[0] <= tolerance:
        return CONVERGED, 0
    for sweep in range(1, sweeps + 1):
        alpha = progress.alpha[0]
        change, size = 0.0, 0.0
        for k in range(n):
            i = first + 3 * k
            block = w[i : i + 3, i : i + 3]
            open_block(block, r, u, i, own, free)
            if block[0, 0] > 0.0:
                dissipate(law, block, free, mu[k], own)
            else:  # nothing yields along the normal: no force could part it
                own[:] = 0.0
            if alpha != 1.0:
                for c in range(3):
                    own[c] = r[i + c] + alpha * (own[c] - r[i + c])
                project_cone(own, mu[k], own)
            for c in range(3):
                size += own[c] ** 2
            change = close_block(w, r, ahead, i, first, last, own, change)
        progress.alpha[0] = relaxation.floor + relaxation.decay * (alpha - relaxation.floor)
        if not size <= bound * bound:
            return DIVERGED, sweep
        still = change <= STILL * STILL * size
        near = change <= (NEAR * tolerance) ** 2 * size
        if still or near or sweep % OFTEN == 0 or sweep == sweeps:
            if _residual(w, b, mu, r, u, first, progress) <= tolerance:
                # u has gathered roundings: judge by a fresh one
                set_offset(w, b, r, u, first, last)
                progress.least[0] = np.inf
                if _residual(w, b, mu, r, u, first, progress) <= tolerance:
                    return CONVERGED, sweep
            if still:
                return STALLED, sweep
    return CONTINUE, sweeps


@inlined
def _residual(w, b, mu, r, u, first, progress):
    """Relative residual of r, infinite for zero forces that are wrong; the least makes r the best."""
    error, _ = relative_natural_map(w, b, mu, r, u, first, mu.shape[0], progress.scratch)
    if error < progress.least[0]:
        progress.least[0] = error
        for i in range(3 * mu.shape[0]):
            progress.best[i] = r[first + i]
    return error


def solve(
    problem: ContactProblem,
    stop: Stop,
    *,
    printed: bool = False,
    start: float = 1.0,
    decay: float = 1.0,
    floor: float = 1.0,
) -> ContactResult:
    """Sweep until the residual is at most `stop.tolerance`; an iteration is a sweep.

    printed: the least of (28) on the ellipse, which solves another problem where W_nt is not 0; it ends
        "stalled" where it rests
    start, decay, floor: see `Relaxation`

    Otherwise gives back the force of the least residual. Raises InputError for a relaxation that is not
    between 0 and 2 and a decay that is not between 0 and 1.
    """
    began = perf_counter()
    for name, value in (("start", start), ("floor", floor)):
        if not 0.0 < value < 2.0:
            raise InputError(f"{name} = {value}: a relaxation must be above 0 and below 2")
    if not 0.0 <= decay <= 1.0:
        raise InputError(f"decay = {decay}: it must be between 0 and 1")
    relaxation = Relaxation(float(start), float(decay), float(floor))
    w, b, mu, r = np.ascontiguousarray(problem.w), problem.b, problem.mu, starting_force(problem)
    n = problem.n_contacts
    progress, u = make_progress(n), np.zeros(3 * n)
    begin(w, b, mu, r, u, 0, relaxation, progress)
    chunk = stop.max_iterations
    if math.isfinite(stop.seconds):
        chunk = max(1, int(CHUNK / (9 * n * n + 1)))
    code, done, bound = CONTINUE, 0, runaway(problem)
    law = ELLIPSE if printed else COULOMB
    reason: Reason | None = None
    while code == CONTINUE and done < stop.max_iterations:
        if done and perf_counter() - began >= stop.seconds:
            reason = "time"
            break
        most = min(chunk, stop.max_iterations - done)
        code, sweeps = advance(law, w, b, mu, r, u, 0, relaxation, stop.tolerance, bound, most, progress)
        done += sweeps
    if not (printed and code == STALLED):
        r = progress.best
    return judge(problem, stop, r, done, reason or REASONS[code], began)
