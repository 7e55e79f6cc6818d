"""A closed surface whose faces stand out by the same distance: a part that came out too large or small."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.surface import SurfaceMesh

SAME = 1e-3
"""Singular values of a vertex's face normals below this share of the largest are of one face, cut up [-]."""


def grown(surface: SurfaceMesh, distance: float) -> SurfaceMesh:
    """The surface with every triangle moved outward by `distance` [m], inward where it is negative.

    Each vertex goes where the planes of its faces meet after that, which at an edge or a corner is farther
    than the distance; where they do not meet in one place, where the squares of what is missing are least.
    Nothing sees to it that the surface does not cross itself: keep the distance small beside its features.
    """
    if distance == 0.0:
        return surface
    normals, triangles = surface.triangle_normals, surface.triangles
    order = np.argsort(triangles.ravel(), kind="stable")
    vertex, face = triangles.ravel()[order], order // 3
    starts = np.searchsorted(vertex, np.arange(len(surface.vertices) + 1))
    moved: NDArray[np.float64] = surface.vertices.copy()
    for i, (first, last) in enumerate(pairwise(starts)):
        if last > first:
            planes = normals[face[first:last]]
            moved[i] += np.linalg.lstsq(planes, np.full(len(planes), distance), rcond=SAME)[0]
    return surface.with_vertices(moved)
