"""All levels of a body's matrices: patterns, made once, and Galerkin products P^T K P, made in each step.

The levels stand one after another in the same arrays, the mesh first, their nodes counted through, so that
compiled code has one type however many there are. A coarse mass is P^T M P too, and never changes.
Source: Briggs, Henson & McCormick, A Multigrid Tutorial (SIAM 2000), chapters 5 and 10.

Coarser levels of a mesh: lattices laid over its nodes, and linear interpolation from them.

A cube of a lattice is cut into Kuhn's six simplices: a node has four parents then, not eight.
"""

import threading
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.fem.assembly import Neighbours
from palpo.physics.numerics.kernels import fast_inlined, fast_kernel

COARSEST = 40
"""Nodes below which a level is solved by a dense inverse."""

FIRST = 2.4
"""Cells of the first lattice over the mean length of the mesh's edges: a twelfth of the nodes stays."""

LEAST = 0.1
"""Sum of squared weights below which a lattice's node hangs on too few others to be kept: it would make the
level's matrix nearly singular."""

Floats = NDArray[np.float64]


class Coarse(NamedTuple):
    """A level under another, of n nodes, by linear interpolation; a row of weights sums to one."""

    parent: NDArray[np.int64]  # (n, 4)
    weight: Floats  # (n, 4)
    places: Floats  # (coarse nodes, 3) [m]


def mean_edge(x: Floats, rows: Neighbours) -> float:
    """Mean distance [m] of nodes x (n, 3) that share an element."""
    first = np.repeat(np.arange(len(x)), np.diff(rows.start))
    other = first != rows.node
    return float(np.linalg.norm(x[first[other]] - x[rows.node[other]], axis=1).mean())


def coarsened(x: Floats, cell: float) -> Coarse:
    """The lattice of cubes of edge `cell` [m] over places x (n, 3), without nodes that hardly carry any."""
    low = x.min(axis=0) - 0.25 * cell
    corner = np.floor((x - low) / cell).astype(np.int64)
    share, shape = (x - low) / cell - corner, corner.max(axis=0) + 2
    # from the cell's first corner along its axes, the longest way first: one of the six simplices of a cube
    longest = np.argsort(-share, axis=1, kind="stable")
    sorted_share = np.take_along_axis(share, longest, axis=1)
    weight = -np.diff(np.pad(sorted_share, ((0, 0), (1, 1)), constant_values=((0, 0), (1.0, 0.0))), axis=1)
    parent, at = np.empty((len(x), 4), np.int64), corner.copy()
    for k in range(4):
        parent[:, k] = np.ravel_multi_index(tuple(at.T), tuple(shape))
        if k < 3:
            at[np.arange(len(x)), longest[:, k]] += 1
    squares = np.bincount(parent.ravel(), (weight**2).ravel(), minlength=int(shape.prod()))
    carried: Floats = squares.astype(np.float64)[parent]
    # where all corners of a cell carry little, the one that carries most stays
    carries = carried >= np.minimum(carried.max(axis=1), LEAST)[:, None]
    weight[~carries] = 0.0
    weight /= weight.sum(axis=1)[:, None]
    used = np.unique(parent[weight > 0.0])
    number = np.zeros(int(shape.prod()), np.int64)
    number[used] = np.arange(len(used))
    places = np.stack(np.unravel_index(used, tuple(shape)), axis=1) * cell + low
    return Coarse(np.where(weight > 0.0, number[parent], 0), weight, places)


class LevelRows(NamedTuple):
    """Rows of blocks of all levels.

    level (levels + 1,): first node of each level.  start (nodes + 1,), node (m,): its columns, ascending.
    diagonal (nodes,): a row's own entry.  parent, weight (all but the coarsest nodes, 4): interpolation.
    """

    level: NDArray
    start: NDArray
    node: NDArray
    diagonal: NDArray
    parent: NDArray
    weight: NDArray


class _Product(NamedTuple):
    """Where the terms of P^T A P go, in two passes: Q = A P, then P^T Q."""

    start: NDArray  # (n + 1,) rows of A
    node: NDArray  # (m,)
    weight: Floats  # (n, 4)
    half_start: NDArray  # (n + 1,) rows of Q
    half: NDArray  # (m, 4) entry of Q for each entry of A and parent of its column
    whole: NDArray  # (entries of Q, 4) entry of the coarse matrix for each parent of Q's row


