"""Devices whose deflection is a speed, a SpaceMouse and a gamepad: they lead a simulated hand."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions, ServoDriver, found_by
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import MAILBOX
from palpo.haptics.device_spec import DeviceSpec
from palpo.haptics.errors import HapticsError
from palpo.haptics.path import TickPath, standing

if TYPE_CHECKING:
    from palpo.haptics.led import Source
    from palpo.haptics.rate import Deflection
    from palpo.haptics.servo import Servo


class Deflected(Device):
    """What they share; each says how it is opened."""

    source = MAILBOX
    live = hardware = True
    automatic = False

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        if asked.lock_step:
            raise HapticsError(
                f"--device {self.word}: a hand cannot be held in lock-step; leave --lock-step out"
            )
        self.name = argument or None

    def opened(self) -> Source[Deflection]:
        """The device, open. Raises HapticsError where it cannot be."""
        raise NotImplementedError

    def open(self, spec: BaseScene, stack: ExitStack) -> DeviceSpec:
        self._opened = self.opened()
        stack.callback(self._opened.close)
        return super().open(spec, stack)

    @property
    def title(self) -> str:
        opened = getattr(self, "_opened", None)
        return self.word if opened is None else opened.title

    def path(self, spec: BaseScene, held: NDArray[np.float64]) -> TickPath:
        return standing(held)

    def driver(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.rate import RateThread

        return RateThread(servo, self._opened)


class SpaceMouseDevice(Deflected):
    """A knob with six axes."""

    word = "spacemouse"
    about = "a SpaceMouse: its deflection is the speed of a simulated Touch in a simulated hand"
    label = "SpaceMouse"
    question = found_by("spacemouse")
    taking = (
        "Take the tool",
        "push, pull, lift and twist the knob: the tool moves as long as you do",
        "left and right button together: the force is off",
    )

    def opened(self) -> Source[Deflection]:
        from palpo.haptics.backends.spacemouse import SpaceMouse

        return SpaceMouse(self.name)


class GamepadDevice(Deflected):
    """Two sticks."""

    word = "gamepad"
    about = "a gamepad (Linux): its sticks are the speed of a simulated Touch in a simulated hand"
    label = "gamepad"
    question = found_by("gamepad")
    taking = (
        "Take the tool",
        "left stick: right and toward you; right stick: up, and turns",
        "both first buttons together: the force is off",
    )

    def opened(self) -> Source[Deflection]:
        from palpo.haptics.backends.gamepad import Gamepad

        return Gamepad()
