"""Coulomb's cone, its disc and the local law of one contact.

This is the only place where friction is written down. A contact has rows (n, t1, t2), force r [N] and
gap or offset u at the end of the step [m]: u = W r + b.

    Signorini   0 <= u_n  perp  r_n >= 0
    Coulomb     |r_t| <= mu r_n, sliding opposite to r_t
    together    K* contains u + mu |u_t| n  perp  r in K       (De Saxce & Feng 1998)

The one residual that judges every contact solver: the natural map of the frictional problem.

    e = || r - Proj_K( r - rho (u + mu |u_t| n) ) || / min(|| r ||, rho || b ||)

    u = W r + b,    rho = 1 / mean(diag W)

The map vanishes exactly at solutions (De Saxce & Feng 1998; Acary & Brogliato 2008, ch. 13). What it is
divided by makes e two things at once, and a number without units:

- over |r|, the share of the force that is wrong;
- over rho |b|, the force that the free offset asks for, a backward error (Rigal & Gaches, J. ACM 14, 1967):
  the projection z in the numerator is an exact solution of the problem with another b, farther from it by
  |db| <= e (1 + mu + rho |W|) |b|.

So a force is never solved by its mere size: where no force can part the contacts, or only one out of all
proportion (W singular, friction strong), |r| grows and e over it falls, but no near problem is solved.
"""

from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.numerics.kernels import inlined, kernel

OPEN, STICK, SLIP = 0, 1, 2
"""Status of a contact."""

BIPOTENTIAL, BIPOTENTIAL_PRINTED, PSEUDOPOTENTIAL, PSEUDOPOTENTIAL_PRINTED = range(4)
"""How r and x are joined: by one projection on the cone (001, N. Talbi's thesis, 2.45), or by one on the
half-line and one on the disc (2.43 and 2.44). As printed, the first is the plain projection although rho_n
and rho_t differ, the second has the minus sign of (2.44): neither solves the problem, both are kept to be
compared with."""

LOCAL_STEPS = 40
"""Most Newton steps of a sliding contact: it takes 3 or 4, and where a bracket must be halved some 20."""

SMOOTH = 1e-100
"""Coefficient up to which there is no friction: its square must not vanish beside 1."""

ON_CONE = 1e-12
"""Relative distance from the cone at which a sliding contact is solved."""


@inlined
def project_cone(r, mu, out):
    """out = projection of r, shape (3,), on the cone |r_t| <= mu r_n (EQUATIONS.md, 2, bi-potential).

    The polar cone must be asked first: its points project to the apex, although their tangential part
    may also lie inside the disc of a negative normal part.
    """
    rt = (r[1] * r[1] + r[2] * r[2]) ** 0.5
    if mu * rt <= -r[0]:
        out[0] = 0.0
        out[1] = 0.0
        out[2] = 0.0
    elif rt <= mu * r[0]:
        out[0] = r[0]
        out[1] = r[1]
        out[2] = r[2]
    else:
        excess = (rt - mu * r[0]) / (1.0 + mu * mu)
        out[0] = r[0] + excess * mu
        out[1] = r[1] - excess * r[1] / rt
        out[2] = r[2] - excess * r[2] / rt


@inlined
def scale_to_disc(t1, t2, radius):
    """Factor in [0, 1] that brings the tangential force (t1, t2) into the disc of that radius."""
    length = (t1 * t1 + t2 * t2) ** 0.5
    return radius / length if length > radius else 1.0


@inlined
def de_saxce(x_n, x_1, x_2, mu):
    """x_n + mu |x_t|: the normal displacement that makes Coulomb's law normal to its cone (001, 2.35)."""
    return x_n + mu * (x_1 * x_1 + x_2 * x_2) ** 0.5


@inlined
def augment(formulation, r, x, mu, rho_n, rho_t, star):
    """star (3,) = r - rho (x + mu |x_t| n) for the bi-potential, r - rho x for the pseudo-potentials."""
    if formulation <= BIPOTENTIAL_PRINTED:
        star[0] = r[0] - rho_n * de_saxce(x[0], x[1], x[2], mu)
    else:
        star[0] = r[0] - rho_n * x[0]
    star[1] = r[1] - rho_t * x[1]
    star[2] = r[2] - rho_t * x[2]


