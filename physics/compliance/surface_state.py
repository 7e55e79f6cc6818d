"""The state of a quasi-static surface on a clamped frame."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.boundary import (
    Boundary,
    GatherScratch,
    gather_scratch,
)
from palpo.physics.bodies.chain_models import ChainState
from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.exchange.gains import COUPLING, Gains, gains_record

STANDS, HELD, COUPLED = range(3)
"""What a frame does: stand still, be where the hand is, or follow through the coupling."""


class FramePose(NamedTuple):
    """Of a frame."""

    position: NDArray[np.float64]  # (3,) [m] centre of the clamped nodes
    orientation: NDArray[np.float64]  # (4,)
    rotation: NDArray[np.float64]  # (3, 3)


class Frame(NamedTuple):
    """The clamped frame and its coupling; rotations as vectors."""

    grip: NDArray[np.int64]  # (1,) STANDS, HELD or COUPLED
    gains: NDArray[np.void]  # (1,) of GAINS
    now: FramePose
    then: FramePose  # under the pushed forces; after END, the one at the step's start
    target: NDArray[np.float64]  # (3,) [m]
    target_q: NDArray[np.float64]  # (4,)
    error: NDArray[np.float64]  # (6,) [m], [rad] target less frame at the end of the last step
    free: NDArray[np.float64]  # (6,) the frame's motion without contact
    give: NDArray[np.float64]  # (6,) [m/N], [rad/(N m)]
    wrench: NDArray[np.float64]  # (6,) of the pushed forces on the frame [N], [N m]


class Surface(NamedTuple):
    """A body of s boundary nodes, whose slots they are, in up to c points of a batch."""

    boundary: Boundary
    second: Boundary
    """The same of another Poisson's ratio, or of no nodes; its `rest` is not read."""
    share: NDArray[np.float64]  # (1,) of `second` in the compliance and the sag, 0 to 1
    gravity: NDArray[np.float64]  # (3,) [m/s2], world axes
    softness: NDArray[np.float64]  # (1,) the modulus that it was built with over its own
    frame: Frame
    weight: NDArray[np.float64]  # (3,) gravity times softness, body axes: what the sag is proportional to
    flat: NDArray[np.float64]  # (3 s,) displacement [m], body axes
    u: NDArray[np.float64]  # (s, 3) the same memory
    flat_then: NDArray[np.float64]  # (3 s,) under the pushed forces
    u_then: NDArray[np.float64]  # (s, 3) the same memory
    stale: NDArray[np.bool_]  # (1,) whether `then` and u_then do not yet follow the pushed forces
    load_of: NDArray[np.int32]  # (s,) the load on each slot, -1 for none
    loads: NDArray[np.int64]  # (1,) slots under load
    loaded: NDArray[np.int32]  # (m,)
    push: NDArray[np.float64]  # (m, 3) their loads [N], world axes
    local: NDArray[np.float64]  # (m, 3) the same times the softness, body axes
    frozen: NDArray[np.bool_]  # (1,) whether the shape comes from elsewhere, and the frame alone moves here
    axes: NDArray[np.float64]  # (c, 3, 3) rows of H, body axes
    gather: GatherScratch
    told: ChainState  # of the boundary nodes and then the frame at the end of the last step, or of none
    reach: NDArray[np.float64]  # (1,) [m] of the node that is farthest from the frame's centre
    vectors: NDArray[np.float64]  # (6, 4) scratch


def make_surface(
    body: QuasistaticBody,
    capacity: int,
    grip: int = STANDS,
    gains: Gains = COUPLING,
    second: Boundary | None = None,
) -> Surface:
    """The body where it stands now; a frame that is not held stands there, too. It tells of no nodes.

    second: room for the body of another Poisson's ratio, none without it.
    """
    s = body.surface_nodes.size
    flat, flat_then = np.zeros(3 * s), np.zeros(3 * s)
    flat[:] = body.u[body.surface_nodes].ravel()
    loads = min(s, 3 * capacity)
    now, then = (
        FramePose(body.position.copy(), _quaternion(body.rotation), np.array(body.rotation)) for _ in range(2)
    )
    frame = Frame(
        np.array([grip], np.int64), gains_record(gains), now, then, now.position.copy(),
        now.orientation.copy(), np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(6),
    )  # fmt: skip
    return Surface(
        body.boundary, second or _nothing(), np.zeros(1), body.gravity.copy(), np.ones(1), frame,
        np.zeros(3), flat, flat.reshape(s, 3), flat_then, flat_then.reshape(s, 3), np.ones(1, np.bool_),
        np.full(s, -1, np.int32), np.zeros(1, np.int64), np.zeros(loads, np.int32),
        np.zeros((loads, 3)), np.zeros((loads, 3)), np.zeros(1, np.bool_), np.zeros((capacity, 3, 3)),
        gather_scratch(s, capacity), ChainState(*(np.zeros((0, n)) for n in (3, 4, 3, 3))),
        np.linalg.norm(body.boundary.rest, axis=1).max(keepdims=True), np.zeros((6, 4)),
    )  # fmt: skip


def _nothing() -> Boundary:
    return Boundary(np.zeros((0, 3)), np.zeros((0, 0)), np.zeros((3, 0, 3)))


def told_state(body: QuasistaticBody) -> ChainState:
    """Where the boundary nodes and then the frame are, as `Surface.told` has them, at rest."""
    nodes, turn = len(body.surface_nodes), _quaternion(body.rotation)
    x = np.vstack([body.positions(body.surface_nodes), body.position])
    still = np.zeros((nodes + 1, 3))
    return ChainState(x, np.tile(turn, (nodes + 1, 1)), still, still.copy())


def _quaternion(rotation: NDArray[np.float64]) -> NDArray[np.float64]:
    """(w, x, y, z) of a rotation matrix: the eigenvector of Davenport's matrix."""
    r = rotation
    skew = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    matrix = np.empty((4, 4))
    matrix[0, 0] = np.trace(r)
    matrix[0, 1:] = matrix[1:, 0] = skew
    matrix[1:, 1:] = r + r.T - np.trace(r) * np.eye(3)
    vector = np.ascontiguousarray(np.linalg.eigh(matrix)[1][:, -1])
    return vector if vector[0] >= 0.0 else -vector
