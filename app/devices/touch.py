"""A Touch or Phantom through OpenHaptics; its scheduler calls the servo."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions, ServoDriver, external_device
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import VirtualDevice
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.physics.exchange.ahead import Ahead

if TYPE_CHECKING:
    from palpo.haptics.backends.openhaptics import OpenHapticsDevice
    from palpo.haptics.backends.openhaptics_thread import TouchCompanion, TouchThread
    from palpo.haptics.servo import Servo

SETUP = "from palpo.haptics.backends.openhaptics_setup import"
LOAD = "from palpo.haptics.backends.openhaptics_library import load"
INKWELL = 120.0
"""Seconds for which an operator may be asked to calibrate it."""
_kept: dict[str | None, OpenHapticsDevice] = {}
"""Open, without force, between two runs at one window."""


class TouchDevice(Device):
    """The maker's library is loaded when it is asked for, and not before."""

    word, argument = "touch", "NAME"
    about = "a Touch or Phantom through OpenHaptics; which one, by its name in Touch Setup"
    taking = (
        "Take the tool",
        "move the stylus: the tool in the ring follows your hand",
        "button 2 held down: the tool stays, and your hand may go back",
        "both buttons together: the force is off",
    )
    question = """
from palpo.haptics.backends.openhaptics import find
found = find()
print(found.sentence)
sys.exit(not found.ok)
"""
    label = "Touch or Phantom"
    steps = (
        ("driver", f"{SETUP} driver\nprint(driver())"),
        ("settings", f"{SETUP} settings\nprint(settings())"),
        ("port", f"{SETUP} port\nprint(port())"),
        ("library", f"{LOAD}\nload()\nprint('libHD is there')"),
    )
    live = rebased = hardware = schedules = True

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        if asked.lock_step:
            raise HapticsError("--device touch: a hand cannot be held in lock-step; leave --lock-step out")
        self.name, self._window = argument or None, asked.window
        self._thread: TouchThread | TouchCompanion | None = None

    @classmethod
    def there(cls, asked: DeviceOptions) -> bool:
        from palpo.haptics.backends.openhaptics_library import load

        if asked.lock_step:
            return False
        try:
            load()
        except HapticsError:
            return False  # so that its callback, half a minute of compiling, is not even imported
        from palpo.haptics.backends.openhaptics import find

        return bool(find().ok)

    @property
    def title(self) -> str:
        return f'Touch "{self.name}"' if self.name else "Touch"

    @property
    def serial(self) -> str:
        return self._opened.identity.serial

    def open(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        from palpo.haptics.backends.openhaptics import OpenHapticsDevice

        kept = _kept.pop(self.name, None)
        self._opened = kept or OpenHapticsDevice(self.name, INKWELL, self.tell, lambda: self.given_up)
        stack.callback(self._leave)
        return self._opened.spec()

    def _leave(self) -> None:
        """Close it, but not between two runs at one window: opening takes seconds and a calibration."""
        well = self._thread is None or not self._thread.lost
        if self._window and well:
            if not _kept:
                atexit.register(_close_all)
            _kept[self.name] = self._opened
        else:
            self._opened.close()

    def make(self, spec: BaseScene, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
        from palpo.haptics.backends.openhaptics import FILTER_HZ

        return external_device(spec.rates.dt, FILTER_HZ)

    def driver(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.backends.openhaptics_thread import TouchThread

        self._thread = TouchThread(servo, self._opened, self.tell)
        return self._thread

    def companion(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.backends.openhaptics_thread import TouchCompanion

        self._thread = TouchCompanion(servo, self._opened, self.tell)
        return self._thread


def _close_all() -> None:
    while _kept:
        _kept.popitem()[1].close()
