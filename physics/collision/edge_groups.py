"""The contacts of one edge with its candidate edges, where both stand out of their faces."""

from palpo.physics.collision.closest import (
    AT_END,
    AT_START,
    INTERIOR,
    leads_out,
    segment_segment,
)
from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    GROUP_CAPACITY,
    add_contact,
    edge_number,
    identity,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import norm3

CONVEX = 1e-6
"""Smallest sine by which an edge must stand out of its faces to be a contact feature."""


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
def edge_group(topology, x, e, second, start, stop, odometer, reach, skin, mu, work, contacts):
    """Contacts of edge e with the candidate edges second[start:stop]."""
    st, d, edges, opposite = work.vectors[0], work.vectors[1], topology.edges, topology.edge_opposite
    a, b = topology.edges[e, 0], topology.edges[e, 1]
    body_1 = topology.point_body[a]
    line_1 = topology.edge_opposite[e, 0] < 0
    found = 0
    for k in range(start, stop):
        if work.due[k] > odometer + reach or found == GROUP_CAPACITY:
            continue
        f = second[k]
        c, g = topology.edges[f, 0], topology.edges[f, 1]
        line_2 = topology.edge_opposite[f, 0] < 0
        end_1, end_2 = segment_segment(x[a], x[b], x[c], x[g], st)
        for i in range(3):
            d[i] = x[a, i] + st[0] * (x[b, i] - x[a, i]) - x[c, i] - st[1] * (x[g, i] - x[c, i])
        distance = norm3(d)
        thickness = topology.body_radius[body_1] + topology.body_radius[topology.point_body[c]] + skin
        gap = distance - thickness
        work.due[k] = odometer + gap
        if gap > reach or distance < 1e-12:
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
            if not leads_out(x, edges, opposite, f, d, 1.0, -CONVEX):
                if topology.edge_opposite[f, 0] < 0 or not leads_out(x, edges, opposite, f, d, -1.0, -CONVEX):
                    continue
                side = -1.0
            if not line_1 and not leads_out(x, edges, opposite, e, d, -side, -CONVEX):
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
        end_1 = work.feature[k, 2]
        name_1 = a if end_1 == AT_START else (b if end_1 == AT_END else edge_number(topology, e))
        name_2 = work.feature[k, 1] if end_2 != INTERIOR else edge_number(topology, f)
        for i in range(3):
            d[i] *= side
        name, body_2 = identity(topology, EDGE_EDGE, name_1, name_2), topology.point_body[c]
        slot = add_contact(contacts, topology, name, body_1, body_2, d, side * work.distance[k], skin, mu)
        if slot < 0:
            return
        contacts.slots[slot, 0, 0], contacts.slots[slot, 0, 1] = a, b
        contacts.weights[slot, 0, 0], contacts.weights[slot, 0, 1] = 1.0 - s, s
        contacts.slots[slot, 1, 0], contacts.slots[slot, 1, 1] = c, g
        contacts.weights[slot, 1, 0], contacts.weights[slot, 1, 1] = 1.0 - t, t
