"""What can touch what: the collision primitives of a whole scene in one set of flat arrays.

Every point that a body offers to contact or attachment has one *global point number*; bodies own
contiguous ranges. Triangles and edges refer to global points, so that a kernel that knows the present
positions of the points (N, 3) needs nothing else. The arrays never change after the scene is built, but for
the surface of a body that is cut while it runs: triangles and edges come in where there is room for them, and
what a frame under way refers to stays (palpo.physics.collision.growing_surface).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.numerics.kernels import inlined

STATIC, TOOL, LOW = 0, 1, 2
"""Who moves a body: nobody, the servo (1 kHz) or the low-rate loop."""

LONGEST = 1.5
"""Radii up to which a facet may be long, in the mean, to be met by its area."""


class Topology(NamedTuple):
    """Collision primitives of a scene; all indices are global."""

    triangles: NDArray[np.int32]  # (n_triangles, 3) points, outward by the right-hand rule
    triangle_edges: NDArray[np.int32]  # (n_triangles, 3) edges ab, bc, ca
    edges: NDArray[np.int32]  # (n_edges, 2) points; its first triangle runs from the first to the second
    edge_opposite: NDArray[np.int32]  # (n_edges, 2) third points of the adjacent triangles, -1 for none
    point_body: NDArray[np.int32]  # (n_points,)
    body_role: NDArray[np.int32]  # (n_bodies,) STATIC, TOOL or LOW
    body_radius: NDArray[np.float64]  # (n_bodies,) [m] thickness around points, edges and triangles
    planes: NDArray[np.float64]  # (n_planes, 6) point and unit normal
    plane_body: NDArray[np.int32]  # (n_planes,)
    facet_yield: NDArray[np.float64]  # (n_triangles,) [m/Pa] see palpo.physics.fem.facet_yield
    body_facet: NDArray[np.float64]  # (n_bodies,) [m] longest edge of a facet in the mean, inf if none yields


class CollisionShape(NamedTuple):
    """One body's collision primitives in its own numbering; see `join_shapes`."""

    n_points: int
    triangles: NDArray[np.int32]  # (m, 3), may be empty
    edges: NDArray[np.int32]  # (k, 2) edges of a line body; those of triangles are derived
    radius: float
    role: int
    plane: NDArray[np.float64] | None = None  # (6,) for a static half space
    facet_yield: NDArray[np.float64] | None = None  # (m,) [m/Pa], none if not given
    facet: float = np.inf  # longest edge of a facet in the mean [m], inf if none yields
    spare_edges: int = 0  # room for edges of triangles that come in later, which are a point three times now


@inlined
def meet_by_area(topology, line, faceted):
    """Whether a body of thick points and edges meets another's facets by areas (collision.round_facets)."""
    return LONGEST * topology.body_radius[line] >= topology.body_facet[faceted]


@inlined
def kept_gap(topology, one, two, skin):
    """Gap [m] that the surfaces of two bodies keep: `skin`, by which the sides of points, edges and faces are
    told apart, and none where areas meet, which have sides of their own."""
    return 0.0 if meet_by_area(topology, one, two) or meet_by_area(topology, two, one) else skin


def _triangle_edges(
    triangles: NDArray[np.int32],
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Unique edges (k, 2), the edges of each triangle (m, 3) and the opposite points (k, 2).

    An edge has the direction in which the first of its triangles runs it, so that this one's outward side
    is known: it is (edge[0], edge[1], opposite[0]).
    """
    half = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    third = triangles[:, [2, 0, 1]].reshape(-1)
    _, first, inverse, _ = distinct_sides(half)
    opposite = np.full((len(first), 2), -1, np.int32)
    opposite[:, 0] = third[first]
    second = np.setdiff1d(np.arange(len(half)), first)
    opposite[inverse[second], 1] = third[second]
    return half[first].astype(np.int32), inverse.reshape(-1, 3).astype(np.int32), opposite


def join_shapes(shapes: list[CollisionShape]) -> tuple[Topology, NDArray[np.int32]]:
    """Number the primitives of all bodies through; also returns the first point of each body, (n+1,)."""
    first = np.zeros(len(shapes) + 1, np.int32)
    triangles, triangle_edges, edges, opposite, planes, plane_body = [], [], [], [], [], []
    facet_yield: list[NDArray[np.float64]] = []
    n_edges = 0
    for b, shape in enumerate(shapes):
        first[b + 1] = first[b] + shape.n_points
        if len(shape.triangles):
            own, own_of_triangle, own_opposite = _triangle_edges(np.asarray(shape.triangles, np.int32))
            own = np.pad(own, ((0, shape.spare_edges), (0, 0)))
            own_opposite = np.pad(own_opposite, ((0, shape.spare_edges), (0, 0)), constant_values=-1)
            triangles.append(shape.triangles + first[b])
            triangle_edges.append(own_of_triangle + n_edges)
            given = shape.facet_yield
            facet_yield.append(np.zeros(len(shape.triangles)) if given is None else given)
        else:
            own = np.asarray(shape.edges, np.int32).reshape(-1, 2)
            own_opposite = np.full((len(own), 2), -1, np.int32)
        edges.append(own + first[b])
        opposite.append(np.where(own_opposite >= 0, own_opposite + first[b], -1))
        n_edges += len(own)
        if shape.plane is not None:
            planes.append(shape.plane)
            plane_body.append(b)

    def stack(parts: list, columns: int, dtype: type) -> NDArray:
        kept: list[NDArray] = [np.asarray(p, dtype).reshape(-1, columns) for p in parts]
        return np.ascontiguousarray(np.vstack(kept)) if kept else np.zeros((0, columns), dtype)

    topology = Topology(
        triangles=stack(triangles, 3, np.int32),
        triangle_edges=stack(triangle_edges, 3, np.int32),
        edges=stack(edges, 2, np.int32),
        edge_opposite=stack(opposite, 2, np.int32),
        point_body=np.repeat(np.arange(len(shapes), dtype=np.int32), np.diff(first)),
        body_role=np.array([s.role for s in shapes], np.int32),
        body_radius=np.array([s.radius for s in shapes], np.float64),
        planes=stack(planes, 6, np.float64),
        plane_body=np.array(plane_body, np.int32),
        facet_yield=np.concatenate([np.zeros(0), *facet_yield]),
        body_facet=np.array([s.facet for s in shapes], np.float64),
    )
    return topology, first
