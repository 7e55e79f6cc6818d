"""A border of one body on the surface of the other: closest points, joined by straight walks.

Thesis 000, sections 3.2.4 and 3.2.7, figure 3.5. The thesis casts rays; a ray may miss, while the closest
point is always there, is the one whose distance put the border where it is, and makes the ribbon between
border and projection as wide as the sealing distance. From one projected point to the next the path follows
the section of the surface with the plane through both along the ways by which they came: the section of a
triangulated surface leaves each triangle by exactly one edge, whatever vertex it passes through. Where it
misses the next point (behind a ridge, say) the shortest sequence of triangles takes its place.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.closest import segment_segment, triangle_normal, vector
from palpo.physics.collision.nearest import ANYWHERE, Descent, make_descent, nearest
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, dot3, norm3
from palpo.physics.numerics.records import counters

PATH_SIZE = counters("points", "fallbacks", "lost")
"""Points; walks that went astray; points lost to the capacity."""

CLOSED, OPEN = 0, 1
"""What becomes of a loop: it is closed on the surface, or it runs over the surface's rim."""

ARRIVED, ASTRAY, RIM = 0, 1, 2
"""Ends of a walk."""

MARGIN = 1e-9
"""Least barycentric weight of a projected point: it lies in one triangle, a nanometre from the edge."""

TOUCHING = 1e-9
"""Distance [m] below which a point has no way to its projection."""

STEPS = 64
"""Most triangles between two neighbouring points of a border."""


class ProjectedLoops(NamedTuple):
    """Loops over the triangles of a surface: projected points and, between them, crossings of edges.

    A loop is a cycle, with the inside on its left: it runs against the border that it is the projection of.
    """

    size: NDArray[Any]  # (1,) of PATH_SIZE
    loops: NDArray[np.int64]  # (l + 1,) span of each loop
    outcome: NDArray[np.int64]  # (l,) CLOSED or OPEN
    loop: NDArray[np.int64]  # (k,) loop of each point
    source: NDArray[np.int64]  # (k,) entry of the border that is projected there, or to the point before
    edge: NDArray[np.int64]  # (k,) edge that is crossed, -1 for a projected point
    triangle: NDArray[np.int64]  # (k,) triangle around a projected point, or left at a crossing
    beyond: NDArray[np.int64]  # (k,) triangle entered at a crossing
    weights: NDArray[np.float64]  # (k, 3) in its triangle; of a crossing (1 - s, s, 0) along its edge


class WalkScratch(NamedTuple):
    """Scratch memory of projections on a surface of m triangles."""

    descent: Descent
    vectors: NDArray[np.float64]  # (11, 3)
    queue: NDArray[np.int64]  # (m,)
    parent: NDArray[np.int64]  # (m,) -1 between calls


def make_path(points: int, loops: int) -> ProjectedLoops:
    """An empty path of these capacities."""
    return ProjectedLoops(
        size=np.zeros(1, PATH_SIZE),
        loops=np.zeros(loops + 1, np.int64),
        outcome=np.zeros(loops, np.int64),
        loop=np.zeros(points, np.int64),
        source=np.zeros(points, np.int64),
        edge=np.zeros(points, np.int64),
        triangle=np.zeros(points, np.int64),
        beyond=np.zeros(points, np.int64),
        weights=np.zeros((points, 3)),
    )


def walk_scratch(n_triangles: int) -> WalkScratch:
    """Scratch memory for a surface of so many triangles."""
    return WalkScratch(
        make_descent(),
        np.zeros((11, 3)),
        np.zeros(n_triangles, np.int64),
        np.full(n_triangles, -1, np.int64),
    )


@inlined
def _add(path, loop, source, edge, triangle, beyond, w0, w1, w2):
    k = path.size[0].points
    if k == path.edge.size:
        path.size[0].lost += 1
        return
    path.loop[k], path.source[k], path.edge[k] = loop, source, edge
    path.triangle[k], path.beyond[k] = triangle, beyond
    path.weights[k, 0], path.weights[k, 1], path.weights[k, 2] = w0, w1, w2
    path.size[0].points = k + 1


