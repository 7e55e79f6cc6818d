"""From a validated scene specification to the physics that the loops run."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.app.build.parts import NO_EDGES, BodyPart, blade_points, gains_of, key_of, make_part
from palpo.app.build.quasistatic import quasistatic_body
from palpo.app.build.soft_parts import incised, pierced, soft_part
from palpo.app.systems.multirate.falling import falling
from palpo.app.systems.multirate.joints import make_joints, moving_points
from palpo.config.schema.body import Quasistatic, Soft
from palpo.config.schema.scene import Body, SceneSpec
from palpo.config.schema.tool import HoldSpec, Tool
from palpo.haptics.limits import buttons_mask
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.bodies import chain_body
from palpo.physics.bodies.chain_models import ChainModel, ChainState
from palpo.physics.bodies.cut_body import CutBody
from palpo.physics.bodies.low_body import LowBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.surface_feel import BALL, BOX, EVERYWHERE, SlidingSurfaces, make_surfaces
from palpo.physics.collision.topology import STATIC, TOOL, CollisionShape, join_shapes
from palpo.physics.compliance.hold import Hold, make_hold
from palpo.physics.engine.grip import CONSTRAINT_SUM, HOLD_REACTION
from palpo.physics.exchange.constraint_frame import Capacity
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.reduction.soft_reduction import MOST
from palpo.physics.systems.multirate.blade_paths import Blade, BladePath, axes_of
from palpo.physics.systems.multirate.member import Member
from palpo.physics.systems.multirate.member_cavities import MemberCavities
from palpo.physics.systems.multirate.needle_paths import Needle, NeedlePath
from palpo.physics.systems.multirate.quasistatic_tool import QuasistaticTool
from palpo.physics.systems.multirate.scene import FurtherTool, Numbers, Scene, ToolPoints

MODES = 384
"""Most modes of all bodies of a slow loop: what a tick and the memory can bear."""


def _modes(spec: SceneSpec, members: Sequence[Member]) -> int:
    """Room for the modes of these bodies: of each soft one for columns of all points that bear."""
    soft = sum(not isinstance(member.body, chain_body.ChainBody) for member in members)
    return min(MODES, max(192, soft * (MOST * spec.interface.max_columns + 32)))


def _tool_points(parts: Sequence[BodyPart], first: Sequence[int], n_points: int) -> ToolPoints:
    """Of the tools' parts, whose first points are given."""
    frame, lever, frames = np.full(n_points, -1, np.int32), np.zeros((n_points, 3)), 0
    for part, start in zip(parts, first, strict=True):
        own = slice(start, start + len(part.points))
        if isinstance(part.body, QuasistaticTool):
            frame[own] = frames + np.arange(part.n_points)
            frames += part.body.frame + 1
        elif isinstance(part.body, chain_body.RigidBody):
            frame[own] = frames
            assert part.body.vertices is not None
            lever[start : start + part.n_points] = part.body.vertices
            frames += 1
        else:
            frame[own] = frames + np.tile(np.arange(part.n_points), 2)
            frames += part.n_points
    return ToolPoints(np.array([first[0], first[0] + len(parts[0].points)], np.int64), frame, lever)


def _hold_place(hold: HoldSpec, part: BodyPart) -> tuple[int, NDArray[np.float64]]:
    """Frame of a tool that the hand holds, and the held point off its origin."""
    body = part.body
    if isinstance(body, QuasistaticTool):
        return body.frame, np.zeros(3)
    if isinstance(body, chain_body.RigidBody):
        if hold.at is None:
            return 0, np.zeros(3)
        rotation = quaternion_matrix(body.q[0])
        return 0, (np.array(hold.at) - body.x[0]) @ rotation
    n = part.n_points
    if hold.node is not None:
        return hold.node, np.zeros(3)
    if hold.end is not None:
        return (0 if hold.end == "first" else n - 1), np.zeros(3)
    return int(np.argmin(((part.points[:n] - np.array(hold.at)) ** 2).sum(axis=1))), np.zeros(3)


def _hold(hold: HoldSpec, part: BodyPart, state: ChainState) -> Hold:
    """A hand's hold of a tool in that state."""
    frame, lever = _hold_place(hold, part)
    return make_hold(frame, hold.mode == "direct", hold.orientation, gains_of(hold), lever, state.q[frame])


def _further(
    spec: SceneSpec, parts: Sequence[BodyPart], names: list[str], first: NDArray
) -> list[FurtherTool]:
    """The tools beside the first, in the order of the scene."""
    found, frames = [], len(parts[names.index(spec.tool.body)].body.state.x)  # type: ignore[union-attr]
    for tool in spec.tools:
        number = names.index(tool.body)
        part = parts[number]
        assert isinstance(part.body, chain_body.ChainBody | QuasistaticTool)
        state, start = ChainState(*(a.copy() for a in part.body.state)), int(first[number])
        found.append(
            FurtherTool(
                number, part.body.model, state, _hold(tool.hold, part, state),
                (start, start + len(part.points)), frames, _feedback(tool),
            )
        )  # fmt: skip
        frames += len(state.x)
    return found


