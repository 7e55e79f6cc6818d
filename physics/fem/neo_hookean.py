"""The neo-Hookean law of the textbooks, and what becomes of it in flat and inverted elements.

    Psi(F) = mu/2 (I - 3) - mu ln J + lam/2 ln(J)^2,

I = F : F, J = det F: at rest without stress, and with Hooke's stiffness of lam and mu. Where
the volume is below 0.4 or above twice that of rest the logarithms go on as straight lines, so that the law is
defined for every deformation.
Sources: Bonet & Wood, Nonlinear continuum mechanics for finite element analysis (Cambridge 2008), equation
(6.28); to extend a law beyond a limit after Stomakhin, Howes, Schroeder & Teran, Energetically
consistent invertible elasticity (SCA 2012).
"""

import numpy as np

from palpo.physics.fem.law import IsotropicLaw, Shape, refuse_shape
from palpo.physics.fem.principal import put_response
from palpo.physics.numerics.kernels import kernel


class NeoHookean(IsotropicLaw):
    """See IsotropicLaw; it has no shape."""

    def __init__(self, lam: float, mu: float, shape: Shape = ()) -> None:
        if shape:
            raise refuse_shape("neo-hookean", shape, "none")
        super().__init__(neo_hookean_response, np.array([mu]), lam, mu, mu)


@kernel
def neo_hookean_response(constants, s, out):
    """See IsotropicLaw."""
    half = 0.5 * constants[0]
    for e in range(s.shape[0]):
        square = s[e, 0] * s[e, 0] + s[e, 1] * s[e, 1] + s[e, 2] * s[e, 2]
        put_response(s, e, half * (square - 3.0), half, 0.0, 0.0, 0.0, 0.0, 0.0, out)
