"""What the servo did to a body in the ticks of a period."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.reduction.interface_model import InterfaceState

JOLT = 0.3
"""Share of what acts on a floating body that moves it and does not squeeze it, from which on the body makes
the last ticks of a period itself. What lands stirs up ways to move that the model's basis has not, mostly of
high frequency, which begins to settle there. Forces of the past answer to nothing, and a body that is pressed
between two others would topple under them."""


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

    def jolts(self, weight: NDArray[np.float64], dt: float) -> bool:
        """Whether these forces and a weight (3,) [N] move a body by JOLT of what acts on it; dt [s]."""
        load = self.load * (dt / self.span)
        squeeze = np.linalg.norm(load, axis=1).sum()
        return bool(squeeze > 0.0 and np.linalg.norm(load.sum(axis=0) + weight) > JOLT * squeeze)
