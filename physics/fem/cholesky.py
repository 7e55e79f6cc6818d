"""Supernodal sparse Cholesky factor of a node-wise matrix whose pattern never changes.

The symbolic part (minimum degree order, elimination tree, supernodes) is done once per body. The numeric
part is right-looking over dense column-major panels, so that its inner loops run over contiguous memory; it
holds no interpreter lock, which lets the factors of two step sizes be built in two threads at once.
Source: Davis, Direct Methods for Sparse Linear Systems (SIAM 2006), chapters 4 and 7; amalgamation of
supernodes after Ashcraft & Grimes, The influence of relaxed supernode partitions (TOMS 1989).
"""

from collections.abc import Callable
from typing import NoReturn

import numba
import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.elimination import Symbolic
from palpo.physics.fem.substitution import FEW, solve_few, solve_many, solve_one
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import fast_kernel, kernel
from palpo.physics.numerics.lapack import factor_columns, multiply_rows

STRIDE = 3 * 2**15 + 8
"""Rows of scratch lie this far apart: a constant, so that the compiler sees them apart and vectorises. It
bounds the height of a panel [freedoms] and takes no memory that is not touched."""

LARGE = np.iinfo(np.int64).max if numba.config.DISABLE_JIT else 3000
"""Entries from which on a panel is LAPACK's: its calls cost what some thousand products do."""

TOGETHER = 32
"""Nodes of a panel whose products are made in one call: what they give stays in the second cache."""


@kernel
def scatter(symbolic, stiffness, mass, stiffness_weight, mass_weight, panels):
    """panels = lower part of stiffness_weight K + mass_weight M, K as blocks (b, 9) and M as weights (b,)."""
    panels[:] = 0.0
    for k in range(mass.size):
        o, ld = symbolic.block_offset[k], symbolic.block_ld[k]
        m = mass_weight * mass[k]
        for i in range(3):
            for j in range(3):
                value = stiffness_weight * stiffness[k, 3 * i + j] + (m if i == j else 0.0)
                if symbolic.block_mirrored[k]:
                    panels[o + i * ld + j] = value
                else:
                    panels[o + j * ld + i] = value


@fast_kernel
def _products(panels, source, ld, count, out, length):
    """out[c STRIDE + r] = sum_k P[k, r] P[k, c], c < 3, r < length, k < count, a multiple of 3.

    P[k] is the column at source + k ld. Three by three columns at a time, so that an entry loaded serves
    three times.
    """
    out[:length] = 0.0
    out[STRIDE : STRIDE + length] = 0.0
    out[2 * STRIDE : 2 * STRIDE + length] = 0.0
    for k in range(0, count, 3):
        a = source + k * ld
        b, c = a + ld, a + 2 * ld
        a0, a1, a2 = panels[a], panels[a + 1], panels[a + 2]
        b0, b1, b2 = panels[b], panels[b + 1], panels[b + 2]
        c0, c1, c2 = panels[c], panels[c + 1], panels[c + 2]
        for r in range(length):
            x, y, z = panels[a + r], panels[b + r], panels[c + r]
            out[r] += a0 * x + b0 * y + c0 * z
            out[STRIDE + r] += a1 * x + b1 * y + c1 * z
            out[2 * STRIDE + r] += a2 * x + b2 * y + c2 * z


@fast_kernel
def _factor_node(panels, diagonal, ld, length):
    """Cholesky of three columns of a panel from their diagonal down; False if a pivot is not positive."""
    for c in range(3):
        column = diagonal + c * ld
        for k in range(c):
            other = diagonal + k * ld
            w = panels[other + c]
            for r in range(c, length):
                panels[column + r] -= w * panels[other + r]
        pivot = panels[column + c]
        if not pivot > 0.0:
            return False
        scale = 1.0 / np.sqrt(pivot)
        for r in range(c, length):
            panels[column + r] *= scale
    return True


