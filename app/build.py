"""From a validated scene specification to the physics that the loops run."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from config.schema.attachment import FrameAttachment, SlideAttachment, WeldAttachment
from config.schema.body import BeamBody, MeshBody, Place, PlaneBody, Region, RigidBody, TetBody
from config.schema.geometry import Placement
from config.schema.scene import SceneSpec
from haptics.path import oscillation_path, waypoint_path
from physics.bodies import chain_body, tet_body
from physics.bodies.chain import ChainModel, ChainState
from physics.collision.topology import LOW, STATIC, TOOL, Shape, join_shapes
from physics.contact.rows import POINT, ROTATION, SLIDE, Attachments, ToolPoints
from physics.errors import InputError
from physics.exchange.constraint_frame import Capacity
from physics.fem.material import Material
from physics.mesh import generate, io
from physics.mesh.beam import BeamLine
from physics.mesh.regions import nodes_in_box, nodes_in_sphere
from physics.mesh.surface import SurfaceMesh
from physics.mesh.tet import TetMesh
from physics.systems.high_rate import CONSTRAINT_SUM, HOLD_REACTION, MovingPoints
from physics.systems.hold import make_hold
from physics.systems.members import BeamMember, Member, RigidMember, TetMember
from physics.systems.scene import Numbers, Scene

NO_TRIANGLES = np.zeros((0, 3), np.int32)
NO_EDGES = np.zeros((0, 2), np.int32)

Moving = tet_body.TetBody | chain_body.BeamBody | chain_body.RigidBody


@dataclass
class Part:
    """A body under construction: its points in the scene and what moves them."""

    spec: TetBody | BeamBody | RigidBody | PlaneBody | MeshBody
    shape: Shape
    points: NDArray[np.float64]
    """Rest positions of its points and, after them, of its rotations (zeros), (n, 3)."""
    n_points: int
    """How many of them are points."""
    body: Moving | None = None
    extra: list[NDArray[np.float64]] = field(default_factory=list)


def rotation_matrix(q: tuple[float, float, float, float]) -> NDArray[np.float64]:
    """Rotation matrix (3, 3) of a unit quaternion (w, x, y, z)."""
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _placed(points: NDArray[np.float64], placement: Placement) -> NDArray[np.float64]:
    """Scaled, then rotated, then moved."""
    rotation = rotation_matrix(placement.quaternion)
    return np.ascontiguousarray(placement.scale * points @ rotation.T + np.array(placement.position))


def _key(spec: SceneSpec, *path: object) -> str:
    """File and key of a scene's value, for messages."""
    return f"{spec.origin.path}: {'.'.join(str(p) for p in path)}"


def _material(spec: TetBody | BeamBody) -> Material:
    m = spec.material
    return Material(
        youngs_modulus=m.youngs_modulus,
        poisson_ratio=m.poisson_ratio,
        density=m.density,
        alpha=m.alpha,
        beta=m.beta,
    )


def _tet_mesh(spec: TetBody) -> TetMesh:
    g = spec.geometry
    match g.kind:
        case "block":
            mesh = generate.block(g.size, g.divisions, g.grading)
        case "cylinder":
            mesh = generate.cylinder(g.radius, g.length, g.around, g.along, g.axis)
        case "sphere":
            mesh = generate.sphere(g.radius, g.divisions)
        case "ellipsoid":
            mesh = generate.ellipsoid(g.radii, g.divisions)
        case _:
            mesh = io.read_tet_mesh(g.path)
            mesh = mesh.with_nodes(mesh.nodes * g.scale)
    return mesh.with_nodes(_placed(mesh.nodes, spec.placement))


def _static_surface(spec: MeshBody) -> SurfaceMesh:
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
    return surface.with_vertices(_placed(surface.vertices, spec.placement))


