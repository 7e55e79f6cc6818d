"""Signed distance of a point to a surface of triangles that moves, such as a body's boundary.

The nearest triangle is searched through all of them, bounded by their boxes; where triangles share the
nearest edge or corner, the one that faces the point knows the side.
"""

from palpo.physics.collision.closest import point_triangle
from palpo.physics.numerics.kernels import inlined, kernel

SAME = 1e-9
"""Relative difference of squared distances up to which two triangles are equally near."""
TOUCHING = 1e-9
"""Distance below which the triangle's own normal is the way out [m]."""


@inlined
def _box_distance2(p, a, b, c):
    """Squared distance of a point to a triangle's box."""
    far = 0.0
    for i in range(3):
        low, high = min(a[i], b[i], c[i]) - p[i], p[i] - max(a[i], b[i], c[i])
        far += max(0.0, low, high) ** 2
    return far


@inlined
def _normal(a, b, c):
    """Unit normal of a triangle."""
    u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
    v0, v1, v2 = c[0] - a[0], c[1] - a[1], c[2] - a[2]
    n0, n1, n2 = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
    size = (n0 * n0 + n1 * n1 + n2 * n2) ** 0.5
    scale = 1.0 / size if size > 0.0 else 0.0
    return scale * n0, scale * n1, scale * n2


@kernel
def facet_distance(p, x, triangles, reach, weights, way, scratch):
    """Signed distance of a point p (3,) to triangles (m, 3) over x (k, 3) [m], and the nearest of them.

    Beyond `reach` [m] only that: reach and -1. weights (3,): the nearest point on it. way (3,): out of the
    surface, a unit vector between the two. scratch (3,).
    """
    best, told, found = reach * reach, -1.0, -1
    for t in range(triangles.shape[0]):
        a, b, c = x[triangles[t, 0]], x[triangles[t, 1]], x[triangles[t, 2]]
        if _box_distance2(p, a, b, c) > best * (1.0 + SAME):
            continue
        point_triangle(p, a, b, c, scratch)
        normal, d2, along = _normal(a, b, c), 0.0, 0.0
        for i in range(3):
            d = p[i] - scratch[0] * a[i] - scratch[1] * b[i] - scratch[2] * c[i]
            d2 += d * d
            along += d * normal[i]
        same = abs(d2 - best) <= SAME * best and found >= 0
        if (d2 < best and not same) or (same and abs(along) > abs(told)):
            best, told, found = min(best, d2) if same else d2, along, t
            for i in range(3):
                weights[i] = scratch[i]
    if found < 0:
        return reach, -1
    size, side = best**0.5, 1.0 if told >= 0.0 else -1.0
    a, b, c = x[triangles[found, 0]], x[triangles[found, 1]], x[triangles[found, 2]]
    normal = _normal(a, b, c)
    for i in range(3):
        q = weights[0] * a[i] + weights[1] * b[i] + weights[2] * c[i]
        way[i] = side * (p[i] - q) / size if size > TOUCHING else normal[i]
    return side * size, found
