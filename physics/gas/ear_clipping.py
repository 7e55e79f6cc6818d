"""Triangulation of one polygon by clipping its ears (thesis 000, section 3.2.7; Meisters 1975).

Coordinates may be any affine image of the plane, such as two barycentric weights of a triangle. Whatever the
polygon, its triangles have its signed area and first moments: where it crosses itself no ear is left, and the
flattest corner goes, which is counted.
"""

from palpo.physics.numerics.kernels import inlined, kernel

FLAT = 1e-12
"""Twice the area of a corner, in the coordinates' unit, below which it goes unnoticed."""


@inlined
def _cross(uv, a, b, c):
    """Twice the signed area of the triangle of points a, b, c."""
    return (uv[b, 0] - uv[a, 0]) * (uv[c, 1] - uv[a, 1]) - (uv[b, 1] - uv[a, 1]) * (uv[c, 0] - uv[a, 0])


@inlined
def _same(uv, a, b):
    return uv[a, 0] == uv[b, 0] and uv[a, 1] == uv[b, 1]


@inlined
def _is_ear(uv, ring, links, i):
    """Is the corner i convex, with no other corner in its triangle or on its border?"""
    before, after = links[i, 0], links[i, 1]
    a, b, c = ring[before], ring[i], ring[after]
    if _cross(uv, a, b, c) <= 0.0:
        return False
    j = links[after, 1]
    while j != before:
        p = ring[j]
        # points that coincide with a corner are those of a bridge to a hole
        if (
            _cross(uv, a, b, p) >= 0.0 and _cross(uv, b, c, p) >= 0.0 and _cross(uv, c, a, p) >= 0.0
            and not (_same(uv, p, a) or _same(uv, p, b) or _same(uv, p, c))
        ):  # fmt: skip
            return False
        j = links[j, 1]
    return True


@inlined
def _flattest(uv, ring, links, i, left):
    best, least = i, 1e300
    for _ in range(left):
        size = abs(_cross(uv, ring[links[i, 0]], ring[i], ring[links[i, 1]]))
        if size < least:
            best, least = i, size
        i = links[i, 1]
    return best, least


@kernel
def clip_ears(uv, ring, n, links, triangles, first):
    """Write the n - 2 triangles of a polygon to triangles[first:]; returns how many corners were no ears.

    uv (k, 2): coordinates. ring (>= n,): the polygon's points, counter-clockwise. links (>= n, 2): scratch.
    triangles (>= first + n - 2, 3): points, turning as the polygon does.
    """
    for i in range(n):
        links[i, 0] = (i + n - 1) % n
        links[i, 1] = (i + 1) % n
    i, left, tried, forced = 0, n, 0, 0
    while left > 2:
        if left > 3 and not _is_ear(uv, ring, links, i):
            tried += 1
            if tried < left:
                i = links[i, 1]
                continue
            i, size = _flattest(uv, ring, links, i, left)
            if size > FLAT:
                forced += 1
        before, after = links[i, 0], links[i, 1]
        triangles[first, 0], triangles[first, 1], triangles[first, 2] = ring[before], ring[i], ring[after]
        first += 1
        links[before, 1], links[after, 0] = after, before
        left -= 1
        tried = 0
        # the neighbour but one: ears all around, not a fan of slivers
        i = links[after, 1]
    return forced
