"""Whether a pose can be a hand's: what a glitch of an encoder, a cable or a driver reports is not followed.

A pose is plausible if it is finite and if, since the last plausible one, the stylus has moved and turned no
farther than a hand can in that time; the speeds that come with it must be a hand's, too. Any other is
replaced by the last plausible one, at rest. What can be a hand's in the end is so: the way allowed grows with
the time since the last plausible pose, which is the clock's and not the number of ticks, so that a late tick
is forgiven.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined, kernel

HAND_SPEED = 10.0
"""Speed [m/s] that no hand on a stylus reaches: a fast wave of the arm makes 3 to 5 m/s."""
HAND_TURN = 60.0
"""Angular speed [rad/s] that no wrist reaches: a fast flick makes 20 to 40 rad/s."""
HELD_TICKS = 5
"""Ticks in a row on which the last plausible pose is held; at the next the force fades."""


KEPT = np.dtype([("held", np.int64), ("there", np.int64)])
"""Ticks for which the last plausible pose has been held, and 1 once there is one."""


class PoseMemory(NamedTuple):
    """The last plausible pose, device axes."""

    position: NDArray[np.float64]
    """Shape (3,) [m]."""
    orientation: NDArray[np.float64]
    """Shape (4,)."""
    since: NDArray[np.float64]
    """Time since that pose [s], shape (1,)."""
    kept: NDArray[np.void]
    """Shape (1,) of KEPT."""


def make_pose_memory() -> PoseMemory:
    """A memory without a pose: the first one that is finite is taken."""
    return PoseMemory(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(1), np.zeros(1, KEPT))


@inlined
def forget_pose(memory):
    """Take the next finite pose for the first: the device has found a new origin."""
    memory.kept[0].held = 0
    memory.kept[0].there = 0


@inlined
def _finite(port):
    total = 0.0
    for i in range(3):
        total += abs(port.position[i]) + abs(port.velocity[i]) + abs(port.angular_velocity[i])
    for i in range(4):
        total += abs(port.orientation[i])
    return total < math.inf


@inlined
def _reachable(memory, speed, turn, port):
    """Whether a hand can have come here since the last plausible pose."""
    way, linear, angular, cosine, size = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(3):
        way += (port.position[i] - memory.position[i]) ** 2
        linear += port.velocity[i] ** 2
        angular += port.angular_velocity[i] ** 2
    for i in range(4):
        cosine += port.orientation[i] * memory.orientation[i]
        size += port.orientation[i] ** 2
    half = 0.5 * turn * memory.since[0]
    least = math.cos(half) if half < 0.5 * math.pi else 0.0
    return (
        way <= (speed * memory.since[0]) ** 2
        and linear <= speed**2
        and angular <= turn**2
        and cosine * cosine >= least * least * size
    )


@kernel
def judge_pose(memory, speed, turn, port, elapsed):
    """Whether the pose in the port is plausible, `elapsed` seconds after the last one that was judged.

    speed [m/s] and turn [rad/s] are a hand's largest; infinite ones let every finite pose pass.
    """
    memory.since[0] += elapsed
    if not _finite(port):
        return False
    return memory.kept[0].there == 0 or math.isinf(speed) or _reachable(memory, speed, turn, port)


@kernel
def keep_pose(memory, port, plausible):
    """Remember the port's pose, or put the last plausible one in its place; for how many ticks it is held."""
    if plausible:
        memory.since[0] = 0.0
        memory.kept[0].held = 0
        memory.kept[0].there = 1
        for i in range(3):
            memory.position[i] = port.position[i]
        for i in range(4):
            memory.orientation[i] = port.orientation[i]
        return 0
    memory.kept[0].held += 1
    for i in range(3):
        port.position[i] = memory.position[i]
        port.velocity[i] = 0.0
        port.angular_velocity[i] = 0.0
    for i in range(4):
        port.orientation[i] = memory.orientation[i]
    return memory.kept[0].held
