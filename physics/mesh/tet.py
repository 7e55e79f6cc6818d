"""Tetrahedral meshes: volumes, boundary, and the checks that make one fit to be simulated."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.checks import as_cells, as_points, drop_unreferenced, require_referenced
from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

OUTWARD_FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
"""Faces of a positively oriented tetrahedron, the i-th opposite to corner i, normals outward."""

MIN_QUALITY = 1e-4
"""Quality below which an element counts as flat: stiffness grows as 1/quality [-]."""


@dataclass(frozen=True, eq=False)
class TetMesh:
    """A tetrahedral mesh, every element of positive volume.

    nodes: [m], shape (n, 3). tets: node indices, shape (m, 4), det(x1 - x0, x2 - x0, x3 - x0) > 0.
    filled: share of each element that is of material, shape (m,), where a cut goes through some
    (palpo.physics.mesh.cutting); all of it without.
    labels: of the elements, shape (m,), where a file has them. patches: of the elements, shape (m,), where
    they are told (palpo.physics.mesh.patches). The constructor trusts its arrays; `validate_tets` checks
    arrays of unknown origin.
    """

    nodes: NDArray[np.float64]
    tets: NDArray[np.int32]
    filled: NDArray[np.float64] | None = None
    labels: NDArray[np.int64] | None = None
    patches: NDArray[np.int32] | None = None

    @property
    def cells(self) -> NDArray[np.int32]:
        """Nodes of the elements, shape (m, 4)."""
        return self.tets

    @cached_property
    def volumes(self) -> NDArray[np.float64]:
        """Volumes of the elements' material [m^3], shape (m,)."""
        volumes = tet_volumes(self.nodes, self.tets)
        return volumes if self.filled is None else self.filled * volumes

    @cached_property
    def volume(self) -> float:
        """Total volume [m^3]."""
        return float(self.volumes.sum())

    @cached_property
    def qualities(self) -> NDArray[np.float64]:
        """Element qualities in (0, 1], 1 for the regular tetrahedron, shape (m,)."""
        return tet_qualities(self.nodes, self.tets)

    @cached_property
    def boundary_nodes(self) -> NDArray[np.int32]:
        """Sorted indices of the nodes on the boundary."""
        return np.unique(boundary_triangles(self.tets))

    def surface(self, source: str = "tetrahedral mesh") -> SurfaceMesh:
        """The boundary with outward triangles that index this mesh's own nodes, so vertices = nodes."""
        return SurfaceMesh.from_triangles(self.nodes, boundary_triangles(self.tets), source)

    def border_of(self, which: NDArray[np.integer]) -> NDArray[np.int32]:
        """Outward triangles (k, 3) around some of the elements."""
        return boundary_triangles(self.tets[which])

    def with_nodes(self, nodes: NDArray[np.float64]) -> "TetMesh":
        """The same elements at other positions [m], shape (n, 3)."""
        return TetMesh(nodes, self.tets, self.filled, self.labels, self.patches)


