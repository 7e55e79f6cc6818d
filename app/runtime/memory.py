"""What a build will take, before it is begun, against what the machine still has.

A program that asks for more is not refused by the system but slowed down, or ended without a word. So:
    address space   START to begin with: the libraries map that much (measured: 0.6 to 1.1 GB)
    K^-1            COPIES dense matrices of 8 (3 s)^2 bytes, s nodes on the surface: as it is made or read,
                    and as it is kept
    factor of K     8 * 9 * FILL n^(4/3) bytes, n nodes: the order of fill of a nested dissection in space
                    (George and Liu, Computer Solution of Large Sparse Positive Definite Systems, 1981), FILL
                    measured
    K itself        ENTRY bytes for each of the (3 c)^2 entries of an element's matrix, c corners: indices and
                    values as triplets and as rows
"""

import sys
from pathlib import Path

from palpo.config.words import Refusal

START = 1_300_000_000
COPIES, FILL, ENTRY = 2, 8.0, 40
LIMITS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""A container's limit and what it has taken, of both versions of control groups."""


def require_start() -> None:
    """Raise Refusal where the address space (`ulimit -v`) is too small for the libraries to be loaded."""
    left = _address_space()
    if left is not None and left < START:
        raise Refusal(
            f"palpo needs {START / 1e9:.1f} GB of address space to begin, and {left / 1e9:.1f} GB are left; "
            "raise the limit by `ulimit -v unlimited`"
        )


def require_stiffness(key: str, nodes: int, elements: int, corners: int) -> None:
    """Raise Refusal for a body (its key in the scene) whose K and factor the machine cannot hold."""
    _require(f"{key}: a stiffness of {nodes:,} nodes", stiffness_bytes(nodes, elements, corners))


def require_compliance(key: str, nodes: int, surface: int, elements: int, corners: int) -> None:
    """Raise Refusal for a body (its key in the scene) whose K^-1 on its surface the machine cannot hold."""
    needed = COPIES * 8 * (3 * surface) ** 2 + stiffness_bytes(nodes, elements, corners)
    _require(f"{key}: K^-1 of {surface:,} surface nodes", needed)


def stiffness_bytes(nodes: int, elements: int, corners: int) -> int:
    """Memory [bytes] in which K is assembled and factored, as above."""
    return int(8 * 9 * FILL * nodes ** (4 / 3)) + ENTRY * elements * (3 * corners) ** 2


def _require(what: str, needed: int) -> None:
    left = memory_left()
    if left is not None and needed > left:
        raise Refusal(
            f"{what} takes about {needed / 1e9:.2f} GB, and {left / 1e9:.2f} GB are left; "
            "give it fewer elements"
        )


def memory_left() -> int | None:
    """Bytes that this process may still take; None where the system does not say."""
    told = [_address_space(), _available(), *(_left_of(*files) for files in LIMITS)]
    return min((bytes_ for bytes_ in told if bytes_ is not None), default=None)


def _address_space() -> int | None:
    """What `ulimit -v` leaves."""
    if sys.platform == "win32":
        return None
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _field("/proc/self/status", "VmSize")
    return None if limit == resource.RLIM_INFINITY or taken is None else max(0, limit - taken)


def _available() -> int | None:
    return _field("/proc/meminfo", "MemAvailable")


def _field(path: str, name: str) -> int | None:
    """A field of the kernel's, which counts in kB."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(f"{name}:")]
    return 1024 * int(found[0]) if found else None


def _left_of(limit: str, taken: str) -> int | None:
    """What a container's limit leaves; "max" is none."""
    try:
        return max(0, int(Path(limit).read_text()) - int(Path(taken).read_text()))
    except (OSError, ValueError):
        return None
