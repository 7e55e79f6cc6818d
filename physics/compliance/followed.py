"""Forces that a slow loop solved for, followed along their tangents: a body that only pushes the hand.

With d the hand's displacement from the pose that the loop solved for, the forces at the contacts are

    r + S d,  each brought back into its cone,

S the derivative of r while each contact does as there (palpo.physics.contact.tangents); or, from where the
hand turned back against what slides, the last tick's forces and the derivative while all that bear stick.
Who brings frames says which (palpo.physics.systems.hapco.tangent). The body has no points: it answers AIM, in
which it follows the hand, and FEEL.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from palpo.physics.contact.laws import scale_to_disc
from palpo.physics.contract.stages import ADOPT, AIM, DONE, FEEL, NOT_OFFERED, SHAPE, Kind, unit
from palpo.physics.exchange.tangent_frame import TangentFrame, make_tangent_frame
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import cross3, quat_difference

SMOOTHING = 0.01
"""Time constant of the velocity by which the hand's pose is foretold [s]."""

FORETOLD, UNLOADING = range(2)
"""Whether forces follow from the foretold pose, or from those of the last tick."""


class Followed(NamedTuple):
    """A frame, and where the hand is on it."""

    frame: TangentFrame
    slot: NDArray[np.int64]  # (1,) of the frame in force
    mode: NDArray[np.int64]  # (1,) FORETOLD or UNLOADING
    mu: NDArray[np.float64]  # (1,) of all contacts
    cut: NDArray[np.float64]  # (1,) share of the forces that the cones took off
    force: NDArray[np.float64]  # (c, 3) of the last tick [N], contacts' axes
    last: NDArray[np.float64]  # (3,) [m] the hand at the last tick
    last_q: NDArray[np.float64]  # (4,)
    velocity: NDArray[np.float64]  # (6,) [m/s], [rad/s] smoothed
    way: NDArray[np.float64]  # (2, 6) scratch
    vectors: NDArray[np.float64]  # (3, 3) scratch


def make_followed(
    frame: TangentFrame, position: NDArray[np.float64], orientation: NDArray[np.float64]
) -> Followed:
    """No forces yet, the hand at that position (3,) [m] and orientation (4,)."""
    return Followed(
        frame, np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1), np.zeros(1),
        np.zeros(frame.force.shape[1:]), position.copy(), orientation.copy(), np.zeros(6), np.zeros((2, 6)),
        np.zeros((3, 3)),
    )  # fmt: skip


@kernel
def displacement(position, orientation, from_position, from_orientation, out):
    """out (6,) = the motion between two poses [m], [rad]."""
    for i in range(3):
        out[i] = position[i] - from_position[i]
    quat_difference(orientation, from_orientation, out[3:6])


@kernel
def power(release, way):
    """Work of friction on what slides over a displacement (6,) [J]."""
    total = 0.0
    for i in range(6):
        total += release[i] * way[i]
    return total


@kernel
def aim(s, hand, first, h):
    """The hand's smoothed velocity, and the forces at its present pose."""
    step = s.way[0]
    if first:
        copy(hand.position, s.last)
        copy(hand.orientation, s.last_q)
    displacement(hand.position, hand.orientation, s.last, s.last_q, step)
    if not first:
        share = h / (h + SMOOTHING)
        for i in range(6):
            s.velocity[i] += share * (step[i] / h - s.velocity[i])
    _follow(s, hand, step)
    copy(hand.position, s.last)
    copy(hand.orientation, s.last_q)


@kernel
def _follow(s, hand, step):
    """Forces at the hand's present pose, after a displacement `step` (6,); the share that the cones take off.

    Where the hand goes against the slip that was foretold, the forces go on from those of the last tick.
    """
    frame, f, mu, way, r = s.frame, s.slot[0], s.mu[0], s.way[1], s.vectors[0]
    if s.mode[0] == FORETOLD and power(frame.release[f], step) > 0.0:
        s.mode[0] = UNLOADING
    foretold, cut, size = s.mode[0] == FORETOLD, 0.0, 0.0
    if foretold:
        displacement(hand.position, hand.orientation, frame.ahead[f], frame.ahead_q[f], way)
    else:
        copy(step, way)
    for k in range(frame.count[f].found):
        base = frame.force[f, k] if foretold else s.force[k]
        slope = frame.tangent[f, k] if foretold else frame.elastic[f, k]
        for i in range(3):
            row = slope[i]
            r[i] = base[i] + (
                row[0] * way[0] + row[1] * way[1] + row[2] * way[2]
                + row[3] * way[3] + row[4] * way[4] + row[5] * way[5]
            )  # fmt: skip
        normal = max(0.0, r[0])
        share = scale_to_disc(r[1], r[2], mu * normal)
        cut += (r[0] - normal) ** 2 + (1.0 - share) ** 2 * (r[1] ** 2 + r[2] ** 2)
        size += r[0] ** 2 + r[1] ** 2 + r[2] ** 2
        s.force[k, 0], s.force[k, 1], s.force[k, 2] = normal, share * r[1], share * r[2]
    s.cut[0] = (cut / size) ** 0.5 if size > 0.0 else 0.0


@kernel
def world_force(s, k, out):
    """out (3,) = force of contact k of the frame in force [N], world axes."""
    axes, r = s.frame.axes[s.slot[0], k], s.force[k]
    for i in range(3):
        out[i] = axes[0, i] * r[0] + axes[1, i] * r[1] + axes[2, i] * r[2]


@kernel
def feel(s, hand):
    """Force and moment of all contacts on the hand."""
    f, world, moment = s.slot[0], s.vectors[1], s.vectors[2]
    for i in range(3):
        hand.force[i] = hand.torque[i] = 0.0
        hand.held[i] = hand.position[i]
    for k in range(s.frame.count[f].found):
        world_force(s, k, world)
        cross3(s.frame.arm[f, k], world, moment)
        for i in range(3):
            hand.force[i] += world[i]
            hand.torque[i] += moment[i]


_SMALLEST = make_followed(make_tangent_frame(1, 1, 1), np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


@unit(_SMALLEST)
def followed_unit(stage, s, batch, problem, h):
    """The stages of palpo.physics.contract.stages."""
    if stage == AIM:
        aim(s, batch.hand, batch.now[0] == 0, h)
    elif stage == FEEL:
        feel(s, batch.hand)
    elif stage in (SHAPE, ADOPT):
        return NOT_OFFERED
    return DONE


FOLLOWED = Kind("followed", followed_unit, typeof(_SMALLEST), points=lambda s: 0)
