"""The bodies of a scene one by one: mesh, material, fixed nodes, and what of them can touch."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.app.runtime.memory import require_stiffness
from palpo.config.schema.attachment import FrameAttachment
from palpo.config.schema.body import (
    BeamBodySpec,
    MeshBody,
    PlaneBody,
    QuasistaticBodySpec,
    Region,
    RigidBodySpec,
    TetBodySpec,
)
from palpo.config.schema.geometry import (
    BellowsCup,
    CupModel,
    DrawnCup,
    Placement,
    ProngGeometry,
    RevolvedCup,
    TetGeometry,
)
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.config.schema.tool import GripSpec
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.bodies import chain_body
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.topology import LOW, STATIC, TOOL, CollisionShape
from palpo.physics.exchange.gains import Gains
from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate, io
from palpo.physics.mesh.beam import BeamLine
from palpo.physics.mesh.cups import CUPS, GRIDS, CupShape, cup
from palpo.physics.mesh.drawn_cups import DrawnShape, bellows_points
from palpo.physics.mesh.liver import liver
from palpo.physics.mesh.regions import nodes_in_box, nodes_in_sphere
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.multirate.quasistatic_tool import QuasistaticTool
from palpo.physics.systems.snap.connectors import registry as connectors

NO_TRIANGLES = np.zeros((0, 3), np.int32)
NO_EDGES = np.zeros((0, 2), np.int32)

Moving = SoftBody | chain_body.BeamBody | chain_body.RigidBody | QuasistaticTool


@dataclass
class BodyPart:
    """A body under construction: its points in the scene and what moves them."""

    spec: TetBodySpec | BeamBodySpec | RigidBodySpec | QuasistaticBodySpec | PlaneBody | MeshBody
    shape: CollisionShape
    points: NDArray[np.float64]
    """Rest positions of its points and, after them, of its rotations (zeros), (n, 3)."""
    n_points: int
    """How many of them are points."""
    body: Moving | None = None


def placed(points: NDArray[np.float64], placement: Placement) -> NDArray[np.float64]:
    """Scaled, then rotated, then moved."""
    rotation = quaternion_matrix(placement.quaternion)
    return np.ascontiguousarray(placement.scale * points @ rotation.T + np.array(placement.position))


def key_of(spec: BaseScene, *path: object) -> str:
    """File and key of a scene's value, for messages."""
    return f"{spec.origin.path}: {'.'.join(str(p) for p in path)}"


def material_of(spec: TetBodySpec | BeamBodySpec) -> Material:
    """What a body of the slow loop is of."""
    m = spec.material
    return Material(
        youngs_modulus=m.youngs_modulus,
        poisson_ratio=m.poisson_ratio,
        density=m.density,
        alpha=m.alpha,
        beta=m.beta,
    )


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


def generated_tets(g: TetGeometry) -> TetMesh | None:
    """The mesh of a generated shape in its own frame, None for a file."""
    match g.kind:
        case "block":
            a, b, c = g.divisions
            require_stiffness("geometry.divisions", (a + 1) * (b + 1) * (c + 1), 6 * a * b * c, 4)
            return generate.block(g.size, g.divisions, g.grading)
        case "cylinder":
            return generate.cylinder(g.radius, g.length, g.around, g.along, g.axis)
        case "sphere":
            return generate.sphere(g.radius, g.divisions)
        case "ellipsoid":
            return generate.ellipsoid(g.radii, g.divisions)
        case "liver":
            return liver(g.width, g.spacing)
        case "prong":
            return _prong(g)
        case "cup" | "revolved":
            return cup(cup_shape(g), GRIDS[g.resolution]).mesh
        case _:
            return None


def _prong(g: ProngGeometry) -> TetMesh:
    """An elastic part of a connector's socket; InputError for a number that it does not have."""
    prongs = connectors.generate(g.connector, g.mesh).prongs
    if g.number >= len(prongs):
        raise InputError(
            f"geometry.number = {g.number}: the socket of {g.connector} has parts 0 to {len(prongs) - 1}."
        )
    return prongs[g.number].mesh


