"""Everything that the high-rate tick reads and writes, as one tuple of preallocated arrays.

What is one number is an array of one, so that it can change behind a handle. Some arrays have two names: the
tool's motion is that of the body that moves it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain import ChainState
from palpo.physics.engine.contract import Batch, Hand
from palpo.physics.engine.pairs import PairSearch
from palpo.physics.engine.tick import Engine
from palpo.physics.exchange.constraint_frame import ConstraintFrame
from palpo.physics.exchange.force_log import ForceLog
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.tool_state import ToolState
from palpo.physics.reduction.interface_model import InterfaceState
from palpo.physics.systems.hold import Hold
from palpo.physics.yields.chain import Chain
from palpo.physics.yields.modal import Modal
from palpo.physics.yields.scripted import Scripted

CONSTRAINT_SUM, HOLD_REACTION = 0, 1
"""What is fed back: the sum of constraint forces on the tool (003, IV-B) or the held frame's reaction."""

STIFF, SOFT, WORLD = 0, 1, 2
"""Bodies of the engine: the tool, all bodies with a low loop, and the points that neither moves."""


class Counts(NamedTuple):
    """What the tick counts, each (1,)."""

    tick: NDArray[np.int64]  # ticks done
    calls: NDArray[np.int64]  # calls, those in which the scene waited included
    waited: NDArray[np.int64]  # calls that waited for the frame that is due
    frame: NDArray[np.int64]  # id of the frame in use, 0 before the first
    adopted_at: NDArray[np.int64]  # tick at which it was adopted


class HighRate(NamedTuple):
    """The state of one servo's side of a scene."""

    port: Port
    counts: Counts
    feedback: NDArray[np.int64]  # (1,) CONSTRAINT_SUM or HOLD_REACTION
    patience: NDArray[np.int64]  # (1,) age at which a frame is overdue [ticks]
    engine: Engine
    search: PairSearch
    stiff: Batch  # the tool's points in joints and contacts
    soft: Batch  # those of the bodies with a low loop
    world: Batch  # those of the world
    chain: Chain  # the tool as a body of the engine
    modal: Modal  # the bodies with a low loop as one
    scripted: Scripted  # the world as one
    hand: Hand
    hold: Hold
    tool: ChainState
    mu: NDArray[np.float64]  # (bodies, bodies) friction coefficients
    frame: ConstraintFrame
    frame_control: NDArray[np.int64]
    interface: InterfaceState
    log: ForceLog
    state: ToolState
    state_control: NDArray[np.int64]
    shown: ToolState  # the same once more, with the reduced bodies, for the picture
    shown_control: NDArray[np.int64]
