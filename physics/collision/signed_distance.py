"""Exact signed distance of a closed triangle surface: the reference that every approximation is measured by.

The nearest triangle is found by branch and bound in a tree of boxes; the sign is that of the angle-weighted
pseudo-normal of the feature (face, edge or vertex) that carries the closest point: Baerentzen and Aanaes,
Signed distance computation using the angle weighted pseudonormal (IEEE TVCG 2005). Distance [m] is positive
outside, the opposite of 002, section IV-A; the normal is its gradient and points out of the solid.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.broadphase import Primitives, build_tree, refit
from palpo.physics.collision.closest import EDGE_AB, VERTEX_A, point_triangle
from palpo.physics.kernels import inlined, kernel
from palpo.physics.mesh.surface import SurfaceMesh

DEEPEST = 64
"""Most levels of a tree; median splits of any mesh that fits in memory need fewer."""
ON_SURFACE = 1e-9
"""Distance over the solid's size below which rounding turns the direction to the closest point [-]."""


class ExactDistance(NamedTuple):
    """Triangles in the order of a tree's leaves, and the tree (`palpo.physics.collision.broadphase`)."""

    corners: NDArray[np.float64]  # (m, 3, 3) [m]
    normals: NDArray[np.float64]  # (m, 7, 3) outward unit pseudo-normal of each feature, by feature code
    span: NDArray[np.int32]  # (n_nodes, 2) range of triangles
    children: NDArray[np.int32]  # (n_nodes, 2), -1 for a leaf
    box: NDArray[np.float64]  # (n_nodes, 6) lower and upper corner [m]
    on_surface: float  # distance [m] below which the normal is the feature's own


class Descent(NamedTuple):
    """What one query of the tree writes."""

    node: NDArray[np.int64]  # (DEEPEST,) nodes still to visit
    bound: NDArray[np.float64]  # (DEEPEST,) squared distance [m2] to their boxes
    weights: NDArray[np.float64]  # (3,) barycentric
    offset: NDArray[np.float64]  # (3,) from the closest point [m]


def make_descent() -> Descent:
    """Scratch of one thread."""
    return Descent(np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST), np.zeros(3), np.zeros(3))


def exact_distance(surface: SurfaceMesh) -> ExactDistance:
    """Model of a solid's surface; what is no solid, `palpo.physics.collision.solid.require_solid` refuses."""
    x, triangles = surface.vertices, surface.triangles
    tree = build_tree(x[triangles].mean(axis=1))
    none = np.full(triangles.shape, -1, np.int32)
    refit(tree, Primitives(triangles, none[:, 0], none, none), x)
    normals = np.empty((len(triangles), 7, 3))
    normals[:, 0] = surface.triangle_normals
    normals[:, EDGE_AB:VERTEX_A] = surface.edge_normals[_edges_of(surface)]
    normals[:, VERTEX_A:] = surface.vertex_normals[triangles]
    size = float(np.linalg.norm(tree.box[0, 3:] - tree.box[0, :3]))
    order = tree.order
    return ExactDistance(
        np.ascontiguousarray(x[triangles[order]]), np.ascontiguousarray(normals[order]),
        tree.span, tree.children, tree.box, ON_SURFACE * size,
    )  # fmt: skip


def no_exact_distance() -> ExactDistance:
    """The model of nothing, where another kind is used."""
    empty = np.zeros((0, 2), np.int32)
    return ExactDistance(np.zeros((0, 3, 3)), np.zeros((0, 7, 3)), empty, empty, np.zeros((0, 6)), 0.0)


def _edges_of(surface: SurfaceMesh) -> NDArray[np.int64]:
    """Edges ab, bc, ca of each triangle, shape (m, 3)."""
    n = len(surface.vertices)
    low, high = np.sort(surface.edges.astype(np.int64), axis=1).T
    key = low * n + high
    order = np.argsort(key)
    low, high = np.sort(surface.triangles[:, [[0, 1], [1, 2], [2, 0]]].astype(np.int64), axis=2).T
    return order[np.searchsorted(key[order], (low * n + high).T)]


@inlined
def _to_box(box, node, p):
    """Squared distance [m2] of a point to the box of a node."""
    d2 = 0.0
    for i in range(3):
        gap = max(box[node, i] - p[i], p[i] - box[node, 3 + i])
        if gap > 0.0:
            d2 += gap * gap
    return d2


@inlined
def _vector(array, i, j):
    """A tuple, for which nothing counts references: the query takes a quarter of the time of slices."""
    return array[i, j, 0], array[i, j, 1], array[i, j, 2]


@kernel
def _nearest(exact, p, descent):
    """Triangle nearest to p and the feature that carries the closest point."""
    best, triangle, feature = 1e300, 0, 0
    w = descent.weights
    top = 0
    descent.node[0] = 0
    descent.bound[0] = 0.0
    while top >= 0:
        node = descent.node[top]
        near = descent.bound[top] < best
        top -= 1
        if not near:
            continue
        left, right = exact.children[node, 0], exact.children[node, 1]
        if left >= 0:
            d_left, d_right = _to_box(exact.box, left, p), _to_box(exact.box, right, p)
            # the nearer child comes off the stack first, so that `best` falls early
            if d_left < d_right:
                left, right, d_left, d_right = right, left, d_right, d_left
            descent.node[top + 1] = left
            descent.bound[top + 1] = d_left
            descent.node[top + 2] = right
            descent.bound[top + 2] = d_right
            top += 2
            continue
        for t in range(exact.span[node, 0], exact.span[node, 1]):
            a, b, c = _vector(exact.corners, t, 0), _vector(exact.corners, t, 1), _vector(exact.corners, t, 2)
            code = point_triangle(p, a, b, c, w)
            o0 = p[0] - w[0] * a[0] - w[1] * b[0] - w[2] * c[0]
            o1 = p[1] - w[0] * a[1] - w[1] * b[1] - w[2] * c[1]
            o2 = p[2] - w[0] * a[2] - w[1] * b[2] - w[2] * c[2]
            d2 = o0 * o0 + o1 * o1 + o2 * o2
            if d2 < best:
                best, triangle, feature = d2, t, code
                descent.offset[0] = o0
                descent.offset[1] = o1
                descent.offset[2] = o2
    return triangle, feature


@kernel
def exact_block(exact, points, index, count, distance, normal, descent):
    """Distance [m] (n,) and normal (n, 3) of points[index[:count]], `points` (n, 3) [m]."""
    for k in range(count):
        i = index[k]
        p = points[i, 0], points[i, 1], points[i, 2]
        triangle, feature = _nearest(exact, p, descent)
        n, o = _vector(exact.normals, triangle, feature), descent.offset
        d = (o[0] * o[0] + o[1] * o[1] + o[2] * o[2]) ** 0.5
        if o[0] * n[0] + o[1] * n[1] + o[2] * n[2] < 0.0:
            d = -d
        distance[i] = d
        for j in range(3):
            normal[i, j] = o[j] / d if abs(d) > exact.on_surface else n[j]