def static_surface(spec: MeshBody) -> SurfaceMesh:
    """The surface of a static body where it is placed [m]."""
    g = spec.geometry
    match g.kind:
        case "box":
            surface = generate.box_surface(g.size)
        case "sphere":
            surface = generate.sphere(g.radius, g.divisions).surface().compact()
        case "ellipsoid":
            surface = generate.ellipsoid(g.radii, g.divisions).surface().compact()
        case "cylinder":
            surface = generate.cylinder(g.radius, g.length, g.around, g.along, g.axis).surface().compact()
        case _:
            surface = io.read_surface_mesh(g.path)
            surface = surface.with_vertices(surface.vertices * g.scale)
    return surface.with_vertices(placed(surface.vertices, spec.placement))


def chosen_nodes(
    key: str, name: str, regions: tuple[Region, ...], nodes: NDArray[np.float64], does: str = "fixes"
) -> NDArray[np.int32]:
    """Nodes of all regions that stand at a key; InputError for one that holds none, or a node not there."""
    chosen = [np.zeros(0, np.int32)]
    for i, region in enumerate(regions):
        where = f"{key}.{i}"
        if region.box is not None:
            found, what = nodes_in_box(nodes, *region.box), "box"
        elif region.sphere is not None:
            found, what = nodes_in_sphere(nodes, region.sphere.centre, region.sphere.radius), "sphere"
        elif region.end is not None:
            found, what = np.array([0 if region.end == "first" else len(nodes) - 1], np.int32), "end"
        else:
            found, what = np.array(region.nodes, np.int32), "nodes"
            if found.max() >= len(nodes):
                raise InputError(
                    f"{where}.nodes = {found.max()}: there is no such node; {name} has 0 to {len(nodes) - 1}."
                )
        if not len(found):
            lo, hi = nodes.min(axis=0), nodes.max(axis=0)
            raise InputError(
                f"{where}.{what} {does} nothing: it holds no node of {name}, whose nodes lie between "
                f"{np.round(lo, 6).tolist()} and {np.round(hi, 6).tolist()} m."
            )
        chosen.append(found)
    return np.unique(np.concatenate(chosen)).astype(np.int32)


def fields_of(spec: SceneSpec, name: str) -> int:
    """Numbers that a body has after its nodes: of cavities that it walls now, or has just walled."""
    return 2 * spec.air.most if spec.air is not None and name in (spec.air.cup, spec.air.partner) else 0


def beam_line(body: BeamBodySpec) -> BeamLine:
    """The nodes of a beam where it is placed, and its radius [m]."""
    g = body.geometry
    if g.kind == "line":
        line = generate.beam_line(g.start, g.end, g.elements, g.radius)
    else:
        line = BeamLine(np.array(g.points, float), g.radius)
    return BeamLine(placed(line.nodes, body.placement), line.radius * body.placement.scale)


def _beam_part(spec: SceneSpec, body: BeamBodySpec) -> BodyPart:
    line = beam_line(body)
    fixed = chosen_nodes(key_of(spec, "bodies", body.name, "fixed"), body.name, body.fixed, line.nodes)
    beam = chain_body.BeamBody(
        body.name, line, material_of(body), fixed, spec.gravity, mass_matrix=body.mass_model
    )
    n = len(line.nodes)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).astype(np.int32)
    role = TOOL if body.rate == "high" else LOW
    shape = CollisionShape(2 * n, NO_TRIANGLES, edges, line.radius, role)
    return BodyPart(body, shape, np.vstack([line.nodes, np.zeros((n, 3))]), n, beam)