@inlined
def correct(formulation, star, mu, rho_n, rho_t, out):
    """out = the augmented force star brought back to the cone |r_t| <= mu r_n, shape (3,).

    With rho_n != rho_t the bi-potential's projection is that of the metric 1 / rho: scaled by
    stretch = sqrt(rho_n / rho_t), the tangent plane has the plain projection on a cone of mu stretch. The
    plain one, as printed, has fixed points with x_n = mu |x_t| (rho_t / rho_n - 1).
    """
    if formulation == BIPOTENTIAL:
        stretch = (rho_n / rho_t) ** 0.5
        out[0] = star[0]
        out[1] = star[1] * stretch
        out[2] = star[2] * stretch
        project_cone(out, mu * stretch, out)
        out[1] /= stretch
        out[2] /= stretch
    elif formulation == BIPOTENTIAL_PRINTED:
        project_cone(star, mu, out)
    else:
        out[0] = max(0.0, star[0])
        scale = scale_to_disc(star[1], star[2], mu * out[0])
        if formulation == PSEUDOPOTENTIAL_PRINTED and scale < 1.0:
            scale = -scale
        out[1] = scale * star[1]
        out[2] = scale * star[2]


@inlined
def correction_slope(formulation, star, mu, slope):
    """slope (3, 3) = d correct / d star, of the bi-potential with rho_n = rho_t or of the pseudo-potentials.

    Sliding along e, with the projected normal force p_n and v = n + mu e (EQUATIONS.md, 2):
    bi-potential v v^T / (1 + mu^2), pseudo-potential v n^T, and mu p_n / |star_t| across e in both.
    """
    rt = (star[1] * star[1] + star[2] * star[2]) ** 0.5
    bi = formulation == BIPOTENTIAL
    slope[:] = 0.0
    if (bi and mu * rt <= -star[0]) or (not bi and star[0] <= 0.0):
        return
    if rt <= mu * star[0]:
        slope[0, 0] = 1.0
        slope[1, 1] = 1.0
        slope[2, 2] = 1.0
        return
    e1, e2 = star[1] / rt, star[2] / rt
    if bi:
        normal = 1.0 / (1.0 + mu * mu)
        along = mu * normal
        p_n = (star[0] + mu * rt) * normal
    else:
        normal, along, p_n = 1.0, 0.0, star[0]
    across = mu * p_n / rt
    slope[0, 0] = normal
    slope[0, 1] = along * e1
    slope[0, 2] = along * e2
    slope[1, 0] = mu * normal * e1
    slope[1, 1] = mu * along * e1 * e1 + across * e2 * e2
    slope[1, 2] = (mu * along - across) * e1 * e2
    slope[2, 0] = mu * normal * e2
    slope[2, 1] = slope[1, 2]
    slope[2, 2] = mu * along * e2 * e2 + across * e1 * e1


@inlined
def contact_status(r_n, star, mu):
    """OPEN, STICK or SLIP of a contact of normal force r_n: where star = r - rho (x + mu |x_t| n) lies."""
    rt = (star[1] * star[1] + star[2] * star[2]) ** 0.5
    if r_n <= 0.0 or mu * rt <= -star[0]:
        return OPEN
    return STICK if rt <= mu * star[0] else SLIP


