"""Mooney's and Rivlin's law, in a form that is defined for every deformation.

    Psi(F) = c10 (I - 3) + c01 (II - 3) - 2 c10 ln J - 4 c01 (J - 1) + lam/2 ln(J)^2,

I = F : F, II = cof F : cof F, J = det F, and ln J as in IsotropicLaw: at rest without stress and with Hooke's
stiffness of lam and mu = 2 (c10 + c01). Where the volume stays, it is the law of the textbooks.
Sources: Rivlin & Saunders, Large elastic deformations of isotropic materials VII (Phil. Trans. A 243, 1951);
the terms in J as in neo_hookean.py, so much of them as leaves Hooke's stiffness at rest.
"""

import numpy as np

from palpo.physics.fem.law import IsotropicLaw, Shape, refuse_shape
from palpo.physics.fem.principal import put_response
from palpo.physics.numerics.kernels import kernel


class MooneyRivlin(IsotropicLaw):
    """See IsotropicLaw; shape: c01 / (c10 + c01), from 0 to 1."""

    def __init__(self, lam: float, mu: float, shape: Shape) -> None:
        if len(shape) != 1 or not 0.0 <= shape[0] <= 1.0:
            raise refuse_shape("mooney-rivlin", shape, "c01's share of c10 + c01, from 0 to 1")
        second = 0.5 * mu * shape[0]
        first = 0.5 * mu - second
        pull = 2.0 * first + 4.0 * second
        super().__init__(mooney_rivlin_response, np.array([first, second]), lam, 2.0 * first, pull)


@kernel
def mooney_rivlin_response(constants, s, out):
    """See IsotropicLaw."""
    first, second = constants[0], constants[1]
    for e in range(s.shape[0]):
        a, b, c = s[e, 0] * s[e, 0], s[e, 1] * s[e, 1], s[e, 2] * s[e, 2]
        psi = first * (a + b + c - 3.0) + second * (a * b + b * c + c * a - 3.0)
        put_response(s, e, psi, first, second, 0.0, 0.0, 0.0, 0.0, out)
