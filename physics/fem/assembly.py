"""Fixed pattern of a node-wise symmetric matrix and its expansion to compressed columns.

The free nodes are numbered by slots in ascending order; a body's matrices are sets of 3x3 blocks over the
pairs (i, j), i >= j, of slots that share an element. The pattern never changes, so every map is built once.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import kernel


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
