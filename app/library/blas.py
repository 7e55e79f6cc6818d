"""One thread for BLAS while Palpo works, whenever NumPy was imported.

A product that is shared out among threads is summed in another order, and two runs are not bit-equal any
more. Our own programs settle this before NumPy is imported (`palpo.app`). A user's script may well have
imported it before: then the libraries that it has loaded are asked for one thread at the beginning of each
call of Palpo, and given back the number that they had at its end.
"""

import ctypes
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec, TypeVar

from palpo.app import NUMPY_WAS_FIRST

P = ParamSpec("P")
R = TypeVar("R")
MAPS = Path("/proc/self/maps")
NAMES = ("openblas", "mkl_rt", "blis")
"""In the file names of libraries with threads of their own."""
SYMBOLS = (
    *[
        (f"{prefix}get_num_threads{suffix}", f"{prefix}set_num_threads{suffix}")
        for prefix in ("scipy_openblas_", "openblas_")
        for suffix in ("64_", "")
    ],
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)

Threads = tuple[Callable[[], int], Callable[[int], object]]
"""What asks a library for its number of threads, and what sets it."""


def loaded_libraries() -> list[Path]:
    """The files of BLAS libraries in this process; beside NumPy and SciPy where the system does not tell."""
    if MAPS.exists():
        found = {line.split(maxsplit=5)[-1].strip() for line in MAPS.read_text().splitlines() if "/" in line}
        return sorted(Path(name) for name in found if any(word in Path(name).name for word in NAMES))
    files: list[Path] = []
    for package in ("numpy", "scipy"):
        spec = find_spec(package)
        home = Path(spec.origin or "").parent if spec else Path()
        for folder in (home.parent / f"{package}.libs", home / ".dylibs"):
            files += [file for file in folder.glob("*") if any(word in file.name for word in NAMES)]
    return files


@lru_cache(maxsize=1)
def controls(modules: int) -> tuple[Threads, ...]:
    """Of all libraries in a process that has imported so many modules: an import may load another one."""
    controls = []
    for file in loaded_libraries():
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for ask, tell in SYMBOLS:
            if hasattr(library, ask) and hasattr(library, tell):
                controls.append((getattr(library, ask), getattr(library, tell)))
                break
    return tuple(controls)


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS with one thread within the block; warns once where that cannot be had."""
    if not NUMPY_WAS_FIRST:
        yield
        return
    found = controls(len(sys.modules))
    if not found:
        _warn()
    before = [ask() for ask, _ in found]
    try:
        for _, tell in found:
            tell(1)
        yield
    finally:
        for (_, tell), threads in zip(found, before, strict=True):
            tell(threads)


@cache
def _warn() -> None:
    warnings.warn(
        "NumPy was imported before palpo, and its BLAS library is none whose threads palpo knows how to "
        "limit: two runs may differ in their last bits; import palpo.app first, or set OMP_NUM_THREADS=1",
        RuntimeWarning,
        stacklevel=4,
    )


def single_threaded(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with one thread for BLAS while it runs."""

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with one_thread():
            return function(*args, **kwargs)

    return called
