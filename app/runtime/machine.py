"""What a run's figures depend on besides the program: the machine, its permissions, the libraries."""

from __future__ import annotations

import os
import platform
import threading
from importlib import metadata
from pathlib import Path

PRIORITY = 80
"""What the servo asks for; a user may have been granted a lower one."""
LIBRARIES = ("palpo", "numpy", "scipy", "numba", "llvmlite", "qdldl", "h5py", "PyOpenGL", "glfw")


def machine_info() -> dict[str, str]:
    """Name to value, in the order in which they are printed."""
    info = {
        "processor": _processor(),
        "cores available": str(cores()),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "real-time scheduling": realtime_permission(),
    }
    return info | {name: found for name in LIBRARIES if (found := version(name))}


def ask_realtime(priority: int = PRIORITY) -> tuple[bool, str]:
    """Whether this process may use SCHED_FIFO at a priority, by asking on a thread that ends at once."""
    if not hasattr(os, "sched_setscheduler"):
        return False, "not offered by this system"
    answer: list[tuple[bool, str]] = []

    def ask() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
            answer.append((True, "SCHED_FIFO permitted"))
        except OSError as error:
            answer.append((False, f"SCHED_FIFO refused ({error.strerror})"))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return answer[0]


def realtime_permission() -> str:
    """What `ask_realtime` found, in words."""
    return ask_realtime()[1]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{size / 2**30:.1f} GiB"


def version(name: str) -> str:
    """Version of an installed distribution; empty if it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
