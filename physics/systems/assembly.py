"""Putting a scene's high-rate state together: its bodies, joints and contact search, in an engine."""

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain import ChainState
from palpo.physics.collision.topology import LOW, TOOL
from palpo.physics.engine.build import Detector, make_engine
from palpo.physics.engine.contract import Batch, Body, make_batch, make_hand, make_problem
from palpo.physics.engine.joints import SLIDE, Joint
from palpo.physics.engine.pairs import Asked, PairSearch, look_batch, make_pair_search, pair_detector
from palpo.physics.engine.sweeping import gauss_seidel_unit
from palpo.physics.exchange.buffer import make_control
from palpo.physics.exchange.constraint_frame import ConstraintFrame
from palpo.physics.exchange.force_log import ForceLog
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.patience import PATIENCE_PERIODS
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.tool_state import ToolState, make_tool_state
from palpo.physics.systems.high_state import SOFT, STIFF, WORLD, Counts, HighRate
from palpo.physics.systems.hold import Hold, held_point
from palpo.physics.systems.scene import Scene
from palpo.physics.yields.chain import CHAIN, make_chain
from palpo.physics.yields.modal import MODAL, make_modal
from palpo.physics.yields.scripted import SCRIPTED, make_scripted

AT_ONCE = 64
"""Up to so many contacts all are solved for, the open ones too; more have a working set."""


def make_high_rate(
    scene: Scene,
    tool: ChainState,
    port: Port,
    frame: ConstraintFrame,
    frame_control: NDArray[np.int64],
    state: ToolState,
    state_control: NDArray[np.int64],
    log: ForceLog,
) -> HighRate:
    """A tick's state at tick 0, with the tool where it is and nothing to touch yet."""
    numbers, capacity = scene.numbers, scene.capacity
    n, contacts = len(tool.x), capacity.contacts
    joints = _joints(scene)
    room = contacts + 2 * len(joints)
    hold = Hold._make(a.copy() for a in scene.hold)
    held_point(hold, tool, port.position)
    port.orientation[:] = [1.0, 0.0, 0.0, 0.0]
    hold.target[:], hold.target_q[:] = port.position, hold.rest
    model = scene.model._replace(gravity=scene.model.gravity.copy())
    points, own = scene.tool_points, slice(*scene.tool_points.span)
    stiff = make_chain(model, tool, points.frame[own], points.lever[own], room, hold)
    soft = make_modal(capacity, frame, frame_control, log, 2 * room)
    moving = scene.moving
    world = make_scripted(_places(scene), moving.point, moving.x, moving.q, moving.known)
    bodies = [CHAIN.bind(stiff), MODAL.bind(soft), SCRIPTED.bind(world)]
    search, looks = _search(scene, bodies, frame, frame_control)
    hand = make_hand()
    built = make_engine(
        bodies, [gauss_seidel_unit], contacts, numbers.dt, [Detector.bind(pair_detector, search)], joints,
        {STIFF: hand}, watched=[],
    )  # fmt: skip
    engine = built.engine
    search.asked.rows[:] = engine.bodies.batch
    settings = engine.solver.settings
    settings["tolerance"], settings["sweeps"] = numbers.tolerance, numbers.sweeps_high
    settings["at_once"] = AT_ONCE
    # the tables hold addresses: what they point to lives as long as the engine's step, which is none of it
    weakref.finalize(engine.step, _forget, (built.bodies, built.detectors, built.kept, looks))
    return HighRate(
        port=port,
        counts=Counts(engine.now, *(np.zeros(1, np.int64) for _ in Counts._fields[1:])),
        feedback=np.array([numbers.feedback], np.int64),
        patience=np.array([PATIENCE_PERIODS * numbers.ratio], np.int64),
        engine=engine,
        search=search,
        stiff=built.batches[STIFF],
        soft=built.batches[SOFT],
        world=built.batches[WORLD],
        chain=stiff,
        modal=soft,
        scripted=world,
        hand=hand,
        hold=hold,
        tool=tool,
        mu=search.mu,
        frame=frame,
        frame_control=frame_control,
        interface=soft.now,
        log=log,
        state=state,
        state_control=state_control,
        shown=make_tool_state(n, contacts, capacity.modes, capacity.bodies),
        shown_control=make_control(),
    )


def _forget(_kept: Any) -> None:
    """What was kept alive may go."""


def _places(scene: Scene) -> NDArray[np.float64]:
    """Places at rest of all points [m], the scripted ones included, (points, 3)."""
    x = np.zeros((scene.capacity.points, 3))
    x[: len(scene.rest)] = scene.rest
    return x


def _owners(scene: Scene) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Body of the engine of each body and of each point, and the first point of each body of the engine."""
    roles = scene.topology.body_role
    of_body = np.full(len(roles), WORLD, np.int32)
    of_body[roles == TOOL], of_body[roles == LOW] = STIFF, SOFT
    of_point = np.full(scene.capacity.points, WORLD, np.int32)
    of_point[: len(scene.topology.point_body)] = of_body[scene.topology.point_body]
    return of_body, of_point, np.array([scene.tool_points.span[0], 0, 0], np.int32)


def _search(
    scene: Scene, bodies: list[Body], frame: ConstraintFrame, control: NDArray[np.int64]
) -> tuple[PairSearch, list[Any]]:
    """The search for contacts among candidate pairs, and what it keeps alive."""
    numbers, capacity = scene.numbers, scene.capacity
    of_body, of_point, first = _owners(scene)
    start, stop = scene.tool_points.span
    looks: list[Batch] = [look_batch(int(stop - start)), look_batch(capacity.slots)]
    handles = [Handle(batch) for batch in looks]
    asked = Asked(
        np.array([body.kind.unit.address for body in bodies], np.int64),
        np.array([body.handle.address for body in bodies], np.int64), np.zeros(len(bodies), np.int64),
        np.array([*(handle.address for handle in handles), 0], np.int64), first, make_batch(1),
        make_problem(1),
    )  # fmt: skip
    search = make_pair_search(
        scene.topology, scene.rest, scene.mu.copy(), frame, control, capacity, numbers.skin, numbers.reach,
        asked, of_point, of_body,
    )  # fmt: skip
    return search, handles


def _joints(scene: Scene) -> list[Joint]:
    """The scene's attachments as the engine has them."""
    attachments = scene.attachments
    _, of_point, first = _owners(scene)

    def side(k: int, s: int) -> tuple[int, list[int], list[float]]:
        points = [int(p) for p in attachments.points[k, s] if p >= 0]
        if not points:
            return WORLD, [0], [0.0]
        body = int(of_point[points[0]])
        weights = [float(w) for w in attachments.weights[k, s, : len(points)]]
        return body, [p - int(first[body]) for p in points], weights

    joints = []
    for k, kind in enumerate(attachments.kind):
        (one, slots_1, weights_1), (two, slots_2, weights_2) = side(k, 0), side(k, 1)
        carrier, turn = None, int(attachments.turn[k])
        if kind == SLIDE and turn >= 0:
            body = int(of_point[turn])
            carrier = body, turn - int(first[body])
        reference, direction = attachments.reference[k], attachments.direction[k]
        joint = Joint(
            (one, two), (slots_1, slots_2), (weights_1, weights_2), int(kind), tuple(reference),
            tuple(direction), carrier,
        )  # fmt: skip
        joints.append(joint)
    return joints
