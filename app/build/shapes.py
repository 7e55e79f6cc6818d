"""Shapes of bodies as meshes: in their own frames, and where they are placed; nothing is compiled for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.material_parts import borders
from palpo.app.build.robots import HeldRobot, Masses
from palpo.app.build.volume_mesh import segment, solid, tetrahedra
from palpo.app.runtime.memory import require_stiffness
from palpo.app.visual.solids import capsule_surface, round_surface
from palpo.config.schema.body import Beam, Quasistatic, Rigid, Soft, Static
from palpo.config.schema.geometry import (
    BellowsCup,
    Block,
    CupModel,
    DrawnCup,
    Placement,
    ProngPart,
    RevolvedCup,
    RigidGeometry,
    Robot,
    SoftGeometry,
    SolidGeometry,
)
from palpo.config.schema.suction import Cup, CupFile, OctopusArm
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.bodies.io import read_body
from palpo.physics.fem.elements import ELEMENTS, SolidMesh
from palpo.physics.fem.laws import LINEAR
from palpo.physics.mesh import generate, hex_cups, io, partners
from palpo.physics.mesh.beam import BeamLine
from palpo.physics.mesh.cups import CUPS, GRIDS, CupMesh, CupShape, cup, drawn_grid
from palpo.physics.mesh.drawn_cups import DrawnShape, bellows_points
from palpo.physics.mesh.hex import HexMesh, validate_hexes
from palpo.physics.mesh.liver import liver
from palpo.physics.mesh.octopus_arm import octopus_arm
from palpo.physics.mesh.quadratic import QuadraticTetMesh, with_middles
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors import registry as connectors

if TYPE_CHECKING:
    from palpo.app.visual.picture import Shapes


def placed(points: NDArray[np.float64], placement: Placement) -> NDArray[np.float64]:
    """Scaled, then rotated, then moved."""
    rotation = quaternion_matrix(placement.quaternion)
    return np.ascontiguousarray(placement.scale * points @ rotation.T + np.array(placement.position))


def cup_shape(g: CupModel | RevolvedCup) -> CupShape:
    """The section of a cup that is turned about its axis."""
    if isinstance(g, CupModel):
        return CUPS[g.model].shape
    return CupShape(g.profile, 0.5 * g.opening, 0.5 * g.top, g.height, g.rim, 0.5 * g.stem, g.stem_length)


def drawn_shape(g: DrawnCup | BellowsCup) -> DrawnShape:
    """The section of a cup that is drawn, or of bellows; raises InputError for what is none."""
    points = (
        g.points
        if isinstance(g, DrawnCup)
        else bellows_points(0.5 * g.opening, 0.5 * g.neck, 0.5 * g.belly, g.folds, g.pitch, g.lip, g.wall)
    )
    walls = g.walls if isinstance(g, DrawnCup) and g.walls else (g.wall,) * len(points)
    shape = DrawnShape(points, walls, g.rim, 0.5 * g.stem, g.stem_length)
    shape.check()
    return shape


def cells_of(g: SoftGeometry | SolidGeometry) -> TetMesh | HexMesh:
    """Tetrahedra of a shape that is made, or what a file holds, in its own frame [m]; raises InputError."""
    match g.kind:
        case "block":
            a, b, c = g.divisions
            require_stiffness("geometry.divisions", (a + 1) * (b + 1) * (c + 1), 6 * a * b * c, 4)
            return generate.block(g.size, g.divisions, g.grading)
        case "hexes":
            return generate.hex_block(g.size, g.divisions, g.grading)
        case "cylinder":
            return generate.cylinder(g.radius, g.length, g.around, g.along, g.axis)
        case "sphere":
            return generate.sphere(g.radius, g.divisions)
        case "ellipsoid":
            return generate.ellipsoid(g.radii, g.divisions)
        case "liver":
            return liver(g.width, g.spacing)
        case "tunnel":
            return partners.tunnel_block(g.side, g.holes, g.spacing, g.width, g.depth, g.cell)
        case "prong":
            return _prong(g)
        case "cup" | "revolved":
            return cup(cup_shape(g), GRIDS[g.resolution]).mesh
        case "body":
            mesh = read_body(g.path).mesh
            assert isinstance(mesh, TetMesh | HexMesh)
            return mesh
        case "segment":
            return segment(g)
        case _:
            return solid(g)


def _prong(g: ProngPart) -> TetMesh:
    """An elastic part of a connector's socket; InputError for a number that it does not have."""
    prongs = connectors.generate(g.connector, g.mesh).prongs
    if g.number >= len(prongs):
        raise InputError(
            f"geometry.number = {g.number}: the socket of {g.connector} has parts 0 to {len(prongs) - 1}."
        )
    return prongs[g.number].mesh


