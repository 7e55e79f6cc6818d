"""The first start on a machine: what a system compiles is shared out among processes with one cache.

Compiling takes a minute or more, once for each version of the sources. Two processes share it, the tick and
the servo in one and the slow loop in the other, while the program itself goes on drawing. It then finds the
compiled code in the cache. Where a process fails, or there is no cache, the program compiles as it meets what
it needs, and any error is told there. A system's first scene, which is what a new user starts, waits for what
that scene calls, and no more; any other scene waits for all.
"""

import gc
import hashlib
import importlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from palpo.app.cli.progress import Progress
from palpo.app.systems.system import find_system
from palpo.config.load import load_scene
from palpo.config.schema.scene import BaseScene
from palpo.config.systems import all_systems
from palpo.physics.numerics.kernels import (
    DAY,
    cache_home,
    compiled_share,
    machine_name,
    source_digest,
)
from palpo.physics.numerics.own import has_told, tell
from palpo.physics.numerics.shipped import NATIVE, shipped

LOOK = 0.25
"""Seconds between two looks at the processes."""
REACHED, REACHED_FIRST = 0.82, 0.55
"""About the share of the kernels in its sources that a system needs, or its first scene."""
MENDED = 3
"""Status of a process that found files in the cache that are damaged, and made them anew."""


def compile_ahead(spec: BaseScene, progress: Progress) -> None:
    """Have all that a scene needs compiled, unless it came with the program, or lies in the cache."""
    system = spec.system  # type: ignore[attr-defined]
    if system in all_systems() and NATIVE not in os.environ and shipped(generation_of(system)) is None:
        first = find_system(system).first
        fill_cache(system, progress, first if first and spec == load_scene(first) else "")


def fill_cache(system: str, progress: Progress, scene: str = "") -> None:
    """Compile what a system needs for this processor, unless that was done before for these very sources.

    scene: what this shipped scene needs, and no more.
    """
    home = cache_home()
    if home is None:
        return
    found = _digest(generation_of(system), machine_name())
    everything = home / f"{system}-{found}.compiled"
    done = home / f"{system}-{scene}-{found}.compiled" if scene else everything
    if done.exists() or everything.exists():
        return
    most = REACHED_FIRST if scene else REACHED
    with progress.stage("compiling, once on this machine"), _lanes(system, scene) as processes:
        while any(process.poll() is None for process in processes):
            progress.come_to(min(0.99, compiled_share(_source(system)) / most))
            time.sleep(LOOK)
    statuses = {process.returncode for process in processes}
    if MENDED in statuses:
        tell(home)
    if statuses <= {0, MENDED}:
        _forget_old(home, system)
        done.touch()


def _forget_old(home: Path, system: str) -> None:
    """Take away old marks of a system; a young one may be of another copy of Palpo in use, whose
    compiling would take away this one's in turn."""
    for mark in home.glob(f"{system}-*.compiled"):
        with suppress(FileNotFoundError):
            if time.time() - mark.stat().st_mtime > DAY:
                mark.unlink()


@contextmanager
def _lanes(system: str, scene: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes, ended with the block; what scenes have computed before they compute again."""
    with TemporaryDirectory() as empty:
        own = {"XDG_CACHE_HOME": empty, "NUMBA_CACHE_DIR": str(cache_home()), NATIVE: "1"}
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "palpo.app.cli.compile_ahead", system, lane, scene],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | own,
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


def _source(system: str) -> Path:
    """The file that imports all that a system runs."""
    return find_system(system).folder / "rig.py"


def generation_of(system: str) -> str:
    """What all compiled code of a system follows from but the processor, as a digest."""
    sources = _source(system), find_system(system).folder / "__init__.py", Path(__file__)
    return _digest(system, *(source_digest(path) for path in sources))


def _digest(*words: str) -> str:
    return hashlib.sha256(" ".join(words).encode()).hexdigest()[:20]


def _compile_tick(system: str, scene: str) -> None:
    """Kinds of bodies, parts, the ticks and what drives them; for all scenes, what slow loops lack."""
    found = find_system(system)
    for name in found.kinds:
        importlib.import_module(name)
    found.rehearse_parts()
    for name in found.ticks:
        importlib.import_module(name)
    _compile_servo()
    if not scene:
        found.rehearse_beside()


def _compile_servo() -> None:
    """The servo's drivers."""
    from palpo.haptics.backends.mock import make_mock
    from palpo.haptics.device_spec import TOUCH
    from palpo.haptics.drain import drain_rows
    from palpo.haptics.drivers import compile_servo, servo_baseline
    from palpo.haptics.limits import make_limits
    from palpo.haptics.servo import make_servo
    from palpo.physics.exchange.port import make_port

    device = make_mock(TOUCH, np.zeros((1, 3)))
    servo = make_servo(0, 0, make_port(), device, make_limits(TOUCH.max_force))
    compile_servo(servo)
    drain_rows(servo)
    servo_baseline(1, realtime=False)


def _compile_loops(system: str, scene: str) -> None:
    """What the tick calls by address, and the slow loop of a scene that no tick moves."""
    found = find_system(system)
    for name in found.beside:
        importlib.import_module(name)
    found.rehearse([scene] if scene else found.rehearsed)


LANES: Mapping[str, Callable[[str, str], None]] = {"tick": _compile_tick, "loops": _compile_loops}
"""What compiles a share of a system, or of one of its scenes, each in a process, by name."""


def _end_with_parent() -> None:
    """Stop when the program that waits for this process is gone, however it ended."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def compile_lane(system: str, lane: str, scene: str) -> int:
    """Compile a share of a system, or of one of its scenes, in this process; the status that it ends with."""
    # what compiling makes stays until its end, and looking through it for garbage took a tenth of the time
    gc.set_threshold(200_000, 50, 100)
    LANES[lane](system, scene)
    return MENDED if has_told() else 0


if __name__ == "__main__":
    _end_with_parent()
    sys.exit(compile_lane(*sys.argv[1:]))
