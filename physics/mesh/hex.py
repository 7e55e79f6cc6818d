"""Hexahedral meshes of eight-node elements: boundary, and the checks that make one fit to be simulated.

Corners are numbered as VTK and Gmsh do: 0 1 2 3 around the bottom, 4 5 6 7 above them, so that the corner of
local coordinates (-1, -1, -1) is 0 and (1, 1, 1) is 6.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.checks import as_cells, as_points, require_referenced
from palpo.physics.mesh.distinct import distinct_rows, distinct_sides
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

CORNERS = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]]
)
"""Local coordinates of the corners."""

OUTWARD_FACES = np.array([[0, 3, 2, 1], [4, 5, 6, 7], [0, 1, 5, 4], [2, 3, 7, 6], [0, 4, 7, 3], [1, 2, 6, 5]])
"""Faces, counter-clockwise when seen from outside."""

NEIGHBOURS = np.array(
    [[1, 3, 4], [2, 0, 5], [3, 1, 6], [0, 2, 7], [7, 5, 0], [4, 6, 1], [5, 7, 2], [6, 4, 3]]
)
"""The corners at the other ends of each corner's edges, in right-handed order."""

MIRRORED = np.array([4, 5, 6, 7, 0, 1, 2, 3])
"""Bottom and top exchanged: turns an element given inside out."""

MIN_QUALITY = 1e-3
"""Quality below which an element counts as flat or folded [-]."""


@dataclass(frozen=True, eq=False)
class HexMesh:
    """A hexahedral mesh, every element convex at its corners.

    nodes: [m], shape (n, 3). hexes: node indices, shape (m, 8). labels: as a TetMesh has them.
    The constructor trusts its arrays; `validate_hexes` checks arrays of unknown origin.
    """

    nodes: NDArray[np.float64]
    hexes: NDArray[np.int32]
    labels: NDArray[np.int64] | None = None

    @property
    def cells(self) -> NDArray[np.int32]:
        """Nodes of the elements, shape (m, 8)."""
        return self.hexes

    @cached_property
    def volume(self) -> float:
        """Total volume [m^3], of faces that are bilinear where their corners lie in no plane."""
        # two points a direction: along each the Jacobian is of second order, and they are exact to the third
        at = 1.0 + CORNERS[:, None, :] * CORNERS / np.sqrt(3.0)
        slopes = CORNERS * at[:, :, [[1, 2], [2, 0], [0, 1]]].prod(axis=3) / 8.0
        jacobians = self.nodes[self.hexes].transpose(0, 2, 1)[:, None] @ slopes
        return float(np.linalg.det(jacobians).sum())

    @cached_property
    def boundary_nodes(self) -> NDArray[np.int32]:
        """Sorted indices of the nodes on the boundary."""
        return np.unique(boundary_quads(self.hexes))

    def surface(self, source: str = "hexahedral mesh") -> SurfaceMesh:
        """The boundary with outward triangles, two a face, that index this mesh's own nodes."""
        quads = boundary_quads(self.hexes)
        return SurfaceMesh.from_triangles(self.nodes, _halves(self.nodes, quads), source)

    def border_of(self, which: NDArray[np.integer]) -> NDArray[np.int32]:
        """See TetMesh."""
        return _halves(self.nodes, boundary_quads(self.hexes[which]))

    def with_nodes(self, nodes: NDArray[np.float64]) -> "HexMesh":
        """The same elements at other positions [m], shape (n, 3)."""
        return HexMesh(nodes, self.hexes, self.labels)


def hex_qualities(nodes: NDArray[np.float64], hexes: NDArray[np.int32]) -> NDArray[np.float64]:
    """Smallest scaled Jacobian over the corners, shape (m,): 1 for a box, 0 for flat, negative for folded."""
    corners = nodes[hexes]
    edges = corners[:, NEIGHBOURS] - corners[:, :, None]
    lengths = np.linalg.norm(edges, axis=3, keepdims=True)
    directions = np.divide(edges, lengths, out=np.zeros_like(edges), where=lengths > 0.0)
    return np.linalg.det(directions).min(axis=1)


