"""Putting a scene's high-rate state together: its bodies, joints and contact search, in an engine.

The engine's bodies are a list: the tools, what else moves at the servo's rate (`Scene.servo_bodies`), one for
each low loop, and the world, which has every point that none of these moves.
"""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain_models import ChainState
from palpo.physics.compliance.chain import CHAIN, Chain, make_chain
from palpo.physics.compliance.hold import Hold, held_point
from palpo.physics.compliance.modal import MODAL
from palpo.physics.compliance.modal_state import Modal, make_modal
from palpo.physics.compliance.scripted import SCRIPTED, make_scripted
from palpo.physics.contract.stages import Batch, Body, Hand, make_batch, make_hand, make_problem
from palpo.physics.engine.build import Bound, Built, make_engine
from palpo.physics.engine.cavities import Cavities, make_cavities
from palpo.physics.engine.grip import Grip, make_grip
from palpo.physics.engine.joints import SLIDE, Joint
from palpo.physics.engine.pairs import (
    MARGIN,
    PairSearch,
    QueriedBodies,
    look_batch,
    make_pair_search,
    pair_detector,
)
from palpo.physics.engine.servo import make_ticks
from palpo.physics.engine.sweeping import gauss_seidel_unit
from palpo.physics.exchange.buffer import make_control
from palpo.physics.exchange.constraint_frame import PATH_POINTS, PATHS, make_frame
from palpo.physics.exchange.force_log import make_force_log
from palpo.physics.exchange.frames import make_frames
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.model_log import make_model_log
from palpo.physics.exchange.port import Port, make_port
from palpo.physics.exchange.tool_state import ToolState, make_incised, make_inserted, make_tool_state
from palpo.physics.systems.multirate.blade_paths import BladePath
from palpo.physics.systems.multirate.high_state import Held, HighRate, Link
from palpo.physics.systems.multirate.member import Member
from palpo.physics.systems.multirate.needle_paths import NeedlePath, line_yields, tip_yields
from palpo.physics.systems.multirate.quasistatic_tool import held_surface
from palpo.physics.systems.multirate.scene import Loop, Numbers, Scene

AT_ONCE = 32
"""Up to so many contacts all are solved for, the open ones too; more have a working set."""

AT_ONCE_ON_AIR = 16
"""The same where air holds bodies together: around a rim that bears there are many that do not, and Newton's
method wants few."""

TOOL = 0
"""The first tool's number among the engine's bodies."""

LOG_TICKS = 2048
"""Ticks of the history of forces and of the models' states: two seconds, far more than a low loop may lag
before the watchdog fades. So what a loop reads is never overwritten, and a recorded run reads the same."""

LOG_POINTS = 256
"""Low-rate points under load in one tick."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A body of the engine, and what of the scene it is."""

    body: Body
    numbers: tuple[int, ...]
    """Bodies of the scene's topology."""
    first: int = 0
    """Global number of its first point."""
    looks: int = 0
    """Most of its points that a search places at once; 0 where they never move."""
    hand: Hand | None = None
    chain: Chain | None = None
    """Of a tool: its frames, its hold and its gravity."""


@dataclass(frozen=True, eq=False)
class ServoSide:
    """A scene's side of the servo: what each low loop exchanges with it, and all that has addresses."""

    high: HighRate
    grips: tuple[Grip, ...]
    held: tuple[Held, ...]
    links: tuple[Link, ...]
    searches: tuple[PairSearch, ...]
    placed: tuple[Placed, ...]
    built: Built
    kept: tuple[Handle, ...]


