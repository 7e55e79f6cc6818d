"""The rational Krylov basis of a soft body and its modes (EQUATIONS.md, 1, "The Krylov interface").

The columns are what low step L5 computes anyway: A_h^-1 J^T at two or three step sizes h, with the
velocity and the free accelerations. The Galerkin model on their span has W_soft^dt and W_soft^DT exactly,
and everything between in good approximation.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as sl
from numpy.typing import NDArray

RANK_TOLERANCE = 1e-11
"""Columns whose squared M-norm, after those before them, is below this share of their own are dropped."""


class Modes(NamedTuple):
    """V = B T with V^T M V = 1 and V^T A_h V = diag(system)."""

    transform: NDArray[np.float64]  # (columns, modes)
    system: NDArray[np.float64]  # (modes,)


def _independent(gram: NDArray[np.float64], limit: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Pivoted Cholesky of a correlation matrix: (inverse factor (r, r), pivots (r,)), r <= limit."""
    factor, pivots, rank, _ = sl.lapack.dpstrf(gram, tol=RANK_TOLERANCE, lower=0)
    rank = min(int(rank), limit)
    upper = np.triu(factor[:rank, :rank])
    inverse, _ = sl.lapack.dtrtri(upper)
    return np.triu(inverse), pivots[:rank] - 1


def krylov_modes(mass_gram: NDArray[np.float64], system_gram: NDArray[np.float64], limit: int) -> Modes:
    """Modes from B^T M B and B^T A_h B, both (k, k); at most `limit` of them.

    Columns are scaled to unit M-norm and dependent ones dropped by pivoted Cholesky.
    """
    scale = np.sqrt(np.maximum(np.diag(mass_gram), 0.0))
    kept = np.flatnonzero(scale > 1e-14 * max(float(scale.max(initial=0.0)), 1e-300))
    if not len(kept):
        return Modes(np.zeros((len(mass_gram), 0)), np.zeros(0))
    inverse_scale = 1.0 / scale[kept]
    correlation = mass_gram[np.ix_(kept, kept)] * inverse_scale[:, None] * inverse_scale
    whiten, pivots = _independent(correlation, limit)
    kept = kept[pivots]
    whiten = whiten * inverse_scale[pivots][:, None]
    reduced = whiten.T @ system_gram[np.ix_(kept, kept)] @ whiten
    system, shapes = sl.eigh(0.5 * (reduced + reduced.T), driver="evd", overwrite_a=True, check_finite=False)
    transform = np.zeros((len(mass_gram), len(system)))
    transform[kept] = whiten @ shapes
    return Modes(transform, system)


def rigid_motions(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Velocity fields of the six rigid motions about the origin, (3 n, 6), at positions x (n, 3)."""
    n = len(x)
    fields = np.zeros((n, 3, 6))
    for axis in range(3):
        fields[:, axis, axis] = 1.0
        unit = np.zeros(3)
        unit[axis] = 1.0
        fields[:, :, 3 + axis] = np.cross(unit, x)
    return fields.reshape(3 * n, 6)


def best_rotation(
    rest: NDArray[np.float64], x: NDArray[np.float64], mass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rotation (3, 3) that turns the centred positions rest (n, 3) into x (n, 3), in the mass norm."""
    u, _, vt = np.linalg.svd((mass[:, None] * x).T @ rest)
    u[:, -1] *= np.sign(np.linalg.det(u @ vt))
    return u @ vt
