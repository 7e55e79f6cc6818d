"""Solids of mapped hexahedral cells, some of them empty: the grid under every connector.

A profile is a grid of points (n_i, n_j, 2) with the cells (n_i - 1, n_j - 1) that are filled; layers of
profiles make a solid.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.generate import FIVE_TETS
from palpo.physics.mesh.hex import CORNERS, HexMesh, orient_hexes
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh, orient_tets

CORNER = (np.arange(8) // np.array([4, 2, 1])[:, None]) % 2
"""Offset of corner 4 a + 2 b + c of a cell along each axis, shape (3, 8)."""

OF_HEXAHEDRON = ((CORNERS + 1) // 2) @ [4, 2, 1]
"""Which of these corners are those of a hexahedron, in its order."""


class FilledCells(NamedTuple):
    """The filled cells of a grid."""

    mesh: TetMesh  # five tetrahedra a cell, mirrored from cell to cell
    number: NDArray[np.int32]  # of every grid node in it, -1 where no cell uses it
    cells: HexMesh  # the same, a hexahedron a cell, with the same nodes


def solid(nodes: NDArray[np.float64], filled: NDArray[np.bool_], wrapped: bool = False) -> FilledCells:
    """The filled cells (p, q, r) of a grid of nodes [m], shape (p + 1, q + 1, r + 1, 3), as a body.

    With `wrapped` the last axis closes on itself: nodes (p + 1, q + 1, r, 3), r even. Positions of unused
    nodes are free, NaN among them.
    """
    index = np.argwhere(filled).T
    odd = index.sum(axis=0) % 2
    i, j, k = index[:, :, None] + CORNER[:, None, :]
    mirrored = index[0][:, None] + (CORNER[0] ^ odd[:, None])
    if wrapped:
        k %= nodes.shape[2]
    corners = np.ravel_multi_index((mirrored, j, k), nodes.shape[:3])
    used, tets = np.unique(corners[:, FIVE_TETS], return_inverse=True)
    number = np.full(nodes.shape[:3], -1, dtype=np.int32)
    number.reshape(-1)[used] = np.arange(used.size)
    points = np.ascontiguousarray(nodes.reshape(-1, 3)[used])
    hexes = number.reshape(-1)[np.ravel_multi_index((i, j, k), nodes.shape[:3])[:, OF_HEXAHEDRON]]
    return FilledCells(
        TetMesh(points, orient_tets(points, tets.reshape(-1, 4).astype(np.int32))),
        number,
        HexMesh(points, orient_hexes(points, hexes)),
    )


def extruded(points: NDArray[np.float64], z: ArrayLike) -> NDArray[np.float64]:
    """Grid of a profile of (x, y) repeated at the levels z [m]; shape (n_i, n_j, n_z, 3)."""
    levels = np.asarray(z, dtype=np.float64)
    grid = np.empty((*points.shape[:2], levels.size, 3))
    grid[..., :2] = points[:, :, None]
    grid[..., 2] = levels
    return grid


def bevelled(
    points: NDArray[np.float64], filled: NDArray[np.bool_], depth: float, bevel: float, cells: int
) -> SurfaceMesh:
    """Closed surface of a profile of (x, y) extruded over `depth` [m], centred on z = 0.

    The outline shrinks by `bevel` [m] over the last `bevel` of each end. cells: layers between the bevels.
    """
    half = 0.5 * depth
    levels = np.concatenate([[-half], np.linspace(bevel - half, half - bevel, cells + 1), [half]])
    grid = extruded(points, levels)
    grid[:, :, [0, -1], :2] = _inset(points, filled, bevel)[:, :, None]
    made = solid(grid, np.repeat(filled[:, :, None], levels.size - 1, axis=2))
    return made.mesh.surface("plug").compact()


def _inset(points: NDArray[np.float64], filled: NDArray[np.bool_], depth: float) -> NDArray[np.float64]:
    """The profile with each side of its outline moved inward by `depth` [m]."""
    i, j = np.argwhere(filled).T
    ring = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])
    corner = (i[:, None] + ring[:, 0]) * points.shape[1] + j[:, None] + ring[:, 1]
    flat = points.reshape(-1, 2)
    a, b, c = (flat[corner[:, m]] for m in range(3))
    (ux, uy), (vx, vy) = (b - a).T, (c - b).T
    clockwise = ux * vy < uy * vx
    corner[clockwise] = corner[clockwise][:, ::-1]
    sides = np.stack([corner, np.roll(corner, -1, axis=1)], axis=2).reshape(-1, 2)
    met = distinct_sides(sides)
    outline = sides[met.times[met.of] == 1]
    along = flat[outline[:, 1]] - flat[outline[:, 0]]
    outward = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
    # A vertex lies on two sides, with normals p and q; it moves to where the moved sides cross.
    total, square = np.zeros_like(flat), np.zeros(len(flat))
    np.add.at(total, outline, outward[:, None])
    np.add.at(square, outline, 1.0)
    on_outline = square > 0.0
    moved = flat.copy()
    # |p + q|^2 = 2 (1 + p.q)
    moved[on_outline] -= (2.0 * depth / (total[on_outline] ** 2).sum(axis=1))[:, None] * total[on_outline]
    return moved.reshape(points.shape)


def revolved(outline: ArrayLike, n_around: int) -> SurfaceMesh:
    """Closed surface of revolution about y of an outline (r, y) [m], shape (k, 2).

    The outline runs upward from the axis to the axis: r is zero at both ends and positive between.
    """
    r, y = np.asarray(outline, dtype=np.float64)[1:-1].T
    bottom, top = np.asarray(outline, dtype=np.float64)[[0, -1], 1]
    angle = 2.0 * np.pi * np.arange(n_around) / n_around
    circle = np.stack([np.cos(angle), np.zeros(n_around), -np.sin(angle)], axis=1)
    rings = r[:, None, None] * circle + y[:, None, None] * np.array([0.0, 1.0, 0.0])
    vertices = np.concatenate([rings.reshape(-1, 3), [[0.0, bottom, 0.0], [0.0, top, 0.0]]])
    here = np.arange(n_around)
    following = (here + 1) % n_around
    ring = n_around * np.arange(len(r) - 1)[:, None]
    a, b, c, d = ring + here, ring + following, ring + n_around + following, ring + n_around + here
    last = n_around * (len(r) - 1)
    pole = np.full(n_around, len(vertices) - 2)
    triangles = np.concatenate(
        [
            np.stack([a, b, c], axis=2).reshape(-1, 3),
            np.stack([a, c, d], axis=2).reshape(-1, 3),
            np.stack([pole, following, here], axis=1),
            np.stack([pole + 1, last + here, last + following], axis=1),
        ]
    )
    return SurfaceMesh.from_triangles(vertices, triangles, "plug")


def skin_triangles(
    mesh: TetMesh, nodes: NDArray[np.int32], sides: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> NDArray[np.int32]:
    """Outward boundary triangles whose corners are all among `nodes`, but for those that face +-sides."""
    surface = mesh.surface()
    flank = np.abs(surface.triangle_normals @ np.asarray(sides)) > 0.9
    return surface.triangles[np.isin(surface.triangles, nodes).all(axis=1) & ~flank]
