"""How the forces of a solved contact problem change with what moves it, while no contact changes its status.

With u = W r + b the laws are then linear: an open contact has no force, one that sticks has u = const, and
one that slides has u_n = 0 and r_t = mu r_n e, whose direction e is that of its friction. What is left
unknown are the normal forces of all that bear and the friction of what sticks, r = T x, and one equation
for each:

    P W T dx = -P db

with P the rows of those unknowns. What slides has one unknown of three, so that the matrix is small where
much slides.
"""

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from palpo.physics.contact.laws import OPEN, SLIP

Array = NDArray[np.float64]

RIDGE = 1e-10
"""Added to the diagonal, in shares of its mean: more contacts than freedoms make W singular."""


def force_tangent(
    w: Array, motion: Array, r: Array, status: NDArray[np.integer], mu: NDArray[np.float64]
) -> Array:
    """dr/dq (3 n, m) [N] per unit of each of m motions, while the n contacts keep their statuses.

    w (3 n, 3 n) [m/N]. motion (3 n, m): db/dq. r (3 n,) [N]: the solution, whose friction has the directions
    of what slides. status (n,): OPEN, STICK or SLIP. mu (n,).
    """
    n = status.size
    bears = status != OPEN
    slides = bears & (status == SLIP)
    kept = np.repeat(bears, 3)
    kept[1::3] &= ~slides
    kept[2::3] &= ~slides
    rows = np.flatnonzero(kept)
    tangent = np.zeros((3 * n, motion.shape[1]))
    if rows.size == 0:
        return tangent
    friction = r.reshape(n, 3)[:, 1:]
    size = np.hypot(friction[:, 0], friction[:, 1])
    along = np.where(size[:, None] > 0.0, friction / np.where(size > 0.0, size, 1.0)[:, None], 0.0)
    along *= np.where(slides, mu, 0.0)[:, None]
    matrix = w.copy() if rows.size == 3 * n else w[np.ix_(rows, rows)]
    sliding = np.flatnonzero(slides)
    column = np.searchsorted(rows, 3 * sliding)
    for i in (1, 2) if sliding.size else ():
        matrix[:, column] += w[np.ix_(rows, 3 * sliding + i)] * along[sliding, i - 1]
    matrix[np.diag_indices(rows.size)] += RIDGE * np.trace(matrix) / rows.size
    tangent[rows] = _solved(matrix, -motion[rows], symmetric=sliding.size == 0)
    for i in (1, 2):
        tangent[3 * sliding + i] = along[sliding, i - 1, None] * tangent[3 * sliding]
    return tangent


def _solved(matrix: Array, right: Array, symmetric: bool) -> Array:
    """matrix^-1 right; of a symmetric matrix by Cholesky's factor if it has one. The matrix is spent."""
    if symmetric:
        diagonal = matrix.diagonal().copy()
        # columns in one piece, so that the factor takes their place; the other triangle is left
        factor, failed = dpotrf(matrix.T, lower=1, clean=0, overwrite_a=1)
        if not failed:
            return np.asarray(dpotrs(factor, right, lower=1)[0])
        matrix = np.tril(matrix, -1)
        matrix += matrix.T + np.diag(diagonal)
    factors = scipy.linalg.lu_factor(matrix, overwrite_a=True, check_finite=False)
    return scipy.linalg.lu_solve(factors, right, check_finite=False)
