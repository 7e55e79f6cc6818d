"""The stand-in libdhd, compiled and loaded so that the program finds it by its name, and its controls."""

import ctypes
import functools
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
SIGMA, FALCON = 0, 1
READING = 16
"""Numbers in a reading, libdhd's axes: position (3) [m], rotation by rows (9), velocity (3), buttons."""

_INT, _LONG, _DOUBLE, _POINTER = ctypes.c_int, ctypes.c_long, ctypes.c_double, ctypes.c_void_p
_SIGNATURES = {
    "there": (_INT, _INT),
    "uncalibrated": (_INT, _LONG),
    "off": (_INT, _INT, _LONG, _LONG),
    "unplug": (_INT, _LONG),
    "deaf": (_INT, _LONG, _LONG),
    "block": (_INT, _LONG, _INT),
    "saturate": (_INT, _DOUBLE),
    "hand": (_INT, _DOUBLE, _DOUBLE),
    "script": (_INT, _POINTER, _LONG),
    "log": (_INT, _POINTER, _LONG),
}


@functools.cache
def _loaded() -> ctypes.CDLL:
    """The stand-in in this process, where the loader knows it by its SONAME."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("the stand-in libdhd needs Linux and a C compiler named cc")
    flags = [
        "-std=gnu11",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-Wl,-Bsymbolic",
        "-fPIC",
        "-Wl,-soname,libdrd.so.3",
    ]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libdrd.so.3"
        subprocess.run([compiler, *flags, "-o", library, SOURCE, "-lpthread", "-lm"], check=True)
        loaded = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    for name, arguments in _SIGNATURES.items():
        getattr(loaded, f"standin_{name}").argtypes = arguments
    loaded.standin_log.restype = loaded.standin_illegal.restype = ctypes.c_long
    return loaded


@dataclass
class StandIn:
    """Sets the scene of the stand-in library and reads what it saw."""

    library: ctypes.CDLL
    scripts: list[NDArray[np.float64]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., int]:
        """The C function standin_`name`."""
        return getattr(self.library, f"standin_{name}")

    def disconnect(self) -> None:
        """Take the devices away: the library stays loaded, and no other test may find one in it."""
        for device in (SIGMA, FALCON):
            self.library.standin_there(device, 0)

    def script(self, device: int, readings: ArrayLike) -> None:
        """Readings, shape (n, READING), one a tick, the last one held."""
        table = np.ascontiguousarray(readings, dtype=np.float64)
        assert table.shape[1] == READING
        self.scripts.append(table)
        self.library.standin_script(device, table.ctypes.data, len(table))

    def sent(self, device: int) -> NDArray[np.float64]:
        """Forces [N] and torques [N m] that were set, libdhd's axes, shape (n, 6)."""
        out = np.empty((100_000, 6))
        n = self.library.standin_log(device, out.ctypes.data, len(out))
        return out[:n].copy()


def fresh_stand_in() -> StandIn:
    """The stand-in as new: a sigma.7 with motors in its wrist, and a Falcon, in a hand at rest."""
    stand_in = StandIn(_loaded())
    stand_in.library.standin_reset()
    return stand_in
