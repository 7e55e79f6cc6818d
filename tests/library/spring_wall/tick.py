"""What the servo calls a thousand times a second."""

from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.physics.engine.servo import make_ticks
from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.exchange.frames import SlowFrames, make_frames, take_frame
from palpo.physics.exchange.handle import HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from palpo.physics.numerics.kernels import callback


class Floor(NamedTuple):
    """The servo's memory: frames bring what has three slots; `slot` is that in force."""

    port: Port
    frames: SlowFrames
    ticks: NDArray[np.void]
    slot: NDArray[np.int64]
    stiffness: NDArray[np.float64]
    height: NDArray[np.float64]


def make_floor() -> Floor:
    """A floor without settings."""
    return Floor(
        make_port(), make_frames(0), make_ticks(), np.zeros(1, np.int64), np.zeros(SLOTS), np.zeros(SLOTS)
    )


@callback(types.int32(HandleType(typeof(make_floor()))))
def floor_tick(floor):
    """f_y = k (height - y) below the floor."""
    floor.ticks[0].calls += 1
    port, fresh = floor.port, take_frame(floor.frames, 0, floor.ticks[0])
    if fresh >= 0:
        floor.slot[0] = fresh
    slot = floor.slot[0]
    depth = max(0.0, floor.height[slot] - port.position[1])
    port.force[1] = floor.stiffness[slot] * depth
    for i in range(3):
        port.info[0].held[i] = port.position[i]
    port.status[0].frame = floor.frames.in_force[0].frame
    floor.ticks[0].done += 1
    return np.int32(end_tick(port, OK, 0))
