"""Ogden's law, in a form that is defined for every deformation.

    Psi(F) = sum_p m_p / a_p (r_1^a_p + r_2^a_p + r_3^a_p - 3) - more ln J - (pull - more) (J - 1)
             + lam/2 ln(J)^2,

m_p = |mu_p|, a_p = |alpha_p|, J = det F; r are the principal stretches s_i where alpha_p is positive, and
the products s_j s_k of the two others where it is negative: where the volume stays, s_j s_k = 1 / s_i, and
this is the law of the textbooks, sum mu_p / alpha_p (s_1^alpha_p + s_2^alpha_p + s_3^alpha_p - 3). But a
product neither grows without bound in a flat element nor keeps an inverted one from coming back. At rest it
is without stress and has Hooke's stiffness of lam and mu = sum mu_p alpha_p / 2. A power is one of r^2, and
goes on as its Taylor polynomial of second degree in r^2 where it would be a thousand times as stiff as at
rest, and below r = 0.05: so it is even in r, as smooth, and never overflows.
Sources: Ogden, Large deformation isotropic elasticity (Proc. R. Soc. A 326, 1972); for the products, which
make the energy polyconvex, Ball, Convexity conditions and existence theorems in nonlinear elasticity (Arch.
Rational Mech. Anal. 63, 1977); the terms in J, with
pull and more of IsotropicLaw, as in neo_hookean.py.
"""

import math

import numpy as np

from palpo.physics.fem.law import STIFFEST, IsotropicLaw, Shape, refuse_shape
from palpo.physics.fem.principal import CROSS, CURVATURE, ENERGY, EVEN, ODD, SLOPE, put_response
from palpo.physics.numerics.kernels import inlined, kernel

SMALLEST = 0.05
"""r down to which a power is one."""
LARGEST = 50.0
"""Largest exponent, either sign."""
ALIKE = 1e-5
"""Relative difference of two r^2 below which their slopes' quotient is the curvature between them."""
TERM = 5
"""Numbers of a term: m, a, the least and the largest r^2 of the power, 1 for stretches or -1 for products."""


class Ogden(IsotropicLaw):
    """See IsotropicLaw; shape: of each term its share mu_p alpha_p / (2 mu) of the shear modulus, positive,
    and its exponent alpha_p; the shares sum to 1."""

    def __init__(self, lam: float, mu: float, shape: Shape) -> None:
        shares, exponents = shape[::2], shape[1::2]
        if (
            not shape
            or len(shape) % 2
            or not all(share > 0.0 for share in shares)
            or not abs(sum(shares) - 1.0) < 1e-9
            or not all(0.0 < abs(exponent) <= LARGEST for exponent in exponents)
        ):
            raise refuse_shape(
                "ogden", shape,
                f"pairs of a positive share, 1 together, and an exponent from -{LARGEST:g} to {LARGEST:g}, "
                "not 0",
            )  # fmt: skip
        terms: list[float] = []
        pull = more = 0.0
        for share, alpha in zip(shares, exponents, strict=True):
            a = abs(alpha)
            m = 2.0 * mu * share / a
            turn = STIFFEST ** (1.0 / (a - 2.0)) if abs(a - 2.0) > 1e-2 else math.inf if a > 2.0 else 0.0
            low = max(SMALLEST, turn if a < 2.0 else 0.0)
            terms += [m, a, low * low, turn * turn if a > 2.0 else math.inf, math.copysign(1.0, alpha)]
            pull += m if alpha > 0.0 else 2.0 * m
            more += m if alpha > 0.0 else 2.0 * m - m * a
        super().__init__(ogden_response, np.array(terms), lam, more, pull)


@inlined
def _power(constants, first, c):
    """m / a (c^(a / 2) - 1) of a term and its two slopes over c."""
    m, a = constants[first], constants[first + 1]
    at = min(max(c, constants[first + 2]), constants[first + 3])
    over = c - at
    slope = 0.5 * m * math.exp((0.5 * a - 1.0) * math.log(at))
    curvature = (0.5 * a - 1.0) * slope / at
    value = 2.0 * slope * at / a - m / a
    return value + over * (slope + 0.5 * over * curvature), slope + over * curvature, curvature


@kernel
def ogden_response(constants, s, out):
    """See IsotropicLaw."""
    c, w1, w2 = np.empty(3), np.empty(3), np.empty(3)
    for e in range(s.shape[0]):
        put_response(s, e, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, out)
        for first in range(0, constants.size, TERM):
            products = constants[first + 4] < 0.0
            for k in range(3):
                r = s[e, (k + 1) % 3] * s[e, (k + 2) % 3] if products else s[e, k]
                c[k] = r * r
                value, w1[k], w2[k] = _power(constants, first, c[k])
                out[e, ENERGY] += value
            for k in range(3):
                i, j = (k + 1) % 3, (k + 2) % 3
                a, b, d = s[e, i], s[e, j], s[e, k]
                apart, both = c[i] - c[j], c[i] + c[j]
                if abs(apart) > ALIKE * both:
                    quotient = (w1[i] - w1[j]) / apart
                else:
                    quotient = _power(constants, first, 0.5 * both)[2]
                mean = w1[i] + w1[j]
                if products:
                    aa, bb, dd = a * a, b * b, d * d
                    out[e, SLOPE + k] += 2.0 * d * (w1[i] * bb + w1[j] * aa)
                    out[e, CURVATURE + k] += 2.0 * (w1[i] * bb + w1[j] * aa)
                    out[e, CURVATURE + k] += 4.0 * dd * (w2[i] * bb * bb + w2[j] * aa * aa)
                    out[e, CROSS + k] += 4.0 * a * b * (w1[k] + c[k] * w2[k])
                    out[e, EVEN + k] += dd * (mean + dd * quotient * (a + b) * (a + b)) - 2.0 * w1[k] * a * b
                    out[e, ODD + k] += dd * (mean + dd * quotient * (a - b) * (a - b)) + 2.0 * w1[k] * a * b
                else:
                    out[e, SLOPE + k] += 2.0 * d * w1[k]
                    out[e, CURVATURE + k] += 2.0 * w1[k] + 4.0 * c[k] * w2[k]
                    out[e, EVEN + k] += mean + quotient * (a + b) * (a + b)
                    out[e, ODD + k] += mean + quotient * (a - b) * (a - b)
