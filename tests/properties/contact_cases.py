"""Shapes, all their pairs and their contacts, for tests of the narrow phase."""

import numpy as np

from palpo.physics.collision.closest import point_triangle, segment_segment
from palpo.physics.collision.proximity import find_contacts, group_pairs
from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    POINT_TRIANGLE,
    Pairs,
    make_proximity_work,
)
from palpo.physics.collision.topology import LOW, TOOL, CollisionShape, Topology
from palpo.physics.contract.contacts import Contacts, make_contacts

NO_TRIANGLES, NO_EDGES = np.zeros((0, 3), np.int32), np.zeros((0, 2), np.int32)
SKIN = 5e-4


def ball(radius: float, role: int = TOOL) -> CollisionShape:
    return CollisionShape(1, NO_TRIANGLES, np.array([[0, 0]]), radius, role)


def capsule(radius: float, role: int = TOOL) -> CollisionShape:
    return CollisionShape(2, NO_TRIANGLES, np.array([[0, 1]]), radius, role)


def chain(n: int, radius: float, role: int = TOOL) -> CollisionShape:
    return CollisionShape(
        n, NO_TRIANGLES, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), radius, role
    )


def surface(mesh, role: int = LOW) -> CollisionShape:
    return CollisionShape(len(mesh.vertices), mesh.triangles, NO_EDGES, 0.0, role)


def everything(topology: Topology) -> Pairs:
    """All pairs between the first body and the second, by enumeration, in order."""
    first, second = topology.point_body == 0, topology.point_body == 1
    used = np.zeros(len(first), bool)
    used[topology.triangles] = used[topology.edges] = True
    edges = [np.flatnonzero(side[topology.edges[:, 0]]) for side in (first, second)]
    triangles = [np.flatnonzero(side[topology.triangles[:, 0]]) for side in (first, second)]
    rows = [(POINT_TRIANGLE, p, t) for p in np.flatnonzero(first & used) for t in triangles[1]]
    rows += [(POINT_TRIANGLE, p, t) for p in np.flatnonzero(second & used) for t in triangles[0]]
    # the line's edge comes first where only one of the bodies has faces
    swap = len(triangles[0]) and not len(triangles[1])
    rows += [(EDGE_EDGE, *((f, e) if swap else (e, f))) for e in edges[0] for f in edges[1]]
    return Pairs(*(np.array(column, np.int32) for column in zip(*sorted(rows), strict=True)))


def contacts_of(topology: Topology, pairs: Pairs, x, reach: float = 1e-3, skin: float = SKIN) -> Contacts:
    contacts, work = make_contacts(256), make_proximity_work(len(pairs.kind))
    n = len(topology.body_role)
    group_pairs(topology, pairs, len(pairs.kind), work)
    find_contacts(topology, pairs, x, 0.0, reach, skin, np.full((n, n), 0.3), work, contacts)
    assert contacts.count[0]["lost"] == 0
    return contacts


def found(contacts: Contacts, field: str):
    return getattr(contacts, field)[: contacts.count[0]["found"]]


def contact_points(contacts: Contacts, x, side: int):
    points, weights = found(contacts, "slots")[:, side], found(contacts, "weights")[:, side]
    return (weights[:, :, None] * x[np.maximum(points, 0)]).sum(axis=1) + found(contacts, "arm")[:, side]


def distances(topology: Topology, pairs: Pairs, x):
    """Distance of each pair's features."""
    out, w = np.zeros(len(pairs.kind)), np.zeros(3)
    for k, (kind, a, b) in enumerate(zip(*pairs, strict=True)):
        if kind == POINT_TRIANGLE:
            corners = x[topology.triangles[b]]
            point_triangle(x[a], *corners, w)
            out[k] = np.linalg.norm(x[a] - w @ corners)
        else:
            p, q = x[topology.edges[a]], x[topology.edges[b]]
            segment_segment(*p, *q, w)
            out[k] = np.linalg.norm(p[0] + w[0] * (p[1] - p[0]) - q[0] - w[1] * (q[1] - q[0]))
    return out
