"""Exact signed distance of a closed triangle surface: the reference that every approximation is measured by.

The nearest triangle is found in the list of the point's cell (`palpo.physics.collision.cell_lists`) or, where
there is none, by branch and bound in a tree of boxes; the sign is that of the angle-weighted
pseudo-normal of the feature (face, edge or vertex) that carries the closest point: Baerentzen and Aanaes,
Signed distance computation using the angle weighted pseudonormal (IEEE TVCG 2005). Distance [m] is positive
outside, the opposite of 002, section IV-A; the normal is its gradient and points out of the solid.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.box_tree import Primitives, build_tree, refit
from palpo.physics.collision.cell_lists import NONE, CellLists, cell_of, no_cell_lists
from palpo.physics.collision.closest import EDGE_AB, VERTEX_A, point_triangle
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import inlined, kernel

DEEPEST = 64
"""Most levels of a tree; median splits of any mesh that fits in memory need fewer."""
ON_SURFACE = 1e-9
"""Distance over the solid's size below which rounding turns the direction to the closest point [-]."""


NO_NEARER = 1.0 - 1e-12
"""A triangle whose plane is this share of the least distance away is no nearer but by rounding."""
SHARE = 4096
"""Cells that one thread takes at a time."""


class ExactDistance(NamedTuple):
    """Triangles in the order of a tree's leaves, and the tree (`palpo.physics.collision.box_tree`)."""

    corners: NDArray[np.float64]  # (m, 3, 3) [m]
    normals: NDArray[np.float64]  # (m, 7, 3) outward unit pseudo-normal of each feature, by feature code
    span: NDArray[np.int32]  # (n_nodes, 2) range of triangles
    children: NDArray[np.int32]  # (n_nodes, 2), -1 for a leaf
    box: NDArray[np.float64]  # (n_nodes, 6) lower and upper corner [m]
    on_surface: float  # distance [m] below which the normal is the feature's own
    lists: CellLists


class Descent(NamedTuple):
    """What one query of the tree writes."""

    node: NDArray[np.int64]  # (DEEPEST,) nodes still to visit
    bound: NDArray[np.float64]  # (DEEPEST,) squared distance [m2] to their boxes
    weights: NDArray[np.float64]  # (3,) barycentric


@kernel
def make_descent() -> Descent:
    """Scratch of one thread."""
    return Descent(np.zeros(DEEPEST, np.int64), np.zeros(DEEPEST), np.zeros(3))


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
        tree.span, tree.children, tree.box, ON_SURFACE * size, no_cell_lists(),
    )  # fmt: skip


def no_exact_distance() -> ExactDistance:
    """The model of nothing, where another kind is used."""
    empty = np.zeros((0, 2), np.int32)
    return ExactDistance(
        np.zeros((0, 3, 3)), np.zeros((0, 7, 3)), empty, empty, np.zeros((0, 6)), 0.0, no_cell_lists()
    )


def with_cell_lists(
    exact: ExactDistance, lower: NDArray[np.float64], upper: NDArray[np.float64], cells: int, band: float
) -> ExactDistance:
    """With a list for each cell of a box [m], (3,) each, that comes within `band` [m] of the surface.

    cells: along the longest side of the box.
    """
    size = upper - lower
    n = np.ceil(cells * size / size.max()).astype(int)
    cell = size / n
    centres = lower + cell * (np.indices(n).reshape(3, -1).T + 0.5)
    radius = 0.5 * float(np.linalg.norm(cell))
    limit, count = np.empty(len(centres)), np.empty(len(centres), np.int32)
    _share_out(
        lambda part: _count_near(exact, centres[part], radius, band, limit[part], count[part]), centres
    )
    start = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    triangle, reach = np.empty(start[-1], np.int32), np.empty(start[-1])
    _share_out(
        lambda part: _list_near(exact, centres[part], limit[part], start[part], triangle, reach), centres
    )
    return exact._replace(lists=CellLists(lower.copy(), 1.0 / cell, n, start, triangle, reach))


