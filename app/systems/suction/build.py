"""From a suction scene to its step, to what moves its cups, and to the values that may change as it runs."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, cKDTree

from palpo.app.build.parts import chosen_nodes, gains_of, key_of, material_of
from palpo.app.build.shapes import cut_cup, masses_of, placed, soft_mesh, surface_of
from palpo.app.build.volume_mesh import tetrahedra
from palpo.app.systems.suction.pumped import pumped_of, switches_of
from palpo.config.schema import gas as gas_schema
from palpo.config.schema.body import Rigid, Soft, SphereRegion
from palpo.config.schema.gas import ActiveGas, AirtightGas, PassiveGas
from palpo.config.schema.geometry import BellowsCup, CupModel, DrawnCup, RevolvedCup
from palpo.config.schema.material import Elastic
from palpo.config.schema.suction import (
    CableDrive,
    Cup,
    CupFile,
    FigureDrive,
    FreeDrive,
    OctopusArm,
    ScriptedDrive,
    SuctionScene,
)
from palpo.config.schema.tool import HoldSpec
from palpo.haptics.path import waypoints
from palpo.haptics.workspace import quaternion_matrix
from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.contact.problem import Stop
from palpo.physics.exchange.gains import Gains
from palpo.physics.exchange.suction_frame import VALUES
from palpo.physics.fem.material import Material
from palpo.physics.gas.flood import thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.roughness import RoughSurface, SealTable, seal_of
from palpo.physics.gas.wall_regions import WallPart, Walls, permeance_of, walls_of_regions
from palpo.physics.mesh.cups import CUPS, POISSON_RATIO, require_opening
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.octopus_arm import octopus_arm
from palpo.physics.mesh.partners import require_closed
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.mesh.toy import COIL_RADIUS, HEAD_RADIUS
from palpo.physics.numerics.errors import InputError
from palpo.physics.suction.contact_search import Ground
from palpo.physics.suction.cup_spec import CupSpec
from palpo.physics.suction.folds import Folds, find_folds, fold_vertices
from palpo.physics.suction.sides import ContactSide, FixedSide, RigidSide, SoftSide
from palpo.physics.systems.suction.drives import (
    Cables,
    Course,
    CupDrive,
    FigureSpring,
    Lead,
    PathDrive,
    cable_links,
)
from palpo.physics.systems.suction.loop import HandledCup
from palpo.physics.systems.suction.step import Suction

CAPACITY, FURTHER = 640, 160
"""Room for contacts in a step, and for each further cup: of 203 nodes, flattened, one has 78. Where more
nodes of the cups may touch there is room for all; those that find none are counted, and told."""

SERVO_CONTACTS, SERVO_CAVITIES = 24, 4
"""Contacts and cavities of the servo: a sweep over them takes about 10 us."""

SERVO_TOLERANCE, SERVO_SWEEPS = 1e-4, 30
"""The servo starts from its last tick's solution; 30 sweeps take 0.3 ms."""


class CupForm(NamedTuple):
    """A soft body with cups, as a mesh says it."""

    mesh: TetMesh | HexMesh  # where it is placed
    material: Material
    held: NDArray[np.int64]
    touchable: NDArray[np.int64]  # the likeliest last
    seed: int | None
    cables: tuple[NDArray[np.int64], ...]
    shares: tuple[NDArray[np.float64], ...]  # of their pulls, in each segment
    folds: Folds | None  # where its surface may touch itself


class SuctionBuild(NamedTuple):
    """A scene ready to step."""

    suction: Suction
    drives: list[CupDrive]
    hand: HandledCup | None
    gauge: Callable[[float], float] | None
    lead: Lead | None
    soft: list[CupForm]
    rest: NDArray[np.float64]  # (m, 3) the partner's vertices as the scene begins [m]


def air_of(gas: PassiveGas | AirtightGas | ActiveGas) -> OutsideAir:
    """The air of a scene; pumped cavities leak nothing, and hold what the pump gives."""
    if isinstance(gas, AirtightGas):
        return OutsideAir(gas.max_pressure, gas.atmosphere, gas.temperature, gas.leak)
    return OutsideAir(np.inf, gas.atmosphere, gas.temperature)


