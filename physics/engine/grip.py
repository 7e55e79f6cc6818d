"""How a hand holds: its device's pose becomes what it wants, and what it feels goes back to the device."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.contact.laws import SLIP
from palpo.physics.contract.stages import POINT, Batch, Hand
from palpo.physics.exchange.port import SLIDES, TOUCHES, Port
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import (
    dot3,
    norm3,
    quat_difference,
    quat_multiply,
    quat_normalise,
    rotate_by,
)

BOUNDED = 1e12
"""Past this sum of forces [N], moments [N m] and lengths [m] a run is lost."""

UPRIGHT = (1.0, 0.0, 0.0, 0.0)


class Grip(NamedTuple):
    """One hand, its device, and what it holds."""

    port: Port
    hand: Hand
    points: Batch  # of the body in the hand, in joints and contacts
    turns: NDArray[np.bool_]  # (1,) whether what is held turns with the device
    rest: NDArray[np.float64]  # (4,) its orientation when the device's is the identity
    offset: NDArray[np.float64]  # (3,) [m] of the goal from the device
    rail: NDArray[np.float64]  # (2, 3) point [m] and direction of a line that the goal keeps to, or 0
    goal: NDArray[np.float64]  # (3,) [m] where the hand wants to be at the tick's end
    goal_q: NDArray[np.float64]  # (4,)
    way: NDArray[np.float64]  # (6,) [m], [rad] of the hand in a step
    felt: NDArray[np.float64]  # (6,) by the hand in the mean of the tick [N], [N m]


def make_grip(
    port: Port,
    hand: Hand,
    points: Batch,
    turns: bool = True,
    rest: ArrayLike = UPRIGHT,
    offset: ArrayLike = (0.0, 0.0, 0.0),
    rail: ArrayLike | None = None,
) -> Grip:
    """A hold of the body whose points those are; rail: (2, 3), if the goal keeps to a line."""
    q = np.array(rest, float)
    return Grip(
        port, hand, points, np.array([turns]), q / np.linalg.norm(q), np.array(offset, float),
        np.zeros((2, 3)) if rail is None else np.array(rail, float), np.zeros(3), np.zeros(4), np.zeros(6),
        np.zeros(6),
    )  # fmt: skip


@inlined
def _railed(g):
    """Whether the goal keeps to a line."""
    return norm3(g.rail[1]) > 0.0


@kernel
def pose(g, first, steps):
    """The device's pose becomes the goal, reached in so many even steps; at first the hand is there."""
    way, start, along = g.way, g.rail[0], g.rail[1]
    for i in range(3):
        way[i] = g.port.position[i] - start[i]
    travel = dot3(way, along)
    for i in range(3):
        g.goal[i] = g.offset[i] + (start[i] + travel * along[i] if _railed(g) else g.port.position[i])
    copy(g.rest, g.goal_q)
    if g.turns[0]:
        quat_multiply(g.port.orientation, g.rest, g.goal_q)
        quat_normalise(g.goal_q)
    if first:
        copy(g.goal, g.hand.position)
        copy(g.goal_q, g.hand.orientation)
    quat_difference(g.goal_q, g.hand.orientation, way[3:])
    for i in range(3):
        way[i] = (g.goal[i] - g.hand.position[i]) / steps
        way[3 + i] /= steps
    g.felt[:] = 0.0


@kernel
def lead(g, last):
    """The hand goes on to the end of the next step: of the last one, to the bit, at its goal."""
    if last:
        copy(g.goal, g.hand.position)
        copy(g.goal_q, g.hand.orientation)
        return
    for i in range(3):
        g.hand.position[i] += g.way[i]
    rotate_by(g.way[3:], g.hand.orientation)


@kernel
def add_felt(g, steps):
    """What the hand felt in one of so many steps."""
    for i in range(3):
        g.felt[i] += g.hand.force[i] / steps
        g.felt[3 + i] += g.hand.torque[i] / steps


@kernel
def tell_device(g):
    """Force and moment on the device, and what it is told beside; False where a number is none."""
    port, info, along, check = g.port, g.port.info[0], g.rail[1], 0.0
    pull = dot3(g.felt, along)
    for i in range(3):
        # what the rail takes does no work on the hand
        port.force[i] = pull * along[i] if _railed(g) else g.felt[i]
        port.torque[i] = g.felt[3 + i]
        info.held[i], info.total[i] = g.hand.held[i], 0.0
        for k in range(g.points.count[0]):
            if g.points.what[k] == POINT:
                info.total[i] += g.points.f[k, i]
        check += abs(port.force[i]) + abs(port.torque[i]) + abs(info.held[i])
    return check < BOUNDED


@kernel
def felt_by(e, g):
    """TOUCHES and SLIDES of what the hand holds."""
    felt, first = 0, e.joints.what.shape[0]
    for k in range(g.points.count[0]):
        c = g.points.block[k] - first
        if 0 <= c < e.contacts.count[0].found and e.r[3 * (first + c)] > 0.0:
            felt |= TOUCHES | (SLIDES if e.contacts.status[c] == SLIP else 0)
    return felt
