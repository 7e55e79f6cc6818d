"""A sparse W as rows of 3 x 3 blocks, one for every contact that another contact's force moves.

Large problems of many bodies have a W whose contacts hang together through one body only; a visit to a
contact then costs its own row, and storage the blocks.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined

_STRIDE = 8
"""Between the rows of an own block: with it (row, column) -> 8 row + column meets no entry twice."""


class BlockRows(NamedTuple):
    """W (3 n, 3 n) [m/N], symmetric."""

    blocks: NDArray[np.float64]  # (m, 3, 3)
    column: NDArray[np.int64]  # (m,) contact of each block's columns
    start: NDArray[np.int64]  # (n + 1,) first block of each row
    own: NDArray[np.float64]  # (3 n, 3 n) right on the contacts' own blocks alone


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
def add_force(w, k, d_n, d_1, d_2, u):
    """u += W d of a change d of contact k's force. W is symmetric: its block row serves as its column."""
    for p in range(w.start[k], w.start[k + 1]):
        j, block = 3 * w.column[p], w.blocks[p]
        for c in range(3):
            u[j + c] += block[0, c] * d_n + block[1, c] * d_1 + block[2, c] * d_2


@inlined
def set_offsets(w, b, r, u):
    """u = W r + b."""
    for i in range(b.shape[0]):
        u[i] = b[i]
    for k in range(w.start.shape[0] - 1):
        if r[3 * k] != 0.0:  # in the cones there is no friction without a normal force
            add_force(w, k, r[3 * k], r[3 * k + 1], r[3 * k + 2], u)
