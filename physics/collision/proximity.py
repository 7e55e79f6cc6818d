"""Narrow phase: from candidate pairs and present positions to contacts, at every tick of every rate.

Candidates change at the low rate only (`broadphase`); their geometry (gap, normal, weights) is evaluated
here from the present positions of their points, so that a tool may slide over many triangles between
two low steps. Two kinds of pair cover triangle meshes, lines (beams) and points (round tips): point
against triangle, and edge against edge; a third is point against plane.

A closest point on an edge or a vertex is a contact only where it is a *local minimum* of the distance,
that is, where no adjacent face comes closer: otherwise a point that slides over a flat mesh would catch
on every inner edge. A point is inside a closed surface when its nearest candidate triangle says so.

Seen from a point, the distance has the same minima on the front of a surface and on the back of one. Only
the front touches, and its normal leads out of the body: a face that is seen from behind makes no contact
with a point outside, nor does the bottom of a valley, which an edge can come near from within only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.closest import (
    AT_END,
    AT_START,
    EDGE_AB,
    FACE,
    INTERIOR,
    VERTEX_A,
    point_triangle,
    segment_segment,
    triangle_normal,
)
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import norm3, tangent_basis

POINT_TRIANGLE, EDGE_EDGE, POINT_PLANE = 0, 1, 2
"""Kinds of candidate pair."""

CONVEX = 1e-6
"""Smallest sine by which an edge must stand out of its faces to be a contact feature."""

GROUP_CAPACITY = 1024
"""Most candidates of one point (or one edge) that are looked at together."""


class Pairs(NamedTuple):
    """Candidate pairs, sorted by kind, first and second primitive; capacity fixed, count separate."""

    kind: NDArray[np.int32]  # (capacity,)
    first: NDArray[np.int32]  # (capacity,) point or edge of body 1
    second: NDArray[np.int32]  # (capacity,) triangle, edge or plane of body 2


class Contacts(NamedTuple):
    """Contacts of one tick; body 1 is the side of `Pairs.first`, the normal points from body 2 to body 1."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (2,) number of contacts, number lost to the capacity
    identity: NDArray[np.int64]  # (capacity,) equal at two ticks iff the same features touch
    points: NDArray[np.int32]  # (capacity, 2, 3) points of each side, -1 where unused
    weights: NDArray[np.float64]  # (capacity, 2, 3) their weights
    arms: NDArray[np.float64]  # (capacity, 2, 3) [m] from the weighted point to the contact point
    frame: NDArray[np.float64]  # (capacity, 3, 3) rows n, t1, t2
    gap: NDArray[np.float64]  # (capacity,) [m] distance of the surfaces less the contact distance
    mu: NDArray[np.float64]  # (capacity,) friction coefficient
    body: NDArray[np.int32]  # (capacity, 2)


class ProximityWork(NamedTuple):
    """Scratch of `find_contacts`."""

    due: NDArray[np.float64]  # (pairs capacity,) [m] odometer reading at which a pair must be looked at again
    index: NDArray[np.int32]  # type: ignore[assignment]  # (GROUP_CAPACITY,)
    feature: NDArray[np.int32]  # (GROUP_CAPACITY, 3)
    weights: NDArray[np.float64]  # (GROUP_CAPACITY, 3)
    distance: NDArray[np.float64]  # (GROUP_CAPACITY,)
    height: NDArray[np.float64]  # (GROUP_CAPACITY,) of a point over the planes of its candidate triangles
    vectors: NDArray[np.float64]  # (8, 3)


def make_contacts(capacity: int) -> Contacts:
    """Empty contacts."""
    return Contacts(
        count=np.zeros(2, np.int64),
        identity=np.zeros(capacity, np.int64),
        points=np.full((capacity, 2, 3), -1, np.int32),
        weights=np.zeros((capacity, 2, 3)),
        arms=np.zeros((capacity, 2, 3)),
        frame=np.zeros((capacity, 3, 3)),
        gap=np.zeros(capacity),
        mu=np.zeros(capacity),
        body=np.zeros((capacity, 2), np.int32),
    )


def make_proximity_work(pairs_capacity: int) -> ProximityWork:
    """Scratch for pairs of that capacity."""
    return ProximityWork(
        due=np.zeros(pairs_capacity),
        index=np.zeros(GROUP_CAPACITY, np.int32),
        feature=np.zeros((GROUP_CAPACITY, 3), np.int32),
        weights=np.zeros((GROUP_CAPACITY, 3)),
        distance=np.zeros(GROUP_CAPACITY),
        height=np.zeros(GROUP_CAPACITY),
        vectors=np.zeros((8, 3)),
    )


