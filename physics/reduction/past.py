"""What the servo did to a body in the ticks of a period."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Past(NamedTuple):
    """Of one body."""

    forces: NDArray[np.float64]
    """(ticks, k, 3) [N] on its points `local`."""
    local: NDArray[np.intp]
    """(k,)"""
    heard: NDArray[np.bool_]
    """(k,) whether the last frame's model took part in that force: points with a slot in it."""
    tail: int
    """Ticks at the end that the full body makes itself."""
    work: float
    """[J] what the forces did to the model in all these ticks."""
