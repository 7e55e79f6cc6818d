"""An arm with cups of several sizes, pulled by cables (thesis 000, table 4.1; 731 nodes there).

A tapered bar along x with cups below it. Its sheet, a strip with rings of points where the cups are, is
triangulated after Delaunay and stacked: the rings' walls first, then the bar over all of it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from palpo.physics.mesh.extrusion import stack
from palpo.physics.mesh.tet import TetMesh

LENGTH = 0.24
"""Of the arm [m]."""

HALF_WIDTHS = 0.026, 0.012
"""At its base and at its tip [m]."""

THICKNESSES = 0.014, 0.006
"""At its base and at its tip [m]."""

CUPS = ((0.040, 0.0145), (0.098, 0.0120), (0.148, 0.0098), (0.190, 0.0080))
"""Where along the arm each cup's axis is, and the radius of its cavity at the arm [m]."""

RIM, FLARE, HEIGHT = 1.4, 1.15, 0.6
"""Of a cup: outer radius over the inner, radii at the rim over those at the arm, height over the inner."""

WALL_LAYERS, BAR_LAYERS = 2, 2


@dataclass(frozen=True, eq=False)
class Arm:
    """The arm, its cups towards -y, its base at x = 0; node groups are arrays of node indices."""

    mesh: TetMesh
    base: NDArray[np.int64]  # clamped
    undersides: tuple[NDArray[np.int64], ...]  # wall of each cavity
    borders: tuple[NDArray[np.int64], ...]  # of each cavity at its rim, counter-clockwise seen from above
    cables: tuple[NDArray[np.int64], ...]  # nodes, from base to tip, that each cable is led through
    shares: tuple[NDArray[np.float64], ...]  # of the pull in each segment, see _shares
    seed: int  # a node of the outside


def octopus_arm() -> Arm:
    """The arm; cables 0 and 1 run along its lower edges and curl it towards its cups, 2 along its back."""
    points, cup, ring = _sheet()
    triangles = np.sort(Delaunay(points).simplices, axis=1)
    x, z = points.T
    in_wall = (ring[triangles] >= 2).all(axis=1) & (np.ptp(cup[triangles], axis=1) == 0)

    share = x / LENGTH
    thickness = (1.0 - share) * THICKNESSES[0] + share * THICKNESSES[1]
    centre, radius = np.array(CUPS)[cup].T
    levels = []
    for down in np.arange(WALL_LAYERS, 0, -1) / WALL_LAYERS:
        wider = 1.0 + (FLARE - 1.0) * down
        levels.append(np.stack([centre + wider * (x - centre), -down * HEIGHT * radius, wider * z], axis=1))
    levels += [np.stack([x, up * thickness, z], axis=1) for up in np.linspace(0.0, 1.0, BAR_LAYERS + 1)]
    layer = np.arange(WALL_LAYERS + BAR_LAYERS)[:, None]
    # Sorted upward and downward by turns, so that the diagonals do not couple stretch with twist.
    cut = np.where(layer[:, :, None] % 2, triangles[:, ::-1], triangles)
    mesh, number = stack(np.stack(levels), cut, in_wall | (layer >= WALL_LAYERS))

    floor, back = number[WALL_LAYERS], number[-1]
    undersides, borders = [], []
    for i in range(len(CUPS)):
        inner = number[: WALL_LAYERS + 1, (cup == i) & (ring == 2)]
        undersides.append(np.concatenate([floor[(cup == i) & (ring < 2)], inner.ravel()]))
        borders.append(inner[0])
    edge = np.abs(z) >= (1.0 - 1e-9) * _half_width(x)
    cables = floor[edge & (z < 0.0)], floor[edge & (z > 0.0)], back[(ring <= 0) & (z == 0.0)]
    along = mesh.nodes[:, 0]
    cables = tuple(nodes[np.argsort(along[nodes])] for nodes in cables)
    return Arm(
        mesh,
        base=number[WALL_LAYERS:, x == 0.0].ravel(),
        undersides=tuple(undersides),
        borders=tuple(borders),
        cables=cables,
        shares=tuple(_shares(0.5 * (along[nodes[:-1]] + along[nodes[1:]])) for nodes in cables),
        seed=int(back[0]),
    )


def _half_width(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return HALF_WIDTHS[0] + (HALF_WIDTHS[1] - HALF_WIDTHS[0]) * x / LENGTH


def _shares(x: NDArray) -> NDArray[np.float64]:
    """Pull over that at the base with which a cable bends the bar evenly.

    Its moment t T / 2 on a section's w t^3 / 12 makes the same curvature everywhere where T goes as w t^2.
    The same pull all along would crush the tip.
    """
    share = x / LENGTH
    thickness = (1.0 - share) * THICKNESSES[0] + share * THICKNESSES[1]
    return _half_width(x) / HALF_WIDTHS[0] * (thickness / THICKNESSES[0]) ** 2


def _sheet() -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Points (x, z) of the strip [m], shape (n, 2), their cup and their ring there, both -1 elsewhere.

    Rings of a cup: 0 its middle, 1 half way, 2 and 3 the inner and the outer side of its wall.
    """
    edge = np.linspace(0.0, LENGTH, 21)
    clear = np.repeat([0.0, 0.0705, 0.1245, 0.1705, 0.2205, LENGTH], [3, 3, 3, 3, 1, 1])
    side = np.concatenate([np.tile([-0.5, 0.0, 0.5], 4), [0.0, 0.0]])
    x = np.concatenate([edge, edge, clear])
    z = np.concatenate([-_half_width(edge), _half_width(edge), side * _half_width(clear)])
    points, cup, ring = [np.stack([x, z], axis=1)], [np.full(len(x), -1)], [np.full(len(x), -1)]
    for i, (centre, radius) in enumerate(CUPS):
        for k, (share, count) in enumerate(((0.0, 1), (0.5, 6), (1.0, 12), (RIM, 12))):
            # Half a step on, the outer ring leaves no four points on a circle, hence no choice of diagonals.
            angle = 2.0 * np.pi * (np.arange(count) + 0.5 * (k == 3)) / count
            reach = share * radius
            points.append(np.stack([centre + reach * np.cos(angle), -reach * np.sin(angle)], axis=1))
            cup.append(np.full(count, i))
            ring.append(np.full(count, k))
    return np.concatenate(points), np.concatenate(cup), np.concatenate(ring)
