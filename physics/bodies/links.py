"""What joins two nodes of a body besides its elements: a symmetric stiffness between their displacements."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern

Floats = NDArray[np.float64]


def add_link_forces(links: NDArray, stiffness: Floats, v: Floats, force: Floats) -> None:
    """force (n, 3) -= K v of the `stiffness` (k, 3, 3) between nodes `links` (k, 2)."""
    pull = np.einsum("kij,kj->ki", stiffness, v[links[:, 0]] - v[links[:, 1]])
    np.subtract.at(force, links[:, 0], pull)
    np.add.at(force, links[:, 1], pull)


def add_links(links: NDArray, stiffness: NDArray, pattern: BlockPattern, blocks: NDArray[np.float64]) -> None:
    """blocks (b, 9) += the symmetric `stiffness` (k, 3, 3) between nodes `links` (k, 2)."""
    n = int((pattern.slots >= 0).sum())
    key = pattern.rows.astype(np.int64) * n + pattern.cols
    one, other = pattern.slots[links].astype(np.int64).T
    low, high = np.minimum(one, other), np.maximum(one, other)
    for row, column, sign in ((one, one, 1.0), (other, other, 1.0), (high, low, -1.0)):
        free = (row >= 0) & (column >= 0)
        at = np.searchsorted(key, row[free] * n + column[free])
        np.add.at(blocks, at, sign * stiffness[free].reshape(-1, 9))
