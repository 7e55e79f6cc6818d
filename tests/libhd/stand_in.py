"""The stand-in libHD, compiled and loaded so that the unmodified pyOpenHaptics finds it, and its controls."""

import ctypes
import functools
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

SOURCE = Path(__file__).with_name("stand_in.c")
DEFAULT, LEFT = 0, 1
NAMES = (None, "Left Hand")
READING = 23
"""Numbers in a reading: transform (16) [mm], velocity (3) [mm/s], angular velocity (3) [rad/s], buttons."""

_INT, _LONG, _DOUBLE, _POINTER = ctypes.c_int, ctypes.c_long, ctypes.c_double, ctypes.c_void_p
_SIGNATURES = {
    "connect": (_INT, _INT),
    "calibration": (_INT, ctypes.c_uint, ctypes.c_uint),
    "fault": (_INT, ctypes.c_uint, _INT, _LONG, _LONG),
    "unplug": (_INT, _LONG),
    "script": (_INT, _POINTER, _LONG),
    "hand": (_INT, _DOUBLE, _DOUBLE),
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
    "block": (_INT, _LONG, _INT),
    "log": (_INT, _POINTER, _LONG),
    "counts": (_POINTER,),
}


def build(folder: Path) -> Path:
    """Compile the stand-in to libHD.so; skips the test, with the reason, where that cannot be done."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("the stand-in libHD needs Linux and a C compiler named cc")
    library = folder / "libHD.so"
    # its own names are its own, also beside another stand-in
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    flags += ["-Wl,-Bsymbolic", "-Wl,-soname,libHD.so"]
    subprocess.run([compiler, *flags, "-o", library, SOURCE, "-lpthread", "-lm"], check=True)
    return library


@functools.cache
def _loaded() -> ctypes.CDLL:
    """The stand-in in this process, where the loader knows it by its SONAME: CDLL("libHD.so") finds it."""
    with tempfile.TemporaryDirectory() as folder:
        library = ctypes.CDLL(str(build(Path(folder))), mode=ctypes.RTLD_GLOBAL)
    for name, arguments in _SIGNATURES.items():
        getattr(library, f"standin_{name}").argtypes = arguments
    library.standin_log.restype = ctypes.c_long
    return library


@dataclass
class StandIn:
    """Sets the scene of the stand-in library and reads what it saw."""

    library: ctypes.CDLL
    scripts: list[NDArray[np.float64]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., int]:
        """The C function standin_`name`."""
        return getattr(self.library, f"standin_{name}")

    def disconnect(self) -> None:
        """Take the devices away: the library stays loaded, and no other test may find a Touch in it."""
        for device in range(len(NAMES)):
            self.library.standin_connect(device, 0)

    def script(self, device: int, readings: ArrayLike) -> None:
        """Readings, shape (n, READING), one a frame, the last one held."""
        table = np.ascontiguousarray(readings, dtype=np.float64)
        assert table.shape[1] == READING
        self.scripts.append(table)
        self.library.standin_script(device, table.ctypes.data, len(table))

    def fault(self, device: int, code: int, start: int, stop: int, internal: int = 0) -> None:
        """Raise an error at the end of frames [start, stop)."""
        self.library.standin_fault(device, code, internal, start, stop)

    def forces(self, device: int) -> NDArray[np.float64]:
        """Forces [N] that the device applied, one a frame, shape (n, 3)."""
        out = np.empty((200_000, 3))
        n = self.library.standin_log(device, out.ctypes.data, len(out))
        return out[:n].copy()

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
