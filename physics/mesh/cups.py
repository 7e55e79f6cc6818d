"""Suction cups: tetrahedra of a profile turned about the y axis, the opening below, in the plane y = 0.

The solid is a wall between an inner meridian (the cavity's) and an outer one, and a stem on its roof. A sheet
of rings is stacked in layers from one meridian to the other, and its middle goes on up the stem.
Dimensions are those of thesis 000 (4.2, 5.2, tables 5.1 and 4.3); docs/suction.md says what it leaves open.
"""

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.drawn_cups import DrawnShape
from palpo.physics.mesh.extrusion import stack
from palpo.physics.mesh.generate import zip_rings
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError


@dataclass(frozen=True)
class CupShape:
    """Dimensions of a cup [m].

    straight: the cavity is a frustum and the wall a frustum of even thickness, `rim` its horizontal width.
    round: the cavity's meridian is a quarter of an ellipse, level at the roof and upright at the rim.
    lobes: amplitude e of a rim of three lobes, whose radii are those of the circle times 1 + e cos 3 theta.
    """

    profile: Literal["straight", "round"]
    inner: float  # radius of the cavity at the rim (of lobes: the mean)
    top: float  # radius of the cavity's flat roof
    height: float  # of the cavity
    rim: float  # width of the rim
    stem: float  # radius of the stem; at most the roof's
    stem_length: float
    lobes: float = 0.0

    @property
    def wall(self) -> float:
        """Thickness of wall and roof [m]."""
        if self.profile == "round":
            return self.rim
        return self.rim * self.height / math.hypot(self.height, self.inner - self.top)

    @property
    def roof(self) -> float:
        """Radius of the flat roof outside, where it meets the wall [m]."""
        if self.profile == "round":
            return self.top
        slope = (self.inner - self.top) / self.height
        return self.inner + self.rim - slope * (self.height + self.wall)


class ThesisCup(NamedTuple):
    """A cup of the thesis: its shape, Young's modulus [Pa] and mass [kg]."""

    shape: CupShape
    youngs_modulus: float
    mass: float


class CupGrid(NamedTuple):
    """How a cup is cut: it is unchanged by a turn of 1 / sectors of a revolution."""

    sectors: int  # nodes around the stem
    rings: int  # rings of nodes from the axis to the rim
    multiple: int  # nodes around the rim over sectors
    layers: int  # cells through the wall
    stem_layers: int  # cells along the stem
    stem_rings: int = 1  # those of the rings that are inside the stem, its edge included


Section = CupShape | DrawnShape
"""What is turned about the axis."""

Solid = TypeVar("Solid", TetMesh, HexMesh)


@dataclass(frozen=True, eq=False)
class CupMesh(Generic[Solid]):
    """A cup's mesh and its node groups, each an array of node indices."""

    mesh: Solid
    underside: NDArray[np.int64]  # wall of the cavity, with its border
    border: NDArray[np.int64]  # the cavity's border at the rim, in order, counter-clockwise seen from above
    rim: NDArray[np.int64]  # the flat ring on which the cup stands
    stem: NDArray[np.int64]  # from the roof up
    held: NDArray[np.int64]  # end of the stem: clamped, or moved by the hand
    seed: int  # a node of the outside, the middle of the stem's end


def _frustum_top(inner: float, height: float, volume: float) -> float:
    """Top radius [m] of a frustum of base radius and height [m] and volume [m^3]."""
    squares = 3.0 * volume / (math.pi * height)
    return 0.5 * (math.sqrt(4.0 * squares - 3.0 * inner**2) - inner)


def _three_lobes(longest: float, amplitude: float) -> float:
    """Mean radius [m] of the outline 1 + e cos 3 theta whose longest chord is `longest` [m].

    That chord joins two lobes at the angle d beyond their tips.
    """
    d = np.linspace(0.0, math.pi / 6.0, 10_001)
    chord = 2.0 * (1.0 + amplitude * np.cos(3.0 * d)) * np.sin(math.pi / 3.0 + d)
    return longest / float(chord.max())


