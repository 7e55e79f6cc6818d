"""What the servo of a multi-rate scene has beside its tick, as one tuple of preallocated arrays.

What is one number is an array of one, so that it can change behind a handle. Of what there may be several,
a table has the addresses, and the first stands beside it, which has the layout of all.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain_models import ChainState
from palpo.physics.compliance.chain import Chain
from palpo.physics.compliance.hold import Hold
from palpo.physics.contract.stages import Batch, Hand
from palpo.physics.engine.pairs import PairSearch
from palpo.physics.engine.table import Engine
from palpo.physics.exchange.constraint_frame import ConstraintFrame
from palpo.physics.exchange.force_log import ForceLog
from palpo.physics.exchange.frames import SlowFrames
from palpo.physics.exchange.handle import of_process
from palpo.physics.exchange.model_log import ModelLog
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.tool_state import ToolState
from palpo.physics.reduction.interface_model import InterfaceState


class Link(NamedTuple):
    """What one low loop and the servo exchange, and the servo's own part of it."""

    frame: ConstraintFrame
    frame_control: NDArray[np.int64]  # the loop's own of HighRate.frames
    log: ForceLog
    models: ModelLog
    state: ToolState
    state_control: NDArray[np.int64]
    body: NDArray[np.int64]  # (1,) the loop's bodies, one of the engine
    points: Batch  # theirs in joints and contacts
    interface: InterfaceState


class Held(NamedTuple):
    """A tool and the hand that holds it."""

    port: Port  # of that hand's device; status is the first one's
    hand: Hand
    hold: Hold
    tool: ChainState
    points: Batch  # the tool's points in joints and contacts
    chain: Chain  # the tool as a body of the engine
    frame: NDArray[np.int64]  # (1,) number of its first frame among those of all tools


@of_process("helds", "searches", "links")
class HighRate(NamedTuple):
    """The state of one servo's side of a scene; the port is that of the first tool's hand."""

    port: Port
    ticks: NDArray[np.void]  # (1,) of palpo.physics.engine.servo.TICKS
    frames: SlowFrames
    held: Held
    helds: NDArray[np.int64]  # (t,) addresses, one for each tool
    engine: Engine
    search: PairSearch
    searches: NDArray[np.int64]  # (k,) addresses, one for each low loop
    link: Link
    links: NDArray[np.int64]  # (k,) addresses, one for each low loop
    mu: NDArray[np.float64]  # (bodies, bodies) friction coefficients
    incised: NDArray[Any]  # (BLADES,) of palpo.physics.exchange.tool_state.INCISED
    inserted: NDArray[Any]  # (PATHS,) of palpo.physics.exchange.tool_state.INSERTED
    path: NDArray[np.float64]  # (PATHS, PATH_POINTS, 3) [m] of their paths
    shown: ToolState  # for the picture
    shown_control: NDArray[np.int64]
