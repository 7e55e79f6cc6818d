"""The neo-Hookean law that is defined for every deformation, flat and inverted ones too.

    Psi(F) = mu'/2 (I - 3) + lam'/2 (J - a)^2 - mu'/2 ln((I + 1) / 4) - lam'/2 (1 - a)^2,

I = F : F, J = det F, mu' = 4/3 mu, lam' = lam + 5/6 mu, a = 1 + 3/4 mu' / lam': at rest without stress, and
with Hooke's stiffness of the Lame constants lam and mu.
Source: Smith, de Goes & Kim, Stable neo-Hookean flesh simulation (ACM TOG 37, 2018), equations (13) and (14)
and section 3.4 for the constants.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class NeoHookean:
    """See palpo.physics.fem.laws.Law; lam, mu: Lame constants at rest [Pa]."""

    def __init__(self, lam: float, mu: float) -> None:
        self.mu, self.lam = 4.0 / 3.0 * mu, lam + 5.0 / 6.0 * mu
        self.rest = 1.0 + 0.75 * self.mu / self.lam

    def energy(self, f: Floats) -> Floats:
        """[J/m3], shape (k,)."""
        square, j = _square(f), np.linalg.det(f)
        shear = 0.5 * self.mu * (square - 3.0 - np.log(0.25 * (square + 1.0)))
        bulk = (j - self.rest) ** 2 - (1.0 - self.rest) ** 2
        return np.asarray(shear + 0.5 * self.lam * bulk)

    def stress(self, f: Floats) -> Floats:
        """First Piola-Kirchhoff's [Pa], shape (k, 3, 3)."""
        shear = self.mu * (1.0 - 1.0 / (_square(f) + 1.0))
        pull = self.lam * (np.linalg.det(f) - self.rest)
        return shear[:, None, None] * f + pull[:, None, None] * _cofactor(f)

    def tangent(self, f: Floats) -> Floats:
        """dP/dF [Pa], shape (k, 9, 9), symmetric, row by row of F."""
        beyond, j = _square(f) + 1.0, np.linalg.det(f)
        flat, cofactor = f.reshape(-1, 9), _cofactor(f).reshape(-1, 9)
        out = self.lam * cofactor[:, :, None] * cofactor[:, None, :]
        out += (2.0 * self.mu / beyond**2)[:, None, None] * flat[:, :, None] * flat[:, None, :]
        out += (self.mu * (1.0 - 1.0 / beyond))[:, None, None] * np.eye(9)
        # d cof(F)_ij / dF_kl = eps_ikm eps_jln F_mn
        turned = np.einsum("ikm,jln,emn->eijkl", EPSILON, EPSILON, f, optimize=True)
        out += (self.lam * (j - self.rest))[:, None, None] * turned.reshape(-1, 9, 9)
        return out


EPSILON = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    EPSILON[_i, _j, _k], EPSILON[_i, _k, _j] = 1.0, -1.0


def _square(f: Floats) -> Floats:
    """F : F, shape (k,)."""
    return np.asarray(np.einsum("eij,eij->e", f, f))


def _cofactor(f: Floats) -> Floats:
    """dJ/dF, shape (k, 3, 3)."""
    return np.stack(
        [
            np.cross(f[:, 1], f[:, 2]),
            np.cross(f[:, 2], f[:, 0]),
            np.cross(f[:, 0], f[:, 1]),
        ],
        axis=1,
    )
