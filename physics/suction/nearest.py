"""Closest point of a whole surface to a given point, through a tree of boxes over its triangles."""

from typing import NamedTuple

import numpy as np

from palpo.physics.collision.box_tree import Primitives, Tree, build_tree, refit
from palpo.physics.collision.closest import point_triangle
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import inlined, kernel

DEPTH = 64
"""Most boxes that wait in a search: as many as the tree is deep, and it halves its triangles at each step."""


class NearestTree(NamedTuple):
    """Boxes over the triangles of a surface; `fit` them to its positions before asking."""

    tree: Tree
    primitives: Primitives


def nearest_tree(surface: SurfaceMesh) -> NearestTree:
    """The tree of a surface, fitted to its vertices as they are."""
    none = np.full((len(surface.triangles), 3), -1, np.int32)
    numbers = np.arange(len(surface.triangles), dtype=np.int32)
    primitives = Primitives(np.ascontiguousarray(surface.triangles), numbers, none, none)
    boxes = NearestTree(build_tree(surface.vertices[surface.triangles].mean(axis=1)), primitives)
    fit(boxes, np.ascontiguousarray(surface.vertices))
    return boxes


@kernel
def fit(boxes, x):
    """Fit the boxes to the surface's present positions x (n, 3)."""
    refit(boxes.tree, boxes.primitives, x)


@inlined
def _box_distance2(box, p):
    d2 = 0.0
    for i in range(3):
        gap = max(box[i] - p[i], p[i] - box[3 + i])
        if gap > 0.0:
            d2 += gap * gap
    return d2


@kernel
def nearest(boxes, x, p, hint, weights, trial, stack):
    """Triangle of the surface x (n, 3) with the point closest to p (3,), and their squared distance [m2].

    hint: a triangle that may be near, -1 for none. weights (3,): of the closest point in the triangle found.
    trial (3,), stack (DEPTH,): scratch.
    """
    tree, points = boxes.tree, boxes.primitives.points
    best, best_d2 = -1, 1e300
    top = 0
    stack[0] = 0
    if hint >= 0:
        best, best_d2 = hint, _distance2(points, x, p, hint, weights)
    while top >= 0:
        node = stack[top]
        top -= 1
        if _box_distance2(tree.box[node], p) >= best_d2:
            continue
        left, right = tree.children[node, 0], tree.children[node, 1]
        if left < 0:
            for k in range(tree.span[node, 0], tree.span[node, 1]):
                d2 = _distance2(points, x, p, tree.order[k], trial)
                if d2 < best_d2:
                    best, best_d2 = tree.order[k], d2
                    for i in range(3):
                        weights[i] = trial[i]
        else:
            # the nearer box last onto the stack, so that it is searched first and prunes the other
            swap = _box_distance2(tree.box[left], p) < _box_distance2(tree.box[right], p)
            stack[top + 1] = right if swap else left
            stack[top + 2] = left if swap else right
            top += 2
    return best, best_d2


@inlined
def _distance2(points, x, p, t, weights):
    a, b, c = points[t, 0], points[t, 1], points[t, 2]
    point_triangle(p, x[a], x[b], x[c], weights)
    d2 = 0.0
    for i in range(3):
        d2 += (p[i] - weights[0] * x[a, i] - weights[1] * x[b, i] - weights[2] * x[c, i]) ** 2
    return d2
