"""How far apart the features of a pair are, now or where they are expected to be."""

import numpy as np

from palpo.physics.collision.closest import segment_segment, to_triangle, triangle_normal, vector
from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    EDGE_FACET,
    POINT_PLANE,
    POINT_TRIANGLE,
    second_body,
)
from palpo.physics.collision.topology import kept_gap
from palpo.physics.numerics.kernels import inlined, kernel


@inlined
def segment_distance2(x, a, b, c, d, near):
    """Squared distance [m2] of the segments from point a to b and from c to d."""
    segment_segment(x[a], x[b], x[c], x[d], near)
    d2 = 0.0
    for i in range(3):
        d2 += (x[a, i] + near[0] * (x[b, i] - x[a, i]) - x[c, i] - near[1] * (x[d, i] - x[c, i])) ** 2
    return d2


@kernel
def facet_distance2(x, edge, triangles, t, near):
    """Squared distance [m2] of a segment (2,) from triangle t, as long as it does not pierce it.

    near (3,): scratch.
    """
    a, b = edge[0], edge[1]
    least = to_triangle(vector(x, a), x, triangles, t, near)[0]
    if a == b:
        return least
    least = min(least, to_triangle(vector(x, b), x, triangles, t, near)[0])
    for k in range(3):
        c, d = triangles[t, k], triangles[t, (k + 1) % 3]
        least = min(least, segment_distance2(x, a, b, c, d, near))
    return least


@kernel
def gaps_at(topology, pairs, x, skin):
    """Gaps [m] of sorted pairs (n,) with all points at x (points, 3) [m]; skin [m]: see `kept_gap`.

    A point behind the nearest of a body's triangles is inside: the gap of that pair is negative.
    """
    body, kinds, firsts, seconds = topology.point_body, pairs.kind, pairs.first, pairs.second
    out, near, k = np.empty(kinds.size), np.empty((2, 3)), 0
    while k < kinds.size:
        kind, first, second = kinds[k], firsts[k], seconds[k]
        one = body[topology.edges[first, 0] if kind in (EDGE_EDGE, EDGE_FACET) else first]
        two = second_body(topology, kind, second)
        touch = topology.body_radius[one] + topology.body_radius[two] + kept_gap(topology, one, two, skin)
        if kind == POINT_TRIANGLE:
            k = _gaps_of_point(topology, pairs, x, k, touch, near, out)
            continue
        if kind == POINT_PLANE:
            distance, plane = 0.0, topology.planes[second]
            for i in range(3):
                distance += (x[first, i] - plane[i]) * plane[3 + i]
        else:
            edge = topology.edges[first]
            if kind == EDGE_EDGE:
                other = topology.edges[second]
                d2 = segment_distance2(x, edge[0], edge[1], other[0], other[1], near[0])
            else:
                d2 = facet_distance2(x, edge, topology.triangles, second, near[0])
            distance = d2**0.5
        out[k] = distance - touch
        k += 1
    return out


@kernel
def _gaps_of_point(topology, pairs, x, start, touch, near, out):
    """Gaps of the pairs from `start` on that are of one point and one body; returns the first of others."""
    triangles, kinds, firsts, seconds = topology.triangles, pairs.kind, pairs.first, pairs.second
    p, two = firsts[start], second_body(topology, POINT_TRIANGLE, seconds[start])
    k, nearest, least, inside = start, start, np.inf, False
    while k < kinds.size and kinds[k] == POINT_TRIANGLE and firsts[k] == p:
        if second_body(topology, POINT_TRIANGLE, seconds[k]) != two:
            break
        corners = triangles[seconds[k]]
        d2, _, away = to_triangle(vector(x, p), x, triangles, seconds[k], near[0])
        out[k] = d2**0.5 - touch
        if d2 < least:
            triangle_normal(x[corners[0]], x[corners[1]], x[corners[2]], near[1])
            height = near[1, 0] * away[0] + near[1, 1] * away[1] + near[1, 2] * away[2]
            nearest, least, inside = k, d2, height < 0.0
        k += 1
    if inside:
        out[nearest] = -(least**0.5) - touch
    return k
