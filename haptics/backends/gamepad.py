"""A gamepad through the kernel's joystick interface (Linux): /dev/input/js0 and its like.

An event is 8 bytes: time [ms], a signed 16-bit value, type (1 a button, 2 an axis, 0x80 added for the state
at the start) and number. Axes are laid out as the kernel's xpad driver has them: 0 and 1 the left stick, 3
and 4 the right one, 2 and 5 the triggers; down and right are positive.

The left stick leads right and toward the user; the right one up, and turns about the upright axis.
"""

import os
import select
import struct
import sys
from pathlib import Path

from palpo.haptics.errors import HapticsError
from palpo.haptics.rate import Deflection, can_open

EVENT = struct.Struct("<IhBB")
BUTTON, AXIS, INITIAL = 1, 2, 0x80
FULL = 32767.0
FOLDER = Path("/dev/input")


def decode(event: bytes, axes: dict[int, float], buttons: int) -> int:
    """Take an event of 8 bytes into `axes`, by number; the mask of buttons after it."""
    _, value, kind, number = EVENT.unpack(event)
    if kind & ~INITIAL == AXIS:
        axes[number] = max(-1.0, value / FULL)
    elif kind & ~INITIAL == BUTTON and number < 32:
        buttons = buttons | 1 << number if value else buttons & ~(1 << number)
    return buttons


def deflection_of(axes: dict[int, float], buttons: int) -> Deflection:
    """What the sticks ask for, the servo's axes."""
    return Deflection(
        (axes.get(0, 0.0), -axes.get(4, 0.0), axes.get(1, 0.0)), (0.0, -axes.get(3, 0.0), 0.0), buttons
    )


def found(folder: Path = FOLDER) -> list[Path]:
    """The joysticks that there are."""
    return sorted(folder.glob("js[0-9]*"))


class Gamepad:
    """An open gamepad. Raises HapticsError where there is none, or none that may be opened."""

    def __init__(self, folder: Path = FOLDER) -> None:
        if sys.platform != "linux":
            raise HapticsError("gamepads are read through Linux's joystick interface, which is not here")
        there = found(folder)
        if not there:
            raise HapticsError(f"no gamepad: {folder} has no js0; plug one in, or load the module joydev")
        self.title = f"gamepad {there[0].name}"
        try:
            self._file = os.open(there[0], os.O_RDONLY | os.O_NONBLOCK)
        except OSError as error:
            raise HapticsError(
                f"{there[0]} may not be opened ({error.strerror}); add yourself to the group input"
            ) from None
        self._axes: dict[int, float] = {}
        self._buttons = 0

    def read(self, patience: float) -> Deflection | None:
        """The deflection after the events that have come; the present one again where none has.

        Sticks report changes only, so that none is no silence. Raises OSError if it is lost.
        """
        ready, _, _ = select.select([self._file], [], [], patience)
        if ready:
            data = os.read(self._file, 64 * EVENT.size)
            if not data:
                raise OSError("it is no longer there")
            for at in range(0, len(data) - EVENT.size + 1, EVENT.size):
                self._buttons = decode(data[at : at + EVENT.size], self._axes, self._buttons)
        return deflection_of(self._axes, self._buttons)

    def close(self) -> None:
        """Leave it."""
        os.close(self._file)


def find() -> tuple[bool, str]:
    """Whether one can be used now, and which it is or why not; never raises."""
    return can_open(Gamepad)
