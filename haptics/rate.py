"""Devices without a pose of their own, whose deflection is a speed: a knob with six axes, a gamepad's sticks.

They lead a simulated hand. A deflection d in [-1, 1] along an axis is a speed
  v = V sign(d) ((|d| - d0) / (1 - d0))^2 beyond the dead zone d0, else none,
so that small ones are fine and a released knob stands still although its zero drifts. A device that reports
nothing for QUIET seconds is taken for released.
"""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.control import finished_reason, is_frozen
from palpo.haptics.device import DEVICE_GONE, send_target
from palpo.haptics.drivers import ServoThread
from palpo.haptics.errors import HapticsError
from palpo.haptics.reasons import REASONS, STOP_DEVICE_LOST
from palpo.haptics.servo import Servo
from palpo.haptics.workspace import quaternion_from_axis_angle, quaternion_product

SPEED, TURN = 0.15, 1.5
"""Speed [m/s] and angular speed [rad/s] at full deflection."""
DEAD = 0.06
"""Deflection up to which nothing moves [-]."""
FAR = 0.3
"""Way [m] from the start at which the led point stops, along each axis."""
QUIET = 0.2
"""Seconds without a report after which the device is taken for released."""
LONGEST = 0.05
"""Longest time [s] that a step of motion makes up for: a program that slept does not jump."""


class Deflection(NamedTuple):
    """What a device reports: along and about the servo's axes, each in [-1, 1], and a mask of buttons."""

    along: tuple[float, float, float] = (0.0, 0.0, 0.0)
    about: tuple[float, float, float] = (0.0, 0.0, 0.0)
    buttons: int = 0


class Source(Protocol):
    """An open device."""

    title: str

    def read(self, patience: float) -> Deflection | None:
        """The deflection once there is news, None after `patience` [s]. Raises OSError if it is lost."""
        ...

    def close(self) -> None:
        """Leave it."""
        ...


def can_open(opened: Callable[[], Source]) -> tuple[bool, str]:
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


class RateThread(ServoThread):
    """The servo on a simulated hand, and a thread that leads it as the device is deflected.

    The servo's device has the source MAILBOX. Losing the deflected one fades the force and ends the run.
    """

    def __init__(self, servo: Servo, source: Source) -> None:
        super().__init__(servo)
        self.source, self._lost = source, ""
        self._leading = threading.Thread(target=self._lead, name="deflection", daemon=True)
        self._over = threading.Event()

    def start(self) -> Self:
        """Compile, start, and lead."""
        super().start()
        self.accompany()
        return self

    def accompany(self) -> None:
        """Lead."""
        self._leading.start()

    def leave(self) -> None:
        """Lead no longer."""
        self._over.set()
        if self._leading.is_alive():
            self._leading.join()

    @property
    def lost(self) -> str:
        """What became of the device, in words, if it was lost."""
        return self._lost

    def _lead(self) -> None:
        device = self.servo.device
        led, deflection = LedPose(device.positions[0], device.orientations[0]), Deflection()
        last = heard = time.monotonic()
        while not self._over.is_set():
            try:
                news = self.source.read(LONGEST / 5)
            except OSError as error:
                reason = error.strerror or str(error) or "no reason given"
                self._lost = f"{self.source.title} was lost; plug it in again ({reason})"
                device.health[0] = DEVICE_GONE
                return
            now = time.monotonic()
            if news is not None:
                deflection, heard = news, now
            elif now - heard > QUIET:
                deflection = Deflection(buttons=deflection.buttons)
            if not is_frozen(self.servo):
                led.move(deflection, now - last)
            send_target(device, led.position, led.orientation, deflection.buttons)
            last = now

    @property
    def reason(self) -> str:
        """Why the loop stopped, in words; a lost device says what became of it."""
        reason = int(finished_reason(self.servo))
        return self._lost if reason == STOP_DEVICE_LOST and self._lost else REASONS[reason]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False if the time [s] ran out."""
        ended = super().join(timeout)
        self.leave()
        return ended
