"""Putting a scene's high-rate state together."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain import ChainState, chain_work
from palpo.physics.collision.proximity import make_contacts, make_proximity_work
from palpo.physics.collision.topology import STATIC
from palpo.physics.contact.memory import make_contact_memory
from palpo.physics.contact.rows import make_point_state, make_rows
from palpo.physics.exchange.buffer import make_control
from palpo.physics.exchange.constraint_frame import ConstraintFrame
from palpo.physics.exchange.force_log import ForceLog
from palpo.physics.exchange.patience import PATIENCE_PERIODS
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.tool_state import ToolState, make_tool_state
from palpo.physics.reduction.interface_model import make_interface_state
from palpo.physics.systems.high_state import Counts, HighRate, Settings
from palpo.physics.systems.hold import Hold, held_point
from palpo.physics.systems.scene import Scene


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
    n = len(tool.x)
    settings = Settings(
        step=np.array([numbers.dt]),
        tolerance=np.array([numbers.tolerance]),
        sweeps=np.array([numbers.sweeps_high], np.int64),
        skin=np.array([numbers.skin]),
        reach=np.array([numbers.reach]),
        feedback=np.array([numbers.feedback], np.int64),
        patience=np.array([PATIENCE_PERIODS * numbers.ratio], np.int64),
    )
    points = make_point_state(capacity.points)
    static = scene.topology.body_role[scene.topology.point_body] == STATIC
    points.x[static] = scene.rest[static]
    hold = Hold._make(a.copy() for a in scene.hold)
    held_point(hold, tool, port.position)
    port.orientation[:] = [1.0, 0.0, 0.0, 0.0]
    hold.target[:], hold.target_q[:] = port.position, hold.rest
    return HighRate(
        port=port,
        counts=Counts(*(np.zeros(1, np.int64) for _ in Counts._fields)),
        settings=settings,
        odometer=np.zeros(1),
        seen=np.zeros(1),
        topology=scene.topology,
        mu=scene.mu.copy(),
        model=scene.model._replace(gravity=scene.model.gravity.copy()),
        tool=tool,
        work=chain_work(n),
        hold=hold,
        inverse=np.zeros((6 * n, 6 * n)),
        twist=np.zeros((n, 6)),
        push=np.zeros((n, 6)),
        change=np.zeros((n, 6)),
        pull=np.zeros((n, 6)),
        tool_points=scene.tool_points,
        moving=scene.moving,
        attachments=scene.attachments,
        points=points,
        contacts=make_contacts(capacity.contacts),
        proximity=make_proximity_work(capacity.pairs),
        memory=make_contact_memory(capacity.contacts),
        rows=make_rows(len(scene.attachments.kind), capacity.contacts, n, capacity.near),
        start=np.zeros((capacity.contacts, 3)),
        leftover=np.zeros((capacity.contacts, 3)),
        frame=frame,
        frame_control=frame_control,
        interface=make_interface_state(capacity),
        log=log,
        state=state,
        state_control=state_control,
        shown=make_tool_state(n, capacity.contacts, capacity.modes, capacity.bodies),
        shown_control=make_control(),
        scratch=np.zeros((8, 4)),
    )
