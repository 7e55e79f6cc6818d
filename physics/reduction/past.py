"""What the servo did to a body in the ticks of a period."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Past(NamedTuple):
    """Of one body."""

    load: NDArray[np.float64]
    """(k, 3) [N] sum over the ticks of the forces on its points `local`."""
    local: NDArray[np.intp]
    """(k,)"""
    work: float
    """[J] what the forces did to the model in all these ticks."""
    span: float
    """[s] how long they took."""
