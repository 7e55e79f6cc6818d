"""What gets by under the rims of a step's cavities, of all cups in one row."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.enclosure import Enclosure

Array = NDArray[np.float64]


def seeping(enclosures: Sequence[Enclosure], h: float) -> Array:
    """s = h G [m3/Pa] (k + 1, k + 1) between the active cavities of all cups and, last, the outside."""
    k = sum(len(enclosure.active) for enclosure in enclosures)
    out, first = np.zeros((k + 1, k + 1)), 0
    for enclosure in enclosures:
        last = first + len(enclosure.active)
        own, its = [*range(first, last), k], [*enclosure.active.tolist(), -1]
        out[np.ix_(own, own)] = h * enclosure.conductance[np.ix_(its, its)]
        first = last
    return out


def seeped(enclosures: Sequence[Enclosure], pressure: Array, atmosphere: float, h: float) -> Array:
    """p V [J] (k,) that got out under the rims of the active cavities in a step, at its last pressures."""
    squares = np.append(pressure, atmosphere) ** 2
    return np.asarray((seeping(enclosures, h) * (squares[:, None] - squares)).sum(axis=1)[:-1])
