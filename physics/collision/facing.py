"""Which parts of a surface may face each other: cones that hold the normals of a tree's boxes.

Two triangles that touch face each other. A part whose normals lie within some angle of each other does not
fold onto itself, and two parts that lie so do not meet (Volino and Magnenat-Thalmann, Efficient
self-collision detection on smoothly discretized surface animations using geometrical shape regularity,
Computer Graphics Forum 13, 1994). That spares looking at neighbours, of which a surface has many.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.closest import triangle_normal
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import dot3, norm3

FACING = 100.0
"""Degrees by which normals of triangles that may touch differ at least: more than those of a box's sides."""

APART = math.radians(FACING)

BESIDE = 4.0
"""Contact distances by which a point is from a triangle of its own body at rest, at least, to touch it: the
sides of a corner or of a narrow groove, which stand open by themselves, do not push each other apart."""

BEFORE = 0.3
"""Least height of a point over a triangle of its own body, over its distance: less is beside it."""


class Normals(NamedTuple):
    """Of the surfaces of a scene that may touch themselves; without any, of none."""

    face: NDArray[np.float64]  # (n_triangles, 3) unit, outward
    axis: NDArray[np.float64]  # (n_nodes, 3) unit, of the cone that holds all normals in a box
    opening: NDArray[np.float64]  # (n_nodes,) [rad] of the cone, from its axis


def make_normals(triangles: int, nodes: int) -> Normals:
    """Room for that many."""
    return Normals(np.zeros((triangles, 3)), np.zeros((nodes, 3)), np.zeros(nodes))


@inlined
def _normalise(v):
    length = norm3(v)
    for i in range(3):
        v[i] = v[i] / length if length > 0.0 else 0.0


@inlined
def _angle(a, b):
    """Between unit vectors [rad]."""
    return math.acos(min(max(dot3(a, b), -1.0), 1.0))


@kernel
def find_normals(normals, tree, primitives, triangles, x, first, stop):
    """Normals of a body's triangles at x (n_points, 3) [m], and cones of its nodes, first to stop - 1."""
    for k in range(tree.span[first, 0], tree.span[first, 1]):
        t = primitives.triangle[k]
        triangle_normal(x[triangles[t, 0]], x[triangles[t, 1]], x[triangles[t, 2]], normals.face[t])
    for node in range(stop - 1, first - 1, -1):
        axis, opening, left, right = normals.axis[node], 0.0, tree.children[node, 0], tree.children[node, 1]
        if left >= 0:
            for i in range(3):
                axis[i] = normals.axis[left, i] + normals.axis[right, i]
            _normalise(axis)
            for child in (left, right):
                opening = max(opening, _angle(axis, normals.axis[child]) + normals.opening[child])
        else:
            axis[:] = 0.0
            for k in range(tree.span[node, 0], tree.span[node, 1]):
                for i in range(3):
                    axis[i] += normals.face[primitives.triangle[tree.order[k]], i]
            _normalise(axis)
            for k in range(tree.span[node, 0], tree.span[node, 1]):
                opening = max(opening, _angle(axis, normals.face[primitives.triangle[tree.order[k]]]))
        normals.opening[node] = opening


@inlined
def faces(normals, t1, t2):
    """Whether two triangles face each other by FACING, through what is between them or the other way."""
    return dot3(normals.face[t1], normals.face[t2]) < math.cos(APART)


@inlined
def may_face(normals, one, two):
    """Whether triangles of two nodes, or of one, may."""
    least = APART - normals.opening[one] - normals.opening[two]
    if least <= 0.0 or one == two:
        return least < 0.0
    return dot3(normals.axis[one], normals.axis[two]) < math.cos(least)
