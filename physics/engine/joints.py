"""Joints: blocks of three bilateral rows, exact in every step (palpo.physics.contact.bilateral)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contract.stages import POINT

UPRIGHT = (1.0, 0.0, 0.0, 0.0)
SLIDE = 2
"""What a joint is of, beside a POINT and a ROTATION: a point of body 1 that stays on a line of body 2."""


@dataclass(frozen=True)
class Joint:
    """Two bodies' points that stay together, or orientations that stay as they are to each other."""

    bodies: tuple[int, int]
    slots: tuple[Sequence[int], Sequence[int]]
    """Up to three points of each body; one, of a rotation."""
    weights: tuple[Sequence[float], Sequence[float]] = field(default=((1.0,), (1.0,)))
    what: int = POINT
    reference: tuple[float, float, float, float] = UPRIGHT
    """Of a rotation: q_1 = reference q_2 is kept."""
    direction: tuple[float, float, float] = (1.0, 0.0, 0.0)
    """Of a slide: the line's, in the axes of `carrier`."""
    carrier: tuple[int, int] | None = None
    """Of a slide: a body and its rotation, with which the line turns; None for the world."""


class Joints(NamedTuple):
    """n joints, as arrays."""

    what: NDArray[np.int32]  # (n,) POINT, ROTATION or SLIDE
    body: NDArray[np.int32]  # (n, 2)
    slots: NDArray[np.int32]  # (n, 2, 3)
    weights: NDArray[np.float64]  # (n, 2, 3)
    reference: NDArray[np.float64]  # (n, 4)
    direction: NDArray[np.float64]  # (n, 3)
    carrier: NDArray[np.int32]  # (n, 2) body, -1 for the world, and its rotation


def make_joints(joints: Sequence[Joint] = ()) -> Joints:
    """Those joints."""
    n = len(joints)
    out = Joints(
        np.zeros(n, np.int32), np.zeros((n, 2), np.int32), np.zeros((n, 2, 3), np.int32),
        np.zeros((n, 2, 3)), np.zeros((n, 4)), np.zeros((n, 3)), np.full((n, 2), -1, np.int32),
    )  # fmt: skip
    for k, joint in enumerate(joints):
        out.what[k], out.body[k], out.reference[k] = joint.what, joint.bodies, joint.reference
        out.direction[k] = joint.direction
        if joint.carrier is not None:
            out.carrier[k] = joint.carrier
        for side in range(2):
            m = len(joint.slots[side])
            out.slots[k, side, :m], out.weights[k, side, :m] = joint.slots[side], joint.weights[side]
    return out
