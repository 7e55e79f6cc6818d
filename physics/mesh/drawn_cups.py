"""Sections of suction cups that are drawn: the cavity's wall as points, and how thick the cup is there.

The points go up the cavity's side of the wall, from the rim's inner edge to the edge of a level roof. The
outer side is that line set off by the wall's thickness, its corners mitred; at the rim it ends at the rim's
own width. Bellows are the same with folds (`bellows_points`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class DrawnShape:
    """Dimensions of a drawn cup [m].

    points: radius and height along the cavity's wall, the first at height 0. walls: thickness at each.
    """

    points: tuple[tuple[float, float], ...]
    walls: tuple[float, ...]
    rim: float  # width of the rim
    stem: float  # radius of the stem; at most the roof's
    stem_length: float
    lobes: float = 0.0

    @property
    def top(self) -> float:
        """Radius of the cavity's flat roof."""
        return self.points[-1][0]

    @property
    def roof(self) -> float:
        """Radius of the flat roof outside."""
        return float(self.outer[-1, 0])

    @cached_property
    def outer(self) -> Array:
        """The outer side, a point for each of the inner one's, shape (k, 2)."""
        inner, walls = np.array(self.points), np.array(self.walls)
        way = np.diff(inner, axis=0, append=inner[-1:] - [[1.0, 0.0]])  # the last is the roof's
        normal = np.stack([way[:, 1], -way[:, 0]], axis=1) / np.hypot(*way.T)[:, None]
        starts = inner + walls[:, None] * normal
        ends = np.roll(inner, -1, axis=0) + np.roll(walls, -1)[:, None] * normal
        ends[-1] = starts[-1] - [1.0, 0.0]
        out = np.empty_like(inner)
        out[0] = inner[0, 0] + self.rim, 0.0
        for i in range(1, len(inner)):
            d, e = ends[i - 1] - starts[i - 1], ends[i] - starts[i]
            cross = d[0] * e[1] - d[1] * e[0]
            if abs(cross) < 1e-9 * math.hypot(*d) * math.hypot(*e):
                out[i] = ends[i - 1]
                continue
            w = starts[i] - starts[i - 1]
            out[i] = starts[i - 1] + (w[0] * e[1] - w[1] * e[0]) / cross * d
        return out

    @cached_property
    def _u(self) -> Array:
        """u of each point: the share of the way along the wall from the roof down to the rim, falling."""
        length = np.hypot(*np.diff(np.array(self.points), axis=0).T)
        return 1.0 - np.concatenate([[0.0], np.cumsum(length)]) / length.sum()

    @property
    def length(self) -> float:
        """Of the cavity's wall from rim to roof [m]."""
        return float(np.hypot(*np.diff(np.array(self.points), axis=0).T).sum())

    def cells(self, length: float) -> int:
        """How many cells of about that length [m] there are along the wall, no fewer than its pieces."""
        return max(len(self.points) - 1, math.ceil(self.length / length - 1e-9))

    def places(self, cells: int, end: float = 1.0) -> Array:
        """u at the ends of so many cells up to `end`, shape (cells + 1,), rising: all points if it can."""
        corners = np.append(np.flip(self._u)[np.flip(self._u) < end - 1e-9], end)
        parts = len(corners) - 1
        if cells < parts:
            return np.linspace(0.0, end, cells + 1)
        length, count = np.diff(corners), np.ones(parts, np.int64)
        for _ in range(cells - parts):
            count[np.argmax(length / count)] += 1
        within = np.concatenate([np.arange(n) / n for n in count])
        return np.append(np.repeat(corners[:-1], count) + np.repeat(length, count) * within, end)

    def meridians(self, share: Array, u: Array) -> tuple[Array, Array]:
        """As palpo.physics.mesh.cups.meridians."""
        inner, outer = np.flip(np.array(self.points), axis=0), np.flip(self.outer, axis=0)
        at = np.flip(self._u)
        found = []
        for line in (inner, outer):
            radius, height = np.interp(u, at, line[:, 0]), np.interp(u, at, line[:, 1])
            found.append(np.stack([np.where(u > 0.0, radius, share * line[0, 0]), height], axis=1))
        return found[0], found[1]

    def check(self) -> None:
        """Raises InputError for points that draw no cup, and for a wall that has no room."""
        p, k = self.points, len(self.points)
        if k < 2 or len(self.walls) != k:
            raise InputError(
                f"a drawn cup has {k} points and {len(self.walls)} thicknesses; give two points or more, "
                "and a thickness for each."
            )
        if p[0][1] != 0.0:
            raise InputError(
                f"point 0 is {p[0][1]:g} m high: points begin at the rim's inner edge, at height 0, and go "
                "up to the roof's edge."
            )
        for i, (radius, height) in enumerate(p):
            if not radius > 0.0 or (i > 0 and not height > 0.0):
                raise InputError(
                    f"point {i} is [{radius:g}, {height:g}] m: expected a radius above 0 and, but for the "
                    "first, a height above 0."
                )
            if i > 0 and p[i - 1] == p[i]:
                raise InputError(f"points {i - 1} and {i} are the same; leave one out.")
        if max(height for _, height in p) > p[-1][1]:
            raise InputError(
                f"the last point is {p[-1][1]:g} m high, and others are higher: points go from the rim up to "
                "the roof's edge, and the roof is level from there."
            )
        for name in ("rim", "stem", "stem_length"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name} is {getattr(self, name)} m, expected a positive length.")
        if not min(self.walls) > 0.0:
            raise InputError(f"the wall is {min(self.walls)} m thick, expected a positive length.")
        self._require_simple()
        if self.stem > 1.001 * self.roof:
            raise InputError(
                f"the stem's radius is {self.stem:g} m, but the roof it stands on has {self.roof:.4g} m."
            )

    def _require_simple(self) -> None:
        """Raises InputError where the outline meets itself."""
        inner, outer, k = np.array(self.points), self.outer, len(self.points)
        for i in range(k - 1):
            for j in range(i + 2, k - 1):
                if _cross(inner[i], inner[i + 1], inner[j], inner[j + 1]):
                    raise InputError(
                        f"the wall crosses itself between points {i} and {i + 1} and points {j} and {j + 1}."
                    )
        thick = "the wall is thicker than the room there is"
        along = (np.diff(inner, axis=0) * np.diff(outer, axis=0)).sum(axis=1)
        if (along <= 0.0).any():
            i = int(np.flatnonzero(along <= 0.0)[0])
            raise InputError(f"{thick} from point {i} to {i + 1}; give a thinner one, or a longer way.")
        if (outer[1:] <= 0.0).any():
            i = 1 + int(np.flatnonzero((outer[1:] <= 0.0).any(axis=1))[0])
            raise InputError(f"{thick} at point {i}; give a thinner one.")
        for i in range(k - 1):
            for j in range(k - 1):
                meets = _cross(outer[i], outer[i + 1], inner[j], inner[j + 1])
                if meets or (j > i + 1 and _cross(outer[i], outer[i + 1], outer[j], outer[j + 1])):
                    raise InputError(
                        f"{thick} between points {min(i, j)} and {max(i, j) + 1}; give a thinner one, or "
                        "more room."
                    )


