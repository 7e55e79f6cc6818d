"""A servo on a spring wall behind the stand-in: what the tests of the Touch share."""

import time

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.control import request_stop, tick_count
from palpo.haptics.device import EXTERNAL, RECORDED, VirtualDevice, make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drivers import servo_run
from palpo.haptics.flags import STOPPING
from palpo.haptics.limits import AT_ONCE, LimitParams, make_limits
from palpo.haptics.row import NAMES
from palpo.haptics.servo import Servo
from palpo.haptics.workspace import quaternion_matrix
from tests.libhd.stand_in import READING
from tests.servo.wall import Wall, make_wall

POSE = [NAMES.index(name) for name in ("px", "py", "pz", "qw", "qx", "qy", "qz")]
MOTION = [NAMES.index(name) for name in ("vx", "vy", "vz", "wx", "wy", "wz")]
SENT = [NAMES.index(f"sent_{axis}") for axis in "xyz"]
BUTTONS, FLAGS = NAMES.index("buttons"), NAMES.index("flags")
STIFFNESS, DEPTH = 300.0, 5e-3
"""Wall [N/m], and how deep a press goes [m]: 1.5 N."""
LONG = 20.0
"""Seconds after which a wait has failed; nothing here takes two."""


def external() -> VirtualDevice:
    """The servo's device where a scheduler fills the port."""
    return make_virtual_device([[0.0, 0.0, 0.0]], source=EXTERNAL)


def touch_wall(limits: LimitParams | None = None, **options) -> Wall:
    """A wall at x = 0 for a Touch's callback, with its fade-in left out unless limits are given."""
    return make_wall(
        external(), STIFFNESS, limits=limits or make_limits(TOUCH.max_force, fades=AT_ONCE), **options
    )


def transform(position: ArrayLike, quaternion: ArrayLike = (1.0, 0.0, 0.0, 0.0)) -> NDArray[np.float64]:
    """libHD's column-major transform (16,) [mm] of a pose [m]."""
    matrix = np.eye(4)
    matrix[:3, :3] = quaternion_matrix(quaternion)
    matrix[:3, 3] = 1e3 * np.asarray(position)
    return matrix.ravel(order="F")


def readings(positions: ArrayLike) -> NDArray[np.float64]:
    """A script (n, READING) of upright poses at positions (n, 3) [m], at rest."""
    table = np.zeros((len(positions), READING))
    table[:, :16] = [transform(position) for position in positions]
    return table


def press() -> NDArray[np.float64]:
    """A script that goes from 1 mm before the wall to DEPTH in it within 200 frames, and stays."""
    x = np.concatenate([np.linspace(-1e-3, DEPTH, 200), np.full(1, DEPTH)])
    return readings(np.column_stack([x, np.zeros_like(x), np.zeros_like(x)]))


def wait(servo: Servo, ticks: int) -> None:
    """Until the servo has done so many ticks."""
    end = time.monotonic() + LONG
    while tick_count(servo) < ticks:
        assert time.monotonic() < end, f"only {tick_count(servo)} of {ticks} ticks came"
        time.sleep(1e-3)


def recorded_device(rows: NDArray[np.float64]) -> VirtualDevice:
    """A device that reports the inputs of recorded rows, the device's own in an identity workspace."""
    device = make_virtual_device(rows[:, POSE[:3]], rows[:, POSE[3:]], rows[:, BUTTONS], source=RECORDED)
    return device._replace(
        orientations=np.ascontiguousarray(rows[:, POSE[3:]]), velocities=np.ascontiguousarray(rows[:, MOTION])
    )


def repeat(servo: Servo, rows: NDArray[np.float64]) -> None:
    """Run a servo in lock-step as long as recorded rows, with the stop asked for at the same tick."""
    stop = int(np.argmax(rows[:, FLAGS].astype(int) & STOPPING > 0))
    servo_run(servo, stop)
    request_stop(servo)
    servo_run(servo, len(rows) - stop)
