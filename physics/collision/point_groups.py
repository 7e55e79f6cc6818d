"""The contacts of one point with its candidate triangles: the local minima of its distance.

A closest point on an edge or a vertex is one only where no adjacent face comes closer: otherwise a point that
slides over a flat mesh would catch on every inner edge.
"""

from palpo.physics.collision.closest import (
    EDGE_AB,
    FACE,
    VERTEX_A,
    point_triangle,
    triangle_normal,
)
from palpo.physics.collision.proximity_contacts import (
    GROUP_CAPACITY,
    POINT_TRIANGLE,
    add_contact,
    edge_number,
    face_number,
    identity,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import norm3


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
def point_group(topology, x, p, second, start, stop, odometer, reach, skin, mu, work, contacts):
    """Contacts of point p with the candidate triangles second[start:stop], all of one body."""
    q, n, d = work.vectors[0], work.vectors[1], work.vectors[2]
    body_1 = topology.point_body[p]
    radius_1 = topology.body_radius[body_1]
    found = 0
    nearest, nearest_distance = -1, 1e300
    for k in range(start, stop):
        if work.due[k] > odometer + reach or found == GROUP_CAPACITY:
            continue
        t = second[k]
        a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
        feature = point_triangle(x[p], x[a], x[b], x[c], work.weights[found])
        _weighted(x, t, topology, work.weights[found], q)
        for i in range(3):
            d[i] = x[p, i] - q[i]
        distance = norm3(d)
        thickness = radius_1 + topology.body_radius[topology.point_body[a]] + skin
        gap = distance - thickness
        work.due[k] = odometer + gap
        if gap > reach:
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
        _weighted(x, t, topology, work.weights[k], q)
        distance = work.distance[k]
        if distance > 1e-9:
            for i in range(3):
                n[i] = side * (x[p, i] - q[i]) / distance
        else:
            _face_side(topology, x, p, t, q, n)
        kind, name = work.feature[k, 0], work.feature[k, 1]
        if kind == FACE:
            name = face_number(topology, t)
        elif kind == EDGE_AB:
            name = edge_number(topology, name)
        name = identity(topology, POINT_TRIANGLE, p, name)
        body_2 = topology.point_body[topology.triangles[t, 0]]
        slot = add_contact(contacts, topology, name, body_1, body_2, n, side * distance, skin, mu)
        if slot < 0:
            return
        contacts.slots[slot, 0, 0], contacts.weights[slot, 0, 0] = p, 1.0
        for i in range(3):
            contacts.slots[slot, 1, i] = topology.triangles[t, i]
            contacts.weights[slot, 1, i] = work.weights[k, i]
