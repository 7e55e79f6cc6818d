"""The pattern of a sparse Cholesky factor: minimum degree order, elimination tree, supernodes.

Source: Davis, Direct Methods for Sparse Linear Systems (SIAM 2006), chapters 4 and 7; amalgamation of
supernodes after Ashcraft & Grimes, The influence of relaxed supernode partitions (TOMS 1989).
"""

from typing import NamedTuple

import numpy as np
import qdldl
import scipy.sparse as sp
from numpy.typing import NDArray


class Symbolic(NamedTuple):
    """Pattern of the factor; positions are the nodes in elimination order, freedoms 3 a node.

    order (n,): node at each position.  column (s+1,): first position of each supernode.
    row_ptr (s+1,), rows: positions below the supernode's own.  panel (s+1,): offset of its panel.
    seg_ptr (s+1,), seg_target, seg_begin, seg_end: runs of its rows that are columns of one later supernode;
    rel_ptr, rel: place in the target's panel of each row from seg_begin on.
    block_offset, block_ld, block_mirrored (n_blocks,): where a block of the matrix goes.
    """

    order: NDArray
    column: NDArray
    row_ptr: NDArray
    rows: NDArray
    panel: NDArray
    seg_ptr: NDArray
    seg_target: NDArray
    seg_begin: NDArray
    seg_end: NDArray
    rel_ptr: NDArray
    rel: NDArray
    block_offset: NDArray
    block_ld: NDArray
    block_mirrored: NDArray


def no_elimination() -> Symbolic:
    """The pattern of a matrix without nodes."""
    none, first, far = np.zeros(0, np.int32), np.zeros(1, np.int32), np.zeros(0, np.int64)
    return Symbolic(
        none, first, first, none, np.zeros(1, np.int64), first, none, none, none, first, none, far, none,
        np.zeros(0, np.bool_),
    )  # fmt: skip


def _minimum_degree(n: int, rows: NDArray, cols: NDArray) -> NDArray:
    graph = sp.coo_matrix((np.full(rows.size, -1.0), (rows, cols)), shape=(n, n))
    graph = graph + graph.T + 2.0 * n * sp.eye(n)
    return np.asarray(qdldl.Solver(sp.csc_matrix(graph)).factors()[2])


def _elimination(n: int, rows: NDArray, cols: NDArray, order: NDArray) -> tuple[NDArray, list[NDArray]]:
    """Parents and below-diagonal rows of each column of the factor for the given order."""
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    high, low = np.maximum(place[rows], place[cols]), np.minimum(place[rows], place[cols])
    off = high != low
    by_column = np.argsort(low[off], kind="stable")
    high, low = high[off][by_column], low[off][by_column]
    start = np.searchsorted(low, np.arange(n + 1))
    parent = np.full(n, -1)
    children: list[list[int]] = [[] for _ in range(n)]
    below: list[NDArray] = []
    for j in range(n):
        merged = np.unique(np.concatenate([high[start[j] : start[j + 1]], *(below[c] for c in children[j])]))
        below.append(merged[merged > j])
        if below[j].size:
            parent[j] = below[j][0]
            children[parent[j]].append(j)
    return parent, below


def _postorder(parent: NDArray) -> NDArray:
    """Columns so that each subtree is contiguous and the child with the longest column comes last."""
    n = parent.size
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for j in range(n):
        children[parent[j]].append(j)
    out: list[int] = []
    stack = [(r, False) for r in reversed(children[n])]
    while stack:
        node, done = stack.pop()
        if done:
            out.append(node)
        else:
            stack.append((node, True))
            stack.extend((c, False) for c in reversed(children[node]))
    return np.array(out)


