"""Velocity from an encoder's counts: over the longest time in which they could be those of an even motion.

A difference of two counts in a tick is a multiple of resolution / T, 55 mm/s for a Touch, and a low-pass that
hides this lags. Here the slope to an older position is taken as long as all positions between lie within one
count of the line, which a motion at that speed explains: many ticks for a slow hand, one for a fast one.

Janabi-Sharifi, Hayward and Chen, Discrete-time adaptive windowing for velocity estimation, IEEE Trans.
Control Systems Technology 8(6), 2000: the end-fit window of first order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import kernel

WINDOW = 16
"""Positions that are kept: the longest slope is over one less, 3.7 mm/s for one count of a Touch."""
ROUNDING = 1e-9
"""Distance from a line [m] that a position without an encoder may have."""


class VelocityWindow(NamedTuple):
    """The last positions of a device's port."""

    past: NDArray[np.float64]
    """Positions [m], shape (3, WINDOW), the newest first."""
    known: NDArray[np.int64]
    """Whether there was any, shape (1,); before the first, the device is taken to have been there at rest."""
    resolution: float
    """The encoder's count [m]."""
    dt: float


def make_velocity_window(resolution: float, dt: float) -> VelocityWindow:
    """A window that has seen nothing; resolution [m] of the positions, 0 for exact ones, dt [s] apart."""
    return VelocityWindow(np.zeros((3, WINDOW)), np.zeros(1, dtype=np.int64), float(resolution), float(dt))


@kernel
def estimate_velocity(window, position, velocity):
    """Take the position (3,) [m] of this tick; velocity (3,) [m/s] = the slope to it."""
    past, band = window.past, window.resolution + ROUNDING
    for i in range(3):
        for k in range(WINDOW - 1, 0, -1):
            past[i, k] = past[i, k - 1] if window.known[0] else position[i]
        newest = position[i]
        past[i, 0] = newest
        slope = 0.0
        for n in range(1, WINDOW):
            candidate = (newest - past[i, n]) / n
            straight = True
            for k in range(1, n):
                straight = straight and abs(past[i, k] - (newest - k * candidate)) <= band
            if not straight:
                break
            slope = candidate
        velocity[i] = slope / window.dt
    window.known[0] = 1
