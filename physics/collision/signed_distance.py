"""Exact signed distance of a closed triangle surface: the reference that every approximation is measured by.

The nearest triangle is found in the list of the point's cell or, where there is none, by
`palpo.physics.collision.nearest`. The sign is that of the pseudo-normal of the feature
(face, edge or vertex) that carries the closest point; a solid's are known beforehand. Distance [m] is
positive outside, the opposite of 002, section IV-A; the normal is its gradient and points out of the solid.

A cell of centre c and half diagonal R lists each triangle t with d(c, t) <= min_s d(c, s) + 2 R: by the
triangle inequality no other can be nearest to any of its points. The list is in the order of d(c, t), and a
point p is done with at the first t with d(c, t) - |p - c| above the least distance found so far. So the
answer is that of the search through all triangles, with a handful of them looked at.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.box_tree import Tree, next_leaf
from palpo.physics.collision.closest import EDGE_AB, VERTEX_A, to_triangle, vector
from palpo.physics.collision.nearest import ANYWHERE, TriangleTree, make_descent, nearest, triangle_tree
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import inlined, kernel

NONE = -1
"""Cell of a point that has no list."""


class CellLists(NamedTuple):
    """Box cells with lists of triangles; a cell beyond the band has none."""

    lower: NDArray[np.float64]  # (3,) of the cells [m]
    per: NDArray[np.float64]  # (3,) cells per metre
    shape: NDArray[np.int64]  # (3,) cells along each axis
    start: NDArray[np.int32]  # (cells + 1,) where the list of each begins, by rows
    triangle: NDArray[np.int32]  # (m,) the lists, one after the other
    reach: NDArray[np.float64]  # (m,) distance [m] of that triangle from the cell's centre


def no_cell_lists() -> CellLists:
    """No cells: every point has to search."""
    none = np.zeros(0, np.int32)
    return CellLists(np.zeros(3), np.zeros(3), np.zeros(3, np.int64), none, none, np.zeros(0))


@inlined
def cell_of(lists, p):
    """Number of the cell that holds p, (3,) [m], or NONE; squared distance [m2] of p from its centre."""
    lower, per, shape = lists.lower, lists.per, lists.shape
    number, far = 0, 0.0
    for a in range(3):
        along = (p[a] - lower[a]) * per[a]
        if not (along >= 0.0 and along < shape[a]):
            return NONE, 0.0
        k = int(along)
        off = (along - (k + 0.5)) / per[a]
        far += off * off
        number = number * shape[a] + k
    return number, far


ON_SURFACE = 1e-9
"""Distance over the solid's size below which rounding turns the direction to the closest point [-]."""


NO_NEARER = 1.0 - 1e-12
"""A triangle whose plane is this share of the least distance away is no nearer but by rounding."""
SHARE = 4096
"""Cells that one thread takes at a time."""


class ExactDistance(NamedTuple):
    """The m triangles of a solid, and what is nearest where."""

    vertices: NDArray[np.float64]  # (n, 3) [m]
    boxes: TriangleTree
    normals: NDArray[np.float64]  # (m, 7, 3) outward unit pseudo-normal of each feature, by feature code
    on_surface: float  # distance [m] below which the normal is the feature's own
    lists: CellLists


def exact_distance(surface: SurfaceMesh) -> ExactDistance:
    """Model of a solid's surface; what is no solid, `palpo.physics.collision.solid.require_solid` refuses."""
    x, triangles = np.ascontiguousarray(surface.vertices), surface.triangles
    boxes = triangle_tree(x, triangles)
    normals = np.empty((len(triangles), 7, 3))
    normals[:, 0] = surface.triangle_normals
    normals[:, EDGE_AB:VERTEX_A] = surface.edge_normals[_edges_of(surface)]
    normals[:, VERTEX_A:] = surface.vertex_normals[triangles]
    size = float(np.linalg.norm(boxes.tree.box[0, 3:] - boxes.tree.box[0, :3]))
    return ExactDistance(x, boxes, normals, ON_SURFACE * size, no_cell_lists())


