"""Memory that is there before the servo first writes to it.

What np.zeros gives is a promise: a page comes when it is first written, by way of the system, which takes a
microsecond a page where nothing else asks for memory, and milliseconds where other threads do. The servo
writes to rings of megabytes a page at a time, and would meet one in every tick of its first seconds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def resident(shape: int | Sequence[int], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Zeros of that shape, all of whose pages have been written."""
    out = np.empty(shape, dtype)
    out.fill(0)
    return out
