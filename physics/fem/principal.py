"""Isotropic laws in principal stretches: F = U diag(s) V^T, and what a law says of the three stretches s.

U and V are rotations, s_1 >= s_2 >= |s_3|, and s_3 has the sign of det F: so an inverted element is nothing
special. With Psi_i, Psi_ij the slopes of the energy density over the stretches, dP/dF splits in the axes
U, V: Psi_ij between stretches, and for each pair i, j

    (Psi_i - Psi_j) / (s_i - s_j) for dF_ij = dF_ji,    (Psi_i + Psi_j) / (s_i + s_j) for dF_ij = -dF_ji,

which laws give without the quotients. Source: Smith, de Goes & Kim, Analytic eigensystems for isotropic
distortion energies (ACM TOG 38, 2019).
"""

import math

import numpy as np

from palpo.physics.numerics.kernels import inlined, kernel

ENERGY, SLOPE, CURVATURE, CROSS, EVEN, ODD = 0, 1, 4, 7, 10, 13
"""Where a law writes Psi; Psi_i; Psi_ii; and, each by the axis that the pair lacks: Psi_ij, and what dF_ij
meets with dF_ji alike and opposite."""
RESPONSE = 16
"""How many numbers that are."""
SWEEPS = 12
"""Of Jacobi's rotations, which converge quadratically: three to five are enough."""
ORTHOGONAL = 1e-15
NOTHING = 1e-150
"""Length of a column that tells no direction."""
LEAST, MOST = 0.4, 2.0
"""J between which a change of volume meets logarithms. Beyond, its tension stays: a barrier without end would
throw an element that one step has turned inside out farther than it came."""


@inlined
def _rotate(b, v, p, q):
    """Make columns p and q of b (3, 3) orthogonal by turning them, and those of v; whether they were not."""
    alpha = b[0, p] * b[0, p] + b[1, p] * b[1, p] + b[2, p] * b[2, p]
    beta = b[0, q] * b[0, q] + b[1, q] * b[1, q] + b[2, q] * b[2, q]
    gamma = b[0, p] * b[0, q] + b[1, p] * b[1, q] + b[2, p] * b[2, q]
    if not gamma * gamma > ORTHOGONAL * ORTHOGONAL * alpha * beta:
        return False
    zeta = (beta - alpha) / (2.0 * gamma)
    t = math.copysign(1.0, zeta) / (abs(zeta) + math.sqrt(1.0 + zeta * zeta))
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = c * t
    for i in range(3):
        b[i, p], b[i, q] = c * b[i, p] - s * b[i, q], s * b[i, p] + c * b[i, q]
        v[i, p], v[i, q] = c * v[i, p] - s * v[i, q], s * v[i, p] + c * v[i, q]
    return True


@inlined
def _order(b, v, p, q):
    """The longer of columns p and q first."""
    alpha = b[0, p] * b[0, p] + b[1, p] * b[1, p] + b[2, p] * b[2, p]
    beta = b[0, q] * b[0, q] + b[1, q] * b[1, q] + b[2, q] * b[2, q]
    if beta > alpha:
        for i in range(3):
            # the sign keeps V a rotation
            b[i, p], b[i, q] = b[i, q], -b[i, p]
            v[i, p], v[i, q] = v[i, q], -v[i, p]


