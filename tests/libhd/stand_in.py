"""The stand-in libHD, compiled and loaded so that the unmodified pyOpenHaptics finds it, and its controls."""

import ctypes
import functools
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.stand_in_library import StandInLibrary, loaded

SOURCE = Path(__file__).with_name("stand_in.c")
NAME = "libHD.so"
DEFAULT, LEFT = 0, 1
NAMES = (None, "Left Hand")
READING = 23
"""Numbers in a reading: transform (16) [mm], velocity (3) [mm/s], angular velocity (3) [rad/s], buttons."""

_INT, _LONG, _DOUBLE, _POINTER = ctypes.c_int, ctypes.c_long, ctypes.c_double, ctypes.c_void_p
_SIGNATURES = {
    "connect": (_INT, _INT),
    "named": (_INT, ctypes.c_char_p),
    "fixed_rate": (_INT,),
    "calibration": (_INT, ctypes.c_uint, ctypes.c_uint),
    "fault": (_INT, ctypes.c_uint, _INT, _LONG, _LONG),
    "unplug": (_INT, _LONG),
    "script": (_INT, _POINTER, _LONG),
    "hand": (_INT, _DOUBLE, _DOUBLE),
    "drop": (_LONG, _LONG),
    "stall": (_LONG,),
    "hang": (_LONG,),
    "slow": (_LONG,),
    "ready_after": (_INT, _LONG),
    "inkwell": (_INT,),
    "drift": (_INT, _LONG, _DOUBLE, _DOUBLE, _DOUBLE),
    "switch": (_INT, _LONG, _LONG, _LONG),
    "motors": (_INT, _DOUBLE, _DOUBLE),
    "velocity_limit": (_INT, _DOUBLE),
    "refuse": (_INT, ctypes.c_uint),
    "bus": (_INT, _INT),
    "held": (_INT,),
    "mechanics": (_INT, _DOUBLE, _INT, _DOUBLE, _DOUBLE),
    "held_at": (_INT, _DOUBLE, _DOUBLE, _DOUBLE, _DOUBLE, _DOUBLE),
    "block": (_INT, _LONG, _INT),
    "log": (_INT, _POINTER, _LONG),
    "counts": (_POINTER,),
}


@functools.cache
def _loaded() -> ctypes.CDLL:
    return loaded(SOURCE, NAME, _SIGNATURES)


class StandIn(StandInLibrary):
    """Sets the scene of the stand-in library and reads what it saw."""

    READING = READING

    def disconnect(self) -> None:
        """Take the devices away: the library stays loaded, and no other test may find a Touch in it."""
        for device in range(len(NAMES)):
            self.library.standin_connect(device, 0)

    def fault(self, device: int, code: int, start: int, stop: int, internal: int = 0) -> None:
        """Raise an error at the end of frames [start, stop)."""
        self.library.standin_fault(device, code, internal, start, stop)

    def forces(self, device: int) -> NDArray[np.float64]:
        """Forces [N] that the device applied, one a frame, shape (n, 3)."""
        return self.log(device, 3)

    @property
    def counts(self) -> dict[str, int]:
        """Ticks, periods lost to the callbacks and to the machine, calls out of order, starts, jobs left."""
        out = np.zeros(6, np.int64)
        self.library.standin_counts(out.ctypes.data)
        names = ("ticks", "overrun", "stolen", "illegal", "starts", "scheduled")
        return dict(zip(names, map(int, out), strict=True))


def fresh_stand_in() -> StandIn:
    """The stand-in as new: two devices, calibrated, in a hand at rest, the scheduler stopped."""
    # found by its files: importing it before the stand-in is loaded would fail
    if importlib.util.find_spec("pyOpenHaptics") is None:
        pytest.skip("pyOpenHaptics is not installed")
    stand_in = StandIn(_loaded())
    stand_in.library.standin_reset()
    return stand_in
