"""The band around a solid where its distance matters, and a cheap lower bound of the distance beyond it.

Box cells carry the least distance any of their points can have. A point whose bound exceeds the band is done
with after one look-up; most points of most ticks are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined


class NearBand(NamedTuple):
    """Cells over the solid's box widened by the band."""

    band: float  # distance [m] up to which a distance is computed
    solid: NDArray[np.float64]  # (2, 3) lower and upper corner of the solid [m]
    lower: NDArray[np.float64]  # (3,) of the cells [m]
    per: NDArray[np.float64]  # (3,) cells per metre
    bound: NDArray[np.float64]  # (nx, ny, nz) least distance in each cell [m]


def everywhere(vertices: NDArray[np.float64]) -> NearBand:
    """A band without end: every distance is computed. Vertices (n, 3) [m]."""
    solid = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
    return NearBand(np.inf, solid, solid[0], np.zeros(3), np.full((1, 1, 1), -np.inf))


@inlined
def least_distance(near, p):
    """Lower bound [m] of the distance of the point p, (3,) [m]."""
    d2 = 0.0
    for i in range(3):
        gap = max(near.solid[0, i] - p[i], p[i] - near.solid[1, i])
        if gap > 0.0:
            d2 += gap * gap
    if d2 > near.band * near.band:
        return d2**0.5
    # within the band of the solid's box lie the cells, up to rounding at their border
    n = near.bound.shape
    i = min(max(int(near.per[0] * (p[0] - near.lower[0])), 0), n[0] - 1)
    j = min(max(int(near.per[1] * (p[1] - near.lower[1])), 0), n[1] - 1)
    k = min(max(int(near.per[2] * (p[2] - near.lower[2])), 0), n[2] - 1)
    return near.bound[i, j, k]