def largest_piece(mesh: TetMesh) -> TetMesh:
    """Of what hangs together by faces, the piece of the largest volume."""
    met = distinct_sides(mesh.tets[:, OUTWARD_FACES].reshape(-1, 3)).of
    order = np.argsort(met, kind="stable")
    pairs = np.flatnonzero(np.diff(met[order]) == 0)
    graph = coo_array(
        (np.ones(len(pairs), np.int8), (order[pairs] // 4, order[pairs + 1] // 4)),
        shape=(len(mesh.tets),) * 2,
    )
    piece = connected_components(graph, directed=False)[1]
    largest = int(np.bincount(piece, mesh.volumes).argmax())
    return TetMesh(*drop_unreferenced(mesh.nodes, mesh.tets[piece == largest]))


def tet_volumes(nodes: NDArray[np.float64], tets: NDArray[np.int32]) -> NDArray[np.float64]:
    """Signed volumes det(x1 - x0, x2 - x0, x3 - x0) / 6 [m^3], shape (m,)."""
    a, b, c = (nodes[tets[:, i]] - nodes[tets[:, 0]] for i in (1, 2, 3))
    return np.einsum("mi,mi->m", a, np.cross(b, c)) / 6.0


def tet_qualities(nodes: NDArray[np.float64], tets: NDArray[np.int32]) -> NDArray[np.float64]:
    """Signed quality 6 sqrt(2) V / l^3 with l the root mean square edge, shape (m,).

    It is 1 for the regular tetrahedron, 0 for a flat one, and independent of size and position.
    """
    first, second = np.triu_indices(4, k=1)
    sides = nodes[tets[:, first]] - nodes[tets[:, second]]
    mean_square = np.einsum("mei,mei->m", sides, sides) / 6.0
    volumes = tet_volumes(nodes, tets)
    scale = mean_square**1.5
    return np.divide(6.0 * np.sqrt(2.0) * volumes, scale, out=np.zeros_like(volumes), where=scale > 0.0)


def orient_tets(nodes: NDArray[np.float64], tets: NDArray[np.int32]) -> NDArray[np.int32]:
    """Elements with two nodes exchanged wherever the volume is negative: node order is only a convention."""
    oriented = tets.copy()
    negative = tet_volumes(nodes, tets) < 0.0
    oriented[negative, 2:] = tets[negative, :1:-1]
    return oriented


def boundary_triangles(tets: NDArray[np.int32]) -> NDArray[np.int32]:
    """Outward faces that belong to one element only, shape (k, 3), in the order of their elements."""
    faces = tets[:, OUTWARD_FACES].reshape(-1, 3)
    met = distinct_sides(faces)
    return np.ascontiguousarray(faces[met.times[met.of] == 1])


def validate_tets(nodes: ArrayLike, tets: ArrayLike, source: str) -> None:
    """Raise InputError unless the mesh can be simulated; `source` names it in the message.

    nodes: [m], shape (n, 3). tets: shape (m, 4). Refused are: non-finite nodes, indices out of range, flat
    and inverted elements, nodes of no element, overlapping elements, disconnected pieces, and a boundary that
    is non-manifold at an edge or a node. Elements and nodes are counted from 0, in the order of the file.
    """
    nodes = as_points(nodes, source)
    tets = as_cells(tets, 4, len(nodes), "element", source)
    _refuse_bad_elements(nodes, tets, source)
    require_referenced(len(nodes), tets, "element", source)
    _refuse_overlaps(tets, source)
    _refuse_pieces(len(nodes), tets, source)
    TetMesh(nodes, tets).surface(source)


def _refuse_bad_elements(nodes: NDArray[np.float64], tets: NDArray[np.int32], source: str) -> None:
    volumes, qualities = tet_volumes(nodes, tets), tet_qualities(nodes, tets)
    flat = np.flatnonzero(np.abs(qualities) < MIN_QUALITY)
    if flat.size:
        raise InputError(
            f"{source}: element {flat[0]} (counted from 0) with nodes {tets[flat[0]].tolist()} is "
            f"degenerate: its volume is {volumes[flat[0]]:.3g} and its quality "
            f"{abs(qualities[flat[0]]):.1g}, where at least {MIN_QUALITY:g} is needed; remesh it."
        )
    inverted = np.flatnonzero(volumes < 0.0)
    if inverted.size:
        raise InputError(
            f"{source}: element {inverted[0]} (counted from 0) with nodes {tets[inverted[0]].tolist()} is "
            f"inverted: its volume is {volumes[inverted[0]]:.3g}; exchange two of its nodes."
        )


def _refuse_overlaps(tets: NDArray[np.int32], source: str) -> None:
    """InputError when two elements lie on the same side of one face, among them an element given twice."""
    faces = tets[:, OUTWARD_FACES].reshape(-1, 3)
    met = distinct_sides(faces)
    low = np.argmin(faces, axis=1)[:, None]
    second = np.take_along_axis(faces, (low + 1) % 3, axis=1)[:, 0]
    # Seen from its lowest node, a face runs up on one side and down on the other.
    side = 2 * met.of + (second == met.rows[met.of, 1])
    order = np.argsort(side, kind="stable")
    repeated = np.flatnonzero(np.diff(side[order]) == 0)
    if repeated.size:
        one, other = order[repeated[0] : repeated[0] + 2]
        raise InputError(
            f"{source}: elements {one // 4} and {other // 4} (counted from 0) overlap: both lie on the same "
            f"side of the face of nodes {faces[one].tolist()}; keep one of them."
        )


def _refuse_pieces(n_nodes: int, tets: NDArray[np.int32], source: str) -> None:
    i, j = np.repeat(tets[:, 0], 3), tets[:, 1:].reshape(-1)
    graph = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(n_nodes, n_nodes))
    n_pieces, piece = connected_components(graph, directed=False)
    if n_pieces > 1:
        stray = int(np.flatnonzero(piece[tets[:, 0]] != piece[tets[0, 0]])[0])
        raise InputError(
            f"{source}: the mesh falls into {n_pieces} disconnected pieces, element {stray} (counted from 0) "
            "does not hang together with element 0; join the pieces or make each its own body."
        )
