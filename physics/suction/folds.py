"""Contact of a cup with itself: the folds of bellows on each other, as the engine lists contacts.

Which parts of a surface may meet is found once, at rest (`find_folds`): triangles that face each other over a
gap, and are farther apart along the surface than across it. A vertex touches the nearest of its own; one that
faces down (-y) only where it bulges into a triangle of those that face up, as a partner's does into a cup's
(palpo.physics.suction.contacts). Body 1 and body 2 are the same: a row moves with the vertex and against
the point of the triangle, and its forces sum to zero.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import cKDTree

from palpo.physics.collision.closest import to_triangle, vector
from palpo.physics.collision.nearest import orient
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import kernel
from palpo.physics.suction.contacts import add_contact

REACH = 0.25
"""Widest gap of a fold at rest, over the cup's width."""

FACING = 0.5
"""Least cosine between two triangles' normals and the way between them: a fold opens by up to 120 degrees."""

BEHIND = 1.6
"""Most of the way between triangles that may meet, over that to the nearest that either faces."""

LONGER = 1.3
"""Least way along the surface over the way across: what lies beside an edge is no fold."""

THROUGH = 5.0
"""Depth over the contact distance from which a vertex has come through a wall: it is let back."""


class Folds(NamedTuple):
    """f vertices of a surface that may meet others of its triangles, and how near they are."""

    vertices: NDArray[np.int64]  # (f,) rising
    span: NDArray[np.int64]  # (f + 1,) of each in `triangles`
    triangles: NDArray[np.int64]  # that it may meet
    upward: NDArray[np.bool_]  # (f,) whether it faces up
    place: NDArray[np.int64]  # (n,) of each vertex of the surface among these, -1 for none
    distance: NDArray[np.float64]  # (f,) [m], negative inside; inf beyond the alarm distance
    normal: NDArray[np.float64]  # (f, 3) unit, outward from the triangle
    triangle: NDArray[np.int64]  # (f,) the nearest
    weights: NDArray[np.float64]  # (f, 3) of the closest point in it
    scratch: NDArray[np.float64]  # (3, 3)


