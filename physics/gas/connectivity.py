"""Who neighbours whom on a surface: what floods, borders and walks need; it never changes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.surface import SurfaceMesh


class Connectivity(NamedTuple):
    """Connectivity of a manifold surface of n vertices, m triangles and k edges."""

    triangles: NDArray[np.int64]  # (m, 3) outward by the right-hand rule
    across: NDArray[np.int64]  # (m, 3) triangle beyond the edges ab, bc, ca, -1 at a rim
    triangle_edges: NDArray[np.int64]  # (m, 3) edges ab, bc, ca
    edges: NDArray[np.int64]  # (k, 2)
    around: NDArray[np.int64]  # (n + 1,) span of each vertex in `neighbours`
    neighbours: NDArray[np.int64]  # (2 k,) vertices at the other ends of each vertex's edges
    rim: NDArray[np.bool_]  # (n,) whether the surface ends there (an open surface)
    shell: NDArray[np.int64]  # (n,) number of the connected piece of surface


def connectivity(surface: SurfaceMesh) -> Connectivity:
    """The connectivity of a surface; vertices that no triangle uses are shells of their own."""
    n = len(surface.vertices)
    triangles = surface.triangles.astype(np.int64)
    edges = surface.edges.astype(np.int64)
    numbers = {edge: k for k, edge in enumerate(map(frozenset, edges.tolist()))}
    sides = triangles[:, [[0, 1], [1, 2], [2, 0]]]
    triangle_edges = np.array([[numbers[frozenset(s)] for s in t] for t in sides.tolist()], np.int64)
    left, right = surface.edge_triangles.astype(np.int64)[triangle_edges].transpose(2, 0, 1)
    across = np.where(left == np.arange(len(triangles))[:, None], right, left)

    ends = np.concatenate([edges, edges[:, ::-1]])
    order = np.argsort(ends[:, 0], kind="stable")
    rim = np.zeros(n, bool)
    rim[edges[surface.edge_triangles[:, 1] < 0]] = True
    graph = coo_array((np.ones(len(edges), np.int8), edges.T), shape=(n, n))
    return Connectivity(
        triangles=triangles,
        across=np.ascontiguousarray(across),
        triangle_edges=triangle_edges,
        edges=edges,
        around=np.searchsorted(ends[order, 0], np.arange(n + 1)).astype(np.int64),
        neighbours=np.ascontiguousarray(ends[order, 1]),
        rim=rim,
        shell=connected_components(graph, directed=False)[1].astype(np.int64),
    )
