"""Signed distances of points from another body's surface, asked only where they can matter (000, 3.2.1).

A point's distance changes by no more than the point and the surface move. So after one query a point is left
alone until that way may have brought it within the alarm distance, and each query starts from the triangle
of the last one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.contact_surface import (
    ContactSurface,
    contact_surface,
    crease_at,
    crease_normal,
    faceted_normal,
)
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import kernel
from palpo.physics.suction.nearest import DEPTH, NearestTree, fit, nearest, nearest_tree

TOUCHING = 1e-9
"""Distance [m] below which two points give no direction: the surface's normal takes its place."""


class Target(NamedTuple):
    """A surface that distances are measured from, of n vertices."""

    surface: ContactSurface
    boxes: NearestTree


def target(surface: SurfaceMesh) -> Target:
    """The surface, whose vertices are all in use."""
    slots = np.arange(len(surface.vertices), dtype=np.int32)
    return Target(contact_surface(surface, slots), nearest_tree(surface))


class Gaps(NamedTuple):
    """What is known of n points."""

    distance: NDArray[np.float64]  # (n,) [m], negative inside; inf where it is beyond the alarm distance
    normal: NDArray[np.float64]  # (n, 3) unit, outward, along the shortest way to the point
    triangle: NDArray[np.int64]  # (n,) of the closest point; -1 before the first query
    weights: NDArray[np.float64]  # (n, 3) of the closest point
    seen_at: NDArray[np.float64]  # (n, 3) where the point was when last asked about [m]
    clearance: NDArray[np.float64]  # (n,) its distance then, plus how far the surface had moved by then [m]
    asked: NDArray[np.int64]  # (n,) points to ask about
    stack: NDArray[np.int64]  # (DEPTH,) scratch
    scratch: NDArray[np.float64]  # (3, 3)


def make_gaps(n: int) -> Gaps:
    """Nothing is known of n points."""
    return Gaps(
        np.full(n, np.inf), np.zeros((n, 3)), np.full(n, -1, np.int64), np.zeros((n, 3)), np.zeros((n, 3)),
        np.full(n, -np.inf), np.zeros(n, np.int64), np.zeros(DEPTH, np.int64), np.zeros((3, 3)),
    )  # fmt: skip


@kernel
def move_target(target, x):
    """Fit the target to its surface's present positions x (n, 3) [m]."""
    fit(target.boxes, x)


@kernel
def choose_points(points, alarm, odometer, gaps):
    """Forget all distances and list in gaps.asked the points that may be within `alarm` [m]; how many.

    points (n, 3) [m]. odometer: how far [m] the surface has moved at most, altogether.
    """
    count = 0
    for k in range(points.shape[0]):
        gaps.distance[k] = np.inf
        way = 0.0
        for i in range(3):
            way += (points[k, i] - gaps.seen_at[k, i]) ** 2
        if gaps.clearance[k] - odometer - way**0.5 <= alarm:
            gaps.asked[count] = k
            count += 1
    return count


@kernel
def measure(target, x, points, asked, odometer, gaps):
    """Ask about the points of numbers `asked` (k,); x (n, 3): the target's positions [m]."""
    for c in range(asked.size):
        k = asked[c]
        p, weights = points[k], gaps.weights[k]
        t, d2 = nearest(target.boxes, x, p, gaps.triangle[k], weights, gaps.scratch[0], gaps.stack)
        gaps.triangle[k] = t
        gaps.distance[k] = orient(target.surface, x, p, t, weights, d2**0.5, gaps.normal[k], gaps.scratch)
        gaps.clearance[k] = gaps.distance[k] + odometer
        for i in range(3):
            gaps.seen_at[k, i] = p[i]


@kernel
def orient(surface, x, p, t, weights, distance, normal, scratch):
    """Signed distance [m] of p (3,) at `distance` from the point of weights (3,) in triangle t.

    normal (3,): written, outward, on the way to p.
    """
    crease = crease_at(surface, t, weights)
    outward = scratch[1]
    if crease > 0:
        crease_normal(surface, x, t, crease, outward, scratch[2])
    else:
        faceted_normal(surface, x, t, outward)
    side = 0.0
    for i in range(3):
        way = p[i]
        for j in range(3):
            way -= weights[j] * x[surface.triangles[t, j], i]
        normal[i] = way
        side += way * outward[i]
    sign = 1.0 if side >= 0.0 else -1.0
    for i in range(3):
        normal[i] = outward[i] if distance <= TOUCHING else sign * normal[i] / distance
    return sign * distance


@kernel
def look(target, x, points, alarm, odometer, gaps):
    """Ask about those of the points (n, 3) [m] that may be within `alarm` [m] of the target at x (m, 3)."""
    near = choose_points(points, alarm, odometer, gaps)
    measure(target, x, points, gaps.asked[:near], odometer, gaps)


@kernel
def look_at_moved(target, x, points, alarm, odometer, gaps):
    """As `look`, at a target whose boxes are still to be fitted to x, if there is something to ask."""
    near = choose_points(points, alarm, odometer, gaps)
    if near > 0:
        move_target(target, x)
        measure(target, x, points, gaps.asked[:near], odometer, gaps)


@kernel
def farthest(x, y):
    """The largest distance [m] between the points x and y (n, 3)."""
    d2 = 0.0
    for k in range(x.shape[0]):
        d2 = max(d2, (x[k, 0] - y[k, 0]) ** 2 + (x[k, 1] - y[k, 1]) ** 2 + (x[k, 2] - y[k, 2]) ** 2)
    return d2**0.5


@kernel
def fastest(velocities, points, as_one):
    """The largest speed [m/s] against a body that moves as one, of points (n, 3) [m] at velocities (n, 3).

    as_one (3, 3): a place of it [m], the velocity there [m/s] and its angular velocity [rad/s].
    """
    a, v, w, v2 = as_one[0], as_one[1], as_one[2], 0.0
    for k in range(points.shape[0]):
        x, y, z = points[k, 0] - a[0], points[k, 1] - a[1], points[k, 2] - a[2]
        p = velocities[k, 0] - (v[0] + w[1] * z - w[2] * y)
        q = velocities[k, 1] - (v[1] + w[2] * x - w[0] * z)
        r = velocities[k, 2] - (v[2] + w[0] * y - w[1] * x)
        v2 = max(v2, p * p + q * q + r * r)
    return v2**0.5