@fast_kernel
def _hand_on(symbolic, panels, s, temp, words, factors):
    """Take what panel s gives out of the panels that its rows belong to, some columns at a time."""
    column, row_ptr, panel, rel = symbolic.column, symbolic.row_ptr, symbolic.panel, symbolic.rel
    width, nodes = 3 * (column[s + 1] - column[s]), row_ptr[s + 1] - row_ptr[s]
    ld = width + 3 * nodes
    first, past = 0, 0
    for g in range(symbolic.seg_ptr[s], symbolic.seg_ptr[s + 1]):
        t, begin, end = symbolic.seg_target[g], symbolic.seg_begin[g], symbolic.seg_end[g]
        t_ld = 3 * (column[t + 1] - column[t] + row_ptr[t + 1] - row_ptr[t])
        for node in range(begin, end):
            if node == past:
                first, count = node, 3 * (nodes - node)
                past = min(nodes, node + max(1, min(TOGETHER, temp.size // (3 * count))))
                rows = panels[panel[s] + width + 3 * node :]
                multiply_rows(rows, count, width, ld, 3 * (past - node), words, factors, temp)
            height = 3 * (nodes - first)
            place = symbolic.rel_ptr[g] + node - begin
            target = panel[t] + 3 * rel[place] * t_ld
            for c in range(3):
                source = (3 * (node - first) + c) * height + 3 * (node - first)
                into = target + c * t_ld
                for k in range(nodes - node):
                    row = into + 3 * rel[place + k]
                    for i in range(3):
                        panels[row + i] -= temp[source + 3 * k + i]


@fast_kernel
def factorise(symbolic, panels, temp, count):
    """Turn the first `count` panels of a matrix into those of its Cholesky factor, in place.

    The later ones become those of the Schur complement. temp (3 STRIDE,): scratch. Returns 0, or 1 + the
    position of the first node whose pivot is not positive. LAPACK and BLAS do the LARGE panels. Entries above
    the diagonal of a panel are never read and hold anything.
    """
    column, row_ptr, panel, rel = symbolic.column, symbolic.row_ptr, symbolic.panel, symbolic.rel
    words, factors = np.empty(8, np.int32), np.empty(2)
    for s in range(count):
        width = 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        base = panel[s]
        if width * ld >= LARGE:
            lacking = factor_columns(panels[base : panel[s + 1]], width, ld, words, factors)
            if lacking:
                return 1 + column[s] + (lacking - 1) // 3
            _hand_on(symbolic, panels, s, temp, words, factors)
            continue
        for c in range(0, width, 3):
            diagonal = base + c * ld + c
            if c > 0:
                _products(panels, base + c, ld, c, temp, ld - c)
                for i in range(3):
                    for r in range(ld - c):
                        panels[diagonal + i * ld + r] -= temp[i * STRIDE + r]
            if not _factor_node(panels, diagonal, ld, ld - c):
                return 1 + column[s] + c // 3
        for g in range(symbolic.seg_ptr[s], symbolic.seg_ptr[s + 1]):
            t, begin, end = symbolic.seg_target[g], symbolic.seg_begin[g], symbolic.seg_end[g]
            t_ld = 3 * (column[t + 1] - column[t] + row_ptr[t + 1] - row_ptr[t])
            for node in range(begin, end):
                first = width + 3 * node
                place = symbolic.rel_ptr[g] + node - begin
                _products(panels, base + first, ld, width, temp, ld - first)
                target = panel[t] + 3 * rel[place] * t_ld
                for k in range((ld - first) // 3):
                    row = target + 3 * rel[place + k]
                    for c in range(3):
                        for i in range(3):
                            panels[row + c * t_ld + i] -= temp[c * STRIDE + 3 * k + i]
    return 0


class CholeskyFactor:
    """A_h = L L^T of one body at one step size; refreshed in place by `refactor`.

    Solves may run in several threads at once, but not during a `refactor` of the same factor.
    Raises InputError for a mesh whose elimination needs a denser front than STRIDE.
    """

    def __init__(self, symbolic: Symbolic) -> None:
        self.symbolic = symbolic
        self.panels = np.empty(int(symbolic.panel[-1]))
        heights = np.diff(symbolic.column) + np.diff(symbolic.row_ptr)
        self.height = 3 * int(heights.max())
        if self.height > STRIDE:
            raise InputError(f"a front of {self.height} freedoms exceeds {STRIDE}; the mesh must be coarser.")
        self.n = 3 * symbolic.order.size

    def refactor(
        self, stiffness: NDArray, mass: NDArray, stiffness_weight: float, mass_weight: float
    ) -> None:
        """Factorise stiffness_weight K + mass_weight M, K lower blocks (b, 9) and M weights (b,).

        Raises FloatingPointError if the matrix is not positive definite, as after a non-finite state.
        """
        scatter(self.symbolic, stiffness, mass, stiffness_weight, mass_weight, self.panels)
        self._factorise()

    def _factorise(self) -> None:
        self._eliminate(self.symbolic.column.size - 1)

    def _eliminate(self, count: int) -> None:
        """Factorise the first `count` panels."""
        status = factorise(self.symbolic, self.panels, np.empty(3 * STRIDE), count)
        if status:
            self._refuse_pivot(status - 1)

    def _refuse_pivot(self, position: int) -> NoReturn:
        node = self.symbolic.order[position]
        raise FloatingPointError(f"the system matrix lost its positive pivot at free node {node}.")

    def solve(self, b: NDArray) -> NDArray:
        """A_h^-1 b, shape (n,)."""
        out = np.empty(self.n)
        solve_one(self.symbolic, self.panels, b, out, np.empty(self.n), np.empty(self.height))
        return out

    def velocity(self, push: NDArray, momentum: NDArray, v: NDArray) -> NDArray:
        """A_h^-1 (push + momentum), each (n,): that of v there is no need."""
        return self.solve(push + momentum)

    def stepping(self, v: NDArray, count: int) -> Callable[[NDArray, NDArray], NDArray]:
        """A function that gives `velocity`, of (push, momentum), in each of so many steps from v."""
        return lambda push, momentum: self.solve(push + momentum)

    def solve_few(self, b: NDArray) -> NDArray:
        """A_h^-1 b of each line of b, shape (k, n), that many lines at the cost of k / FEW solves."""
        if len(b) == 1:
            return self.solve(b[0])[None]
        out = np.zeros((-(-len(b) // FEW) * FEW, self.n))
        out[: len(b)] = b
        y, t = np.empty((FEW, self.n)), np.empty((FEW, self.height))
        for first in range(0, len(b), FEW):
            solve_few(self.symbolic, self.panels, out[first : first + FEW], y, t)
        return out[: len(b)]

    def solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """A_h^-1 b for b (n, k), C-contiguous; written to out (which may be b) and returned."""
        out = np.empty_like(b) if out is None else out
        solve_many(self.symbolic, self.panels, b, out, True)
        return out

    def half_solve_many(self, b: NDArray, out: NDArray | None = None) -> NDArray:
        """Y = L^-1 P b for b (n, k), so that b^T A_h^-1 b = Y^T Y at half the cost of a full solve."""
        out = np.empty_like(b) if out is None else out
        solve_many(self.symbolic, self.panels, b, out, False)
        return out
