"""Which points of a body its next reduced model can displace by themselves."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_POINTS = 32
"""So many points may be displaced in all directions at least, those without columns by themselves; where more
than that bear, points share this many freedoms. See `physics.reduction.point_freedoms`."""


class PointShare:
    """Of a body with so many points: those that bear, and those that get freedoms of their own."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.free = np.zeros(0, np.intp)
        """Points that the next model can displace in all directions, those with columns first."""
        self.bearing, self.load = np.zeros(0, np.intp), np.zeros((0, 3))
        """Points that bore in the last period, and the sum of the forces on each [N], world axes."""

    def choose(self, near: NDArray[np.intp], columns: int, most: int) -> NDArray[np.intp]:
        """`free` of a model that has columns of so many points, and displaces at most so many.

        These are the likeliest of `near`. Where more bear, a of b among them all over the patch; the others
        move along their load, and 3 a + (b - a) freedoms are no more than before.
        """
        bearing = near[among(near, self.bearing, self.count)]
        b = len(bearing)
        if b <= most:
            self.free = near[:most]
        else:
            chosen = _spread(bearing, max(0, (3 * most - b) // 2))
            first = _spread(chosen, min(columns, len(chosen)))
            self.free = np.concatenate([first, np.setdiff1d(chosen, first)])
        return self.free

    def alone(
        self,
        dofs_of: Callable[[NDArray[np.intp]], NDArray[Any]],
        columns: int,
        most: int,
        axes: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """At most so many freedoms of single points: free nodes (m,), and along what (m, 3), body axes.

        Of points that bear, and can otherwise not be displaced, along their load; then of those without
        columns, in all directions. dofs_of: see palpo.physics.bodies.soft.SoftBody.
        """
        bearing = self.bearing
        size = np.linalg.norm(self.load, axis=1)
        first = dofs_of(bearing)[:, 0]
        moved = among(bearing, self.free, self.count)
        kept = np.flatnonzero((size > 0.0) & (first >= 0) & ~moved)
        kept = np.sort(kept[np.argsort(-size[kept], kind="stable")[:most]])
        rest = dofs_of(self.free[columns:])[:, 0]
        rest = rest[rest >= 0][: (most - len(kept)) // 3]
        along = self.load[kept] @ axes / size[kept, None]
        nodes = np.concatenate([first[kept], np.repeat(rest, 3)]).astype(np.int64) // 3
        return nodes, np.vstack([along, np.tile(np.eye(3), (len(rest), 1))])


def among(numbers: NDArray[Any], chosen: NDArray[Any], below: int) -> NDArray[np.bool_]:
    """Which numbers are among the chosen ones, all of them not negative and less than `below`."""
    mask = np.zeros(below, bool)
    mask[chosen] = True
    return mask[numbers]


def _spread(points: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """So many of some points, evenly along their order."""
    return points[np.arange(count) * len(points) // max(count, 1)]
