"""Oriented triangle surfaces with their edges, normals and mass properties.

Pseudo-normals follow Baerentzen and Aanaes, Signed distance computation using the angle weighted
pseudonormal (IEEE TVCG 2005): their sign tells inside from outside at vertices and edges too.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.checks import as_cells, as_points, drop_unreferenced
from palpo.physics.numerics.errors import InputError

FLAT_TRIANGLE = 1e-6
"""Twice the area over the square of the longest edge, below which rounding decides the normal [-]."""

NO_VOLUME = 1e-9
"""Volume over the area to the power 3/2, below which a closed surface is a folded sheet [-]."""


@dataclass(frozen=True, eq=False)
class SurfaceMesh:
    """A manifold triangle surface whose triangles turn counter-clockwise when seen from outside.

    Build it with `from_triangles`, which checks it and finds its edges.

    vertices: [m], shape (n, 3); a vertex need not be used.
    triangles: vertex indices, shape (m, 3).
    edges: vertex indices, shape (k, 2), each edge once, in the direction in which its first triangle runs it.
    edge_triangles: the triangles left and right of each edge, shape (k, 2); the second is -1 at a border.
    closed: whether no edge lies at a border.
    """

    vertices: NDArray[np.float64]
    triangles: NDArray[np.int32]
    edges: NDArray[np.int32]
    edge_triangles: NDArray[np.int32]
    closed: bool

    @classmethod
    def from_triangles(
        cls, vertices: ArrayLike, triangles: ArrayLike, source: str = "surface"
    ) -> "SurfaceMesh":
        """Surface of vertices [m], shape (n, 3), and triangles, shape (m, 3); `source` names it in messages.

        Raises InputError for non-finite vertices, indices out of range, degenerate triangles, edges of more
        than two triangles, neighbours of opposite orientation and fans that touch only at a vertex.
        """
        vertices = as_points(vertices, source)
        triangles = as_cells(triangles, 3, len(vertices), "triangle", source)
        _refuse_flat(vertices, triangles, source)
        edges, edge_triangles = _find_edges(triangles, source)
        _refuse_pinched(triangles, edges, edge_triangles, source)
        return cls(vertices, triangles, edges, edge_triangles, closed=bool((edge_triangles[:, 1] >= 0).all()))

    @classmethod
    def patch(cls, vertices: NDArray[np.float64], triangles: NDArray[np.integer]) -> "SurfaceMesh":
        """Triangles (m, 3) of a surface that has been checked; they may meet at no more than a vertex."""
        edges, edge_triangles = _find_edges(np.asarray(triangles, np.int32), "surface")
        closed = bool((edge_triangles[:, 1] >= 0).all())
        return cls(vertices, np.asarray(triangles, np.int32), edges, edge_triangles, closed)

    def with_vertices(self, vertices: NDArray[np.float64]) -> "SurfaceMesh":
        """The same connectivity at other positions [m], shape (n, 3)."""
        return SurfaceMesh(vertices, self.triangles, self.edges, self.edge_triangles, self.closed)

    def compact(self) -> "SurfaceMesh":
        """The same surface without the vertices that no triangle uses; the others keep their order."""
        vertices, triangles = drop_unreferenced(self.vertices, self.triangles)
        edges = np.searchsorted(self.used_vertices, self.edges).astype(np.int32)
        return SurfaceMesh(vertices, triangles, edges, self.edge_triangles, self.closed)

    def flipped(self) -> "SurfaceMesh":
        """The same surface turned inside out."""
        return SurfaceMesh(
            self.vertices,
            np.ascontiguousarray(self.triangles[:, ::-1]),
            np.ascontiguousarray(self.edges[:, ::-1]),
            self.edge_triangles,
            self.closed,
        )

    def require_volume(self, source: str) -> None:
        """InputError unless the surface is closed and encloses a positive volume."""
        if not self.closed:
            border = int(np.flatnonzero(self.edge_triangles[:, 1] < 0)[0])
            a, b = self.edges[border]
            raise InputError(
                f"{source}: the surface is open at the edge of nodes {a} and {b} (counted from 0), so it "
                "has no volume and no mass; close it, or use kind static."
            )
        if self.signed_volume <= NO_VOLUME * self.triangle_areas.sum() ** 1.5:
            raise InputError(f"{source}: the surface encloses no volume; its triangles must face outward.")

    @cached_property
    def used_vertices(self) -> NDArray[np.int32]:
        """Sorted indices of the vertices that some triangle uses."""
        return np.unique(self.triangles)

    @cached_property
    def triangle_vectors(self) -> NDArray[np.float64]:
        """Outward normals whose length is twice the triangle's area [m^2], shape (m, 3)."""
        a, b, c = (self.vertices[self.triangles[:, i]] for i in range(3))
        return np.cross(b - a, c - a)

    @cached_property
    def triangle_areas(self) -> NDArray[np.float64]:
        """Areas [m^2], shape (m,)."""
        return 0.5 * np.linalg.norm(self.triangle_vectors, axis=1)

    @cached_property
    def triangle_normals(self) -> NDArray[np.float64]:
        """Outward unit normals, shape (m, 3)."""
        return _unit(self.triangle_vectors)

    @cached_property
    def vertex_normals(self) -> NDArray[np.float64]:
        """Unit pseudo-normals, triangle normals weighted by corner angle, shape (n, 3); zero where unused."""
        corners = self.vertices[self.triangles]
        forward = _unit(np.roll(corners, -1, axis=1) - corners)
        backward = _unit(np.roll(corners, 1, axis=1) - corners)
        angles = np.arccos(np.clip(np.einsum("mci,mci->mc", forward, backward), -1.0, 1.0))
        weighted = angles[:, :, None] * self.triangle_normals[:, None, :]
        normals = np.zeros_like(self.vertices)
        np.add.at(normals, self.triangles, weighted)
        return _unit(normals)

    @cached_property
    def edge_normals(self) -> NDArray[np.float64]:
        """Unit pseudo-normals, the mean direction of the edge's triangles, shape (k, 3)."""
        left, right = self.edge_triangles[:, 0], self.edge_triangles[:, 1]
        interior = (right >= 0)[:, None]
        return _unit(self.triangle_normals[left] + np.where(interior, self.triangle_normals[right], 0.0))

    @cached_property
    def signed_volume(self) -> float:
        """Enclosed volume [m^3] by the divergence theorem; negative when the triangles face inward."""
        return float(_fan_volumes(self._corners_about_mean()).sum())

    def mass_properties(self, density: float) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Mass [kg], centre of mass [m], shape (3,), and inertia about it [kg m^2], shape (3, 3).

        The solid is the signed sum of the tetrahedra that join each triangle to one point (divergence
        theorem); density in kg/m^3. Raises InputError when the surface encloses no volume.
        """
        self.require_volume("surface")
        corners = self._corners_about_mean()
        volumes = _fan_volumes(corners)
        sums = corners.sum(axis=1)
        volume = volumes.sum()
        centre = volumes @ sums / (4.0 * volume)
        # Second moment of a tetrahedron with one corner at the origin: V/20 (sum p p^T + s s^T), s = sum p.
        second = np.einsum("m,mci,mcj->ij", volumes, corners, corners)
        second = (second + np.einsum("m,mi,mj->ij", volumes, sums, sums)) / 20.0
        second -= volume * np.outer(centre, centre)
        inertia = density * (np.trace(second) * np.eye(3) - second)
        return float(density * volume), centre + self._mean, inertia

    @cached_property
    def _mean(self) -> NDArray[np.float64]:
        return self.vertices[self.used_vertices].mean(axis=0)

    def _corners_about_mean(self) -> NDArray[np.float64]:
        # About the mean, a surface far from the origin loses no digits to cancellation.
        return self.vertices[self.triangles] - self._mean


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0.0)


def _fan_volumes(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.einsum("mi,mi->m", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])) / 6.0


def _refuse_flat(vertices: NDArray[np.float64], triangles: NDArray[np.int32], source: str) -> None:
    corners = vertices[triangles]
    sides = np.roll(corners, -1, axis=1) - corners
    longest = np.linalg.norm(sides, axis=2).max(axis=1)
    double_area = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1)
    flat = np.flatnonzero(double_area <= FLAT_TRIANGLE * longest**2)
    if flat.size:
        raise InputError(
            f"{source}: triangle {flat[0]} (counted from 0) with vertices {triangles[flat[0]].tolist()} is "
            f"degenerate: its area is {0.5 * double_area[flat[0]]:.3g} for a longest edge of "
            f"{longest[flat[0]]:.3g}; remove or remesh it."
        )


def _find_edges(triangles: NDArray[np.int32], source: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Each edge once, shape (k, 2), and its one or two triangles, shape (k, 2)."""
    half = triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    owner = np.repeat(np.arange(len(triangles), dtype=np.int32), 3)
    low, high = half.min(axis=1), half.max(axis=1)
    backward = half[:, 0] > half[:, 1]
    # Sorted so that the two halves of an edge are neighbours and the one from low to high comes first.
    order = np.lexsort((backward, high, low))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)
    start = np.flatnonzero(first)
    count = np.diff(np.append(start, len(order)))
    crowded = np.flatnonzero(count > 2)
    if crowded.size:
        halves = order[start[crowded[0]] :][: count[crowded[0]]]
        raise InputError(
            f"{source}: the edge of nodes {low[halves[0]]} and {high[halves[0]]} (counted from 0) is "
            f"non-manifold: it belongs to triangles {np.sort(owner[halves]).tolist()}, "
            "where at most two may meet."
        )
    paired = count == 2
    left = order[start]
    right = order[start[paired] + 1]
    clashing = np.flatnonzero(backward[left[paired]] == backward[right])
    if clashing.size:
        one, other = left[paired][clashing[0]], right[clashing[0]]
        raise InputError(
            f"{source}: triangles {owner[one]} and {owner[other]} (counted from 0) have opposite orientation "
            f"at the edge of nodes {low[one]} and {high[one]}; orient all triangles outward."
        )
    edge_triangles = np.full((len(start), 2), -1, dtype=np.int32)
    edge_triangles[:, 0] = owner[left]
    edge_triangles[paired, 1] = owner[right]
    return half[left], edge_triangles


