"""Fixed pattern of a node-wise symmetric matrix and its expansion to compressed columns.

The free nodes are numbered by slots in ascending order; a body's matrices are sets of 3x3 blocks over the
pairs (i, j), i >= j, of slots that share an element. The pattern never changes, so every map is built once.

Products of a node-wise symmetric matrix with many vectors, block by block (the pattern of `assembly`).

A chunk of columns at a time is copied to where rows lie a constant apart: slices of a constant length are
known not to reach into each other, so the compiler takes several columns an instruction, and an entry of a
block, once loaded, serves the whole chunk.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import fast_kernel, inlined, kernel


def local_pairs(corners: int) -> list[tuple[int, int]]:
    """Pairs (0, 0) (1, 0) (1, 1) (2, 0) ... of an element's corners."""
    return [(a, b) for a in range(corners) for b in range(a + 1)]


class NodeGroups(NamedTuple):
    """Nodes that are coupled together, whether or not they share an element: of group g
    nodes[start[g] : start[g + 1]], ascending."""

    start: NDArray
    nodes: NDArray


NO_GROUPS = NodeGroups(np.zeros(1, np.int64), np.zeros(0, np.int32))


class BlockPattern(NamedTuple):
    """Where the 3x3 blocks of a body's matrices live.

    slots (n_nodes,): slot of a node, -1 where it is fixed.
    rows, cols (n_blocks,): block (rows, cols), rows >= cols.
    pair_block (m, p): block of each local pair of an element, -1 if a node is fixed.
    group_block (q,): block of each pair (0,0) (1,0) (1,1) (2,0) ... of each group of nodes, one group after
    the other, -1 if a node is fixed.
    indptr, indices: scalar compressed columns of the full symmetric matrix over 3 n freedoms.
    lower, upper (n_blocks,): position in the data of entry (0, 0) of the block and of its mirror image.
    """

    slots: NDArray
    rows: NDArray
    cols: NDArray
    pair_block: NDArray
    group_block: NDArray
    indptr: NDArray
    indices: NDArray
    lower: NDArray
    upper: NDArray


def block_pattern(
    n_nodes: int,
    cells: NDArray,
    fixed: NDArray,
    links: NDArray | None = None,
    groups: NodeGroups = NO_GROUPS,
) -> BlockPattern:
    """Pattern over the free nodes; rows of cells (m, c) must ascend, so that local pairs are lower blocks.

    links (k, 2) and groups: nodes that are joined besides those of an element.
    """
    free = np.ones(n_nodes, dtype=bool)
    free[fixed] = False
    slots = np.where(free, np.cumsum(free) - 1, -1).astype(np.int32)
    n = int(free.sum())
    local = slots[cells]
    pairs = np.stack([local[:, list(both)] for both in local_pairs(cells.shape[1])], axis=1)
    valid = (pairs >= 0).all(axis=2)
    key = np.where(valid, pairs[..., 0].astype(np.int64) * n + pairs[..., 1], -1)
    joined = np.zeros((0, 2), np.int64) if links is None else np.sort(slots[links].astype(np.int64), axis=1)
    joined = joined[(joined >= 0).all(axis=1)]
    extra = joined[:, 1] * n + joined[:, 0]
    grouped = slots[_group_pairs(groups)].astype(np.int64)
    together = (grouped >= 0).all(axis=1)
    group_key = grouped[:, 0] * n + grouped[:, 1]
    unique = np.unique(
        np.concatenate([key[valid], extra, group_key[together], np.arange(n, dtype=np.int64) * (n + 1)])
    )
    pair_block = np.where(valid, np.searchsorted(unique, key), -1).astype(np.int32)
    group_block = np.where(together, np.searchsorted(unique, group_key), -1).astype(np.int32)
    rows, cols = (unique // n).astype(np.int32), (unique % n).astype(np.int32)

    off = rows != cols
    full_rows, full_cols = np.concatenate([rows, cols[off]]), np.concatenate([cols, rows[off]])
    order = np.lexsort((full_rows, full_cols))
    degree = np.bincount(full_cols, minlength=n)
    start = np.concatenate([[0], np.cumsum(degree)])
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    within = rank - start[full_cols]
    base = (9 * start[full_cols] + 3 * within).astype(np.int32)
    lower = base[: rows.size]
    upper = lower.copy()
    upper[off] = base[rows.size :]
    indptr = np.concatenate([[0], np.cumsum(np.repeat(3 * degree, 3))]).astype(np.int32)
    indices = np.empty(indptr[-1], dtype=np.int32)
    for j in range(n):
        column = 3 * full_rows[order[start[j] : start[j + 1]]][:, None] + np.arange(3)
        indices[indptr[3 * j] : indptr[3 * j + 3]] = np.tile(column.ravel(), 3)
    return BlockPattern(slots, rows, cols, pair_block, group_block, indptr, indices, lower, upper)


def _group_pairs(groups: NodeGroups) -> NDArray:
    """Pairs of nodes (q, 2) in the order of BlockPattern.group_block."""
    sizes = np.diff(groups.start)
    pairs = sizes * (sizes + 1) // 2
    out = np.zeros((int(pairs.sum()), 2), np.int64)
    first = np.cumsum(pairs) - pairs
    for size in np.unique(sizes):
        of = np.flatnonzero(sizes == size)
        local = np.array(local_pairs(int(size))).reshape(-1, 2)
        at = first[of, None] + np.arange(len(local))
        out[at] = groups.nodes[groups.start[of, None, None] + local]
    return out


@kernel
def _expand(blocks, rows, cols, indptr, lower, upper, data):
    for k in range(rows.size):
        low, up = lower[k], upper[k]
        down = indptr[3 * cols[k] + 1] - indptr[3 * cols[k]]
        across = indptr[3 * rows[k] + 1] - indptr[3 * rows[k]]
        for i in range(3):
            for j in range(3):
                data[low + j * down + i] = blocks[k, 3 * i + j]
                data[up + i * across + j] = blocks[k, 3 * i + j]


def to_csc(pattern: BlockPattern, blocks: NDArray) -> sp.csc_matrix:
    """Full symmetric scalar matrix, shape (3 n, 3 n), of lower blocks (n_blocks, 9)."""
    data = np.empty(pattern.indices.size)
    _expand(blocks, pattern.rows, pattern.cols, pattern.indptr, pattern.lower, pattern.upper, data)
    n = pattern.indptr.size - 1
    matrix = sp.csc_matrix((n, n))
    matrix.data, matrix.indices, matrix.indptr = data, pattern.indices, pattern.indptr
    matrix.has_sorted_indices = True
    return matrix


def scalar_blocks(weights: NDArray) -> NDArray:
    """Blocks w I of scalar pair weights (n_blocks,), such as a mass; shape (n_blocks, 9)."""
    return weights[:, None] * np.eye(3).ravel()


def sum_pairs(pattern: BlockPattern, element: NDArray) -> NDArray:
    """Scalar pair weights (n_blocks,) summed from element matrices (m, c, c)."""
    weights = np.zeros(pattern.rows.size)
    for p, (a, b) in enumerate(local_pairs(element.shape[1])):
        inside = pattern.pair_block[:, p] >= 0
        np.add.at(weights, pattern.pair_block[inside, p], element[inside, a, b])
    return weights


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