class Hierarchy:
    """Levels over the free nodes x (n, 3) [m] of a mesh; rows: its Neighbours; mass (m,): M there."""

    def __init__(self, x: Floats, rows: Neighbours, mass: Floats) -> None:
        self._fine = rows
        start, node = rows.start.astype(np.int64), rows.node.astype(np.int64)
        starts, nodes, masses = [start], [node], [mass]
        parents, weights, sizes = [], [], [len(x)]
        self._products: list[_Product] = []
        cell = FIRST * mean_edge(x, rows)
        while len(x) > COARSEST:
            coarse = coarsened(x, cell)
            product, start, node = _galerkin(starts[-1], nodes[-1], coarse)
            masses.append(_coarse_mass(masses[-1], starts[-1], nodes[-1], coarse, start, node))
            self._products.append(product)
            parents.append(coarse.parent + sum(sizes))
            weights.append(coarse.weight)
            starts.append(start)
            nodes.append(node)
            x, cell = coarse.places, 2.0 * cell
            sizes.append(len(x))
        level = np.concatenate([[0], np.cumsum(sizes)])
        self.entry: list[int] = [0, *np.cumsum([len(part) for part in nodes]).tolist()]
        """First entry of each level, and the end."""
        all_starts = [part[:-1] + before for part, before in zip(starts, self.entry, strict=False)]
        row_start = np.concatenate([*all_starts, self.entry[-1:]])
        column = np.concatenate([part + before for part, before in zip(nodes, level, strict=False)])
        owner = np.repeat(np.arange(level[-1]), np.diff(row_start))
        no_parent = np.zeros((0, 4))
        self.rows = LevelRows(
            level.astype(np.int32), row_start.astype(np.int32), column.astype(np.int32),
            np.flatnonzero(owner == column).astype(np.int32),
            np.concatenate([no_parent, *parents]).astype(np.int32),
            np.concatenate([no_parent, *weights]).astype(np.float32),
        )  # fmt: skip
        self.mass = np.concatenate(masses)
        """Scalar of each entry of M [kg], (m,)."""
        self.stiffness = np.zeros((self.entry[-1], 9))
        """Blocks of K [N/m], (m, 9), row by row."""
        self._renewing = threading.Lock()
        self._of = np.zeros((0, 9))

    def renew(self, blocks: Floats) -> None:
        """K of every level from the mesh's lower blocks (n_blocks, 9), once for each array of them."""
        with self._renewing:
            if blocks is not self._of:
                self._renew(blocks)
                self._of = blocks

    def _renew(self, blocks: Floats) -> None:
        levels = [self.stiffness[a:b] for a, b in zip(self.entry, self.entry[1:], strict=False)]
        _both_triangles(self._fine.block, self._fine.mirrored, blocks, levels[0])
        for product, fine, coarse in zip(self._products, levels, levels[1:], strict=False):
            half = np.zeros((len(product.whole), 9))
            _times_interpolation(product.start, product.node, fine, product.weight, product.half, half)
            coarse[:] = 0.0
            _gather(product.half_start, half, product.weight, product.whole, coarse)


