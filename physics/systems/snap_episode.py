"""Many plugs led at once, each into a socket of its own: what a batch of learning robots computes in a step.

A gripper's target goes evenly to where an action leads it, a tick of `physics.systems.snap_tick` at a time;
what its sensors say of each tick is kept, so that they may be read late. Threads call `advance_all` side by
side on the same episodes and share them out by claiming: nothing of an episode depends on which thread made
it, or beside which others.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import CACHE_LINE, exchange
from palpo.physics.exchange.handle import Handle, handle_like
from palpo.physics.exchange.port import OK
from palpo.physics.kernels import kernel
from palpo.physics.math3 import quat_from_rotvec
from palpo.physics.systems.snap_tick import SnapServo, tick

SENSED = 12
"""What sensors measure: plug from its target [m], [rad]; force and torque of the hold [N], [N m]."""

TOLD = np.dtype([("ticks", np.int64), ("late", np.int64), ("well", np.int64)])
"""Ticks made; how many ago is what sensors say now; whether none of them broke down."""


class Episode(NamedTuple):
    """One plug and its gripper."""

    servo: SnapServo
    start: NDArray[np.float64]  # (3,) of the target [m]
    command: NDArray[np.float64]  # (6,) target from there: way [m] and rotation vector [rad]
    goal: NDArray[np.float64]  # (6,) where the command is to go in the next ticks
    sensed: NDArray[np.float64]  # (n, SENSED) of the last n ticks, in turn
    told: NDArray[np.void]  # (1,) of TOLD


def make_episode(servo: SnapServo, start: NDArray[np.float64], latest: int) -> Episode:
    """An episode about to begin, whose sensors may be `latest` ticks late."""
    return Episode(
        servo, start.copy(), np.zeros(6), np.zeros(6), np.zeros((latest + 1, SENSED)), np.zeros(1, TOLD)
    )


@kernel
def advance_one(s, ticks):
    """The command goes to its goal in so many ticks; s: handle of an Episode."""
    port, told, rows = s.servo.port, s.told[0], s.sensed.shape[0]
    plug, command, goal = s.servo.snap.plug.motion, s.command, s.goal
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
            row[6 + i] = s.servo.hand[i]
        told.ticks += 1


@kernel
def advance_all(first, addresses, ticks, claimed):
    """`advance_one` of every episode that nobody has claimed.

    first: handle of one of them. addresses (n,) of the handles of all. claimed (n CACHE_LINE,): zeros before
    the first thread calls, the same array for all threads.
    """
    for k in range(addresses.shape[0]):
        if exchange(claimed, CACHE_LINE * k, 1) == 0:
            advance_one(handle_like(first, addresses[k]), ticks)


def sensed_now(episode: Episode, out: NDArray[np.float64]) -> None:
    """What its sensors say now into (SENSED,): what was so many ticks ago, or in the first of all."""
    ticks, late = int(episode.told["ticks"][0]), int(episode.told["late"][0])
    out[:] = episode.sensed[max(ticks - 1 - late, 0) % len(episode.sensed)]


def claims(n: int) -> NDArray[np.int64]:
    """What `advance_all` needs to share n episodes out."""
    return np.zeros(CACHE_LINE * n, np.int64)


def addresses_of(episodes: list[Handle]) -> NDArray[np.int64]:
    """(n,) of the handles of episodes."""
    return np.array([handle.address for handle in episodes], np.int64)