def _feedback(tool: Tool) -> int:
    return HOLD_REACTION if tool.feedback == "reaction" else CONSTRAINT_SUM


def _numbers(spec: SceneSpec) -> Numbers:
    contact, interface, solver = spec.contact, spec.interface, spec.solver
    return Numbers(
        dt=spec.rates.dt,
        ratio=spec.rates.ratio,
        skin=contact.distance,
        alarm=contact.alarm,
        acceleration=contact.max_acceleration,
        solver=solver.name,
        tolerance=solver.tolerance,
        sweeps_high=solver.sweeps_high,
        sweeps_low=solver.sweeps_low,
        shifts=interface.shifts,
        max_columns=interface.max_columns,
        max_distance=interface.max_distance,
        max_time=interface.max_time,
        feedback=_feedback(spec.tool),
        gravity=np.array(spec.gravity, float),
    )


def _friction(spec: SceneSpec, scripted: bool) -> NDArray[np.float64]:
    """Coefficients of all pairs of bodies; `scripted` adds the body of scripted points, without friction."""
    names = [body.name for body in spec.bodies]
    return np.pad(np.array([[spec.mu(a, b) for b in names] for a in names]), (0, int(scripted)))


def _surfaces(spec: SceneSpec) -> SlidingSurfaces:
    """How bodies feel to what slides on them."""
    names, found = [body.name for body in spec.bodies], make_surfaces(len(spec.surfaces))
    for s, surface in enumerate(spec.surfaces):
        found.body[s], found.where[s] = names.index(surface.body), EVERYWHERE
        if surface.box is not None:
            found.where[s] = BOX
            found.lower[s], found.upper[s] = surface.box
        if surface.sphere is not None:
            found.where[s] = BALL
            found.lower[s], found.upper[s] = surface.sphere.centre, surface.sphere.radius
        found.wave[s] = 2.0 * np.pi / surface.pitch * np.array(surface.along)
        found.texture[s], found.viscosity[s] = surface.texture, surface.viscosity
    return found


def change_scene(scene: Scene, spec: SceneSpec) -> None:
    """Bring what may change while a scene runs to the values of `spec`, which is the same scene otherwise."""
    scene.numbers = _numbers(spec)
    scene.mu = _friction(spec, len(scene.mu) > len(spec.bodies))
    scene.hold.gains[0] = tuple(gains_of(spec.tool.hold))


def _quasistatic_part(spec: SceneSpec, body: Quasistatic) -> BodyPart:
    """A tool without inertia, of which the boundary's nodes are points."""
    solid = quasistatic_body(body, key_of(spec, "bodies", body.name, "clamped"), spec.gravity)
    triangles, n = solid.slot[solid.surface.triangles].astype(np.int32), len(solid.surface_nodes)
    tool = QuasistaticTool(solid)
    return BodyPart(body, CollisionShape(n, triangles, NO_EDGES, 0.0, TOOL), tool.state.x[:n].copy(), n, tool)


def _part(spec: SceneSpec, body: Body) -> BodyPart:
    if isinstance(body, Quasistatic):
        return _quasistatic_part(spec, body)
    return soft_part(spec, body) if isinstance(body, Soft) else make_part(spec, body)


def build_scene(spec: SceneSpec) -> Scene:
    """The physics of a scene at rest. Raises InputError in one sentence for what only the meshes can tell."""
    parts = [_part(spec, body) for body in spec.bodies]
    names = [part.spec.name for part in parts]
    topology, first = join_shapes([part.shape for part in parts])
    joints = make_joints(spec, parts, first, spec.rates.servo_hz)
    n_points = int(first[-1]) + 2 * len(joints.moving)
    rest = np.zeros((n_points, 3))
    for part, start in zip(parts, first[:-1], strict=True):
        rest[start : start + len(part.points)] = part.points
    for point, _, place, _ in joints.moving:
        rest[point] = place
    if joints.moving:
        # scripted points belong to a static body of no shape
        topology = topology._replace(
            point_body=np.concatenate(
                [topology.point_body, np.full(2 * len(joints.moving), len(parts), np.int32)]
            ),
            body_role=np.append(topology.body_role, np.int32(STATIC)),
            body_radius=np.append(topology.body_radius, 0.0),
            body_facet=np.append(topology.body_facet, np.inf),
        )
        names = [*names, "script"]
    tool_number = names.index(spec.tool.body)
    tool_part = parts[tool_number]
    assert isinstance(tool_part.body, chain_body.ChainBody | QuasistaticTool)
    members: list[Member] = []
    for b, part in enumerate(parts):
        if b == tool_number or part.body is None or part.spec.name in {tool.body for tool in spec.tools}:
            continue
        assert isinstance(part.body, LowBody)
        members.append(Member(part.body, b, int(first[b])))
    further = _further(spec, parts, names, first)
    tools = [tool_number, *(tool.number for tool in further)]
    state = ChainState(*(a.copy() for a in tool_part.body.state))
    model: ChainModel = tool_part.body.model
    moving, script = moving_points(joints)
    return Scene(
        names=names,
        topology=topology,
        rest=rest,
        members=members,
        model=model,
        tool=state,
        hold=_hold(spec.tool.hold, tool_part, state),
        tool_points=_tool_points([parts[b] for b in tools], [int(first[b]) for b in tools], n_points),
        further=further,
        moving=moving,
        script=script,
        quasistatic={b: part.body for b, part in enumerate(parts) if isinstance(part.body, QuasistaticTool)},
        attachments=joints.arrays(),
        mu=_friction(spec, bool(joints.moving)),
        ignored=frozenset(
            (min(names.index(a), names.index(b)), max(names.index(a), names.index(b)))
            for a, b in spec.contact.ignore
        ),
        numbers=_numbers(spec),
        capacity=Capacity(
            slots=512,
            near=96,
            modes=_modes(spec, members),
            pairs=8192,
            contacts=spec.contact.max_contacts,
            points=n_points,
            bodies=max(1, len(members)),
            all_bodies=len(names),
        ),
        ratios=[
            spec.rates.ratio_of(getattr(spec.bodies[member.number], "rate_hz", None)) for member in members
        ],
        surfaces=_surfaces(spec),
        needles=_needles(spec, parts, first, members),
        blades=_blades(spec, parts, first, members),
        air=_air(spec, names, members),
        falling=falling(spec, parts),
    )


