"""Sharp edges and corners of a surface, given back to tetrahedra that were cut along it on a lattice.

A lattice cuts corners off. The nodes on the surface that are nearest to a corner, and then to a sharp edge,
move onto it where the tetrahedra around them bear it.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh, tet_qualities

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SHARP = 40.0
"""Angle between the normals of two triangles from which on their edge is sharp [degrees]."""
STRAIGHT = np.cos(np.radians(SHARP))
REACH, PLACES, CHOICES = 0.6, 0.25, 4
"""How far a node moves, how dense places on sharp edges are, over the size; nodes tried for each."""
LEAST_QUALITY = 0.15
"""Of a tetrahedron around a moved node, unless it was worse before."""


def onto_creases(mesh: TetMesh, surface: SurfaceMesh, size: float) -> TetMesh:
    """Tetrahedra of edges about `size`, cut along a closed surface, with nodes on its creases and corners."""
    corners, edges = _creases(surface)
    if not len(edges):
        return mesh
    begin, way = surface.vertices[edges[:, 0]], np.diff(surface.vertices[edges], axis=1)[:, 0]
    counts = np.maximum(1, np.ceil(np.linalg.norm(way, axis=1) / (PLACES * size))).astype(int)
    of = np.repeat(np.arange(len(edges)), counts)
    share = (np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts) + 0.5) / counts[of]
    places = np.concatenate([surface.vertices[corners], begin[of] + share[:, None] * way[of]])
    border = mesh.surface().used_vertices
    distance, near = cKDTree(mesh.nodes[border]).query(places, k=min(CHOICES, len(border)))
    place, choice = np.nonzero(distance < REACH * size)
    order = np.lexsort((distance[place, choice], place >= len(corners)))
    around = _tets_around(mesh)
    nodes, moved, met = mesh.nodes.copy(), np.zeros(len(mesh.nodes), bool), np.zeros(len(places), bool)
    for p, node in zip(place[order], border[near[place, choice]][order], strict=True):
        if moved[node] or (p < len(corners) and met[p]):
            continue
        goal = places[p] if p < len(corners) else _nearest(mesh.nodes[node], begin, way)
        tets = mesh.tets[around[node]]
        before, was = tet_qualities(nodes, tets).min(), nodes[node].copy()
        nodes[node] = goal
        if tet_qualities(nodes, tets).min() < min(LEAST_QUALITY, before):
            nodes[node] = was
        else:
            moved[node], met[p] = True, True
    return mesh.with_nodes(nodes)


def _creases(surface: SurfaceMesh) -> tuple[Ints, Ints]:
    """Corners (c,), where sharp edges end, meet or turn sharply; and the edges (k, 2)."""
    one, other = surface.triangle_normals[surface.edge_triangles].transpose(1, 0, 2)
    edges = surface.edges[np.einsum("ij,ij->i", one, other) < STRAIGHT].astype(np.int64)
    n = len(surface.vertices)
    ends = np.bincount(edges.ravel(), minlength=n)
    way = np.diff(surface.vertices[edges], axis=1)[:, 0]
    unit = way / np.linalg.norm(way, axis=1)[:, None]
    # of two edges that go straight on, the unit vectors away from the vertex cancel
    away = np.zeros((n, 3))
    np.add.at(away, edges[:, 0], unit)
    np.add.at(away, edges[:, 1], -unit)
    turns = (away**2).sum(axis=1) > 2.0 - 2.0 * STRAIGHT
    return np.flatnonzero(((ends > 0) & (ends != 2)) | ((ends == 2) & turns)), edges


def _nearest(point: Floats, begin: Floats, way: Floats) -> Floats:
    """The place on segments (k, 3) that is nearest to a point."""
    share = np.einsum("ij,ij->i", point - begin, way) / np.einsum("ij,ij->i", way, way)
    places = begin + np.clip(share, 0.0, 1.0)[:, None] * way
    return np.asarray(places[((places - point) ** 2).sum(axis=1).argmin()])


def _tets_around(mesh: TetMesh) -> list[Ints]:
    """The tetrahedra of each node."""
    order = np.argsort(mesh.tets.ravel(), kind="stable")
    counts = np.bincount(mesh.tets.ravel(), minlength=len(mesh.nodes))
    return np.split(order // 4, np.cumsum(counts)[:-1])