@inlined
def _identity(topology, kind, a, b):
    """One 63-bit number for a pair of features, each already in the common numbering."""
    return (np.int64(kind) << np.int64(60)) | (np.int64(a) << np.int64(30)) | np.int64(b)


@inlined
def _edge_number(topology, e):
    return topology.point_body.shape[0] + e


@inlined
def _face_number(topology, f):
    return topology.point_body.shape[0] + topology.edges.shape[0] + f


@inlined
def _plane_number(topology, p):
    return topology.point_body.shape[0] + topology.edges.shape[0] + topology.triangles.shape[0] + p


@inlined
def _append(contacts):
    """Index of a fresh contact, or -1 when the capacity is used up (counted)."""
    k = contacts.count[0]
    if k >= contacts.gap.shape[0]:
        contacts.count[1] += 1
        return -1
    contacts.count[0] = k + 1
    for s in range(2):
        for i in range(3):
            contacts.points[k, s, i] = -1
            contacts.weights[k, s, i] = 0.0
    return k


@inlined
def _finish(contacts, k, n, distance, skin, topology, mu, body_1, body_2):
    """Frame, gap, arms and friction of contact k from its unit normal and the distance of its points."""
    r1, r2 = topology.body_radius[body_1], topology.body_radius[body_2]
    for i in range(3):
        contacts.frame[k, 0, i] = n[i]
        contacts.arms[k, 0, i] = -r1 * n[i]
        contacts.arms[k, 1, i] = r2 * n[i]
    tangent_basis(contacts.frame[k, 0], contacts.frame[k, 1], contacts.frame[k, 2])
    contacts.gap[k] = distance - r1 - r2 - skin
    contacts.mu[k] = mu[body_1, body_2]
    contacts.body[k, 0] = body_1
    contacts.body[k, 1] = body_2


@inlined
def _is_minimum(topology, work, n, k):
    """Is candidate k's feature a local minimum of the distance, and the first of its name?

    An edge (or vertex) loses to any candidate triangle that has it and comes closer elsewhere.
    """
    kind, name = work.feature[k, 0], work.feature[k, 1]
    if kind == FACE:
        return True
    for j in range(n):
        if j == k:
            continue
        other = work.index[j]
        if work.feature[j, 0] == kind and work.feature[j, 1] == name:
            if j < k:
                return False
            continue
        if kind == EDGE_AB:
            holds = (
                topology.triangle_edges[other, 0] == name
                or topology.triangle_edges[other, 1] == name
                or topology.triangle_edges[other, 2] == name
            )
        else:
            holds = (
                topology.triangles[other, 0] == name
                or topology.triangles[other, 1] == name
                or topology.triangles[other, 2] == name
            )
        if holds:
            return False
    return True


@inlined
def _is_seen_from_outside(work, n, k):
    """Is the point before candidate k's feature, not behind it?

    Of the triangles that share a feature, the one whose plane the point is farthest from tells the side.
    """
    farthest = work.height[k]
    for j in range(n):
        same = work.feature[j, 0] == work.feature[k, 0] and work.feature[j, 1] == work.feature[k, 1]
        if same and abs(work.height[j]) > abs(farthest):
            farthest = work.height[j]
    return farthest >= 0.0


@inlined
def _face_side(topology, x, p, t, q, n):
    """Signed height of the point p over the plane of triangle t through q; n receives the unit normal."""
    a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
    triangle_normal(x[a], x[b], x[c], n)
    return (x[p, 0] - q[0]) * n[0] + (x[p, 1] - q[1]) * n[1] + (x[p, 2] - q[2]) * n[2]


@inlined
def _weighted(x, t, topology, w, q):
    a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
    for i in range(3):
        q[i] = w[0] * x[a, i] + w[1] * x[b, i] + w[2] * x[c, i]


