"""Cavities as closed surfaces: a wall on each body and the ribbon between their borders.

Closing each wall at its own border's centroid, as thesis 000 does, leaves out the slab between a border and
its projection; the ribbon takes it in. A quadrilateral of the ribbon is bent, so it is there twice, cut along
either diagonal, and each counts half: the volume under it is that of the ruled surface, and a symmetric
cavity has a symmetric gradient.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import kernel

CAVITY_COUNT = np.dtype(
    [("found", np.int64), ("vertices", np.int64), ("triangles", np.int64), ("clamped", np.int64),
     ("lost", np.int64)]
)  # fmt: skip
"""Cavities, their vertices and triangles; volumes clamped to 0; cavities lost for room."""

WALL_A, WALL_B, RIBBON, RIBBON_AGAIN, END = 0, 1, 2, 3, 4
"""Columns of `Cavities.span`: where a cavity's walls and ribbons begin, and where it ends."""


class CavitySurfaces(NamedTuple):
    """The closed surfaces of a step's cavities, one after the other; triangles face into the cavity."""

    count: NDArray[np.void]  # type: ignore[assignment]  # (1,) of CAVITY_COUNT
    first: NDArray[np.int64]  # (c + 1,) first vertex of each cavity
    span: NDArray[np.int64]  # (c, 5) first triangle of each part; WALL_A to RIBBON_AGAIN is a closed surface
    body: NDArray[np.int64]  # (k,) 0 for a vertex on body A, 1 on body B
    parents: NDArray[np.int64]  # (k, 3) vertices of that body's surface
    weights: NDArray[np.float64]  # (k, 3) barycentric
    points: NDArray[np.float64]  # (k, 3) positions [m]
    triangles: NDArray[np.int64]  # (t, 3) vertices
    volume: NDArray[np.float64]  # (c,) [m3], not negative


def make_cavities(count: int, vertices: int, triangles: int) -> CavitySurfaces:
    """Room for so many cavities, and for so many vertices and triangles of all of them."""
    return CavitySurfaces(
        count=np.zeros(1, CAVITY_COUNT),
        first=np.zeros(count + 1, np.int64),
        span=np.zeros((count, 5), np.int64),
        body=np.zeros(vertices, np.int64),
        parents=np.zeros((vertices, 3), np.int64),
        weights=np.zeros((vertices, 3)),
        points=np.zeros((vertices, 3)),
        triangles=np.zeros((triangles, 3), np.int64),
        volume=np.zeros(count),
    )


@kernel
def forget(cavities):
    """There are none."""
    count = cavities.count[0]
    count.found = count.vertices = count.triangles = count.clamped = count.lost = 0


@kernel
def place_cavity(cavities, c, x_a, x_b):
    """Move cavity c with its bodies' surfaces x_a, x_b (n, 3) [m]; its topology stays."""
    for k in range(cavities.first[c], cavities.first[c + 1]):
        for i in range(3):
            total = 0.0
            for j in range(3):
                v = cavities.parents[k, j]
                total += cavities.weights[k, j] * (x_b[v, i] if cavities.body[k] else x_a[v, i])
            cavities.points[k, i] = total


@kernel
def area_of_wall(cavities, c):
    """Area [m2] of cavity c's wall on body A."""
    points, total = cavities.points, 0.0
    for t in range(cavities.span[c, WALL_A], cavities.span[c, WALL_B]):
        corners = cavities.triangles[t]
        a, b, d = points[corners[0]], points[corners[1]], points[corners[2]]
        u0, u1, u2 = b[0] - a[0], b[1] - a[1], b[2] - a[2]
        v0, v1, v2 = d[0] - a[0], d[1] - a[1], d[2] - a[2]
        total += 0.5 * ((u1 * v2 - u2 * v1) ** 2 + (u2 * v0 - u0 * v2) ** 2 + (u0 * v1 - u1 * v0) ** 2) ** 0.5
    return total
