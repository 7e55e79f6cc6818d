"""A round tube along a chain of beam nodes: a circle swept with parallel-transport frames, ends rounded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from palpo.render.normals import face_normals
from palpo.render.smooth_surface import Drawn, Outline

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

SIDES = 20
CAP_RINGS = 5
PIECES = 4  # drawn between two nodes


def curve_matrix(n: int, pieces: int) -> Floats:
    """Catmull-Rom curve through n nodes as a matrix ((n - 1) pieces + 1, n): a bent element is drawn bent.

    The missing neighbour of an end is the reflection of the other, so that two nodes give a straight line.
    """
    extended = np.vstack([2 * np.eye(n)[0] - np.eye(n)[1], np.eye(n), 2 * np.eye(n)[-1] - np.eye(n)[-2]])
    t = np.arange(pieces)[:, None] / pieces
    weights = 0.5 * np.hstack(
        [-t + 2 * t**2 - t**3, 2 - 5 * t**2 + 3 * t**3, t + 4 * t**2 - 3 * t**3, -(t**2) + t**3]
    )
    rows = [weights @ extended[i : i + 4] for i in range(n - 1)]
    return np.vstack([*rows, np.eye(n)[-1:]])


def transport_frames(points: Floats) -> tuple[Floats, Floats, Floats]:
    """Unit tangents and two unit normals (k, 3) along a polyline, turned no more than the curve bends."""
    tangent = np.gradient(points, axis=0)
    tangent /= np.maximum(np.linalg.norm(tangent, axis=1, keepdims=True), 1e-300)
    normal = np.empty_like(tangent)
    u = np.eye(3)[np.argmin(np.abs(np.nan_to_num(tangent[0])))]
    for i, t in enumerate(tangent):
        u = u - (u @ t) * t
        u = u / max(np.sqrt(u @ u), 1e-300)
        normal[i] = u
    return tangent, normal, np.cross(tangent, normal)


class Tube:
    """Positions and normals of a tube to be drawn, from the present nodes of its beam."""

    def __init__(self, n_nodes: int, radius: float, sides: int = SIDES) -> None:
        self._radius = radius
        self._curve = curve_matrix(n_nodes, PIECES)
        k = len(self._curve)
        # Rings of the two round ends stand at the first and last point, tilted by `latitude`.
        latitude = np.linspace(np.pi / 2, 0, CAP_RINGS, endpoint=False)
        self._point = np.r_[np.zeros(CAP_RINGS, int), np.arange(k), np.full(CAP_RINGS, k - 1)]
        self._latitude = np.r_[-latitude, np.zeros(k), latitude[::-1]]
        angle = 2 * np.pi * np.arange(sides) / sides
        self._cos, self._sin = np.cos(angle), np.sin(angle)
        ring = np.arange(len(self._point), dtype=np.int32) * sides
        self.triangles = _between_rings(ring, sides)
        s = np.arange(sides, dtype=np.int32)
        at_node = ring[CAP_RINGS : CAP_RINGS + k : PIECES, None]
        vertex = np.arange(len(self._point) * sides, dtype=np.int64)
        self.spacing = 2 * np.pi * radius / sides
        self.coarse = self.triangles
        self.outline = Outline(self.triangles, vertex)
        self.edges = np.stack([at_node + s, at_node + (s + 1) % sides], axis=-1).reshape(-1, 2)

    def drawn(self, nodes: Floats) -> Drawn:
        """The tube about nodes (n_nodes, 3) [m]."""
        points = self._curve @ nodes
        tangent, u, v = (frame[self._point] for frame in transport_frames(points))
        around = self._cos[:, None] * u[:, None, :] + self._sin[:, None] * v[:, None, :]
        latitude = self._latitude[:, None, None]
        normal = np.cos(latitude) * around + np.sin(latitude) * tangent[:, None, :]
        surface = (points[self._point][:, None, :] + self._radius * normal).reshape(-1, 3)
        return Drawn(surface, normal.reshape(-1, 3), face_normals(surface, self.triangles))

    def hollows(self, drawn: Drawn) -> Floats:
        """A tube has none, (k,)."""
        return np.zeros(len(drawn.points))

    def values(self, values: Floats) -> Floats:
        """Those of its nodes are not shown: -1 at each point (k,)."""
        return np.full(len(self._point) * len(self._cos), -1.0)


def _between_rings(ring: Indices, sides: int) -> Indices:
    s = np.arange(sides)
    a = ring[:-1, None] + s
    b = ring[:-1, None] + (s + 1) % sides
    c, d = b + sides, a + sides
    return np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3).astype(np.int32)
