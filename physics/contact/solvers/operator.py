"""W as the sweeps see it, dense or as rows of blocks: each solver is written once, for either.

A kernel calls `own_entries`, `set_offset`, `close_block` and `add_change`; which of two codes that is follows
from the type of W when it is compiled, so that a dense W costs what it would if there were no other. A visit
to a contact of a W of blocks costs its own row: large problems of many bodies have a W whose contacts hang
together through one body only.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba import types
from numba.extending import overload
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem, SparseProblem
from palpo.physics.contact.solvers import block
from palpo.physics.numerics.kernels import inlined

_STRIDE = 8
"""Between the rows of an own block: with it (row, column) -> 8 row + column meets no entry twice."""


class BlockRows(NamedTuple):
    """W (3 n, 3 n) [m/N], symmetric."""

    blocks: NDArray[np.float64]  # (m, 3, 3)
    column: NDArray[np.int64]  # (m,) contact of each block's columns
    start: NDArray[np.int64]  # (n + 1,) first block of each row
    own: NDArray[np.float64]  # (3 n, 3 n) right on the contacts' own blocks alone


def operator(problem: AnyProblem) -> Any:
    """W of a problem as kernels take it: dense (3 n, 3 n), contiguous, or its block rows."""
    return block_rows(problem.w) if isinstance(problem, SparseProblem) else np.ascontiguousarray(problem.w)


def entries(problem: AnyProblem) -> int:
    """Products that one with W takes."""
    return int(problem.w.nnz if isinstance(problem, SparseProblem) else problem.w.size)


def block_rows(w: Any) -> BlockRows:
    """The blocks of a sparse W (3 n, 3 n)."""
    rows = sp.bsr_array(w, blocksize=(3, 3))
    return BlockRows(
        np.ascontiguousarray(rows.data, float), rows.indices.astype(np.int64), rows.indptr.astype(np.int64),
        own_blocks(rows),
    )  # fmt: skip


def own_blocks(rows: sp.bsr_array) -> NDArray[np.float64]:
    """A view, shape (3 n, 3 n), whose entries are W's in each contact's own block; any other is of no use."""
    n = rows.shape[0] // 3
    at = np.repeat(np.arange(n), np.diff(rows.indptr))
    mine = rows.indices == at
    stored = np.zeros((n, 3 * (_STRIDE + 1)))
    for c in range(3):
        for d in range(3):
            np.add.at(stored[:, _STRIDE * c + d], at[mine], rows.data[mine, c, d])
    step = stored.itemsize
    return as_strided(stored, (3 * n, 3 * n), (_STRIDE * step, step), writeable=False)


@inlined
def _add_force(w, k, d_n, d_1, d_2, u):
    """u += W d of a change d of contact k's force. W is symmetric: its block row serves as its column."""
    for p in range(w.start[k], w.start[k + 1]):
        j, block = 3 * w.column[p], w.blocks[p]
        for c in range(3):
            u[j + c] += block[0, c] * d_n + block[1, c] * d_1 + block[2, c] * d_2


@inlined
def _set_offset_blocks(w, b, r, u):
    for i in range(b.shape[0]):
        u[i] = b[i]
    for k in range(w.start.shape[0] - 1):
        if r[3 * k] != 0.0:  # in the cones there is no friction without a normal force
            _add_force(w, k, r[3 * k], r[3 * k + 1], r[3 * k + 2], u)


@inlined
def _close_block_of_rows(w, r, u, i, own, change):
    d_n, d_1, d_2 = own[0] - r[i], own[1] - r[i + 1], own[2] - r[i + 2]
    moved = d_n * d_n + d_1 * d_1 + d_2 * d_2
    if moved > 0.0:
        for c in range(3):
            r[i + c] = own[c]
        _add_force(w, i // 3, d_n, d_1, d_2, u)
    return change + moved


@inlined
def _add_change_dense(w, i, first, last, d_n, d_1, d_2, ahead):
    # W is symmetric: its rows serve as its columns, and lie in one piece
    row_n, row_1, row_2 = w[i, first:last], w[i + 1, first:last], w[i + 2, first:last]
    for c in range(ahead.shape[0]):
        ahead[c] += d_n * row_n[c] + d_1 * row_1[c] + d_2 * row_2[c]


def own_entries(w):
    """An array (rows, rows) that is W on the contacts' own blocks, whatever it is elsewhere."""
    return w.own if isinstance(w, BlockRows) else w


def set_offset(w, b, r, u, first, last):
    """u = W r + b over the rows first to last, which are all of a W of blocks."""
    if isinstance(w, BlockRows):
        _set_offset_blocks(w, b, r, u)
    else:
        block.set_offset(w, b, r, u, first, last)


def close_block(w, r, ahead, i, first, last, own, change):
    """r[i : i + 3] = own, and `ahead`, u over the rows first to last, follows. Returns change + |step|^2."""
    if isinstance(w, BlockRows):
        return _close_block_of_rows(w, r, ahead, i, own, change)
    return block.close_block(w, r, ahead, i, first, last, own, change)


def add_change(w, i, first, last, d_n, d_1, d_2, ahead):
    """`ahead`, u over the rows first to last, after a change d of the force of the contact in row i."""
    if isinstance(w, BlockRows):
        _add_force(w, i // 3, d_n, d_1, d_2, ahead)
    else:
        _add_change_dense(w, i, first, last, d_n, d_1, d_2, ahead)


# What each of them is to the compiler, by the type of W.


@overload(own_entries, inline="always")
def _own_entries(w):
    return (lambda w: w.own) if _of_blocks(w) else (lambda w: w)


@overload(set_offset, inline="always")
def _set_offset(w, b, r, u, first, last):
    if _of_blocks(w):
        return lambda w, b, r, u, first, last: _set_offset_blocks(w, b, r, u)
    return lambda w, b, r, u, first, last: block.set_offset(w, b, r, u, first, last)


@overload(close_block, inline="always")
def _close_block(w, r, ahead, i, first, last, own, change):
    if _of_blocks(w):
        return lambda w, r, ahead, i, first, last, own, change: _close_block_of_rows(
            w, r, ahead, i, own, change
        )
    return lambda w, r, ahead, i, first, last, own, change: block.close_block(
        w, r, ahead, i, first, last, own, change
    )


@overload(add_change, inline="always")
def _add_change(w, i, first, last, d_n, d_1, d_2, ahead):
    if _of_blocks(w):
        return lambda w, i, first, last, d_n, d_1, d_2, ahead: _add_force(w, i // 3, d_n, d_1, d_2, ahead)
    return lambda w, i, first, last, d_n, d_1, d_2, ahead: _add_change_dense(
        w, i, first, last, d_n, d_1, d_2, ahead
    )


def _of_blocks(w: Any) -> bool:
    return isinstance(w, types.BaseNamedTuple)
