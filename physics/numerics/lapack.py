"""LAPACK and BLAS for compiled code: factorisations in place, without the interpreter.

scipy's own are given to the linker by name, so that what calls them can be cached. Matrices are in C's
order, which LAPACK reads as their transposes: `lu_solve` asks for the transposed solution, and of a symmetric
matrix `cholesky` uses and overwrites what C calls its upper triangle. Nothing is allocated here; OpenBLAS
takes its buffers from a pool that it fills at the first call of a thread.
"""

import llvmlite.binding
import numba
import numpy as np
import scipy.linalg
from numba import types
from numba.extending import get_cython_function_address
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import kernel

for _name, _room in (
    ("dgetrf", "lapack"), ("dgetrs", "lapack"), ("dpotrf", "lapack"), ("dpotrs", "lapack"), ("dtrsm", "blas"),
    ("dgemm", "blas"), ("dpotri", "lapack"), ("sgemv", "blas"), ("strsv", "blas"),
):  # fmt: skip
    _address = get_cython_function_address(f"scipy.linalg.cython_{_room}", _name)
    llvmlite.binding.add_symbol(f"palpo_{_name}", _address)

_P = types.voidptr
_dgetrf = types.ExternalFunction("palpo_dgetrf", types.void(_P, _P, _P, _P, _P, _P))
_dgetrs = types.ExternalFunction("palpo_dgetrs", types.void(_P, _P, _P, _P, _P, _P, _P, _P, _P))
_dpotrf = types.ExternalFunction("palpo_dpotrf", types.void(_P, _P, _P, _P, _P))
_dpotrs = types.ExternalFunction("palpo_dpotrs", types.void(_P, _P, _P, _P, _P, _P, _P, _P))
_dpotri = types.ExternalFunction("palpo_dpotri", types.void(_P, _P, _P, _P, _P))
_dtrsm = types.ExternalFunction("palpo_dtrsm", types.void(_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P))
_dgemm = types.ExternalFunction("palpo_dgemm", types.void(_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P))
_sgemv = types.ExternalFunction("palpo_sgemv", types.void(_P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P))
_strsv = types.ExternalFunction("palpo_strsv", types.void(_P, _P, _P, _P, _P, _P, _P, _P))

_ROWS, _STRIDE, _ONE, _INFO, _LETTER = range(5)


def make_words(rows: int) -> NDArray[np.int32]:
    """The integers that LAPACK gets by address, and room for the pivots of `rows` rows."""
    return np.zeros(5 + rows, np.int32)


@kernel
def lu_factor(a, m, words):
    """Factor the leading m x m part of a, C-contiguous rows, in place. Returns whether it is regular."""
    words[_ROWS], words[_STRIDE] = m, a.shape[1]
    rows, pivots = words[_ROWS:].ctypes, words[5:].ctypes
    _dgetrf(rows, rows, a.ctypes, words[_STRIDE:].ctypes, pivots, words[_INFO:].ctypes)
    return words[_INFO] == 0


@kernel
def lu_solve(a, m, words, x):
    """x (m,) = a^-1 x with what `lu_factor` left."""
    if m == 0:
        return
    words[_ROWS], words[_STRIDE], words[_ONE], words[_LETTER] = m, a.shape[1], 1, ord("T")
    rows, pivots = words[_ROWS:].ctypes, words[5:].ctypes
    _dgetrs(
        words[_LETTER:].ctypes, rows, words[_ONE:].ctypes, a.ctypes, words[_STRIDE:].ctypes, pivots, x.ctypes,
        rows, words[_INFO:].ctypes,
    )  # fmt: skip


@kernel
def cholesky(a, m, words):
    """Factor the leading m x m part of a symmetric a in place. Returns whether it is positive definite."""
    words[_ROWS], words[_STRIDE], words[_LETTER] = m, a.shape[1], ord("L")
    _dpotrf(
        words[_LETTER:].ctypes, words[_ROWS:].ctypes, a.ctypes, words[_STRIDE:].ctypes, words[_INFO:].ctypes
    )
    return words[_INFO] == 0


@kernel
def cholesky_solve(a, m, words, x):
    """x (m,) = a^-1 x with what `cholesky` left."""
    if m == 0:
        return
    words[_ROWS], words[_STRIDE], words[_ONE], words[_LETTER] = m, a.shape[1], 1, ord("L")
    rows = words[_ROWS:].ctypes
    _dpotrs(
        words[_LETTER:].ctypes, rows, words[_ONE:].ctypes, a.ctypes, words[_STRIDE:].ctypes, x.ctypes, rows,
        words[_INFO:].ctypes,
    )  # fmt: skip


@kernel
def cholesky_inverse(a, m, words):
    """Inverse in place of a symmetric matrix from what `cholesky` left: what C calls the upper triangle."""
    words[_ROWS], words[_STRIDE], words[_LETTER] = m, a.shape[1], ord("L")
    _dpotri(
        words[_LETTER:].ctypes, words[_ROWS:].ctypes, a.ctypes, words[_STRIDE:].ctypes, words[_INFO:].ctypes
    )


