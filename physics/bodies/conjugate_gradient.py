"""Conjugate gradients (Saad, Iterative Methods for Sparse Linear Systems, algorithm 9.1) of any A and P."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def conjugate_gradients(
    matrix: Callable[[NDArray], NDArray],
    preconditioner: Callable[[NDArray], NDArray],
    b: NDArray[np.float64],
    bound: float,
    most: int,
) -> tuple[NDArray[np.float64], int]:
    """x (n,) of A x = b from zero, and how many iterations bring r^T P r, r = b - A x, to `bound`.

    P, the preconditioner, stands for A^-1, so that r^T P r is near the square of the error in the norm of A.
    """
    x, r = np.zeros_like(b), b.copy()
    z = preconditioner(r)
    p, left = z, float(r @ z)
    for iteration in range(most):
        if not left > bound:
            return x, iteration
        q = matrix(p)
        alpha = left / float(p @ q)
        x += alpha * p
        r -= alpha * q
        z = preconditioner(r)
        before, left = left, float(r @ z)
        p = z + (left / before) * p
    return x, most
