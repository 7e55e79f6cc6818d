"""Edges of the mobile body on ridges of the fixed one: they push along the common normal of both."""

import numpy as np

from palpo.physics.collision.closest import INTERIOR, leads_out, segment_segment
from palpo.physics.collision.mobile_contacts import append, measure_slip, set_point
from palpo.physics.contact.anchors import find_anchor
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import dot3, norm3

PARALLEL = 0.05
"""Sine of the angle below which two edges have no common normal: their vertices touch instead."""
SLACK = 0.1
"""Sine by which the common normal of two edges may lie outside the normals of their faces."""


@kernel
def find_edges(features, x_1, surface, x_2, rotation_2, reach, anchors, tracker, contacts):
    """Contacts of the mobile edges with the ridges that come near the box of the mobile vertices."""
    low, high, st, n = tracker.vectors[6], tracker.vectors[7], tracker.vectors[5], tracker.vectors[4]
    for i in range(3):
        low[i], high[i] = np.inf, -np.inf
        for v in range(tracker.point.shape[0]):
            low[i] = min(low[i], tracker.point[v, i])
            high[i] = max(high[i], tracker.point[v, i])
    first, n_edges = features.vertices.shape[0], surface.edges.shape[0]
    for ridge in range(surface.ridge.shape[0]):
        f = surface.ridge[ridge]
        c, d = surface.edges[f, 0], surface.edges[f, 1]
        if _apart(x_2[c], x_2[d], low, high, reach):
            continue
        for e in range(features.edges.shape[0]):
            a, b = features.edges[e, 0], features.edges[e, 1]
            if _apart(x_1[a], x_1[b], x_2[c], x_2[d], reach):
                continue
            identity = first + np.int64(e) * n_edges + f
            old = find_anchor(anchors, identity)
            if not _common_normal(x_1, features, e, x_2, surface, f, reach, st, n, tracker.vectors):
                continue
            gap = 0.0
            for i in range(3):
                gap += n[i] * (
                    x_1[a, i] + st[0] * (x_1[b, i] - x_1[a, i]) - x_2[c, i] - st[1] * (x_2[d, i] - x_2[c, i])
                )
            k = append(contacts, identity, -1, gap)
            if k < 0:
                continue
            set_point(contacts.slots[0, k], contacts.weights[0, k], a, b, st[0])
            set_point(contacts.slots[1, k], contacts.weights[1, k], c, d, st[1])
            if old >= 0 and anchors.sticks[old]:
                for side in range(2):
                    for i in range(3):
                        contacts.weights[side, k, i] = anchors.weights[side, old, i]
            for i in range(3):
                contacts.frame[k, 0, i] = n[i]
            measure_slip(contacts, k, old, x_1, x_2, rotation_2, anchors, tracker.vectors)


@inlined
def _apart(a, b, c, d, reach):
    """Whether the boxes about two pairs of points are farther than reach apart along some axis."""
    for i in range(3):
        low, high = max(min(a[i], b[i]), min(c[i], d[i])), min(max(a[i], b[i]), max(c[i], d[i]))
        if low - high > reach:
            return True
    return False


@kernel
def _common_normal(x_1, features, e, x_2, surface, f, reach, st, n, vectors):
    """Whether edge e may touch ridge f; writes where, st, and n, perpendicular to both and out of the ridge.

    Both closest points lie inside their edges, no nearer face would do, and they are within reach, or no
    deeper than half the shorter edge.
    """
    a, b = features.edges[e, 0], features.edges[e, 1]
    c, d = surface.edges[f, 0], surface.edges[f, 1]
    end_1, end_2 = segment_segment(x_1[a], x_1[b], x_2[c], x_2[d], st)
    if end_1 != INTERIOR or end_2 != INTERIOR:
        return False
    u, v, w = vectors[0], vectors[1], vectors[2]
    for i in range(3):
        u[i] = x_1[b, i] - x_1[a, i]
        v[i] = x_2[d, i] - x_2[c, i]
        w[i] = x_1[a, i] + st[0] * u[i] - x_2[c, i] - st[1] * v[i]
    n[0] = u[1] * v[2] - u[2] * v[1]
    n[1] = u[2] * v[0] - u[0] * v[2]
    n[2] = u[0] * v[1] - u[1] * v[0]
    length = norm3(n)
    if not length > PARALLEL * norm3(u) * norm3(v):
        return False
    for i in range(3):
        n[i] /= length
    depth = 0.5 * min(norm3(u), norm3(v))
    if not leads_out(x_2, surface.edges, surface.opposite, f, n, 1.0, SLACK):
        for i in range(3):
            n[i] = -n[i]
        if not leads_out(x_2, surface.edges, surface.opposite, f, n, 1.0, SLACK):
            return False
    gap = dot3(n, w)
    if gap > reach or gap < -depth:
        return False
    return leads_out(x_1, features.edges, features.opposite, e, n, -1.0, SLACK)