def make_side(
    scene: Scene,
    loops: Sequence[Loop] | None = None,
    log_ticks: int = LOG_TICKS,
    log_points: int = LOG_POINTS,
) -> ServoSide:
    """A scene at tick 0, with the tool where it is and nothing to touch yet; with all its buffers.

    loops: the low loops; one alone if not given.
    """
    numbers, contacts = scene.numbers, scene.capacity.contacts
    loops = scene.loops(apart=False) if loops is None else loops
    cavities = _cavities(scene)
    k = 0 if cavities is None else len(cavities[0].amount)
    room = contacts + 2 * len(scene.attachments.kind) + 2 * k
    port = make_port()
    tools = _tools(scene, room, port)
    frames = make_frames(*(loop.ratio for loop in loops))
    modals = [
        make_modal(
            loop.capacity, make_frame(loop.capacity), control, make_force_log(log_ticks, log_points), 2 * room
        )
        for loop, control in zip(loops, frames.control, strict=True)
    ]
    behind = [_behind(scene, loop, modal, len(loops)) for loop, modal in zip(loops, modals, strict=True)]
    placed = [
        *tools,
        *(Placed(b.kind.bind(b.make(room)), b.numbers, b.first, b.looks) for b in scene.servo_bodies),
        *behind,
    ]
    placed.append(_world(scene, placed))
    owners = _owners(scene, placed)
    detectors, looks = _searches(scene, placed, owners, modals)
    searches = tuple(detector.handle.state for detector in detectors)
    incised, edges = make_incised(), []
    for blade in scene.blades:
        (sides, edge), looked = _incision(blade, placed, owners[0], modals, searches, loops, incised)
        detectors.append(sides)
        edges.append(edge)
        looks += looked
    inserted, path_points = make_inserted(), np.zeros((PATHS, PATH_POINTS, 3))
    for path in scene.needles:
        bound, looked = _insertion(
            path, placed, owners[0], modals, searches, loops, inserted, path_points, numbers.skin
        )
        detectors.append(bound)
        looks += looked
    detectors += edges  # shafts and edges come after all other contacts
    if cavities is not None:
        detectors.append(_cavity_detector(scene, placed, owners[0], modals[0], cavities[0], port))
    built = make_engine(
        [p.body for p in placed], [_solver(numbers)], contacts, numbers.dt, detectors,
        _joints(scene, placed, owners[1]), {b: p.hand for b, p in enumerate(placed) if p.hand}, watched=[],
        cavities=cavities,
    )  # fmt: skip
    engine = built.engine
    for search in searches:
        search.asked.rows[:] = engine.bodies.batch
    settings = engine.solver.settings
    settings["tolerance"], settings["sweeps"] = numbers.tolerance, numbers.sweeps_high
    settings["at_once"] = AT_ONCE if cavities is None else AT_ONCE_ON_AIR
    links = [
        _link(scene, loop, modal, placed.index(body), built, loops)
        for loop, modal, body in zip(loops, modals, behind, strict=True)
    ]
    held = [_held(scene, t, tool, built.batches[t], port) for t, tool in enumerate(tools)]
    handles, hands = [Handle(link) for link in links], [Handle(one) for one in held]
    high = HighRate(
        port=port,
        ticks=make_ticks(),
        frames=frames,
        held=held[TOOL],
        helds=np.array([hand.address for hand in hands], np.int64),
        engine=engine,
        search=searches[0],
        searches=engine.detector_state[: len(searches)].copy(),
        link=links[0],
        links=np.array([handle.address for handle in handles], np.int64),
        mu=searches[0].mu,
        incised=incised,
        inserted=inserted,
        path=path_points,
        shown=_tool_state(scene, loops, modes=scene.capacity.modes),
        shown_control=make_control(),
    )
    grips = [_grip(scene, t, one) for t, one in enumerate(held)]
    side = ServoSide(
        high, tuple(grips), tuple(held), tuple(links), searches, tuple(placed), built,
        (*hands, *handles, *looks),
    )  # fmt: skip
    # the tables hold addresses: what they point to lives as long as the engine's step, which is none of it
    weakref.finalize(engine.step, _forget, (side.placed, side.built.kept, side.kept, detectors))
    return side


def _forget(_kept: Any) -> None:
    """What was kept alive may go."""


def _tool_state(scene: Scene, loops: Sequence[Loop], modes: int, moving: bool = False) -> ToolState:
    """Of the tool, and of the reduced bodies with so many modes a loop."""
    bodies = max(loop.capacity.bodies for loop in loops) if modes else 0
    frames = len(scene.tool_frames().x)
    return make_tool_state(frames, scene.capacity.contacts, modes, bodies, len(loops), moving)


