"""Factors of matrices with the pattern of a sparse W: one order of elimination, and pivots on the diagonal.

Contacts are ordered, not their rows, and once: by least degree of the graph of which contact moves which.
Pivots off the diagonal would fill what that order keeps empty; what roundings they avoid, a step of
refinement with the matrix itself makes good.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

Array = NDArray[np.float64]

SYMMETRIC: dict[str, Any] = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
"""SuperLU's words for pivots on the diagonal."""


def block_diagonal(blocks: Array) -> sp.bsr_array:
    """Blocks (n, 3, 3) along the diagonal."""
    n = len(blocks)
    return sp.bsr_array((blocks, np.arange(n), np.arange(n + 1)), shape=(3 * n, 3 * n))


def contact_order(w: Any) -> NDArray[np.int64]:
    """The rows (3 n,) of W in an order of its contacts that leaves its factor sparse."""
    rows = sp.bsr_array(w, blocksize=(3, 3))
    n = rows.shape[0] // 3
    graph = sp.csc_array((np.ones(len(rows.indices)), rows.indices, rows.indptr), shape=(n, n))
    factor = splu(sp.csc_array(graph + n * sp.eye_array(n)), permc_spec="MMD_AT_PLUS_A", **SYMMETRIC)
    return (3 * np.argsort(factor.perm_c)[:, None] + np.arange(3)).ravel()


class SparseFactor:
    """Solves with matrices (3 n, 3 n) of W's pattern."""

    def __init__(self, w: Any) -> None:
        self.w, self.order = w, contact_order(w)

    def refactor(self, ridge: float) -> None:
        """Take W + ridge I."""
        self.take(self.w + ridge * sp.eye_array(self.w.shape[0]))

    def take(self, matrix: Any) -> None:
        """Take another matrix of W's pattern; RuntimeError where a pivot is zero."""
        self.matrix = sp.csr_array(matrix)
        ordered = sp.csc_array(self.matrix[self.order][:, self.order])
        self.factor = splu(ordered, permc_spec="NATURAL", **SYMMETRIC)

    def solve(self, right: Array) -> Array:
        """x of matrix x = right, shape (3 n,), refined once."""
        x = self._solve(right)
        return x + self._solve(right - self.matrix @ x)

    def _solve(self, right: Array) -> Array:
        x = np.empty_like(right)
        x[self.order] = self.factor.solve(right[self.order])
        return x
