"""Where a surface crosses the edges of a tetrahedral mesh."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import cross3, dot3

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

EDGES = np.array(list(combinations(range(4), 2)))
"""Corners of a tetrahedron's edges, shape (6, 2)."""

NEAREST = 0.2
"""Share of an edge that is left on each side of a crossing. A piece that ends at the share t of an edge has
t^3 of its element's stiffness where a point of its surface hangs by t on a virtual node: it yields there by
1 / t times what it should, and nearer to a node than this the cut gives way."""

ASIDE = 1e-7 * np.array([1.0, 0.618, 0.283])
"""Shares of an edge's length by which a cut is moved before it is intersected with edges, so that it goes
through no node."""


def mesh_edges(tets: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Edges (k, 2) of elements (m, 4), lower node first, and those of each element in the order of EDGES,
    shape (m, 6)."""
    met = distinct_sides(tets[:, EDGES].reshape(-1, 2))
    return met.rows.astype(np.int64), met.of.reshape(-1, 6).astype(np.int64)


def crossings(nodes: Floats, edges: Ints, surface: Floats) -> Floats:
    """Where edges (k, 2) of nodes (n, 3) cross a surface of triangles (t, 3, 3) [m], as the share of their
    length from the first node, shape (k,); NaN where they do not."""
    lengths = np.linalg.norm(nodes[edges[:, 1]] - nodes[edges[:, 0]], axis=1)
    first, way = nodes[edges[:, 0]] - lengths.mean() * ASIDE, nodes[edges[:, 1]] - nodes[edges[:, 0]]
    share = np.full(len(edges), np.inf)
    meet(first, way, np.asarray(surface, float), share)
    return np.where(share == np.inf, np.nan, np.clip(share, NEAREST, 1.0 - NEAREST))


@kernel
def meet(first, way, surface, share):
    """share (k,) = the least of it and where lines from `first` by `way` (k, 3) cross triangles (t, 3, 3)."""
    u, v, at, normal, cross = np.empty(3), np.empty(3), np.empty(3), np.empty(3), np.empty(3)
    for s in range(surface.shape[0]):
        for i in range(3):
            u[i] = surface[s, 1, i] - surface[s, 0, i]
            v[i] = surface[s, 2, i] - surface[s, 0, i]
        cross3(u, v, normal)
        square = dot3(normal, normal)
        for k in range(first.shape[0]):
            along = dot3(way[k], normal)
            if along == 0.0:
                continue
            for i in range(3):
                at[i] = surface[s, 0, i] - first[k, i]
            t = dot3(at, normal) / along
            if not 0.0 < t < min(share[k], 1.0):
                continue
            for i in range(3):
                at[i] = t * way[k, i] - at[i]
            cross3(at, v, cross)
            b = dot3(cross, normal)
            cross3(u, at, cross)
            c = dot3(cross, normal)
            if b >= 0.0 and c >= 0.0 and b + c <= square:
                share[k] = t