def _link(scene: Scene, loop: Loop, modal: Modal, body: int, built: Built, loops: Sequence[Loop]) -> Link:
    """What a low loop exchanges with the servo; its own bodies are no news to it, others' are."""
    modes = scene.capacity.modes if len(loops) > 1 else 0
    models = make_model_log(LOG_TICKS, loop.capacity)
    state = _tool_state(scene, loops, modes, moving=True)
    return Link(
        modal.frame, modal.control, modal.log, models, state, make_control(),
        np.array([body], np.int64), built.batches[body], modal.now,
    )  # fmt: skip


def _tools(scene: Scene, room: int, port: Port) -> list[Placed]:
    """The tools, each held by a hand of its own; the port stands where the first one is held."""
    points, first = scene.tool_points, scene.tool_points.span
    number = int(scene.topology.point_body[first[0]])
    given = [(number, scene.model, scene.tool, scene.hold, 0), *(
        (tool.number, tool.model, tool.state, tool.hold, tool.frame) for tool in scene.further
    )]  # fmt: skip
    placed: list[Placed] = []
    for (number, model, state, held, frame), (start, stop) in zip(given, scene.tool_spans(), strict=True):
        state = ChainState(*(a.copy() for a in state))
        hold = Hold._make(a.copy() for a in held)
        target = port.position if not placed else np.zeros(3)
        held_point(hold, state, target)
        hold.target[:], hold.target_q[:] = target, hold.rest
        model = model._replace(gravity=model.gravity.copy())
        if number in scene.quasistatic:
            from palpo.physics.compliance.surface import SURFACE  # compiled for scenes that have some

            surface, chain = held_surface(scene.quasistatic[number], model.gravity, state, hold, room)
            body = SURFACE.bind(surface)
        else:
            chain = make_chain(
                model, state, points.frame[start:stop] - frame, points.lever[start:stop], room, hold
            )  # fmt: skip
            body = CHAIN.bind(chain)
        placed.append(Placed(body, (number,), start, stop - start, make_hand(), chain))
    return placed


def _held(scene: Scene, t: int, tool: Placed, batch: Batch, port: Port) -> Held:
    """Tool t and its hand; each has a port, and only the first one's tells the tick's status."""
    chain, own = tool.chain, port
    assert chain is not None
    if t > 0:
        own = make_port()._replace(status=port.status)
        own.position[:] = chain.hold.target
    frame = 0 if t == 0 else scene.further[t - 1].frame
    assert tool.hand is not None
    return Held(
        own, tool.hand, chain.hold, chain.now, batch, chain, np.array([frame], np.int64),
    )  # fmt: skip


def _grip(scene: Scene, t: int, held: Held) -> Grip:
    """How the hand holds tool t, whose hold knows how it is turned at rest."""
    feedback = scene.numbers.feedback if t == 0 else scene.further[t - 1].feedback
    return make_grip(held.port, held.hand, held.points, feedback=feedback)


def _behind(scene: Scene, loop: Loop, modal: Modal, loops: int) -> Placed:
    """The body of the engine that stands for those of a low loop."""
    points = sum(member.count for member in loop.members)
    # the pairs of another loop may name points that this one's frame lacks
    return Placed(MODAL.bind(modal), loop.numbers, 0, loop.capacity.slots if loops == 1 else points)


def _world(scene: Scene, others: Sequence[Placed]) -> Placed:
    """Every point that no other body of the engine has; some follow a script."""
    x = np.zeros((scene.capacity.points, 3))
    x[: len(scene.rest)] = scene.rest
    moving = scene.moving
    taken = {number for other in others for number in other.numbers}
    numbers = tuple(b for b in range(len(scene.topology.body_role)) if b not in taken)
    return Placed(
        SCRIPTED.bind(make_scripted(x, moving.point, moving.x, moving.q, moving.known)), numbers
    )  # fmt: skip


