"""Factors of matrices with the pattern of W, dense or of blocks: each solver is written once, for either.

A kernel calls `fill`, `own_block`, `factor` and `solve`; which code that is follows from the type of the
factor when it is compiled. A dense one is LAPACK's. One of blocks is SuperLU's, which belongs to the
interpreter: compiled code calls it back at an address. Its order of elimination is found once, by least
degree of the graph of which contact moves which, and pivots stay on the diagonal: any other would fill what
that order keeps empty; what roundings that leaves, a step of refinement with the matrix itself makes good.
"""

import ctypes
import weakref
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from palpo.physics.contact.solvers.operator import BlockRows, by_form
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.lapack import cholesky, cholesky_solve, lu_factor, lu_solve, make_words

SYMMETRIC: dict[str, Any] = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
"""SuperLU's words for pivots on the diagonal."""

_TAKE, _SOLVE = range(2)
_CALL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
_HELD_BACK: dict[int, BaseException] = {}
"""What was raised where no exception may pass, by address."""


class LapackFactor(NamedTuple):
    """Of a matrix (3 n, 3 n)."""

    matrix: NDArray[np.float64]  # (3 n, 3 n) the matrix, then its factors
    words: NDArray[np.int32]
    definite: NDArray[np.bool_]  # (1,) whether it is symmetric and positive definite, or any


class BlockFactor(NamedTuple):
    """Of a matrix of m blocks, those of a `BlockRows`."""

    blocks: NDArray[np.float64]  # (m, 3, 3) of the matrix
    diagonal: NDArray[np.int64]  # (n,) which is each contact's own
    right: NDArray[np.float64]  # (3 n,) what is handed to and fro
    address: NDArray[np.int64]  # (1,) of who factors; it is there for as long as this array is


def make_factor(w: Any, definite: bool = False) -> Any:
    """Room for factors of matrices with the pattern of an operator w (`operator.operator`).

    definite: whether they will all be symmetric and positive definite.
    """
    if isinstance(w, BlockRows):
        return SparseFactor(w).room()
    return LapackFactor(np.zeros(w.shape), make_words(len(w)), np.array([definite]))


def raise_held_back(f: Any) -> None:
    """Raise what came up while compiled code had the interpreter factor or solve: the user's interrupt."""
    if isinstance(f, BlockFactor) and (error := _HELD_BACK.pop(int(f.address[0]), None)) is not None:
        raise error


def contact_order(rows: sp.bsr_array) -> NDArray[np.int64]:
    """The rows (3 n,) of a matrix of blocks in an order of its contacts that leaves its factor sparse."""
    n = rows.shape[0] // 3
    graph = sp.csc_array((np.ones(len(rows.indices)), rows.indices, rows.indptr), shape=(n, n))
    factor = splu(sp.csc_array(graph + n * sp.eye_array(n)), permc_spec="MMD_AT_PLUS_A", **SYMMETRIC)
    return (3 * np.argsort(factor.perm_c)[:, None] + np.arange(3)).ravel()


class SparseFactor:
    """Factors matrices of the blocks that W has, and solves with them."""

    def __init__(self, w: BlockRows) -> None:
        shape = 2 * (3 * len(w.start) - 3,)
        self.matrix, self.right = np.zeros_like(w.blocks), np.zeros(shape[0])
        self.rows = sp.bsr_array((self.matrix, w.column, w.start), shape=shape)
        self.diagonal = np.flatnonzero(w.column == np.repeat(np.arange(len(w.start) - 1), np.diff(w.start)))
        self.order = contact_order(self.rows)
        number = np.arange(1.0, 1.0 + self.matrix.size).reshape(self.matrix.shape)
        places = sp.csr_array(sp.bsr_array((number, w.column, w.start), shape=shape))
        self.ordered = sp.csc_array(places[self.order][:, self.order])
        self.source = self.ordered.data.astype(np.int64) - 1

    def room(self) -> BlockFactor:
        """How compiled code meets it."""
        call = _CALL(self._called)
        address = np.array([ctypes.cast(call, ctypes.c_void_p).value], np.int64)
        self.address = int(address[0])
        weakref.finalize(address, lambda kept: None, call)  # which keeps it, and this object, for as long
        return BlockFactor(self.matrix, self.diagonal, self.right, address)

    def _called(self, what: int) -> int:
        try:
            if what == _TAKE:
                self.take()
            else:
                self.right[:] = self.solve(self.right)
        except RuntimeError:  # a pivot is zero
            return 0
        except BaseException as error:
            _HELD_BACK[self.address] = error
            return 0
        return 1

    def take(self) -> None:
        """Factor the matrix as it is; RuntimeError where a pivot is zero."""
        self.ordered.data = self.matrix.ravel()[self.source]
        self.factor = splu(self.ordered, permc_spec="NATURAL", **SYMMETRIC)

    def solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        """x of matrix x = right, shape (3 n,), refined once."""
        x = self._solve(right)
        return np.asarray(x + self._solve(right - self.rows @ x))

    def _solve(self, right: NDArray[np.float64]) -> NDArray[np.float64]:
        x = np.empty_like(right)
        x[self.order] = self.factor.solve(right[self.order])
        return x