def rigid_form(
    body: RigidBodySpec,
) -> tuple[NDArray, NDArray, NDArray, float, float, NDArray, NDArray]:
    """Points, triangles, edges, radius, and volume, centre and unit-density inertia; scaled, body axes."""
    g, scale = body.geometry, body.placement.scale
    if g.kind == "sphere":
        r = g.radius * scale
        volume = 4.0 / 3.0 * np.pi * r**3
        inertia = 0.4 * volume * r**2 * np.eye(3)
        return np.zeros((1, 3)), NO_TRIANGLES, np.array([[0, 0]], np.int32), r, volume, np.zeros(3), inertia
    if g.kind == "capsule":
        r, length = g.radius * scale, g.length * scale
        shaft, caps = np.pi * r**2 * length, 4.0 / 3.0 * np.pi * r**3
        along = shaft * r**2 / 2 + caps * 0.4 * r**2
        # a half ball's centre lies 3/8 r beyond the end of the shaft
        across = shaft * (length**2 / 12 + r**2 / 4) + caps * (
            0.4 * r**2 + length**2 / 4 + 3.0 / 8.0 * length * r
        )
        ends = np.array([[0, -length / 2, 0], [0, length / 2, 0]])
        inertia = np.diag([across, along, across])
        return ends, NO_TRIANGLES, np.array([[0, 1]], np.int32), r, shaft + caps, np.zeros(3), inertia
    if g.kind == "box":
        surface, source = generate.box_surface(g.size), f"box of {body.name}"
    elif g.kind == "plug":
        plug = connectors.generate(g.connector)
        surface, source = plug.plug_at(0.0), f"plug of {body.name}"
    else:
        surface, source = io.read_surface_mesh(g.path), g.path
        surface = surface.with_vertices(surface.vertices * g.scale)
    surface = surface.with_vertices(surface.vertices * scale)
    surface.require_volume(source)
    volume, centre, inertia = surface.mass_properties(1.0)
    return surface.vertices - centre, surface.triangles, NO_EDGES, 0.0, volume, centre, inertia


def _rigid_part(spec: SceneSpec, body: RigidBodySpec, extra: list[NDArray[np.float64]]) -> BodyPart:
    points, triangles, edges, radius, volume, centre, inertia = rigid_form(body)
    density = body.density if body.density is not None else (body.mass or 0.0) / volume
    rotation = quaternion_matrix(body.placement.quaternion)
    origin = np.array(body.placement.position) + rotation @ centre
    local = [(np.asarray(p) - origin) @ rotation for p in extra]
    vertices = np.ascontiguousarray(np.vstack([points, *local]) if local else points)
    rigid = chain_body.RigidBody(
        body.name,
        volume * density,
        inertia * density,
        origin,
        body.placement.quaternion,
        spec.gravity,
        vertices=vertices,
    )
    role = TOOL if body.rate == "high" else LOW
    n = len(vertices)
    shape = CollisionShape(n + 1, triangles, edges, radius, role)
    return BodyPart(body, shape, np.vstack([origin + vertices @ rotation.T, np.zeros((1, 3))]), n, rigid)


def _static_part(spec: SceneSpec, body: PlaneBody | MeshBody, extra: list[NDArray[np.float64]]) -> BodyPart:
    more = np.array(extra, float).reshape(-1, 3)
    if isinstance(body, PlaneBody):
        normal = np.array(body.normal, float)
        plane = np.concatenate([body.point, normal / np.linalg.norm(normal)])
        shape = CollisionShape(len(more), NO_TRIANGLES, NO_EDGES, 0.0, STATIC, plane)
        return BodyPart(body, shape, more, len(more))
    surface = static_surface(body)
    points = np.vstack([surface.vertices, more])
    return BodyPart(
        body, CollisionShape(len(points), surface.triangles, NO_EDGES, 0.0, STATIC), points, len(points)
    )


def places_on(spec: SceneSpec, name: str) -> list[NDArray[np.float64]]:
    """Points that attachments want on a rigid or static body, in the order of the scene."""
    found = []
    for attachment in spec.attachments:
        sides = [attachment.a] if isinstance(attachment, FrameAttachment) else [attachment.a, attachment.b]
        for place in sides:
            if place.body == name:
                found.append(np.array(place.at if place.at is not None else _origin(spec, name), float))
    return found


def _origin(spec: SceneSpec, name: str) -> tuple[float, float, float]:
    body = spec.body(name)
    return body.placement.position if isinstance(body, RigidBodySpec | MeshBody) else (0.0, 0.0, 0.0)


def make_part(spec: SceneSpec, body: BeamBodySpec | RigidBodySpec | PlaneBody | MeshBody) -> BodyPart:
    """A beam, a rigid or a static body of the scene; raises InputError for what only its mesh can tell."""
    if isinstance(body, BeamBodySpec):
        return _beam_part(spec, body)
    if isinstance(body, RigidBodySpec):
        return _rigid_part(spec, body, places_on(spec, body.name))
    return _static_part(spec, body, places_on(spec, body.name))


def gains_of(hold: GripSpec) -> Gains:
    """Of the coupling between the hand and what it holds."""
    return Gains(hold.stiffness, hold.damping, hold.rotational_stiffness, hold.rotational_damping)