@kernel
def factor_columns(panel, width, height, words, factor):
    """Factor the first `width` columns of a matrix (height, width) in Fortran's order, from the top down.

    panel (height width,): its lower part becomes that of L. words (8,) int32, factor (1,): scratch. Returns
    0, or 1 + the first column whose pivot is not positive.
    """
    words[0], words[1], words[2], words[3] = width, height, height - width, 0
    words[4], words[5], words[6], words[7] = ord("L"), ord("R"), ord("T"), ord("N")
    columns, stride, below = words[0:].ctypes, words[1:].ctypes, words[2:].ctypes
    lower = words[4:].ctypes
    _dpotrf(lower, columns, panel.ctypes, stride, words[3:].ctypes)
    for c in range(width):
        # not every LAPACK tells of a NaN
        if not panel[c * height + c] > 0.0:
            return c + 1
    if words[3] != 0:
        return words[3]
    factor[0] = 1.0
    if height > width:
        _dtrsm(
            words[5:].ctypes, lower, words[6:].ctypes, words[7:].ctypes, below, columns, factor.ctypes,
            panel.ctypes, stride, panel[width:].ctypes, stride,
        )  # fmt: skip
    return 0


@kernel
def multiply_rows(rows, count, width, height, columns, words, factors, out):
    """out = P Q^T, P the first `count` rows from `rows` on of a matrix of that height, Q the first `columns`.

    rows: the matrix in Fortran's order, (height, width), from its first row of P on. out (count columns,), in
    Fortran's order. words (6,) int32, factors (2,): scratch.
    """
    words[0], words[1], words[2], words[3] = count, columns, width, height
    words[4], words[5] = ord("N"), ord("T")
    factors[0], factors[1] = 1.0, 0.0
    stride = words[3:].ctypes
    _dgemm(
        words[4:].ctypes, words[5:].ctypes, words.ctypes, words[1:].ctypes, words[2:].ctypes,
        factors.ctypes, rows.ctypes, stride, rows.ctypes, stride, factors[1:].ctypes, out.ctypes,
        words.ctypes,
    )  # fmt: skip


@kernel
def single_down(panel, width, height, words, factors, x, below):
    """x (width,) = L_1^-1 x and below = L_2 x, with the columns (L_1, L_2) of a factor in single precision.

    panel (height width,): in Fortran's order. below: height - width are written. words (7,) int32, factors
    (3,): scratch.
    """
    _single_words(width, height, words, factors)
    _solve_columns(panel, words[5:], words, x)
    if height > width:
        _sgemv(
            words[5:].ctypes, words[3:].ctypes, words.ctypes, factors.ctypes, panel[width:].ctypes,
            words[1:].ctypes, x.ctypes, words[2:].ctypes, factors[1:].ctypes, below.ctypes, words[2:].ctypes,
        )  # fmt: skip


@kernel
def single_up(panel, width, height, words, factors, x, below):
    """x (width,) = L_1^-T (x - L_2^T below), as `single_down`."""
    _single_words(width, height, words, factors)
    if height > width:
        _sgemv(
            words[6:].ctypes, words[3:].ctypes, words.ctypes, factors[2:].ctypes, panel[width:].ctypes,
            words[1:].ctypes, below.ctypes, words[2:].ctypes, factors.ctypes, x.ctypes, words[2:].ctypes,
        )  # fmt: skip
    _solve_columns(panel, words[6:], words, x)


@kernel
def _single_words(width, height, words, factors):
    words[0], words[1], words[2], words[3] = width, height, 1, height - width
    words[4], words[5], words[6] = ord("L"), ord("N"), ord("T")
    factors[0], factors[1], factors[2] = 1.0, 0.0, -1.0


@kernel
def _solve_columns(panel, transposed, words, x):
    _strsv(
        words[4:].ctypes, transposed.ctypes, words[5:].ctypes, words.ctypes, panel.ctypes, words[1:].ctypes,
        x.ctypes, words[2:].ctypes,
    )  # fmt: skip


if numba.config.DISABLE_JIT:  # the kernels are plain Python then, which cannot call what the linker knows

    def _interpreted(factor, back):
        kept = {}

        def into(a, m, words):
            if m == 0:
                return True
            try:
                kept[id(a)] = factor(a[:m, :m])
            except np.linalg.LinAlgError:
                return False
            return True

        def solve(a, m, words, x):
            if m:
                x[:m] = back(kept[id(a)], x[:m])

        return into, solve

    lu_factor, lu_solve = _interpreted(scipy.linalg.lu_factor, scipy.linalg.lu_solve)

    def _factored(a, m, words):
        if m == 0:
            return True
        factor, info = scipy.linalg.lapack.dpotrf(a[:m, :m].T, lower=True, clean=False)
        a[:m, :m] = factor.T
        return info == 0

    def _solved(a, m, words, x):
        if m:
            x[:m] = scipy.linalg.cho_solve((a[:m, :m].T, True), x[:m])

    def _inverted(a, m, words):
        if m:
            a[:m, :m] = scipy.linalg.lapack.dpotri(a[:m, :m].T, lower=True)[0].T

    cholesky, cholesky_solve, cholesky_inverse = _factored, _solved, _inverted

    def _down(panel, width, height, words, factors, x, below):
        columns = panel[: width * height].reshape(width, height).T
        x[:width] = scipy.linalg.solve_triangular(columns[:width], x[:width], lower=True)
        below[: height - width] = columns[width:] @ x[:width]

    def _up(panel, width, height, words, factors, x, below):
        columns = panel[: width * height].reshape(width, height).T
        left = x[:width] - columns[width:].T @ below[: height - width]
        x[:width] = scipy.linalg.solve_triangular(columns[:width], left, trans="T", lower=True)

    single_down, single_up = _down, _up
