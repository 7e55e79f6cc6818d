"""Edges of rigid bodies that never touch another surface's edge, since they do not stand out of their faces.

Two edges touch where each leads out of both of its faces (palpo.physics.collision.edge_groups). An edge
inside a flat face, which the mesh has since faces are triangles, does so nowhere, nor does the bottom of a
valley; on a body that never changes its shape that is so for ever.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.edge_groups import CONVEX
from palpo.physics.collision.topology import Topology


def blunt_edges(topology: Topology, x: NDArray[np.float64], rigid: Sequence[int]) -> NDArray[np.bool_]:
    """Which edges of the bodies `rigid` do not stand out of their two faces by CONVEX, (edges,).

    x (n_points, 3) [m]: where the points are, in any pose of the bodies.
    """
    edges, opposite = topology.edges, topology.edge_opposite
    out = np.isin(topology.point_body[edges[:, 0]], rigid) & (opposite >= 0).all(axis=1)
    along = x[edges[out, 1]] - x[edges[out, 0]]
    squares = np.maximum((along * along).sum(axis=1, keepdims=True), 1e-300)
    across = []
    for side in range(2):
        arm = x[opposite[out, side]] - x[edges[out, 0]]
        arm -= (arm * along).sum(axis=1, keepdims=True) / squares * along
        across.append(arm / np.maximum(np.linalg.norm(arm, axis=1, keepdims=True), 1e-300))
    one, two = across
    # in the plane across the edge two arms that go straight on make a flat face; two that are one, a fin
    flat = np.linalg.norm(one + two, axis=1) <= CONVEX
    out[out] = flat | ((np.cross(along, one) * two).sum(axis=1) > CONVEX * squares[:, 0] ** 0.5)
    return out
