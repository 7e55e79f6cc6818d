"""Meshes and quasi-static bodies of HapCo, and meshes of suction; pictures are drawn of these before anything
is compiled."""

from numpy.typing import ArrayLike

from palpo.app.build.parts import chosen_nodes, cup_shape, drawn_shape, generated_tets, placed
from palpo.app.build.volume_mesh import tetrahedra
from palpo.app.runtime.memory import require_compliance
from palpo.config.schema.body import QuasistaticBodySpec
from palpo.config.schema.geometry import (
    BellowsCup,
    BodyFileSpec,
    CupModel,
    DrawnCup,
    HexBlock,
    RevolvedCup,
    VolumeFile,
)
from palpo.config.schema.partner import SoftPartner
from palpo.config.schema.suction import ArmGeometry, CupFile, SuctionCup, SuctionScene
from palpo.physics.bodies.io import read_body
from palpo.physics.bodies.quasistatic import Progress, QuasistaticBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh import hex_cups, io, partners
from palpo.physics.mesh.cups import GRIDS, CupMesh, cup, drawn_grid
from palpo.physics.mesh.generate import hex_block
from palpo.physics.mesh.hex import HexMesh, validate_hexes
from palpo.physics.mesh.octopus_arm import octopus_arm
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.cache import cache_folder
from palpo.physics.numerics.errors import InputError


def solid_mesh(body: QuasistaticBodySpec) -> HexMesh | TetMesh:
    """The mesh of a body of HapCo where it is placed [m]."""
    g = body.geometry
    mesh: HexMesh | TetMesh | None
    if isinstance(g, HexBlock):
        mesh = hex_block(g.size, g.divisions, g.grading)
    elif isinstance(g, VolumeFile):
        mesh = io.read_solid_mesh(g.path)
        mesh = mesh.with_nodes(mesh.nodes * g.scale)
    elif isinstance(g, BodyFileSpec):
        mesh = read_body(g.path).mesh
    else:
        mesh = generated_tets(g)
        assert mesh is not None
    return mesh.with_nodes(placed(mesh.nodes, body.placement))


def quasistatic_body(
    told: QuasistaticBodySpec, key: str, gravity: ArrayLike, progress: Progress | None = None
) -> QuasistaticBody:
    """The body at rest, K^-1 computed or loaded; progress is told the share that is done.

    InputError that names `key` for a region without a node, and for a K^-1 that the memory does not hold.
    """
    if isinstance(told.geometry, BodyFileSpec):
        held = read_body(told.geometry.path)
        mesh = held.mesh.with_nodes(placed(held.mesh.nodes, told.placement))
        _require_room(told, mesh)
        return QuasistaticBody(
            told.name, mesh, held.material, held.clamped, gravity, _elements(told, mesh), held.stiffness,
            held.inverse, cache_folder("compliance"), progress,
        )  # fmt: skip
    assert told.material is not None
    if isinstance(told.geometry, HexBlock):  # known before there is a mesh
        a, b, c = told.geometry.divisions
        nodes, inside = (a + 1) * (b + 1) * (c + 1), (a - 1) * (b - 1) * (c - 1)
        require_compliance(f"bodies.{told.name}.geometry.divisions", nodes, nodes - inside, a * b * c, 8)
    solid, m = solid_mesh(told), told.material
    _require_room(told, solid)
    clamped = chosen_nodes(key, told.name, told.clamped, solid.nodes, "clamps")
    material = Material(m.youngs_modulus, m.poisson_ratio, m.density)
    return QuasistaticBody(
        told.name, solid, material, clamped, gravity, _elements(told, solid),
        cache=cache_folder("compliance"), progress=progress,
    )  # fmt: skip


def _elements(told: QuasistaticBodySpec, mesh: HexMesh | TetMesh) -> str | None:
    return f"hex8-{told.integration}" if isinstance(mesh, HexMesh) else None


def _require_room(told: QuasistaticBodySpec, mesh: HexMesh | TetMesh) -> None:
    """Refusal for a body whose K^-1 the machine cannot hold."""
    require_compliance(f"bodies.{told.name}", len(mesh.nodes), len(mesh.boundary_nodes), *mesh.cells.shape)


def cut_cup(told: SuctionCup) -> CupMesh[TetMesh] | CupMesh[HexMesh]:
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


def cup_mesh(told: SuctionCup) -> TetMesh | HexMesh:
    """The mesh of a cup, or of an arm with cups, where it is placed [m]."""
    g = told.geometry
    mesh: TetMesh | HexMesh
    if isinstance(g, ArmGeometry):
        mesh = octopus_arm().mesh
    elif isinstance(g, CupFile):
        mesh = tetrahedra(g)
    else:
        mesh = cut_cup(told).mesh
    return mesh.with_nodes(placed(mesh.nodes, told.placement))


def soft_partner_mesh(told: SoftPartner) -> TetMesh:
    """The mesh of a soft partner where it is placed [m]."""
    g = told.geometry
    if g.kind == "tunnel":
        mesh = partners.tunnel_block(g.side, g.holes, g.spacing, g.width, g.depth, g.cell)
    elif g.kind == "file":
        mesh = io.read_tet_mesh(g.path)
        mesh = mesh.with_nodes(mesh.nodes * g.scale)
    else:
        generated = generated_tets(g)
        assert generated is not None
        mesh = generated
    return mesh.with_nodes(placed(mesh.nodes, told.placement))


def rigid_surface(spec: SuctionScene) -> SurfaceMesh:
    """The surface of a partner that is not soft, in its own frame, closed."""
    g = spec.partner.geometry
    match g.kind:
        case "plate":
            return partners.slab(g.side, g.cells, g.thickness, g.bump, g.wavelength)
        case "bunny":
            return partners.bunny(g.radius, g.subdivisions, g.bump)
        case "half-cylinder":
            return partners.half_cylinder(g.radius, g.length, g.flatness, g.around, g.along)
        case "tunnel":
            return (
                partners.tunnel_block(g.side, g.holes, g.spacing, g.width, g.depth, g.cell)
                .surface()
                .compact()
            )
        case "file":
            surface = io.read_surface_mesh(g.path)
            partners.require_closed(surface, g.path)
            return surface.with_vertices(surface.vertices * g.scale)
        case _:
            mesh = generated_tets(g)
            assert mesh is not None
            return mesh.surface(spec.partner.name).compact()