def _supernodes(parent: NDArray, below: list[NDArray], ends: int) -> list[tuple[int, int]]:
    """Ranges [first, last) of columns stored as one dense panel, merged where few zeros are added.

    The last `ends` columns are in one, whatever was merged with the first of them.
    """
    merged: list[list[int]] = []
    zeros: list[int] = []
    for j in range(parent.size):
        first, last, fill = j, j + 1, 0
        while merged and parent[merged[-1][1] - 1] == first:
            width, child = last - first, merged[-1][1] - merged[-1][0]
            tail = below[last - 1].size
            grown = child * (width + tail - below[first - 1].size) + fill + zeros[-1]
            size = (width + child) * (width + child + 1) // 2 + (width + child) * tail
            # a narrow panel wastes more in loop overhead than in zeros
            allowed = 0.35 if width + child <= 6 else 0.15 if width + child <= 16 else 0.05
            if grown > allowed * size and merged[-1][1] <= parent.size - ends:
                break
            first, fill = merged[-1][0], grown
            merged.pop()
            zeros.pop()
        merged.append([first, last])
        zeros.append(fill)
    return [(a, b) for a, b in merged]


def analyse(
    n: int, rows: NDArray, cols: NDArray, last: NDArray | None = None, joined: bool = True
) -> Symbolic:
    """Symbolic factorisation for lower blocks (rows, cols) over n nodes of 3 freedoms.

    last (c,): distinct nodes that end the elimination, in this order: the end of the last panel is then the
    dense factor of their Schur complement. joined: whether the others are ordered as if these were joined
    each with each; of many, the joined graph hides what is near what, and fills more.
    """
    if last is None:
        last = np.zeros(0, dtype=np.int64)
    # as a clique the last nodes stay together, at the root, in any postorder
    a, b = np.tril_indices(last.size, -1)
    high, low = np.concatenate([rows, last[a]]), np.concatenate([cols, last[b]])
    order = _minimum_degree(n, high, low) if joined else _minimum_degree(n, rows, cols)
    order = np.concatenate([order[~np.isin(order, last)], last])
    parent, below = _elimination(n, high, low, order)
    order = order[_postorder(parent)]
    parent, below = _elimination(n, high, low, order)
    ranges = _supernodes(parent, below, last.size)

    column = np.array([a for a, _ in ranges] + [n])
    owner = np.repeat(np.arange(len(ranges)), np.diff(column))
    tails = [below[b - 1] for _, b in ranges]
    row_ptr = np.concatenate([[0], np.cumsum([t.size for t in tails])])
    heights = np.diff(column) + np.diff(row_ptr)
    panel = np.concatenate([[0], np.cumsum(9 * np.diff(column) * heights)])

    segments: list[tuple[int, int, int]] = []
    seg_ptr, rel_ptr, rel = [0], [0], [np.zeros(0, dtype=np.int64)]
    for tail in tails:
        targets, begins = np.unique(owner[tail], return_index=True)
        for t, begin, end in zip(targets, begins, np.append(begins, tail.size)[1:], strict=True):
            segments.append((t, begin, end))
            member = tail[begin:]
            inside = np.searchsorted(tails[t], member) + column[t + 1] - column[t]
            rel.append(np.where(member < column[t + 1], member - column[t], inside))
            rel_ptr.append(rel_ptr[-1] + member.size)
        seg_ptr.append(len(segments))
    seg = np.array(segments, dtype=np.int32).reshape(-1, 3)

    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    high, low = np.maximum(place[rows], place[cols]), np.minimum(place[rows], place[cols])
    s = owner[low]
    inside = np.empty(rows.size, dtype=np.int64)
    for k in range(rows.size):
        t = s[k]
        own = high[k] < column[t + 1]
        inside[k] = (
            high[k] - column[t] if own else column[t + 1] - column[t] + np.searchsorted(tails[t], high[k])
        )
    ld = 3 * heights[s]
    offset = panel[s] + 3 * (low - column[s]) * ld + 3 * inside

    def i32(a: object) -> NDArray:
        return np.ascontiguousarray(a, dtype=np.int32)  # columns of `seg` as well: one kernel serves all

    return Symbolic(
        i32(order), i32(column), i32(row_ptr), i32(np.concatenate([*tails, np.zeros(0)])),
        panel.astype(np.int64), i32(seg_ptr), i32(seg[:, 0]), i32(seg[:, 1]), i32(seg[:, 2]), i32(rel_ptr),
        i32(np.concatenate(rel)), offset.astype(np.int64), i32(ld), place[rows] < place[cols],
    )  # fmt: skip