@kernel
def _point_group(topology, x, p, second, start, stop, odometer, reach, skin, mu, work, contacts):
    """Contacts of point p with the candidate triangles second[start:stop], all of one body."""
    q, n, d = work.vectors[0], work.vectors[1], work.vectors[2]
    body_1 = topology.point_body[p]
    radius_1 = topology.body_radius[body_1]
    found = 0
    nearest, nearest_distance = -1, 1e300
    for k in range(start, stop):
        if work.due[k] > odometer or found == GROUP_CAPACITY:
            continue
        t = second[k]
        a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
        feature = point_triangle(x[p], x[a], x[b], x[c], work.weights[found])
        _weighted(x, t, topology, work.weights[found], q)
        for i in range(3):
            d[i] = x[p, i] - q[i]
        distance = norm3(d)
        thickness = radius_1 + topology.body_radius[topology.point_body[a]] + skin
        slack = distance - thickness - reach
        work.due[k] = odometer + slack if slack > 0.0 else odometer
        if slack > 0.0:
            continue
        work.index[found] = t
        work.distance[found] = distance
        work.height[found] = _face_side(topology, x, p, t, q, n)
        if feature == FACE:
            work.feature[found, 0] = FACE
            work.feature[found, 1] = t
        elif feature < VERTEX_A:
            work.feature[found, 0] = EDGE_AB
            work.feature[found, 1] = topology.triangle_edges[t, feature - EDGE_AB]
        else:
            work.feature[found, 0] = VERTEX_A
            work.feature[found, 1] = topology.triangles[t, feature - VERTEX_A]
        if distance < nearest_distance:
            nearest, nearest_distance = found, distance
        found += 1
    if found == 0:
        return
    # the sign of the nearest feature decides for all; among triangles that share it, the one whose
    # plane the point is farthest from tells the side reliably
    farthest = 0.0
    for k in range(found):
        nearby = work.distance[k] <= nearest_distance * (1.0 + 1e-9) + 1e-15
        if nearby and abs(work.height[k]) > abs(farthest):
            farthest = work.height[k]
    side = 1.0 if farthest >= 0.0 else -1.0
    for k in range(found):
        if side < 0.0 and k != nearest:
            continue
        if side > 0.0 and not (
            _is_minimum(topology, work, found, k) and (k == nearest or _is_seen_from_outside(work, found, k))
        ):
            continue
        t = work.index[k]
        slot = _append(contacts)
        if slot < 0:
            return
        _weighted(x, t, topology, work.weights[k], q)
        distance = work.distance[k]
        if distance > 1e-9:
            for i in range(3):
                n[i] = side * (x[p, i] - q[i]) / distance
        else:
            _face_side(topology, x, p, t, q, n)
        contacts.points[slot, 0, 0] = p
        contacts.weights[slot, 0, 0] = 1.0
        for i in range(3):
            contacts.points[slot, 1, i] = topology.triangles[t, i]
            contacts.weights[slot, 1, i] = work.weights[k, i]
        kind, name = work.feature[k, 0], work.feature[k, 1]
        if kind == FACE:
            name = _face_number(topology, t)
        elif kind == EDGE_AB:
            name = _edge_number(topology, name)
        contacts.identity[slot] = _identity(topology, POINT_TRIANGLE, p, name)
        body_2 = topology.point_body[topology.triangles[t, 0]]
        _finish(contacts, slot, n, side * distance, skin, topology, mu, body_1, body_2)


@inlined
def _in_cone(topology, x, e, d, sign):
    """Does sign * d stand in the normal cone of edge e, strictly out of each adjacent face?"""
    a, b = topology.edges[e, 0], topology.edges[e, 1]
    u0, u1, u2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    uu = u0 * u0 + u1 * u1 + u2 * u2
    if uu == 0.0:
        return False
    for k in range(2):
        o = topology.edge_opposite[e, k]
        if o < 0:
            continue
        w0, w1, w2 = x[o, 0] - x[a, 0], x[o, 1] - x[a, 1], x[o, 2] - x[a, 2]
        f = (w0 * u0 + w1 * u1 + w2 * u2) / uu
        w0, w1, w2 = w0 - f * u0, w1 - f * u1, w2 - f * u2
        length = (w0 * w0 + w1 * w1 + w2 * w2) ** 0.5
        if sign * (d[0] * w0 + d[1] * w1 + d[2] * w2) > -CONVEX * length:
            return False
    return True