def _needles(
    spec: SceneSpec, parts: Sequence[BodyPart], first: NDArray, members: Sequence[Member]
) -> list[NeedlePath]:
    """The needles that may go into bodies."""
    names, found = [part.spec.name for part in parts], []
    for k, needle in enumerate(spec.needles):
        number, tissue = names.index(needle.body), names.index(needle.tissue)
        points = first[number] + np.arange(parts[number].n_points, dtype=np.int32)
        if isinstance(parts[number].body, chain_body.RigidBody):
            points = points[:2]
        frames = parts[number].body.state.q  # type: ignore[union-attr]
        rotation = quaternion_matrix(frames[0 if needle.tip == "first" else -1])
        needle_points = points if needle.tip == "first" else points[::-1].copy()
        tip, behind = (parts[number].points[p - first[number]] for p in needle_points[:2])
        ahead = (tip - behind) / np.linalg.norm(tip - behind)
        member = next(member for member in members if member.number == tissue)
        solid = member.body
        assert isinstance(solid, SoftBody)
        spec_of = Needle(
            needle_points.astype(np.int32), member, float(parts[number].shape.radius), needle.puncture,
            *pierced(spec, needle, solid.mesh), 0.5 * needle.bevel,
            np.array([ahead, needle.bevel_towards]) @ rotation, needle.spacing,
        )  # fmt: skip
        found.append(NeedlePath(k, spec_of))
    return found


def _blades(
    spec: SceneSpec, parts: Sequence[BodyPart], first: NDArray, members: Sequence[Member]
) -> list[BladePath]:
    """The blades that may cut bodies."""
    names, found = [part.spec.name for part in parts], []
    for k, blade in enumerate(spec.blades):
        number, tissue = names.index(blade.body), names.index(blade.tissue)
        part, member = parts[number], next(member for member in members if member.number == tissue)
        own = blade_points(blade)
        at = int(np.linalg.norm(part.points[: part.n_points] - own[0], axis=1).argmin())
        columns, rows = blade.grid
        along, back = np.meshgrid(np.linspace(0.0, 1.0, columns), np.linspace(0.0, 1.0, rows + 1))
        weights = np.column_stack([(1.0 - along - back).ravel(), along.ravel(), back.ravel()])
        length = float(np.linalg.norm(own[1] - own[0]))
        rotation = quaternion_matrix(part.body.state.q[0])  # type: ignore[union-attr]
        solid, body = member.body, spec.body(blade.tissue)
        assert isinstance(solid, CutBody) and isinstance(body, Soft)
        told = Blade(
            first[number] + np.arange(at, at + 3, dtype=np.int32), weights, columns,
            np.array(axes_of(weights @ own, columns)) @ rotation, member, length / (columns - 1),
            blade.toughness, blade.puncture, blade.spacing,
        )  # fmt: skip
        first_inner = len(solid.surface.corners)
        found.append(BladePath(k, told, first_inner, incised(spec, body, solid.cut.mesh)[1]))
    return found


def _air(spec: SceneSpec, names: list[str], members: list[Member]) -> MemberCavities | None:
    told = spec.air
    if told is None:
        return None
    walls = [m for name in (told.cup, told.partner) for m in members if names[m.number] == name]
    cup, partner = walls
    return MemberCavities(
        cup, partner, thresholds(spec.contact.distance, told.sealing, told.alarm), told.roughness,
        OutsideAir(told.max_pressure, told.atmosphere, told.temperature), told.most,
        buttons_mask([told.valve_button] if told.valve_button else []),
        np.rint(np.array(told.valve_open) * spec.rates.servo_hz).astype(np.int64),
    )  # fmt: skip
