"""What tests of runs read of a recording."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.haptics.recording import read_recording


def columns_of(path: Path) -> Any:
    """The columns of a recording by name."""
    return read_recording(path).columns


def force(columns: Any, kind: str = "force") -> NDArray[np.float64]:
    """Forces of the ticks, shape (n, 3) [N]: commanded, or as `sent`."""
    return np.stack([columns[f"{kind}_{axis}"] for axis in "xyz"], axis=1)