def surface_of(g: RigidGeometry) -> SurfaceMesh:
    """The surface of a shape in its own frame [m]; raises InputError for a file that cannot be read."""
    match g.kind:
        case "box":
            return generate.box_surface(g.size)
        case "capsule":
            return SurfaceMesh.from_triangles(*capsule_surface(g.radius, g.length), "capsule")
        case "plate":
            return partners.slab(g.side, g.cells, g.thickness, g.bump, g.wavelength)
        case "bunny":
            return partners.bunny(g.radius, g.subdivisions, g.bump)
        case "half-cylinder":
            return partners.half_cylinder(g.radius, g.length, g.flatness, g.around, g.along)
        case "plug":
            return connectors.generate(g.connector).plug_at(0.0)
        case "robot":
            return HeldRobot(g).surface()
        case "file":
            surface = io.read_surface_mesh(g.path)
            return surface.with_vertices(surface.vertices * g.scale)
        case _:
            return cells_of(g).surface().compact()


def masses_of(body: Rigid, surface: SurfaceMesh) -> Masses:
    """Of a rigid body whose surface, in its own axes and scaled, encloses it, evenly unless it is a robot.

    Raises InputError for a robot without mass.
    """
    if isinstance(body.geometry, Robot) and body.mass is None and body.density is None:
        mass, centre, inertia = HeldRobot(body.geometry).masses()
        return Masses(mass, centre * body.placement.scale, inertia * body.placement.scale**2)
    return evenly(body, *surface.mass_properties(1.0))


def evenly(body: Rigid, volume: float, centre: NDArray[np.float64], inertia: NDArray[np.float64]) -> Masses:
    """Of a rigid body by its volume [m^3], and its inertia at a density of 1 kg/m^3."""
    density = body.density if body.density is not None else (body.mass or 0.0) / volume
    return Masses(volume * density, centre, inertia * density)


FEW_ACROSS, SLENDER = 2, 4.0
"""Cells across a block, and its length over its thickness, at which four-node tetrahedra bend by less than
four fifths of what they should, and others bend right (tests/verification/test_cantilever.py)."""


def _mesh_kind(spec: Soft) -> type | None:
    """The kind of mesh that a soft body is to be of; None where its shape's own will do."""
    if spec.elements != "auto":
        return ELEMENTS[spec.elements].mesh
    g = spec.geometry
    if not isinstance(g, Block):
        return None
    thickness, across = min(zip(g.size, g.divisions, strict=True))
    if across > FEW_ACROSS or max(g.size) < SLENDER * thickness:
        return None
    return HexMesh if spec.material.law == LINEAR else QuadraticTetMesh


def soft_mesh(spec: Soft) -> SolidMesh:
    """The mesh of a soft body where it is placed [m].

    Raises InputError for elements that its shape does not have, and Refusal for more than the machine holds.
    """
    wanted = _mesh_kind(spec)
    mesh: SolidMesh = _hexahedra(spec.geometry) if wanted is HexMesh else cells_of(spec.geometry)
    if wanted is QuadraticTetMesh and isinstance(mesh, TetMesh):
        # an edge, and so its middle, is shared by some five elements
        nodes = len(mesh.nodes) + 6 * len(mesh.tets) // 5
        require_stiffness(f"bodies.{spec.name}.elements", nodes, len(mesh.tets), 10)
        mesh = with_middles(mesh)[1]
    if wanted is not None and not isinstance(mesh, wanted):
        has, use = ("hexahedra", '"hex8"') if isinstance(mesh, HexMesh) else ("tetrahedra", '"tet10"')
        raise InputError(
            f'bodies.{spec.name}.elements is "{spec.elements}", but the file holds {has}: use {use}.'
        )
    return mesh.with_nodes(placed(mesh.nodes, spec.placement))