@inlined
def _is_ridge(topology, x, e):
    """Do the faces at edge e fall away from it? Those of a valley do not; a line has none.

    The faces alone do not tell a direction out of a ridge from one into the solid below a valley.
    """
    a, b = topology.edges[e, 0], topology.edges[e, 1]
    o, p = topology.edge_opposite[e, 0], topology.edge_opposite[e, 1]
    if o < 0 or p < 0:
        return True
    u0, u1, u2 = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1], x[b, 2] - x[a, 2]
    v0, v1, v2 = x[o, 0] - x[a, 0], x[o, 1] - x[a, 1], x[o, 2] - x[a, 2]
    w0, w1, w2 = x[p, 0] - x[a, 0], x[p, 1] - x[a, 1], x[p, 2] - x[a, 2]
    n0, n1, n2 = u1 * v2 - u2 * v1, u2 * v0 - u0 * v2, u0 * v1 - u1 * v0
    return w0 * n0 + w1 * n1 + w2 * n2 < 0.0


@inlined
def _towards(topology, x, e, vertex, d):
    """Cosine of the angle between d and edge e as it leaves one of its points."""
    other = topology.edges[e, 1] if topology.edges[e, 0] == vertex else topology.edges[e, 0]
    u0, u1, u2 = x[other, 0] - x[vertex, 0], x[other, 1] - x[vertex, 1], x[other, 2] - x[vertex, 2]
    length = (u0 * u0 + u1 * u1 + u2 * u2) ** 0.5
    return (d[0] * u0 + d[1] * u1 + d[2] * u2) / length if length > 0.0 else -1.0


@kernel
def _edge_group(topology, x, e, second, start, stop, odometer, reach, skin, mu, work, contacts):
    """Contacts of edge e with the candidate edges second[start:stop]."""
    st, d = work.vectors[0], work.vectors[1]
    a, b = topology.edges[e, 0], topology.edges[e, 1]
    body_1 = topology.point_body[a]
    line_1 = topology.edge_opposite[e, 0] < 0
    found = 0
    for k in range(start, stop):
        if work.due[k] > odometer or found == GROUP_CAPACITY:
            continue
        f = second[k]
        c, g = topology.edges[f, 0], topology.edges[f, 1]
        line_2 = topology.edge_opposite[f, 0] < 0
        end_1, end_2 = segment_segment(x[a], x[b], x[c], x[g], st)
        for i in range(3):
            d[i] = x[a, i] + st[0] * (x[b, i] - x[a, i]) - x[c, i] - st[1] * (x[g, i] - x[c, i])
        distance = norm3(d)
        thickness = topology.body_radius[body_1] + topology.body_radius[topology.point_body[c]] + skin
        slack = distance - thickness - reach
        work.due[k] = odometer + slack if slack > 0.0 else odometer
        if slack > 0.0 or distance < 1e-12:
            continue
        # an end of edge 1 is a point of its body: point-triangle pairs have it where body 2 has faces
        if end_1 != INTERIOR and not (line_1 and line_2):
            continue
        if end_2 != INTERIOR and not line_1:
            continue
        work.index[found] = f
        work.distance[found] = distance
        work.weights[found, 0] = st[0]
        work.weights[found, 1] = st[1]
        work.feature[found, 0] = end_2
        work.feature[found, 1] = c if end_2 == AT_START else (g if end_2 == AT_END else f)
        work.feature[found, 2] = end_1
        found += 1
    for k in range(found):
        f = work.index[k]
        c, g = topology.edges[f, 0], topology.edges[f, 1]
        s, t = work.weights[k, 0], work.weights[k, 1]
        for i in range(3):
            d[i] = (x[a, i] + s * (x[b, i] - x[a, i]) - x[c, i] - t * (x[g, i] - x[c, i])) / work.distance[k]
        side = 1.0
        end_2 = work.feature[k, 0]
        if end_2 == INTERIOR:
            if not _is_ridge(topology, x, f) or not _is_ridge(topology, x, e):
                continue
            if not _in_cone(topology, x, f, d, 1.0):
                if topology.edge_opposite[f, 0] < 0 or not _in_cone(topology, x, f, d, -1.0):
                    continue
                side = -1.0
            if not line_1 and not _in_cone(topology, x, e, d, -side):
                continue
        else:
            # a vertex of body 2 under the inside of a line's segment: every candidate edge that has
            # this vertex must be closest there, and only the first of them makes the contact. All of
            # them lead away from the line; of a summit the one that does so least is a ridge, of the
            # bottom of a pit, which the line comes near from within, it is a valley
            keep, vertex = True, work.feature[k, 1]
            least, most = f, -2.0
            for j in range(found):
                other = work.index[j]
                if topology.edges[other, 0] == vertex or topology.edges[other, 1] == vertex:
                    same = work.feature[j, 0] != INTERIOR and work.feature[j, 1] == vertex
                    if not same or j < k:
                        keep = False
                        break
                    cosine = _towards(topology, x, other, vertex, d)
                    if cosine > most:
                        least, most = other, cosine
            if not keep or not _is_ridge(topology, x, least):
                continue
        slot = _append(contacts)
        if slot < 0:
            return
        contacts.points[slot, 0, 0] = a
        contacts.points[slot, 0, 1] = b
        contacts.weights[slot, 0, 0] = 1.0 - s
        contacts.weights[slot, 0, 1] = s
        contacts.points[slot, 1, 0] = c
        contacts.points[slot, 1, 1] = g
        contacts.weights[slot, 1, 0] = 1.0 - t
        contacts.weights[slot, 1, 1] = t
        end_1 = work.feature[k, 2]
        name_1 = a if end_1 == AT_START else (b if end_1 == AT_END else _edge_number(topology, e))
        name_2 = work.feature[k, 1] if end_2 != INTERIOR else _edge_number(topology, f)
        contacts.identity[slot] = _identity(topology, EDGE_EDGE, name_1, name_2)
        for i in range(3):
            d[i] *= side
        body_2 = topology.point_body[c]
        _finish(contacts, slot, d, side * work.distance[k], skin, topology, mu, body_1, body_2)


