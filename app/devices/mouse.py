"""The pointer in the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import MAILBOX, send_target
from palpo.haptics.errors import HapticsError
from palpo.haptics.path import TickPath, standing
from palpo.haptics.workspace import orientations_to_device, positions_to_device

if TYPE_CHECKING:
    from palpo.haptics.servo import Servo
    from palpo.render.controls import PointedPose


class Mouse(Device):
    """It leads a simulated hand, so that a wall is felt as the tool that stays behind the pointer."""

    word, about = "mouse", "the mouse drags the tool in the window"
    taking = (
        "Take the tool",
        "drag with the left button: it follows the pointer",
        "with shift, or the wheel: away from you and back; with ctrl: it turns",
    )
    question = """
from palpo.render.window import Window
Window("palpo", 64, 64, visible=False)
"""
    live = pointed = True
    source = MAILBOX

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        if not self.there(asked):
            raise HapticsError("--device mouse: there is no window for its pointer; use mock or replay:FILE")

    @classmethod
    def there(cls, asked: DeviceOptions) -> bool:
        return asked.window and not asked.page

    def path(self, spec: BaseScene, held: NDArray[np.float64]) -> TickPath:
        return standing(held)

    def follow(self, servo: Servo, hand: PointedPose) -> None:
        position = positions_to_device(servo.workspace, hand.position[None])[0]
        orientation = orientations_to_device(servo.workspace, hand.orientation[None])[0]
        send_target(servo.device, position, orientation, hand.buttons)