def _hexahedra(g: SoftGeometry) -> TetMesh | HexMesh:
    """Hexahedra, or what a file holds, in the shape's own frame."""
    if isinstance(g, Block):
        a, b, c = g.divisions
        require_stiffness("geometry.divisions", (a + 1) * (b + 1) * (c + 1), a * b * c, 8)
        return generate.hex_block(g.size, g.divisions, g.grading)
    if isinstance(g, CupModel | RevolvedCup):
        return hex_cups.hex_cup(cup_shape(g), hex_cups.GRIDS[g.resolution]).mesh
    return cells_of(g)


def quasistatic_mesh(body: Quasistatic) -> HexMesh | TetMesh:
    """The mesh of a quasi-static body where it is placed [m]."""
    mesh = cells_of(body.geometry)
    return mesh.with_nodes(placed(mesh.nodes, body.placement))


def cut_cup(told: Cup) -> CupMesh[TetMesh] | CupMesh[HexMesh]:
    """A cup that is turned about its axis, in its own frame."""
    g, in_tetrahedra = told.geometry, told.elements == "tetrahedra"
    if isinstance(g, DrawnCup | BellowsCup):
        try:
            shape = drawn_shape(g)
        except InputError as error:
            raise InputError(f"bodies.{told.name}.geometry: {error}") from None
        if in_tetrahedra:
            return cup(shape, drawn_grid(shape, g.cell, g.around, g.layers))
        made = hex_cups.hex_cup(shape, hex_cups.drawn_grid(shape, g.cell, g.around, g.layers))
        validate_hexes(made.mesh.nodes, made.mesh.hexes, f"bodies.{told.name}.geometry")
        return made
    assert isinstance(g, CupModel | RevolvedCup)
    if in_tetrahedra:
        return cup(cup_shape(g), GRIDS[g.resolution])
    return hex_cups.hex_cup(cup_shape(g), hex_cups.GRIDS[g.resolution])


def cup_mesh(told: Cup) -> TetMesh | HexMesh:
    """The mesh of a cup, or of an arm with cups, where it is placed [m]."""
    g = told.geometry
    mesh: TetMesh | HexMesh
    if isinstance(g, OctopusArm):
        mesh = octopus_arm().mesh
    elif isinstance(g, CupFile):
        mesh = tetrahedra(g)
    else:
        mesh = cut_cup(told).mesh
    return mesh.with_nodes(placed(mesh.nodes, told.placement))


def beam_line(body: Beam) -> BeamLine:
    """The nodes of a beam where it is placed, and its radius [m]."""
    g = body.geometry
    if g.kind == "line":
        line = generate.beam_line(g.start, g.end, g.elements, g.radius)
    else:
        line = BeamLine(np.array(g.points, float), g.radius)
    return BeamLine(placed(line.nodes, body.placement), line.radius * body.placement.scale)


def add_body(
    shapes: Shapes, body: Soft | Beam | Rigid | Quasistatic | Static | Cup, smooth: bool = True
) -> None:
    """A body at rest, where it is placed, as a drawable; raises InputError for a file that cannot be read.

    smooth: whether rigid balls are round, and not of cells.
    """
    mesh: SolidMesh | None = None
    if isinstance(body, Beam):
        line = beam_line(body)
        shapes.add(body.name, line.nodes, kind="tube", radius=line.radius, colour=body.colour)
        return
    if isinstance(body, Rigid | Static):
        round_one = round_surface(body.geometry) if smooth and isinstance(body, Rigid) else None
        if round_one is None:
            surface = surface_of(body.geometry)
            round_one = surface.vertices, surface.triangles
        points, triangles = placed(round_one[0], body.placement), round_one[1]
    else:
        if isinstance(body, Soft):
            mesh = soft_mesh(body)
        else:
            mesh = cup_mesh(body) if isinstance(body, Cup) else quasistatic_mesh(body)
        points, triangles = mesh.nodes, mesh.surface().triangles
    whole = shapes.add(
        body.name, points, triangles, colour=body.colour, static=isinstance(body, Static), look=look_of(body)
    )
    if isinstance(body, Soft) and mesh is not None:
        shapes.drawables += borders(whole, body, mesh)


def look_of(body: object) -> str:
    """How a body meets light (`Drawable.look`)."""
    match body:
        case Soft() | Quasistatic():
            return "soft"
        case Cup():
            return "clear"
        case _:
            return "hard"