@intrinsic
def _call_at(typing_context, address, what):
    def codegen(context, builder, signature, args):
        word = ir.IntType(64)
        function = builder.inttoptr(args[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(function, [args[1]])

    return types.int64(types.int64, types.int64), codegen


def _ask(f, what):
    return _CALL(f.address[0])(what)


@overload(_ask, inline="always")
def _ask_compiled(f, what):
    return lambda f, what: _call_at(f.address[0], what)


@inlined
def _fill_dense(f, w, k, c, s):
    i = 3 * k
    m0, m1, m2 = f.matrix[i], f.matrix[i + 1], f.matrix[i + 2]
    w0, w1, w2 = w[i], w[i + 1], w[i + 2]
    c00, c01, c02 = c[0, 0], c[0, 1], c[0, 2]
    c10, c11, c12 = c[1, 0], c[1, 1], c[1, 2]
    c20, c21, c22 = c[2, 0], c[2, 1], c[2, 2]
    for j in range(s.shape[0]):
        p, q, t = w0[j] * s[j], w1[j] * s[j], w2[j] * s[j]
        m0[j] = c00 * p + c01 * q + c02 * t
        m1[j] = c10 * p + c11 * q + c12 * t
        m2[j] = c20 * p + c21 * q + c22 * t


@inlined
def _fill_blocks(f, w, k, c, s):
    for p in range(w.start[k], w.start[k + 1]):
        j, block, out = 3 * w.column[p], w.blocks[p], f.blocks[p]
        for d in range(3):
            x, y, z = block[0, d] * s[j + d], block[1, d] * s[j + d], block[2, d] * s[j + d]
            for e in range(3):
                out[e, d] = c[e, 0] * x + c[e, 1] * y + c[e, 2] * z


@kernel
def _factor_dense(f):
    rows = f.matrix.shape[0]
    if f.definite[0]:
        return cholesky(f.matrix, rows, f.words)
    return lu_factor(f.matrix, rows, f.words)


@kernel
def _solve_dense(f, x):
    rows = f.matrix.shape[0]
    if f.definite[0]:
        cholesky_solve(f.matrix, rows, f.words, x)
    else:
        lu_solve(f.matrix, rows, f.words, x)


@kernel
def _factor_blocks(f):
    return _ask(f, _TAKE) == 1


@kernel
def _solve_blocks(f, x):
    for i in range(x.shape[0]):
        f.right[i] = x[i]
    _ask(f, _SOLVE)
    for i in range(x.shape[0]):
        x[i] = f.right[i]


fill = by_form(
    _fill_dense,
    _fill_blocks,
    "fill(f, w, k, c, s): the matrix's rows of contact k become those of c W diag(s); c (3, 3), s (3 n,).",
)
own_block = by_form(
    lambda f, k: f.matrix[3 * k : 3 * k + 3, 3 * k : 3 * k + 3],
    lambda f, k: f.blocks[f.diagonal[k]],
    "own_block(f, k): the matrix's block (3, 3) of contact k with itself, for adding to it.",
)
factor = by_form(
    _factor_dense,
    _factor_blocks,
    "factor(f): factor the matrix in place; whether it is regular, or positive definite if it is to be.",
)
solve = by_form(_solve_dense, _solve_blocks, "solve(f, x): x (3 n,) = matrix^-1 x with what `factor` left.")