@kernel
def _point_plane(topology, x, p, k, plane, odometer, reach, skin, mu, work, contacts):
    """Contact of point p with a half space."""
    o, n = topology.planes[plane, 0:3], topology.planes[plane, 3:6]
    body_1, body_2 = topology.point_body[p], topology.plane_body[plane]
    distance = (x[p, 0] - o[0]) * n[0] + (x[p, 1] - o[1]) * n[1] + (x[p, 2] - o[2]) * n[2]
    slack = distance - topology.body_radius[body_1] - skin - reach
    work.due[k] = odometer + slack if slack > 0.0 else odometer
    if slack > 0.0:
        return
    slot = _append(contacts)
    if slot < 0:
        return
    contacts.points[slot, 0, 0] = p
    contacts.weights[slot, 0, 0] = 1.0
    contacts.identity[slot] = _identity(topology, POINT_PLANE, p, _plane_number(topology, plane))
    _finish(contacts, slot, n, distance, skin, topology, mu, body_1, body_2)


@inlined
def _body_2(topology, pairs, k):
    """Number of the second body of pair k."""
    kind, second = pairs.kind[k], pairs.second[k]
    if kind == POINT_TRIANGLE:
        return topology.point_body[topology.triangles[second, 0]]
    if kind == EDGE_EDGE:
        return topology.point_body[topology.edges[second, 0]]
    return topology.plane_body[second]


@kernel
def find_contacts(topology, pairs, n_pairs, x, odometer, reach, skin, mu, work, contacts):
    """Contacts of all due pairs whose surfaces are nearer than `skin + reach` [m].

    `x` (n_points, 3) holds the present position of every point of a due pair. `odometer` [m] is a bound
    on the relative travel of any two points so far: a pair found `slack` too far away is not looked at
    again before the odometer has advanced by that much. Pairs are sorted by kind, first and second, so that
    those of one point with one body stand together: whether it is inside is asked of each body by itself.
    """
    contacts.count[0] = 0
    contacts.count[1] = 0
    start = 0
    while start < n_pairs:
        kind, first = pairs.kind[start], pairs.first[start]
        stop = start + 1
        while (
            stop < n_pairs
            and pairs.kind[stop] == kind
            and pairs.first[stop] == first
            and _body_2(topology, pairs, stop) == _body_2(topology, pairs, start)
        ):
            stop += 1
        if kind == POINT_TRIANGLE:
            _point_group(
                topology, x, first, pairs.second, start, stop, odometer, reach, skin, mu, work, contacts
            )
        elif kind == EDGE_EDGE:
            _edge_group(
                topology, x, first, pairs.second, start, stop, odometer, reach, skin, mu, work, contacts
            )
        else:
            for k in range(start, stop):
                if work.due[k] <= odometer:
                    _point_plane(
                        topology, x, first, k, pairs.second[k], odometer, reach, skin, mu, work, contacts
                    )
        start = stop
