"""A Touch or Phantom through OpenHaptics; its scheduler calls the servo."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Asked, Device, ServoDriver
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import EXTERNAL, DeviceSpec, VirtualDevice, make_virtual_device, path_ahead
from palpo.haptics.errors import HapticsError
from palpo.haptics.path import waypoints
from palpo.physics.exchange.ahead import Ahead

if TYPE_CHECKING:
    from palpo.haptics.servo import Servo


class Touch(Device):
    """The maker's library is loaded when it is asked for, and not before."""

    word, about = "touch", "a Touch or Phantom through OpenHaptics; --device-name says which"
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
    live = rebased = hardware = True

    def __init__(self, asked: Asked, argument: str) -> None:
        if asked.lock_step:
            raise HapticsError("--device touch: a hand cannot be held in lock-step; leave --lock-step out")
        self.name = asked.device_name

    @classmethod
    def there(cls, asked: Asked) -> bool:
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

    def open(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        from palpo.haptics.backends.openhaptics import OpenHapticsDevice

        self._opened = stack.enter_context(OpenHapticsDevice(self.name))
        return self._opened.spec()

    def make(self, spec: BaseScene, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
        device = make_virtual_device(np.zeros((1, 3)), source=EXTERNAL, dt=spec.rates.dt)
        return device, path_ahead(device, waypoints([[0.0, 0.0, 0.0, 0.0]]))

    def driver(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.backends.openhaptics import TouchThread

        return TouchThread(servo, self._opened)
