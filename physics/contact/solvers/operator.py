"""W as the solvers see it, dense or as rows of blocks: each is written once, for either.

A kernel calls `times`, `own_entries`, `set_offset`, `close_block` and `add_change`; which of two codes that
is follows from the type of W when it is compiled, so that a dense W costs what it would if there were no
other. A visit to a contact of a W of blocks costs its own row: large problems of many bodies have a W whose
contacts hang together through one body only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numba.extending import overload
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem, SparseProblem
from palpo.physics.contact.solvers import block
from palpo.physics.contact.solvers.products import dot
from palpo.physics.numerics.kernels import inlined

_STRIDE = 8
"""Between the rows of an own block: with it (row, column) -> 8 row + column meets no entry twice."""


class BlockRows(NamedTuple):
    """W (3 n, 3 n) [m/N], symmetric; each contact has its own block, zero or not."""

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
    rows = _with_diagonal(sp.bsr_array(w, blocksize=(3, 3)))
    return BlockRows(
        np.ascontiguousarray(rows.data, float), rows.indices.astype(np.int64), rows.indptr.astype(np.int64),
        own_blocks(rows),
    )  # fmt: skip


def _with_diagonal(rows: sp.bsr_array) -> sp.bsr_array:
    n = rows.shape[0] // 3
    at = np.repeat(np.arange(n), np.diff(rows.indptr))
    lacking = np.setdiff1d(np.arange(n), at[rows.indices == at])
    if not lacking.size:
        return rows
    at, column = np.append(at, lacking), np.append(rows.indices, lacking)
    order = np.lexsort((column, at))
    data = np.concatenate([rows.data, np.zeros((lacking.size, 3, 3))])[order]
    start = np.append(0, np.cumsum(np.bincount(at, minlength=n)))
    return sp.bsr_array((data, column[order], start), shape=rows.shape)


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
def _set_offset_blocks(w, b, r, u, first, last):
    for i in range(b.shape[0]):
        u[i] = b[i]
    for k in range(w.start.shape[0] - 1):
        if r[3 * k] != 0.0:  # in the cones there is no friction without a normal force
            _add_force(w, k, r[3 * k], r[3 * k + 1], r[3 * k + 2], u)


@inlined
def _close_block_of_rows(w, r, u, i, first, last, own, change):
    d_n, d_1, d_2 = own[0] - r[i], own[1] - r[i + 1], own[2] - r[i + 2]
    moved = d_n * d_n + d_1 * d_1 + d_2 * d_2
    if moved > 0.0:
        for c in range(3):
            r[i + c] = own[c]
        _add_force(w, i // 3, d_n, d_1, d_2, u)
    return change + moved


@inlined
def _add_change_blocks(w, i, first, last, d_n, d_1, d_2, u):
    _add_force(w, i // 3, d_n, d_1, d_2, u)


@inlined
def _add_change_dense(w, i, first, last, d_n, d_1, d_2, ahead):
    # W is symmetric: its rows serve as its columns, and lie in one piece
    row_n, row_1, row_2 = w[i, first:last], w[i + 1, first:last], w[i + 2, first:last]
    for c in range(ahead.shape[0]):
        ahead[c] += d_n * row_n[c] + d_1 * row_1[c] + d_2 * row_2[c]


@inlined
def _times_blocks(w, x, out):
    for k in range(w.start.shape[0] - 1):
        u0, u1, u2 = 0.0, 0.0, 0.0
        for p in range(w.start[k], w.start[k + 1]):
            j, block = 3 * w.column[p], w.blocks[p]
            x0, x1, x2 = x[j], x[j + 1], x[j + 2]
            u0 += block[0, 0] * x0 + block[0, 1] * x1 + block[0, 2] * x2
            u1 += block[1, 0] * x0 + block[1, 1] * x1 + block[1, 2] * x2
            u2 += block[2, 0] * x0 + block[2, 1] * x1 + block[2, 2] * x2
        out[3 * k], out[3 * k + 1], out[3 * k + 2] = u0, u1, u2


@inlined
def _times_dense(w, x, out):
    for i in range(x.shape[0]):
        out[i] = dot(w[i], x)


def in_blocks(w: Any) -> bool:
    """Whether an operator or a factor, or what the compiler takes it for, is of blocks."""
    return "blocks" in getattr(w, "fields", getattr(w, "_fields", ()))


def by_form(dense: Callable[..., Any], blocks: Callable[..., Any], about: str) -> Any:
    """The function, for kernels to call, that is one or the other by the form of its first argument."""

    def chosen(*given: Any) -> Any:
        return (blocks if in_blocks(given[0]) else dense)(*given)

    def compiled(*given: Any) -> Any:
        code = blocks if in_blocks(given[0]) else dense
        return getattr(code, "py_func", code)

    overload(chosen, inline="always", strict=False)(compiled)
    chosen.__doc__ = about
    return chosen


times = by_form(_times_dense, _times_blocks, "times(w, x, out): out (3 n,) = W x.")
own_entries = by_form(
    lambda w: w,
    lambda w: w.own,
    "own_entries(w): an array (rows, rows) that is W on the contacts' own blocks, whatever it is elsewhere.",
)
set_offset = by_form(
    block.set_offset,
    _set_offset_blocks,
    "set_offset(w, b, r, u, first, last): u = W r + b over these rows, all of a W of blocks.",
)
close_block = by_form(
    block.close_block,
    _close_block_of_rows,
    """close_block(w, r, ahead, i, first, last, own, change): r[i : i + 3] = own, and `ahead`, u over the rows
    first to last, follows. Returns change + |step|^2.""",
)
add_change = by_form(
    _add_change_dense,
    _add_change_blocks,
    """add_change(w, i, first, last, d_n, d_1, d_2, ahead): `ahead`, u over the rows first to last, after a
    change d of the force of the contact in row i.""",
)
