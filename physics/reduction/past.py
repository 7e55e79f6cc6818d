"""What the servo did to a body in the ticks of a period."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.reduction.interface_model import InterfaceState

JOLT = 0.3
"""Change of a body's load from one period to the next, by the larger of the two, from which on the body makes
the last ticks of the period itself. What landed on it moved it in ways that the model's basis has not, mostly
of high frequency, which begins to settle there. Forces of the past answer to nothing: a body that is squeezed
would topple under them, but its load changes little."""


class Tail(NamedTuple):
    """The last ticks of a period."""

    model: InterfaceState
    """Where the servo had its model before them."""
    forces: NDArray[np.float64]
    """(ticks, k, 3) [N] on the points `Past.local`."""


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
    tail: Tail | None = None
    """None where the body has no ticks of its own to make."""


class Jolts:
    """Notices where a body's load changes."""

    def __init__(self) -> None:
        self._force = np.zeros(3)

    def felt(self, load: NDArray[np.float64]) -> bool:
        """Whether the sum of a load (k, 3) [N], the mean of a period, has changed by JOLT since then."""
        before, self._force = self._force, load.sum(axis=0)
        larger = max(np.linalg.norm(before), np.linalg.norm(self._force))
        return bool(np.linalg.norm(self._force - before) > JOLT * larger)
