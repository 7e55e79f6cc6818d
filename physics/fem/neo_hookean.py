"""The neo-Hookean law that is defined for every deformation, flat and inverted ones too.

    Psi(F) = mu'/2 (I - 3) + lam'/2 (J - a)^2 - mu'/2 ln((I + 1) / 4) - lam'/2 (1 - a)^2,

I = F : F, J = det F, mu' = 4/3 mu, lam' = lam + 5/6 mu, a = 1 + 3/4 mu' / lam': at rest without stress, and
with Hooke's stiffness of the Lame constants lam and mu.
Source: Smith, de Goes & Kim, Stable neo-Hookean flesh simulation (ACM TOG 37, 2018), equations (13) and (14)
and section 3.4 for the constants.
"""

import math

import numpy as np

from palpo.physics.fem.law import IsotropicLaw, Shape, refuse_shape
from palpo.physics.fem.principal import put_response
from palpo.physics.numerics.kernels import kernel


class NeoHookean(IsotropicLaw):
    """See IsotropicLaw; it has no shape."""

    def __init__(self, lam: float, mu: float, shape: Shape = ()) -> None:
        if shape:
            raise refuse_shape("neo-hookean", shape, "none")
        super().__init__(neo_hookean_response, np.array([4.0 / 3.0 * mu]), lam, 5.0 / 6.0 * mu, mu)


@kernel
def neo_hookean_response(constants, s, out):
    """See IsotropicLaw."""
    mu = constants[0]
    for e in range(s.shape[0]):
        square = s[e, 0] * s[e, 0] + s[e, 1] * s[e, 1] + s[e, 2] * s[e, 2]
        beyond = square + 1.0
        psi = 0.5 * mu * (square - 3.0 - math.log(0.25 * beyond))
        first, first2 = 0.5 * mu * (1.0 - 1.0 / beyond), 0.5 * mu / (beyond * beyond)
        put_response(s, e, psi, first, 0.0, 0.0, first2, 0.0, 0.0, out)
