"""A fine surface over a coarse mesh: places on smooth curves along its edges, as weights of its vertices.

Each level halves every edge. The new point is the middle of a cubic Hermite curve between the edge's ends,

    m = (x_i + x_j) / 2 + (t_ij + t_ji) / 8,        t_ij = sum_k c_k (x_k - x_i),

where t_ij, the curve's slope at i towards j, comes from the gradient that fits the neighbours x_k of i best
(least squares, weighted by 1 / distance^2, over the tangent plane at rest). The weights are computed from the
mesh at rest and then stay: what deforms it affinely deforms the fine surface by the same, vertices stay where
they are, and flat faces stay flat. Along creases and rims the slope comes from the curve's own neighbours;
a corner of it, and a vertex whose edges are of very different lengths, where a mesh tells shapes apart, keep
straight edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from palpo.render.normals import CREASE, corner_weights, face_normals, split_at_creases

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Integers = NDArray[np.int64]

UNLIKE = 4.0
"""Longest edge over the shortest at a vertex from which its edges stay straight."""


class Embedding:
    """The fine surface: `place` (k, n) takes the mesh's vertices (n, 3) to its points (k, 3), `spread` (k, n)
    its vertices' values to them, straight along edges; `triangles` (m, 3) and `edges` (e, 2) of points.

    A point on a crease is there once for each smooth patch. `edges` are those of the coarse mesh.
    """

    def __init__(self, vertices: Floats, triangles: Indices, levels: int, crease: float = CREASE) -> None:
        vertices = np.asarray(vertices, float)
        source, self.triangles = split_at_creases(vertices, np.asarray(triangles, np.int32), crease)
        vertex: Integers = source.astype(np.int64)
        self.coarse, k = self.triangles, len(source)
        """Triangles of the mesh itself: its vertices are the first points."""
        self.place = sparse.csr_matrix((np.ones(k), (np.arange(k), source)), shape=(k, len(vertices)))
        self.spread, self.edges = self.place, _edges(self.triangles, vertex)[1]
        for _ in range(levels):
            halved = _Halved(self.place @ vertices, self.triangles, vertex, crease)
            self.place, self.spread = halved.place @ self.place, halved.spread @ self.spread
            self.triangles, vertex = halved.triangles, halved.vertex
            self.edges = halved.along(self.edges)
        self.vertex = vertex
        """A number of each point (k,) that its copies share."""


class _Halved:
    """One level: matrices (k + e, k) over k copies of vertices, with one more for each of their e edges.

    A copy belongs to one smooth patch; `vertex` tells the copies of one point by a common number.
    """

    def __init__(self, x: Floats, triangles: Indices, vertex: Integers, crease: float) -> None:
        k = len(x)
        corner = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        self._edges, side, count = np.unique(corner, axis=0, return_inverse=True, return_counts=True)
        e, side = len(self._edges), side.reshape(-1, 3)
        i, j = self._edges.T
        ahead, back = np.r_[i, j], np.r_[j, i]
        slope = _slopes(x, _normals(x, triangles), ahead, back)
        border = np.flatnonzero(count != 2)
        slope = _with_curves(slope, x, vertex, ahead, back, np.r_[border, border + e], crease)
        half = sparse.csr_matrix((np.full(2 * e, 0.5), (np.r_[:e, :e], ahead)), shape=(e, k))
        both = sparse.csr_matrix((np.full(2 * e, 0.125), (np.r_[:e, :e], np.arange(2 * e))), shape=(e, 2 * e))
        self.place = sparse.vstack([sparse.identity(k), half + both @ slope]).tocsr()
        self.spread = sparse.vstack([sparse.identity(k), half]).tocsr()
        ends = np.sort(np.c_[vertex[i], vertex[j]], axis=1)
        _, point = np.unique(ends, axis=0, return_inverse=True)
        self.vertex = np.r_[vertex, vertex.max(initial=-1) + 1 + point.ravel()]
        (a, b, c), (ab, bc, ca) = triangles.T, k + side.T
        quarters = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        self.triangles = np.stack([np.stack(q, axis=1) for q in quarters], axis=1).reshape(-1, 3)
        self.triangles = self.triangles.astype(np.int32)
        self._k = k

    def along(self, edges: Indices) -> Indices:
        """Edges (e, 2) of copies, each now in two halves."""
        number = {(int(a), int(b)): self._k + n for n, (a, b) in enumerate(self._edges)}
        middle = [number[int(min(edge)), int(max(edge))] for edge in edges]
        halves = np.stack([np.c_[edges[:, 0], middle], np.c_[middle, edges[:, 1]]], axis=1)
        return halves.reshape(-1, 2).astype(np.int32)


def _edges(triangles: Indices, vertex: Integers) -> tuple[Indices, Indices]:
    """Each edge of the mesh once, as vertices and as copies of them that a face joins, both (e, 2)."""
    copies = triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    ends, first = np.unique(np.sort(vertex[copies], axis=1), axis=0, return_index=True)
    return ends.astype(np.int32), copies[first]


def _normals(x: Floats, triangles: Indices) -> Floats:
    weighted = corner_weights(x, triangles)[:, :, None] * face_normals(x, triangles)[:, None, :]
    normals = np.zeros_like(x)
    np.add.at(normals, triangles, weighted)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)


def _slopes(x: Floats, normal: Floats, ahead: Integers, back: Integers) -> sparse.csr_matrix:
    """Slope at `ahead` towards `back` of each half-edge, (h, k): that of the gradient that fits best."""
    k, h = len(x), len(ahead)
    way = x[back] - x[ahead]
    length = np.maximum(np.linalg.norm(way, axis=1), 1e-300)
    # in the tangent plane, and as long as the edge is
    flat = way - np.einsum("hi,hi->h", way, normal[ahead])[:, None] * normal[ahead]
    u = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal), axis=1)])
    u /= np.maximum(np.linalg.norm(u, axis=1, keepdims=True), 1e-300)
    v = np.cross(normal, u)
    at = np.stack([np.einsum("hi,hi->h", flat, axis[ahead]) for axis in (u, v)], axis=1)
    at *= (length / np.maximum(np.linalg.norm(at, axis=1), 1e-300))[:, None]
    weight = 1.0 / length**2
    moment = np.zeros((k, 2, 2))
    np.add.at(moment, ahead, weight[:, None, None] * at[:, :, None] * at[:, None, :])
    longest, shortest = np.zeros(k), np.full(k, np.inf)
    np.maximum.at(longest, ahead, length)
    np.minimum.at(shortest, ahead, length)
    # the trace is the number of edges; one direction alone has no gradient
    fits = (np.linalg.det(moment) > 1e-2) & (longest < UNLIKE * shortest)
    moment[~fits] = np.eye(2)
    share = weight[:, None] * np.einsum("hij,hj->hi", np.linalg.inv(moment)[ahead], at)
    rows, columns = np.r_[2 * ahead, 2 * ahead + 1], np.r_[back, back]
    to_there = sparse.csr_matrix((share.T.ravel(), (rows, columns)), shape=(2 * k, k))
    from_here = sparse.csr_matrix((share.T.ravel(), (rows, np.r_[ahead, ahead])), shape=(2 * k, k))
    which = np.arange(h)
    along = sparse.csr_matrix(
        (at.T.ravel(), (np.r_[which, which], np.r_[2 * ahead, 2 * ahead + 1])), shape=(h, 2 * k)
    )
    return _chosen(fits[ahead], along @ (to_there - from_here), _straight(ahead, back, k))


def _with_curves(
    slope: sparse.csr_matrix, x: Floats, vertex: Integers, ahead: Integers, back: Integers,
    border: Integers, crease: float,
) -> sparse.csr_matrix:  # fmt: skip
    """The same, at the half-edges `border` by the curve that creases and rims make of the mesh's vertices."""
    k, h = len(x), len(ahead)
    a, b = vertex[ahead[border]], vertex[back[border]]
    # each way of a crease once, though a patch on either side has it
    ways = np.unique(np.c_[a, b], axis=0)
    first = np.searchsorted(ways[:, 0], a)
    two = np.searchsorted(ways[:, 0], a, "right") - first == 2
    other = np.minimum(first + (ways[np.minimum(first, len(ways) - 1), 1] == b), len(ways) - 1)
    copy = np.zeros(int(vertex.max(initial=-1)) + 1, np.int64)
    copy[vertex] = np.arange(k)
    here, there, before = ahead[border], back[border], copy[ways[other, 1]]
    forth, past = x[there] - x[here], x[here] - x[before]
    length, last = (np.maximum(np.linalg.norm(way, axis=1), 1e-300) for way in (forth, past))
    straight = np.einsum("hi,hi->h", forth, past) > np.cos(np.radians(crease)) * length * last
    curved = two & straight & (np.maximum(length, last) < UNLIKE * np.minimum(length, last))
    # the slope at the middle one of three points of a parabola
    forward, backward = last / (length + last), length**2 / (last * (length + last))
    rows = np.r_[border, border, border]
    values = np.r_[forward, backward - forward, -backward]
    curve = sparse.csr_matrix((values, (rows, np.r_[there, here, before])), shape=(h, k))
    on_border, bent = np.zeros(h, bool), np.zeros(h, bool)
    on_border[border], bent[border] = True, curved
    return _chosen(on_border, _chosen(bent, curve, _straight(ahead, back, k)), slope)


def _straight(ahead: Integers, back: Integers, k: int) -> sparse.csr_matrix:
    which = np.arange(len(ahead))
    values = np.r_[np.ones(len(which)), -np.ones(len(which))]
    return sparse.csr_matrix((values, (np.r_[which, which], np.r_[back, ahead])), shape=(len(which), k))


def _chosen(one: NDArray[np.bool_], a: sparse.csr_matrix, b: sparse.csr_matrix) -> sparse.csr_matrix:
    """Rows of `a` where `one`, else of `b`."""
    return sparse.diags(one.astype(float)) @ a + sparse.diags((~one).astype(float)) @ b
