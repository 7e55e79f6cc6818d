"""Suction cups of hexahedra: the profile of `cups` turned about the y axis, its cells taken whole.

A sheet of quadrilaterals, a square of them within the stem and rings around it, is stacked in layers from
the inner meridian to the outer one, and its middle goes on up the stem. A ring may have twice as many cells
as the one inside it. A grid with a lip has twice as many layers in its last row of cells, at the rim: two
cells become four there by the same pattern of six by which they do in a ring that doubles.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.cups import CupMesh, Section, check_shape, meridians
from palpo.physics.mesh.drawn_cups import DrawnShape
from palpo.physics.mesh.hex import HexMesh, orient_hexes
from palpo.physics.numerics.errors import InputError

HALVES = ((0, 3, 4, 8), (8, 4, 5, 9), (9, 5, 6, 10), (10, 6, 7, 2), (0, 8, 9, 1), (1, 9, 10, 2))
"""Two cells before four: quadrilaterals between points 0 to 2, 3 to 7 and, half way, 8 to 10."""

TRANSITION, LAST = 0.5, 0.25
"""Lengths of the two rows of a lip along the wall, over the rim's width."""


class HexGrid(NamedTuple):
    """How a cup is cut in hexahedra."""

    core: int  # cells across the square within the stem; four times as many go around it
    around: tuple[int, ...]  # cells around each ring, outward: the first is the stem's edge, the last the rim
    layers: int  # cells through the wall; even, of a lip
    stem_layers: int  # cells along the stem
    lip: bool = False  # whether two more rings follow, the last of twice as many cells through the wall


GRIDS = {
    76: HexGrid(2, (8, 8, 8), 1, 1),
    125: HexGrid(2, (8, 8, 16), 1, 1),
    141: HexGrid(2, (8, 8, 16), 1, 2),
    151: HexGrid(2, (8, 8, 16), 1, 2),
    159: HexGrid(2, (8, 16, 16), 1, 2),
    203: HexGrid(2, (8, 16, 16), 2, 1),
    363: HexGrid(2, (8, 16, 16, 16, 16, 16), 2, 2),
    415: HexGrid(2, (8, 16, 16, 16, 16, 16, 16), 2, 2),
    455: HexGrid(2, (8, 16, 16, 32, 32), 2, 2),
    502: HexGrid(2, (8, 16, 16, 32, 32), 2, 3),
    552: HexGrid(2, (8, 16, 32, 32, 32), 2, 3),
    576: HexGrid(2, (8, 16, 32, 32, 32), 2, 4),
    723: HexGrid(2, (8, 16, 32, 32, 32), 2, 12),
    1200: HexGrid(2, (8, 16, 32, 32, 32, 32, 32), 2, 4, True),
    2400: HexGrid(4, (16, 32, 32, 64, 64, 64), 2, 6, True),
    4800: HexGrid(4, (16, 32, 64, 64, 64, 64, 64, 64, 64), 4, 6, True),
}
"""Grids by the names of those of tetrahedra: of about as many nodes."""


def drawn_grid(shape: DrawnShape, cell: float, around: int, layers: int) -> HexGrid:
    """Cells of about `cell` [m] along wall and stem, and `around` the rim: 16, 32 or 64."""
    core = 2 if around < 64 else 4
    shoulder = int(shape.stem < 0.95 * shape.roof)
    counts = [4 * core * 2**k for k in range(4) if 4 * core * 2**k <= around]
    rings = 1 + shoulder + max(shape.cells(cell), len(counts) - 1 - shoulder)
    counts += [around] * (rings - len(counts))
    return HexGrid(core, tuple(counts), layers, max(1, round(shape.stem_length / cell)))


class _Sheet(NamedTuple):
    ring: NDArray[np.float64]  # of each point, 1 at the stem's edge; within it the share of its radius
    angle: NDArray[np.float64]
    quads: NDArray[np.int64]
    last: NDArray[np.int64]  # points of the last ring, by rising angle


