"""What the servo calls a thousand times a second."""

from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS, acquire, make_control
from palpo.physics.exchange.handle import HandleType
from palpo.physics.exchange.port import OK, Port, end_tick, make_port
from palpo.physics.numerics.kernels import callback


class Floor(NamedTuple):
    """The servo's memory: the settings are triple-buffered by `control`, under the numbers `id`."""

    port: Port
    control: NDArray[np.int64]
    id: NDArray[np.int64]
    stiffness: NDArray[np.float64]
    height: NDArray[np.float64]
    ticks: NDArray[np.int64]


def make_floor() -> Floor:
    """A floor without settings."""
    return Floor(
        make_port(), make_control(), np.zeros(SLOTS, np.int64), np.zeros(SLOTS), np.zeros(SLOTS),
        np.zeros(1, np.int64),
    )  # fmt: skip


@callback(types.int32(HandleType(typeof(make_floor()))))
def floor_tick(floor):
    """f_y = k (height - y) below the floor."""
    port, (slot, _) = floor.port, acquire(floor.control)
    depth = max(0.0, floor.height[slot] - port.position[1])
    port.force[1] = floor.stiffness[slot] * depth
    for i in range(3):
        port.info[0].held[i] = port.position[i]
    port.status[0].frame = floor.id[slot]
    floor.ticks[0] += 1
    return np.int32(end_tick(port, OK, 0))
