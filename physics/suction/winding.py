"""How often closed paths wind around each vertex of a surface: the flood fill that finds their inside.

Crossing a path from right to left adds one. So a flood over the triangles numbers all vertices up to a
constant, which is chosen such that the paths have 1 on their left. It disagrees with itself exactly where the
paths do not bound a part of the surface: a loop around one mouth of a tunnel, seen through the tunnel.
Paths that cross themselves need no care: where they overlap, the inside merely counts twice.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

BOUNDED, ESCAPED, AT_RIM = 0, 1, 2
"""The paths bound a part of the surface; they do not; that part meets the surface's rim."""

NONE = -1


class Winding(NamedTuple):
    """Paths entered into a surface of n vertices, m triangles, k edges, and their winding numbers.

    `release` restores it in time proportional to what was touched.
    """

    size: NDArray[np.int64]  # (1,) triangles flooded
    flooded: NDArray[np.int64]  # (m,) those triangles, in order
    seen: NDArray[np.bool_]  # (m,) whether a triangle is among them
    known: NDArray[np.bool_]  # (n,) whether a vertex has its number
    number: NDArray[np.int64]  # (n,) winding numbers, 0 where not known
    net: NDArray[np.int64]  # (k,) what they gain from the first end of each edge to its second
    first: NDArray[np.int64]  # (k,) first crossing of each edge, counted from its first end, or NONE
    following: NDArray[np.int64]  # (p,) next crossing on the same edge
    entry: NDArray[np.int64]  # (m,) one of the crossings by which a path enters each triangle, or NONE
    other_entry: NDArray[np.int64]  # (p,) another one of the same triangle


def make_winding(n_vertices: int, n_triangles: int, n_edges: int, points: int) -> Winding:
    """For a surface of that size and paths of so many points."""
    return Winding(
        size=np.zeros(1, np.int64),
        flooded=np.zeros(n_triangles, np.int64),
        seen=np.zeros(n_triangles, np.bool_),
        known=np.zeros(n_vertices, np.bool_),
        number=np.zeros(n_vertices, np.int64),
        net=np.zeros(n_edges, np.int64),
        first=np.full(n_edges, NONE, np.int64),
        following=np.full(points, NONE, np.int64),
        entry=np.full(n_triangles, NONE, np.int64),
        other_entry=np.full(points, NONE, np.int64),
    )


@njit(inline="always")
def gain(surface, path, k):
    """What crossing k adds to the winding number from the first end of its edge to the second: 1 or -1."""
    e, t = path.edge[k], path.triangle[k]
    for j in range(3):
        if surface.triangle_edges[t, j] == e:
            return 1 if surface.triangles[t, j] == surface.edges[e, 0] else -1
    return 0


@njit(nogil=True, cache=True)
def enter(surface, path, loop, winding):
    """Enter the crossings of one loop of the path: on each edge in order, for each triangle as entries."""
    for k in range(path.loops[loop], path.loops[loop + 1]):
        e = path.edge[k]
        if e < 0:
            continue
        winding.net[e] += gain(surface, path, k)
        before, after = NONE, winding.first[e]
        while after != NONE and path.weights[after, 1] <= path.weights[k, 1]:
            before, after = after, winding.following[after]
        winding.following[k] = after
        if before == NONE:
            winding.first[e] = k
        else:
            winding.following[before] = k
        t = path.beyond[k]
        winding.other_entry[k] = winding.entry[t]
        winding.entry[t] = k


@njit(nogil=True, cache=True)
def release(surface, path, winding):
    """Forget all paths and numbers."""
    for k in range(path.size[0]):
        if path.edge[k] >= 0:
            winding.net[path.edge[k]] = 0
            winding.first[path.edge[k]] = NONE
            winding.entry[path.beyond[k]] = NONE
    for i in range(winding.size[0]):
        t = winding.flooded[i]
        winding.seen[t] = False
        for j in range(3):
            winding.known[surface.triangles[t, j]] = False
            winding.number[surface.triangles[t, j]] = 0
    winding.size[0] = 0


@njit(inline="always")
def _push(winding, t):
    if not winding.seen[t]:
        winding.seen[t] = True
        winding.flooded[winding.size[0]] = t
        winding.size[0] += 1


@njit(nogil=True, cache=True)
def _number_corners(surface, winding, t):
    """Give the corners of triangle t their numbers, from one that has its own; False if they disagree."""
    start = 0
    for j in range(3):
        if winding.known[surface.triangles[t, j]]:
            start = j
    winding.known[surface.triangles[t, start]] = True
    for i in range(3):
        j = (start + i) % 3
        u, v, e = surface.triangles[t, j], surface.triangles[t, (j + 1) % 3], surface.triangle_edges[t, j]
        number = winding.number[u] + (winding.net[e] if surface.edges[e, 0] == u else -winding.net[e])
        if winding.known[v] and winding.number[v] != number:
            return False
        winding.known[v] = True
        winding.number[v] = number
    return True


@njit(nogil=True, cache=True)
def _left_mean(surface, path, winding, shell):
    """Mean winding number on the left of the crossings of one shell of the surface."""
    total, count = 0, 0
    for k in range(path.size[0]):
        e = path.edge[k]
        if e < 0 or winding.first[e] != k or surface.shell[surface.edges[e, 0]] != shell:
            continue
        number = winding.number[surface.edges[e, 0]]
        crossing = k
        while crossing != NONE:
            step = gain(surface, path, crossing)
            total += max(number, number + step)
            number += step
            count += 1
            crossing = winding.following[crossing]
    return total / count


@njit(nogil=True, cache=True)
def flood(surface, path, winding):
    """Number the vertices of all shells that the entered paths cross; BOUNDED, ESCAPED or AT_RIM.

    The triangles seen are winding.flooded[:size]; those that hold paths without any crossing are not flooded.
    """
    for k in range(path.size[0]):
        t = path.triangle[k]
        if path.edge[k] < 0 or winding.first[path.edge[k]] == NONE or winding.seen[t]:
            continue
        begin = winding.size[0]
        _push(winding, t)
        i = begin
        while i < winding.size[0]:
            t = winding.flooded[i]
            i += 1
            if not _number_corners(surface, winding, t):
                return ESCAPED
            for j in range(3):
                if surface.across[t, j] >= 0:
                    _push(winding, surface.across[t, j])
        shift = 1 - round(_left_mean(surface, path, winding, surface.shell[surface.triangles[t, 0]]))
        _shift(surface, winding, begin, shift)
    return AT_RIM if _meets_rim(surface, winding) else BOUNDED


@njit(inline="always")
def _shift(surface, winding, begin, shift):
    """Add to the numbers of the vertices of the triangles flooded since `begin`."""
    for i in range(begin, winding.size[0]):
        for j in range(3):
            winding.known[surface.triangles[winding.flooded[i], j]] = False
    for i in range(begin, winding.size[0]):
        for j in range(3):
            v = surface.triangles[winding.flooded[i], j]
            if not winding.known[v]:
                winding.known[v] = True
                winding.number[v] += shift


@njit(inline="always")
def _meets_rim(surface, winding):
    for i in range(winding.size[0]):
        for j in range(3):
            v = surface.triangles[winding.flooded[i], j]
            if winding.number[v] != 0 and surface.rim[v]:
                return True
    return False