def no_exact_distance() -> ExactDistance:
    """The model of nothing, where another kind is used."""
    x, none, pairs = np.zeros((0, 3)), np.zeros((0, 3), np.int32), np.zeros((0, 2), np.int32)
    tree = Tree(np.zeros(0, np.int32), pairs, pairs, np.zeros((0, 6)))
    return ExactDistance(x, TriangleTree(tree, none), np.zeros((0, 7, 3)), 0.0, no_cell_lists())


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
def _normal(normals, t, feature):
    """Pseudo-normal of a feature of triangle t, as a tuple."""
    return normals[t, feature, 0], normals[t, feature, 1], normals[t, feature, 2]


@inlined
def _nearest_listed(exact, number, p, from_centre, w):
    """As `nearest`, of those in the list of a cell; from_centre [m]: where p lies in it."""
    x, triangles, normals, lists = exact.vertices, exact.boxes.triangles, exact.normals, exact.lists
    start, reach, listed = lists.start, lists.reach, lists.triangle
    best, least, triangle, feature, offset = 1e300, 1e300, 0, 0, p
    for k in range(start[number], start[number + 1]):
        if reach[k] - from_centre > least:
            break
        t = listed[k]
        n, a = _normal(normals, t, 0), vector(x, triangles[t, 0])
        off = n[0] * (p[0] - a[0]) + n[1] * (p[1] - a[1]) + n[2] * (p[2] - a[2])
        if abs(off) > NO_NEARER * least:
            continue
        d2, code, o = to_triangle(p, x, triangles, t, w)
        if d2 < best:
            best, least, triangle, feature, offset = d2, d2**0.5, t, code, o
    return triangle, feature, offset


@kernel
def _visit_near(exact, p, limit, at, triangle, reach, descent):
    """How many triangles lie within `limit` [m] of p; from `at` on, they and their distances, least first."""
    tree, triangles = exact.boxes.tree, exact.boxes.triangles
    n, descent.node[0] = 0, 0
    leaf, top = next_leaf(tree, p, p, limit, descent.node, 0)
    while leaf >= 0:
        for m in range(tree.span[leaf, 0], tree.span[leaf, 1]):
            t = tree.order[m]
            d = to_triangle(p, exact.vertices, triangles, t, descent.trial)[0] ** 0.5
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
        leaf, top = next_leaf(tree, p, p, limit, descent.node, top)
    return n


@kernel
def _count_near(exact, centres, radius, band, limit, count):
    """Length of each cell's list, and the distance [m] of its centre within which its triangles lie."""
    descent, none, empty = make_descent(), np.empty(0, np.int32), np.empty(0)
    for i in range(centres.shape[0]):
        p = vector(centres, i)
        o = nearest(exact.boxes, exact.vertices, p, -1, ANYWHERE, descent.weights, descent)[2]
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
            p = vector(centres, i)
            _visit_near(exact, p, limit[i], start[i], triangle, reach, descent)


@kernel
def exact_block(exact, points, index, count, distance, normal, descent):
    """Distance [m] (n,) and normal (n, 3) of points[index[:count]], `points` (n, 3) [m]."""
    lists, normals, w, on_surface = exact.lists, exact.normals, descent.weights, exact.on_surface
    start = lists.start
    for k in range(count):
        i = index[k]
        p = vector(points, i)
        number, far = cell_of(lists, p)
        if number != NONE and start[number] < start[number + 1]:
            triangle, feature, o = _nearest_listed(exact, number, p, far**0.5, w)
        else:
            triangle, feature, o = nearest(exact.boxes, exact.vertices, p, -1, ANYWHERE, w, descent)
        n = _normal(normals, triangle, feature)
        d = (o[0] * o[0] + o[1] * o[1] + o[2] * o[2]) ** 0.5
        if o[0] * n[0] + o[1] * n[1] + o[2] * n[2] < 0.0:
            d = -d
        distance[i] = d
        for j in range(3):
            normal[i, j] = o[j] / d if abs(d) > on_surface else n[j]
