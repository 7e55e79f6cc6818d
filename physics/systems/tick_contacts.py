"""The contacts of a tick: found anew among the frame's candidate pairs, or given with the frame."""

from palpo.physics.collision.proximity import EDGE_EDGE, POINT_TRIANGLE, Pairs, find_contacts
from palpo.physics.exchange.constraint_frame import N_CONTACTS, N_PAIRS
from palpo.physics.kernels import kernel
from palpo.physics.math3 import dot3
from palpo.physics.systems.present_points import fastest_tool_point, see_point


@kernel
def fresh_contacts(s, f):
    """Contacts from the present geometry of the frame's candidate pairs."""
    n_pairs = s.frame.head[f, N_PAIRS]
    # the soft points' own speed is bounded by twice the fastest that the low loop saw
    s.odometer[0] += s.settings.step[0] * (fastest_tool_point(s) + s.frame.soft_speed[f])
    odometer = s.odometer[0]
    pairs = Pairs(s.frame.pair_kind[f], s.frame.pair_first[f], s.frame.pair_second[f])
    for k in range(n_pairs):
        if s.proximity.due[k] > odometer:
            continue
        kind = pairs.kind[k]
        if kind == EDGE_EDGE:
            for c in range(2):
                see_point(s, f, s.topology.edges[pairs.first[k], c])
                see_point(s, f, s.topology.edges[pairs.second[k], c])
            for c in range(2):
                for edge in (pairs.first[k], pairs.second[k]):
                    opposite = s.topology.edge_opposite[edge, c]
                    if opposite >= 0:
                        see_point(s, f, opposite)
        else:
            see_point(s, f, pairs.first[k])
            if kind == POINT_TRIANGLE:
                for c in range(3):
                    see_point(s, f, s.topology.triangles[pairs.second[k], c])
    find_contacts(
        s.topology, pairs, n_pairs, s.points.x, odometer, s.settings.reach[0], s.settings.skin[0], s.mu,
        s.proximity, s.contacts,
    )  # fmt: skip


@kernel
def frozen_contacts(s, f):
    """The frame's own contacts: directions of low step L1, gaps at the present positions."""
    frame, contacts = s.frame, s.contacts
    n = frame.head[f, N_CONTACTS]
    contacts.count[0] = n
    contacts.count[1] = 0
    for c in range(n):
        contacts.identity[c] = frame.contact_identity[f, c]
        contacts.mu[c] = frame.contact_mu[f, c]
        gap = -s.settings.skin[0]
        for side in range(2):
            sense = 1.0 if side == 0 else -1.0
            body = frame.contact_body[f, c, side]
            contacts.body[c, side] = body
            gap -= s.topology.body_radius[body]
            for k in range(3):
                p = frame.contact_points[f, c, side, k]
                contacts.points[c, side, k] = p
                contacts.weights[c, side, k] = frame.contact_weights[f, c, side, k]
                contacts.arms[c, side, k] = frame.contact_arms[f, c, side, k]
                if p >= 0:
                    see_point(s, f, p)
                    gap += (
                        sense
                        * contacts.weights[c, side, k]
                        * dot3(frame.contact_frame[f, c, 0], s.points.x[p])
                    )
        if contacts.points[c, 1, 0] < 0:
            for plane in range(s.topology.planes.shape[0]):
                if s.topology.plane_body[plane] == contacts.body[c, 1]:
                    gap -= dot3(frame.contact_frame[f, c, 0], s.topology.planes[plane])
        contacts.gap[c] = gap
        for d in range(3):
            for i in range(3):
                contacts.frame[c, d, i] = frame.contact_frame[f, c, d, i]
