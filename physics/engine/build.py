"""From bodies, joints and detectors to an engine."""

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import typeof

from palpo.physics.contract.contacts import Contacts, make_contacts
from palpo.physics.contract.memory import make_memory
from palpo.physics.contract.stages import WANTS, Batch, Body, Hand, make_batch, make_problem
from palpo.physics.engine.cavities import Cavities, make_cavities
from palpo.physics.engine.joints import Joint, make_joints
from palpo.physics.engine.solve import make_solver
from palpo.physics.engine.table import COUNT, Bodies, Engine
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import layout


@dataclass(frozen=True)
class Bound:
    """A compiled detector or link, and its state; keeps the state's memory alive."""

    unit: Any
    handle: Handle

    @classmethod
    def bind(cls, unit: Any, state: Any) -> "Bound":
        """TypeError for a state of another layout than the unit was compiled for."""
        expected = unit._sig.args[1].content
        if layout(typeof(state)) != layout(expected):
            raise TypeError(f"a state {type(state).__name__} is not laid out as its unit expects")
        return cls(unit, Handle(state))


@dataclass(frozen=True)
class Built:
    """An engine with all that its addresses point to, which lives as long as the engine does."""

    engine: Engine
    bodies: tuple[Body, ...]
    detectors: tuple[Bound, ...]
    batches: tuple[Batch, ...]
    """Of each body, its points in joints and contacts."""
    kept: tuple[Handle, ...]


def make_engine(
    bodies: Sequence[Body],
    solvers: Sequence[Any],
    capacity: int,
    step: float,
    detectors: Sequence[Bound] = (),
    joints: Sequence[Joint] = (),
    hands: Mapping[int, Hand] | None = None,
    contacts: Contacts | None = None,
    watched: Sequence[int] | None = None,
    clock: int = 0,
    cavities: tuple[Cavities, Any] | None = None,
) -> Built:
    """An engine of those bodies at rest.

    solvers: compiled solvers, of which the settings name one by its place. capacity: most contacts.
    step: h [s]. hands: of the bodies that are held, by number. contacts: the list that detectors fill, if
    they know it already. watched: bodies all of whose points detectors look at; all if not given. clock: see
    palpo.physics.engine.solve. cavities: their list, which a detector fills, and the solver of steps
    in which it is not empty.
    Raises InputError for no body, a step that is not positive, and a joint of a body that there is not,
    and a body without room for the joints' and contacts' points.
    """
    if not bodies:
        raise InputError("an engine needs a body")
    if not step > 0.0:
        raise InputError(f"step = {step}: a time step must be positive")
    for joint in joints:
        if not all(0 <= b < len(bodies) for b in joint.bodies):
            raise InputError(f"a joint of bodies {joint.bodies} among {len(bodies)} bodies")
    hands, n, c, j = hands or {}, len(bodies), capacity, len(joints)
    now = np.zeros(1, np.int64)
    wants = np.zeros(1, WANTS)
    air, pressing = (make_cavities(0), 0) if cavities is None else (cavities[0], cavities[1].address)
    k = len(air.amount)
    rooms = [_room(body, c + 2 * j + 2 * k, 2 * (c + j + k)) for body in bodies]
    batches, parts = ([make_batch(rooms[b], now, wants, hands.get(b)) for b in range(n)] for _ in range(2))
    kept = [Handle(batch) for batch in (*batches, *parts, *(body.whole for body in bodies))]
    address = np.array([handle.address for handle in kept], np.int64).reshape(3, n)
    address[2, [b for b in range(n) if watched is not None and b not in watched]] = 0
    engine = Engine(
        bodies=Bodies(
            unit=np.array([body.kind.unit.address for body in bodies], np.int64),
            state=np.array([body.handle.address for body in bodies], np.int64),
            batch=address[0].copy(),
            part=address[1].copy(),
            whole=address[2].copy(),
            springs_back=np.array([body.kind.springs_back for body in bodies]),
            held=np.array([b in hands for b in range(n)]),
        ),
        batch=batches[0],
        detector=np.array([d.unit.address for d in detectors], np.int64),
        detector_state=np.array([d.handle.address for d in detectors], np.int64),
        solvers=np.array([solver.address for solver in solvers], np.int64),
        pressing=np.array([pressing], np.int64),
        contacts=contacts or make_contacts(c),
        joints=make_joints(joints),
        cavities=air,
        memory=make_memory(c),
        at=np.zeros((j + c + k, 2), np.int32),
        b=np.zeros(3 * (j + c + k)),
        r=np.zeros(3 * (j + c + k)),
        u=np.zeros(3 * (j + c + k)),
        gap=np.zeros(c),
        inside=np.zeros(c, np.bool_),
        member=np.zeros(c, np.int32),
        offered=np.zeros((1, 0)),
        offer=np.full(1, -1, np.int64),
        problem=make_problem(j + c + k, k),
        factor=np.zeros((3 * j, 3 * j)),
        solver=make_solver(c + -(-k // 3), clock=clock, walls=(c, k) if k else (0, 0)),
        now=now,
        wants=wants,
        step=np.array([step]),
        count=np.zeros(1, COUNT),
        vectors=np.zeros((4, 4)),
    )
    built = Built(engine, tuple(bodies), tuple(detectors), tuple(batches), tuple(kept))
    # what the addresses point to lives as long as the engine, by an array of its own
    weakref.finalize(engine.vectors, _release, (built.bodies, built.detectors, built.kept)).atexit = False
    return built


def _release(kept: object) -> None:
    """Nothing to do: the reference goes."""


def _room(body: Body, least: int, most: int) -> int:
    """Points that a body's batch may have: more than one a contact only where it touches itself."""
    if body.kind.room is None:
        return most
    room = body.kind.room(body.state)
    if room < least:
        raise InputError(f"a body of kind {body.kind.name} has room for {room} points, but may need {least}")
    return min(room, most)
