"""What the passive midpoint rule asks of a step and of its matrix (002, II-B; EQUATIONS.md, 3)."""

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError

REFINEMENTS = 2
"""Newton steps on an explicit inverse; convergence is quadratic, and Cholesky starts at 1e-11."""


def refined_inverse(matrix: sp.sparray | NDArray) -> NDArray[np.float64]:
    """Inverse of a symmetric positive definite matrix of extended precision, exact to the rounding of its
    entries.

    Where a body floats, or nearly, the rounding of Mh = 2 M / T + D + K T / 2 itself costs 1e-9 of the energy
    in some thousand steps: to rigid motion it is then another K than the one that computes forces. So the
    residual of the inverse is formed from unrounded sums.
    """
    rounded = (np.asarray(matrix) if isinstance(matrix, np.ndarray) else matrix.toarray()).astype(np.float64)
    if not rounded.size:
        return rounded
    scale = 1.0 / np.sqrt(np.diag(rounded))
    factor = sl.cho_factor(rounded * scale * scale[:, None])
    inverse = sl.cho_solve(factor, np.diag(scale)) * scale[:, None]
    for _ in range(REFINEMENTS):
        residual = (np.eye(len(inverse)) - matrix @ inverse.astype(np.longdouble)).astype(np.float64)
        inverse += inverse @ residual
        inverse = 0.5 * (inverse + inverse.T)
    return inverse


def require_step(step: float) -> None:
    """Raise InputError unless `step` [s] is positive and finite."""
    if not (np.isfinite(step) and step > 0.0):
        raise InputError(f"the step is {step!r} s, expected a positive number.")
