"""Devices without a pose of their own, whose deflection is a speed: a knob with six axes, a gamepad's sticks.

They lead a simulated hand. A deflection d in [-1, 1] along an axis is a speed
  v = V sign(d) ((|d| - d0) / (1 - d0))^2 beyond the dead zone d0, else none,
so that small ones are fine and a released knob stands still although its zero drifts. A device that reports
nothing for QUIET seconds is taken for released.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.errors import HapticsError
from palpo.haptics.led import FAR, LONGEST, LedThread, Source, Target
from palpo.haptics.servo import Servo
from palpo.haptics.workspace import quaternion_from_axis_angle, quaternion_product

SPEED, TURN = 0.15, 1.5
"""Speed [m/s] and angular speed [rad/s] at full deflection."""
DEAD = 0.06
"""Deflection up to which nothing moves [-]."""
QUIET = 0.2
"""Seconds without a report after which the device is taken for released."""


class Deflection(NamedTuple):
    """What a device reports: along and about the servo's axes, each in [-1, 1], and a mask of buttons."""

    along: tuple[float, float, float] = (0.0, 0.0, 0.0)
    about: tuple[float, float, float] = (0.0, 0.0, 0.0)
    buttons: int = 0


def can_open(opened: Callable[[], Source[Any]]) -> tuple[bool, str]:
    """Whether a device can be opened now, and which it is or why not."""
    try:
        source = opened()
    except HapticsError as missing:
        return False, str(missing)
    source.close()
    return True, f"ready: {source.title}"


def speed_of(deflection: ArrayLike, largest: float) -> NDArray[np.float64]:
    """Speeds of deflections in [-1, 1]; one that is no number stands still."""
    d = np.nan_to_num(np.asarray(deflection, float), nan=0.0, posinf=0.0, neginf=0.0).clip(-1.0, 1.0)
    beyond = np.maximum(np.abs(d) - DEAD, 0.0) / (1.0 - DEAD)
    return largest * np.sign(d) * beyond**2


class LedPose:
    """A pose that deflections lead. position (3,) [m], orientation (4,): where it starts, device axes."""

    def __init__(self, position: ArrayLike, orientation: ArrayLike) -> None:
        self.start = np.array(position, float)
        self.position, self.orientation = self.start.copy(), np.array(orientation, float)

    def move(self, deflection: Deflection, seconds: float) -> None:
        """Go on for a time [s]."""
        seconds = min(max(seconds, 0.0), LONGEST)
        self.position += seconds * speed_of(deflection.along, SPEED)
        self.position = self.position.clip(self.start - FAR, self.start + FAR)
        spin = seconds * speed_of(deflection.about, TURN)
        angle = float(np.linalg.norm(spin))
        if angle > 0.0:
            turned = quaternion_product(quaternion_from_axis_angle(spin, angle), self.orientation)
            self.orientation = turned / np.linalg.norm(turned)


class RateThread(LedThread[Deflection]):
    """The servo on a simulated hand that goes as the device is deflected."""

    def __init__(self, servo: Servo, source: Source[Deflection]) -> None:
        super().__init__(servo, source)
        self._pose = LedPose(servo.device.positions[0], servo.device.orientations[0])
        self._deflection = Deflection()

    def led(self, news: Deflection | None, quiet: float, seconds: float) -> Target:
        if news is not None:
            self._deflection = news
        elif quiet > QUIET:
            self._deflection = Deflection(buttons=self._deflection.buttons)
        self._pose.move(self._deflection, seconds)
        return self._pose.position, self._pose.orientation, self._deflection.buttons
