"""A piece of a surface with inserted vertices: one wall of a cavity.

The patch of a step is written beside the stored mesh, whose topology is never touched: its vertices are
barycentric points of the surface, so it moves with it, and forgetting it undoes the step (000, 3.2.7).

Triangulation of one polygon by clipping its ears (thesis 000, section 3.2.7; Meisters 1975).

Coordinates may be any affine image of the plane, such as two barycentric weights of a triangle. Whatever the
polygon, its triangles have its signed area and first moments: where it crosses itself no ear is left, and the
flattest corner goes, which is counted.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.records import counters

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


PATCH_SIZE = counters("vertices", "triangles", "border", "loops", "lost")
"""Vertices, triangles, border vertices, loops; entries lost to a capacity."""


class Patch(NamedTuple):
    """A piece of a surface of n vertices x (n, 3), in arrays of fixed capacity.

    Every border loop is closed (its last vertex precedes its first), visits no vertex twice, and runs as the
    triangles do: with the patch on its left, seen from outside the body. The outer border of a patch that is
    a disc so turns counter-clockwise, the loop around a pillar within it clockwise. A patch may consist of
    several pieces; loops of one piece need not follow each other.
    """

    size: NDArray[Any]  # (1,) of PATCH_SIZE
    parents: NDArray[np.int64]  # (k, 3) vertices of the surface; a vertex v of the surface itself is v, v, v
    weights: NDArray[np.float64]  # (k, 3) barycentric; 1, 0, 0 for a vertex of the surface
    triangles: NDArray[np.int64]  # (t, 3) vertices of the patch, oriented as the surface's
    border: NDArray[np.int64]  # (b,) vertices of the patch, loop after loop
    loops: NDArray[np.int64]  # (l + 1,) loop i is border[loops[i]:loops[i + 1]]


def make_patch(vertices: int, triangles: int, border: int, loops: int) -> Patch:
    """An empty patch of these capacities."""
    return Patch(
        size=np.zeros(1, PATCH_SIZE),
        parents=np.zeros((vertices, 3), np.int64),
        weights=np.zeros((vertices, 3)),
        triangles=np.zeros((triangles, 3), np.int64),
        border=np.zeros(border, np.int64),
        loops=np.zeros(loops + 1, np.int64),
    )


@inlined
def clear(patch):
    """Empty the patch."""
    size = patch.size[0]
    size.vertices = size.triangles = size.border = size.loops = size.lost = 0
    patch.loops[0] = 0


@kernel
def add_point(patch, a, b, c, wa, wb, wc):
    """Number of a new vertex at weights wa, wb, wc of the surface's vertices a, b, c; -1 if it is lost."""
    k = patch.size[0].vertices
    if k == patch.parents.shape[0]:
        patch.size[0].lost += 1
        return -1
    patch.parents[k, 0], patch.parents[k, 1], patch.parents[k, 2] = a, b, c
    patch.weights[k, 0], patch.weights[k, 1], patch.weights[k, 2] = wa, wb, wc
    patch.size[0].vertices = k + 1
    return k


@inlined
def add_vertex(patch, v):
    """Number of a new vertex at the surface's vertex v; -1 if it is lost."""
    return add_point(patch, v, v, v, 1.0, 0.0, 0.0)


@kernel
def add_triangle(patch, a, b, c):
    """Add a triangle of three vertices of the patch, lost if one of them is."""
    t = patch.size[0].triangles
    if t == patch.triangles.shape[0] or a < 0 or b < 0 or c < 0:
        patch.size[0].lost += 1
        return
    patch.triangles[t, 0], patch.triangles[t, 1], patch.triangles[t, 2] = a, b, c
    patch.size[0].triangles = t + 1


@kernel
def add_loop(patch, loop, count):
    """Add a border loop: loop[:count] are vertices of the patch in order."""
    first, number = patch.size[0].border, patch.size[0].loops
    if first + count > patch.border.size or number + 1 == patch.loops.size:
        patch.size[0].lost += 1
        return
    for k in range(count):
        patch.border[first + k] = loop[k]
    patch.size[0].border = first + count
    patch.size[0].loops = number + 1
    patch.loops[number + 1] = first + count


@kernel
def place_points(patch, x, out):
    """out (k, 3) = positions [m] of the patch's vertices on the surface x (n, 3)."""
    for k in range(patch.size[0].vertices):
        for i in range(3):
            out[k, i] = 0.0
            for j in range(3):
                out[k, i] += patch.weights[k, j] * x[patch.parents[k, j], i]


@kernel
def wall_area(patch, points):
    """Area of the wall [m2]; points (k, 3): from `place_points`."""
    total = 0.0
    for t in range(patch.size[0].triangles):
        a, b, c = points[patch.triangles[t, 0]], points[patch.triangles[t, 1]], points[patch.triangles[t, 2]]
        ux, uy, uz = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        vx, vy, vz = c[0] - a[0], c[1] - a[1], c[2] - a[2]
        total += 0.5 * ((uy * vz - uz * vy) ** 2 + (uz * vx - ux * vz) ** 2 + (ux * vy - uy * vx) ** 2) ** 0.5
    return total


@kernel
def loop_length(patch, points, loop):
    """Length of a border loop [m]; points (k, 3): from `place_points`."""
    start, stop, total = patch.loops[loop], patch.loops[loop + 1], 0.0
    for k in range(start, stop):
        p, q = points[patch.border[k]], points[patch.border[k + 1 if k + 1 < stop else start]]
        total += ((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 + (p[2] - q[2]) ** 2) ** 0.5
    return total


@kernel
def border_length(patch, points):
    """Length of all border loops [m]; points (k, 3): from `place_points`."""
    total = 0.0
    for loop in range(patch.size[0].loops):
        total += loop_length(patch, points, loop)
    return total
