"""What tests of runs read of a recording, and which kernels runs call."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.recording import read_recording
from palpo.physics.numerics.kernels import cache_home

ROOT = Path(__file__).resolve().parents[2]


def columns_of(path: Path) -> Any:
    """The columns of a recording by name."""
    return read_recording(path).columns


def force(columns: Any, kind: str = "force") -> NDArray[np.float64]:
    """Forces of the ticks, shape (n, 3) [N]: commanded, or as `sent`."""
    return np.stack([columns[f"{kind}_{axis}"] for axis in "xyz"], axis=1)


def called_beside_ahead(what: str, system: str, folder: Path, scenes: Sequence[str] = ()) -> dict[str, str]:
    """Kernels that scenes of a system call and `palpo compile` does not, each with what called it first.

    scenes: all that are shipped, where none are given.

    As tests/scenes/kernels_called.py finds them, in a process that has called nothing else; what scenes
    compute and keep is kept in `folder`.
    """
    environment = os.environ | {"XDG_CACHE_HOME": str(folder), "NUMBA_CACHE_DIR": str(cache_home())}
    command = [sys.executable, "-m", "tests.scenes.kernels_called", what, system, *scenes]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found