def find_folds(surface: SurfaceMesh) -> Folds | None:
    """The folds of a surface at rest; None where it has none. Its vertices are all in use."""
    x, triangles, normals = surface.vertices, surface.triangles, surface.triangle_normals
    middle = x[triangles].mean(axis=1)
    width = float(np.ptp(x[:, [0, 2]], axis=0).max())
    a, b = cKDTree(middle).query_pairs(REACH * width, output_type="ndarray").T
    way = middle[b] - middle[a]
    far = np.linalg.norm(way, axis=1)
    opposed = np.einsum("ki,ki->k", normals[a], normals[b]) < 0.0
    from_a, from_b = (s * np.einsum("ki,ki->k", way, normals[k]) for s, k in ((1.0, a), (-1.0, b)))
    facing = opposed & (from_a > FACING * far) & (from_b > FACING * far)
    # what lies behind the next fold is met by that one first
    nearest = np.full(len(triangles), np.inf)
    for one in (a, b):
        np.minimum.at(nearest, one[facing], far[facing])
    facing &= far <= BEHIND * np.minimum(nearest[a], nearest[b])
    a, b = np.append(a[facing], b[facing]), np.append(b[facing], a[facing])
    if not a.size:
        return None
    i, j = surface.edges.T
    length = np.linalg.norm(x[i] - x[j], axis=1)
    graph = csr_array((length, (i, j)), shape=(len(x), len(x)))
    starts = np.unique(triangles[a])
    along = dijkstra(graph, directed=False, indices=starts, limit=LONGER * width)
    row = np.full(len(x), -1)
    row[starts] = np.arange(starts.size)

    def apart(vertex: NDArray[np.int64], of: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the vertices are farther from the triangles along the surface than across."""
        across = np.zeros(vertex.size)
        _distances(x, triangles, vertex, of, across)
        return np.asarray(along[row[vertex][:, None], triangles[of]].min(axis=1) > LONGER * across)

    m, n = len(triangles), len(x)
    vertex, of = triangles[a].ravel().astype(np.int64), np.repeat(b, 3).astype(np.int64)
    kept = apart(vertex, of)
    faced = csr_array((np.ones(kept.sum()), (vertex[kept], of[kept])), shape=(n, m))
    # a vertex may slide on to the triangles around those that it faces
    corners = csr_array((np.ones(3 * m), (np.repeat(np.arange(m), 3), triangles.ravel())), shape=(m, n))
    vertex, of = (k.astype(np.int64) for k in (faced @ (corners @ corners.T)).nonzero())
    kept = apart(vertex, of)
    order = np.lexsort((of[kept], vertex[kept]))
    vertex, of = vertex[kept][order], of[kept][order]
    if not vertex.size:
        return None
    vertices, first = np.unique(vertex, return_index=True)
    up = np.zeros(len(x))
    np.add.at(up, triangles.ravel(), np.repeat(normals[:, 1], 3))
    place = np.full(len(x), -1, np.int64)
    place[vertices] = np.arange(vertices.size)
    f = vertices.size
    return Folds(
        vertices, np.append(first, vertex.size).astype(np.int64), of, up[vertices] > 0.0, place,
        np.full(f, np.inf), np.zeros((f, 3)), np.zeros(f, np.int64), np.zeros((f, 3)), np.zeros((3, 3)),
    )  # fmt: skip


def fold_vertices(folds: Folds, triangles: NDArray[np.int32]) -> NDArray[np.int64]:
    """Vertices that take part in contacts of the folds, with those of the triangles that are met."""
    return np.union1d(folds.vertices, triangles[folds.triangles])


@kernel
def _distances(x, triangles, vertex, of, out):
    """out (k,): how far [m] each vertex is from a triangle."""
    weights = np.empty(3)
    for k in range(vertex.size):
        out[k] = to_triangle(vector(x, vertex[k]), x, triangles, of[k], weights)[0] ** 0.5


@kernel
def look_at_folds(folds, surface, x, alarm):
    """Bring distances up to date at x (n, 3) [m], as far as `alarm` [m]. surface: of a Target."""
    trial = folds.scratch[2]
    for k in range(folds.vertices.size):
        p, best, nearest = vector(x, folds.vertices[k]), alarm * alarm, -1
        offset = p
        folds.distance[k] = np.inf
        for t in folds.triangles[folds.span[k] : folds.span[k + 1]]:
            a, size, away = surface.triangles[t, 0], 0.0, 0.0
            for j in range(1, 3):
                side = 0.0
                for i in range(3):
                    side += (x[surface.triangles[t, j], i] - x[a, i]) ** 2
                size = max(size, side)
            for i in range(3):
                away += (p[i] - x[a, i]) ** 2
            # no point of it is farther from its first corner than its longer side there
            if away**0.5 - size**0.5 > best**0.5:
                continue
            d2, _, away = to_triangle(p, x, surface.triangles, t, trial)
            if d2 < best:
                best, nearest, offset = d2, t, away
                folds.weights[k] = trial
        if nearest >= 0:
            folds.triangle[k] = nearest
            folds.distance[k] = orient(
                surface, x, nearest, folds.weights[k], offset, folds.normal[k], folds.scratch
            )


@kernel
def add_folds(folds, pair, nodes, place, triangles, start, contacts):
    """Contacts of the folds; pair: of the cup with itself. Others see palpo.physics.suction.contacts."""
    for k in range(folds.vertices.size):
        d = folds.distance[k]
        if not -THROUGH * pair.kept < d <= pair.alarm:
            continue
        v, t, weights = folds.vertices[k], folds.triangle[k], folds.weights[k]
        yields, between = place[nodes[v]] >= 0, 0.0
        for j in range(3):
            corner, w = triangles[t, j], weights[j]
            yields |= w > 0.0 and place[nodes[corner]] >= 0
            of = folds.place[corner]
            between += w * (min(folds.distance[of], 2.0 * pair.alarm) if of >= 0 else 2.0 * pair.alarm)
        if not folds.upward[k] and d > between - 0.5 * pair.kept:
            continue
        if not yields:
            contacts.count[0].lost += d <= pair.kept
            continue
        c = add_contact(contacts, start + v, pair.first, pair.first, folds.normal[k], d - pair.kept, pair.mu)
        if c < 0:
            continue
        contacts.slots[c, 0, 0], contacts.weights[c, 0, 0] = nodes[v], 1.0
        for j in range(3):
            contacts.slots[c, 1, j], contacts.weights[c, 1, j] = nodes[triangles[t, j]], weights[j]
