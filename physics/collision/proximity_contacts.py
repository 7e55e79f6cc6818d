"""Candidate pairs, the contacts that come of them, and what names a contact from tick to tick.

Contacts are those of `palpo.physics.contract.contacts`, between bodies and points of a topology. Body 1 is
the side of `Pairs.first`; an identity is equal at two ticks if and only if the same features touch.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contract.contacts import append
from palpo.physics.numerics.kernels import inlined
from palpo.physics.numerics.math3 import tangent_basis

POINT_TRIANGLE, EDGE_EDGE, POINT_PLANE, EDGE_FACET = 0, 1, 2, 3
"""Kinds of candidate pair. An edge meets a facet by its area; one without length is a ball's centre."""

PAIR_POINTS = 8
"""Most points of a pair."""


GROUP_CAPACITY = 1024
"""Most candidates of one point (or one edge) that are looked at together."""


class Pairs(NamedTuple):
    """Candidate pairs, sorted by kind, first and second primitive; capacity fixed, count separate."""

    kind: NDArray[np.int32]  # (capacity,)
    first: NDArray[np.int32]  # (capacity,) point or edge of body 1, the thick one of an EDGE_FACET
    second: NDArray[np.int32]  # (capacity,) triangle, edge or plane of body 2


class ProximityWork(NamedTuple):
    """What `find_contacts` knows of the pairs, and scratch."""

    due: NDArray[np.float64]  # (pairs capacity,) [m] reading of the odometer at which a pair may touch
    groups: NDArray[np.int64]  # (1,) how many runs of pairs there are that belong together
    start: NDArray[np.int32]  # (pairs capacity + 1,) first pair of each group, and the end of the last
    soonest: NDArray[np.float64]  # (pairs capacity,) [m] least due of a group's pairs
    index: NDArray[np.int32]  # type: ignore[assignment]  # (GROUP_CAPACITY,)
    feature: NDArray[np.int32]  # (GROUP_CAPACITY, 3)
    weights: NDArray[np.float64]  # (GROUP_CAPACITY, 3)
    distance: NDArray[np.float64]  # (GROUP_CAPACITY,)
    apart: NDArray[np.float64]  # (GROUP_CAPACITY, 12) of the points of a facet that meet by area
    height: NDArray[np.float64]  # (GROUP_CAPACITY,) of a point over the planes of its candidate triangles
    vectors: NDArray[np.float64]  # (8, 3)


def make_proximity_work(pairs_capacity: int) -> ProximityWork:
    """Scratch for pairs of that capacity."""
    return ProximityWork(
        due=np.zeros(pairs_capacity),
        groups=np.zeros(1, np.int64),
        start=np.zeros(pairs_capacity + 1, np.int32),
        soonest=np.zeros(pairs_capacity),
        index=np.zeros(GROUP_CAPACITY, np.int32),
        feature=np.zeros((GROUP_CAPACITY, 3), np.int32),
        weights=np.zeros((GROUP_CAPACITY, 3)),
        distance=np.zeros(GROUP_CAPACITY),
        apart=np.zeros((GROUP_CAPACITY, 12)),
        height=np.zeros(GROUP_CAPACITY),
        vectors=np.zeros((8, 3)),
    )


@inlined
def identity(topology, kind, a, b):
    """One 63-bit number for a pair of features, each already in the common numbering."""
    return (np.int64(kind) << np.int64(60)) | (np.int64(a) << np.int64(30)) | np.int64(b)


@inlined
def pair_point(topology, kind, first, second, i):
    """Point i < PAIR_POINTS of a pair, -1 where it has none; the points that only tell the side come last."""
    if kind == POINT_TRIANGLE:
        return first if i == 0 else (topology.triangles[second, i - 1] if i < 4 else -1)
    if kind == POINT_PLANE:
        return first if i == 0 else -1
    if i < 2:
        return topology.edges[first, i]
    if kind == EDGE_FACET:
        return topology.triangles[second, i - 2] if i < 5 else -1
    if i < 4:
        return topology.edges[second, i - 2]
    return topology.edge_opposite[first if i < 6 else second, i % 2]


@inlined
def second_body(topology, kind, second):
    """Number of the second body of a pair."""
    if kind == EDGE_EDGE:
        return topology.point_body[topology.edges[second, 0]]
    if kind == POINT_PLANE:
        return topology.plane_body[second]
    return topology.point_body[topology.triangles[second, 0]]


@inlined
def edge_number(topology, e):
    return topology.point_body.shape[0] + e


@inlined
def face_number(topology, f):
    return topology.point_body.shape[0] + topology.edges.shape[0] + f


@inlined
def plane_number(topology, p):
    return topology.point_body.shape[0] + topology.edges.shape[0] + topology.triangles.shape[0] + p


@inlined
def add_contact(contacts, topology, name, body_1, body_2, n, distance, skin, mu):
    """Number of a new contact of two bodies of the topology, -1 where there is no room left.

    name: its `identity`. n (3,): unit normal, from body 2 to body 1; distance [m]: of their points, which are
    still to be written, as numbers of the topology; -1 where a side has fewer than three.
    """
    k = append(contacts, name, body_1, body_2)
    if k < 0:
        return k
    r1, r2 = topology.body_radius[body_1], topology.body_radius[body_2]
    for i in range(3):
        contacts.frame[k, 0, i] = n[i]
        contacts.arm[k, 0, i] = -r1 * n[i]
        contacts.arm[k, 1, i] = r2 * n[i]
        for side in range(2):
            contacts.slots[k, side, i] = -1
            contacts.weights[k, side, i] = 0.0
    tangent_basis(contacts.frame[k, 0], contacts.frame[k, 1], contacts.frame[k, 2])
    contacts.gap[k] = distance - r1 - r2 - skin
    contacts.mu[k] = mu[body_1, body_2]
    return k
