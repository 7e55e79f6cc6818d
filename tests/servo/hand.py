"""A hand that a test moves: it fills the device's port before each tick, as a real device's callback does."""

import numpy as np
from numpy.typing import ArrayLike

from palpo.haptics.device import EXTERNAL, VirtualDevice, make_virtual_device
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.row import NAMES
from palpo.haptics.servo import Servo

UPRIGHT = (1.0, 0.0, 0.0, 0.0)


def external() -> VirtualDevice:
    """A device whose port somebody else fills."""
    return make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)


def move(
    servo: Servo,
    positions: ArrayLike,
    buttons: int = 0,
    orientation: ArrayLike = UPRIGHT,
    velocity: ArrayLike = (0.0, 0.0, 0.0),
    spin: ArrayLike = (0.0, 0.0, 0.0),
    keep: bool = False,
) -> dict[str, np.ndarray]:
    """One tick at each device position (n, 3) [m], all else held; the new rows, as `columns` has them.

    keep: leave the rows in the ring, for a recorder.
    """
    port = servo.device_port
    for position in np.atleast_2d(np.asarray(positions, dtype=float)):
        port.position[:], port.orientation[:] = position, orientation
        port.velocity[:], port.angular_velocity[:] = velocity, spin
        port.buttons[0] = buttons
        servo_run(servo, 1)
    return {} if keep else columns(servo)


def columns(servo: Servo) -> dict[str, np.ndarray]:
    """The rows since the last look, by column; "p", "q", "v", "w" and "sent" are vectors."""
    rows = drain_rows(servo)
    table = dict(zip(NAMES, rows.T, strict=True))
    table["flags"] = table["flags"].astype(np.int64)
    for name, parts in (
        ("p", "px py pz"),
        ("q", "qw qx qy qz"),
        ("v", "vx vy vz"),
        ("w", "wx wy wz"),
        ("sent", "sent_x sent_y sent_z"),
    ):
        table[name] = np.stack([table[part] for part in parts.split()], axis=1)
    return table


def along(direction: ArrayLike, values: ArrayLike) -> np.ndarray:
    """Points (n, 3) on the line through the origin along a direction (3,)."""
    return np.outer(np.asarray(values, dtype=float), np.asarray(direction, dtype=float))
