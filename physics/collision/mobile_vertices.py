"""Contacts between two quasi-static bodies: vertices of the mobile one on faces of the fixed one, and edges.

Each vertex follows its closest triangle by walking over the fixed surface; those that do not touch are
searched for anew in turn, so that no local minimum holds them for long and a tick's work stays bounded. A
vertex that touches stays with its surface: it leaves by the face through which it came. Contacts that stuck
in the last equilibrium keep their material points (palpo.physics.contact.anchors).

A vertex has the smoothed normal of the point below it (or, as the thesis of N. Talbi has it, the facet's);
outside a crease, where no face is below it, the direction in which it lies. Edges meet the ridges of the
fixed body and push along the common normal of both.
"""

import numpy as np

from palpo.physics.collision.closest import INTERIOR, leads_out, segment_segment, vector
from palpo.physics.collision.contact_surface import (
    crease_at,
    crease_normal,
    faceted_normal,
    search,
    smooth_normal,
    walk,
    weighted_point,
)
from palpo.physics.collision.mobile_contacts import append, measure_slip, set_point
from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import OPEN, STICK
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import dot3, matvec3_transposed, norm3, tangent_basis

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


SEARCHED = 4096
"""Triangles times vertices that are searched in a tick: some 20 microseconds."""

ROUND = 1e-3
"""Radius over edge length by which a crease counts as rounded: the direction of a vertex on it is defined."""


@kernel
def locate(features, x_1, surface, x_2, anchors, tracker, count):
    """Search the whole surface for `count` vertices that do not touch, those whose turn it is."""
    n = features.vertices.shape[0]
    for k in range(n):
        for i in range(3):
            tracker.point[k, i] = x_1[features.vertices[k], i]
    search(
        surface, x_2, tracker.point, anchors.of_vertex, tracker.turn[0], min(count, n), tracker.triangle,
        tracker.nearest, tracker.vectors[8:10],
    )  # fmt: skip
    tracker.turn[0] = (tracker.turn[0] + min(count, n)) % n


@kernel
def _touch(surface, x, p, t, weights, faceted, n, vectors):
    """Gap [m] of the point p (3,) over the point of triangle t by weights (3,), and its normal n (3,)."""
    q, face = vectors[0], vectors[1]
    weighted_point(x, surface.triangles[t], weights, q)
    for i in range(3):
        q[i] = p[i] - q[i]
    crease = crease_at(surface, t, weights)
    if crease > 0:
        crease_normal(surface, x, t, crease, n, face)
        if dot3(q, n) >= 0.0:
            a, b = surface.triangles[t, 0], surface.triangles[t, 1]
            edge = 0.0
            for i in range(3):
                edge += (x[a, i] - x[b, i]) ** 2
            for i in range(3):
                n[i] = q[i] + ROUND * edge**0.5 * n[i]
            length = norm3(n)
            for i in range(3):
                n[i] /= length
            return dot3(q, n)
    if faceted:
        faceted_normal(surface, x, t, n)
    else:
        smooth_normal(surface, x, t, weights, n, face)
    return dot3(q, n)


@kernel
def find_contacts(
    features, x_1, surface, x_2, rotation_2, tolerance, edge_reach, faceted, anchors, tracker, contacts
):
    """Contacts of all vertices and edges nearer than their tolerances [m], and of those that touched before.

    x_1, x_2 (s, 3): surfaces of the mobile and of the fixed body [m], as last deformed, where their frames
    are now. rotation_2 (3, 3): the fixed body's axes. edge_reach 0: no edges. The tracker must know where
    the vertices are (`locate`).
    """
    contacts.count[0].found = 0
    contacts.count[0].lost = 0
    locate(features, x_1, surface, x_2, anchors, tracker, max(1, SEARCHED // surface.triangles.shape[0]))
    n, trial = tracker.vectors[4], tracker.vectors[5]
    weights = tracker.vectors[6]
    tracker.gap[0] = np.inf
    for v in range(features.vertices.shape[0]):
        old = anchors.of_vertex[v]
        if old >= 0 and anchors.sticks[old]:
            t = anchors.triangle[old]
            for i in range(3):
                weights[i] = anchors.weights[1, old, i]
        else:
            t = walk(surface, x_2, vector(tracker.point, v), tracker.triangle[v], weights, trial)
        tracker.triangle[v] = t
        gap = _touch(surface, x_2, tracker.point[v], t, weights, faceted, n, tracker.vectors)
        tracker.gap[0] = min(tracker.gap[0], gap)
        if old < 0 and not gap <= tolerance:
            continue
        k = append(contacts, v, t, gap)
        if k < 0:
            continue
        for i in range(3):
            contacts.slots[0, k, i] = features.vertices[v]
            contacts.slots[1, k, i] = surface.triangles[t, i]
            contacts.weights[0, k, i] = 1.0 if i == 0 else 0.0
            contacts.weights[1, k, i] = weights[i]
            contacts.frame[k, 0, i] = n[i]
        measure_slip(contacts, k, old, x_1, x_2, rotation_2, anchors, tracker.vectors)
    if edge_reach > 0.0:
        find_edges(features, x_1, surface, x_2, rotation_2, edge_reach, anchors, tracker, contacts)
    for k in range(contacts.count[0].found):
        tangent_basis(contacts.frame[k, 0], contacts.frame[k, 1], contacts.frame[k, 2])


@kernel
def hold_on(contacts, force, status, x_1, surface, x_2, rotation_2, anchors, tracker):
    """The contacts that touch in this equilibrium become the anchors that the next step starts from.

    force (n, 3) [N], world axes; status (n,). x_1, x_2: the surfaces in equilibrium.
    """
    p, q, trial = tracker.vectors[2], tracker.vectors[3], tracker.vectors[5]
    clear_anchors(anchors)
    for k in range(contacts.count[0].found):
        if status[k] == OPEN:
            continue
        new = add_anchor(anchors, contacts.identity[k])
        matvec3_transposed(rotation_2, force[k], anchors.force[new])
        anchors.sticks[new] = status[k] == STICK
        anchors.triangle[new] = contacts.triangle[k]
        for side in range(2):
            for i in range(3):
                anchors.slots[side, new, i] = contacts.slots[side, k, i]
                anchors.weights[side, new, i] = contacts.weights[side, k, i]
        if status[k] == STICK:
            for i in range(3):
                anchors.remainder[new, i] = contacts.remainder[k, i]
            continue
        slots, weights = anchors.slots[:, new], anchors.weights[:, new]
        if contacts.triangle[k] >= 0:
            v = contacts.identity[k]
            t = walk(surface, x_2, vector(x_1, slots[0, 0]), contacts.triangle[k], weights[1], trial)
            anchors.triangle[new] = t
            tracker.triangle[v] = t
            for i in range(3):
                slots[1, i] = surface.triangles[t, i]
        else:
            segment_segment(x_1[slots[0, 0]], x_1[slots[0, 1]], x_2[slots[1, 0]], x_2[slots[1, 1]], trial)
            for side in range(2):
                weights[side, 0], weights[side, 1] = 1.0 - trial[side], trial[side]
        weighted_point(x_1, slots[0], weights[0], p)
        weighted_point(x_2, slots[1], weights[1], q)
        for i in range(3):
            p[i] -= q[i]
        matvec3_transposed(rotation_2, p, anchors.remainder[new])
