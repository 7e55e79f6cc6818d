"""Generated geometry, centred on the origin: solids of tetrahedra or hexahedra, triangle surfaces, beams.

Solids are inscribed in the shape they stand for, so volumes converge to it at second order.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.mesh.beam import BeamLine
from palpo.physics.mesh.checks import as_points
from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.hex import CORNERS, HexMesh
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh, orient_tets
from palpo.physics.numerics.errors import InputError

T = TypeVar("T", int, float)

AXES = {"x": 0, "y": 1, "z": 2}

# Corners of a hexahedral cell are numbered 4 a + 2 b + c for offsets (a, b, c) in {0, 1}^3.
FIVE_TETS = np.array([[0, 4, 2, 1], [6, 2, 4, 7], [5, 4, 1, 7], [3, 1, 2, 7], [4, 2, 1, 7]])
SIX_TETS = np.array([[0, 4, 6, 7], [0, 4, 5, 7], [0, 2, 6, 7], [0, 2, 3, 7], [0, 1, 5, 7], [0, 1, 3, 7]])
# Corners of a prism: 0 1 2 below, 3 4 5 above them.
THREE_TETS = np.array([[0, 1, 2, 5], [0, 1, 4, 5], [0, 3, 4, 5]])


def block(
    size: Sequence[float], divisions: Sequence[int], grading: Sequence[float] = (1.0, 1.0, 1.0)
) -> TetMesh:
    """Rectangular block of edge lengths `size` [m], shape (3,), cut into `divisions` cells, shape (3,).

    Each cell becomes five tetrahedra, mirrored from cell to cell so that the diagonals favour no direction
    (exactly so for even divisions). `grading` is the last cell's length over the first's along each axis.
    Raises InputError for sizes or gradings that are not positive and divisions below 1.
    """
    nodes, cells = _grid(size, divisions, grading)
    index = np.indices(cells).reshape(3, -1)
    # Mirroring a cell along one axis exchanges the corners along it; neighbours then agree on their face.
    odd = index.sum(axis=0) % 2
    return tets_of_cells(nodes, cells, index, np.stack([odd, 0 * odd, 0 * odd]), FIVE_TETS)


def hex_block(
    size: Sequence[float], divisions: Sequence[int], grading: Sequence[float] = (1.0, 1.0, 1.0)
) -> HexMesh:
    """Rectangular block of edge lengths `size` [m], shape (3,), in `divisions` hexahedra, shape (3,).

    Nodes are numbered as in `block` of the same arguments. Raises InputError as `block` does.
    """
    nodes, cells = _grid(size, divisions, grading)
    i, j, k = np.indices(cells).reshape(3, -1)[:, :, None] + ((CORNERS.T + 1) // 2)[:, None, :]
    _, ny, nz = cells
    return HexMesh(nodes, ((i * (ny + 1) + j) * (nz + 1) + k).astype(np.int32))


def ellipsoid(radii: Sequence[float], n_radial: int) -> TetMesh:
    """Ellipsoid of semi-axes `radii` [m], shape (3,), with `n_radial` cells from the centre to the surface.

    A cube of (2 n_radial)^3 cells is pushed onto the ball along its radii. Every cell's long diagonal points
    at the centre, so no element is flattened between two faces that the sphere makes coplanar.
    Raises InputError for radii that are not positive and n_radial below 1.
    """
    semi_axes = np.array(_three("radii", radii, _length))
    n = 2 * _count("n_radial", n_radial)
    index = np.indices((n, n, n)).reshape(3, -1)
    grid = np.indices((n + 1, n + 1, n + 1)).reshape(3, -1).T * (2.0 / n) - 1.0
    cube = np.abs(grid).max(axis=1)
    ball = np.linalg.norm(grid, axis=1)
    nodes = grid * np.divide(cube, ball, out=np.zeros_like(ball), where=ball > 0.0)[:, None] * semi_axes
    return tets_of_cells(nodes, (n, n, n), index, (index < n // 2).astype(int), SIX_TETS)


def sphere(radius: float, n_radial: int) -> TetMesh:
    """Ball of `radius` [m]; see `ellipsoid`."""
    return ellipsoid((radius, radius, radius), n_radial)


def cylinder(radius: float, length: float, n_around: int, n_length: int, axis: str = "y") -> TetMesh:
    """Cylinder of `radius` and `length` [m] along `axis` ("x", "y" or "z").

    Its discs are rings of nodes, `n_around` on the outermost (at least 3) and fewer inside in proportion,
    joined into `n_length` layers of prisms of three tetrahedra. Every other layer is mirrored, so that the
    diagonals do not couple stretch with twist (exactly so for an even n_length).
    Raises InputError for lengths that are not positive, counts that are too small, and an unknown axis.
    """
    radius, length = _length("radius", radius), _length("length", length)
    n_around, n_length = _count("n_around", n_around, 3), _count("n_length", n_length)
    if axis not in AXES:
        raise InputError(f'cylinder: axis is {axis!r}, expected "x", "y" or "z".')
    points, triangles = _disc(n_around)
    height = length * (np.arange(n_length + 1) / n_length - 0.5)
    nodes = np.empty((n_length + 1, len(points), 3))
    nodes[:, :, AXES[axis]] = height[:, None]
    nodes[:, :, (AXES[axis] + 1) % 3] = radius * points[:, 0]
    nodes[:, :, (AXES[axis] + 2) % 3] = radius * points[:, 1]

    # With each triangle's nodes sorted, neighbouring prisms cut their common side along the same diagonal.
    below = np.sort(triangles, axis=1)
    layer = np.arange(n_length)[:, None, None]
    lower, upper = below + layer * len(points), below + (layer + 1) * len(points)
    mirrored = layer % 2 == 1
    prisms = np.concatenate([np.where(mirrored, upper, lower), np.where(mirrored, lower, upper)], axis=2)
    return _oriented(nodes.reshape(-1, 3), prisms[:, :, THREE_TETS])


def beam_line(start: ArrayLike, end: ArrayLike, n_elements: int, radius: float) -> BeamLine:
    """Straight line of `n_elements` equal beams from `start` to `end` [m], shape (3,), and `radius` [m]."""
    first, last = as_points(np.stack([start, end]), "beam line")
    steps = np.linspace(0.0, 1.0, _count("n_elements", n_elements) + 1)[:, None]
    return BeamLine((1.0 - steps) * first + steps * last, radius)


def sphere_surface(radius: float, subdivisions: int) -> SurfaceMesh:
    """Sphere of `radius` [m]: an icosahedron, its triangles cut in four `subdivisions` times (20 * 4^k)."""
    radius, subdivisions = _length("radius", radius), _count("subdivisions", subdivisions, 0)
    golden = 0.5 * (1.0 + math.sqrt(5.0))
    rectangle = np.array([[0.0, s, t * golden] for s in (-1.0, 1.0) for t in (-1.0, 1.0)])
    vertices = np.concatenate([np.roll(rectangle, k, axis=1) for k in range(3)])
    # A face is three vertices at mutual distance 2, the edge length of this icosahedron.
    near = np.isclose(np.linalg.norm(vertices[:, None] - vertices[None], axis=2), 2.0)
    i, j, k = np.nonzero(near[:, :, None] & near[None, :, :] & near[:, None, :])
    triangles = np.stack([i, j, k], axis=1)[(i < j) & (j < k)]
    inward = np.linalg.det(vertices[triangles]) < 0.0
    triangles[inward] = triangles[inward][:, ::-1]
    for _ in range(subdivisions):
        vertices, triangles = _cut_in_four(vertices, triangles)
    vertices *= radius / np.linalg.norm(vertices, axis=1, keepdims=True)
    return SurfaceMesh.from_triangles(vertices, triangles, "sphere")


def box_surface(size: Sequence[float], divisions: Sequence[int] = (1, 1, 1)) -> SurfaceMesh:
    """Surface of `block(size, divisions)`, its own vertices only."""
    return block(size, divisions).surface("box").compact()


def _grid(
    size: Sequence[float], divisions: Sequence[int], grading: Sequence[float]
) -> tuple[NDArray[np.float64], tuple[int, int, int]]:
    """Nodes of a rectangular grid, shape (n, 3), z running fastest, and its numbers of cells."""
    lengths = _three("size", size, _length)
    cells = _three("divisions", divisions, _count)
    ratios = _three("grading", grading, _positive)
    sides = [s * (_graded(n, g) - 0.5) for s, n, g in zip(lengths, cells, ratios, strict=True)]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, 3), cells


def tets_of_cells(
    nodes: NDArray[np.float64],
    cells: tuple[int, int, int],
    index: NDArray[np.int64],
    mirror: NDArray[np.int64],
    split: NDArray[np.int64],
) -> TetMesh:
    """Cut each cell of a structured grid by `split`, mirrored along the axes where `mirror` is 1.

    index, mirror: shape (3, n_cells). split: corner numbers, shape (k, 4).
    """
    corner = np.array([4, 2, 1])[:, None]
    offset = (np.arange(8) // corner) % 2
    i, j, k = index[:, :, None] + (offset[:, None, :] ^ mirror[:, :, None])
    _, ny, nz = cells
    corners = (i * (ny + 1) + j) * (nz + 1) + k
    return _oriented(nodes, corners[:, split])


def _oriented(nodes: NDArray[np.float64], tets: NDArray[np.int64]) -> TetMesh:
    nodes = np.ascontiguousarray(nodes)
    cells = tets.reshape(-1, 4).astype(np.int32)
    return TetMesh(nodes, orient_tets(nodes, cells))


def _disc(n_around: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Unit disc of rings: points, shape (n, 2), the centre first, and triangles, shape (m, 3)."""
    n_rings = max(1, round(n_around / 6.0))
    counts = [1] + [max(3, round(n_around * ring / n_rings)) for ring in range(1, n_rings + 1)]
    points, triangles = [], []
    for ring, count in enumerate(counts):
        angle = 2.0 * np.pi * np.arange(count) / count
        points.append(ring / n_rings * np.stack([np.cos(angle), np.sin(angle)], axis=1))
    for ring in range(n_rings):
        triangles.append(zip_rings(counts[ring], counts[ring + 1]) + sum(counts[:ring]))
    return np.concatenate(points), np.concatenate(triangles)


