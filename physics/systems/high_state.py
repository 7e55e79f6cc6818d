"""Everything that the high-rate tick reads and writes, as one tuple of preallocated arrays.

What is one number is an array of one, so that it can change behind a handle.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain import ChainModel, ChainState, ChainWork
from palpo.physics.collision.proximity import Contacts, ProximityWork
from palpo.physics.collision.topology import Topology
from palpo.physics.contact.memory import ContactMemory
from palpo.physics.contact.rows import Attachments, PointState, Rows, ToolPoints
from palpo.physics.exchange.constraint_frame import ConstraintFrame
from palpo.physics.exchange.force_log import ForceLog
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.tool_state import ToolState
from palpo.physics.reduction.interface_model import InterfaceState
from palpo.physics.systems.hold import Hold

CONSTRAINT_SUM, HOLD_REACTION = 0, 1
"""What is fed back: the sum of constraint forces on the tool (003, IV-B) or the held frame's reaction."""


class MovingPoints(NamedTuple):
    """Points and frames of the world that follow a script (attachments to a moving frame)."""

    point: NDArray[np.int32]  # (m,) global point; its rotation is the next global number
    x: NDArray[
        np.float64
    ]  # (m, rows, 3) [m] at the end of each tick, as palpo.physics.exchange.ahead keeps them
    q: NDArray[np.float64]  # (m, rows, 4)
    known: NDArray[np.int64]  # (1,) rows of the script so far


class Counts(NamedTuple):
    """What the tick counts, each (1,)."""

    tick: NDArray[np.int64]  # ticks done
    calls: NDArray[np.int64]  # calls, those in which the scene waited included
    waited: NDArray[np.int64]  # calls that waited for the frame that is due
    frame: NDArray[np.int64]  # id of the frame in use, 0 before the first
    adopted_at: NDArray[np.int64]  # tick at which it was adopted
    lost_contacts: NDArray[np.int64]  # contacts beyond the capacity


class Settings(NamedTuple):
    """What a tick goes by, each (1,); frames bring what an operator may change."""

    step: NDArray[np.float64]  # [s]
    tolerance: NDArray[np.float64]  # of the solver
    sweeps: NDArray[np.int64]  # at most, of the solver
    skin: NDArray[np.float64]  # gap that contacts keep [m]
    reach: NDArray[np.float64]  # gap below which a contact is a row [m]
    feedback: NDArray[np.int64]  # CONSTRAINT_SUM or HOLD_REACTION
    patience: NDArray[np.int64]  # age at which a frame is overdue [ticks]


class HighRate(NamedTuple):
    """The state of one servo's side of a scene."""

    port: Port
    counts: Counts
    settings: Settings
    odometer: NDArray[np.float64]  # (1,) bound on the relative travel of any two points so far [m]
    seen: NDArray[np.float64]  # (1,) sum of the coordinates of the soft points looked at in this tick
    topology: Topology
    mu: NDArray[np.float64]  # (bodies, bodies) friction coefficients
    model: ChainModel
    tool: ChainState
    work: ChainWork
    hold: Hold
    inverse: NDArray[np.float64]  # (6 n, 6 n) A_tool^-1
    twist: NDArray[np.float64]  # (n, 6) velocities; free, then final
    push: NDArray[np.float64]  # (n, 6) their change by the constraint forces
    change: NDArray[np.float64]  # (n, 6) change of velocity
    pull: NDArray[np.float64]  # (n, 6) constraint forces on the tool's frames
    tool_points: ToolPoints
    moving: MovingPoints
    attachments: Attachments
    points: PointState
    contacts: Contacts
    proximity: ProximityWork
    memory: ContactMemory
    rows: Rows
    start: NDArray[np.float64]  # (contacts, 3) gap and offset after the free motion [m]
    leftover: NDArray[np.float64]  # (contacts, 3) gap and offset at the end of the tick [m]
    frame: ConstraintFrame
    frame_control: NDArray[np.int64]
    interface: InterfaceState
    log: ForceLog
    state: ToolState
    state_control: NDArray[np.int64]
    shown: ToolState  # the same once more, with the reduced bodies, for the picture
    shown_control: NDArray[np.int64]
    scratch: NDArray[np.float64]  # (8, 4)