def orient_hexes(nodes: NDArray[np.float64], hexes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Elements given inside out turned right: node order is only a convention."""
    mirrored = np.ascontiguousarray(hexes[:, MIRRORED])
    inside_out = hex_qualities(nodes, mirrored) > hex_qualities(nodes, hexes)
    return np.where(inside_out[:, None], mirrored, hexes)


def boundary_quads(hexes: NDArray[np.int32]) -> NDArray[np.int32]:
    """Outward faces that belong to one element only, shape (k, 4), in the order of their elements."""
    faces = hexes[:, OUTWARD_FACES].reshape(-1, 4)
    met = distinct_sides(faces)
    return np.ascontiguousarray(faces[met.times[met.of] == 1])


def validate_hexes(nodes: ArrayLike, hexes: ArrayLike, source: str) -> None:
    """Raise InputError unless the mesh can be simulated; `source` names it in the message.

    nodes: [m], shape (n, 3). hexes: shape (m, 8). Refused are: non-finite nodes, indices out of range, flat,
    folded and inverted elements, nodes of no element, overlapping elements, disconnected pieces, and a
    boundary that is non-manifold. Elements and nodes are counted from 0, in the order of the file.
    """
    nodes = as_points(nodes, source)
    hexes = as_cells(hexes, 8, len(nodes), "element", source)
    quality = hex_qualities(nodes, hexes)
    bad = np.flatnonzero(quality < MIN_QUALITY)
    if bad.size:
        raise InputError(
            f"{source}: element {bad[0]} (counted from 0) with nodes {hexes[bad[0]].tolist()} is flat, "
            f"folded or inverted: its smallest scaled Jacobian is {quality[bad[0]]:.3g}, where at least "
            f"{MIN_QUALITY:g} is needed; remesh it."
        )
    require_referenced(len(nodes), hexes, "element", source)
    _refuse_overlaps(hexes, source)
    _refuse_pieces(len(nodes), hexes, source)
    HexMesh(nodes, hexes).surface(source)


def _halves(nodes: NDArray[np.float64], quads: NDArray[np.int32]) -> NDArray[np.int32]:
    """Each quad cut along its shorter diagonal, the first one if equal; shape (2 k, 3)."""
    a, b = (np.linalg.norm(nodes[quads[:, i + 2]] - nodes[quads[:, i]], axis=1) for i in (0, 1))
    turned = np.where((b < (1.0 - 1e-9) * a)[:, None], np.roll(quads, -1, axis=1), quads)
    return np.ascontiguousarray(turned[:, [[0, 1, 2], [0, 2, 3]]].reshape(-1, 3))


def _refuse_overlaps(hexes: NDArray[np.int32], source: str) -> None:
    """InputError when two elements lie on the same side of one face, among them an element given twice."""
    faces = hexes[:, OUTWARD_FACES].reshape(-1, 4)
    from_lowest = (np.arange(4) + np.argmin(faces, axis=1)[:, None]) % 4
    turned = np.take_along_axis(faces, from_lowest, axis=1)
    met = distinct_rows(turned)
    repeated = np.flatnonzero(met.times > 1)
    if repeated.size:
        one, other = np.flatnonzero(met.of == repeated[0])[:2]
        raise InputError(
            f"{source}: elements {one // 6} and {other // 6} (counted from 0) overlap: both lie on the same "
            f"side of the face of nodes {faces[one].tolist()}; keep one of them."
        )


def _refuse_pieces(n_nodes: int, hexes: NDArray[np.int32], source: str) -> None:
    i, j = np.repeat(hexes[:, 0], 7), hexes[:, 1:].reshape(-1)
    graph = coo_array((np.ones(len(i), dtype=np.int8), (i, j)), shape=(n_nodes, n_nodes))
    n_pieces, piece = connected_components(graph, directed=False)
    if n_pieces > 1:
        stray = int(np.flatnonzero(piece[hexes[:, 0]] != piece[hexes[0, 0]])[0])
        raise InputError(
            f"{source}: the mesh falls into {n_pieces} disconnected pieces, element {stray} (counted from 0) "
            "does not hang together with element 0; join the pieces or make each its own body."
        )
