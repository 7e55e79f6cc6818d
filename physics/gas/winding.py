"""How often closed paths wind around each vertex of a surface: the flood fill that finds their inside.

Crossing a path from right to left adds one. So a flood over the triangles numbers all vertices up to a
constant, which is chosen such that the paths have 1 on their left. It disagrees with itself exactly where the
paths do not bound a part of the surface: a loop around one mouth of a tunnel, seen through the tunnel.
Paths that cross themselves need no care: where they overlap, the inside merely counts twice.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined, kernel

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
    known: NDArray[np.bool_]  # (n,) whether a vertex has its number, during a flood
    number: NDArray[np.int64]  # (n,) winding numbers, 0 where none was flooded
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


@inlined
def gain(surface, path, k):
    """What crossing k adds to the winding number from the first end of its edge to the second: 1 or -1."""
    e, t = path.edge[k], path.triangle[k]
    for j in range(3):
        if surface.triangle_edges[t, j] == e:
            return 1 if surface.triangles[t, j] == surface.edges[e, 0] else -1
    return 0


@kernel
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


@kernel
def release(surface, path, winding):
    """Forget all paths and numbers."""
    for k in range(path.size[0].points):
        if path.edge[k] >= 0:
            winding.net[path.edge[k]] = 0
            winding.first[path.edge[k]] = NONE
            winding.entry[path.beyond[k]] = NONE
    _forget(surface.triangles, winding.flooded, winding.size[0], winding.seen, winding.known, winding.number)
    winding.size[0] = 0


@kernel
def _forget(triangles, flooded, count, seen, known, number):
    for i in range(count):
        t = flooded[i]
        seen[t] = False
        for j in range(3):
            known[triangles[t, j]] = False
            number[triangles[t, j]] = 0


@kernel
def _flood_shell(triangles, across, triangle_edges, edges, net, t, flooded, begin, seen, known, number):
    """Number all vertices that are reached from triangle t; (end of the triangles, whether all agree).

    Takes bare arrays, as it runs over most of the surface: numba counts references to those of a tuple at
    each access.
    """
    flooded[begin] = t
    seen[t] = True
    known[triangles[t, 0]] = True
    i, end = begin, begin + 1
    while i < end:
        t = flooded[i]
        i += 1
        # twice around, since the corner that is known may be any
        for side in range(5):
            j = side % 3
            u, v, e = triangles[t, j], triangles[t, (j + 1) % 3], triangle_edges[t, j]
            if not known[u]:
                continue
            after = number[u] + (net[e] if edges[e, 0] == u else -net[e])
            if known[v] and number[v] != after:
                return end, False
            known[v] = True
            number[v] = after
        for j in range(3):
            other = across[t, j]
            if other >= 0 and not seen[other]:
                seen[other] = True
                flooded[end] = other
                end += 1
    return end, True


@kernel
def _left_mean(surface, path, winding, shell):
    """Mean winding number on the left of the crossings of one shell of the surface."""
    total, count = 0, 0
    for k in range(path.size[0].points):
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


@kernel
def _shift_shell(triangles, rim, flooded, begin, end, shift, known, number):
    """Add to the numbers of the vertices of flooded triangles; whether any that counts then lies at a rim."""
    at_rim = False
    for i in range(begin, end):
        t = flooded[i]
        for j in range(3):
            v = triangles[t, j]
            if known[v]:
                known[v] = False
                number[v] += shift
                at_rim |= rim[v] and number[v] != 0
    return at_rim


@kernel
def flood(surface, path, winding):
    """Number the vertices of all shells that the entered paths cross; BOUNDED, ESCAPED or AT_RIM.

    The triangles seen are winding.flooded[:size]; those that hold paths without any crossing are not flooded.
    """
    outcome = BOUNDED
    for k in range(path.size[0].points):
        t = path.triangle[k]
        if path.edge[k] < 0 or winding.first[path.edge[k]] == NONE or winding.seen[t]:
            continue
        begin = winding.size[0]
        end, agreed = _flood_shell(
            surface.triangles, surface.across, surface.triangle_edges, surface.edges, winding.net,
            t, winding.flooded, begin, winding.seen, winding.known, winding.number,
        )  # fmt: skip
        winding.size[0] = end
        if not agreed:
            return ESCAPED
        shift = 1 - round(_left_mean(surface, path, winding, surface.shell[surface.triangles[t, 0]]))
        if _shift_shell(
            surface.triangles, surface.rim, winding.flooded, begin, end, shift, winding.known, winding.number
        ):
            outcome = AT_RIM
    return outcome
