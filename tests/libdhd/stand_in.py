"""The stand-in libdhd, compiled and loaded so that the program finds it by its name, and its controls."""

import ctypes
import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.stand_in_library import StandInLibrary, loaded

SOURCE = Path(__file__).with_name("stand_in.c")
SIGMA, FALCON = 0, 1
READING = 16
"""Numbers in a reading, libdhd's axes: position (3) [m], rotation by rows (9), velocity (3), buttons."""

_INT, _LONG, _DOUBLE, _POINTER = ctypes.c_int, ctypes.c_long, ctypes.c_double, ctypes.c_void_p
_SIGNATURES = {
    "there": (_INT, _INT),
    "drives": (_INT, _INT),
    "uncalibrated": (_INT, _LONG),
    "off": (_INT, _INT, _LONG, _LONG),
    "unplug": (_INT, _LONG),
    "deaf": (_INT, _LONG, _LONG),
    "block": (_INT, _LONG, _INT),
    "saturate": (_INT, _DOUBLE),
    "unwatched": (_INT, _INT),
    "hand": (_INT, _DOUBLE, _DOUBLE),
    "mechanics": (_INT, _DOUBLE, _INT, _DOUBLE, _DOUBLE),
    "held_at": (_INT, _DOUBLE, _DOUBLE, _DOUBLE, _DOUBLE, _DOUBLE),
    "script": (_INT, _POINTER, _LONG),
    "log": (_INT, _POINTER, _LONG),
}


@functools.cache
def _loaded() -> ctypes.CDLL:
    library = loaded(SOURCE, "libdrd.so.3", _SIGNATURES)
    library.standin_illegal.restype = ctypes.c_long
    library.standin_motors.restype = ctypes.c_double
    return library


class StandIn(StandInLibrary):
    """Sets the scene of the stand-in library and reads what it saw."""

    READING = READING

    def disconnect(self) -> None:
        """Take the devices away: the library stays loaded, and no other test may find one in it."""
        for device in (SIGMA, FALCON):
            self.library.standin_there(device, 0)

    def sent(self, device: int) -> NDArray[np.float64]:
        """Forces [N] and torques [N m] that were set, libdhd's axes, shape (n, 6)."""
        return self.log(device, 6)


def fresh_stand_in() -> StandIn:
    """The stand-in as new: a sigma.7 with motors in its wrist, and a Falcon, in a hand at rest."""
    stand_in = StandIn(_loaded())
    stand_in.library.standin_reset()
    return stand_in
