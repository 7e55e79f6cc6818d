"""Solids of stacked prisms: a triangulated sheet repeated in levels, each prism cut in three tetrahedra."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.generate import THREE_TETS
from palpo.physics.mesh.tet import TetMesh, orient_tets


def stack(
    positions: NDArray[np.float64], triangles: NDArray[np.int64], present: NDArray[np.bool_]
) -> tuple[TetMesh, NDArray[np.int64]]:
    """Tetrahedra of the prisms that are present between successive levels of a sheet.

    positions: of each point of the sheet at each level [m], shape (levels, n, 3); those that no prism uses
    may be anything. triangles: of the sheet in each layer, shape (levels - 1, m, 3). present: which prisms
    there are, shape (levels - 1, m). The side over an edge is cut from the point named first, below, to the
    other, above, so every edge must run the same way in both of its triangles; it does when they are sorted.
    Returns the mesh and the node of each point at each level, -1 where there is none, shape (levels, n).
    """
    n_levels, n_points, _ = positions.shape
    layer, triangle = np.nonzero(present)
    lower = triangles[layer, triangle] + (layer * n_points)[:, None]
    prisms = np.concatenate([lower, lower + n_points], axis=1)
    used, tets = np.unique(prisms[:, THREE_TETS], return_inverse=True)
    number = np.full(n_levels * n_points, -1)
    number[used] = np.arange(len(used))
    nodes = np.ascontiguousarray(positions.reshape(-1, 3)[used])
    cells = tets.reshape(-1, 4).astype(np.int32)
    return TetMesh(nodes, orient_tets(nodes, cells)), number.reshape(n_levels, n_points)
