"""The contacts of a ball or a capsule with the facets of a soft body, by their areas.

Points inside of the facets meet it, and each stands for its part of the facet's area A: three, or one where
facets are small for the ball. A body of elements knows no shape between its nodes, so that a facet that may
nowhere enter the ball is too far out, and how far depends on where nodes stand. Here the surface between the
nodes yields by itself, in proportion to the pressure: a contact of n on a facet gives f / (A / n) per newton,
with f [m/Pa] what the elements miss (palpo.physics.fem.facet_yield). So it is as deep in the ball as the
surface would be dented, and what is felt hangs neither on the nodes nor on a contact distance.

A point touches the ball that is seen from its facet's front. Where the nearest one is seen from behind, the
ball's centre has gone into the body: that one pushes it out along its facet's normal, and gives nothing.
"""

from palpo.physics.collision.closest import triangle_normal
from palpo.physics.collision.proximity_contacts import (
    EDGE_FACET,
    GROUP_CAPACITY,
    add_contact,
    facet_point_number,
    identity,
    second_body,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, dot3, norm3

FACET_POINTS = 3
"""Of a facet that is not small, one near each corner: with these weights exact for pressures up to the second
order, where the middle is up to the first (G. Strang, G. Fix, An Analysis of the Finite Element Method, 1973,
table 4.1)."""
OWN, OTHER = 2.0 / 3.0, 1.0 / 6.0
"""Weights of a point on the corner that it is near to, and on each of the two others."""
SMALL = 0.4
"""Facets whose longest edge, in the mean, is up to so many radii have one point, their middle: a dent as deep
as a tenth of the radius then has some fifteen of them."""

LEAST_AREA = 1e-12
"""Area [m2] below which a facet touches nothing."""


@inlined
def points_of_facets(topology, line, faceted):
    """How many of each facet meet a thick body."""
    return 1 if topology.body_facet[faceted] <= SMALL * topology.body_radius[line] else FACET_POINTS


@inlined
def _weight(points, q, c):
    """Of corner c in point q out of so many."""
    if points == 1:
        return 1.0 / 3.0
    return OWN if q == c else OTHER


@inlined
def _facet_point(topology, x, t, points, q, out):
    """out (3,) = point q of facet t."""
    for i in range(3):
        out[i] = 0.0
        for c in range(3):
            out[i] += _weight(points, q, c) * x[topology.triangles[t, c], i]


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
    """Contacts of the thick edge e with points of the facets second[start:stop], all of one body."""
    p, d, n = work.vectors[0], work.vectors[1], work.vectors[2]
    body_1 = topology.point_body[topology.edges[e, 0]]
    body_2 = second_body(topology, EDGE_FACET, second[start])
    radius = topology.body_radius[body_1] + topology.body_radius[body_2]
    points, found, nearest = points_of_facets(topology, body_1, body_2), 0, -1
    for k in range(start, stop):
        if work.due[k] > odometer + reach:
            continue
        t, least = second[k], 1e300
        a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
        triangle_normal(x[a], x[b], x[c], n)
        for q in range(points):
            _facet_point(topology, x, t, points, q, p)
            s = _from_edge(topology, x, e, p, d)
            distance = norm3(d)
            least = min(least, distance)
            if distance - radius > reach or found == GROUP_CAPACITY:
                continue
            work.index[found], work.feature[found, 0] = t, q
            work.weights[found, 0], work.distance[found] = s, distance
            work.height[found] = dot3(d, n)
            if nearest < 0 or distance < work.distance[nearest]:
                nearest = found
            found += 1
        work.due[k] = odometer + least - radius
    if found == 0:
        return
    if work.height[nearest] <= 0.0:
        _push_out(topology, x, e, nearest, body_1, body_2, mu, work, contacts)
        return
    for k in range(found):
        area = _area(topology, x, work.index[k], work.vectors)
        if work.height[k] <= 0.0 or area < LEAST_AREA:
            continue
        _facet_point(topology, x, work.index[k], points, work.feature[k, 0], p)
        _from_edge(topology, x, e, p, d)
        for i in range(3):
            n[i] = d[i] / work.distance[k]
        slot = _add(topology, e, k, body_1, body_2, n, work.distance[k], mu, work, contacts)
        if slot < 0:
            return
        contacts.give[slot] = points * topology.facet_yield[work.index[k]] / area


@kernel
def _push_out(topology, x, e, k, body_1, body_2, mu, work, contacts):
    """The contact of point k with an edge that is behind its facet."""
    n, t = work.vectors[2], work.index[k]
    a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
    triangle_normal(x[a], x[b], x[c], n)
    _add(topology, e, k, body_1, body_2, n, work.height[k], mu, work, contacts)


@kernel
def _add(topology, e, k, body_1, body_2, n, distance, mu, work, contacts):
    """Number of the contact of point k along n (3,), at that distance [m] from the edge; -1 without room."""
    t, q, s = work.index[k], work.feature[k, 0], work.weights[k, 0]
    points = points_of_facets(topology, body_1, body_2)
    name = identity(topology, EDGE_FACET, e, facet_point_number(topology, t, q))
    slot = add_contact(contacts, topology, name, body_1, body_2, n, distance, 0.0, mu)
    if slot < 0:
        return slot
    for i in range(3):  # both sides meet in the facet's point
        contacts.arm[slot, 0, i] = -distance * n[i]
    for i in range(2):
        contacts.slots[slot, 0, i] = topology.edges[e, i]
    contacts.weights[slot, 0, 0], contacts.weights[slot, 0, 1] = 1.0 - s, s
    for c in range(3):
        contacts.slots[slot, 1, c] = topology.triangles[t, c]
        contacts.weights[slot, 1, c] = _weight(points, q, c)
    return slot
