"""A simulated hand that follows the scene's own path."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device
from palpo.config.schema.scene import BaseScene
from palpo.haptics.path import Table, TickPath, waypoints


class SimulatedHand(Device):
    """It follows the scene's `device.path`."""

    word, about = "mock", "simulated Touch: a simulated hand follows the scene's path"

    @property
    def title(self) -> str:
        return "simulated hand"

    def path(self, spec: BaseScene, held: NDArray[np.float64]) -> TickPath:
        return scripted_path(spec)


def scripted_path(spec: BaseScene) -> TickPath:
    """The scene's path, one row a tick, scene axes."""
    device, rate = spec.device, spec.rates.servo_hz
    kind: Literal["smooth", "linear"] = "smooth" if device.smooth else "linear"
    moving = waypoints(device.path, kind, None, rate)
    if not device.turns:
        return moving
    turns = np.array(device.turns, float)
    still = np.hstack([turns[:, :1], np.zeros((len(turns), 3))])
    turning = waypoints(still, kind, turns[:, 1:], rate)

    def at(ticks: NDArray[np.int64]) -> Table:
        positions, _ = moving.at(np.minimum(ticks, moving.ticks - 1))
        return positions, turning.at(np.minimum(ticks, turning.ticks - 1))[1]

    return TickPath(max(moving.ticks, turning.ticks), at)