def _owners(scene: Scene, placed: Sequence[Placed]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Body of the engine of each body of the topology, and of each point."""
    world = len(placed) - 1
    of_body = np.full(len(scene.topology.body_role), world, np.int32)
    for b, one in enumerate(placed):
        of_body[list(one.numbers)] = b
    of_point = np.full(scene.capacity.points, world, np.int32)
    of_point[: len(scene.topology.point_body)] = of_body[scene.topology.point_body]
    return of_body, of_point


def _searches(
    scene: Scene,
    placed: Sequence[Placed],
    owners: tuple[NDArray[np.int32], NDArray[np.int32]],
    modals: Sequence[Modal],
) -> tuple[list[Bound], list[Handle]]:
    """For each low loop the search among the pairs that its frames name, and what that keeps alive."""
    numbers, capacity, (of_body, of_point) = scene.numbers, scene.capacity, owners
    mu, n = scene.mu.copy(), len(placed)
    # around a cavity contacts that do not bear count, too: they tell whether its border is close
    least = 0.0 if scene.air is None else scene.air.limits.sealing - scene.air.limits.contact
    detectors, kept = [], []
    for modal in modals:
        looks = [Handle(look_batch(one.looks)) if one.looks else None for one in placed]
        asked = QueriedBodies(
            np.array([one.body.kind.unit.address for one in placed], np.int64),
            np.array([one.body.handle.address for one in placed], np.int64), np.zeros(n, np.int64),
            np.array([look.address if look else 0 for look in looks], np.int64),
            np.array([one.first for one in placed], np.int32), make_batch(1), make_problem(1),
        )  # fmt: skip
        search = make_pair_search(
            scene.topology, scene.rest, mu, modal.frame, modal.control, capacity, numbers.skin,
            (least, numbers.reach), asked, of_point, of_body, partial=len(modals) > 1,
        )._replace(surfaces=scene.surfaces)  # fmt: skip
        detectors.append(Bound.bind(pair_detector, search))
        kept += [look for look in looks if look]
    return detectors, kept


def _insertion(
    path: NeedlePath,
    placed: Sequence[Placed],
    of_body: NDArray[np.int32],
    modals: Sequence[Modal],
    searches: Sequence[PairSearch],
    loops: Sequence[Loop],
    inserted: NDArray[Any],
    points: NDArray[np.float64],
    skin: float,
) -> tuple[Bound, list[Handle]]:
    """What finds a needle's points in tissue, and what that keeps alive."""
    from palpo.physics.engine.insertion import TISSUE, insertion_detector, make_inserted_needle

    spec, room = path.spec, len(path.body.inner)
    loop, bodies, asked, looks = _met(
        int(spec.points[0]), spec.member, max(room, len(spec.points)), placed, of_body, loops
    )
    across, along = line_yields(path.body.material)
    tip = tip_yields(path.body.material, spec.radius)
    tissue, clear = np.zeros(1, TISSUE), spec.radius + skin + MARGIN
    tissue[0] = spec.puncture, spec.spacing, across, along, tip, clear, spec.turn
    first = spec.member.first + path.body.first_inner - asked.first[1]
    state = make_inserted_needle(
        modals[loop].frame, modals[loop].control, asked, bodies, first, path.number,
        (spec.points - asked.first[0]).astype(np.int32), spec.point, tissue, inserted, searches[loop].apart,
        points[path.number],
    )  # fmt: skip
    return Bound.bind(insertion_detector, state), looks


def _met(
    point: int, member: Member, room: int, placed: Sequence[Placed], of_body: NDArray[np.int32],
    loops: Sequence[Loop],
) -> tuple[int, tuple[int, int], QueriedBodies, list[Handle]]:  # fmt: skip
    """Of the tool that has a point, and the body that it goes into: whose loop this is, their numbers in the
    engine, and how they are asked for that many points; what that keeps alive."""
    loop = next(k for k, one in enumerate(loops) if member in one.members)
    tool = next(b for b, one in enumerate(placed) if 0 <= point - one.first < one.looks)
    flesh = int(of_body[member.number])
    looks, sides = [Handle(look_batch(room)) for _ in range(2)], [placed[tool], placed[flesh]]
    asked = QueriedBodies(
        np.array([one.body.kind.unit.address for one in sides], np.int64),
        np.array([one.body.handle.address for one in sides], np.int64), np.zeros(2, np.int64),
        np.array([look.address for look in looks], np.int64),
        np.array([one.first for one in sides], np.int32), make_batch(1), make_problem(1),
    )  # fmt: skip
    return loop, (tool, flesh), asked, looks


def _incision(
    path: BladePath,
    placed: Sequence[Placed],
    of_body: NDArray[np.int32],
    modals: Sequence[Modal],
    searches: Sequence[PairSearch],
    loops: Sequence[Loop],
    incised: NDArray[Any],
) -> tuple[tuple[Bound, Bound], list[Handle]]:
    """What finds a blade's sides and its edge in tissue, and what that keeps alive."""
    from palpo.physics.engine.blade import edge_detector, make_inserted_blade, sides_detector

    spec, weights = path.spec, path.weights()
    loop, bodies, asked, looks = _met(
        int(spec.points[0]), spec.member, max(3, len(weights)), placed, of_body, loops
    )
    first = spec.member.first + path.body.first_inner + path.first - int(asked.first[1])
    state = make_inserted_blade(
        modals[loop].frame, modals[loop].control, asked, bodies, (first, path.number, spec.edge),
        (spec.points - asked.first[0]).astype(np.int32), weights, spec.direction, spec.puncture, incised,
        searches[loop].apart,
    )  # fmt: skip
    return (Bound.bind(sides_detector, state), Bound.bind(edge_detector, state)), looks


def _solver(numbers: Numbers) -> Any:
    """The solver of the scene's contacts."""
    if numbers.solver == "anderson":
        from palpo.physics.engine.relaxing import anderson_unit  # compiled for scenes that want it

        return anderson_unit
    return gauss_seidel_unit


def _cavities(scene: Scene) -> tuple[Cavities, Any] | None:
    """The engine's list of cavities and their solver, compiled for scenes that have some."""
    if scene.air is None:
        return None
    from palpo.physics.engine.pressurising import pressure_unit

    air = scene.air.air
    return make_cavities(scene.air.most, (air.atmosphere, air.largest, air.rt)), pressure_unit


def _cavity_detector(
    scene: Scene, placed: Sequence[Placed], of_body: NDArray[np.int32], modal: Modal, cavities: Cavities,
    port: Port,
) -> Bound:  # fmt: skip
    """What takes cavities from a loop's frames; the first hand has the button of their valve."""
    from palpo.physics.systems.multirate.member_cavities import (
        cavity_detector,
        make_frame_cavities,
        make_valve,
    )

    assert scene.air is not None
    body = int(of_body[scene.air.members[0].number])
    one, two = (
        slice(member.first, member.first + wall.body.nodes)
        for member, wall in zip(scene.air.members, scene.air.walls, strict=True)
    )
    state = make_frame_cavities(
        modal.frame, modal.control, cavities, body, placed[body].first, (one, two),
        scene.air.limits.sealing - scene.air.limits.contact,
        make_valve(port.buttons, scene.air.button, scene.air.valve),
    )  # fmt: skip
    return Bound.bind(cavity_detector, state)


def _joints(scene: Scene, placed: Sequence[Placed], of_point: NDArray[np.int32]) -> list[Joint]:
    """The scene's attachments as the engine has them."""
    attachments, world = scene.attachments, len(placed) - 1

    def side(k: int, s: int) -> tuple[int, list[int], list[float]]:
        points = [int(p) for p in attachments.points[k, s] if p >= 0]
        if not points:
            return world, [0], [0.0]
        body = int(of_point[points[0]])
        weights = [float(w) for w in attachments.weights[k, s, : len(points)]]
        return body, [p - placed[body].first for p in points], weights

    joints = []
    for k, kind in enumerate(attachments.kind):
        (one, slots_1, weights_1), (two, slots_2, weights_2) = side(k, 0), side(k, 1)
        carrier, turn = None, int(attachments.turn[k])
        if kind == SLIDE and turn >= 0:
            body = int(of_point[turn])
            carrier = body, turn - placed[body].first
        reference, direction = attachments.reference[k], attachments.direction[k]
        joint = Joint(
            (one, two), (slots_1, slots_2), (weights_1, weights_2), int(kind), tuple(reference),
            tuple(direction), carrier,
        )  # fmt: skip
        joints.append(joint)
    return joints
