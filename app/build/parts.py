"""The bodies of a scene one by one: mesh, material, fixed nodes, and what of them can touch."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.robots import Masses
from palpo.app.build.shapes import beam_line, evenly, masses_of, placed, surface_of
from palpo.config.schema.attachment import FrameAttachment
from palpo.config.schema.blade import BladeSpec
from palpo.config.schema.body import (
    Beam,
    Plane,
    Quasistatic,
    Region,
    Rigid,
    Soft,
    Static,
)
from palpo.config.schema.material import Elastic, SoftMaterial
from palpo.config.schema.scene import BaseScene, SceneSpec
from palpo.config.schema.tool import HoldSpec
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.bodies import chain_body
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.topology import LOW, STATIC, TOOL, CollisionShape
from palpo.physics.exchange.gains import Gains
from palpo.physics.fem.material import Material
from palpo.physics.mesh.regions import nodes_in_box, nodes_in_sphere
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.multirate.quasistatic_tool import QuasistaticTool

NO_TRIANGLES = np.zeros((0, 3), np.int32)
NO_EDGES = np.zeros((0, 2), np.int32)

Moving = SoftBody | chain_body.BeamBody | chain_body.RigidBody | QuasistaticTool


@dataclass
class BodyPart:
    """A body under construction: its points in the scene and what moves them."""

    spec: Soft | Beam | Rigid | Quasistatic | Plane | Static
    shape: CollisionShape
    points: NDArray[np.float64]
    """Rest positions of its points and, after them, of its rotations (zeros), (n, 3)."""
    n_points: int
    """How many of them are points."""
    body: Moving | None = None


def key_of(spec: BaseScene, *path: object) -> str:
    """File and key of a scene's value, for messages."""
    return f"{spec.origin.path}: {'.'.join(str(p) for p in path)}"


def material_of(m: Elastic, mass: float | None = None, volume: float = 1.0) -> Material:
    """What a body is of; its mass [kg], if given, spread over its volume [m^3], stands for the density."""
    density = m.density if mass is None else mass / volume
    linear = Material(m.youngs_modulus, m.poisson_ratio, density, m.alpha, m.beta)
    if not isinstance(m, SoftMaterial):
        return linear
    prony = tuple((term.ratio, term.time) for term in m.prony)
    return replace(linear, law=m.law, shape=m.shape, prony=prony)


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


def _beam_part(spec: SceneSpec, body: Beam) -> BodyPart:
    line = beam_line(body)
    fixed = chosen_nodes(key_of(spec, "bodies", body.name, "fixed"), body.name, body.fixed, line.nodes)
    beam = chain_body.BeamBody(
        body.name, line, material_of(body.material), fixed, spec.gravity, mass_matrix=body.mass_model
    )
    n = len(line.nodes)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1).astype(np.int32)
    role = TOOL if body.rate == "high" else LOW
    shape = CollisionShape(2 * n, NO_TRIANGLES, edges, line.radius, role)
    return BodyPart(body, shape, np.vstack([line.nodes, np.zeros((n, 3))]), n, beam)


