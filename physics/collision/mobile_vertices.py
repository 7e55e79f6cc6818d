"""Contacts between two quasi-static bodies: vertices of the mobile one on faces of the fixed one, and edges.

Each vertex follows its closest triangle by walking over the fixed surface; those that do not touch are
searched for anew in turn, so that no local minimum holds them for long and a tick's work stays bounded. A
vertex that touches stays with its surface: it leaves by the face through which it came. Contacts that stuck
in the last equilibrium keep their material points (palpo.physics.contact.anchors).

A vertex has the smoothed normal of the point below it (or, as the thesis of N. Talbi has it, the facet's);
outside a crease, where no face is below it, the direction in which it lies. Edges meet the ridges of the
fixed body and push along the common normal of both.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.arrays import copy
from palpo.physics.collision.closest import INTERIOR, segment_segment
from palpo.physics.collision.contact_surface import (
    ContactSurface,
    crease_at,
    crease_normal,
    faceted_normal,
    search,
    smooth_normal,
    walk,
    weighted_point,
)
from palpo.physics.contact.anchors import add_anchor, clear_anchors, find_anchor
from palpo.physics.contact.laws import OPEN, STICK
from palpo.physics.errors import InputError
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import dot3, matvec3_transposed, norm3, tangent_basis

SEARCHED = 4096
"""Triangles times vertices that are searched in a tick: some 20 microseconds."""

ROUND = 1e-3
"""Radius over edge length by which a crease counts as rounded: the direction of a vertex on it is defined."""

PARALLEL = 0.05
"""Sine of the angle below which two edges have no common normal: their vertices touch instead."""

SLACK = 0.1
"""Sine by which the common normal of two edges may lie outside the normals of their faces."""


class MobileFeatures(NamedTuple):
    """What of the mobile body may touch; slots of its boundary."""

    vertices: NDArray[np.int32]  # (v,)
    edges: NDArray[np.int32]  # (e, 2) flat or convex, both ends among the vertices
    opposite: NDArray[np.int32]  # (e, 2) third slots of their triangles, -1 at a border


class Tracker(NamedTuple):
    """Where each vertex is over the fixed surface."""

    triangle: NDArray[np.int32]  # (v,) the closest
    point: NDArray[np.float64]  # (v, 3) [m]
    nearest: NDArray[np.float64]  # (v,) scratch [m]
    turn: NDArray[np.int64]  # (1,) the next vertex to be searched for
    gap: NDArray[np.float64]  # (1,) the least gap of all vertices [m]
    vectors: NDArray[np.float64]  # (10, 3) scratch


class Contacts(NamedTuple):
    """Contacts of one step, at most c; the normal points from the fixed body to the mobile one."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (2,) contacts, and those lost to the capacity
    identity: NDArray[np.int64]  # (c,) the vertex; or v + e k + f for mobile edge e and fixed edge f of k
    triangle: NDArray[np.int32]  # (c,) of the fixed surface, -1 for edges
    slots: NDArray[np.int32]  # (2, c, 3) of the mobile and of the fixed body's point
    weights: NDArray[np.float64]  # (2, c, 3) 0 where there are fewer
    frame: NDArray[np.float64]  # (c, 3, 3) rows n, t1, t2, world axes
    gap: NDArray[np.float64]  # (c,) [m] where detection found the bodies
    remainder: NDArray[np.float64]  # (c, 3) [m] as in Anchors
    force: NDArray[np.float64]  # (c, 3) [N] of the last equilibrium, fixed body's axes


def make_contacts(capacity: int) -> Contacts:
    """No contacts."""
    return Contacts(
        np.zeros(2, np.int64), np.zeros(capacity, np.int64), np.zeros(capacity, np.int32),
        np.zeros((2, capacity, 3), np.int32), np.zeros((2, capacity, 3)), np.zeros((capacity, 3, 3)),
        np.zeros(capacity), np.zeros((capacity, 3)), np.zeros((capacity, 3)),
    )  # fmt: skip


