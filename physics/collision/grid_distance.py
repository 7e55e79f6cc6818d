"""Signed distance sampled on a regular grid, interpolated trilinearly, with the interpolant's own gradient.

On flat faces it is exact; where the surface curves, the distance errs by h^2 and the normal by h, and within
a cell of an edge both err by what the edge turns. House sign: positive outside.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel

MOST_VALUES = 50_000_000
"""Largest grid: 400 MB."""


class GridDistance(NamedTuple):
    """Samples of a distance."""

    lower: NDArray[np.float64]  # (3,) position of the first sample [m]
    spacing: float  # [m]
    values: NDArray[np.float64]  # (nx, ny, nz) [m]


def grid_distance(
    distance_of: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    spacing: float,
) -> GridDistance:
    """Sample a distance over a box [m], (3,) each; `distance_of` maps points (n, 3) to distances (n,) [m].

    Raises InputError for a spacing that is not positive or so fine that the grid would not fit in memory.
    """
    if not spacing > 0.0:
        raise InputError(f"the grid's spacing is {spacing} m, expected a positive length.")
    cells = np.maximum(np.ceil((upper - lower) / spacing * (1.0 - 1e-12)), 1.0)
    if np.prod(cells + 1.0) > MOST_VALUES:
        raise InputError(
            f"a spacing of {spacing:g} m would cut the box of {_lengths(upper - lower)} m into "
            f"{np.prod(cells + 1.0):.3g} samples; at most {MOST_VALUES:g} are kept, so take a coarser one."
        )
    shape = tuple(cells.astype(int) + 1)
    points = lower + spacing * np.indices(shape).reshape(3, -1).T
    return GridDistance(lower.copy(), float(spacing), distance_of(points).reshape(shape))


def no_grid_distance() -> GridDistance:
    """The grid of nothing, where another kind is used."""
    return GridDistance(np.zeros(3), 1.0, np.zeros((0, 0, 0)))


def _lengths(size: NDArray[np.float64]) -> str:
    return " x ".join(f"{length:.3g}" for length in size)


@kernel
def grid_block(grid, points, index, count, distance, normal):
    """Distance [m] (n,) and normal (n, 3) of points[index[:count]], `points` (n, 3) [m].

    A point outside of the grid takes the values of its border cell, continued.
    """
    v = grid.values
    per = 1.0 / grid.spacing
    for k in range(count):
        i = index[k]
        x = per * (points[i, 0] - grid.lower[0])
        y = per * (points[i, 1] - grid.lower[1])
        z = per * (points[i, 2] - grid.lower[2])
        a = min(max(int(x), 0), v.shape[0] - 2)
        b = min(max(int(y), 0), v.shape[1] - 2)
        c = min(max(int(z), 0), v.shape[2] - 2)
        x, y, z = x - a, y - b, z - c
        # along z on the four upright edges of the cell, then along y on two, then along x
        v00 = v[a, b, c] + z * (v[a, b, c + 1] - v[a, b, c])
        v01 = v[a, b + 1, c] + z * (v[a, b + 1, c + 1] - v[a, b + 1, c])
        v10 = v[a + 1, b, c] + z * (v[a + 1, b, c + 1] - v[a + 1, b, c])
        v11 = v[a + 1, b + 1, c] + z * (v[a + 1, b + 1, c + 1] - v[a + 1, b + 1, c])
        v0, v1 = v00 + y * (v01 - v00), v10 + y * (v11 - v10)
        distance[i] = v0 + x * (v1 - v0)
        gx = v1 - v0
        gy = (1.0 - x) * (v01 - v00) + x * (v11 - v10)
        gz = (1.0 - x) * (
            (1.0 - y) * (v[a, b, c + 1] - v[a, b, c]) + y * (v[a, b + 1, c + 1] - v[a, b + 1, c])
        ) + x * (
            (1.0 - y) * (v[a + 1, b, c + 1] - v[a + 1, b, c])
            + y * (v[a + 1, b + 1, c + 1] - v[a + 1, b + 1, c])
        )
        length = (gx * gx + gy * gy + gz * gz) ** 0.5
        scale = 1.0 / length if length > 0.0 else 0.0
        normal[i, 0] = scale * gx
        normal[i, 1] = scale * gy
        normal[i, 2] = scale * gz
