"""LAPACK for compiled code: factorisations in place, without the interpreter.

scipy's own LAPACK is given to the linker by name, so that what calls it can be cached. Matrices are in C's
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

from palpo.physics.kernels import kernel

for _name in ("dgetrf", "dgetrs", "dpotrf", "dpotrs"):
    _address = get_cython_function_address("scipy.linalg.cython_lapack", _name)
    llvmlite.binding.add_symbol(f"palpo_{_name}", _address)

_P = types.voidptr
_dgetrf = types.ExternalFunction("palpo_dgetrf", types.void(_P, _P, _P, _P, _P, _P))
_dgetrs = types.ExternalFunction("palpo_dgetrs", types.void(_P, _P, _P, _P, _P, _P, _P, _P, _P))
_dpotrf = types.ExternalFunction("palpo_dpotrf", types.void(_P, _P, _P, _P, _P))
_dpotrs = types.ExternalFunction("palpo_dpotrs", types.void(_P, _P, _P, _P, _P, _P, _P, _P))

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
    cholesky, cholesky_solve = _interpreted(scipy.linalg.cho_factor, scipy.linalg.cho_solve)