def mobile_features(surface: ContactSurface, vertices: ArrayLike, edges: bool = True) -> MobileFeatures:
    """Those vertices (v,), slots, and the edges between them.

    Raises InputError for a slot that the surface does not have, or twice the same.
    """
    slots = np.asarray(vertices, dtype=np.int32)
    n = surface.sharp.size
    if slots.ndim != 1 or slots.size == 0 or slots.min() < 0 or slots.max() >= n:
        raise InputError(f"contact vertices must be boundary nodes, at least one of slots 0 to {n - 1}.")
    if np.unique(slots).size != slots.size:
        raise InputError("a contact vertex is named twice.")
    chosen = np.zeros(n, bool)
    chosen[slots] = True
    kept = chosen[surface.edges].all(axis=1) & ~surface.concave & edges
    return MobileFeatures(
        slots, np.ascontiguousarray(surface.edges[kept]), np.ascontiguousarray(surface.opposite[kept])
    )


def make_tracker(features: MobileFeatures) -> Tracker:
    """No vertex has been seen; `locate` finds where they are."""
    v = features.vertices.size
    return Tracker(
        np.zeros(v, np.int32),
        np.zeros((v, 3)),
        np.zeros(v),
        np.zeros(1, np.int64),
        np.full(1, np.inf),
        np.zeros((10, 3)),
    )


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


@inlined
def _append(contacts, identity, triangle, gap):
    """Number of a new contact, -1 where there is no room left (counted)."""
    k = contacts.count[0]
    if k == contacts.gap.shape[0]:
        contacts.count[1] += 1
        return -1
    contacts.count[0] = k + 1
    contacts.identity[k], contacts.triangle[k], contacts.gap[k] = identity, triangle, gap
    return k


@inlined
def _set_point(slots, weights, a, b, share):
    """A point on the edge from a to b, at that share of it."""
    slots[0], slots[1], slots[2] = a, b, b
    weights[0], weights[1], weights[2] = 1.0 - share, share, 0.0


@kernel
def _measure_slip(contacts, k, old, x_1, x_2, rotation_2, anchors, vectors):
    """remainder and force of contact k: since the anchor `old` was set, or from now on if it is -1.

    The anchor of a sliding contact is another material point than the contact's: the way between is added.
    """
    p, q = vectors[2], vectors[3]
    weighted_point(x_2, contacts.slots[1, k], contacts.weights[1, k], q)
    if old < 0:
        weighted_point(x_1, contacts.slots[0, k], contacts.weights[0, k], p)
        for i in range(3):
            p[i] -= q[i]
        matvec3_transposed(rotation_2, p, contacts.remainder[k])
        contacts.force[k] = 0.0
        return
    copy(anchors.force[old], contacts.force[k])
    copy(anchors.remainder[old], contacts.remainder[k])
    if not anchors.sticks[old]:
        weighted_point(x_2, anchors.slots[1, old], anchors.weights[1, old], p)
        for i in range(3):
            p[i] -= q[i]
        matvec3_transposed(rotation_2, p, q)
        for i in range(3):
            contacts.remainder[k, i] += q[i]


@kernel
def find_contacts(
    features, x_1, surface, x_2, rotation_2, tolerance, edge_reach, faceted, anchors, tracker, contacts
):
    """Contacts of all vertices and edges nearer than their tolerances [m], and of those that touched before.

    x_1, x_2 (s, 3): surfaces of the mobile and of the fixed body [m], as last deformed, where their frames
    are now. rotation_2 (3, 3): the fixed body's axes. edge_reach 0: no edges. The tracker must know where
    the vertices are (`locate`).
    """
    contacts.count[0] = 0
    contacts.count[1] = 0
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
            t = walk(surface, x_2, tracker.point[v], tracker.triangle[v], weights, trial)
        tracker.triangle[v] = t
        gap = _touch(surface, x_2, tracker.point[v], t, weights, faceted, n, tracker.vectors)
        tracker.gap[0] = min(tracker.gap[0], gap)
        if old < 0 and not gap <= tolerance:
            continue
        k = _append(contacts, v, t, gap)
        if k < 0:
            continue
        for i in range(3):
            contacts.slots[0, k, i] = features.vertices[v]
            contacts.slots[1, k, i] = surface.triangles[t, i]
            contacts.weights[0, k, i] = 1.0 if i == 0 else 0.0
            contacts.weights[1, k, i] = weights[i]
            contacts.frame[k, 0, i] = n[i]
        _measure_slip(contacts, k, old, x_1, x_2, rotation_2, anchors, tracker.vectors)
    if edge_reach > 0.0:
        _find_edges(features, x_1, surface, x_2, rotation_2, edge_reach, anchors, tracker, contacts)
    for k in range(contacts.count[0]):
        tangent_basis(contacts.frame[k, 0], contacts.frame[k, 1], contacts.frame[k, 2])


