"""The contacts of a ball or a capsule with the facets of a soft body, by their areas: one a facet.

Points inside of each facet meet it: three, or three in each quarter of facets that are longer than the
radius. Each stands for its part of the facet's area A. A body of elements knows no shape between its nodes,
so that a facet that may nowhere enter the ball is too far out, and how far depends on where nodes stand. Here
the surface between the nodes yields by itself, in proportion to the pressure: a point, of n on a facet, gives
f / (A / n) per newton, with f [m/Pa] what the elements miss (palpo.physics.fem.facet_yield). So it is as deep
in the ball as the surface would be dented, and what is felt hangs neither on the nodes nor on a contact
distance.

What points bear is thus told by how deep they are, and one contact stands for all of a facet: at the centre
of their pressures, in shares s of the whole, along the mean of their normals. Their law g_q + f n / A l_q = 0
in the sum s_q times it,

    sum s g + (f n / A) (sum s^2) l = 0,

has the same force l where they are at rest, however many they are. While they move, their shares are those of
the step's start.

A point touches the ball that is seen from its facet's front. Where the nearest one is seen from behind, the
ball's centre has gone into the body: its facet pushes it out along its normal, and gives nothing.
"""

import numpy as np

from palpo.physics.collision.closest import triangle_normal
from palpo.physics.collision.proximity_contacts import (
    EDGE_FACET,
    GROUP_CAPACITY,
    add_contact,
    face_number,
    identity,
    second_body,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, dot3, norm3

POINTS = 3
"""Of a facet or a quarter, one near each corner: with these weights exact for pressures up to the second
order (G. Strang, G. Fix, An Analysis of the Finite Element Method, 1973, table 4.1)."""
OWN, OTHER = 2.0 / 3.0, 1.0 / 6.0
"""Weights of a point on the corner that it is near to, and on each of the two others."""

LEAST_ALONG = 0.1
"""Least length of the mean of unit normals that counts: a facet's points may be on all sides of a ball."""

LEAST_AREA = 1e-12
"""Area [m2] below which a facet touches nothing."""


@inlined
def parts_of_facets(radius, longest):
    """In how many parts facets of that longest edge [m] meet a radius [m]: one, or four if longer."""
    return 1 if longest <= radius else 4


@inlined
def weight_on(parts, q, i):
    """Of point q on corner i of a facet in so many parts: POINTS in each, the middle quarter's last."""
    own = OWN if q % POINTS == i else OTHER
    if parts == 1:
        return own
    if q >= 3 * POINTS:
        return 0.5 * (1.0 - own)
    return 0.5 * (own + 1.0) if q // POINTS == i else 0.5 * own


@inlined
def _facet_point(topology, x, t, parts, q, out):
    """out (3,) = point q of facet t."""
    for i in range(3):
        out[i] = 0.0
        for c in range(3):
            out[i] += weight_on(parts, q, c) * x[topology.triangles[t, c], i]


@inlined
def _from_edge(topology, x, e, p, d):
    """Share s of edge e at which it is closest to p; d (3,) = from p to there."""
    a, b = topology.edges[e, 0], topology.edges[e, 1]
    length2, along = 0.0, 0.0
    for i in range(3):
        side = x[b, i] - x[a, i]
        length2 += side * side
        along += side * (p[i] - x[a, i])
    s = min(max(along / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    for i in range(3):
        d[i] = x[a, i] + s * (x[b, i] - x[a, i]) - p[i]
    return s


@inlined
def _area(topology, x, t, vectors):
    a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
    u, w, n = vectors[4], vectors[5], vectors[6]
    for i in range(3):
        u[i], w[i] = x[b, i] - x[a, i], x[c, i] - x[a, i]
    cross3(u, w, n)
    return 0.5 * norm3(n)


@kernel
def round_group(topology, x, e, second, start, stop, odometer, reach, mu, work, contacts):
    """Contacts of the thick edge e with the facets second[start:stop], all of one body."""
    p, d, n = work.vectors[0], work.vectors[1], work.vectors[2]
    body_1 = topology.point_body[topology.edges[e, 0]]
    body_2 = second_body(topology, EDGE_FACET, second[start])
    radius = topology.body_radius[body_1] + topology.body_radius[body_2]
    parts = parts_of_facets(radius, topology.body_facet[body_2])
    found, nearest, closest, height, deepest = 0, -1, np.inf, 0.0, 0
    for k in range(start, stop):
        if work.due[k] > odometer + reach or found == GROUP_CAPACITY:
            continue
        t, least = second[k], np.inf
        a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
        triangle_normal(x[a], x[b], x[c], n)
        for q in range(POINTS * parts):
            _facet_point(topology, x, t, parts, q, p)
            _from_edge(topology, x, e, p, d)
            distance, above = norm3(d), dot3(d, n)
            work.apart[found, q] = distance if above > 0.0 else np.inf
            least = min(least, distance)
            if distance < closest:
                nearest, closest, height, deepest = t, distance, above, q
        work.due[k] = odometer + least - radius
        if least - radius <= reach:
            work.index[found] = t
            found += 1
    if found > 0 and height <= 0.0:
        _push_out(topology, x, e, nearest, parts, deepest, radius, mu, work, contacts)
        return
    for k in range(found):
        _bear(topology, x, e, k, parts, radius, mu, work, contacts)


@inlined
def _depth(distance, radius):
    """What is told of how deep the points of a facet at those distances [m] are: in sum, and the nearest."""
    total, one = 0.0, 0
    for q in range(distance.shape[0]):
        total += max(radius - distance[q], 0.0)
        if distance[q] < distance[one]:
            one = q
    return total, one


@kernel
def _bear(topology, x, e, k, parts, radius, mu, work, contacts):
    """The contact of the facet that was found as k, each of whose points bears by how deep it is; where none
    is in, the nearest one all of it."""
    p, d, n, t = work.vectors[0], work.vectors[1], work.vectors[2], work.index[k]
    points = POINTS * parts
    distance = work.apart[k, :points]
    total, one = _depth(distance, radius)
    area = _area(topology, x, t, work.vectors)
    if distance[one] == np.inf or area < LEAST_AREA:
        return
    away, along, corner = work.vectors[4], work.vectors[5], work.vectors[6]
    gap, squares, at = 0.0, 0.0, 0.0
    for i in range(3):
        away[i] = along[i] = corner[i] = 0.0
    for q in range(points):
        share = max(radius - distance[q], 0.0) / total if total > 0.0 else (1.0 if q == one else 0.0)
        if share == 0.0:
            continue
        _facet_point(topology, x, t, parts, q, p)
        at += share * _from_edge(topology, x, e, p, d)
        gap += share * (distance[q] - radius)
        squares += share * share
        for i in range(3):
            away[i] += share * d[i]
            along[i] += share * d[i] / distance[q]
            corner[i] += share * weight_on(parts, q, i)
    length = norm3(away)
    for i in range(3):
        n[i] = away[i] / length
    whole = max(dot3(n, along), LEAST_ALONG)  # the force along n of a newton on the points
    slot = _add(topology, e, t, at, corner, n, gap / whole, mu, contacts)
    if slot >= 0:
        contacts.give[slot] = points * topology.facet_yield[t] / area * squares / whole**2
        for i in range(3):  # both sides meet in the centre of pressure
            contacts.arm[slot, 0, i] = -away[i]


@kernel
def _push_out(topology, x, e, t, parts, q, radius, mu, work, contacts):
    """The contact of point q of facet t with an edge that is behind it."""
    p, d, n, corner = work.vectors[0], work.vectors[1], work.vectors[2], work.vectors[6]
    a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
    triangle_normal(x[a], x[b], x[c], n)
    _facet_point(topology, x, t, parts, q, p)
    at = _from_edge(topology, x, e, p, d)
    height = dot3(d, n)
    for i in range(3):
        corner[i] = weight_on(parts, q, i)
    slot = _add(topology, e, t, at, corner, n, height - radius, mu, contacts)
    if slot >= 0:
        for i in range(3):
            contacts.arm[slot, 0, i] = -height * n[i]


@kernel
def _add(topology, e, t, at, corner, n, gap, mu, contacts):
    """Number of the contact along n (3,), with that gap [m], of a point at a share of edge e and one of facet
    t by weights of its corners (3,); -1 without room."""
    body_1 = topology.point_body[topology.edges[e, 0]]
    body_2 = topology.point_body[topology.triangles[t, 0]]
    name = identity(topology, EDGE_FACET, e, face_number(topology, t))
    slot = add_contact(contacts, topology, name, body_1, body_2, n, 0.0, 0.0, mu)
    if slot < 0:
        return slot
    contacts.gap[slot] = gap
    for i in range(2):
        contacts.slots[slot, 0, i] = topology.edges[e, i]
    contacts.weights[slot, 0, 0], contacts.weights[slot, 0, 1] = 1.0 - at, at
    for c in range(3):
        contacts.slots[slot, 1, c] = topology.triangles[t, c]
        contacts.weights[slot, 1, c] = corner[c]
    return slot
