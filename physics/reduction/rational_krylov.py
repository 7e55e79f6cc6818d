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
    stiffness: NDArray[np.float64]  # (modes, modes) V^T K V, positive semidefinite [1/s^2]


def _independent(gram: NDArray[np.float64], limit: int) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Pivoted Cholesky of a correlation matrix: (inverse factor (r, r), pivots (r,)), r <= limit."""
    factor, pivots, rank, _ = sl.lapack.dpstrf(gram, tol=RANK_TOLERANCE, lower=0)
    rank = min(int(rank), limit)
    upper = np.triu(factor[:rank, :rank])
    inverse, _ = sl.lapack.dtrtri(upper)
    return np.triu(inverse), pivots[:rank] - 1


def krylov_modes(
    mass_gram: NDArray[np.float64],
    held_gram: NDArray[np.float64],
    stiffness_gram: NDArray[np.float64],
    h: float,
    limit: int,
) -> Modes:
    """Modes from B^T M B, B^T (M + h C) B and B^T K B, all (k, k); at most `limit` of them.

    Columns are scaled to unit M-norm and dependent ones dropped by pivoted Cholesky. Where the exact tangent
    K is indefinite (a body about to buckle, a crushed element), its negative part is left out: a model that
    must last until the next low step, however late, may not grow by itself.
    """
    scale = np.sqrt(np.maximum(np.diag(mass_gram), 0.0))
    kept = np.flatnonzero(scale > 1e-14 * max(float(scale.max(initial=0.0)), 1e-300))
    if not len(kept):
        return Modes(np.zeros((len(mass_gram), 0)), np.zeros(0), np.zeros((0, 0)))
    inverse_scale = 1.0 / scale[kept]
    correlation = mass_gram[np.ix_(kept, kept)] * inverse_scale[:, None] * inverse_scale
    whiten, pivots = _independent(correlation, limit)
    kept = kept[pivots]
    whiten = whiten * inverse_scale[pivots][:, None]
    stiffness = _semidefinite(whiten.T @ stiffness_gram[np.ix_(kept, kept)] @ whiten)
    reduced = whiten.T @ held_gram[np.ix_(kept, kept)] @ whiten + h * h * stiffness
    system, shapes = _eigen(reduced)
    transform = np.zeros((len(mass_gram), len(system)))
    transform[kept] = whiten @ shapes
    return Modes(transform, system, shapes.T @ stiffness @ shapes)


def _eigen(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    values, vectors = sl.eigh(0.5 * (matrix + matrix.T), driver="evd", overwrite_a=True, check_finite=False)
    return values, vectors


def _semidefinite(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The matrix without its negative part."""
    matrix = 0.5 * (matrix + matrix.T)
    shift = 1e-12 * float(np.trace(np.abs(matrix)))
    _, failed = sl.lapack.dpotrf(matrix + shift * np.eye(len(matrix)), lower=1)
    if not failed:
        return matrix
    values, vectors = _eigen(matrix)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


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
