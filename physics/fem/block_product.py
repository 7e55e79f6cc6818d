"""Products of a node-wise symmetric matrix with many vectors, block by block (the pattern of `assembly`).

A chunk of columns at a time is copied to where rows lie a constant apart: slices of a constant length are
known not to reach into each other, so the compiler takes several columns an instruction, and an entry of a
block, once loaded, serves the whole chunk.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern
from palpo.physics.numerics.kernels import fast_kernel, inlined, kernel

CHUNK = 32
"""Columns taken together: a row of them is four cache lines."""

NONE = (0.0,) * 9


class Neighbours(NamedTuple):
    """Both triangles of a BlockPattern, row by row.

    start (n + 1,): first entry of each row of blocks.  node, block (m,): column of blocks and stored block of
    each entry.  mirrored (m,): whether that block is to be transposed.  diagonal (n,): block of each node.
    """

    start: NDArray
    node: NDArray
    block: NDArray
    mirrored: NDArray
    diagonal: NDArray


def neighbours(pattern: BlockPattern) -> Neighbours:
    """The rows of a pattern, for `multiply`."""
    rows, cols = pattern.rows, pattern.cols
    off = np.flatnonzero(rows != cols)
    row, node = np.concatenate([rows, cols[off]]), np.concatenate([cols, rows[off]])
    block = np.concatenate([np.arange(rows.size), off])
    order = np.lexsort((node, row))
    start = np.searchsorted(row[order], np.arange(int(rows.max()) + 2))
    return Neighbours(
        start.astype(np.int32), node[order].astype(np.int32), block[order].astype(np.int32),
        order >= rows.size, np.flatnonzero(rows == cols),
    )  # fmt: skip


@inlined
def _entries(block, mirrored):
    if mirrored:
        return block[0], block[3], block[6], block[1], block[4], block[7], block[2], block[5], block[8]
    return block[0], block[1], block[2], block[3], block[4], block[5], block[6], block[7], block[8]


@fast_kernel
def _add_two(a, x, b, y, out):
    """out += A x + B y on three rows of a chunk each: two at a time halve the visits to out."""
    a0, a1, a2, a3, a4, a5, a6, a7, a8 = a
    b0, b1, b2, b3, b4, b5, b6, b7, b8 = b
    for k in range(CHUNK):
        u, v, w = x[k], x[CHUNK + k], x[2 * CHUNK + k]
        p, q, r = y[k], y[CHUNK + k], y[2 * CHUNK + k]
        out[k] += a0 * u + a1 * v + a2 * w + b0 * p + b1 * q + b2 * r
        out[CHUNK + k] += a3 * u + a4 * v + a5 * w + b3 * p + b4 * q + b5 * r
        out[2 * CHUNK + k] += a6 * u + a7 * v + a8 * w + b6 * p + b7 * q + b8 * r


@kernel
def multiply(rows, blocks, b, out, first, past):
    """out = A b in columns first to past of b, out (3 n, k), which so may be shared out whole.

    blocks (n_blocks, 9): lower ones of A; rows: its Neighbours.
    """
    n, node = rows.start.size - 1, 3 * CHUNK
    x, y = np.zeros(n * node), np.empty(node)
    for begin in range(first, past, CHUNK):
        width = min(CHUNK, past - begin)
        for i in range(3 * n):
            for k in range(width):
                x[i * CHUNK + k] = b[i, begin + k]
        for s in range(n):
            y[:] = 0.0
            last = rows.start[s + 1] - 1
            for e in range(rows.start[s], last + 1, 2):
                f = min(e + 1, last)
                one, two = rows.node[e] * node, rows.node[f] * node
                second = _entries(blocks[rows.block[f]], rows.mirrored[f]) if f > e else NONE
                _add_two(
                    _entries(blocks[rows.block[e]], rows.mirrored[e]), x[one : one + node],
                    second, x[two : two + node], y,
                )  # fmt: skip
            for i in range(3):
                for k in range(width):
                    out[3 * s + i, begin + k] = y[i * CHUNK + k]


@kernel
def turn_blocks(blocks, axes):
    """blocks (n_blocks, 9) = axes^T A axes, in place: the matrix in turned axes (3, 3)."""
    half = np.empty((3, 3))
    for e in range(blocks.shape[0]):
        a = blocks[e]
        for i in range(3):
            for j in range(3):
                half[i, j] = a[3 * i] * axes[0, j] + a[3 * i + 1] * axes[1, j] + a[3 * i + 2] * axes[2, j]
        for i in range(3):
            for j in range(3):
                a[3 * i + j] = axes[0, i] * half[0, j] + axes[1, i] * half[1, j] + axes[2, i] * half[2, j]
