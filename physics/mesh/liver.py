"""A body with the form of a liver: a thick right lobe, a thin left one, hollow below."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.stuffing import stuffed
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]

RIGHT = (-0.17, 0.0, 0.0), (0.33, 0.21, 0.27)
"""Centre and half axes of a lobe, in widths of the whole."""
LEFT = (0.22, 0.04, 0.03), (0.30, 0.11, 0.18)
HOLLOW = (0.06, -0.56, 0.0), 0.5
"""Centre and radius of the ball that is taken away below."""
BLEND, EDGE = 0.05, 0.03
"""Lengths over which the lobes run into one another and into the hollow."""
BOX = np.array([[-0.62, -0.3, -0.4], [0.62, 0.3, 0.4]])


def liver(width: float, spacing: float) -> TetMesh:
    """Tetrahedra of a liver `width` [m] across, along x, on a lattice of cubes of edge `spacing` [m].

    A width of 15 cm holds 0.3 litres; a spacing of 5.75 mm then gives 20,000 tetrahedra. Left is +x, up +y.
    Raises InputError for lengths that are not positive and a spacing above a tenth of the width.
    """
    for name, value in (("width", width), ("spacing", spacing)):
        if not (np.isfinite(value) and value > 0.0):
            raise InputError(f"liver: {name} is {value} m, expected a positive length.")
    if spacing > width / 10.0:
        raise InputError(
            f"liver: spacing is {spacing} m, too coarse for a width of {width} m; "
            f"use {width / 10.0:.4g} m at most."
        )
    return stuffed(lambda x: _inside(x / width), width * BOX, spacing)


def _inside(x: Floats) -> Floats:
    """Positive inside; near the surface about the distance to it, in widths."""
    lobes = _either(_lobe(x, *RIGHT), _lobe(x, *LEFT), BLEND)
    centre, radius = HOLLOW
    outside = np.linalg.norm(x - np.array(centre), axis=1) - radius
    return -_either(-lobes, -outside, EDGE)


def _lobe(x: Floats, centre: tuple[float, ...], half: tuple[float, ...]) -> Floats:
    return min(half) * (1.0 - np.linalg.norm((x - np.array(centre)) / np.array(half), axis=1))


def _either(a: Floats, b: Floats, over: float) -> Floats:
    """The larger of two, rounded off where they differ by less than `over`."""
    share = np.clip(0.5 + 0.5 * (a - b) / over, 0.0, 1.0)
    return b + (a - b) * share + over * share * (1.0 - share)
