"""Ten-node tetrahedra with straight edges, from four-node ones: a node in the middle of each edge."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh, boundary_triangles, orient_tets

EDGES = np.array([[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]])
"""Corners of the edges whose middles are nodes 4 to 9, in the order of VTK."""

EIGHTHS = np.array(
    [
        [0, 4, 6, 7],
        [1, 5, 4, 8],
        [2, 6, 5, 9],
        [3, 7, 8, 9],
        [6, 8, 4, 7],
        [6, 8, 7, 9],
        [6, 8, 9, 5],
        [6, 8, 5, 4],
    ]
)
"""Four-node tetrahedra of equal volume that fill one of ten nodes: at its corners, and between these."""


@dataclass(frozen=True, eq=False)
class QuadraticTetMesh:
    """Ten-node tetrahedra: nodes (n, 3) [m]; cells (m, 10), corners first and then the middles of `EDGES`;
    labels as a TetMesh has them."""

    nodes: NDArray[np.float64]
    cells: NDArray[np.int32]
    labels: NDArray[np.int64] | None = None

    def split(self) -> TetMesh:
        """Four-node tetrahedra of the same nodes, eight for each."""
        cells = np.ascontiguousarray(self.cells[:, EIGHTHS].reshape(-1, 4))
        return TetMesh(self.nodes, orient_tets(self.nodes, cells))

    @property
    def boundary_nodes(self) -> NDArray[np.int32]:
        """Sorted indices of the nodes on the boundary."""
        return self.split().boundary_nodes

    def surface(self, source: str = "quadratic mesh") -> SurfaceMesh:
        """The boundary with outward triangles, four a face, that index this mesh's own nodes."""
        return self.split().surface(source)

    def border_of(self, which: NDArray[np.integer]) -> NDArray[np.int32]:
        """See TetMesh; four triangles a face."""
        return boundary_triangles(QuadraticTetMesh(self.nodes, self.cells[which]).split().tets)

    def with_nodes(self, nodes: NDArray[np.float64]) -> "QuadraticTetMesh":
        """The same elements at other positions [m], shape (n, 3)."""
        return QuadraticTetMesh(nodes, self.cells, self.labels)


def with_middles(mesh: TetMesh) -> tuple[TetMesh, QuadraticTetMesh, NDArray[np.int32]]:
    """The mesh with a node in the middle of each edge, after its own, as four-node and as ten-node elements.

    The third is the two ends of each new node, shape (k, 2). Both meshes have the same nodes; each element is
    eight of four nodes, whose boundary cuts each triangle in four.
    """
    edges = distinct_sides(mesh.tets[:, EDGES].reshape(-1, 2))
    nodes = np.vstack([mesh.nodes, mesh.nodes[edges.rows].mean(axis=1)])
    middles = len(mesh.nodes) + edges.of.reshape(-1, len(EDGES))
    cells = np.hstack([mesh.tets, middles]).astype(np.int32)
    quadratic = QuadraticTetMesh(nodes, cells, mesh.labels)
    return quadratic.split(), quadratic, edges.rows.astype(np.int32)


def with_chosen_middles(chosen: NDArray[np.integer], ends: NDArray[np.int32], n: int) -> NDArray[np.int32]:
    """Chosen nodes of a mesh of n, and of its new nodes (k, 2) those between two chosen ones; ascending."""
    between = np.isin(ends, chosen).all(axis=1)
    return np.concatenate([np.unique(chosen), n + np.flatnonzero(between)]).astype(np.int32)
