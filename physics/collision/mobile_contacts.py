"""The contacts of two quasi-static bodies: what they are kept in, and how far they have slipped."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.collision.contact_surface import (
    ContactSurface,
    weighted_point,
)
from palpo.physics.exchange.contact_count import CONTACT_COUNT
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import matvec3_transposed


class MobileFeatures(NamedTuple):
    """What of the mobile body may touch; slots of its boundary."""

    vertices: NDArray[np.int32]  # (v,)
    edges: NDArray[np.int32]  # (e, 2) flat or convex, both ends among the vertices
    opposite: NDArray[np.int32]  # (e, 2) third slots of their triangles, -1 at a border


class VertexTracker(NamedTuple):
    """Where each vertex is over the fixed surface."""

    triangle: NDArray[np.int32]  # (v,) the closest
    point: NDArray[np.float64]  # (v, 3) [m]
    nearest: NDArray[np.float64]  # (v,) scratch [m]
    turn: NDArray[np.int64]  # (1,) the next vertex to be searched for
    gap: NDArray[np.float64]  # (1,) the least gap of all vertices [m]
    vectors: NDArray[np.float64]  # (10, 3) scratch


class MobileContacts(NamedTuple):
    """Contacts of one step, at most c; the normal points from the fixed body to the mobile one."""

    count: NDArray[np.void]  # type: ignore[assignment]  # (1,) of CONTACT_COUNT
    identity: NDArray[np.int64]  # (c,) the vertex; or v + e k + f for mobile edge e and fixed edge f of k
    triangle: NDArray[np.int32]  # (c,) of the fixed surface, -1 for edges
    slots: NDArray[np.int32]  # (2, c, 3) of the mobile and of the fixed body's point
    weights: NDArray[np.float64]  # (2, c, 3) 0 where there are fewer
    frame: NDArray[np.float64]  # (c, 3, 3) rows n, t1, t2, world axes
    gap: NDArray[np.float64]  # (c,) [m] where detection found the bodies
    remainder: NDArray[np.float64]  # (c, 3) [m] as in Anchors
    force: NDArray[np.float64]  # (c, 3) [N] of the last equilibrium, fixed body's axes


def make_contacts(capacity: int) -> MobileContacts:
    """No contacts."""
    return MobileContacts(
        np.zeros(1, CONTACT_COUNT), np.zeros(capacity, np.int64), np.zeros(capacity, np.int32),
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


def make_tracker(features: MobileFeatures) -> VertexTracker:
    """No vertex has been seen; `locate` finds where they are."""
    v = features.vertices.size
    return VertexTracker(
        np.zeros(v, np.int32),
        np.zeros((v, 3)),
        np.zeros(v),
        np.zeros(1, np.int64),
        np.full(1, np.inf),
        np.zeros((10, 3)),
    )


@inlined
def append(contacts, identity, triangle, gap):
    """Number of a new contact, -1 where there is no room left (counted)."""
    k = contacts.count[0].found
    if k == contacts.gap.shape[0]:
        contacts.count[0].lost += 1
        return -1
    contacts.count[0].found = k + 1
    contacts.identity[k], contacts.triangle[k], contacts.gap[k] = identity, triangle, gap
    return k


@inlined
def set_point(slots, weights, a, b, share):
    """A point on the edge from a to b, at that share of it."""
    slots[0], slots[1], slots[2] = a, b, b
    weights[0], weights[1], weights[2] = 1.0 - share, share, 0.0


@kernel
def measure_slip(contacts, k, old, x_1, x_2, rotation_2, anchors, vectors):
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
