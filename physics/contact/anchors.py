"""Where touching contacts hold on: the material points of both bodies, kept as long as the contact sticks.

Coulomb's law needs the tangential displacement since friction last gave way, not since the last step:
measured anew at each step, the history of friction would be lost (EQUATIONS.md, 2). So a touching contact has
an *anchor* on the other body, found in the last equilibrium: a sticking one keeps it as a material point; a
sliding one is anchored again where it has slid to. A contact that opens loses its anchor.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import kernel


class Anchors(NamedTuple):
    """The contacts that touched in the last equilibrium: up to c of them, of v vertices and any edges."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,)
    of_vertex: NDArray[np.int32]  # (v,) the anchor of each vertex, -1 for none
    identity: NDArray[np.int64]  # (c,) see palpo.physics.collision.mobile_contacts.Contacts
    sticks: NDArray[np.bool_]  # (c,)
    triangle: NDArray[np.int32]  # (c,) of the fixed surface; -1 for edges
    slots: NDArray[np.int32]  # (2, c, 3) material point on the mobile and on the fixed body
    weights: NDArray[np.float64]  # (2, c, 3)
    remainder: NDArray[np.float64]  # (c, 3) [m] mobile point less anchor when it was set, fixed body's axes
    force: NDArray[np.float64]  # (c, 3) [N] on the mobile body, fixed body's axes


def make_anchors(n_vertices: int, capacity: int) -> Anchors:
    """No contact touches."""
    return Anchors(
        np.zeros(1, np.int64), np.full(n_vertices, -1, np.int32), np.full(capacity, -1, np.int64),
        np.zeros(capacity, np.bool_), np.full(capacity, -1, np.int32), np.zeros((2, capacity, 3), np.int32),
        np.zeros((2, capacity, 3)), np.zeros((capacity, 3)), np.zeros((capacity, 3)),
    )  # fmt: skip


@kernel
def find_anchor(anchors, identity):
    """Number of the anchor of a contact, -1 for none; vertices are numbered before all edges."""
    if identity < anchors.of_vertex.shape[0]:
        return anchors.of_vertex[identity]
    for k in range(anchors.count[0]):
        if anchors.identity[k] == identity:
            return k
    return -1


@kernel
def clear_anchors(anchors):
    """Forget all contacts."""
    for k in range(anchors.count[0]):
        if anchors.identity[k] < anchors.of_vertex.shape[0]:
            anchors.of_vertex[anchors.identity[k]] = -1
    anchors.count[0] = 0


@kernel
def add_anchor(anchors, identity):
    """Number of a new anchor; there is room, since contacts have the same capacity."""
    k = anchors.count[0]
    anchors.count[0] = k + 1
    anchors.identity[k] = identity
    if identity < anchors.of_vertex.shape[0]:
        anchors.of_vertex[identity] = k
    return k
