"""A pointer or a finger on a page of `palpo serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.devices.device import Device, DeviceOptions, ServoDriver
from palpo.config.schema.scene import BaseScene
from palpo.haptics.device import MAILBOX
from palpo.haptics.errors import HapticsError
from palpo.haptics.guided import Guide, GuidedThread, pose_of
from palpo.haptics.path import TickPath, standing

if TYPE_CHECKING:
    from palpo.haptics.servo import Servo
    from palpo.render.controls import PointedPose


SILENCE = 0.5
"""Seconds without a word of the page after which it is gone: its words come from a busy process."""


class PagePointer(Device):
    """It leads a simulated hand as poses do that others send: no faster than a calm hand, while it is there.

    When the page is silent, its force fades and the scene stands still.
    """

    word, about = "page", "a mouse or a finger drags the tool on the page of `palpo serve`"
    taking = (
        "Take the tool",
        "drag the blue ball or the tool: it follows the pointer or finger",
        "with shift: away from you and back; with ctrl: it turns",
    )
    question = "import viser"
    live = pointed = True
    source = MAILBOX

    def __init__(self, asked: DeviceOptions, argument: str) -> None:
        if not asked.page:
            raise HapticsError(f"--device {self.word}: there is no page; use palpo serve")
        self._guide = Guide("the page", SILENCE)

    @classmethod
    def there(cls, asked: DeviceOptions) -> bool:
        return asked.page

    def path(self, spec: BaseScene, held: NDArray[np.float64]) -> TickPath:
        return standing(held)

    def driver(self, servo: Servo) -> ServoDriver:
        return GuidedThread(servo, self._guide)

    def follow(self, servo: Servo, hand: PointedPose) -> None:
        self._guide.put(pose_of(hand.position, hand.orientation, hand.buttons))
