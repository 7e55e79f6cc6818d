"""Coarser levels of a mesh: lattices laid over its nodes, and linear interpolation from them.

A cube of a lattice is cut into Kuhn's six simplices: a node has four parents then, not eight.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.block_product import Neighbours

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