def build(spec: SuctionScene) -> SuctionBuild:
    """Everything at rest; raises InputError."""
    soft = [cup_form(spec, i) for i in range(len(spec.cups))]
    bodies = [_body(spec, told, form) for told, form in zip(spec.cups, soft, strict=True)]
    capacity = capacity_of(soft)
    partner, rigid = _partner(spec, bodies, capacity)
    limits = thresholds(spec.contact.distance, spec.contact.sealing, spec.contact.alarm)
    origin, turn = partner.axes
    rest = origin + partner.local @ turn.T
    gas, solver = spec.gas, spec.solver
    suction = Suction(
        [
            CupSpec(
                body,
                spec.mu(told),
                spec.roughness(told),
                form.seed if told.seed is None else told.seed,
                walls=walls_on(spec, form.material, rest),
                folds=form.folds,
            )
            for body, told, form in zip(bodies, spec.cups, soft, strict=True)
        ],
        partner,
        limits,
        air_of(gas),
        spec.rates.low_dt,
        ground=_ground(spec, partner),
        gauge=gas.gauge if isinstance(gas, ActiveGas) else None,
        exact=spec.refine,
        stop=Stop(solver.tolerance if solver.stop == "residual" else 0.0, solver.sweeps),
        accelerated=solver.stop == "residual",
        capacity=capacity,
    )
    drives: list[CupDrive] = []
    lead = Lead() if spec.led else None
    suction.pumped = pumped_of(spec)
    if suction.pumped is not None:
        drives.append(switches_of(spec, suction.pumped, lead))
    hand = None
    for i, (told, body, form) in enumerate(zip(spec.cups, bodies, soft, strict=True)):
        if spec.tool is not None and told.name == spec.tool.body:
            hand = HandledCup(suction, i, coupling_gains(spec.tool.hold))
        else:
            drives += _drive(spec, told, body, form, rigid, lead)
    gauge = None
    if isinstance(gas, ActiveGas) and gas.table:
        gauge = _course(gas.table)
    return SuctionBuild(suction, drives, hand, gauge, lead, soft, rest)


