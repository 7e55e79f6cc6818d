"""The place of a surface that is nearest to a point, and the side on which the point is: one query for all.

A surface of triangles is asked through a tree of boxes (`palpo.physics.collision.box_tree`): branch and
bound, the nearer box first, from a triangle that may be near if there is one. The side is that of the
angle-weighted pseudo-normal of the feature that carries the nearest place: Baerentzen and Aanaes, Signed
distance computation using the angle weighted pseudonormal (IEEE TVCG 2005).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.box_tree import DEPTH, Tree, box_distance2, build_tree, refit
from palpo.physics.collision.closest import FACE, to_triangle, triangle_normal, vector
from palpo.physics.collision.contact_surface import (
    ContactSurface,
    contact_surface,
    crease_at,
    crease_normal,
    faceted_normal,
)
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import kernel

ANYWHERE = np.inf
"""Distance [m] within which the nearest triangle is there for certain."""
TOUCHING = 1e-9
"""Distance [m] below which two points give no direction: the surface's normal takes its place."""


class TriangleTree(NamedTuple):
    """Boxes over the m triangles of a surface; `fit` them to its positions before asking."""

    tree: Tree
    triangles: NDArray[np.int32]  # (m, 3)


class Target(NamedTuple):
    """A surface that signed distances are measured from, of n vertices."""

    surface: ContactSurface
    boxes: TriangleTree


class Descent(NamedTuple):
    """Scratch of one query at a time."""

    node: NDArray[np.int64]  # (DEPTH,) nodes still to visit
    bound: NDArray[np.float64]  # (DEPTH,) squared distance [m2] to their boxes
    trial: NDArray[np.float64]  # (3,) weights in the triangle that is looked at
    weights: NDArray[np.float64]  # (3,) of the nearest place, for who does not keep them
    vectors: NDArray[np.float64]  # (2, 3)


def triangle_tree(x: NDArray[np.float64], triangles: NDArray[np.int32]) -> TriangleTree:
    """The tree of triangles (m, 3) over positions x (n, 3) [m], fitted to these."""
    boxes = TriangleTree(build_tree(x[triangles].mean(axis=1)), np.ascontiguousarray(triangles))
    fit(boxes, np.ascontiguousarray(x))
    return boxes


def target(surface: SurfaceMesh) -> Target:
    """The surface, whose vertices are all in use."""
    slots = np.arange(len(surface.vertices), dtype=np.int32)
    return Target(contact_surface(surface, slots), triangle_tree(surface.vertices, surface.triangles))


@kernel
def make_descent() -> Descent:
    """Scratch of one thread."""
    return Descent(np.zeros(DEPTH, np.int64), np.zeros(DEPTH), np.zeros(3), np.zeros(3), np.zeros((2, 3)))


@kernel
def fit(boxes, x):
    """Fit the boxes to the surface's present positions x (n, 3) [m]."""
    refit(boxes.tree, boxes.triangles, x)


@kernel
def nearest(boxes, x, p, hint, within, weights, descent):
    """The triangle of a surface at x (n, 3) [m] that is nearest to a point p, a tuple [m]; -1 for none.

    Also returns the feature code of the nearest place and its offset to p [m], a tuple. hint: a triangle that
    may be near, -1 for none. within [m]: a place that is as far away is none, but for the hint's. weights
    (3,): of the nearest place in its triangle.
    """
    tree, triangles = boxes.tree, boxes.triangles
    order, span, children, box = tree.order, tree.span, tree.children, tree.box
    nodes, bounds, trial = descent.node, descent.bound, descent.trial
    found, feature, offset, best = -1, FACE, p, within * within
    if hint >= 0:
        found = hint
        best, feature, offset = to_triangle(p, x, triangles, hint, weights)
    top, nodes[0], bounds[0] = 0, 0, 0.0
    while top >= 0:
        node, near = nodes[top], bounds[top] < best
        top -= 1
        if not near:
            continue
        left, right = children[node, 0], children[node, 1]
        if left >= 0:
            d_left, d_right = box_distance2(box, left, p, p), box_distance2(box, right, p, p)
            # the nearer box last onto the stack, so that it is searched first and prunes the other
            if d_left < d_right:
                left, right, d_left, d_right = right, left, d_right, d_left
            nodes[top + 1], bounds[top + 1] = left, d_left
            nodes[top + 2], bounds[top + 2] = right, d_right
            top += 2
            continue
        for k in range(span[node, 0], span[node, 1]):
            t = order[k]
            d2, code, away = to_triangle(p, x, triangles, t, trial)
            if d2 < best:
                found, feature, offset, best = t, code, away, d2
                weights[0], weights[1], weights[2] = trial[0], trial[1], trial[2]
    return found, feature, offset


@kernel
def orient(surface, x, t, weights, offset, normal, vectors):
    """Signed distance [m] of a point at `offset` [m] from the place of weights (3,) in triangle t.

    normal (3,): written, outward, on the way to the point. vectors (2, 3): scratch.
    """
    crease = crease_at(surface, t, weights)
    outward = vectors[0]
    if crease > 0:
        crease_normal(surface, x, t, crease, outward, vectors[1])
    else:
        faceted_normal(surface, x, t, outward)
    distance = (offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2]) ** 0.5
    side = offset[0] * outward[0] + offset[1] * outward[1] + offset[2] * outward[2]
    sign = 1.0 if side >= 0.0 else -1.0
    for i in range(3):
        normal[i] = outward[i] if distance <= TOUCHING else sign * offset[i] / distance
    return sign * distance


@kernel
def signed_nearest(target, x, p, hint, within, weights, normal, descent):
    """Signed distance [m] of a point p from a target at x (n, 3) [m], and its triangle: see `nearest`.

    normal (3,): written, as by `orient`. Where no triangle is within that distance: it, and -1.
    """
    t, _, offset = nearest(target.boxes, x, p, hint, within, weights, descent)
    if t < 0:
        return within, t
    return orient(target.surface, x, t, weights, offset, normal, descent.vectors), t


@kernel
def nearest_places(points, boxes, x, within, places, normals):
    """Distances (n,) [m] of points (n, 3) [m] from a surface at x (v, 3) [m], infinite beyond `within` [m].

    places and normals (n, 3): the nearest place of each, and the normal of its triangle, where there is one.
    """
    fit(boxes, x)
    distances, descent = np.empty(points.shape[0]), make_descent()
    for k in range(points.shape[0]):
        p = vector(points, k)
        t, _, o = nearest(boxes, x, p, -1, within, descent.weights, descent)
        distances[k] = (o[0] * o[0] + o[1] * o[1] + o[2] * o[2]) ** 0.5 if t >= 0 else np.inf
        if t >= 0:
            a, b, c = boxes.triangles[t, 0], boxes.triangles[t, 1], boxes.triangles[t, 2]
            triangle_normal(vector(x, a), vector(x, b), vector(x, c), normals[k])
            for i in range(3):
                places[k, i] = p[i] - o[i]
    return distances
