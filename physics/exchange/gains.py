"""The gains of a hold: the spring and the damper between the hand and what it holds.

The same four wherever something is held through a coupling; an operator may change them while a scene runs.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Gains(NamedTuple):
    """Of a hold's position and of its orientation."""

    stiffness: float = 1000.0  # [N/m]
    damping: float = 1.0  # [N s/m]
    turn_stiffness: float = 2.0  # [N m/rad]
    turn_damping: float = 2e-3  # [N m s/rad]


COUPLING = Gains()
"""Where nothing else is chosen."""

GAINS = np.dtype((np.record, [(name, np.float64) for name in Gains._fields]))
"""A record of Gains, which compiled code reads by the same names."""


def gains_record(gains: Gains) -> NDArray[np.void]:
    """(1,) of GAINS."""
    return np.array([tuple(gains)], GAINS)