def zip_rings(inner: int, outer: int) -> NDArray[np.int64]:
    """Triangles between rings of `inner` and `outer` equally spaced nodes, shape (m, 3).

    The outer ring is numbered after the inner one, both counter-clockwise; one inner node is a centre. Each
    triangle names nodes of the inner ring first, and those of one ring counter-clockwise.
    """
    near = np.floor((np.arange(outer) + 0.5) * inner / outer + 0.5).astype(int)
    j = np.arange(outer)
    onto_inner = np.stack([near % inner, inner + j, inner + (j + 1) % outer], axis=1)
    if inner == 1:
        return onto_inner
    # The inner side from i to i + 1 sees the outer node between those that see i and i + 1.
    i = np.arange(inner)
    between = np.searchsorted(near, i, side="right")
    onto_outer = np.stack([i, (i + 1) % inner, inner + between % outer], axis=1)
    return np.concatenate([onto_inner, onto_outer])


def _cut_in_four(
    vertices: NDArray[np.float64], triangles: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    edges = distinct_sides(triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2))
    middles = vertices[edges.rows].mean(axis=1)
    # Onto the sphere of the icosahedron at each cut, which keeps the triangles nearly equal.
    middles *= np.linalg.norm(vertices[0]) / np.linalg.norm(middles, axis=1, keepdims=True)
    a, b, c = triangles.T
    ab, bc, ca = (edges.of.reshape(-1, 3) + len(vertices)).T
    cut = [np.stack(corners, axis=1) for corners in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))]
    return np.concatenate([vertices, middles]), np.concatenate(cut)


def _graded(n: int, ratio: float) -> NDArray[np.float64]:
    """n + 1 points from 0 to 1 in geometric progression, the last step `ratio` times the first."""
    if n == 1 or ratio == 1.0:
        return np.arange(n + 1) / n
    steps = ratio ** (np.arange(n) / (n - 1))
    return np.concatenate([[0.0], np.cumsum(steps)]) / steps.sum()


def _three(name: str, values: Sequence[float], check: Callable[[str, float], T]) -> tuple[T, T, T]:
    """The three values along x, y and z, each through its check."""
    if len(values) != 3:
        raise InputError(f"{name} is {list(values)}, expected three numbers.")
    x, y, z = (check(f"{name} along {axis}", value) for axis, value in zip("xyz", values, strict=True))
    return x, y, z


def _positive(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value}, expected a positive number.")
    return float(value)


def _length(name: str, value: float) -> float:
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"{name} is {value} m, expected a positive length.")
    return float(value)


def _count(name: str, value: float, least: int = 1) -> int:
    if int(value) != value or value < least:
        raise InputError(f"{name} is {value}, expected a whole number of at least {least}.")
    return int(value)
