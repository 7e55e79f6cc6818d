"""The nodes of a mesh around some of them, numbered by themselves."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.block_product import Neighbours
from palpo.physics.fem.multigrid.hierarchy import LevelRows


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
