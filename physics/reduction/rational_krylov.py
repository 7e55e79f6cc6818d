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


class ReducedModes(NamedTuple):
    """V = B T with V^T A V = 1 and V^T K V = S."""

    order: NDArray[np.intp]  # (modes,) columns of B that T combines
    factor: NDArray[np.float64]  # (modes, modes) T on those columns, Fortran order
    triangular: bool  # whether that is an upper triangle
    stiffness: NDArray[np.float64]  # (modes, modes) S, positive semidefinite
    gram: NDArray[np.float64]  # (columns, columns) of B, in which the modes are orthogonal
    weight: NDArray[np.float64]  # (modes,) inverse squares of their norms there

    @property
    def transform(self) -> NDArray[np.float64]:
        """T (columns, modes)."""
        out = np.zeros((len(self.gram), len(self.order)))
        out[self.order] = self.factor
        return out

    def coordinates(self, column: int) -> NDArray[np.float64]:
        """c (modes,) with V c = that column of B."""
        return self.weight * (self.gram[column, self.order] @ self.factor)

    def expand(self, z: NDArray[np.float64]) -> NDArray[np.float64]:
        """T z (columns, m) for z (modes, m)."""
        out = np.zeros((len(self.gram), z.shape[1]))
        out[self.order] = self.factor @ z
        return out

    def combine(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """rows T (m, modes) of rows of B (m, modes), C-contiguous, its columns those of `order`; in place
        where that can be."""
        if not self.triangular:
            return rows @ self.factor
        # the transpose of a C-contiguous array is a matrix of BLAS: half the products of a full T
        sl.blas.dtrmm(1.0, self.factor, rows.T, trans_a=1, overwrite_b=1)
        return rows


def krylov_modes(
    mass: NDArray[np.float64], stiffness: NDArray[np.float64], held: float, pull: float, limit: int
) -> ReducedModes:
    """Modes from B^T M B and B^T K B, both (k, k), for A = held M + pull K; at most `limit` of them.

    Columns are scaled to unit norm and dependent ones dropped by pivoted Cholesky. Where the exact tangent K
    is indefinite (a body about to buckle, a crushed element), its negative part is left out: a model that
    must last until the next low step, however late, may not grow by itself.
    """
    system = held * mass + pull * stiffness
    diagonal = system.diagonal()
    if diagonal.min(initial=0.0) >= -RANK_TOLERANCE * diagonal.max(initial=0.0):
        order, scale, factor = _independent(system, limit)
        transform = _inverse(scale, factor)
        reduced = _reduced(stiffness, order, transform)
        if semidefinite(reduced):
            return ReducedModes(order, transform, True, reduced, system, np.ones(len(order)))
    order, scale, factor = _independent(mass, limit)
    transform = _inverse(scale, factor)
    values, shapes = sl.eigh(_reduced(stiffness, order, transform), driver="evd", check_finite=False)
    values = np.maximum(values, 0.0)
    weight = held + pull * values
    whitened = np.asfortranarray((transform @ shapes) / np.sqrt(weight))
    return ReducedModes(order, whitened, False, np.diag(values / weight), mass, weight)


def _independent(
    gram: NDArray[np.float64], limit: int
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Columns (r,), r <= limit, that pivoted Cholesky finds independent, D (r,) and U (r, r), upper, with
    D gram D = U^T U on them."""
    diagonal = gram.diagonal()
    kept = np.flatnonzero(diagonal > 1e-28 * max(float(diagonal.max(initial=0.0)), 1e-300))
    if not len(kept):
        return kept, np.zeros(0), np.zeros((0, 0))
    scale = 1.0 / np.sqrt(diagonal[kept])
    correlation = gram[np.ix_(kept, kept)] * scale[:, None] * scale
    factor, pivots, rank, _ = sl.lapack.dpstrf(correlation.T, tol=RANK_TOLERANCE, lower=0, overwrite_a=1)
    rank = min(int(rank), limit)
    pivots = pivots[:rank] - 1
    return kept[pivots], scale[pivots], np.asfortranarray(factor[:rank, :rank])


def _inverse(scale: NDArray[np.float64], factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """D U^-1 (r, r), an upper triangle in Fortran order."""
    if not len(scale):
        return np.zeros((0, 0), order="F")
    inverse, _ = sl.lapack.dtrtri(factor)
    return np.asfortranarray(np.triu(inverse) * scale[:, None])


def _reduced(
    matrix: NDArray[np.float64], order: NDArray[np.intp], transform: NDArray[np.float64]
) -> NDArray[np.float64]:
    """T^T A T (r, r) of a symmetric A (k, k) on columns `order`, T upper; symmetric to the bit."""
    if not len(order):
        return np.zeros((0, 0))
    half = sl.blas.dtrmm(1.0, transform, matrix[np.ix_(order, order)].T, side=1, overwrite_b=1)
    out = sl.blas.dtrmm(1.0, transform, half, trans_a=1, overwrite_b=1)
    return np.ascontiguousarray(0.5 * (out + out.T))


def semidefinite(matrix: NDArray[np.float64]) -> bool:
    """Whether a symmetric matrix is positive semidefinite to rounding."""
    shift = 1e-12 * float(np.abs(matrix.diagonal()).sum())
    _, failed = sl.lapack.dpotrf(matrix + shift * np.eye(len(matrix)), lower=1)
    return not failed


def best_rotation(
    rest: NDArray[np.float64], x: NDArray[np.float64], mass: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Rotation (3, 3) that turns the centred positions rest (n, 3) into x (n, 3), in the mass norm."""
    u, _, vt = np.linalg.svd((mass[:, None] * x).T @ rest)
    u[:, -1] *= np.sign(np.linalg.det(u @ vt))
    return u @ vt