def _fixed_nodes(
    spec: SceneSpec, name: str, regions: tuple[Region, ...], nodes: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Nodes of all fixed regions; InputError for a region that fixes nothing or a node that is not there."""
    chosen = [np.zeros(0, np.int32)]
    for i, region in enumerate(regions):
        where = _key(spec, "bodies", name, "fixed", i)
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
                f"{where}.{what} fixes nothing: it holds no node of {name}, whose nodes lie between "
                f"{np.round(lo, 6).tolist()} and {np.round(hi, 6).tolist()} m."
            )
        chosen.append(found)
    return np.unique(np.concatenate(chosen)).astype(np.int32)


def _tet_part(spec: SceneSpec, body: TetBody) -> Part:
    mesh = _tet_mesh(body)
    fixed = _fixed_nodes(spec, body.name, body.fixed, mesh.nodes)
    solid = tet_body.TetBody(body.name, mesh, _material(body), fixed, spec.gravity, body.mass_model)
    shape = Shape(len(mesh.nodes), mesh.surface().triangles, NO_EDGES, 0.0, LOW)
    return Part(body, shape, mesh.nodes.copy(), len(mesh.nodes), solid)


def _beam_part(spec: SceneSpec, body: BeamBody) -> Part:
    g = body.geometry
    if g.kind == "line":
        line = generate.beam_line(g.start, g.end, g.elements, g.radius)
    else:
        line = BeamLine(np.array(g.points, float), g.radius)
    line = BeamLine(_placed(line.nodes, body.placement), line.radius * body.placement.scale)
    fixed = _fixed_nodes(spec, body.name, body.fixed, line.nodes)
    model = {"lumped": "lumped", "consistent": "consistent"}[body.mass_model]
    beam = chain_body.BeamBody(
        body.name, line, _material(body), fixed, spec.gravity, mass_matrix=model  # type: ignore[arg-type]
    )  # fmt: skip
    n = len(line.nodes)
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    role = TOOL if body.rate == "high" else LOW
    shape = Shape(2 * n, NO_TRIANGLES, edges, line.radius, role)
    return Part(body, shape, np.vstack([line.nodes, np.zeros((n, 3))]), n, beam)


def _rigid_form(
    body: RigidBody,
) -> tuple[NDArray, NDArray, NDArray, float, float, NDArray, NDArray]:
    """Points, triangles, edges, radius, and volume, centre and unit-density inertia; scaled, body axes."""
    g, scale = body.geometry, body.placement.scale
    if g.kind == "sphere":
        r = g.radius * scale
        volume = 4.0 / 3.0 * np.pi * r**3
        inertia = 0.4 * volume * r**2 * np.eye(3)
        return np.zeros((1, 3)), NO_TRIANGLES, np.array([[0, 0]]), r, volume, np.zeros(3), inertia
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
        return ends, NO_TRIANGLES, np.array([[0, 1]]), r, shaft + caps, np.zeros(3), inertia
    if g.kind == "box":
        surface, source = generate.box_surface(g.size), f"box of {body.name}"
    else:
        surface, source = io.read_surface_mesh(g.path), g.path
        surface = surface.with_vertices(surface.vertices * g.scale)
    surface = surface.with_vertices(surface.vertices * scale)
    surface.require_volume(source)
    volume, centre, inertia = surface.mass_properties(1.0)
    return surface.vertices - centre, surface.triangles, NO_EDGES, 0.0, volume, centre, inertia


def _rigid_part(spec: SceneSpec, body: RigidBody, extra: list[NDArray[np.float64]]) -> Part:
    points, triangles, edges, radius, volume, centre, inertia = _rigid_form(body)
    density = body.density if body.density is not None else (body.mass or 0.0) / volume
    rotation = rotation_matrix(body.placement.quaternion)
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
    shape = Shape(n + 1, triangles, edges, radius, role)
    return Part(body, shape, np.vstack([origin + vertices @ rotation.T, np.zeros((1, 3))]), n, rigid)


def _static_part(
    spec: SceneSpec, body: PlaneBody | MeshBody, extra: list[NDArray[np.float64]]
) -> Part:
    more = np.array(extra, float).reshape(-1, 3)
    if isinstance(body, PlaneBody):
        normal = np.array(body.normal, float)
        plane = np.concatenate([body.point, normal / np.linalg.norm(normal)])
        shape = Shape(len(more), NO_TRIANGLES, NO_EDGES, 0.0, STATIC, plane)
        return Part(body, shape, more, len(more))
    surface = _static_surface(body)
    points = np.vstack([surface.vertices, more])
    return Part(body, Shape(len(points), surface.triangles, NO_EDGES, 0.0, STATIC), points, len(points))


def _places(spec: SceneSpec, name: str) -> list[NDArray[np.float64]]:
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
    return body.placement.position if isinstance(body, RigidBody | MeshBody) else (0.0, 0.0, 0.0)


def _parts(spec: SceneSpec) -> list[Part]:
    parts = []
    for body in spec.bodies:
        if isinstance(body, TetBody):
            parts.append(_tet_part(spec, body))
        elif isinstance(body, BeamBody):
            parts.append(_beam_part(spec, body))
        elif isinstance(body, RigidBody):
            parts.append(_rigid_part(spec, body, _places(spec, body.name)))
        else:
            parts.append(_static_part(spec, body, _places(spec, body.name)))
    return parts


class _Joints:
    """Attachment blocks while they are collected."""

    def __init__(self, spec: SceneSpec, parts: list[Part], first: NDArray[np.int32]) -> None:
        self.spec, self.parts, self.first = spec, parts, first
        self.names = [part.spec.name for part in parts]
        self.taken = [0] * len(parts)
        self.rows: list[tuple[int, list[int], NDArray, NDArray, int]] = []
        self.moving: list[tuple[int, NDArray, NDArray]] = []
        self.world: list[NDArray[np.float64]] = []
        """Rest positions of points that follow a script, appended after all others with their rotation."""

    def point(self, place: Place, name: str, key: str) -> int:
        """Global point of a place on a body."""
        b = self.names.index(name)
        part = self.parts[b]
        if isinstance(part.spec, TetBody | BeamBody):
            nodes = part.points[: part.n_points]
            if place.node is not None:
                if place.node >= len(nodes):
                    raise InputError(
                        f"{key}.node = {place.node}: there is no such node; {name} has 0 to {len(nodes) - 1}."
                    )
                local = place.node
            elif place.end is not None:
                local = 0 if place.end == "first" else len(nodes) - 1
            else:
                local = int(np.argmin(((nodes - np.array(place.at)) ** 2).sum(axis=1)))
        else:
            n_extra = len(_places(self.spec, name))
            local = part.n_points - n_extra + self.taken[b]
            self.taken[b] += 1
        return int(self.first[b]) + local

    def rotation(self, point: int, name: str) -> int:
        """Global rotation that goes with a point; -1 on a body that cannot turn."""
        b = self.names.index(name)
        part = self.parts[b]
        if isinstance(part.spec, BeamBody):
            return point + part.n_points
        if isinstance(part.spec, RigidBody):
            return int(self.first[b]) + part.n_points
        return -1

    def orientation(self, rotation: int) -> NDArray[np.float64]:
        """Orientation at rest of a global rotation."""
        if rotation < 0:
            return np.array([1.0, 0.0, 0.0, 0.0])
        b = int(np.searchsorted(self.first, rotation, side="right")) - 1
        part = self.parts[b]
        assert isinstance(part.body, chain_body.ChainBody)
        return part.body.q[rotation - int(self.first[b]) - part.n_points]

    def add(
        self, kind: int, a: int, b: int, direction: NDArray, reference: NDArray, turn: int = -1
    ) -> None:
        """One block."""
        self.rows.append((kind, [a, b], direction, reference, turn))

    def arrays(self) -> Attachments:
        """The blocks as the kernels take them."""
        n = len(self.rows)
        points = np.full((n, 2, 3), -1, np.int32)
        weights = np.zeros((n, 2, 3))
        weights[:, :, 0] = 1.0
        for k, (_, sides, _, _, _) in enumerate(self.rows):
            points[k, :, 0] = sides
        return Attachments(
            np.array([row[0] for row in self.rows], np.int32).reshape(n),
            points,
            weights,
            np.array([row[3] for row in self.rows]).reshape(n, 4),
            np.array([row[2] for row in self.rows]).reshape(n, 3),
            np.array([row[4] for row in self.rows], np.int32).reshape(n),
        )


def _quaternion_product(p: NDArray, q: NDArray) -> NDArray[np.float64]:
    w, v = p[0], p[1:]
    return np.concatenate([[w * q[0] - v @ q[1:]], w * q[1:] + q[0] * v + np.cross(v, q[1:])])


def _joints(spec: SceneSpec, parts: list[Part], first: NDArray[np.int32], rate: float) -> _Joints:
    joints = _Joints(spec, parts, first)
    nothing, upright = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    for i, attachment in enumerate(spec.attachments):
        key = _key(spec, "attachments", i)
        a = joints.point(attachment.a, attachment.a.body, f"{key}.a")
        if isinstance(attachment, FrameAttachment):
            _moving_frame(joints, attachment, a, int(first[-1]), rate)
            continue
        b = joints.point(attachment.b, attachment.b.body, f"{key}.b")
        if isinstance(attachment, SlideAttachment):
            direction = np.array(attachment.direction, float) / np.linalg.norm(attachment.direction)
            turn = joints.rotation(b, attachment.b.body)
            rest = rotation_matrix(tuple(joints.orientation(turn)))
            joints.add(SLIDE, a, b, direction @ rest, upright, turn)
            continue
        joints.add(POINT, a, b, nothing, upright)
        if isinstance(attachment, WeldAttachment):
            turn_a = joints.rotation(a, attachment.a.body)
            turn_b = joints.rotation(b, attachment.b.body)
            inverse = joints.orientation(turn_b) * np.array([1.0, -1.0, -1.0, -1.0])
            reference = _quaternion_product(joints.orientation(turn_a), inverse)
            joints.add(ROTATION, turn_a, turn_b, nothing, reference)
    return joints


def _moving_frame(joints: _Joints, attachment: FrameAttachment, a: int, first_free: int, rate: float) -> None:
    """A block (two with orientation) against a scripted point, whose number follows all others."""
    b = int(np.searchsorted(joints.first, a, side="right")) - 1
    rest = joints.parts[b].points[a - int(joints.first[b])]
    if attachment.path is not None:
        offsets, _ = waypoint_path(attachment.path, "smooth", None, rate)
    elif attachment.oscillation is not None:
        o = attachment.oscillation
        axis = np.array(o.direction, float)
        amplitude = o.amplitude * axis / np.linalg.norm(axis)
        offsets, _ = oscillation_path(np.zeros(3), amplitude, o.frequency, 60.0, 0.0, rate)
    else:
        offsets = np.zeros((1, 3))
    point = first_free + 2 * len(joints.moving)
    turn = joints.rotation(a, attachment.a.body)
    q = joints.orientation(turn)
    joints.moving.append((point, rest + offsets, np.tile(q, (len(offsets), 1))))
    joints.world.append(rest)
    nothing, upright = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
    joints.add(POINT, a, point, nothing, upright)
    if attachment.orientation:
        joints.add(ROTATION, turn, point + 1, nothing, upright)


def _moving_points(joints: _Joints) -> MovingPoints:
    """Scripted tables of equal length; the last row of a shorter one is held."""
    n = len(joints.moving)
    length = max((len(x) for _, x, _ in joints.moving), default=1)
    x, q = np.zeros((2 * n, length, 3)), np.zeros((2 * n, length, 4))
    q[..., 0] = 1.0
    points = np.zeros(2 * n, np.int32)
    for k, (point, path, turns) in enumerate(joints.moving):
        keep = np.minimum(np.arange(length), len(path) - 1)
        points[2 * k : 2 * k + 2] = point, point + 1
        x[2 * k], q[2 * k + 1] = path[keep], turns[keep]
    return MovingPoints(points, x, q)


def _tool_points(part: Part, first: int, n_points: int) -> ToolPoints:
    frame = np.full(n_points, -1, np.int32)
    lever = np.zeros((n_points, 3))
    own = slice(first, first + len(part.points))
    if isinstance(part.body, chain_body.RigidBody):
        frame[own] = 0
        assert part.body.vertices is not None
        lever[first : first + part.n_points] = part.body.vertices
    else:
        frame[own] = np.tile(np.arange(part.n_points), 2)
    return ToolPoints(np.array([first, first + len(part.points)], np.int64), frame, lever)


def _hold_place(spec: SceneSpec, part: Part) -> tuple[int, NDArray[np.float64]]:
    """Frame of the tool that the hand holds, and the held point off its origin."""
    hold, body = spec.tool.hold, part.body
    if isinstance(body, chain_body.RigidBody):
        if hold.at is None:
            return 0, np.zeros(3)
        rotation = rotation_matrix(tuple(body.q[0]))
        return 0, (np.array(hold.at) - body.x[0]) @ rotation
    n = part.n_points
    if hold.node is not None:
        return hold.node, np.zeros(3)
    if hold.end is not None:
        return (0 if hold.end == "first" else n - 1), np.zeros(3)
    return int(np.argmin(((part.points[:n] - np.array(hold.at)) ** 2).sum(axis=1))), np.zeros(3)


def _numbers(spec: SceneSpec) -> Numbers:
    contact, interface, solver = spec.contact, spec.interface, spec.solver
    return Numbers(
        dt=spec.rates.dt,
        ratio=spec.rates.ratio,
        skin=contact.distance,
        alarm=contact.alarm,
        acceleration=contact.max_acceleration,
        tolerance=solver.tolerance,
        sweeps_high=solver.sweeps_high,
        sweeps_low=solver.sweeps_low,
        shifts=interface.shifts,
        max_columns=interface.max_columns,
        max_distance=interface.max_distance,
        max_time=interface.max_time,
        feedback=HOLD_REACTION if spec.tool.feedback == "reaction" else CONSTRAINT_SUM,
        gravity=np.array(spec.gravity, float),
    )


def _friction(spec: SceneSpec, names: list[str]) -> NDArray[np.float64]:
    return np.array([[spec.mu(a, b) for b in names] for a in names])


def build_scene(spec: SceneSpec) -> Scene:
    """The physics of a scene at rest. Raises InputError in one sentence for what only the meshes can tell."""
    parts = _parts(spec)
    names = [part.spec.name for part in parts]
    topology, first = join_shapes([part.shape for part in parts])
    joints = _joints(spec, parts, first, spec.rates.servo_hz)
    n_points = int(first[-1]) + 2 * len(joints.moving)
    rest = np.zeros((n_points, 3))
    for part, start in zip(parts, first[:-1], strict=True):
        rest[start : start + len(part.points)] = part.points
    for (point, _, _), place in zip(joints.moving, joints.world, strict=True):
        rest[point] = place
    if joints.moving:
        # scripted points belong to a static body of no shape
        topology = topology._replace(
            point_body=np.concatenate(
                [topology.point_body, np.full(2 * len(joints.moving), len(parts), np.int32)]
            ),
            body_role=np.append(topology.body_role, np.int32(STATIC)),
            body_radius=np.append(topology.body_radius, 0.0),
        )
        names = [*names, "script"]
    tool_number = names.index(spec.tool.body)
    tool_part = parts[tool_number]
    assert isinstance(tool_part.body, chain_body.ChainBody)
    members: list[Member] = []
    for b, part in enumerate(parts):
        if b == tool_number or part.body is None:
            continue
        kind = {
            tet_body.TetBody: TetMember,
            chain_body.BeamBody: BeamMember,
            chain_body.RigidBody: RigidMember,
        }[type(part.body)]
        members.append(kind(part.body, b, int(first[b])))
    frame, lever = _hold_place(spec, tool_part)
    hold = spec.tool.hold
    state = ChainState(*(a.copy() for a in tool_part.body.state))
    model: ChainModel = tool_part.body.model
    gains = (hold.stiffness, hold.damping, hold.rotational_stiffness, hold.rotational_damping)
    mu = _friction(spec, [part.spec.name for part in parts])
    return Scene(
        names=names,
        topology=topology,
        rest=rest,
        members=members,
        model=model,
        tool=state,
        hold=make_hold(frame, hold.mode == "direct", hold.orientation, gains, lever, state.q[frame]),
        tool_points=_tool_points(tool_part, int(first[tool_number]), n_points),
        moving=_moving_points(joints),
        attachments=joints.arrays(),
        mu=np.pad(mu, (0, 1 if joints.moving else 0)),
        ignored=frozenset(
            (min(names.index(a), names.index(b)), max(names.index(a), names.index(b)))
            for a, b in spec.contact.ignore
        ),
        numbers=_numbers(spec),
        capacity=Capacity(
            slots=512,
            near=96,
            modes=192,
            pairs=4096,
            contacts=spec.contact.max_contacts,
            points=n_points,
            bodies=max(1, len(members)),
        ),
    )