@inlined
def _cross_edge(surface, path, loop, source, t, j, share):
    """Add the crossing of edge j of triangle t, `share` of the way from its corner j on."""
    e = surface.triangle_edges[t, j]
    if surface.edges[e, 0] != surface.triangles[t, j]:
        share = 1.0 - share
    _add(path, loop, source, e, t, surface.across[t, j], 1.0 - share, share, 0.0)


@inlined
def _place(surface, x, t, weights, out):
    for i in range(3):
        out[i] = 0.0
        for j in range(3):
            out[i] += weights[j] * x[surface.triangles[t, j], i]


@inlined
def _on_rim(surface, t, weights):
    """Does the point lie on an edge of triangle t beyond which the surface ends, or at an end of one?"""
    for j in range(3):
        if weights[j] == 1.0 and surface.rim[surface.triangles[t, j]]:
            return True
        if surface.across[t, j] < 0 and weights[(j + 2) % 3] == 0.0:
            return True
    return False


@inlined
def _inside(weights):
    """Move a point off the border of its triangle, by MARGIN."""
    total = 0.0
    for j in range(3):
        weights[j] = max(weights[j], MARGIN)
        total += weights[j]
    for j in range(3):
        weights[j] /= total


@kernel
def _way(surface, x, p, t, weights, foot, up):
    """up (3,) = unit outward direction from the point of triangle t closest to p (3,) to p.

    Unlike a normal, it does not depend on which triangle a point on an edge is said to be in. The normal
    takes its place where p touches, and tells outward. foot (3,): scratch.
    """
    corners = surface.triangles[t]
    triangle_normal(x[corners[0]], x[corners[1]], x[corners[2]], up)
    _place(surface, x, t, weights, foot)
    for i in range(3):
        foot[i] = p[i] - foot[i]
    distance = norm3(foot)
    if distance > TOUCHING:
        side = 1.0 if dot3(foot, up) >= 0.0 else -1.0
        for i in range(3):
            up[i] = side * foot[i] / distance


@kernel
def _walk(surface, x, path, loop, source, t, q, target, m):
    """Follow the section with the plane through q (3,) of normal m, m on its left, from triangle t on.

    ARRIVED at the triangle `target`, at the RIM, or ASTRAY.
    """
    for _ in range(STEPS):
        a, b, c = surface.triangles[t, 0], surface.triangles[t, 1], surface.triangles[t, 2]
        s = (_side(x, a, q, m), _side(x, b, q, m), _side(x, c, q, m))
        out = -1
        for j in range(3):
            # from the right of the plane to its left, and zero counts as left, at a vertex once and for all
            if s[j] < 0.0 <= s[(j + 1) % 3]:
                out = j
        if out < 0:
            return ASTRAY
        if surface.across[t, out] < 0:
            return RIM
        _cross_edge(surface, path, loop, source, t, out, s[out] / (s[out] - s[(out + 1) % 3]))
        t = surface.across[t, out]
        if t == target:
            return ARRIVED
    return ASTRAY


@inlined
def _side(x, v, q, m):
    return (x[v, 0] - q[0]) * m[0] + (x[v, 1] - q[1]) * m[1] + (x[v, 2] - q[2]) * m[2]


