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
"""Columns whose squared norm, after those before them, is below this share of their own are dropped."""


class Modes(NamedTuple):
    """V = B T with V^T A V = 1 and V^T K V = S."""

    transform: NDArray[np.float64]  # (columns, modes) T
    stiffness: NDArray[np.float64]  # (modes, modes) S, positive semidefinite
    gram: NDArray[np.float64]  # (columns, columns) of B, in which the modes are orthogonal
    weight: NDArray[np.float64]  # (modes,) inverse squares of their norms there

    def coordinates(self, column: int) -> NDArray[np.float64]:
        """c (modes,) with V c = that column of B."""
        return self.weight * (self.gram[column] @ self.transform)


def krylov_modes(
    mass: NDArray[np.float64], stiffness: NDArray[np.float64], held: float, pull: float, limit: int
) -> Modes:
    """Modes from B^T M B and B^T K B, both (k, k), for A = held M + pull K; at most `limit` of them.

    Columns are scaled to unit norm and dependent ones dropped by pivoted Cholesky. Where the exact tangent K
    is indefinite (a body about to buckle, a crushed element), its negative part is left out: a model that
    must last until the next low step, however late, may not grow by itself.
    """
    system = held * mass + pull * stiffness
    diagonal = system.diagonal()
    if diagonal.min(initial=0.0) >= -RANK_TOLERANCE * diagonal.max(initial=0.0):
        transform = _orthonormal(system, limit)
        reduced = transform.T @ (stiffness @ transform)
        reduced = 0.5 * (reduced + reduced.T)
        if _semidefinite(reduced):
            return Modes(transform, reduced, system, np.ones(len(reduced)))
    transform = _orthonormal(mass, limit)
    values, shapes = sl.eigh(transform.T @ (stiffness @ transform), driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    weight = held + pull * values
    return Modes((transform @ shapes) / np.sqrt(weight), np.diag(values / weight), mass, weight)


def _orthonormal(gram: NDArray[np.float64], limit: int) -> NDArray[np.float64]:
    """T (k, r) with T^T gram T = 1, r <= limit, of the columns that pivoted Cholesky finds independent."""
    diagonal = gram.diagonal()
    kept = np.flatnonzero(diagonal > 1e-28 * max(float(diagonal.max(initial=0.0)), 1e-300))
    if not len(kept):
        return np.zeros((len(gram), 0))
    scale = 1.0 / np.sqrt(diagonal[kept])
    correlation = gram[np.ix_(kept, kept)] * scale[:, None] * scale
    factor, pivots, rank, _ = sl.lapack.dpstrf(correlation, tol=RANK_TOLERANCE, lower=0)
    rank = min(int(rank), limit)
    pivots = pivots[:rank] - 1
    inverse, _ = sl.lapack.dtrtri(factor[:rank, :rank])
    out = np.zeros((len(gram), rank))
    out[kept[pivots]] = np.triu(inverse) * scale[pivots][:, None]
    return out


def _semidefinite(matrix: NDArray[np.float64]) -> bool:
    """Whether a matrix is positive semidefinite to rounding."""
    shift = 1e-12 * float(np.abs(matrix.diagonal()).sum())
    _, failed = sl.lapack.dpotrf(matrix + shift * np.eye(len(matrix)), lower=1)
    return not failed


def rigid_motions(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Velocity fields of the six rigid motions about the origin, (3 n, 6), at positions x (n, 3)."""
    fields = np.zeros((len(x), 3, 6))
    for axis in range(3):
        after, before = (axis + 1) % 3, (axis + 2) % 3
        fields[:, axis, axis] = 1.0
        fields[:, after, 3 + axis] = -x[:, before]
        fields[:, before, 3 + axis] = x[:, after]
    return fields.reshape(3 * len(x), 6)


def best_rotation(
    rest: NDArray[np.float64], x: NDArray[np.float64], mass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rotation (3, 3) that turns the centred positions rest (n, 3) into x (n, 3), in the mass norm."""
    u, _, vt = np.linalg.svd((mass[:, None] * x).T @ rest)
    u[:, -1] *= np.sign(np.linalg.det(u @ vt))
    return u @ vt
