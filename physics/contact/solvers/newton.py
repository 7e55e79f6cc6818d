"""Newton's method on the equations of one contact (001, N. Talbi's thesis, 2.8.1; Joli & Feng 2008).

    Z = r - Proj(r*) = 0,    x = W_aa r + x_ab,    (A + B W_aa) dr = -Z + B f1,    f1 = x - W_aa r - x_ab

with A = I - D, B = D rho (I + mu n x_t^T / |x_t|) and D the slope of the projection (EQUATIONS.md, 2: 001
prints the condensation with B x, which never converges). x is eliminated here, so f1 = 0. The equations are
only semi-smooth, so each step is halved until |Z| falls; where it does not fall, or the matrix is singular,
one Uzawa step, r = Proj(r*), takes its place. It also ends the visit, and so leaves r in the cone.
"""

from palpo.physics.contact.laws import BIPOTENTIAL, augment, correct, correction_slope
from palpo.physics.numerics.kernels import inlined, kernel

HALVINGS = 8
"""Shortest step of the line search: 2^-8 of Newton's."""

ROUNDING = 1e-15
"""|Z| / |r| at which there is nothing left to gain."""


@inlined
def solve3(a, b, out):
    """out = a^-1 b by Cramer's rule, a (3, 3); False, and out as it was, where a is singular to rounding."""
    c00 = a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1]
    c01 = a[1, 2] * a[2, 0] - a[1, 0] * a[2, 2]
    c02 = a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0]
    size = 0.0
    for i in range(3):
        for j in range(3):
            size = max(size, abs(a[i, j]))
    det = a[0, 0] * c00 + a[0, 1] * c01 + a[0, 2] * c02
    if not abs(det) > 1e-14 * size * size * size:
        return False
    c10 = a[0, 2] * a[2, 1] - a[0, 1] * a[2, 2]
    c11 = a[0, 0] * a[2, 2] - a[0, 2] * a[2, 0]
    c12 = a[0, 1] * a[2, 0] - a[0, 0] * a[2, 1]
    c20 = a[0, 1] * a[1, 2] - a[0, 2] * a[1, 1]
    c21 = a[0, 2] * a[1, 0] - a[0, 0] * a[1, 2]
    c22 = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    b0, b1, b2 = b[0] / det, b[1] / det, b[2] / det
    out[0] = c00 * b0 + c10 * b1 + c20 * b2
    out[1] = c01 * b0 + c11 * b1 + c21 * b2
    out[2] = c02 * b0 + c12 * b1 + c22 * b2
    return True


@kernel
def residual3(formulation, block, free, mu, rho_n, rho_t, r, x, star, image, z):
    """z = Z(r) of a contact, with x, star and image on the way; returns |z|^2."""
    for c in range(3):
        x[c] = block[c, 0] * r[0] + block[c, 1] * r[1] + block[c, 2] * r[2] + free[c]
    augment(formulation, r, x, mu, rho_n, rho_t, star)
    correct(formulation, star, mu, rho_n, rho_t, image)
    s = 0.0
    for c in range(3):
        z[c] = r[c] - image[c]
        s += z[c] * z[c]
    return s


@kernel
def newton_contact(formulation, most, block, free, mu, rho_n, rho_t, r, work):
    """Force r, shape (3,), of the contact x = block r + free, by at most `most` steps from where it is.

    The bi-potential takes one rho in all directions, rho_n = rho_t. work (13, 3).
    """
    x, star, image, z, dr, trial = work[0], work[1], work[2], work[3], work[4], work[5]
    slope, tangent = work[6:9], work[9:12]
    error = residual3(formulation, block, free, mu, rho_n, rho_t, r, x, star, image, z)
    for _ in range(most):
        if error <= ROUNDING * ROUNDING * (r[0] * r[0] + r[1] * r[1] + r[2] * r[2]):
            break
        correction_slope(formulation, star, mu, slope)
        _tangent(formulation, block, mu, rho_n, rho_t, x, slope, tangent, work[12])
        accepted = False
        if solve3(tangent, z, dr):
            length = 1.0
            for _ in range(HALVINGS):
                for c in range(3):
                    trial[c] = r[c] - length * dr[c]
                found = residual3(formulation, block, free, mu, rho_n, rho_t, trial, x, star, image, z)
                if found < error:
                    accepted = True
                    error = found
                    for c in range(3):
                        r[c] = trial[c]
                    break
                length *= 0.5
        if not accepted:
            residual3(formulation, block, free, mu, rho_n, rho_t, r, x, star, image, z)
            for c in range(3):
                r[c] = image[c]
            error = residual3(formulation, block, free, mu, rho_n, rho_t, r, x, star, image, z)
    for c in range(3):
        r[c] = image[c]


@inlined
def _tangent(formulation, block, mu, rho_n, rho_t, x, slope, out, row):
    """out = A + B W_aa = I - D (I - rho (I + mu n e^T) W_aa), e = x_t / |x_t|, 0 for pseudo."""
    xt = (x[1] * x[1] + x[2] * x[2]) ** 0.5
    e1, e2 = 0.0, 0.0
    if formulation == BIPOTENTIAL and xt > 0.0:
        e1, e2 = mu * x[1] / xt, mu * x[2] / xt
    for j in range(3):
        row[0] = (1.0 if j == 0 else 0.0) - rho_n * (block[0, j] + e1 * block[1, j] + e2 * block[2, j])
        row[1] = (1.0 if j == 1 else 0.0) - rho_t * block[1, j]
        row[2] = (1.0 if j == 2 else 0.0) - rho_t * block[2, j]
        for i in range(3):
            s = slope[i, 0] * row[0] + slope[i, 1] * row[1] + slope[i, 2] * row[2]
            out[i, j] = (1.0 if i == j else 0.0) - s