def _share_out(work: Callable[[slice], object], points: NDArray[np.float64]) -> None:
    """Work on shares of the points, in threads."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(work, (slice(i, i + SHARE) for i in range(0, len(points), SHARE))))


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


@inlined
def _to_triangle(corners, t, p, w):
    """Squared distance [m2] of a point to a triangle, the feature that is nearest, and its offset [m].

    corners are handed over, and w (3,) to be overwritten, as locals: a field read in a loop is counted anew.
    """
    a, b, c = _vector(corners, t, 0), _vector(corners, t, 1), _vector(corners, t, 2)
    code = point_triangle(p, a, b, c, w)
    o0 = p[0] - w[0] * a[0] - w[1] * b[0] - w[2] * c[0]
    o1 = p[1] - w[0] * a[1] - w[1] * b[1] - w[2] * c[1]
    o2 = p[2] - w[0] * a[2] - w[1] * b[2] - w[2] * c[2]
    return o0 * o0 + o1 * o1 + o2 * o2, code, (o0, o1, o2)


@kernel
def _nearest(exact, p, descent):
    """Triangle nearest to p and the feature that carries the closest point."""
    best, triangle, feature, offset = 1e300, 0, 0, p
    corners, children, box, span = exact.corners, exact.children, exact.box, exact.span
    nodes, bounds, w = descent.node, descent.bound, descent.weights
    top = 0
    nodes[0] = 0
    bounds[0] = 0.0
    while top >= 0:
        node = nodes[top]
        near = bounds[top] < best
        top -= 1
        if not near:
            continue
        left, right = children[node, 0], children[node, 1]
        if left >= 0:
            d_left, d_right = _to_box(box, left, p), _to_box(box, right, p)
            # the nearer child comes off the stack first, so that `best` falls early
            if d_left < d_right:
                left, right, d_left, d_right = right, left, d_right, d_left
            nodes[top + 1] = left
            bounds[top + 1] = d_left
            nodes[top + 2] = right
            bounds[top + 2] = d_right
            top += 2
            continue
        for t in range(span[node, 0], span[node, 1]):
            d2, code, o = _to_triangle(corners, t, p, w)
            if d2 < best:
                best, triangle, feature, offset = d2, t, code, o
    return triangle, feature, offset


@inlined
def _nearest_listed(exact, number, p, from_centre, w):
    """As `_nearest`, of those in the list of a cell; from_centre [m]: where p lies in it."""
    corners, normals, lists = exact.corners, exact.normals, exact.lists
    start, reach, listed = lists.start, lists.reach, lists.triangle
    best, nearest, triangle, feature, offset = 1e300, 1e300, 0, 0, p
    for k in range(start[number], start[number + 1]):
        if reach[k] - from_centre > nearest:
            break
        t = listed[k]
        n, a = _vector(normals, t, 0), _vector(corners, t, 0)
        off = n[0] * (p[0] - a[0]) + n[1] * (p[1] - a[1]) + n[2] * (p[2] - a[2])
        if abs(off) > NO_NEARER * nearest:
            continue
        d2, code, o = _to_triangle(corners, t, p, w)
        if d2 < best:
            best, nearest, triangle, feature, offset = d2, d2**0.5, t, code, o
    return triangle, feature, offset


@kernel
def _visit_near(exact, p, limit, at, triangle, reach, descent):
    """How many triangles lie within `limit` [m] of p; from `at` on, they and their distances, least first."""
    n, top = 0, 0
    descent.node[0] = 0
    while top >= 0:
        node = descent.node[top]
        top -= 1
        if _to_box(exact.box, node, p) > limit * limit:
            continue
        if exact.children[node, 0] >= 0:
            descent.node[top + 1] = exact.children[node, 0]
            descent.node[top + 2] = exact.children[node, 1]
            top += 2
            continue
        for t in range(exact.span[node, 0], exact.span[node, 1]):
            d = _to_triangle(exact.corners, t, p, descent.weights)[0] ** 0.5
            if d > limit:
                continue
            n += 1
            if at < 0:
                continue
            k = at + n - 1
            while k > at and reach[k - 1] > d:
                reach[k], triangle[k] = reach[k - 1], triangle[k - 1]
                k -= 1
            reach[k], triangle[k] = d, t
    return n


@kernel
def _count_near(exact, centres, radius, band, limit, count):
    """Length of each cell's list, and the distance [m] of its centre within which its triangles lie."""
    descent, none, empty = make_descent(), np.empty(0, np.int32), np.empty(0)
    for i in range(centres.shape[0]):
        p = centres[i, 0], centres[i, 1], centres[i, 2]
        o = _nearest(exact, p, descent)[2]
        d = (o[0] * o[0] + o[1] * o[1] + o[2] * o[2]) ** 0.5
        limit[i], count[i] = d + 2.0 * radius + exact.on_surface, 0
        if d <= band + radius:
            count[i] = _visit_near(exact, p, limit[i], -1, none, empty, descent)
        else:
            limit[i] = -1.0


@kernel
def _list_near(exact, centres, limit, start, triangle, reach):
    """The lists that `_count_near` made room for."""
    descent = make_descent()
    for i in range(centres.shape[0]):
        if limit[i] >= 0.0:
            p = centres[i, 0], centres[i, 1], centres[i, 2]
            _visit_near(exact, p, limit[i], start[i], triangle, reach, descent)


@kernel
def exact_block(exact, points, index, count, distance, normal, descent):
    """Distance [m] (n,) and normal (n, 3) of points[index[:count]], `points` (n, 3) [m]."""
    lists, normals, w, on_surface = exact.lists, exact.normals, descent.weights, exact.on_surface
    start = lists.start
    for k in range(count):
        i = index[k]
        p = points[i, 0], points[i, 1], points[i, 2]
        number, far = cell_of(lists, p)
        if number != NONE and start[number] < start[number + 1]:
            triangle, feature, o = _nearest_listed(exact, number, p, far**0.5, w)
        else:
            triangle, feature, o = _nearest(exact, p, descent)
        n = _vector(normals, triangle, feature)
        d = (o[0] * o[0] + o[1] * o[1] + o[2] * o[2]) ** 0.5
        if o[0] * n[0] + o[1] * n[1] + o[2] * n[2] < 0.0:
            d = -d
        distance[i] = d
        for j in range(3):
            normal[i, j] = o[j] / d if abs(d) > on_surface else n[j]