@kernel
def _find_edges(features, x_1, surface, x_2, rotation_2, reach, anchors, tracker, contacts):
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
            k = _append(contacts, identity, -1, gap)
            if k < 0:
                continue
            _set_point(contacts.slots[0, k], contacts.weights[0, k], a, b, st[0])
            _set_point(contacts.slots[1, k], contacts.weights[1, k], c, d, st[1])
            if old >= 0 and anchors.sticks[old]:
                for side in range(2):
                    for i in range(3):
                        contacts.weights[side, k, i] = anchors.weights[side, old, i]
            for i in range(3):
                contacts.frame[k, 0, i] = n[i]
            _measure_slip(contacts, k, old, x_1, x_2, rotation_2, anchors, tracker.vectors)


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
    if not _leaves(x_2, c, v, surface.opposite[f], n, 1.0, vectors[3]):
        for i in range(3):
            n[i] = -n[i]
        if not _leaves(x_2, c, v, surface.opposite[f], n, 1.0, vectors[3]):
            return False
    gap = dot3(n, w)
    if gap > reach or gap < -depth:
        return False
    return _leaves(x_1, a, u, features.opposite[e], n, -1.0, vectors[3])


@inlined
def _leaves(x, a, u, opposite, n, sense, w):
    """Whether sense n points out of both faces at the edge from slot a along u, but for SLACK."""
    uu = dot3(u, u)
    for k in range(2):
        o = opposite[k]
        if o < 0:
            continue
        along = 0.0
        for i in range(3):
            along += (x[o, i] - x[a, i]) * u[i]
        for i in range(3):
            w[i] = x[o, i] - x[a, i] - along / uu * u[i]
        if sense * dot3(n, w) > SLACK * norm3(w):
            return False
    return True


@kernel
def free_gaps(contacts, p, q, rotation_2, b):
    """b (3 n,) = x_free of each contact [m]: its gap, and its slip since it was anchored, without force.

    p, q (n, 3): where the points of the mobile and of the fixed body stand without contact force [m].
    """
    for k in range(contacts.count[0]):
        for d in range(3):
            total = 0.0
            for i in range(3):
                total += contacts.frame[k, d, i] * (p[k, i] - q[k, i])
                if d > 0:
                    for j in range(3):
                        total -= contacts.frame[k, d, i] * rotation_2[i, j] * contacts.remainder[k, j]
            b[3 * k + d] = total


@kernel
def starting_forces(contacts, rotation_2, r):
    """r (3 n,) = the force of the last equilibrium [N] in the contacts' present axes."""
    for k in range(contacts.count[0]):
        for d in range(3):
            total = 0.0
            for i in range(3):
                for j in range(3):
                    total += contacts.frame[k, d, i] * rotation_2[i, j] * contacts.force[k, j]
            r[3 * k + d] = total


@kernel
def contact_forces(contacts, r, out):
    """out (n, 3) = force of each contact on the mobile body [N], world axes."""
    for k in range(contacts.count[0]):
        for i in range(3):
            out[k, i] = (
                contacts.frame[k, 0, i] * r[3 * k]
                + contacts.frame[k, 1, i] * r[3 * k + 1]
                + contacts.frame[k, 2, i] * r[3 * k + 2]
            )


@kernel
def body_axes(frame, member, rotation, scale, out):
    """out (n, 3, 3) = scale times rows n, t1, t2 of the contacts member (n,) in a body of that rotation."""
    for k in range(member.shape[0]):
        axes = frame[member[k]]
        for d in range(3):
            for i in range(3):
                out[k, d, i] = scale * (
                    rotation[0, i] * axes[d, 0] + rotation[1, i] * axes[d, 1] + rotation[2, i] * axes[d, 2]
                )


@kernel
def hold_on(contacts, force, status, x_1, surface, x_2, rotation_2, anchors, tracker):
    """The contacts that touch in this equilibrium become the anchors that the next step starts from.

    force (n, 3) [N], world axes; status (n,). x_1, x_2: the surfaces in equilibrium.
    """
    p, q, trial = tracker.vectors[2], tracker.vectors[3], tracker.vectors[5]
    clear_anchors(anchors)
    for k in range(contacts.count[0]):
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
            for i in range(3):
                p[i] = x_1[slots[0, 0], i]
            t = walk(surface, x_2, p, contacts.triangle[k], weights[1], trial)
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
