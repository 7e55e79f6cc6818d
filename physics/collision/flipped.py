"""Which facets of a soft surface lie flipped over: back to front among those around them.

Where a body is crushed beyond what its law resists, its surface crosses itself: some facets turn their outer
side inwards. They have no outside that anything could touch, and a contact with one pulls in place of
pushing: a tool hooks into it, or the surface holds its own tangle shut. So they take no contact until the
body has turned them back. A fold, however sharp, flips none: a facet at its crest has more neighbours on its
own side.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.collision.proximity_contacts import EDGE_EDGE, EDGE_FACET, POINT_TRIANGLE
from palpo.physics.collision.topology import Topology
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, dot3, norm3

FLIPPED, FELL = -0.1, 0.5
"""Cosine between a facet's normal and those around it, weighted by area, below which it lies flipped over, if
it has fallen by so much since the body was at rest: on a wedge of few facets it is small from the start."""


class Flipped(NamedTuple):
    """Of the surfaces of a scene that can change their shape, at the last `find_flipped`."""

    soft: NDArray[np.int32]  # (c,) triangles of such surfaces
    limit: NDArray[np.float64]  # (c,) cosine below which each is flipped over
    facet: NDArray[np.bool_]  # (n_triangles,) whether each is
    edge: NDArray[np.bool_]  # (n_edges,) whether an edge is of such a one
    point: NDArray[np.bool_]  # (n_points,) whether a point is
    cosine: NDArray[np.float64]  # (c,) between a facet's normal and those around it
    area: NDArray[np.float64]  # (c, 3) [m2] along the normal, twice
    around: NDArray[np.float64]  # (n_points, 3) [m2] sum of a point's facets


def make_flipped(
    topology: Topology, x: NDArray[np.float64], soft: NDArray[np.bool_], parted: ArrayLike = ()
) -> Flipped:
    """Of the triangles whose body may change its shape, soft (bodies,), at rest at x (n_points, 3) [m], but
    for those `parted` (k,)."""
    own = np.flatnonzero(soft[topology.point_body[topology.triangles[:, 0]]])
    soft_ones: NDArray[np.int32] = np.setdiff1d(own, np.asarray(parted, np.int64)).astype(np.int32)
    n, facet, edge, point = (len(of) for of in (soft_ones, topology.triangles, topology.edges, x))
    out = Flipped(
        soft_ones, np.full(n, -2.0), np.zeros(facet, np.bool_), np.zeros(edge, np.bool_),
        np.zeros(point, np.bool_),
        np.zeros(n), np.zeros((n, 3)), np.zeros((point, 3)),
    )  # fmt: skip
    find_flipped(out, topology.triangles, topology.triangle_edges, x)
    out.limit[:] = np.minimum(FLIPPED, out.cosine - FELL)
    return out


@kernel
def find_flipped(flipped, triangles, triangle_edges, x):
    """Refresh a `Flipped` at positions x (n_points, 3) [m]."""
    one, two, others = np.empty(3), np.empty(3), np.empty(3)
    flipped.around[:] = 0.0
    for k in range(flipped.soft.size):
        a, b, c = triangles[flipped.soft[k]]
        for i in range(3):
            one[i], two[i] = x[b, i] - x[a, i], x[c, i] - x[a, i]
        cross3(one, two, flipped.area[k])
        for p in (a, b, c):
            for i in range(3):
                flipped.around[p, i] += flipped.area[k, i]
    flipped.facet[:] = flipped.edge[:] = flipped.point[:] = False
    for k in range(flipped.soft.size):
        t, own = flipped.soft[k], flipped.area[k]
        for i in range(3):
            others[i] = -3.0 * own[i]
            for j in range(3):
                others[i] += flipped.around[triangles[t, j], i]
        flipped.cosine[k] = dot3(own, others) / max(norm3(own) * norm3(others), 1e-300)
        if flipped.cosine[k] < flipped.limit[k]:
            flipped.facet[t] = True
            for j in range(3):
                flipped.edge[triangle_edges[t, j]] = flipped.point[triangles[t, j]] = True


@inlined
def is_flipped(flipped, topology, kind, first, second):
    """Whether a pair has a side that lies flipped over; a point does against its own body alone."""
    if kind == EDGE_EDGE:
        return flipped.edge[first] or flipped.edge[second]
    if kind == EDGE_FACET:
        return flipped.facet[second]
    if kind == POINT_TRIANGLE:
        own = topology.point_body[first] == topology.point_body[topology.triangles[second, 0]]
        return flipped.facet[second] or (own and flipped.point[first])
    return False
