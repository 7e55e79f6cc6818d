"""Small solid marks (balls, rods, cones) placed many at a time: the arrows and points of the overlays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.render.normals import cross, lengths

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

BALL, ROD, CONE, CUBE = "ball", "rod", "cone", "cube"
COLUMNS = 15  # origin, the images of the three axes, colour

HEAD_LENGTH = 4.5  # an arrow's head, in radii of its shaft
HEAD_RADIUS = 2.1


class Solids:
    """A list of marks by shape; each mark is a row of `COLUMNS` numbers."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Floats]] = {BALL: [], ROD: [], CONE: [], CUBE: []}
        self._made: dict[str, NDArray[np.float32]] = {}
        """What `rows` made of them, until more come."""

    def rows(self, shape: str) -> NDArray[np.float32]:
        """All marks of one shape, (n, COLUMNS); one with a number that no picture can hold is left out."""
        if shape not in self._made:
            with np.errstate(over="ignore"):
                rows = np.concatenate([np.zeros((0, COLUMNS)), *self._rows[shape]]).astype(np.float32)
            self._made[shape] = rows[np.isfinite(rows).all(axis=1)]
        return self._made[shape]

    def balls(self, centre: ArrayLike, radius: float, colour: ArrayLike) -> None:
        """Balls of `radius` [m] at `centre` (n, 3); colour (3,) or (n, 3)."""
        self._boxes(BALL, centre, radius, colour)

    def cubes(self, centre: ArrayLike, half_width: float, colour: ArrayLike) -> None:
        """Cubes at `centre` (n, 3), along the world's axes."""
        self._boxes(CUBE, centre, half_width, colour)

    def rods(self, start: ArrayLike, end: ArrayLike, radius: float, colour: ArrayLike) -> None:
        """Round rods from `start` (n, 3) to `end` (n, 3)."""
        self._along(ROD, _points(start), _points(end) - _points(start), radius, colour)

    def arrows(self, start: ArrayLike, vector: ArrayLike, radius: float, colour: ArrayLike) -> None:
        """Arrows of `vector` (n, 3) [m] from `start`, tip at start + vector; short ones are thinner too."""
        start, vector = _points(start), _points(vector)
        length = lengths(vector)
        shaft = np.minimum(radius, length / (1.6 * HEAD_LENGTH))
        visible = length > 0
        direction = vector / np.where(visible, length, 1.0)[:, None]
        neck = vector - HEAD_LENGTH * shaft[:, None] * direction
        shaft = np.where(visible, shaft, np.nan)
        self._along(ROD, start, neck, shaft, colour)
        self._along(CONE, start + neck, vector - neck, HEAD_RADIUS * shaft, colour)

    def discs(self, centre: ArrayLike, normal: ArrayLike, radius: float, colour: ArrayLike) -> None:
        """Flat discs at `centre` (n, 3) across a unit `normal` (n, 3), a twelfth of their radius thick."""
        half = _points(normal) * radius / 24.0
        self._along(ROD, _points(centre) - half, 2.0 * half, radius, colour)

    def dashes(
        self, start: ArrayLike, end: ArrayLike, radius: float, colour: ArrayLike, count: int = 9
    ) -> None:
        """A dashed rod from `start` (3,) to `end` (3,)."""
        a, b = np.asarray(start, float), np.asarray(end, float)
        t = np.arange(count)[:, None] / (count - 0.5)
        self.rods(a + t * (b - a), a + (t + 0.5 / (count - 0.5)) * (b - a), radius, colour)

    def _boxes(self, shape: str, centre: ArrayLike, size: float, colour: ArrayLike) -> None:
        p = _points(centre)
        axes = np.broadcast_to((size * np.eye(3)).ravel(), (len(p), 9))
        self._add(shape, p, axes, colour)

    def _along(self, shape: str, origin: Floats, axis: Floats, radius: ArrayLike, colour: ArrayLike) -> None:
        if not len(origin):
            return
        length = lengths(axis)[:, None]
        z = axis / np.where(length > 0, length, 1.0)
        helper = np.eye(3)[np.argmin(np.abs(np.nan_to_num(z)), axis=1)]
        x = cross(helper, z)
        x /= np.maximum(lengths(x), 1e-300)[:, None]
        r = np.broadcast_to(np.asarray(radius, float), (len(origin),))[:, None]
        self._add(shape, origin, np.hstack([r * x, r * cross(z, x), axis]), colour)

    def _add(self, shape: str, origin: Floats, axes: Floats, colour: ArrayLike) -> None:
        if not len(origin):
            return
        self._made.pop(shape, None)
        tint = np.broadcast_to(np.asarray(colour, float), (len(origin), 3))
        self._rows[shape].append(np.hstack([origin, axes, tint]))


def _points(values: ArrayLike) -> Floats:
    return np.asarray(values, float).reshape(-1, 3)


def unit_shapes() -> dict[str, tuple[NDArray[np.float32], Indices]]:
    """Position and normal rows (n, 6) with triangles (m, 3) of each shape in its own axes, wound outward.

    The ball has radius 1; rod and cone stand on z = 0 with radius and height 1; the cube spans -1 to 1.
    """
    ball = np.array([[np.sin(a), -np.cos(a)] for a in np.linspace(0, np.pi, 13)])
    slope = np.sqrt(0.5)
    rod = np.array([[0, 0], [1, 0], [1, 0], [1, 1], [1, 1], [0, 1]], float)
    rod_n = np.array([[0, -1], [0, -1], [1, 0], [1, 0], [0, 1], [0, 1]], float)
    cone = np.array([[0, 0], [1, 0], [1, 0], [0, 1]], float)
    cone_n = np.array([[0, -1], [0, -1], [slope, slope], [slope, slope]])
    return {
        BALL: _turned(ball, ball, 20),
        ROD: _turned(rod, rod_n, 9),
        CONE: _turned(cone, cone_n, 10),
        CUBE: _cube(),
    }


def _turned(profile: Floats, normal: Floats, sides: int) -> tuple[NDArray[np.float32], Indices]:
    """Surface of revolution about z of a profile (k, 2) of (radius, height) from the bottom to the top."""
    a = 2 * np.pi * np.arange(sides) / sides
    around = np.column_stack([np.cos(a), np.sin(a)])

    def turn(p: Floats) -> Floats:
        return np.concatenate([np.r_[r * around.T, [np.full(sides, z)]].T for r, z in p])

    ring, s = sides * np.arange(len(profile) - 1)[:, None], np.arange(sides)
    i, j = ring + s, ring + (s + 1) % sides
    triangles = np.stack([i, j, j + sides, i, j + sides, i + sides], axis=-1).reshape(-1, 3)
    points = turn(profile)
    # at a pole and between two normals of one ring triangles have no area, but they cost as others do
    a, b, c = (points[triangles[:, k]] for k in range(3))
    flat = np.linalg.norm(np.cross(b - a, c - a), axis=1) < 1e-9
    return np.hstack([points, turn(normal)]).astype(np.float32), triangles[~flat].astype(np.int32)


def _cube() -> tuple[NDArray[np.float32], Indices]:
    rows: list[Floats] = []
    triangles: list[list[int]] = []
    for axis in range(3):
        for side in (-1.0, 1.0):
            u, v = np.roll(np.eye(3), axis, axis=1)[1:]
            n = side * np.eye(3)[axis]
            corners = [n + p * side * u + q * v for p, q in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
            first = len(rows)
            rows += [np.r_[c, n] for c in corners]
            triangles += [[first, first + 1, first + 2], [first, first + 2, first + 3]]
    return np.array(rows, np.float32), np.array(triangles, np.int32)
