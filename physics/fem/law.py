"""What an isotropic law of a material is: its energy density as a function of the principal stretches."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.principal import (
    CROSS,
    CURVATURE,
    ENERGY,
    EVEN,
    ODD,
    RESPONSE,
    SLOPE,
    add_volume_change,
    decompose,
)
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]
Shape = tuple[float, ...]
"""What a law has besides its stiffness at rest; pure numbers."""
STIFFEST = 1000.0
"""Laws whose stiffness grows without bound follow a polynomial from so many times that of rest on."""


class IsotropicLaw:
    """An elastic material, made as `Law(lam, mu, shape)`: at F = 1 it is without stress, and has Hooke's
    stiffness of the Lame constants [Pa]. Its energy has a part of its own and, of the volume,
    lam / 2 ln(J)^2 - more ln J - (pull - more) (J - 1), the first of which may be one of several elements'
    mean of J. Below J = 0.4 and above 2 the logarithms go on as straight lines
    (`palpo.physics.fem.principal.volume_law`), so that flat and inverted elements have a force, too.

    response(constants, s (k, 3), out (k, RESPONSE)): compiled; what palpo.physics.fem.principal names, of its
    own part at principal stretches s, in Pa. pull [Pa]: that part's stress at rest. more [Pa]: what that part
    lacks of Hooke's stiffness at rest. Laws raise InputError for a shape that is not theirs, and where
    nothing would resist a change of volume.
    """

    def __init__(
        self, response: Callable[..., None], constants: Floats, lam: float, more: float, pull: float
    ) -> None:
        if not lam + more > 0.0:
            raise InputError(
                "material.poisson_ratio is too small for its law, which with these constants does not resist "
                "a change of volume: raise it."
            )
        self.response, self.constants = response, constants
        self.lam, self.more, self.straight = lam, more, more - pull

    def _principal(self, f: Floats) -> tuple[Floats, Floats, Floats]:
        """U, V and responses of gradients f (k, 3, 3)."""
        f = np.ascontiguousarray(f, dtype=np.float64)
        u, v, s = np.empty_like(f), np.empty_like(f), np.empty((len(f), 3))
        decompose(f, u, v, s)
        out = np.empty((len(f), RESPONSE))
        self.response(self.constants, s, out)
        add_volume_change(s, self.lam, self.more, np.full(len(f), self.straight), out)
        return u, v, out

    def energy(self, f: Floats) -> Floats:
        """Psi [J/m3], shape (k,), of gradients f (k, 3, 3)."""
        return self._principal(f)[2][:, ENERGY]

    def stress(self, f: Floats) -> Floats:
        """P = dPsi/dF, first Piola-Kirchhoff's [Pa], shape (k, 3, 3)."""
        u, v, out = self._principal(f)
        return (u * out[:, None, SLOPE : SLOPE + 3]) @ v.transpose(0, 2, 1)

    def tangent(self, f: Floats) -> Floats:
        """dP/dF [Pa], shape (k, 9, 9), symmetric, row by row of F."""
        u, v, out = self._principal(f)
        d = np.zeros((len(f), 3, 3, 3, 3))
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            d[:, k, k, k, k] = out[:, CURVATURE + k]
            d[:, i, i, j, j] = d[:, j, j, i, i] = out[:, CROSS + k]
            even, odd = out[:, EVEN + k], out[:, ODD + k]
            d[:, i, j, i, j] = d[:, j, i, j, i] = 0.5 * (even + odd)
            d[:, i, j, j, i] = d[:, j, i, i, j] = 0.5 * (even - odd)
        turned = np.einsum("eai,ebj,eijkl,eck,edl->eabcd", u, v, d, u, v, optimize=True)
        return np.asarray(turned.reshape(-1, 9, 9))


def refuse_shape(name: str, shape: Shape, wanted: str) -> InputError:
    """For a shape that is not that of a law."""
    return InputError(f"material.shape is {list(shape)} but the law {name!r} needs {wanted}.")
