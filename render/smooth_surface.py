"""A deforming triangle mesh as it is drawn: a fine surface, its smooth normals, its hollows, its outline."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from palpo.render.embedding import Embedding
from palpo.render.normals import CREASE, corner_weights, face_normals

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]


class Drawn(NamedTuple):
    """A surface's points (k, 3), their unit normals (k, 3), and those of its faces (m, 3), twice the area."""

    points: Floats
    normals: Floats
    faces: Floats


class Outline:
    """Where a surface ends in a picture: edges between a face that is seen and one that is not, and creases.

    triangles (m, 3) are of points, of which those with the same number in `vertex` (k,) are one.
    """

    def __init__(self, triangles: Indices, vertex: NDArray[np.int64]) -> None:
        ends = triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
        face = np.repeat(np.arange(len(triangles)), 3)
        key = np.sort(vertex[ends], axis=1)
        order = np.lexsort(key.T)
        same = np.flatnonzero((key[order][1:] == key[order][:-1]).all(axis=1))
        one, other = order[same], order[same + 1]
        turned = (vertex[ends[one]] == vertex[ends[other]][:, ::-1]).all()
        single = np.setdiff1d(np.arange(len(ends)), np.r_[one, other])
        self.closed = bool(turned) and not len(single)
        """Whether each edge has two faces, wound alike."""
        self._face = np.c_[np.r_[face[one], face[single]], np.r_[face[other], face[single]]]
        self._ends = np.stack([ends[np.r_[one, single]], ends[np.r_[other, single]]], axis=1)
        sharp = (np.sort(ends[one], axis=1) != np.sort(ends[other], axis=1)).any(axis=1)
        self._always = np.r_[sharp, np.ones(len(single), bool)]
        self._corner = triangles[:, 0]

    def edges(self, drawn: Drawn, eye: Floats) -> Indices:
        """Those (e, 2) of points that are seen from `eye` (3,)."""
        facing = np.einsum("mi,mi->m", drawn.faces, eye - drawn.points[self._corner])
        facing /= np.maximum(np.linalg.norm(drawn.faces, axis=1), 1e-300)
        one, other = facing[self._face].T
        which = np.flatnonzero(((one > 0.0) != (other > 0.0)) | (self._always & (one > 0.0)))
        # by the normals of the face that is seen more of
        return self._ends[which, np.where(one[which] >= other[which], 0, 1)]


class SmoothSurface:
    """What is drawn of a mesh, from its present vertices; triangles (m, 3) and edges (e, 2) are of points."""

    def __init__(self, vertices: Floats, triangles: Indices, crease: float = CREASE, levels: int = 0) -> None:
        """levels: how often the mesh's edges are halved for the fine surface."""
        self._embedding = Embedding(vertices, triangles, levels, crease)
        self.triangles, self.edges = self._embedding.triangles, self._embedding.edges
        self.coarse = self._embedding.coarse
        """Triangles of the mesh itself."""
        rest = self.points(np.asarray(vertices, float))
        m, k = len(self.triangles), len(rest)
        faces, weights = np.repeat(np.arange(m), 3), corner_weights(rest, self.triangles)
        self._gather = sparse.csr_matrix((weights.ravel(), (self.triangles.ravel(), faces)), shape=(k, m))
        self._bend, self._around, self.spacing = _rings(rest, self.triangles)
        """The last: mean length [m] of a point's edges at first, (k,)."""
        self.outline = Outline(self.triangles, self._embedding.vertex)

    def points(self, vertices: Floats) -> Floats:
        """Where the drawn points are, (k, 3)."""
        return np.asarray(self._embedding.place @ vertices)

    def values(self, values: Floats) -> Floats:
        """Values of the mesh's vertices (n,) at the drawn points (k,)."""
        return np.asarray(self._embedding.spread @ values)

    def drawn(self, vertices: Floats) -> Drawn:
        """The surface of a mesh with vertices (n, 3) [m].

        A face counts by its angle at the vertex as it was at first, so that a round body looks round however
        its faces are cut, and by how much it has grown since.
        """
        points = self.points(vertices)
        faces = face_normals(points, self.triangles)
        normals = np.asarray(self._gather @ faces)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        return Drawn(points, normals, faces)

    def hollows(self, drawn: Drawn) -> Floats:
        """Mean curvature [1/m] at each point (k,), averaged around it; positive in a hollow."""
        own = np.einsum("ki,ki->k", drawn.normals, self._bend @ drawn.points)
        return np.asarray(self._around @ (self._around @ own))


def _rings(rest: Floats, triangles: Indices) -> tuple[sparse.csr_matrix, sparse.csr_matrix, Floats]:
    """Twice the mean of (x_j - x_i) / l_ij^2 over neighbours j of i, the mean with i's own, that of l_ij."""
    k, pairs = len(rest), triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    i, j = np.unique(np.r_[pairs, pairs[:, ::-1]], axis=0).T
    square = np.maximum(np.einsum("hi,hi->h", rest[j] - rest[i], rest[j] - rest[i]), 1e-300)
    share = 1.0 / np.maximum(np.bincount(i, minlength=k), 1)
    away = sparse.csr_matrix((2.0 * share[i] / square, (i, j)), shape=(k, k))
    bend = away - sparse.diags(np.asarray(away.sum(axis=1)).ravel())
    around = sparse.csr_matrix((0.5 * share[i], (i, j)), shape=(k, k)) + 0.5 * sparse.identity(k)
    return bend.tocsr(), around.tocsr(), share * np.bincount(i, np.sqrt(square), k)
