"""Points interpolated on a surface, at which its distance to another body is asked (002, section IV-A).

Vertices, points along edges and points inside of triangles, each once; closer together than a given spacing.
Their pattern is symmetric on each edge and triangle, so that mirrored surfaces have mirrored points.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

MOST_POINTS = 100_000

CONE = float(np.sin(np.radians(10.0)))
"""How far from its own normals a point of a surface is touched: sine of the angle."""


class SurfacePoints(NamedTuple):
    """Barycentric points of a surface."""

    nodes: NDArray[np.int64]  # (n, 3) vertices
    weights: NDArray[np.float64]  # (n, 3)


def surface_points(x: NDArray[np.float64], triangles: NDArray[np.integer], spacing: float) -> SurfacePoints:
    """Points of the triangles (m, 3) over vertices x [m], neighbours at most `spacing` [m] apart along edges.

    Raises InputError for a spacing that is not positive, or so fine that there would be too many points.
    """
    if not spacing > 0.0:
        raise InputError(f"the spacing of contact points is {spacing} m, expected a positive length.")
    corners = x[triangles]
    lengths = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)
    cells = np.maximum(1.0, np.ceil(lengths / spacing - 1e-9))
    if 0.5 * (cells.max(axis=1) ** 2).sum() > MOST_POINTS:
        raise InputError(
            f"contact points every {spacing:g} m would be more than {MOST_POINTS}; take a larger spacing."
        )
    nodes: list[tuple[int, int, int]] = [(v, v, v) for v in np.unique(triangles).tolist()]
    weights: list[tuple[float, float, float]] = [(1.0, 0.0, 0.0)] * len(nodes)
    edges: dict[tuple[int, int], int] = {}
    for t, n in zip(triangles.tolist(), cells.astype(int).tolist(), strict=True):
        for a in range(3):
            i, j = t[a], t[(a + 1) % 3]
            edges[min(i, j), max(i, j)] = n[a]
    for (i, j), n in edges.items():
        for k in range(1, n):
            nodes.append((i, j, j))
            weights.append((1.0 - k / n, k / n, 0.0))
    for t, n in zip(triangles.tolist(), cells.max(axis=1).astype(int).tolist(), strict=True):
        for i in range(1, n):
            for j in range(1, n - i):
                nodes.append((t[0], t[1], t[2]))
                weights.append((i / n, j / n, (n - i - j) / n))
    return SurfacePoints(np.array(nodes, np.int64), np.array(weights, np.float64))


def facets_of(triangles: NDArray[np.integer], points: SurfacePoints) -> NDArray[np.int64]:
    """The first triangle (n,) that holds each point, of those that it was interpolated on."""
    holds: dict[int, list[int]] = {}
    for t, corners in enumerate(triangles.tolist()):
        for v in corners:
            holds.setdefault(v, []).append(t)
    return np.array([min(set.intersection(*(set(holds[v]) for v in p))) for p in points.nodes.tolist()])


def edge_points(surface: SurfaceMesh, spacing: float, flat: float) -> SurfacePoints:
    """Points of a surface where it stands out, bent by more than an angle `flat` [rad]: of its convex edges.

    Neighbours are at most `spacing` [m] apart. What is flat is told of better by the other side's points: it
    has one normal for all of them.
    """
    x, triangles = surface.vertices, surface.triangles
    met = distinct_sides(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2))
    order = np.argsort(met.of, kind="stable").reshape(-1, 2) // 3
    one, two = (surface.triangle_normals[order[:, k]] for k in range(2))
    middle = x[triangles].mean(axis=1)
    out = np.einsum("ni,ni->n", one, middle[order[:, 1]] - middle[order[:, 0]]) < 0.0
    edges = met.rows[out & (np.linalg.norm(one - two, axis=1) > 2.0 * np.sin(0.5 * flat))]
    points = [(int(v), int(v), int(v), 1.0) for v in np.unique(edges)]
    for i, j in edges.tolist():
        cells = int(np.ceil(np.linalg.norm(x[j] - x[i]) / spacing - 1e-9))
        points += [(i, j, j, 1.0 - k / cells) for k in range(1, cells)]
    share = np.array([p[3] for p in points])
    weights = np.stack([share, 1.0 - share, 0.0 * share], axis=1)
    return SurfacePoints(np.array([p[:3] for p in points], np.int64).reshape(-1, 3), weights)


def border_of(triangles: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether the edge across from each corner of triangles (m, 3) is one of this triangle alone; (m, 3)."""
    met = distinct_sides(triangles[:, [[1, 2], [2, 0], [0, 1]]].reshape(-1, 2))
    return (met.times[met.of] == 1).reshape(-1, 3)


def ways_along(triangles: NDArray[np.integer], points: SurfacePoints) -> NDArray[np.int64]:
    """Pairs of vertices (n, k, 2) whose differences span the directions that leave each point on the surface.

    Of a point inside a triangle its edges both ways, of one on an edge this and the far corners, of a vertex
    all its edges; filled up with pairs of no length.
    """
    around: dict[int, set[int]] = {}
    across: dict[tuple[int, int], list[int]] = {}
    for t in triangles.tolist():
        for a in range(3):
            i, j, k = t[a], t[(a + 1) % 3], t[(a + 2) % 3]
            around.setdefault(i, set()).update((j, k))
            across.setdefault((min(i, j), max(i, j)), []).append(k)
    found: list[list[tuple[int, int]]] = []
    for (i, j, k), w in zip(points.nodes.tolist(), points.weights.tolist(), strict=True):
        if i == j:
            found.append([(i, other) for other in sorted(around[i])])
        elif w[2] == 0.0:
            found.append([(i, j), (j, i), *((i, far) for far in across[min(i, j), max(i, j)])])
        else:
            found.append([(i, j), (j, i), (j, k), (k, j), (k, i), (i, k)])
    out = np.zeros((len(found), max(map(len, found)), 2), np.int64)
    for row, pairs in zip(out, found, strict=True):
        row[: len(pairs)] = pairs
    return out
