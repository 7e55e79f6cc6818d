"""A Haply Inverse3 through the maker's WebSocket service, which a process of its own speaks with."""

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


class Haply(Device):
    """The process is started when the device is asked for, and not before."""

    word, argument = "haply", "ID@ws://HOST:PORT"
    about = "an Inverse3, with a VerseGrip or without, through Haply's service on this machine, or another"
    label = "Haply Inverse3"
    question = found_by("haply")
    live = rebased = hardware = True
    automatic = False  # asking takes a process and seconds
    taking = (
        "Take the tool",
        "move the handle: the tool in the ring follows your hand",
        "second button held down: the tool stays, and your hand may go back",
        "first two buttons together: the force is off",
    )

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        from palpo.haptics.backends.haply_bridge import SERVICE

        if asked.lock_step:
            raise HapticsError(
                f"--device {self.word}: a hand cannot be held in lock-step; leave --lock-step out"
            )
        self.id, _, address = argument.rpartition("@")
        if "://" not in address:
            self.id, address = argument, ""
        self.address = address or SERVICE

    @property
    def title(self) -> str:
        return f"Haply Inverse3 {self.id}".strip()

    @property
    def serial(self) -> str:
        return self._opened.serial

    def open(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        from palpo.haptics.backends.haply import HaplyDevice

        self._opened = stack.enter_context(HaplyDevice(self.address, lambda: self.given_up, self.id))
        return self._opened.spec()

    def make(self, spec: BaseScene, held: NDArray[np.float64]) -> tuple[VirtualDevice, Ahead]:
        from palpo.haptics.backends.haply import FILTER_HZ

        return external_device(spec.rates.dt, FILTER_HZ)

    def driver(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.backends.haply import HaplyThread

        return HaplyThread(servo, self._opened)