_LOBES = 0.3
_SMALL = CupShape("straight", 16e-3, 4e-3, 9e-3, 4e-3, 4.8e-3, 8e-3)
_LARGE = CupShape("straight", 24e-3, 6e-3, 13.5e-3, 10.5e-3, 8.1e-3, 12e-3)
_ROUND = CupShape("round", 25.5e-3, 3.5e-3, 21e-3, 2e-3, 3.5e-3, 8e-3)
_ASYMMETRIC = CupShape("round", _three_lobes(57e-3, _LOBES), 2.25e-3, 8e-3, 2e-3, 2.25e-3, 8e-3, _LOBES)
_S = CupShape("straight", 12e-3, _frustum_top(12e-3, 4.5e-3, 1195e-9), 4.5e-3, 4e-3, 5e-3, 6.5e-3)
_B = CupShape("straight", 19e-3, _frustum_top(19e-3, 10e-3, 6063e-9), 10e-3, 4e-3, 5e-3, 6.5e-3)

CUPS = {
    "small": ThesisCup(_SMALL, 338e3, 30e-3),
    "large": ThesisCup(_LARGE, 338e3, 30e-3),
    "round": ThesisCup(_ROUND, 338e3, 30e-3),
    "asymmetric": ThesisCup(_ASYMMETRIC, 338e3, 30e-3),
    "S10": ThesisCup(_S, 667e3, 2.4e-3),
    "S20": ThesisCup(_S, 843e3, 2.5e-3),
    "S30": ThesisCup(_S, 1067e3, 2.6e-3),
    "B20": ThesisCup(_B, 843e3, 4.5e-3),
    "A20": ThesisCup(_B, 843e3, 4.5e-3),
    "A30": ThesisCup(_B, 1067e3, 4.5e-3),
    "dart": ThesisCup(replace(_SMALL, stem_length=100e-3), 338e3, 30e-3),
}
"""The thesis's cups (4.2, table 5.1, 5.1, 5.2.2) by name; "dart" is the small one on a rod."""

POISSON_RATIO = 0.42
"""Of every cup (4.2) [-]."""

GRIDS = {
    76: CupGrid(6, 3, 2, 1, 2),
    125: CupGrid(6, 3, 3, 2, 2),
    141: CupGrid(5, 3, 4, 2, 3),
    151: CupGrid(7, 3, 3, 2, 3),
    159: CupGrid(8, 3, 2, 2, 4),
    203: CupGrid(6, 4, 4, 2, 3),
    363: CupGrid(6, 5, 6, 2, 5),
    415: CupGrid(8, 5, 5, 2, 6),
    455: CupGrid(6, 6, 7, 2, 3),
    502: CupGrid(7, 6, 6, 2, 7),
    552: CupGrid(8, 6, 6, 2, 5),
    576: CupGrid(7, 7, 6, 2, 6),
    723: CupGrid(8, 6, 6, 2, 24),
    1200: CupGrid(8, 9, 8, 2, 5, 2),
    2400: CupGrid(8, 11, 11, 3, 6, 2),
    4800: CupGrid(8, 15, 14, 4, 6, 3),
}
"""Grids by the numbers of nodes of the thesis's meshes (table 4.3; 723: the dart), and finer ones."""