@inlined
def _slide(w, b, mu, r):
    """r (3,) = the force of a contact that neither opens nor sticks, w_nn > 0, mu > 0, b_n < 0.

    With the normal row eliminated, r_n = a - e . r_t, sliding is (S + l I) r_t = -c for the l >= 0 at which
    |r_t| = mu r_n: a trust region's step (More & Sorensen, SIAM J. Sci. Stat. Comput. 1983) but for the
    radius, which the step itself has. Newton's method on mu r_n / |r_t| - 1, nearly linear in l, bracketed.
    """
    a, e1, e2 = -b[0] / w[0, 0], w[0, 1] / w[0, 0], w[0, 2] / w[0, 0]
    s11, s12, s22 = w[1, 1] - w[0, 1] * e1, w[1, 2] - w[0, 1] * e2, w[2, 2] - w[0, 2] * e2
    c1, c2 = b[1] + w[0, 1] * a, b[2] + w[0, 2] * a
    # rounding may leave S a little negative
    low, high = max(0.0, -min(s11, s22)), np.inf
    multiplier = max((c1 * c1 + c2 * c2) ** 0.5 / (mu * a) - 0.5 * (s11 + s22), 1e-9 * (s11 + s22) + low)
    r[0], r[1], r[2] = a, 0.0, 0.0
    for _ in range(LOCAL_STEPS):
        d1, d2 = s11 + multiplier, s22 + multiplier
        det = d1 * d2 - s12 * s12
        if not det > 0.0:
            multiplier = 2.0 * multiplier + 1e-9 * (abs(s11) + abs(s22))
            continue
        t1, t2 = (s12 * c2 - d2 * c1) / det, (s12 * c1 - d1 * c2) / det
        size, limit = (t1 * t1 + t2 * t2) ** 0.5, mu * (a - e1 * t1 - e2 * t2)
        r[0], r[1], r[2] = limit / mu, t1, t2
        if size == 0.0:
            break
        apart = limit / size - 1.0
        if abs(apart) <= ON_CONE:
            break
        if apart < 0.0:
            low = max(low, multiplier)
        else:
            high = min(high, multiplier)
        v1, v2 = (s12 * t2 - d2 * t1) / det, (s12 * t1 - d1 * t2) / det
        slope = (-mu * (e1 * v1 + e2 * v2) - limit * (t1 * v1 + t2 * v2) / (size * size)) / size
        step = multiplier - apart / slope if slope > 0.0 else -1.0
        if not low < step < high:
            step = 0.5 * (low + high) if high < np.inf else 2.0 * multiplier + s11 + s22
        if step == multiplier:
            break
        multiplier = step
    if not r[0] > 0.0:
        r[0], r[1], r[2] = 0.0, 0.0, 0.0


@inlined
def solve_contact(w, b, mu, r):
    """Force r, shape (3,), of a single contact u = w r + b with w (3, 3) positive semidefinite, w_nn > 0.

    Exact: to rounding if open or sticking, to ON_CONE if sliding. Returns OPEN, STICK or SLIP.
    """
    if b[0] >= 0.0:
        r[0] = 0.0
        r[1] = 0.0
        r[2] = 0.0
        return OPEN
    if mu <= SMOOTH:
        r[0] = -b[0] / w[0, 0]
        r[1] = 0.0
        r[2] = 0.0
        return SLIP
    # stick: w s = -b by elimination of the symmetric 3x3 matrix
    l10 = w[1, 0] / w[0, 0]
    l20 = w[2, 0] / w[0, 0]
    d1 = w[1, 1] - l10 * w[1, 0]
    if d1 > 0.0:
        c21 = w[2, 1] - l20 * w[1, 0]
        d2 = w[2, 2] - l20 * w[2, 0] - c21 * c21 / d1
        if d2 > 0.0:
            y1 = -b[1] + l10 * b[0]
            y2 = -b[2] + l20 * b[0] - c21 / d1 * y1
            s2 = y2 / d2
            s1 = (y1 - c21 * s2) / d1
            s0 = (-b[0] - w[1, 0] * s1 - w[2, 0] * s2) / w[0, 0]
            if s0 > 0.0 and s1 * s1 + s2 * s2 <= mu * mu * s0 * s0:
                r[0] = s0
                r[1] = s1
                r[2] = s2
                return STICK
    _slide(w, b, mu, r)
    return SLIP if r[0] > 0.0 else OPEN


RUNAWAY = 1e12
"""Multiple of |b| / mean(diag W), the force of the free offset, past which a force is no answer: roundings of
W r are all that its offset is made of."""


@inlined
def mean_stiffness(w, first, n_contacts):
    """rho = 1 / mean(diag W) [N/m]; 1 where W vanishes, so that what no force can mend still shows."""
    mean = 0.0
    for i in range(first, first + 3 * n_contacts):
        mean += w[i, i]
    return 3 * n_contacts / mean if mean > 0.0 else 1.0


@kernel
def natural_map_norm(w, mu, r, u, first, n_contacts, scratch):
    """(|| r - Proj_K(r - rho (u + mu |u_t| n)) ||, || r ||) of the contacts in the rows from `first` on [N].

    u = W r + b over those rows; mu (n_contacts,); scratch: (2, 3) at least.
    """
    rho = mean_stiffness(w, first, n_contacts)
    error, size = 0.0, 0.0
    star, image = scratch[0], scratch[1]
    for k in range(n_contacts):
        i = first + 3 * k
        augment(BIPOTENTIAL_PRINTED, r[i : i + 3], u[i : i + 3], mu[k], rho, rho, star)
        project_cone(star, mu[k], image)
        for c in range(3):
            error += (r[i + c] - image[c]) ** 2
            size += r[i + c] ** 2
    return error**0.5, size**0.5