def _refuse_pinched(
    triangles: NDArray[np.int32], edges: NDArray[np.int32], edge_triangles: NDArray[np.int32], source: str
) -> None:
    """InputError when the triangles around a vertex form more than one fan."""
    inner = edge_triangles[:, 1] >= 0
    left, right = edge_triangles[inner].T
    links = [
        np.stack([_corner(triangles, left, vertex), _corner(triangles, right, vertex)])
        for vertex in edges[inner].T
    ]
    i, j = np.concatenate(links, axis=1)
    size = triangles.size
    graph = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(size, size))
    _, fan = connected_components(graph, directed=False)
    _, sample = np.unique(fan, return_index=True)
    vertex, fans = np.unique(triangles.reshape(-1)[sample], return_counts=True)
    pinched = vertex[fans > 1]
    if pinched.size:
        raise InputError(
            f"{source}: node {pinched[0]} (counted from 0) is non-manifold: parts of the surface touch only "
            "at this point; split the node or join the parts by an edge."
        )


def _corner(
    triangles: NDArray[np.int32], triangle: NDArray[np.int32], vertex: NDArray[np.int32]
) -> NDArray[np.int64]:
    """Number of the corner of each triangle that lies at the given vertex, counted over all triangles."""
    return 3 * triangle.astype(np.int64) + np.argmax(triangles[triangle] == vertex[:, None], axis=1)
