"""Normals of triangles, and smooth patches of a mesh that keep its sharp edges sharp."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

CREASE = 40.0  # degrees between two faces from which their common edge is drawn sharp


def cross(a: Floats, b: Floats) -> Floats:
    """Cross products of rows (n, 3), in a fraction of the time that NumPy's own takes for few."""
    product = np.empty(a.shape)
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        product[:, k] = a[:, i] * b[:, j] - a[:, j] * b[:, i]
    return product


def lengths(rows: Floats) -> Floats:
    """Of vectors (n, 3), as (n,)."""
    return np.asarray(np.sqrt(np.einsum("ni,ni->n", rows, rows)))


def face_normals(vertices: Floats, triangles: Indices) -> Floats:
    """Normals (m, 3) as long as twice the face's area [m^2], outward for counter-clockwise faces."""
    a, b, c = (vertices[triangles[:, k]] for k in range(3))
    return cross(b - a, c - a)


def corner_weights(vertices: Floats, triangles: Indices) -> Floats:
    """Angle [rad] of each corner over twice its face's area [m^2], shape (m, 3); zero where there is none.

    Weights of `face_normals` that sum to normals weighted by angle (Thürmer and Wüthrich 1998).
    """
    corners = vertices[triangles]
    ahead, behind = (np.roll(corners, shift, axis=1) - corners for shift in (-1, 1))
    area = np.linalg.norm(face_normals(vertices, triangles), axis=1)[:, None]
    angles: Floats = np.arctan2(area, np.einsum("fki,fki->fk", ahead, behind))
    return np.divide(angles, area, out=np.zeros_like(angles), where=area > 0.0)


def split_at_creases(vertices: Floats, triangles: Indices, crease: float = CREASE) -> tuple[Indices, Indices]:
    """Give a vertex one copy for each smooth patch around it.

    Two corners of faces share a copy when a chain of faces joins them across edges bent less than `crease`
    degrees.
    Returns (source vertex of each copy (k,), triangles over the copies (m, 3)).
    """
    m = len(triangles)
    normals = face_normals(vertices, triangles)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    first, second = _neighbours(triangles)
    smooth = np.einsum("ij,ij->i", normals[first // 3], normals[second // 3]) > np.cos(np.radians(crease))
    first, second = first[smooth], second[smooth]
    graph = sparse.coo_matrix((np.ones(len(first)), (first, second)), shape=(3 * m, 3 * m))
    k, copy = connected_components(graph, directed=False)
    source = np.empty(k, np.int32)
    source[copy] = triangles.ravel()
    return source, copy.reshape(m, 3).astype(np.int32)


def _neighbours(triangles: Indices) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of corners (numbers 3 face + k) at the same vertex of two faces that share an edge there."""
    corner = np.arange(triangles.size).reshape(-1, 3)
    start, end = corner.ravel(), np.roll(corner, -1, axis=1).ravel()
    a, b = triangles.ravel()[start], triangles.ravel()[end]
    low, high = np.where(a < b, start, end), np.where(a < b, end, start)
    order = np.lexsort((np.maximum(a, b), np.minimum(a, b)))
    low, high = low[order], high[order]
    vertex = triangles.ravel()
    same = (vertex[low[:-1]] == vertex[low[1:]]) & (vertex[high[:-1]] == vertex[high[1:]])
    return (
        np.concatenate([low[:-1][same], high[:-1][same]]),
        np.concatenate([low[1:][same], high[1:][same]]),
    )
