"""Coulomb's cone, its disc and the local law of one contact.

This is the only place where friction is written down. A contact has rows (n, t1, t2), force r [N] and
gap or offset u at the end of the step [m]: u = W r + b.

    Signorini   0 <= u_n  perp  r_n >= 0
    Coulomb     |r_t| <= mu r_n, sliding opposite to r_t
    together    K* contains u + mu |u_t| n  perp  r in K       (De Saxce & Feng 1998)
"""

from numba import njit

OPEN, STICK, SLIP = 0, 1, 2
"""Status of a contact."""

LOCAL_SWEEPS = 30
"""Most inner iterations of a sliding contact; the outer sweeps finish what is left."""


@njit(inline="always")
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


@njit(inline="always")
def scale_to_disc(t1, t2, radius):
    """Factor in [0, 1] that brings the tangential force (t1, t2) into the disc of that radius."""
    length = (t1 * t1 + t2 * t2) ** 0.5
    return radius / length if length > radius else 1.0


@njit(inline="always")
def solve_contact(w, b, mu, r):
    """Force r, shape (3,), of a single contact u = w r + b with w (3, 3) positive definite.

    Exact for open and sticking contacts; a sliding one is found by alternating the normal law and the
    projected tangential step, starting from the force it is given. Returns OPEN, STICK or SLIP.
    """
    if b[0] >= 0.0:
        r[0] = 0.0
        r[1] = 0.0
        r[2] = 0.0
        return OPEN
    if mu <= 0.0:
        r[0] = -b[0] / w[0, 0]
        r[1] = 0.0
        r[2] = 0.0
        return SLIP
    # stick: w s = -b by elimination of the symmetric 3x3 matrix
    l10 = w[1, 0] / w[0, 0]
    l20 = w[2, 0] / w[0, 0]
    d1 = w[1, 1] - l10 * w[1, 0]
    c21 = w[2, 1] - l20 * w[1, 0]
    d2 = w[2, 2] - l20 * w[2, 0] - c21 * c21 / d1
    if d1 > 0.0 and d2 > 0.0:
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
    half = 0.5 * (w[1, 1] + w[2, 2])
    spread = (0.25 * (w[1, 1] - w[2, 2]) ** 2 + w[1, 2] * w[1, 2]) ** 0.5
    rho = 1.0 / (half + spread)
    for _ in range(LOCAL_SWEEPS):
        n, t1, t2 = r[0], r[1], r[2]
        r[0] = max(0.0, -(b[0] + w[0, 1] * t1 + w[0, 2] * t2) / w[0, 0])
        p1 = t1 - rho * (b[1] + w[1, 0] * r[0] + w[1, 1] * t1 + w[1, 2] * t2)
        p2 = t2 - rho * (b[2] + w[2, 0] * r[0] + w[2, 1] * t1 + w[2, 2] * t2)
        scale = scale_to_disc(p1, p2, mu * r[0])
        r[1] = scale * p1
        r[2] = scale * p2
        change = abs(r[0] - n) + abs(r[1] - t1) + abs(r[2] - t2)
        if change <= 1e-10 * abs(r[0]):
            break
    return SLIP if r[0] > 0.0 else OPEN
