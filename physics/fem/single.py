"""A sparse Cholesky factor that solves in single precision, for its matrix as it is or turned node by node.

A solve reads the whole factor twice and does little else, so that half the bytes are half the time and more:
19 MB stay in a cache where 38 MB do not. What single precision leaves of an answer is some 1e-5 of it in the
norm of the matrix; who needs more refines. Panels are BLAS's.

With R a rotation of each node (block diagonal), R A R^T is the matrix of a body whose parts have turned
so; its inverse is R A^-1 R^T, which is found with the factor of A. Source of the idea: Courtecuisse, Allard,
Kerfriden, Bordas, Cotin & Duriez, Real-time simulation of contact and cutting of heterogeneous soft-tissues
(Medical Image Analysis 2014), 3.2, where it keeps a preconditioner.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.cholesky import CholeskyFactor
from palpo.physics.fem.elimination import Symbolic
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.lapack import single_down, single_up


class SingleFactor:
    """A = L L^T, made in double precision and kept in single. Solves may not run in two threads at once.

    double: who makes it in double precision, if that serves others too.
    turns (n, 3, 3): rotation R of each node with which it solves, the identity after `refactor`; in the order
    of the matrix.
    """

    def __init__(self, symbolic: Symbolic, double: CholeskyFactor | None = None) -> None:
        self._double = CholeskyFactor(symbolic) if double is None else double
        self.panels = np.zeros(self._double.panels.size, np.float32)
        self._below = np.empty(self._double.height, np.float32)
        self._words, self._factors = np.zeros(7, np.int32), np.zeros(3, np.float32)
        self._y = np.empty(self._double.n, np.float32)
        self.turns = np.tile(np.eye(3), (symbolic.order.size, 1, 1))

    def refactor(
        self, stiffness: NDArray, mass: NDArray, stiffness_weight: float, mass_weight: float
    ) -> None:
        """See CholeskyFactor."""
        self._double.refactor(stiffness, mass, stiffness_weight, mass_weight)
        self.take()

    def take(self) -> None:
        """Solve with what the factor in double precision is now."""
        self.panels[:] = self._double.panels
        self.turns[:] = np.eye(3)

    def solve(self, b: NDArray) -> NDArray[np.float64]:
        """R A^-1 R^T b, shape (n,)."""
        return self.solve_few(b[None])[0]

    def solve_few(self, b: NDArray) -> NDArray[np.float64]:
        """R A^-1 R^T b of each line of b, shape (k, n)."""
        out = np.array(b, dtype=np.float64)
        for line in out:
            solve_single(
                self._double.symbolic, self.panels, self.turns, line, self._y, self._below, self._words,
                self._factors,
            )  # fmt: skip
        return out

    def solve_many(self, b: NDArray) -> NDArray[np.float64]:
        """R A^-1 R^T b for b (n, k)."""
        return np.ascontiguousarray(self.solve_few(b.T).T)


@kernel
def solve_single(symbolic, panels, turns, b, y, below, words, factors):
    """b (3 n,) = R A^-1 R^T b; y (3 n,), below (tallest panel,), words, factors: scratch, see `single_down`.

    Solved for b over its largest entry, so that nothing is lost below what single precision can tell.
    """
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    largest = 0.0
    for i in range(b.size):
        largest = max(largest, abs(b[i]))
    if largest == 0.0:
        return
    for p in range(symbolic.order.size):
        node = symbolic.order[p]
        r, f, g, h = turns[node], b[3 * node], b[3 * node + 1], b[3 * node + 2]
        for i in range(3):
            y[3 * p + i] = (r[0, i] * f + r[1, i] * g + r[2, i] * h) / largest
    for s in range(column.size - 1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        silent = True
        for r in range(own, own + width):
            silent &= y[r] == 0.0
        if silent:
            continue
        nodes = row_ptr[s + 1] - row_ptr[s]
        single_down(panels[panel[s] :], width, width + 3 * nodes, words, factors, y[own:], below)
        for k in range(nodes):
            row = 3 * rows[row_ptr[s] + k]
            for i in range(3):
                y[row + i] -= below[3 * k + i]
    for s in range(column.size - 2, -1, -1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        nodes = row_ptr[s + 1] - row_ptr[s]
        for k in range(nodes):
            row = 3 * rows[row_ptr[s] + k]
            for i in range(3):
                below[3 * k + i] = y[row + i]
        single_up(panels[panel[s] :], width, width + 3 * nodes, words, factors, y[own:], below)
    for p in range(symbolic.order.size):
        node = symbolic.order[p]
        f, g, h = largest * y[3 * p], largest * y[3 * p + 1], largest * y[3 * p + 2]
        for i in range(3):
            b[3 * node + i] = turns[node, i, 0] * f + turns[node, i, 1] * g + turns[node, i, 2] * h
