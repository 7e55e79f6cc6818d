"""Many plugs led at once, each into a socket of its own: what a batch of learning robots computes in a step.

A gripper's target goes evenly to where an action leads it, a tick of `physics.engine.servo` at a time;
what its sensors say of each tick is kept, so that they may be read late. Threads call `advance_all` side by
side on the same episodes and share them out by claiming: nothing of an episode depends on which thread made
it, or beside which others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.engine.servo import TickState, tick
from palpo.physics.exchange.atomics import CACHE_LINE, exchange
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.port import OK
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import norm3, quat_from_rotvec
from palpo.physics.systems.snap.servo import SnapLink

SENSED = 12
"""What sensors measure: plug from its target [m], [rad]; force and torque of the hold [N], [N m]."""

SEEN = 6 + SENSED + 3
"""What is seen of an episode: its command [m], [rad]; what its sensors say, as late as they are; and, without
error or delay, how far the plug has come [m], the force of the hold [N], and 1 while nothing broke down."""

TOLD = np.dtype([("ticks", np.int64), ("late", np.int64), ("well", np.int64)])
"""Ticks made; how many ago is what sensors say now; whether none of them broke down."""


class Episode(NamedTuple):
    """One plug and its gripper."""

    servo: TickState
    side: SnapLink
    start: NDArray[np.float64]  # (3,) of the target [m]
    push: NDArray[np.float64]  # (3,) direction of the plug's way
    command: NDArray[np.float64]  # (6,) target from there: way [m] and rotation vector [rad]
    sensed: NDArray[np.float64]  # (n, SENSED) of the last n ticks, in turn
    told: NDArray[np.void]  # (1,) of TOLD


def make_episode(
    servo: TickState, side: SnapLink, start: NDArray[np.float64], push: NDArray[np.float64], latest: int
) -> Episode:
    """An episode about to begin, whose sensors may be `latest` ticks late."""
    sensed, told = np.zeros((latest + 1, SENSED)), np.zeros(1, TOLD)
    return Episode(servo, side, start.copy(), push.copy(), np.zeros(6), sensed, told)


@kernel
def _lead(s, goal, ticks):
    """The command goes to its goal (6,) in so many ticks, and no further than to one that breaks down."""
    port, told, rows = s.servo.port, s.told[0], s.sensed.shape[0]
    plug, command = s.side.snap.plug.motion, s.command
    for k in range(ticks):
        for i in range(6):
            # by what is left, so that the last tick arrives to the bit
            command[i] += (goal[i] - command[i]) / (ticks - k)
        for i in range(3):
            port.position[i] = s.start[i] + command[i]
        quat_from_rotvec(command[3:], port.orientation)
        if tick(s.servo) != OK:
            told.well = 0
            return
        row = s.sensed[told.ticks % rows]
        for i in range(6):
            row[i] = plug.error[i]
            row[6 + i] = s.side.grip.felt[i]
        told.ticks += 1


@kernel
def advance_one(s, goal, ticks, seen):
    """The command goes to its goal (6,) in so many ticks; what is seen then into (SEEN,).

    s: handle of an Episode. Before the first tick of all its sensors say what that one did.
    """
    _lead(s, goal, ticks)
    told, place, travel = s.told[0], s.side.snap.plug.motion.position, 0.0
    row = s.sensed[max(told.ticks - 1 - told.late, 0) % s.sensed.shape[0]]
    copy(s.command, seen[:6])
    copy(row, seen[6 : 6 + SENSED])
    for i in range(3):
        travel += (place[i] - s.start[i]) * s.push[i]
    seen[6 + SENSED], seen[7 + SENSED], seen[8 + SENSED] = travel, norm3(s.side.grip.felt[:3]), told.well


@kernel
def advance_all(first, addresses, goals, ticks, seen, claimed):
    """`advance_one` of every episode that nobody has claimed.

    first: handle of one of them. addresses (n,) of the handles of all. goals (n, 6), seen (n, SEEN). claimed
    (n CACHE_LINE,): zeros before the first thread calls, the same array for all threads.
    """
    for k in range(addresses.shape[0]):
        if exchange(claimed, CACHE_LINE * k, 1) == 0:
            advance_one(handle_like(first, addresses[k]), goals[k], ticks, seen[k])


def claims(n: int) -> NDArray[np.int64]:
    """What `advance_all` needs to share n episodes out."""
    return np.zeros(CACHE_LINE * n, np.int64)
