"""A recorded hand, or a foreign trajectory."""

from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions, to_device
from palpo.app.devices.protection import workspace_of
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import VirtualDevice, first_rows, make_virtual_device, path_ahead
from palpo.haptics.errors import HapticsError
from palpo.haptics.path import Table, TickPath
from palpo.haptics.workspace import quaternion_product
from palpo.physics.exchange.ahead import Ahead


class TrajectoryDevice(Device):
    """The stylus is where the file says, and no hand yields."""

    word, argument = "replay", "FILE"
    automatic = False
    about = "recorded motion: a recording (.h5), or a table t x y z (CSV or text)"

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        if not argument:
            raise HapticsError("--device replay: name a file, replay:FILE")
        self.file, self.unit, self.scale = Path(argument), asked.unit, asked.replay_scale

    @property
    def title(self) -> str:
        return f"replay of {self.file.name}"

    def path(self, spec: BaseScene, held: NDArray[np.float64]) -> TickPath:
        return trajectory_path(self.file, self.unit, self.scale, spec.rates.servo_hz, held)

    def make(self, spec: BaseScene, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
        path = to_device(self.path(spec, held), workspace_of(spec))
        device = make_virtual_device(*first_rows(path), dt=spec.rates.dt)
        return device, path_ahead(device, path)


def trajectory_path(
    file: Path, unit: str, scale: float, rate_hz: float, start: NDArray[np.float64]
) -> TickPath:
    """A trajectory at the servo's rate, scene axes; a foreign one starts at `start` (3,) [m], upright.

    A recording of ours is in scene axes already and stays where it was, unless it is scaled.
    """
    # its splines take half a second to import, which a start without a trajectory need not wait for
    from palpo.haptics.backends.replay import place, read_trajectory, spline_path

    raw = read_trajectory(file, unit)
    path = spline_path(raw.times, raw.positions, raw.quaternions, rate_hz)
    if h5py.is_hdf5(file) and scale == 1.0:
        return path
    positions, turns = path.rows(0, 1)
    origin, back = place(positions, scale)[0], turns[0] * [1.0, -1.0, -1.0, -1.0]

    def begun_here(positions: NDArray[np.float64], turns: NDArray[np.float64]) -> Table:
        return place(positions, scale) - origin + start, quaternion_product(turns, back)

    return path.mapped(begun_here)
