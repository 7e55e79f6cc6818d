"""A maker's library that is not here, played by C sources of the tests: compiled, loaded and led."""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray


def build(source: Path, name: str, folder: Path) -> Path:
    """Compile a source to the shared library of a name; skips the test, with the reason, where that fails."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip(f"the stand-in {name} needs Linux and a C compiler named cc")
    # its own names are its own, also beside another stand-in
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    flags += ["-Wl,-Bsymbolic", f"-Wl,-soname,{name}"]
    library = folder / name
    subprocess.run([compiler, *flags, "-o", library, source, "-lpthread", "-lm"], check=True)
    return library


def loaded(source: Path, name: str, signatures: Mapping[str, tuple]) -> ctypes.CDLL:
    """The stand-in in this process, where the loader knows it by its name: CDLL(name) finds it.

    signatures: arguments of the functions standin_*, by what follows.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = ctypes.CDLL(str(build(source, name, Path(folder))), mode=ctypes.RTLD_GLOBAL)
    for function, arguments in signatures.items():
        getattr(library, f"standin_{function}").argtypes = arguments
    library.standin_log.restype = ctypes.c_long
    return library


@dataclass
class StandInLibrary:
    """Sets the scene of a stand-in and reads what it saw."""

    READING: ClassVar[int]
    """Numbers in a reading."""

    library: ctypes.CDLL
    scripts: list[NDArray[np.float64]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., int]:
        """The C function standin_`name`."""
        return getattr(self.library, f"standin_{name}")

    def script(self, device: int, readings: ArrayLike) -> None:
        """Readings, shape (n, READING), one a tick, the last one held."""
        table = np.ascontiguousarray(readings, dtype=np.float64)
        assert table.shape[1] == self.READING
        self.scripts.append(table)
        self.library.standin_script(device, table.ctypes.data, len(table))

    def log(self, device: int, columns: int) -> NDArray[np.float64]:
        """What the device was told, shape (n, columns)."""
        out = np.empty((200_000, columns))
        n = self.library.standin_log(device, out.ctypes.data, len(out))
        return out[:n].copy()
