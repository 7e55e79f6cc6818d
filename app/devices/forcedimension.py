"""A Force Dimension device or a Falcon through the maker's libdhd, polled by the servo's own thread."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions, ServoDriver, external_device, found_by
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import VirtualDevice
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.physics.exchange.ahead import Ahead

if TYPE_CHECKING:
    from palpo.haptics.servo import Servo

PATIENCE = 120.0
"""Seconds for which an operator may be asked to calibrate it."""


class ForceDimension(Device):
    """The maker's library is loaded when it is asked for, and not before."""

    word, argument = "forcedimension", "SERIAL"
    about = "omega, delta, sigma, lambda or Falcon through libdhd; which one, by its serial number"
    label = "Force Dimension or Falcon"
    question = found_by("dhd")
    steps = (
        ("folder", "import os\nprint('FORCEDIM_SDK =', os.environ.get('FORCEDIM_SDK', 'not set'))"),
        (
            "library",
            "from palpo.haptics.backends.dhd_library import load\n"
            "print('libdhd is there,', load().call.dhdGetDeviceCount(), 'devices')",
        ),
    )
    taking = (
        "Take the tool",
        "move the grip: the tool in the ring follows your hand",
        "button 2 held down: the tool stays, and your hand may go back",
        "both buttons together: the force is off",
    )
    live = rebased = hardware = True

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        if asked.lock_step:
            raise HapticsError(
                f"--device {self.word}: a hand cannot be held in lock-step; leave --lock-step out"
            )
        self.name = argument or None

    @classmethod
    def there(cls, asked: DeviceOptions) -> bool:
        from palpo.haptics.backends.dhd_library import load

        if asked.lock_step:
            return False
        try:
            return bool(load().call.dhdGetDeviceCount() > 0)
        except HapticsError:
            return False

    @property
    def title(self) -> str:
        return f"Force Dimension {self.name}" if self.name else "Force Dimension"

    @property
    def serial(self) -> str:
        return str(self._opened.serial)

    def open(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        from palpo.haptics.backends.dhd import DhdDevice

        self._opened = stack.enter_context(DhdDevice(self.name, PATIENCE, self.tell, lambda: self.given_up))
        return self._opened.spec()

    def make(self, spec: BaseScene, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
        from palpo.haptics.backends.dhd import FILTER_HZ

        return external_device(spec.rates.dt, FILTER_HZ)

    def driver(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.backends.dhd import DhdThread

        return DhdThread(servo, self._opened, self.tell)
