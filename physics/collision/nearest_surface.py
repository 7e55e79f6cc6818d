"""The nearest place of a triangle mesh to points: for pictures, which show how far things are apart."""

import numpy as np

from palpo.physics.collision.closest import point_triangle, triangle_normal
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import norm3


@kernel
def nearest_surface(points, x, triangles, within, places, normals):
    """The nearest place on triangles to each point (n, 3) [m] and the normal there; (n,) [m] distances.

    x (v, 3) [m]: vertices. triangles (m, 3). within: a place farther away than this [m] is none: its
    distance is infinite. places and normals: (n, 3), written where there is one.
    """
    distances, weights = np.empty(points.shape[0]), np.empty(3)
    q, d = np.empty(3), np.empty(3)
    for k in range(points.shape[0]):
        best, own = within, -1
        for t in range(triangles.shape[0]):
            a, b, c = x[triangles[t, 0]], x[triangles[t, 1]], x[triangles[t, 2]]
            near = True
            for i in range(3):
                p, low, high = points[k, i], min(a[i], b[i], c[i]), max(a[i], b[i], c[i])
                near = near and low - best <= p <= high + best
            if not near:
                continue
            point_triangle(points[k], a, b, c, weights)
            for i in range(3):
                q[i] = weights[0] * a[i] + weights[1] * b[i] + weights[2] * c[i]
                d[i] = points[k, i] - q[i]
            if norm3(d) < best:
                best, own = norm3(d), t
                for i in range(3):
                    places[k, i] = q[i]
        distances[k] = best if own >= 0 else np.inf
        if own >= 0:
            triangle_normal(x[triangles[own, 0]], x[triangles[own, 1]], x[triangles[own, 2]], normals[k])
    return distances
