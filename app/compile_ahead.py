"""The first start on a machine: what a system compiles is shared out among processes with one cache.

Compiling takes a minute or more, once for each version of the sources. Two processes share it, the tick in
one and the servo with the slow loop in the other, while the program itself goes on drawing. It then finds the
compiled code in the cache. Where a process fails, or there is no cache, the program compiles as it meets what
it needs, and any error is told there.
"""

import hashlib
import importlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from app.progress import Progress
from physics.kernels import cache_home, machine_name, source_digest

ROOT = Path(__file__).resolve().parents[1]
TICKS = {
    "multirate": ("physics.systems.callback",),
    "hapco": ("physics.systems.hapco_servo", "physics.systems.hapco_multirate"),
    "snap": ("physics.systems.snap_servo",),
    "suction": ("physics.systems.suction_servo",),
}
"""By system: the modules whose import compiles its ticks."""
SCENES = {"multirate": "wire", "hapco": "hapco-block", "snap": "snap", "suction": "suction-cube"}
"""By system: the scene that is rehearsed."""
LANES = ("tick", "loops")
LOOK = 0.1
"""Seconds between two looks at the processes."""


def compile_ahead(system: str, progress: Progress) -> None:
    """Fill the cache with what a system needs, unless that was done before for these very sources."""
    home = cache_home()
    if home is None or system not in TICKS:
        return
    done = home / f"{system}-{_generation(system)}.compiled"
    if done.exists():
        return
    with progress.stage(f"compiling {system}, once on this machine"), _lanes(system) as processes:
        while any(process.poll() is None for process in processes):
            time.sleep(LOOK)
    if all(process.returncode == 0 for process in processes):
        for old in home.glob(f"{system}-*.compiled"):
            old.unlink(missing_ok=True)
        done.touch()


@contextmanager
def _lanes(system: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes, ended with the block."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "app.compile_ahead", system, lane],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for lane in LANES
    ]
    try:
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def _generation(system: str) -> str:
    """What the compiled code of a system depends on, as a digest."""
    digests = [source_digest(ROOT / "app" / name) for name in (f"{system}.py", "compile_ahead.py")]
    return hashlib.sha256(" ".join([*digests, machine_name()]).encode()).hexdigest()[:20]


def _compile_tick(system: str) -> None:
    for name in TICKS[system]:
        importlib.import_module(name)


def _compile_loops(system: str) -> None:
    """The servo's drivers, and the slow loop of a scene that no tick moves."""
    from haptics.backends.mock import make_mock
    from haptics.device import TOUCH
    from haptics.limits import make_limits
    from haptics.servo import compile_servo, make_servo
    from physics.exchange.port import make_port

    device = make_mock(TOUCH, np.zeros((1, 3)))
    compile_servo(make_servo(0, 0, make_port(), device, make_limits(TOUCH.max_force)))
    if system == "multirate":
        from app.build import build_scene
        from config.load import load_scene
        from physics.systems.lock_step import LockStep

        lock = LockStep(build_scene(load_scene(SCENES[system])), "krylov")
        lock.advance(3 * lock.ratio, lambda n: n)
        lock.close()
    elif system == "suction":
        from app.suction_build import rehearse

        rehearse()


if __name__ == "__main__":
    {"tick": _compile_tick, "loops": _compile_loops}[sys.argv[2]](sys.argv[1])
