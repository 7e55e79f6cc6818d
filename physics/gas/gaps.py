"""Signed distances of points from another body's surface, asked only where they can matter (000, 3.2.1).

A point's distance changes by no more than the point and the surface move. So after one query a point is left
alone until that way may have brought it within the alarm distance, and each query starts from the triangle
of the last one.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.closest import vector
from palpo.physics.collision.nearest import ANYWHERE, Descent, fit, make_descent, signed_nearest
from palpo.physics.numerics.kernels import kernel


class Gaps(NamedTuple):
    """What is known of n points."""

    distance: NDArray[np.float64]  # (n,) [m], negative inside; inf where it is beyond the alarm distance
    normal: NDArray[np.float64]  # (n, 3) unit, outward, along the shortest way to the point
    triangle: NDArray[np.int64]  # (n,) of the closest point; -1 before the first query
    weights: NDArray[np.float64]  # (n, 3) of the closest point
    seen_at: NDArray[np.float64]  # (n, 3) where the point was when last asked about [m]
    clearance: NDArray[np.float64]  # (n,) its distance then, plus how far the surface had moved by then [m]
    asked: NDArray[np.int64]  # (n,) points to ask about
    descent: Descent


def make_gaps(n: int) -> Gaps:
    """Nothing is known of n points."""
    return Gaps(
        np.full(n, np.inf), np.zeros((n, 3)), np.full(n, -1, np.int64), np.zeros((n, 3)), np.zeros((n, 3)),
        np.full(n, -np.inf), np.zeros(n, np.int64), make_descent(),
    )  # fmt: skip


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
        gaps.distance[k], gaps.triangle[k] = signed_nearest(
            target, x, vector(points, k), gaps.triangle[k], ANYWHERE, gaps.weights[k], gaps.normal[k],
            gaps.descent,
        )  # fmt: skip
        gaps.clearance[k] = gaps.distance[k] + odometer
        for i in range(3):
            gaps.seen_at[k, i] = points[k, i]


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
        fit(target.boxes, x)
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