def _galerkin(start: NDArray, node: NDArray, coarse: Coarse) -> tuple[_Product, NDArray, NDArray]:
    """The terms of P^T A P for a level's rows, and the rows (start, node) of the level below."""
    parent, live, many = coarse.parent, coarse.weight > 0.0, len(coarse.places)
    row = np.repeat(np.arange(len(parent)), np.diff(start))
    key = row[:, None] * many + parent[node]
    entries = np.unique(key[live[node]])
    half = np.where(live[node], np.searchsorted(entries, key), 0)
    of, column = entries // many, entries % many
    key = parent[of] * many + column[:, None]
    below = np.unique(key[live[of]])
    whole = np.where(live[of], np.searchsorted(below, key), 0)
    product = _Product(
        start.astype(np.int32), node.astype(np.int32), np.ascontiguousarray(coarse.weight),
        np.searchsorted(of, np.arange(len(parent) + 1)).astype(np.int32), half.astype(np.int32),
        whole.astype(np.int32),
    )  # fmt: skip
    return product, np.searchsorted(below // many, np.arange(many + 1)), below % many


def _coarse_mass(
    mass: Floats, start: NDArray, node: NDArray, coarse: Coarse, below: NDArray, column: NDArray
) -> Floats:
    """P^T M P at the entries of the level below."""
    n, many = coarse.parent.shape[0], len(coarse.places)
    ends = np.arange(n + 1) * 4
    interpolation = sp.csr_matrix((coarse.weight.ravel(), coarse.parent.ravel(), ends), shape=(n, many))
    full = (interpolation.T @ sp.csr_matrix((mass, node, start), shape=(n, n)) @ interpolation).tocsr()
    return np.asarray(full[np.repeat(np.arange(many), np.diff(below)), column]).ravel()


@fast_kernel
def _both_triangles(block, mirrored, blocks, out):
    """out (m, 9): the block of each entry, transposed where it is mirrored."""
    for e in range(block.size):
        b = block[e]
        for i in range(3):
            for j in range(3):
                out[e, 3 * i + j] = blocks[b, 3 * j + i] if mirrored[e] else blocks[b, 3 * i + j]


@fast_inlined
def _deal_out(block, weights, places, out):
    """out += weights (4,) times a block (9,), at four places."""
    a0, a1, a2, a3, a4 = block[0], block[1], block[2], block[3], block[4]
    a5, a6, a7, a8 = block[5], block[6], block[7], block[8]
    for k in range(4):
        w = weights[k]
        if w != 0.0:
            q = places[k]
            out[q, 0] += w * a0
            out[q, 1] += w * a1
            out[q, 2] += w * a2
            out[q, 3] += w * a3
            out[q, 4] += w * a4
            out[q, 5] += w * a5
            out[q, 6] += w * a6
            out[q, 7] += w * a7
            out[q, 8] += w * a8


@fast_kernel
def _times_interpolation(start, node, blocks, weight, half, out):
    """out += A P for A's blocks (m, 9), at the entries `half`."""
    for e in range(node.size):
        _deal_out(blocks[e], weight[node[e]], half[e], out)


@fast_kernel
def _gather(start, half, weight, whole, out):
    """out += P^T Q for Q's blocks `half`, at the entries `whole`."""
    for i in range(start.size - 1):
        for e in range(start[i], start[i + 1]):
            _deal_out(half[e], weight[i], whole[e], out)


class NodeWindow(NamedTuple):
    """Nodes of a mesh (n,), ascending, and the rows that a matrix of the mesh has on them alone."""

    nodes: NDArray[np.int64]
    entries: NDArray[np.int64]
    """Of the mesh's rows, (m,)."""
    neighbours: Neighbours
    rows: LevelRows
    """The same as a hierarchy of one level."""

    @property
    def freedoms(self) -> NDArray[np.int64]:
        """Those of the nodes in the mesh, (3 n,)."""
        return (3 * self.nodes[:, None] + np.arange(3)).ravel()


def window_around(rows: Neighbours, nodes: NDArray[np.intp], rings: int) -> NodeWindow:
    """The window of all nodes that so many edges lead to from `nodes`."""
    n = rows.start.size - 1
    owner = np.repeat(np.arange(n), np.diff(rows.start))
    inside = np.zeros(n, bool)
    inside[nodes] = True
    for _ in range(rings):
        inside[rows.node[inside[owner]]] = True
    kept = np.flatnonzero(inside)
    entries = np.flatnonzero(inside[owner] & inside[rows.node])
    number = np.cumsum(inside) - 1
    start = np.searchsorted(owner[entries], np.arange(n + 1))[np.append(kept, n)].astype(np.int32)
    node = number[rows.node[entries]].astype(np.int32)
    neighbours = Neighbours(start, node, rows.block[entries], rows.mirrored[entries], rows.diagonal[kept])
    own = np.flatnonzero(rows.node[entries] == owner[entries]).astype(np.int32)
    level = np.array([0, len(kept), len(kept)], np.int32)
    no_weight = np.zeros((len(kept), 4), np.float32)
    return NodeWindow(
        kept, entries, neighbours, LevelRows(level, start, node, own, no_weight.astype(np.int32), no_weight)
    )
