"""The surface of a cut body in numbers that stay while the cut goes on.

What refers to its points by number, contacts and frames that are under way, must find the same ones there. So
vertices keep their rows, and a further cut takes new ones.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.cutting import CutMesh

Ints = NDArray[np.int64]


class CutRoom(NamedTuple):
    """How many there may be of a cut body's further nodes, points of the surface, and triangles."""

    copies: int
    points: int
    triangles: int


class CutSurface:
    """Vertices are the nodes, with `room` for further ones, then points that ride on nodes.

    corners, weights (p, 4): what the points ride on; of those not there yet, nothing. triangles (t, 3).
    """

    def __init__(self, cut: CutMesh, room: CutRoom | None = None) -> None:
        room = room or CutRoom(len(cut.copies), len(cut.corners), len(cut.triangles))
        self.room, self.nodes = room, len(cut.mesh.nodes) + room.copies
        self.corners = np.zeros((room.points, 4), np.int32)
        self.weights = np.zeros((room.points, 4))
        self.triangles = np.zeros((0, 3), np.int32)
        self.parted = 0
        """How often it has changed."""
        self._points: dict[str, int] = {}
        """Numbers of the points by the nodes that they ride on."""
        if not self.follow(cut):
            raise ValueError(f"a cut of {len(cut.triangles)} triangles does not fit into {room}")

    def follow(self, cut: CutMesh, fits: Callable[[NDArray[np.int32]], bool] | None = None) -> bool:
        """Take over the surface of a cut that goes on from the last one; False, and nothing is changed, where
        there is no room for it, or its triangles (t, 3) do not fit elsewhere."""
        first = len(cut.mesh.nodes) + len(cut.copies)
        rides = np.where(cut.weights > 0.0, cut.corners, -1)
        points, keys = dict(self._points), [" ".join(map(str, row)) for row in rides.tolist()]
        for key in keys:
            points.setdefault(key, len(points))
        number = np.array([points[key] for key in keys], np.int64)
        every = np.concatenate([np.arange(first), self.nodes + number])
        triangles = every[cut.triangles].astype(np.int32)
        room = self.room
        if len(cut.copies) > room.copies or len(points) > room.points or len(triangles) > room.triangles:
            return False
        if fits is not None and not fits(triangles):
            return False
        self._points, self.triangles, self.parted = points, triangles, self.parted + 1
        self.corners[number] = np.maximum(rides, 0)
        self.weights[number] = cut.weights
        return True
