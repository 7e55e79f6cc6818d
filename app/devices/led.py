"""A pose that others send while a run lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions, ServoDriver
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import MAILBOX
from palpo.haptics.errors import HapticsError
from palpo.haptics.path import TickPath, standing

if TYPE_CHECKING:
    from palpo.haptics.servo import Servo


class Led(Device):
    """It leads a simulated hand: what is sent can be no larger a force than that hand's."""

    word, about = "led", "a pose that others send by `palpo stream` or `palpo ros` leads a simulated hand"
    live = True
    automatic = False
    source = MAILBOX
    taking = (
        "Whoever sends poses has the tool",
        "it goes by the way of the pose, from where it is when that begins",
        "without a pose the force is off",
    )

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        if asked.stream is None:
            raise HapticsError(f"--device {self.word}: nobody can send a pose; use palpo stream or palpo ros")
        self.stream = asked.stream

    @property
    def title(self) -> str:
        return f"a hand led by {self.stream.title}"

    def path(self, spec: BaseScene, held: NDArray[np.float64]) -> TickPath:
        return standing(held)

    def driver(self, servo: Servo) -> ServoDriver:
        from palpo.haptics.guided import GuidedThread

        return GuidedThread(servo, self.stream.guide)
