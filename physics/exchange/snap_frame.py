"""What the servo of a snap connector exchanges with the slow loop: settings one way, a picture the other.

The servo computes everything itself. It publishes coordinates, from which the slow loop reconstructs the
surfaces. Every array has the three slots of a triple buffer
as its leading dimension.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS

VALUES = np.dtype(
    [("friction", np.float64), ("restitution", np.float64), ("correction", np.float64), ("solver", np.int64),
     ("tolerance", np.float64), ("sweeps", np.int64), ("clusters", np.int64)]
)  # fmt: skip
"""What may change: mu and eps of all contacts [-]; share of a penetration that a contact's law takes away
in a step [-], 1 as in 002, 0 none of it; MAXIMAL_DISSIPATION, GAUSS_SEIDEL or ANDERSON, its natural-map
residual and most sweeps; most contacts of a prong, 0 for every point that touches."""

MAXIMAL_DISSIPATION, GAUSS_SEIDEL, ANDERSON = range(3)
"""Values of VALUES' solver."""

ENERGY = np.dtype(
    [(name, np.float64) for name in ("kinetic", "elastic", "coupling", "plug")]
    + [(name, np.float64) for name in ("normal", "friction", "correction", "target", "damping")]
)
"""[J] Energy of the prongs, of the couplings between their segments, of the plug and its hold. Then what was
done since the start: by normal forces, by friction, and, of the normal's, for penetrations and gaps; by the
hand on the hold; and taken by all dampings."""

GAINS = 5
"""Matrices of palpo.physics.bodies.admittance.PlugModel: mass, damping, stiffness, inverse, follow."""


class SnapSettings(NamedTuple):
    """What an operator may change, slow loop to servo."""

    value: NDArray[np.void]  # (3,) of VALUES
    gains: NDArray[np.float64]  # (3, GAINS, 6, 6)


class SnapPicture(NamedTuple):
    """The connector at the end of a tick, servo to slow loop, beside a HandState."""

    coordinates: NDArray[np.float64]  # (3, n) of all prongs, one after the other
    hand: NDArray[np.float64]  # (3, 6) of the hold on the hand [N], [N m]
    floor: NDArray[np.float64]  # (3, 3) [N] of the prongs on what they stand on
    energy: NDArray[np.void]  # (3,) of ENERGY


def make_snap_settings(values: NDArray[np.void], gains: NDArray[np.float64]) -> SnapSettings:
    """Settings that start from these values (1,) of VALUES and gains (GAINS, 6, 6)."""
    return SnapSettings(
        np.tile(values, SLOTS),
        np.tile(np.asarray(gains, float), (SLOTS, 1, 1, 1)),
    )


def make_snap_picture(coordinates: int) -> SnapPicture:
    """An empty picture of that many coordinates."""
    return SnapPicture(
        np.zeros((SLOTS, coordinates)), np.zeros((SLOTS, 6)), np.zeros((SLOTS, 3)), np.zeros(SLOTS, ENERGY)
    )
