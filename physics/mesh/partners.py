"""What suction cups are set on: closed bodies of the scenes of thesis 000 (table 4.1, figures 5.12 and 5.15).

Spheres, cubes, cans and pipes are those of `generate`. docs/suction.md gives the dimensions that are assumed.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.checks import drop_unreferenced
from palpo.physics.mesh.extrusion import stack
from palpo.physics.mesh.generate import FIVE_TETS, block, sphere_surface, tets_of_cells
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError

# Lobes on the bunny's body: direction, height over the body's radius, sharpness.
_LOBES = (
    ((0.95, 0.35, 0.0), 0.55, 9.0),  # head
    ((0.60, 0.80, 0.28), 0.45, 60.0),  # ears
    ((0.60, 0.80, -0.28), 0.45, 60.0),
    ((-1.0, -0.35, 0.0), 0.16, 30.0),  # tail
    ((0.55, -0.80, 0.45), 0.15, 25.0),  # paws
    ((0.55, -0.80, -0.45), 0.15, 25.0),
    ((-0.45, -0.80, 0.60), 0.15, 20.0),
    ((-0.45, -0.80, -0.60), 0.15, 20.0),
)


def slab(
    side: float, cells: int, thickness: float, bump: float = 0.0, wavelength: float = 0.02
) -> SurfaceMesh:
    """Square plate whose top is the plane y = 0, of cells x cells squares of two triangles; one is enough.

    side, thickness: [m]. bump: amplitude [m] of waves of this wavelength [m] on the top; its mean stays at 0.
    Raises InputError for lengths that are not positive, and for bumps as high as the plate is thick.
    """
    if not 0.0 <= bump < 0.5 * thickness:
        raise InputError(f"slab: bumps of {bump} m need a plate thicker than twice that, not {thickness} m.")
    plate = block((side, thickness, side), (cells, 1, cells)).surface("slab").compact()
    vertices = plate.vertices - [0.0, 0.5 * thickness, 0.0]
    x, y, z = vertices.T
    wave = np.sin(2.0 * np.pi * x / wavelength) * np.sin(2.0 * np.pi * z / wavelength)
    vertices[:, 1] += np.where(y > -0.5 * thickness, bump * wave, 0.0)
    return plate.with_vertices(vertices)


def bunny(radius: float, subdivisions: int, bump: float) -> SurfaceMesh:
    """A sitting animal with head, ears and paws, its body a ball of `radius` [m], its top at y = radius.

    bump: amplitude [m] of its coat, waves about a third of the radius long. Each vertex of a sphere of
    20 * 4^subdivisions triangles is moved along its radius, so the surface is closed and star-shaped.
    """
    ball = sphere_surface(1.0, subdivisions)
    direction = ball.vertices
    height = np.ones(len(direction))
    for axis, lobe, sharpness in _LOBES:
        unit = np.asarray(axis) / np.linalg.norm(axis)
        height += lobe * np.exp(sharpness * (direction @ unit - 1.0))
    x, y, z = direction.T
    coat = np.sin(19.0 * x + 0.5) * np.sin(19.0 * z) * np.cos(11.0 * y)
    return ball.with_vertices(direction * (radius * height + bump * coat)[:, None])


def half_cylinder(radius: float, length: float, scale: float, around: int, along: int) -> SurfaceMesh:
    """Half of a cylinder along z that lies on y = 0, its height scaled: y up to scale * radius [m].

    around: cells of the arc. along: cells of the length [m]. The two ends are fans about the axis.
    """
    angle = np.pi * np.arange(around + 1) / around
    arc = radius * np.stack([np.cos(angle), scale * np.sin(angle)], axis=1)
    section = np.concatenate([[[0.0, 0.0]], arc])
    z = length * (np.arange(along + 1) / along - 0.5)
    positions = np.empty((along + 1, len(section), 3))
    positions[:, :, :2] = section
    positions[:, :, 2] = z[:, None]
    i = np.arange(1, around + 1)
    fan = np.stack([0 * i, i, i + 1], axis=1)
    mesh, _ = stack(positions, np.tile(fan, (along, 1, 1)), np.ones((along, around), dtype=bool))
    return mesh.surface("half cylinder").compact()


def tunnel_block(side: float, holes: int, spacing: float, width: float, depth: float, cell: float) -> TetMesh:
    """Cube with square holes in a row in its top, joined below by a passage; its genus is holes - 1.

    side: [m], centred on the origin. spacing: between the holes' middles along x [m]. width: of holes and
    passage [m]. depth: of the passage's floor below the top [m]. cell: largest edge of a cell [m].
    A single hole is a blind one. Raises InputError for holes that overlap or reach out of the cube.
    """
    middles = spacing * (np.arange(holes) - 0.5 * (holes - 1))
    reach = middles[-1] + 0.5 * width
    if not (width < depth < side and reach < 0.5 * side and (holes == 1 or width < spacing)):
        raise InputError(
            f"tunnel block: {holes} holes of {width} m every {spacing} m, {depth} m deep, do not fit a cube "
            f"of {side} m; they must lie inside it, apart from each other, and be deeper than wide."
        )
    edge = 0.5 * side
    x = _lines([-edge, *np.sort([middles - 0.5 * width, middles + 0.5 * width], axis=None), edge], cell)
    y = _lines([-edge, edge - depth, edge - depth + width, edge], cell)
    z = _lines([-edge, -0.5 * width, 0.5 * width, edge], cell)
    cells = len(x) - 1, len(y) - 1, len(z) - 1
    index = np.indices(cells).reshape(3, -1)
    cx, cy, cz = (0.5 * (line[i] + line[i + 1]) for line, i in zip((x, y, z), index, strict=True))
    in_shaft = (np.abs(cx[:, None] - middles) < 0.5 * width).any(axis=1) & (cy > edge - depth)
    in_passage = (np.abs(cx) < reach) & (cy > edge - depth) & (cy < edge - depth + width)
    kept = index[:, ~((in_shaft | in_passage) & (np.abs(cz) < 0.5 * width))]
    odd = kept.sum(axis=0) % 2
    nodes = np.stack(np.meshgrid(x, y, z, indexing="ij"), axis=-1).reshape(-1, 3)
    whole = tets_of_cells(nodes, cells, kept, np.stack([odd, 0 * odd, 0 * odd]), FIVE_TETS)
    return TetMesh(*drop_unreferenced(whole.nodes, whole.tets))


def require_closed(surface: SurfaceMesh, source: str) -> None:
    """InputError unless the surface is closed: air would pass where it ends. `source` names it."""
    if not surface.closed:
        a, b = surface.edges[np.flatnonzero(surface.edge_triangles[:, 1] < 0)[0]]
        raise InputError(
            f"{source}: the surface is open at the edge of nodes {a} and {b} (counted from 0), where air "
            "would pass through it; close it."
        )


def _lines(stops: list[float], cell: float) -> NDArray[np.float64]:
    """Coordinates from the first stop to the last, through each, at most `cell` apart."""
    parts = [
        np.linspace(a, b, max(1, int(np.ceil((b - a) / cell - 1e-9))), endpoint=False)
        for a, b in pairwise(stops)
    ]
    return np.append(np.concatenate(parts), stops[-1])