@kernel
def decompose(f, u, v, s):
    """F = U diag(s) V^T of gradients f (k, 3, 3): u, v (k, 3, 3) rotations, s (k, 3); one-sided Jacobi."""
    b = np.empty((3, 3))
    for e in range(f.shape[0]):
        r, w = u[e], v[e]
        for i in range(3):
            for j in range(3):
                b[i, j] = f[e, i, j]
                w[i, j] = 1.0 if i == j else 0.0
        for _ in range(SWEEPS):
            turned = _rotate(b, w, 0, 1)
            turned |= _rotate(b, w, 0, 2)
            turned |= _rotate(b, w, 1, 2)
            if not turned:
                break
        _order(b, w, 0, 1)
        _order(b, w, 0, 2)
        _order(b, w, 1, 2)
        size = math.sqrt(b[0, 0] * b[0, 0] + b[1, 0] * b[1, 0] + b[2, 0] * b[2, 0])
        for i in range(3):
            r[i, 0] = b[i, 0] / size if size > NOTHING else (1.0 if i == 0 else 0.0)
        along = r[0, 0] * b[0, 1] + r[1, 0] * b[1, 1] + r[2, 0] * b[2, 1]
        x, y, z = b[0, 1] - along * r[0, 0], b[1, 1] - along * r[1, 0], b[2, 1] - along * r[2, 0]
        size = math.sqrt(x * x + y * y + z * z)
        if not size > NOTHING:
            # any direction across
            least = 0
            for i in range(1, 3):
                if abs(r[i, 0]) < abs(r[least, 0]):
                    least = i
            along = r[least, 0]
            x, y, z = -along * r[0, 0], -along * r[1, 0], -along * r[2, 0]
            x += 1.0 if least == 0 else 0.0
            y += 1.0 if least == 1 else 0.0
            z += 1.0 if least == 2 else 0.0
            size = math.sqrt(x * x + y * y + z * z)
        r[0, 1], r[1, 1], r[2, 1] = x / size, y / size, z / size
        r[0, 2] = r[1, 0] * r[2, 1] - r[2, 0] * r[1, 1]
        r[1, 2] = r[2, 0] * r[0, 1] - r[0, 0] * r[2, 1]
        r[2, 2] = r[0, 0] * r[1, 1] - r[1, 0] * r[0, 1]
        for j in range(3):
            s[e, j] = r[0, j] * b[0, j] + r[1, j] * b[1, j] + r[2, j] * b[2, j]


@inlined
def put_response(s, e, psi, first, second, volume, first2, mixed, volume2, out):
    """Line e of out (k, RESPONSE) of an energy psi of I = F : F, II = cof F : cof F and J, at s (k, 3),
    of its slopes over them (first, second, volume), and over I twice, I and J, and J twice.
    """
    square = s[e, 0] * s[e, 0] + s[e, 1] * s[e, 1] + s[e, 2] * s[e, 2]
    out[e, ENERGY] = psi
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        a, b, c = s[e, i], s[e, j], s[e, k]
        inside = square - c * c
        out[e, SLOPE + k] = 2.0 * c * (first + second * inside) + volume * a * b
        out[e, CURVATURE + k] = (
            2.0 * (first + second * inside)
            + 4.0 * first2 * c * c
            + 4.0 * mixed * c * a * b
            + volume2 * (a * b) * (a * b)
        )
        out[e, CROSS + k] = (
            4.0 * (first2 + second) * a * b
            + 2.0 * mixed * c * (a * a + b * b)
            + volume2 * a * b * c * c
            + volume * c
        )
        out[e, EVEN + k] = 2.0 * first + 2.0 * second * (c * c - a * b) - volume * c
        out[e, ODD + k] = 2.0 * first + 2.0 * second * (c * c + a * b) + volume * c


@inlined
def volume_law(j, lam, more):
    """lam / 2 ln(J)^2 - more ln J [Pa] and its two slopes over J; beyond LEAST and MOST a straight line."""
    at = min(max(j, LEAST), MOST)
    log = math.log(at)
    slope = (lam * log - more) / at
    curvature = (lam * (1.0 - log) + more) / (at * at) if j == at else 0.0
    return log * (0.5 * lam * log - more) + (j - at) * slope, slope, curvature


@kernel
def add_volume_change(s, lam, more, tension, out):
    """out (k, RESPONSE) += that of an energy lam / 2 ln(J)^2 - more ln J + tension (J - 1), tension (k,)
    [Pa], as `volume_law` has it."""
    for e in range(s.shape[0]):
        j = s[e, 0] * s[e, 1] * s[e, 2]
        value, slope, curvature = volume_law(j, lam, more)
        pull = slope + tension[e]
        out[e, ENERGY] += value + tension[e] * (j - 1.0)
        for k in range(3):
            a, b, c = s[e, (k + 1) % 3], s[e, (k + 2) % 3], s[e, k]
            out[e, SLOPE + k] += pull * a * b
            out[e, CURVATURE + k] += curvature * (a * b) * (a * b)
            out[e, CROSS + k] += curvature * a * b * c * c + pull * c
            out[e, EVEN + k] -= pull * c
            out[e, ODD + k] += pull * c


@kernel
def patch_volume_laws(j, lam, out):
    """out (k, 3): lam / 2 ln(J)^2 [Pa] of J (k,) and its two slopes, as `volume_law` has it."""
    for e in range(j.size):
        out[e, 0], out[e, 1], out[e, 2] = volume_law(j[e], lam, 0.0)