def rigid_form(body: Rigid) -> tuple[NDArray, NDArray, NDArray, float, Masses]:
    """Points about the centre, triangles, edges, radius, and masses; scaled, body axes."""
    g, scale = body.geometry, body.placement.scale
    if g.kind == "sphere":
        r = g.radius * scale
        volume = 4.0 / 3.0 * np.pi * r**3
        inertia = 0.4 * volume * r**2 * np.eye(3)
        masses = evenly(body, volume, np.zeros(3), inertia)
        return np.zeros((1, 3)), NO_TRIANGLES, np.array([[0, 0]], np.int32), r, masses
    if g.kind == "capsule":
        r, length = g.radius * scale, g.length * scale
        shaft, caps = np.pi * r**2 * length, 4.0 / 3.0 * np.pi * r**3
        along = shaft * r**2 / 2 + caps * 0.4 * r**2
        # a half ball's centre lies 3/8 r beyond the end of the shaft
        across = shaft * (length**2 / 12 + r**2 / 4) + caps * (
            0.4 * r**2 + length**2 / 4 + 3.0 / 8.0 * length * r
        )
        ends = np.array([[0, -length / 2, 0], [0, length / 2, 0]])
        masses = evenly(body, shaft + caps, np.zeros(3), np.diag([across, along, across]))
        return ends, NO_TRIANGLES, np.array([[0, 1]], np.int32), r, masses
    surface = surface_of(g)
    source = g.path if g.kind == "file" else f"{g.kind} of {body.name}"
    surface = surface.with_vertices(surface.vertices * scale)
    surface.require_volume(source)
    masses = masses_of(body, surface)
    return surface.vertices - masses.centre, surface.triangles, NO_EDGES, 0.0, masses


def _rigid_part(spec: SceneSpec, body: Rigid, extra: list[NDArray[np.float64]]) -> BodyPart:
    points, triangles, edges, radius, masses = rigid_form(body)
    rotation = quaternion_matrix(body.placement.quaternion)
    origin = np.array(body.placement.position) + rotation @ masses.centre
    local = [(np.asarray(p) - origin) @ rotation for p in extra]
    vertices = np.ascontiguousarray(np.vstack([points, *local]) if local else points)
    rigid = chain_body.RigidBody(
        body.name,
        masses.mass,
        masses.inertia,
        origin,
        body.placement.quaternion,
        spec.gravity,
        vertices=vertices,
    )
    role = TOOL if body.rate == "high" else LOW
    n = len(vertices)
    shape = CollisionShape(n + 1, triangles, edges, radius, role)
    return BodyPart(body, shape, np.vstack([origin + vertices @ rotation.T, np.zeros((1, 3))]), n, rigid)


def _static_part(spec: SceneSpec, body: Plane | Static, extra: list[NDArray[np.float64]]) -> BodyPart:
    more = np.array(extra, float).reshape(-1, 3)
    if isinstance(body, Plane):
        normal = np.array(body.normal, float)
        plane = np.concatenate([body.point, normal / np.linalg.norm(normal)])
        shape = CollisionShape(len(more), NO_TRIANGLES, NO_EDGES, 0.0, STATIC, plane)
        return BodyPart(body, shape, more, len(more))
    surface = surface_of(body.geometry)
    points = np.vstack([placed(surface.vertices, body.placement), more])
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
    return found + [point for blade in spec.blades if blade.body == name for point in blade_points(blade)]


def blade_points(blade: BladeSpec) -> NDArray[np.float64]:
    """Ends of its edge, and the point as far behind the first as the blade reaches, (3, 3) [m]."""
    one, other = np.array(blade.edge)
    along, towards = other - one, np.array(blade.towards)
    towards = towards - (towards @ along) / (along @ along) * along
    return np.array([one, other, one - blade.depth * towards / np.linalg.norm(towards)])


def _origin(spec: SceneSpec, name: str) -> tuple[float, float, float]:
    body = spec.body(name)
    return body.placement.position if isinstance(body, Rigid | Static) else (0.0, 0.0, 0.0)


def make_part(spec: SceneSpec, body: Beam | Rigid | Plane | Static) -> BodyPart:
    """A beam, a rigid or a static body of the scene; raises InputError for what only its mesh can tell."""
    if isinstance(body, Beam):
        return _beam_part(spec, body)
    if isinstance(body, Rigid):
        return _rigid_part(spec, body, places_on(spec, body.name))
    return _static_part(spec, body, places_on(spec, body.name))


def gains_of(hold: HoldSpec) -> Gains:
    """Of the coupling between the hand and what it holds."""
    return Gains(hold.stiffness, hold.damping, hold.rotational_stiffness, hold.rotational_damping)
