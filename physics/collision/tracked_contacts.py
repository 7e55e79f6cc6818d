"""The detector of vertices that are tracked over a surface (palpo.physics.collision.mobile_vertices).

Its contacts keep material points of both bodies for as long as they stick, so that it remembers them itself.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision import mobile_contacts
from palpo.physics.collision.contact_surface import ContactSurface, contact_surface, weighted_point
from palpo.physics.collision.mobile_contacts import (
    MobileFeatures,
    VertexTracker,
    make_tracker,
    mobile_features,
)
from palpo.physics.collision.mobile_vertices import find_contacts, hold_on, locate
from palpo.physics.contact.anchors import Anchors, make_anchors
from palpo.physics.contract.contacts import FIND, KEEP, append, detector
from palpo.physics.contract.stages import DONE
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import dot3, matvec3

SETTINGS = np.dtype(
    [("tolerance", np.float64), ("edge_reach", np.float64), ("faceted", np.int64), ("mu", np.float64)]
)
"""Gaps below which vertices and edges are contacts [m], 0 for no edges; whether normals are the facets'; and
the friction coefficient."""


class Tracked(NamedTuple):
    """Vertices of body 1, the mobile one, over the surface of body 2, the fixed one."""

    body: NDArray[np.int32]  # (2,) their numbers
    features: MobileFeatures
    x_1: NDArray[np.float64]  # (s1, 3) [m] points of body 1
    surface: ContactSurface
    x_2: NDArray[np.float64]  # (s2, 3)
    rotation_2: NDArray[np.float64]  # (3, 3) axes of body 2
    settings: NDArray[Any]  # (1,) of SETTINGS
    tracker: VertexTracker
    anchors: Anchors
    found: mobile_contacts.MobileContacts
    first: NDArray[np.int64]  # (1,) place of the first of them in the engine's list
    vectors: NDArray[np.float64]  # (3, 3) scratch


def make_tracked(
    features: MobileFeatures,
    x_1: NDArray[np.float64],
    surface: ContactSurface,
    x_2: NDArray[np.float64],
    rotation_2: NDArray[np.float64],
    capacity: int,
    body: tuple[int, int] = (0, 1),
) -> Tracked:
    """The detector between two bodies where they stand now."""
    vertices = features.vertices.size
    tracked = Tracked(
        np.array(body, np.int32), features, x_1, surface, x_2, rotation_2, np.zeros(1, SETTINGS),
        make_tracker(features), make_anchors(vertices, capacity), mobile_contacts.make_contacts(capacity),
        np.zeros(1, np.int64), np.zeros((3, 3)),
    )  # fmt: skip
    locate(features, x_1, surface, x_2, tracked.anchors, tracked.tracker, vertices)
    return tracked


@kernel
def separation(s, slots, weights, k, out):
    """out (3,) = point of body 1 less point k of body 2, of slots and weights (2, c, 3) [m], world axes."""
    other = s.vectors[2]
    weighted_point(s.x_1, slots[0, k], weights[0, k], out)
    weighted_point(s.x_2, slots[1, k], weights[1, k], other)
    for i in range(3):
        out[i] -= other[i]


@kernel
def tell(s, contacts):
    """The contacts found, with what they remember: slip and force."""
    found, apart, kept = s.found, s.vectors[0], s.vectors[1]
    contacts.count[0].lost += found.count[0].lost
    s.first[0] = contacts.count[0].found
    for k in range(found.count[0].found):
        c = append(contacts, found.identity[k], s.body[0], s.body[1])
        if c < 0:
            continue
        contacts.mu[c], contacts.anchored[c] = s.settings[0].mu, True
        copy_rows(found.frame[k], contacts.frame[c])
        for side in range(2):
            copy(found.slots[side, k], contacts.slots[c, side])
            copy(found.weights[side, k], contacts.weights[c, side])
        separation(s, found.slots, found.weights, k, apart)
        contacts.gap[c] = dot3(found.frame[k, 0], apart)
        matvec3(s.rotation_2, found.remainder[k], kept)
        for i in range(3):
            contacts.offset[c, i] = apart[i] - kept[i]
        matvec3(s.rotation_2, found.force[k], contacts.force[c])


@kernel
def find(s, contacts):
    """The contacts between the surfaces as they were last deformed, where their frames are now."""
    settings = s.settings[0]
    find_contacts(
        s.features, s.x_1, s.surface, s.x_2, s.rotation_2, settings.tolerance, settings.edge_reach,
        settings.faceted == 1, s.anchors, s.tracker, s.found,
    )  # fmt: skip
    tell(s, contacts)


@kernel
def keep(s, contacts):
    """What sticks in the equilibrium holds on."""
    first = s.first[0]
    s.found.count[0].found = min(s.found.count[0].found, contacts.count[0].found - first)
    hold_on(
        s.found, contacts.force[first:], contacts.status[first:], s.x_1, s.surface, s.x_2, s.rotation_2,
        s.anchors, s.tracker,
    )  # fmt: skip


def _smallest() -> Tracked:
    nodes = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    surface = contact_surface(SurfaceMesh.from_triangles(nodes, [[0, 1, 2]]), np.arange(3, dtype=np.int32))
    features = mobile_features(surface, np.arange(3))
    return make_tracked(features, nodes, surface, nodes.copy(), np.eye(3), 1)


@detector(_smallest())
def tracked_unit(stage, s, contacts, h):
    """The stages of palpo.physics.contract.contacts."""
    if stage == FIND:
        find(s, contacts)
    elif stage == KEEP:
        keep(s, contacts)
    return DONE