def _cross(a: Array, b: Array, c: Array, d: Array) -> bool:
    """Whether the segments a b and c d meet."""

    def side(p: Array, q: Array, r: Array) -> float:
        return float((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]))

    apart = (np.maximum(a, b) < np.minimum(c, d)).any() or (np.maximum(c, d) < np.minimum(a, b)).any()
    crossing = side(a, b, c) * side(a, b, d) <= 0.0 and side(c, d, a) * side(c, d, b) <= 0.0
    return bool(crossing and not apart)


def bellows_points(
    opening: float, neck: float, belly: float, folds: int, pitch: float, lip: float, wall: float
) -> tuple[tuple[float, float], ...]:
    """The cavity's wall of bellows: a lip, then so many folds, each out to the belly and in to the neck.

    opening, neck, belly: radii of the cavity at the rim, where folds are narrow and where they are wide.
    pitch: height of a fold; lip: of the lip, up to the first neck. All [m]. A corner is cut by an upright
    piece that is half as high as the wall is thick where it is least: inside at bellies, outside at necks.
    Raises InputError for folds without width or without room.
    """
    if folds < 1 or not 0.0 < neck < min(belly, opening):
        raise InputError(
            f"the neck's radius is {neck:g} m, expected one above 0, below the opening's and the fold's."
        )
    flat, width, slope = 0.5 * wall, belly - neck, 0.5 * pitch
    for _ in range(100):
        # a wall's outer side is shorter by this where it turns into a slope
        corner = wall * (math.hypot(width, slope) - slope) / width
        slope = 0.5 * (pitch - 2.0 * flat - 2.0 * corner)
        if not slope > 0.0:
            raise InputError(
                f"a fold of {pitch:g} m from {neck:g} to {belly:g} m has no room for a wall of {wall:g} m; "
                "give a higher pitch or a thinner wall."
            )
    upright = flat + 2.0 * corner
    points = [(opening, 0.0), (neck, lip)]
    height = lip + flat + corner + wall * (math.hypot(opening - neck, lip) - lip) / (opening - neck)
    for _ in range(folds):
        points += [(neck, height), (belly, height + slope), (belly, height + slope + flat)]
        points.append((neck, height + 2.0 * slope + flat))
        height += 2.0 * slope + flat + upright
    return (*points, (neck, height - corner))
