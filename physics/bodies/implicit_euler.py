"""Dense factor of the backward Euler system of a small body (EQUATIONS.md, section 1).

A_h dv = h (f_ext + f_int(x) - C v - h K v + J^T lambda),   A_h = M + h C + h^2 K.
Large bodies have a sparse factor of the same methods in physics/fem/cholesky.py.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular


class DenseFactor:
    """Cholesky factor of a dense symmetric positive definite A_h, shape (n, n).

    Raises FloatingPointError if A_h is not positive definite, as after a non-finite state.
    """

    def __init__(self, system: NDArray) -> None:
        try:
            self._factor = cho_factor(system, lower=True)
        except (np.linalg.LinAlgError, ValueError) as error:
            raise FloatingPointError(
                "the system matrix of a beam or rigid body is not positive definite."
            ) from error

    def solve(self, b: NDArray) -> NDArray:
        """A_h^-1 b, shape (n,)."""
        return cho_solve(self._factor, b, check_finite=False)

    def velocity(self, push: NDArray, momentum: NDArray, v: NDArray) -> NDArray:
        """A_h^-1 (push + momentum), each (n,)."""
        return self.solve(push + momentum)

    def solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """A_h^-1 b for b (n, k); written to out, which may be b, and returned."""
        out = np.empty_like(b) if out is None else out
        out[:] = cho_solve(self._factor, b, check_finite=False)
        return out

    def half_solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """Y = L^-1 b for b (n, k), so that b^T A_h^-1 b = Y^T Y."""
        out = np.empty_like(b) if out is None else out
        out[:] = solve_triangular(self._factor[0], b, lower=True, check_finite=False)
        return out
