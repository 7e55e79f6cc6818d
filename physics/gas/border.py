"""From a set of vertices to a patch with ordered borders: the wall that a cavity has on a surface.

The exact border is the iso-line on which the distance, linear along each edge, is the sealing distance (000,
3.2.3). It crosses an edge at most once, so the loops through the crossings never touch, and a vertex that
changes sides moves the border continuously. Without it, for comparison, the border runs through the sealed
vertices next to the inner surface and jumps with them.

A border is the boundary of oriented triangles: as many of its half-edges enter a vertex as leave it. So a
walk along it cannot get stuck, whatever the ring looks like, and where it meets itself a loop is cut off.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.flood import SEALED, Connectivity
from palpo.physics.gas.patch import (
    Patch,
    add_loop,
    add_point,
    add_triangle,
    add_vertex,
    clear,
    make_patch,
)
from palpo.physics.numerics.kernels import inlined, kernel

MARGIN = 1e-9
"""Least part of an edge between the border and a vertex, so that no triangle is a point."""


class BorderWork(NamedTuple):
    """Scratch of `cut_patch` for a surface of n vertices and k edges, and patches of p vertices."""

    place: NDArray[np.int64]  # (n,) vertex of the patch at each vertex, -1 for none
    crossing: NDArray[np.int64]  # (k,) vertex of the patch on each edge that the border crosses
    half: NDArray[np.int64]  # (h, 2) ends of the border's half-edges
    chain: NDArray[np.int64]  # (h,) next half-edge that leaves the same vertex, -1 at the last
    leaving: NDArray[np.int64]  # (p,) first half-edge, not walked yet, that leaves each vertex of the patch
    at: NDArray[np.int64]  # (p,) place of a vertex in the walk, -1 if it is not on it
    walk: NDArray[np.int64]  # (p + 1,) vertices
    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,) half-edges


def make_border_work(connectivity: Connectivity) -> BorderWork:
    """Scratch for the patches of that surface."""
    n, k, h = len(connectivity.rim), len(connectivity.edges), 3 * len(connectivity.triangles)
    return BorderWork(
        place=np.zeros(n, np.int64),
        crossing=np.zeros(k, np.int64),
        half=np.zeros((h, 2), np.int64),
        chain=np.zeros(h, np.int64),
        leaving=np.zeros(n + k, np.int64),
        at=np.zeros(n + k, np.int64),
        walk=np.zeros(n + k + 1, np.int64),
        count=np.zeros(1, np.int64),
    )


def whole_patch(connectivity: Connectivity) -> Patch:
    """An empty patch with room for whatever `cut_patch` may find on that surface."""
    n, k, m = len(connectivity.rim), len(connectivity.edges), len(connectivity.triangles)
    return make_patch(n + k, 2 * m, 3 * m, m)


@kernel
def cut_patch(connectivity, member, number, label, distance, limits, exact, patch, work):
    """Write the patch of the vertices whose member (n,) is `number`, cut along its border.

    For the wall of a cavity: member `Flood.cavity`; for all inside an outermost ring: `Flood.footprint`.
    Where two sets meet among sealed vertices (`Tracks.region`) no iso-line parts them: each has half of the
    edge. label, distance (n,): of the vertices; one that lets air through at an unknown distance counts as at
    the alarm distance, the least that it can be. exact: cut on the iso-line, or through vertices.
    """
    clear(patch)
    work.place[:] = -1
    work.count[0] = 0
    if exact:
        _place_vertices(connectivity, member, number, label, distance, limits, patch, work)
        _cut_triangles(connectivity, member, number, patch, work)
    else:
        _keep_triangles(connectivity, member, number, label, patch, work)
    _order_border(patch, work)


@inlined
def _add_half(work, tail, head):
    work.half[work.count[0], 0], work.half[work.count[0], 1] = tail, head
    work.count[0] += 1


@kernel
def _place_vertices(connectivity, member, number, label, distance, limits, patch, work):
    """Add the inner vertices, and those where the border crosses an edge."""
    for v in range(member.size):
        if member[v] == number:
            work.place[v] = add_vertex(patch, v)
    for e in range(connectivity.edges.shape[0]):
        a, b = connectivity.edges[e, 0], connectivity.edges[e, 1]
        if (member[a] == number) == (member[b] == number):
            continue
        part = 0.5
        if (label[a] >= SEALED) != (label[b] >= SEALED):
            # an unknown distance is a free vertex's, beyond the alarm distance
            da = distance[a] if np.isfinite(distance[a]) else limits.alarm
            db = distance[b] if np.isfinite(distance[b]) else limits.alarm
            part = (limits.sealing - da) / (db - da) if da != db else 0.5
            part = min(max(part, MARGIN), 1.0 - MARGIN)
        work.crossing[e] = add_point(patch, a, b, b, 1.0 - part, part, 0.0)


@kernel
def _cut_triangles(connectivity, member, number, patch, work):
    """Add what of each triangle is on the inner side of the border, and its piece of the border."""
    place, crossing = work.place, work.crossing
    for t in range(connectivity.triangles.shape[0]):
        triangle, edges = connectivity.triangles[t], connectivity.triangle_edges[t]
        inner = 0
        for j in range(3):
            inner += member[triangle[j]] == number
        if inner == 0:
            continue
        # start from the corner that is alone on its side
        j = 0
        while inner < 3 and (member[triangle[j]] == number) != (inner == 1):
            j += 1
        a, b, c = place[triangle[j]], place[triangle[(j + 1) % 3]], place[triangle[(j + 2) % 3]]
        if inner == 3:
            add_triangle(patch, a, b, c)
        else:
            ab, ca = crossing[edges[j]], crossing[edges[(j + 2) % 3]]
            if inner == 1:
                add_triangle(patch, a, ab, ca)
                _add_half(work, ab, ca)
            else:
                add_triangle(patch, ab, b, c)
                add_triangle(patch, ab, c, ca)
                _add_half(work, ca, ab)
        for j in range(3):
            # where the surface itself ends, what of its edge is inner belongs to the border
            if connectivity.across[t, j] < 0:
                tail, head = place[triangle[j]], place[triangle[(j + 1) % 3]]
                if tail >= 0 or head >= 0:
                    _add_half(
                        work,
                        tail if tail >= 0 else crossing[edges[j]],
                        head if head >= 0 else crossing[edges[j]],
                    )


@kernel
def _belongs(triangles, member, number, label, t):
    """Is triangle t in the patch whose border runs through vertices: unsealed somewhere, or all inside?"""
    inner = 0
    for j in range(3):
        v = triangles[t, j]
        if member[v] == number:
            inner += 1
            if label[v] < SEALED:
                return True
    return inner == 3


@kernel
def _keep_triangles(connectivity, member, number, label, patch, work):
    """Add the triangles that belong to the patch whole, and those of their edges that are border."""
    triangles, place = connectivity.triangles, work.place
    for t in range(triangles.shape[0]):
        if not _belongs(triangles, member, number, label, t):
            continue
        triangle = triangles[t]
        for j in range(3):
            if place[triangle[j]] < 0:
                place[triangle[j]] = add_vertex(patch, triangle[j])
        add_triangle(patch, place[triangle[0]], place[triangle[1]], place[triangle[2]])
        for j in range(3):
            other = connectivity.across[t, j]
            if other < 0 or not _belongs(triangles, member, number, label, other):
                _add_half(work, place[triangle[j]], place[triangle[(j + 1) % 3]])


@kernel
def _order_border(patch, work):
    """Put the half-edges in order: simple closed loops."""
    half, chain, leaving, at, walk = work.half, work.chain, work.leaving, work.at, work.walk
    for v in range(patch.size[0].vertices):
        leaving[v] = at[v] = -1
    for h in range(work.count[0] - 1, -1, -1):
        chain[h] = leaving[half[h, 0]]
        leaving[half[h, 0]] = h
    for first in range(work.count[0]):
        walk[0], length = half[first, 0], 1
        at[walk[0]] = 0
        while leaving[walk[length - 1]] >= 0:
            h = leaving[walk[length - 1]]
            leaving[walk[length - 1]] = chain[h]
            head = half[h, 1]
            if at[head] < 0:
                at[head], walk[length] = length, head
                length += 1
                continue
            start = at[head]
            add_loop(patch, walk[start:], length - start)
            for k in range(start + 1, length):
                at[walk[k]] = -1
            length = start + 1
        for k in range(length):
            at[walk[k]] = -1