def drawn_grid(shape: DrawnShape, cell: float, around: int, layers: int) -> CupGrid:
    """Cells of about `cell` [m] along wall and stem, and `around` the rim, a multiple of 8."""
    shoulder = int(shape.stem < 0.95 * shape.roof)
    along = max(1, round(shape.stem_length / cell))
    return CupGrid(8, 1 + shoulder + shape.cells(cell), around // 8, layers, along)


def cup(shape: Section, grid: CupGrid) -> CupMesh[TetMesh]:
    """The cup of this shape cut by this grid, standing on the plane y = 0, its axis the y axis.

    Raises InputError for a shape without an opening or without a wall, and for a grid that is too coarse.
    """
    check_shape(shape)
    # The roof ends at the stem's edge, or has a ring more for its own.
    shoulder = shape.stem < 0.95 * shape.roof
    roof_rings = grid.stem_rings + shoulder
    if grid.rings <= roof_rings or grid.sectors < 3 or min(grid) < 1:
        raise InputError(f"cup: {grid} is too coarse; it needs 3 sectors and {roof_rings + 1} rings.")
    growth = (grid.multiple - 1) * np.arange(grid.rings) / (grid.rings - 1)
    counts = [1, *(grid.sectors * np.floor(1.5 + growth).astype(int))]
    angle = np.concatenate([2.0 * np.pi * np.arange(count) / count for count in counts])
    ring = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum([0, *counts])
    triangles = np.concatenate(
        [start + zip_rings(*pair) for start, pair in zip(first, pairwise(counts), strict=False)]
    )

    # Along the meridian: the share of the roof's radius up to its edge, then the share u of the wall.
    u = along_wall(shape, np.clip((ring - roof_rings) / (grid.rings - roof_rings), 0.0, 1.0))
    foot = np.arange(grid.stem_rings + 1) / grid.stem_rings
    roof = np.append(foot * shape.stem / shape.roof, 1.0) if shoulder else foot
    share = roof[np.minimum(ring, roof_rings)]
    inner, outer = meridians(shape, share, u, angle)
    through = np.linspace(0.0, 1.0, grid.layers + 1)[:, None, None]
    wall = (1.0 - through) * inner + through * outer
    up = shape.stem_length * np.arange(1, grid.stem_layers + 1) / grid.stem_layers
    meridian = np.concatenate([wall, outer + np.stack([0.0 * up, up], axis=1)[:, None]])
    radius, height = meridian[..., 0], meridian[..., 1]
    positions = np.stack([radius * np.cos(angle), height, -radius * np.sin(angle)], axis=2)

    # Cut from the rim's side below to the axis's above, the short way through a wall that leans inward, and
    # around the axis to the left and to the right by turns, so that the cup does not twist when pressed.
    left, right = (
        np.take_along_axis(order, np.argsort(-ring[order], axis=1, kind="stable"), axis=1)
        for order in (triangles, triangles[:, ::-1])
    )
    n_layers = grid.layers + grid.stem_layers
    cut = np.stack([(left, right)[layer % 2] for layer in range(n_layers)])
    in_stem = (ring <= grid.stem_rings)[triangles].all(axis=1)
    in_wall = np.arange(n_layers)[:, None] < grid.layers
    mesh, number = stack(positions, cut, in_wall | in_stem)
    return CupMesh(
        mesh,
        underside=number[0],
        border=number[0, ring == grid.rings],
        rim=number[: grid.layers + 1, ring == grid.rings].ravel(),
        stem=number[grid.layers :, ring <= grid.stem_rings].ravel(),
        held=number[-1, ring <= grid.stem_rings],
        seed=int(number[-1, 0]),
    )


@dataclass(frozen=True, eq=False)
class Meridian:
    """Half of a cup's section, in quadratic elements; groups are arrays of node indices."""

    nodes: NDArray[np.float64]  # (n, 2) r and z [m], the opening in z = 0
    elements: NDArray[np.int64]  # (m, 8) as palpo.physics.fem.axisymmetric has them
    curve: NDArray[np.int64]  # the underside from the axis to the border, then the rim, outward
    border: int  # edges of the curve before the rim begins
    axis: NDArray[np.int64]  # nodes with r = 0
    held: NDArray[np.int64]  # end of the stem


def meridian(shape: Section, along: int = 12, through: int = 3, roof: int = 2, stem: int = 3) -> Meridian:
    """The section of a cup without lobes, of so many elements along and through the wall, the roof, the stem.

    Raises InputError for what `cup` refuses, and for lobes.
    """
    check_shape(shape)
    if shape.lobes:
        raise InputError(f"cup: lobes of {shape.lobes} are no solid of revolution; give none.")
    post = min(1.0, shape.stem / shape.roof)
    share = np.linspace(0.0, post, 2 * roof + 1)
    if post < 1.0 - 1e-9:
        share = np.append(share, np.linspace(share[-1], 1.0, 3)[1:])
    u = np.linspace(0.0, 1.0, 2 * along + 1)
    if isinstance(shape, DrawnShape):
        u = np.interp(u, u[::2], shape.places(along))
    edges = len(share) // 2 + along
    inside, outside = meridians(
        shape, np.append(share, np.ones(2 * along)), np.append(np.zeros(len(share) - 1), u), np.zeros(1)
    )
    t = np.linspace(0.0, 1.0, 2 * through + 1)[:, None, None]
    wall = (1.0 - t) * inside + t * outside  # (2 through + 1, 2 edges + 1, 2)
    up = np.linspace(0.0, shape.stem_length, 2 * stem + 1)[1:, None]
    high = np.stack(np.broadcast_arrays(outside[: 2 * roof + 1, 0], outside[0, 1] + up), axis=-1)
    number = np.full((2 * (through + stem) + 1, 2 * edges + 1), -1, np.int64)
    nodes: list[NDArray[np.float64]] = []
    elements = []
    places = {False: wall, True: high}
    for layer, column in np.ndindex(through + stem, edges):
        if layer >= through and column >= roof:
            continue
        i, j = 2 * layer, 2 * column
        corners = [(i, j), (i, j + 2), (i + 2, j + 2), (i + 2, j)]
        corners += [(i, j + 1), (i + 1, j + 2), (i + 2, j + 1), (i + 1, j)]
        for a, b in corners:
            if number[a, b] < 0:
                number[a, b] = len(nodes)
                above = a > 2 * through
                nodes.append(places[above][a - (2 * through + 1 if above else 0), b])
        elements.append([number[a, b] for a, b in corners])
    return Meridian(
        np.array(nodes),
        np.array(elements),
        curve=np.append(number[0], number[1 : 2 * through + 1, -1]),
        border=edges,
        axis=number[:, 0][number[:, 0] >= 0],
        held=number[-1][number[-1] >= 0],
    )


def meridians(
    shape: Section, share: NDArray[np.float64], u: NDArray[np.float64], angle: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Radius and height [m] of each point of the sheet inside and outside, shapes (n, 2).

    share: of the roof's radius, up to 1 at its edge; u: of the wall, from 0 at the roof to 1 at the rim.
    """
    if isinstance(shape, DrawnShape):
        return shape.meridians(share, u)
    border = shape.inner * (1.0 + shape.lobes * np.cos(3.0 * angle))
    if shape.profile == "round":
        out, down = np.sin(0.5 * np.pi * u), np.where(u < 1.0, np.cos(0.5 * np.pi * u), 0.0)
    else:
        out, down = u, 1.0 - u
    inner = share * shape.top + out * (border - shape.top)
    outer = share * shape.roof + out * (border + shape.rim - shape.roof)
    return (
        np.stack([inner, down * shape.height], axis=1),
        np.stack([outer, down * (shape.height + shape.wall)], axis=1),
    )


def along_wall(shape: Section, u: NDArray[np.float64]) -> NDArray[np.float64]:
    """u as `meridians` takes it of places evenly spaced from 0 to 1: a drawn wall's points are among them."""
    if not isinstance(shape, DrawnShape):
        return u
    cells = round(1.0 / float(u[u > 0.0].min()))
    return np.interp(u, np.linspace(0.0, 1.0, cells + 1), shape.places(cells))


def check_shape(shape: Section) -> None:
    """Raises InputError for a shape without an opening, a cavity or a wall."""
    if isinstance(shape, DrawnShape):
        shape.check()
        return
    if not shape.inner > 0.0:
        raise InputError(
            f"cup: the opening's radius is {shape.inner} m: no opening, no cavity; give one above 0."
        )
    if not shape.height > 0.0:
        raise InputError(
            f"cup: the cavity's height is {shape.height} m: there is no cavity; give one above 0."
        )
    if not 0.0 < shape.top <= shape.inner:
        raise InputError(
            f"cup: the radius of the cavity's roof is {shape.top} m, expected one above 0 and at most the "
            f"opening's, {shape.inner} m."
        )
    for name in ("rim", "stem", "stem_length"):
        if not getattr(shape, name) > 0.0:
            raise InputError(f"cup: {name} is {getattr(shape, name)} m, expected a positive length.")
    if shape.stem > 1.001 * shape.roof:
        raise InputError(
            f"cup: the stem's radius is {shape.stem} m, but the roof it stands on has {shape.roof:.4g} m."
        )
    if not 0.0 <= shape.lobes < 1.0:
        raise InputError(f"cup: lobes is {shape.lobes}, expected an amplitude from 0 to below 1.")


def require_opening(surface: SurfaceMesh, tolerance: float, source: str) -> None:
    """InputError unless the surface, set down on the plane below it, encloses air there.

    surface: a cup, its opening towards -y. tolerance: distance [m] from its lowest point up to which a vertex
    counts as resting on the plane, such as the sealing distance. `source` names the cup in the message.
    The vertices above the plane fall into parts that resting ones separate: the outside and the cavities.
    """
    used = surface.used_vertices
    height = surface.vertices[:, 1]
    resting = height <= height[used].min() + tolerance
    i, j = surface.edges.T
    above = ~resting[i] & ~resting[j]
    n = len(surface.vertices)
    graph = coo_array((np.ones(above.sum(), dtype=np.int8), (i[above], j[above])), shape=(n, n))
    _, part = connected_components(graph, directed=False)
    at_border = np.concatenate([part[i[resting[j] & ~resting[i]]], part[j[resting[i] & ~resting[j]]]])
    if len(np.unique(at_border)) < 2:
        raise InputError(
            f"{source}: the cup has no opening: set down on a plane on its -y side, to {tolerance:g} m, it "
            "encloses no air; turn its opening towards -y, or use another mesh."
        )