def capacity_of(cups: Sequence[CupForm]) -> int:
    """Most contacts in a step: all of the cups' nodes that may touch, a quarter more for the partner's, and
    all that may touch their own cup."""
    own = sum(form.touchable.size for form in cups)
    folded = sum(form.folds.vertices.size for form in cups if form.folds is not None)
    return max(CAPACITY + FURTHER * (len(cups) - 1), own + own // 4) + folded


def walls_on(spec: SuctionScene, material: Material, rest: NDArray[np.float64]) -> Walls | None:
    """What the partner lets by under a cup's rim and through itself; None where nothing is computed.

    rest (m, 3): the partner's vertices as the scene begins [m].
    """
    gas, partner = spec.gas, spec.partner
    if not isinstance(gas, PassiveGas):
        return None
    softness = _softness(material.youngs_modulus, material.poisson_ratio)
    if isinstance(partner, Soft):
        softness += _softness(partner.material.youngs_modulus, partner.material.poisson_ratio)
    own, key = _seal(gas.seal, softness, "gas.seal"), key_of(spec, "bodies", partner.name, "regions")
    regions = []
    for i, told in enumerate(partner.regions):
        seal = None if told.seal is None else _seal(told.seal, softness, f"{key}.{i}.seal")
        through = 0.0
        if told.permeability is not None and told.thickness is not None:
            through = permeance_of(told.permeability, told.thickness)
        place = told.sphere or told.box
        assert place is not None
        if isinstance(place, SphereRegion):
            ball = np.array(place.centre), place.radius
            box = ball[0] - place.radius, ball[0] + place.radius
            region = WallPart(centre=ball[0], radius=place.radius, seal=seal, permeance=through)
        else:
            box = np.array(place[0]), np.array(place[1])
            region = WallPart(*box, seal=seal, permeance=through)
        low, high = rest.min(axis=0), rest.max(axis=0)
        if (box[0] > high).any() or (box[1] < low).any():
            raise InputError(
                f"{key}.{i} lies beside {partner.name}, which is between {np.round(low, 6).tolist()} and "
                f"{np.round(high, 6).tolist()} m as the scene begins."
            )
        regions.append(region)
    return walls_of_regions(rest, own, regions)


def _seal(told: gas_schema.SealSpec, softness: float, key: str) -> SealTable:
    """Of surfaces whose 1 / E* [1/Pa] add up to softness."""
    try:
        return seal_of(RoughSurface(told.rms, told.longest, hurst=told.hurst), 1.0 / softness)
    except InputError as error:
        raise InputError(f"{key}: {error}") from None


def _softness(youngs_modulus: float, poisson_ratio: float) -> float:
    """1 / E* [1/Pa]."""
    return (1.0 - poisson_ratio**2) / youngs_modulus


def coupling_gains(hold: HoldSpec) -> Gains | None:
    """Of the coupling; None where the hand's pose is imposed."""
    return None if hold.mode == "direct" else gains_of(hold)


def cup_form(spec: SuctionScene, i: int) -> CupForm:
    """The i-th cup's mesh where it is placed, and what holds and may touch it; raises InputError."""
    told = spec.cups[i]
    g, free = told.geometry, isinstance(told.drive, FreeDrive)
    mesh: TetMesh | HexMesh
    cables: tuple[NDArray[np.int64], ...] = ()
    shares: tuple[NDArray[np.float64], ...] = ()
    if isinstance(g, OctopusArm):
        arm = octopus_arm()
        mesh, held, seed, cables, shares = arm.mesh, arm.base, arm.seed, arm.cables, arm.shares
        wall = np.flatnonzero(mesh.nodes[:, 1] <= 1e-9)
        given = Elastic.model_validate({"name": "silicone", "youngs_modulus": 150e3})
    elif isinstance(g, CupFile):
        mesh = tetrahedra(g)
        require_opening(mesh.surface(told.name).compact(), spec.contact.sealing, g.path)
        key = key_of(spec, "bodies", told.name, "geometry", "held")
        nodes = placed(mesh.nodes, told.placement)
        held = chosen_nodes(key, told.name, g.held, nodes, "holds").astype(np.int64)
        height = mesh.nodes[:, 1]
        wall, seed, given = np.flatnonzero(height < height.mean()), None, None
    else:
        made = cut_cup(told)
        mesh, held, seed = made.mesh, made.held, made.seed
        wall = np.union1d(made.underside, made.rim)
        if free:
            # a dart's rod is rigid, another free cup is soft throughout
            held = made.stem if isinstance(g, CupModel) and g.model == "dart" else held[:0]
        given = _own_material(g)
    material = told.material or given
    assert material is not None
    mass = told.mass
    if mass is None and told.material is None and isinstance(g, CupModel):
        mass = CUPS[g.model].mass
    nodes = placed(mesh.nodes, told.placement)
    volume = 1.0 if mass is None else mesh.with_nodes(nodes).volume
    whole = mesh.surface(told.name)
    surface = whole.used_vertices
    folds = None
    if isinstance(g, DrawnCup | BellowsCup | CupFile):
        skin = whole.compact()
        folds = find_folds(skin)
        if folds is not None:
            wall = np.union1d(wall, surface[fold_vertices(folds, skin.triangles)])
    wall = wall[np.isin(wall, surface)]
    return CupForm(
        mesh.with_nodes(nodes),
        material_of(material, mass, volume),
        held,
        wall[np.argsort(-mesh.nodes[wall, 1], kind="stable")],
        seed,
        cables,
        shares,
        folds,
    )


def _own_material(g: CupModel | RevolvedCup | DrawnCup | BellowsCup) -> Elastic | None:
    """Silicone of the model's modulus."""
    if not isinstance(g, CupModel):
        return None
    given = {"youngs_modulus": CUPS[g.model].youngs_modulus, "poisson_ratio": POISSON_RATIO}
    return Elastic.model_validate({"name": "silicone"} | given)


def _body(spec: SuctionScene, told: Cup, form: CupForm) -> HeldBody:
    mass, inertia, drive = 0.0, None, told.drive
    if isinstance(drive, FigureDrive):
        mass, inertia = drive.mass, 0.4 * drive.mass * HEAD_RADIUS**2 * np.eye(3)
    body = HeldBody(
        told.name, form.mesh, form.material, form.held, form.touchable, spec.gravity, mass, inertia,
        links=cable_links(form.cables),
    )  # fmt: skip
    if isinstance(drive, FreeDrive):
        velocity = np.array(drive.velocity)
        body.v = np.tile(velocity, body.free.size)
        if body.handle is not None:
            body.handle.release()
            body.handle.velocity = np.append(velocity, np.zeros(3))
    return body


def _drive(
    spec: SuctionScene, told: Cup, body: HeldBody, form: CupForm, partner: RigidBody | None,
    lead: Lead | None,
) -> list[CupDrive]:  # fmt: skip
    match spec.drive_of(told):
        case ScriptedDrive() as drive:
            return [PathDrive(body, _path(spec, drive), lead if drive.led else None)]
        case FigureDrive() as drive:
            push = _course(drive.push)
            return [FigureSpring(body, partner, drive.stiffness, drive.damping, COIL_RADIUS, push)]
        case CableDrive() as drive:
            curl = _course(drive.curl)
            return [Cables(body, form.cables, (curl, curl, _course(drive.uncurl)), form.shares)]
        case _:
            return []


def _path(spec: SuctionScene, drive: ScriptedDrive) -> Callable[[float], NDArray[np.float64]]:
    rate = spec.rates.servo_hz
    path = waypoints(drive.path, "smooth" if drive.smooth else "linear", None, rate)

    def at(time: float) -> NDArray[np.float64]:
        tick = round(time * rate)
        return path.rows(tick, tick + 1)[0][0]

    return at


def _course(rows: Sequence[tuple[float, float]]) -> Course:
    """Straight ramps between rows [t, value]; 0 without any."""
    times, values = np.array(rows or ((0.0, 0.0),)).T
    return lambda time: float(np.interp(time, times, values))


def _partner(spec: SuctionScene, cups: list[HeldBody], capacity: int) -> tuple[ContactSide, RigidBody | None]:
    """The other side, and the rigid body in it."""
    told = spec.partner
    if isinstance(told, Soft):
        return SoftSide(_soft_partner(spec, told, cups), capacity), None
    surface = surface_of(told.geometry)
    if told.geometry.kind == "file":
        require_closed(surface, told.geometry.path)
    surface = surface.with_vertices(told.placement.scale * surface.vertices)
    rotation = quaternion_matrix(told.placement.quaternion)
    if not isinstance(told, Rigid):
        vertices = surface.vertices @ rotation.T + np.array(told.placement.position)
        return FixedSide(surface.with_vertices(vertices)), None
    surface.require_volume(key_of(spec, "bodies", told.name, "geometry"))
    masses = masses_of(told, surface)
    body = RigidBody(
        told.name,
        masses.mass,
        masses.inertia,
        np.array(told.placement.position) + rotation @ masses.centre,
        told.placement.quaternion,
        spec.gravity,
    )
    return RigidSide(body, surface.with_vertices(surface.vertices - masses.centre), capacity), body


def _soft_partner(spec: SuctionScene, told: Soft, cups: list[HeldBody]) -> HeldBody:
    mesh = soft_mesh(told)
    assert isinstance(mesh, TetMesh | HexMesh)
    fixed = chosen_nodes(key_of(spec, "bodies", told.name, "fixed"), told.name, told.fixed, mesh.nodes)
    surface = mesh.surface(told.name).used_vertices
    distance = cKDTree(np.vstack([body.x for body in cups])).query(mesh.nodes[surface])[0]
    if told.ground is not None:
        distance = np.minimum(distance, mesh.nodes[surface, 1] - told.ground)
    return HeldBody(
        told.name,
        mesh,
        material_of(told.material, told.mass, mesh.volume),
        fixed,
        surface[np.argsort(-distance, kind="stable")],
        spec.gravity,
    )


def _ground(spec: SuctionScene, partner: ContactSide) -> Ground | None:
    """The ground under a partner that moves; a rigid one touches it with the corners of its hull."""
    height = getattr(spec.partner, "ground", None)
    if height is None:
        return None
    if isinstance(partner, RigidSide):
        vertices = np.sort(ConvexHull(partner.local).vertices)
    else:
        low = partner.local[:, 1] < partner.local[:, 1].min() + spec.contact.alarm
        vertices = np.flatnonzero(low)
    return Ground(height, spec.friction.default, vertices.astype(np.int64))


def settings_of(spec: SuctionScene) -> NDArray[np.void]:
    """VALUES of palpo.physics.exchange.suction_frame for the servo, shape (1,)."""
    values, air = np.zeros(1, VALUES), air_of(spec.gas)
    values["step"], values["rt"] = spec.rates.low_dt, air.rt
    values["atmosphere"], values["largest"] = air.atmosphere, air.largest
    values["tolerance"] = max(SERVO_TOLERANCE, spec.solver.tolerance)
    values["sweeps"] = min(SERVO_SWEEPS, spec.solver.sweeps)
    return values