@kernel
def asked_force(w, b, first, n_contacts):
    """rho |b| [N] of the contacts in the rows from `first` on: the force that their free offset asks for."""
    square = 0.0
    for i in range(first, first + 3 * n_contacts):
        square += b[i] * b[i]
    return mean_stiffness(w, first, n_contacts) * square**0.5


@inlined
def relative_error(error, size, asked):
    """The natural map's `error` over the lesser of |r| = `size` and `asked` [N]; infinite over nothing."""
    if error == 0.0:
        return 0.0
    over = min(size, asked)
    return error / over if over > 0.0 else np.inf


@kernel
def relative_natural_map(w, b, mu, r, u, first, n_contacts, scratch):
    """(e, || r || [N]) of the contacts in the rows from `first` on: infinite for zero forces that are wrong.

    u = W r + b over those rows; mu (n_contacts,); scratch: (2, 3) at least.
    """
    error, size = natural_map_norm(w, mu, r, u, first, n_contacts, scratch)
    return relative_error(error, size, asked_force(w, b, first, n_contacts)), size


@kernel
def contact_statuses(w, mu, r, u, status):
    """status (n,) = OPEN, STICK or SLIP of each contact, by the branch of the natural map's projection."""
    n = mu.shape[0]
    rho, star = mean_stiffness(w, 0, n), np.empty(3)
    for k in range(n):
        i = 3 * k
        augment(BIPOTENTIAL_PRINTED, r[i : i + 3], u[i : i + 3], mu[k], rho, rho, star)
        status[k] = contact_status(r[i], star, mu[k])


def natural_map_residual(
    w: NDArray[np.float64], b: NDArray[np.float64], mu: NDArray[np.float64], r: NDArray[np.float64]
) -> float:
    """e of the force r, shape (3 n,); infinite for zero forces that are wrong."""
    return _judged(diagonal_only(w), b, mu, r, w @ r + b)[0]


def relative_residual(problem: AnyProblem, r: NDArray[np.float64]) -> float:
    """e of r, shape (3 n,); infinite for zero forces that are wrong."""
    return natural_map_residual(problem.w, problem.b, problem.mu, r)


Array = NDArray[np.float64]


def _judged(w: Any, b: Array, mu: Array, r: Array, u: Array) -> tuple[float, float]:
    error, size = relative_natural_map(w, b, mu, r, u, 0, len(mu), np.zeros((2, 3)))
    return float(error), float(size)


def diagonal_only(w: Any) -> NDArray[np.float64]:
    """What the kernels here need of W, dense or sparse: a view that is right on the diagonal alone."""
    return np.broadcast_to(w.diagonal()[:, None], w.shape)


def runaway(problem: AnyProblem) -> float:
    """|r| past which a solver has diverged [N]; a warm start may be as large as it is."""
    trace = float(problem.w.diagonal().sum())
    free = float(np.linalg.norm(problem.b)) * (problem.w.shape[0] / trace if trace > 0.0 else 1.0)
    warm = 0.0 if problem.warm is None else float(np.linalg.norm(problem.warm))
    return RUNAWAY * (free + warm)


def judge(
    problem: AnyProblem,
    stop: Stop,
    r: NDArray[np.float64],
    iterations: int,
    reason: Reason,
    started: float,
    u: NDArray[np.float64] | None = None,
) -> ContactResult:
    """The result of a solver that gives back r (3 n,), finite and in the cones, and says why it ended.

    Whether it has converged is for the residual to say: a reason "converged" that the residual does not
    bear out becomes "stalled", and one that it does replaces any other. A force past `runaway` has diverged.
    started: perf_counter() at the start. u: the offset under r, shape (3 n,), where it is not W r + b.
    """
    status = np.zeros(problem.n_contacts, np.int32)
    if u is None:
        u = problem.w @ r + problem.b
    w = diagonal_only(problem.w)
    residual, size = _judged(w, problem.b, problem.mu, r, u)
    contact_statuses(w, problem.mu, r, u, status)
    diverged = size > runaway(problem)
    converged = residual <= stop.tolerance and not diverged
    if converged:
        reason = "converged"
    elif diverged:
        reason = "diverged"
    elif reason == "converged":
        reason = "stalled"
    return ContactResult(r, status, iterations, residual, converged, reason, perf_counter() - started)