def hex_cup(shape: Section, grid: HexGrid) -> CupMesh[HexMesh]:
    """The cup of this shape cut by this grid, standing on the plane y = 0, its axis the y axis.

    Raises InputError for what `cup` refuses, for counts that neither stay nor double, and for odd layers
    with a lip.
    """
    check_shape(shape)
    shoulder = int(shape.stem < 0.95 * shape.roof)
    if grid.lip:
        grid = grid._replace(around=(*grid.around, *grid.around[-1:] * 2))
    rings = len(grid.around)
    coarse = rings - 2 * grid.lip <= 1 + shoulder or min(grid.core, grid.layers, grid.stem_layers) < 1
    if coarse or (grid.lip and grid.layers % 2):
        raise InputError(
            f"cup: {grid} does not cut it: it needs {2 + shoulder} rings without those of its lip, and with "
            "one an even number of layers."
        )
    sheet = _sheet(grid.core, grid.around)
    # corners of cells as points of the sheet and quarters of a layer
    within = sheet.ring[sheet.quads].max(axis=1) <= 1.0
    layered = sheet.ring[sheet.quads].min(axis=1) < rings - 2 if grid.lip else np.ones_like(within)
    cells = [
        np.stack(
            [np.tile(quads, 2), np.repeat([[4 * layer, 4 * layer + 4]], 4, axis=1).repeat(len(quads), 0)], 2
        )
        for layer in range(grid.layers + grid.stem_layers)
        for quads in [sheet.quads[layered if layer < grid.layers else within]]
    ]
    ring, angle = sheet.ring, sheet.angle
    if grid.lip:
        cells.append(_lip(sheet.last, len(ring), grid.layers))
        ring = np.append(ring, np.full(sheet.last.size, rings - 1.5))
        angle = np.append(angle, angle[sheet.last])
    corners = np.concatenate(cells)
    levels = 4 * (grid.layers + grid.stem_layers) + 1
    used, hexes = np.unique(corners @ [levels, 1], return_inverse=True)
    ring, angle, level = ring[used // levels], angle[used // levels], (used % levels) / 4

    share, u = _along(shape, grid, ring, shoulder)
    inner, outer = meridians(shape, share, u, angle)
    through = np.minimum(level / grid.layers, 1.0)[:, None]
    radius, height = ((1.0 - through) * inner + through * outer).T
    height = height + shape.stem_length * np.maximum(level - grid.layers, 0.0) / grid.stem_layers
    nodes = np.stack([radius * np.cos(angle), height, -radius * np.sin(angle)], axis=1)
    mesh = HexMesh(nodes, orient_hexes(nodes, hexes.reshape(-1, 8).astype(np.int32)))

    border = np.flatnonzero((ring == rings) & (level == 0.0))
    held = np.flatnonzero(level == level.max())
    return CupMesh(
        mesh,
        underside=np.flatnonzero(level == 0.0),
        border=border[np.argsort(angle[border])],
        rim=np.flatnonzero(ring == rings),
        stem=np.flatnonzero((level >= grid.layers) & (ring <= 1.0)),
        held=held,
        seed=int(held[np.argmin(ring[held])]),
    )


def _sheet(core: int, around: tuple[int, ...]) -> _Sheet:
    """The square's points, then those of each ring by rising angle."""
    grid = np.linspace(-1.0, 1.0, core + 1)
    square = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    far, size = np.abs(square).max(axis=1), np.maximum(np.hypot(*square.T), 1e-12)
    # between a square and a disc, two thirds of the stem's radius across
    disc = (0.24 + 0.3 * far / size)[:, None] * square
    ring, angle = list(np.hypot(*disc.T)), list(np.arctan2(disc[:, 1], disc[:, 0]))
    number = np.arange((core + 1) ** 2).reshape(core + 1, core + 1)
    quads = np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], axis=2)
    all_quads = [*quads.reshape(-1, 4).tolist()]
    edge = [*number[:-1, 0], *number[-1, :-1], *number[:0:-1, -1], *number[0, :0:-1]]

    def add(at: float, count: int, of: NDArray[np.int64]) -> list[int]:
        """Points of a ring at these of its `count` places."""
        first = len(ring)
        ring.extend([at] * len(of))
        angle.extend(2.0 * np.pi * of / count - 0.75 * np.pi)
        return list(range(first, len(ring)))

    for k, count in enumerate(around):
        n = len(edge)
        if count not in (n, 2 * n) or (count == 2 * n and n % 2):
            raise InputError(
                f"cup: {count} cells cannot follow {n} around it: give as many, or twice as many."
            )
        middle = (
            add(k + 0.5, count, np.setdiff1d(np.arange(count), np.arange(0, count, 4))) if count > n else []
        )
        following = add(k + 1.0, count, np.arange(count))
        for p in range(n if count == n else n // 2):
            if count == n:
                m = (p + 1) % n
                all_quads.append([edge[p], following[p], following[m], edge[m]])
            else:
                points = [edge[(2 * p + i) % n] for i in range(3)]
                points += [following[(4 * p + i) % count] for i in range(5)] + middle[3 * p : 3 * p + 3]
                all_quads += [[points[i] for i in quad] for quad in HALVES]
        edge = following
    return _Sheet(np.array(ring), np.array(angle), np.array(all_quads), np.array(edge))


def _lip(last: NDArray[np.int64], first_half: int, layers: int) -> NDArray[np.int64]:
    """Corners (m, 8, 2) of the last two rows of cells: points of the sheet, and quarters of a layer.

    last: points of the last ring; the two rings inside it precede them. first_half: first of as many points
    half way between those two.
    """
    n = last.size
    rows = [last - 2 * n, first_half + np.arange(n), last - n, last]
    sections = []
    for p in range(0, 4 * layers, 8):
        points = [(0, p), (0, p + 4), (0, p + 8), *((2, p + 2 * k) for k in range(5))]
        points += [(1, p + 2), (1, p + 4), (1, p + 6)]
        sections += [[points[i] for i in quad] for quad in HALVES]
    sections += [[(2, q), (3, q), (3, q + 2), (2, q + 2)] for q in range(0, 4 * layers, 2)]
    here = np.array([[[(rows[r][i], q) for r, q in quad] for quad in sections] for i in range(n)])
    return np.concatenate([here, np.roll(here, -1, axis=0)], axis=2).reshape(-1, 8, 2)


def _along(
    shape: Section, grid: HexGrid, ring: NDArray[np.float64], shoulder: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Share of the roof's radius, and u along the wall, of points of these rings; see `meridians`."""
    edge, rings = 1 + shoulder, len(grid.around)
    foot = shape.stem / shape.roof if shoulder else 1.0
    share = np.interp(ring, [0.0, 1.0, edge], [0.0, foot, 1.0])
    rows = np.zeros(0)
    if grid.lip:
        rows = np.minimum(1.0 / 3.0, np.array([TRANSITION + LAST, LAST]) * shape.rim / _length(shape))
    cells, end = rings - edge - rows.size, 1.0 - rows.max(initial=0.0)
    wall = np.linspace(0.0, end, cells + 1)
    if isinstance(shape, DrawnShape):
        wall = shape.places(cells, end)
    places = np.append(wall, np.append(1.0 - rows[1:], 1.0)) if grid.lip else wall
    return share, np.interp(ring, np.arange(edge, rings + 1), places)


def _length(shape: Section) -> float:
    """Of the wall from the roof to the rim [m]."""
    if isinstance(shape, DrawnShape):
        return shape.length
    length = float(np.hypot(shape.inner - shape.top, shape.height))
    return length if shape.profile == "straight" else length * 0.5 * np.pi / np.sqrt(2.0)
