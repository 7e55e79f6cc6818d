"""The inside of closed paths as a patch: whole triangles, and the cut ones split along the paths.

Thesis 000, section 3.2.7 and figure 3.5. In a cut triangle the pieces left of the paths are traced: along a
path from where it enters to where it leaves, then counter-clockwise along the triangle's border to where the
next one enters. A loop that stays within the triangle is a piece of its own, or a hole that a bridge joins to
the piece around it. All pieces are clipped into ears. Whatever the paths, crossing themselves or running
twice through the same point, the patch's border is the paths, exactly: the cavity that they bound is closed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.patch import add_loop, add_point, add_triangle, add_vertex, clear, clip_ears
from palpo.physics.gas.winding import NONE
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.records import counters

CORNERS = 3
"""In a triangle, points 0, 1, 2 are its corners and the others those of the paths, as they come."""


SCRATCH_SIZE = counters("points", "pieces", "entries")
"""Points of the present triangle, pieces, entries of `ring`."""


class Imprint(NamedTuple):
    """Scratch memory for a surface of n vertices and l paths of p points in all."""

    vertex: NDArray[np.int64]  # (n,) patch vertex of each surface vertex, NONE between calls
    point: NDArray[np.int64]  # (p,) patch vertex of each path point
    taken: NDArray[np.bool_]  # (p,) whether a path has been followed from there
    place: NDArray[np.int64]  # (p,) place of each crossing among the present triangle's events
    event: NDArray[np.int64]  # (p + 3,) crossings and, as -1 - j, corners around the present triangle
    within: NDArray[np.int64]  # (l,) triangle that a loop does not leave, NONE if it does or takes no part
    size: NDArray[Any]  # (1,) of SCRATCH_SIZE
    local: NDArray[np.int64]  # (p + 3,) patch vertex of each point of the present triangle
    uv: NDArray[np.float64]  # (p + 3, 2) their weights of corners 1 and 2
    piece: NDArray[np.int64]  # (p + 4, 2) begin and length in `ring`
    ring: NDArray[np.int64]  # (4 p + 12,) points of the pieces
    ears: NDArray[np.int64]  # (4 p + 12, 3)
    links: NDArray[np.int64]  # (4 p + 12, 2)


def make_imprint(n_vertices: int, points: int, loops: int) -> Imprint:
    """For a surface of so many vertices and paths of so many points and loops."""
    return Imprint(
        vertex=np.full(n_vertices, NONE, np.int64),
        point=np.zeros(points, np.int64),
        taken=np.zeros(points, np.bool_),
        place=np.zeros(points, np.int64),
        event=np.zeros(points + 3, np.int64),
        within=np.zeros(loops, np.int64),
        size=np.zeros(1, SCRATCH_SIZE),
        local=np.zeros(points + 3, np.int64),
        uv=np.zeros((points + 3, 2)),
        piece=np.zeros((points + 4, 2), np.int64),
        ring=np.zeros(4 * points + 12, np.int64),
        ears=np.zeros((4 * points + 12, 3), np.int64),
        links=np.zeros((4 * points + 12, 2), np.int64),
    )


@kernel
def imprint(surface, path, active, winding, scratch, patch):
    """Write the part of the surface inside the active loops, those entered and flooded in `winding`.

    active (l,): whether a loop takes part. Returns how many corners were clipped that were no ears: 0 unless
    paths cross. The patch's border vertices are the path's points, in the order of the path.
    """
    clear(patch)
    n_loops = active.size
    for loop in range(n_loops):
        if active[loop]:
            _add_path(surface, path, loop, scratch, patch)
        scratch.within[loop] = _within(path, loop) if active[loop] else NONE
        t = scratch.within[loop]
        if t != NONE and not winding.seen[t]:
            winding.seen[t] = True
            winding.flooded[winding.size[0]] = t
            winding.size[0] += 1
    forced = 0
    # bare arrays, since numba counts references to those of a tuple at each access
    triangles, flooded, entry, number = surface.triangles, winding.flooded, winding.entry, winding.number
    within, vertex = scratch.within, scratch.vertex
    for i in range(winding.size[0]):
        t = flooded[i]
        if entry[t] != NONE or _holds_loop(within, n_loops, t):
            forced += _cut(surface, path, winding, t, n_loops, scratch, patch)
        elif number[triangles[t, 0]] != 0:
            _add_whole(triangles, t, number[triangles[t, 0]], vertex, patch)
    for k in range(patch.size[0].vertices):
        for j in range(3):
            scratch.vertex[patch.parents[k, j]] = NONE
    return forced


@kernel
def _add_path(surface, path, loop, scratch, patch):
    start, stop = path.loops[loop], path.loops[loop + 1]
    for k in range(start, stop):
        e, t, w = path.edge[k], path.triangle[k], path.weights[k]
        scratch.taken[k] = False
        if e >= 0:
            a, b = surface.edges[e, 0], surface.edges[e, 1]
            scratch.point[k] = add_point(patch, a, b, b, w[0], w[1], 0.0)
        else:
            a, b, c = surface.triangles[t, 0], surface.triangles[t, 1], surface.triangles[t, 2]
            scratch.point[k] = add_point(patch, a, b, c, w[0], w[1], w[2])
    add_loop(patch, scratch.point[start:stop], stop - start)


@inlined
def _within(path, loop):
    for k in range(path.loops[loop], path.loops[loop + 1]):
        if path.edge[k] >= 0:
            return NONE
    return path.triangle[path.loops[loop]]


@inlined
def _holds_loop(within, n_loops, t):
    found = False
    for loop in range(n_loops):
        found |= within[loop] == t
    return found


@inlined
def _corner(triangles, t, j, vertex, patch):
    """Patch vertex of corner j of triangle t."""
    v = triangles[t, j]
    if vertex[v] == NONE:
        vertex[v] = add_vertex(patch, v)
    return vertex[v]


@inlined
def _add_whole(triangles, t, number, vertex, patch):
    """Add triangle t as often as the paths wind around it, turned over if they do so backward."""
    for _ in range(abs(number)):
        a = _corner(triangles, t, 0, vertex, patch)
        b = _corner(triangles, t, 1 if number > 0 else 2, vertex, patch)
        c = _corner(triangles, t, 2 if number > 0 else 1, vertex, patch)
        add_triangle(patch, a, b, c)


@inlined
def _append(scratch, point):
    """Add a point to the piece being written, unless there is no room."""
    if scratch.size[0].entries < scratch.ring.size:
        scratch.ring[scratch.size[0].entries] = point
        scratch.size[0].entries += 1


@inlined
def _close_piece(scratch, begin):
    """The ring from `begin` on is a piece, if there is room and it has an inside."""
    if scratch.size[0].entries - begin > 2 and scratch.size[0].pieces < scratch.piece.shape[0]:
        scratch.piece[scratch.size[0].pieces, 0] = begin
        scratch.piece[scratch.size[0].pieces, 1] = scratch.size[0].entries - begin
        scratch.size[0].pieces += 1


@inlined
def _append_path_point(surface, path, k, t, scratch):
    """Add path point k, which lies in triangle t or on its border, to the piece being written."""
    i = scratch.size[0].points
    scratch.size[0].points += 1
    scratch.local[i] = scratch.point[k]
    e = path.edge[k]
    if e < 0:
        scratch.uv[i, 0], scratch.uv[i, 1] = path.weights[k, 1], path.weights[k, 2]
    else:
        scratch.uv[i, 0], scratch.uv[i, 1] = 0.0, 0.0
        for j in range(1, 3):
            for end in range(2):
                if surface.triangles[t, j] == surface.edges[e, end]:
                    scratch.uv[i, j - 1] = path.weights[k, end]
    _append(scratch, i)


@inlined
def _list_events(surface, winding, t, scratch):
    """Corners and crossings around triangle t, counter-clockwise; returns their number."""
    n = 0
    for j in range(3):
        scratch.event[n] = -1 - j
        n += 1
        start, e = n, surface.triangle_edges[t, j]
        k = winding.first[e]
        while k != NONE:
            scratch.event[n] = k
            n += 1
            k = winding.following[k]
        if surface.edges[e, 0] != surface.triangles[t, j]:
            for i in range((n - start) // 2):
                a, b = start + i, n - 1 - i
                scratch.event[a], scratch.event[b] = scratch.event[b], scratch.event[a]
    for i in range(n):
        if scratch.event[i] >= 0:
            scratch.place[scratch.event[i]] = i
    return n


@inlined
def _trace(surface, path, t, entry, n_events, scratch):
    """Write the piece of triangle t that has `entry` on its border; how often it runs through corner 0."""
    k, begin, around, entering = entry, scratch.size[0].entries, 0, True
    while True:
        _append_path_point(surface, path, k, t, scratch)
        if entering or path.edge[k] < 0:
            if entering:
                scratch.taken[k] = True
            entering = False
            loop = path.loop[k]
            k = k + 1 if k + 1 < path.loops[loop + 1] else path.loops[loop]
            continue
        i = scratch.place[k]
        while True:
            i = i + 1 if i + 1 < n_events else 0
            k = scratch.event[i]
            if k < 0:
                _append(scratch, -1 - k)
                around += k == -1
            elif path.beyond[k] == t and (k == entry or not scratch.taken[k]):
                break
        if k == entry:
            break
        entering = True
    _close_piece(scratch, begin)
    return around


@inlined
def _cut(surface, path, winding, t, n_loops, scratch, patch):
    """Add the inside of triangle t, which paths cut; how many corners were clipped that were no ears."""
    for j in range(3):
        scratch.uv[j, 0], scratch.uv[j, 1] = 1.0 * (j == 1), 1.0 * (j == 2)
    scratch.size[0].points, scratch.size[0].pieces, scratch.size[0].entries = CORNERS, 0, 0
    around, k = 0, winding.entry[t]
    if k != NONE:
        n_events = _list_events(surface, winding, t, scratch)
        while k != NONE:
            if not scratch.taken[k]:
                around += _trace(surface, path, t, k, n_events, scratch)
            k = winding.other_entry[k]
    # the pieces wind around the triangle's border up to a constant
    number = winding.number[surface.triangles[t, 0]] - around
    if number == 1:
        begin = scratch.size[0].entries
        for j in range(3):
            _append(scratch, j)
        _close_piece(scratch, begin)
    else:
        _add_whole(surface.triangles, t, number, scratch.vertex, patch)
    for side in (1.0, -1.0):
        for loop in range(n_loops):
            if scratch.within[loop] == t:
                _add_loop_within(surface, path, loop, t, side, scratch)
    forced = 0
    for i in range(scratch.size[0].pieces):
        begin, n = scratch.piece[i, 0], scratch.piece[i, 1]
        forced += clip_ears(scratch.uv, scratch.ring[begin : begin + n], n, scratch.links, scratch.ears, 0)
        for ear in range(n - 2):
            a, b, c = scratch.ears[ear, 0], scratch.ears[ear, 1], scratch.ears[ear, 2]
            add_triangle(
                patch,
                _patch_vertex(surface.triangles, t, a, scratch, patch),
                _patch_vertex(surface.triangles, t, b, scratch, patch),
                _patch_vertex(surface.triangles, t, c, scratch, patch),
            )
    if scratch.size[0].entries == scratch.ring.size:
        patch.size[0].lost += 1
    return forced


@inlined
def _patch_vertex(triangles, t, point, scratch, patch):
    return _corner(triangles, t, point, scratch.vertex, patch) if point < CORNERS else scratch.local[point]


@kernel
def _add_loop_within(surface, path, loop, t, side, scratch):
    """Add a loop within triangle t if it turns to `side`: to the left a piece, to the right a hole in one."""
    begin, first = scratch.size[0].entries, scratch.size[0].points
    for k in range(path.loops[loop], path.loops[loop + 1]):
        _append_path_point(surface, path, k, t, scratch)
    n = scratch.size[0].entries - begin
    if (side > 0.0) != (_turning(scratch.uv, scratch.ring, begin, n) >= 0.0):
        scratch.size[0].points, scratch.size[0].entries = first, begin
        return
    if side < 0.0:
        for i in range(scratch.size[0].pieces):
            if _surrounds(scratch.uv, scratch.ring, scratch.piece[i], scratch.ring[begin]):
                _bridge(scratch, i, begin, n)
                return
    _close_piece(scratch, begin)


@inlined
def _turning(uv, ring, begin, n):
    """Twice the signed area of a ring."""
    total = 0.0
    for i in range(n):
        p, q = ring[begin + i], ring[begin + (i + 1) % n]
        total += uv[p, 0] * uv[q, 1] - uv[p, 1] * uv[q, 0]
    return total


@kernel
def _surrounds(uv, ring, piece, point):
    """Does a line from the point along the first axis leave the piece an odd number of times?"""
    inside = False
    for i in range(piece[1]):
        p, q = ring[piece[0] + i], ring[piece[0] + (i + 1) % piece[1]]
        if (uv[p, 1] > uv[point, 1]) != (uv[q, 1] > uv[point, 1]):
            share = (uv[point, 1] - uv[p, 1]) / (uv[q, 1] - uv[p, 1])
            if uv[point, 0] < uv[p, 0] + share * (uv[q, 0] - uv[p, 0]):
                inside = not inside
    return inside


@kernel
def _bridge(scratch, i, hole, n):
    """Join the hole ring[hole : hole + n] to piece i where their points are closest."""
    ring, uv = scratch.ring, scratch.uv
    begin, size = scratch.piece[i, 0], scratch.piece[i, 1]
    at, to, least = 0, 0, 1e300
    for a in range(size):
        for b in range(n):
            p, q = ring[begin + a], ring[hole + b]
            d2 = (uv[p, 0] - uv[q, 0]) ** 2 + (uv[p, 1] - uv[q, 1]) ** 2
            if d2 < least:
                at, to, least = a, b, d2
    start = scratch.size[0].entries
    for a in range(size + 1):
        _append(scratch, ring[begin + (at + a) % size])
    for b in range(n + 1):
        _append(scratch, ring[hole + (to + b) % n])
    scratch.piece[i, 0], scratch.piece[i, 1] = start, scratch.size[0].entries - start
