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

SLOW = 5e-3
"""Speed of the hand below which friction is made up for in proportion [m/s]."""

UPRIGHT = (1.0, 0.0, 0.0, 0.0)

CONSTRAINT_SUM, HOLD_REACTION = 0, 1
"""What is fed back: the sum of constraint forces on what is held (003, IV-B) or the hold's reaction."""

GRIP = np.dtype(
    [("feedback", np.int64), ("turns", np.int64), ("zoom_scale", np.float64), ("zoom_range", np.float64),
     ("stylus_weight", np.float64), ("stylus_friction", np.float64)]
)  # fmt: skip
"""How a hand holds: CONSTRAINT_SUM or HOLD_REACTION; whether what is held turns with the device; share of the
device's motion that is left at contact (1: no zoom), and the gap where that begins [m]; and the force upward,
and along the device's velocity, that make up for the stylus's own [N]."""


class Grip(NamedTuple):
    """One hand, its device, and what it holds."""

    port: Port
    hand: Hand
    points: Batch  # of the body in the hand, in joints and contacts
    how: NDArray[np.void]  # (1,) of GRIP
    gap: NDArray[np.float64]  # (1,) [m] from what is held to the next body, for a zoom
    rest: NDArray[np.float64]  # (4,) its orientation when the device's is the identity
    offset: NDArray[np.float64]  # (3,) [m] of the goal from the device
    rail: NDArray[np.float64]  # (2, 3) point [m] and direction of a line that the goal keeps to, or 0
    last: NDArray[np.float64]  # (3,) [m] the device's last position, before a zoom
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
    feedback: int = HOLD_REACTION,
    gap: NDArray[np.float64] | None = None,
) -> Grip:
    """A hold of the body whose points those are, without zoom, of a stylus that weighs nothing.

    rail: (2, 3), if the goal keeps to a line. gap: who measures it, for a zoom.
    """
    q, how = np.array(rest, float), np.zeros(1, GRIP)
    how["feedback"], how["turns"], how["zoom_scale"] = feedback, turns, 1.0
    return Grip(
        port, hand, points, how, np.zeros(1) if gap is None else gap, q / np.linalg.norm(q),
        np.array(offset, float), np.zeros((2, 3)) if rail is None else np.array(rail, float),
        port.position.copy(), np.zeros(3), np.zeros(4), np.zeros(6), np.zeros(6),
    )  # fmt: skip


@inlined
def _railed(g):
    """Whether the goal keeps to a line."""
    return norm3(g.rail[1]) > 0.0


@kernel
def _zoom(g):
    """Within the zoom's range of the next body the goal goes with a share of the device's way.

    The share falls continuously with the gap, from 1 to the least at contact. What the device is ahead then
    comes back beyond the range, in proportion to its way, so that the map needs no clutch.
    """
    how, moved, back = g.how[0], g.way[:3], 1.0
    for i in range(3):
        moved[i] = g.port.position[i] - g.last[i]
    near = min(1.0, max(0.0, g.gap[0] / how.zoom_range))
    share = how.zoom_scale + (1.0 - how.zoom_scale) * near
    if share >= 1.0:
        back = min(1.0, norm3(moved) / how.zoom_range)
    else:
        back = 0.0
    for i in range(3):
        at = g.hand.position[i] - g.offset[i]
        ahead = g.last[i] - at
        g.goal[i] = g.hand.position[i] + (share * moved[i] + back * ahead)


@kernel
def _place(g):
    """The device's position becomes the goal's, on the rail if there is one."""
    way, start, along = g.way, g.rail[0], g.rail[1]
    for i in range(3):
        way[i] = g.port.position[i] - start[i]
    travel = dot3(way, along)
    for i in range(3):
        g.goal[i] = g.offset[i] + (start[i] + travel * along[i] if _railed(g) else g.port.position[i])


@kernel
def pose(g, first, steps):
    """The device's pose becomes the goal, reached in so many even steps; at first the hand is there."""
    way = g.way
    if first or g.how[0].zoom_range == 0.0:
        _place(g)
    else:
        _zoom(g)
    copy(g.port.position, g.last)
    copy(g.rest, g.goal_q)
    if g.how[0].turns:
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
    total = g.port.info[0].total
    for i in range(3):
        total[i] = 0.0
        for k in range(g.points.count[0]):
            if g.points.what[k] == POINT:
                total[i] += g.points.f[k, i]
        g.felt[i] += (g.hand.force[i] if g.how[0].feedback == HOLD_REACTION else total[i]) / steps
        g.felt[3 + i] += g.hand.torque[i] / steps


@kernel
def tell_device(g):
    """Force and moment on the device, and what it is told beside; False where a number is none."""
    port, info, rail, check = g.port, g.port.info[0], g.rail[1], 0.0
    pull, along = dot3(g.felt, rail), g.how[0].stylus_friction / max(norm3(port.velocity), SLOW)
    for i in range(3):
        # what the rail takes does no work on the hand
        port.force[i] = (pull * rail[i] if _railed(g) else g.felt[i]) + along * port.velocity[i]
        port.torque[i] = g.felt[3 + i]
        info.held[i] = g.hand.held[i]
        check += abs(port.force[i]) + abs(port.torque[i]) + abs(info.held[i])
    port.force[1] += g.how[0].stylus_weight
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
