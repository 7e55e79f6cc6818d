"""The surface of a body that is cut while the scene runs, among the primitives of the scene.

Frames that are under way name triangles and edges by their rows, and know the points of those alone. So a row
never changes: an edge between other triangles than before, and a triangle with another edge, take rows that
were spare, and their former ones are no surface any more.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.topology import Topology

Key = tuple[int, ...]


class GrowingSurface:
    """That of one body of a topology; `parted` (k,) are its rows of triangles that are no surface now."""

    def __init__(self, topology: Topology, body: int) -> None:
        self.topology = topology
        self._rows = np.flatnonzero(topology.point_body[topology.triangles[:, 0]] == body)
        lines = np.flatnonzero(topology.point_body[topology.edges[:, 0]] == body)
        taken = np.ptp(topology.edges[lines], axis=1) > 0
        self._spare = lines[~taken]
        """Rows of edges that are free."""
        used = topology.triangles[self._rows]
        real = used[:, 0] != used[:, 1]
        self.parted = self._rows[~real]
        self._edges: dict[str, int] = {}
        self._triangles: dict[str, int] = {}
        """Rows by what they hold."""
        for row in lines[taken]:
            (a, b), (left, right) = topology.edges[row].tolist(), topology.edge_opposite[row].tolist()
            self._edges[_name((a, b, left, right) if a < b else (b, a, right, left))] = int(row)
        for row in self._rows[real]:
            name = _turned(topology.triangles[row].tolist(), topology.triangle_edges[row].tolist())
            self._triangles[name] = int(row)

    def renew(self, triangles: NDArray[np.int64]) -> bool:
        """Its triangles (m, 3) are others now, outward, of the scene's points; False, and nothing is changed,
        where there are not rows enough."""
        edges, sides = _edges_of(triangles.tolist())
        lines, fresh = dict(self._edges), list[Key]()
        for key in edges:
            if _name(key) not in lines:
                if len(fresh) == len(self._spare):
                    return False
                lines[_name(key)] = int(self._spare[len(fresh)])
                fresh.append(key)
        rows, left = dict(self._triangles), self._rows[len(self._triangles) :]
        came, live = list[tuple[str, list[int], list[int]]](), list[int]()
        for triangle, of in zip(triangles.tolist(), sides, strict=True):
            own = [lines[_name(edges[e])] for e in of]
            name = _turned(triangle, own)
            if name not in rows:
                if len(came) == len(left):
                    return False
                rows[name] = int(left[len(came)])
                came.append((name, triangle, own))
            live.append(rows[name])
        t = self.topology
        for new in fresh:
            row = lines[_name(new)]
            t.edges[row], t.edge_opposite[row] = new[:2], new[2:]
        for name, triangle, own in came:
            t.triangles[rows[name]], t.triangle_edges[rows[name]] = triangle, own
        self._edges, self._triangles, self._spare = lines, rows, self._spare[len(fresh) :]
        self.parted = np.setdiff1d(self._rows, live)
        return True


def _name(key: Key) -> str:
    return " ".join(map(str, key))


def _turned(triangle: list[int], edges: list[int]) -> str:
    """A triangle and its edges from its least point on."""
    k = triangle.index(min(triangle))
    return _name((*triangle[k:], *triangle[:k], *edges[k:], *edges[:k]))


def _edges_of(triangles: list[list[int]]) -> tuple[list[Key], list[list[int]]]:
    """Edges, the lesser point first, with the third points of the triangle that runs them forth and of that
    which runs them back, -1 for none; and those of each triangle, ab, bc and ca."""
    third: dict[tuple[int, int], list[int]] = {}
    for a, b, c in triangles:
        for one, two, other in ((a, b, c), (b, c, a), (c, a, b)):
            third.setdefault((min(one, two), max(one, two)), [-1, -1])[one > two] = other
    number = {pair: k for k, pair in enumerate(third)}
    sides = [[number[(min(p, q), max(p, q))] for p, q in ((a, b), (b, c), (c, a))] for a, b, c in triangles]
    return [(*pair, *both) for pair, both in third.items()], sides