@kernel
def _detour(surface, x, path, loop, source, t, q, target, r, scratch):
    """Follow the shortest sequence of triangles from t to `target`, crossing edges where q r is closest."""
    queue, parent = scratch.queue, scratch.parent
    first, last = 0, 1
    # searched from the target, so that parents lead from t to it
    queue[0] = target
    parent[target] = target
    while first < last and parent[t] < 0:
        u = queue[first]
        first += 1
        for j in range(3):
            v = surface.across[u, j]
            if v >= 0 and parent[v] < 0:
                parent[v] = u
                queue[last] = v
                last += 1
    found = parent[t] >= 0
    st = scratch.vectors[7]
    while found and t != target:
        for j in range(3):
            if surface.across[t, j] == parent[t]:
                a, b = surface.triangles[t, j], surface.triangles[t, (j + 1) % 3]
                segment_segment(x[a], x[b], q, r, st)
                _cross_edge(surface, path, loop, source, t, j, min(max(st[0], 0.01), 0.99))
                t = parent[t]
                break
    for k in range(last):
        parent[queue[k]] = -1
    return found


@kernel
def _join(surface, x, path, loop, source, t, w_t, up_t, u, w_u, up_u, scratch):
    """Cross the edges between the points of weights w_t in triangle t and w_u in u; False over a rim.

    up_t, up_u (3,): the ways by which they came, outward.
    """
    if t == u:
        return True
    q, r, d, n, m = (
        scratch.vectors[2], scratch.vectors[3], scratch.vectors[4], scratch.vectors[5], scratch.vectors[6]
    )  # fmt: skip
    _place(surface, x, t, w_t, q)
    _place(surface, x, u, w_u, r)
    for i in range(3):
        d[i] = r[i] - q[i]
        n[i] = up_t[i] + up_u[i]
    cross3(n, d, m)
    start = path.size[0].points
    end = _walk(surface, x, path, loop, source, t, q, u, m) if norm3(m) > 0.0 else ASTRAY
    if end != ASTRAY:
        return end == ARRIVED
    path.size[0].points = start
    path.size[0].fallbacks += 1
    return _detour(surface, x, path, loop, source, t, q, u, r, scratch)


@kernel
def _project_loop(patch, points, surface, boxes, x, path, loop, scratch):
    """Add the path of one border loop; False over a rim or past the capacity."""
    w, up, up_last, up_first = scratch.vectors[0], scratch.vectors[8], scratch.vectors[9], scratch.vectors[10]
    start = path.size[0].points
    t, last, lost = -1, -1, path.size[0].lost
    for source in range(patch.loops[loop + 1] - 1, patch.loops[loop] - 1, -1):
        before = t
        p = points[patch.border[source]]
        t, _, _ = nearest(
            boxes, x, vector(points, patch.border[source]), before, ANYWHERE, w, scratch.descent
        )
        if _on_rim(surface, t, w):
            return False
        _way(surface, x, p, t, w, scratch.vectors[1], up)
        _inside(w)
        if last < 0:
            up_first[:] = up
        elif not _join(
            surface, x, path, loop, source + 1, before, path.weights[last], up_last, t, w, up, scratch
        ):
            return False
        up_last[:] = up
        last = path.size[0].points
        _add(path, loop, source, -1, t, -1, w[0], w[1], w[2])
        if path.size[0].lost > lost:
            return False
    first, w_first = path.triangle[start], path.weights[start]
    source = patch.loops[loop]
    joined = _join(
        surface, x, path, loop, source, t, path.weights[last], up_last, first, w_first, up_first, scratch
    )
    return joined and path.size[0].lost == lost


@kernel
def project_border(patch, points, surface, boxes, x, path, scratch):
    """Write the path of a patch's border loops on another body's surface; a loop that meets its rim is OPEN.

    points (k, 3): positions of the patch's vertices [m]. surface, boxes, x (n, 3): connectivity, fitted boxes
    and positions of the other body. An OPEN loop has no points; so has one that the capacity cut off.
    """
    size = path.size[0]
    size.points = size.fallbacks = size.lost = 0
    path.loops[0] = 0
    for loop in range(patch.size[0].loops):
        start = path.size[0].points
        path.outcome[loop] = CLOSED
        if not _project_loop(patch, points, surface, boxes, x, path, loop, scratch):
            path.outcome[loop] = OPEN
            path.size[0].points = start
        path.loops[loop + 1] = path.size[0].points
