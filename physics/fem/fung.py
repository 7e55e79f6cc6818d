"""Fung's exponential law of soft tissue, isotropic, in a form that is defined for every deformation.

    Psi(F) = mu / (2 b) (e^Q - 1) + lam/2 ln(J)^2 - mu ln J + mu (J - 1),    Q = b (I - 3 - 2 (J - 1)),

I = F : F, J = det F: at rest without stress and with Hooke's stiffness of lam and mu. Where the volume stays
it is Demiray's form of Fung's law, mu / (2 b) (e^(b (I - 3)) - 1), whose stiffness grows by e each time that
I grows by 1 / b. From a thousand times the stiffness on, e^Q goes on as its Taylor polynomial of second
degree, so that no step of a body overflows.
Sources: Fung, Biomechanics (Springer 1993), 7.5; Demiray, A note on the elasticity of soft biological tissues
(J. Biomech. 5, 1972).
"""

import math

import numpy as np

from palpo.physics.fem.law import STIFFEST, IsotropicLaw, Shape, refuse_shape
from palpo.physics.fem.principal import put_response
from palpo.physics.numerics.kernels import kernel

LAST = math.log(STIFFEST)
"""Q up to which the exponential is one."""
LARGEST = 1000.0


class Fung(IsotropicLaw):
    """See IsotropicLaw; shape: b, above 0."""

    def __init__(self, lam: float, mu: float, shape: Shape) -> None:
        if len(shape) != 1 or not 0.0 < shape[0] <= LARGEST:
            raise refuse_shape("fung", shape, f"its exponent, above 0 and at most {LARGEST:g}")
        super().__init__(fung_response, np.array([mu, shape[0]]), lam, mu, 0.0)


@kernel
def fung_response(constants, s, out):
    """See IsotropicLaw."""
    mu, b = constants[0], constants[1]
    for e in range(s.shape[0]):
        square = s[e, 0] * s[e, 0] + s[e, 1] * s[e, 1] + s[e, 2] * s[e, 2]
        grown = s[e, 0] * s[e, 1] * s[e, 2] - 1.0
        q = b * (square - 3.0 - 2.0 * grown)
        over = max(q - LAST, 0.0)
        power = math.exp(min(q, LAST))
        value, slope, curvature = power * (1.0 + over * (1.0 + 0.5 * over)), power * (1.0 + over), power
        first, first2 = 0.5 * mu * slope, 0.5 * mu * b * curvature
        psi = 0.5 * mu / b * (value - 1.0)
        put_response(s, e, psi, first, 0.0, -2.0 * first, first2, -2.0 * first2, 4.0 * first2, out)
