"""The servo of a held suction cup: the slow loop's own problem, solved with the hand's present pose.

To the engine the cup is a body that its frames describe (palpo.physics.compliance.condensed), and so are its
contacts and cavities, which `frame_rows` hands on; each tick solves contacts, friction and pressures together
(palpo.physics.engine.pressurising) for the pose in which the hand is now.

**What is frozen** for a frame's life: the contacts, their normals and arms; the borders of the cavities and
their volumes' gradients; the elements' rotations, W, B and S; and n of each cavity at the step's start.
All of it is about the state in which the step began, so that the error is of first order in the low period.
The amount that escapes at P_max is found anew by each tick and committed by the slow loop alone. At the tick
in which the slow loop ends the step it solves the same problem, with the same pose.

A tick keeps no state from another one but what to start from: between two frames the hand moves in the field
of a convex potential, but for friction and the momentum's share.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.compliance.condensed import CONDENSED, Condensed, make_condensed
from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.contract.contacts import FIND, append, detector
from palpo.physics.contract.links import FRAME, TELL, link
from palpo.physics.contract.stages import DONE, Batch, Hand, make_hand
from palpo.physics.engine.build import Bound, make_engine
from palpo.physics.engine.cavities import Cavities, make_cavities, take_cavities
from palpo.physics.engine.grip import make_grip
from palpo.physics.engine.pressurising import pressure_unit
from palpo.physics.engine.servo import TickState, make_ticks
from palpo.physics.engine.servo import make_servo as make_tick_state
from palpo.physics.engine.table import Engine
from palpo.physics.exchange.buffer import make_control, publish, writer_slot
from palpo.physics.exchange.frames import SlowFrames, make_frames, take_frame
from palpo.physics.exchange.hand_state import HandState, make_hand_state, write_hand
from palpo.physics.exchange.port import SUCKS, TOUCHES, Port, make_port
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel

HOLDS = 0.01
"""Share of the atmosphere's pressure by which a cavity that holds is below it."""

CUP, WORLD = 0, 1
"""The engine's numbers of the held cup and of all that it touches, which the cup's own W contains."""


class FrameRows(NamedTuple):
    """What the detector knows: the cup, and the list that its cavities go to."""

    cup: Condensed
    cavities: Cavities
    fresh: NDArray[np.bool_]  # (1,) whether the frame in force is new to it


class SuctionServo(NamedTuple):
    """What the servo of a held cup exchanges with the slow loop and the picture."""

    port: Port
    held: NDArray[np.bool_]  # (1,) whether a hand holds the handle
    ticks: NDArray[np.void]  # (1,) of palpo.physics.engine.servo.TICKS
    frames: SlowFrames
    engine: Engine
    cup: Condensed
    hand: Hand
    rows: FrameRows
    state: HandState
    state_control: NDArray[np.int64]
    shown: HandState  # the same once more, for the picture
    shown_control: NDArray[np.int64]


@kernel
def _take_frame(s):
    """The newest frame comes into force; who is held by nobody takes its settings alone."""
    f = take_frame(s.frames, 0, s.ticks[0])
    if f < 0:
        return
    frame, solver, air = s.cup.frame, s.engine.solver.settings[0], s.rows.cavities.air
    settings = frame.settings[f]
    solver.tolerance, solver.sweeps = settings.tolerance, settings.sweeps
    air[0], air[1], air[2] = settings.atmosphere, settings.largest, settings.rt
    s.rows.fresh[0] = True
    if s.held[0]:
        s.cup.slot[0] = f


@kernel
def frame_rows(s, contacts):
    """Contacts and cavities of the frame in force, with what to start from.

    That is what the last tick found, or on a new frame what the slow loop did. n is that of the step's start.
    """
    cup, frame, f = s.cup, s.cup.frame, s.cup.slot[0]
    if f < 0:
        return
    if s.fresh[0]:
        copy(frame.start[f], cup.x[: frame.start.shape[1]])
        s.cavities.count[0] = 0  # the slow loop has ended the step of those of before
        take_cavities(frame.cavities, f, s.cavities, CUP, 0)
        s.fresh[0] = False
    n = frame.size[f, 0]
    for c in range(n):
        append(contacts, c, CUP, WORLD)
        contacts.mu[c], contacts.anchored[c], contacts.gap[c] = frame.mu[f, c], True, 0.0
        for i in range(3):
            contacts.force[c, i] = cup.x[3 * c + i]
            contacts.slots[c, CUP, i], contacts.slots[c, WORLD, i] = c if i == 0 else 0, 0
            contacts.weights[c, CUP, i] = contacts.weights[c, WORLD, i] = 1.0 if i == 0 else 0.0
            for j in range(3):
                contacts.frame[c, i, j] = 1.0 if i == j else 0.0
    for j in range(s.cavities.count[0]):
        s.cavities.amount[j] = frame.cavities.amount[f, j]


@kernel
def _tell(s):
    """The numbers that go with the force, and hand and handle for the slow loop and the picture."""
    e, port, depth, sucks = s.engine, s.port, 0.0, False
    for k in range(e.contacts.count[0].found):
        depth = max(depth, -e.u[3 * k])
    for k in range(e.cavities.count[0]):
        sucks = sucks or e.cavities.pressure[k] < (1.0 - HOLDS) * e.cavities.air[0]
    copy(port.force, port.info[0].total)
    port.info[0].depth = depth
    status = port.status[0]
    status.rows += e.cavities.count[0]
    status.felt = (TOUCHES if status.contacts > 0 else 0) | (SUCKS if sucks else 0)
    _tell_hand(s, s.state, s.state_control)
    _tell_hand(s, s.shown, s.shown_control)


@kernel
def _tell_hand(s, out, control):
    """Hand and handle after the tick, through that triple buffer."""
    w = writer_slot(control)
    write_hand(out, w, s.ticks[0], s.hand, s.cup.orientation)
    copy(s.port.force, out.force[w])
    publish(control)


_SMALLEST = FrameRows(make_condensed(np.zeros(3), 1, 1), make_cavities(1), np.zeros(1, np.bool_))


@detector(_SMALLEST)
def frame_unit(stage, s, contacts, h):
    """The stages of palpo.physics.contract.contacts: what the frame in force has."""
    if stage == FIND:
        frame_rows(s, contacts)
    return DONE


def _make_side(
    position: NDArray[np.float64], contacts: int, cavities: int, dt: float, held: bool, port: Port, ratio: int
) -> tuple[SuctionServo, Hand, Batch]:
    cup, hand = make_condensed(position, contacts, cavities), make_hand()
    air, state = make_cavities(cavities), make_hand_state()
    rows = FrameRows(cup, air, np.zeros(1, np.bool_))
    found = Bound.bind(frame_unit, rows)
    hand.position[:] = hand.held[:] = position
    built = make_engine(
        [CONDENSED.bind(cup), FIXED.bind(make_fixed(np.zeros((1, 3))))], [pressure_unit], contacts, dt,
        [found], hands={CUP: hand}, watched=[], cavities=(air, pressure_unit),
    )  # fmt: skip
    built.engine.solver.settings["at_once"] = contacts
    state.target[:] = state.position[:] = position
    side = SuctionServo(
        port, np.array([held]), make_ticks(), make_frames(ratio), built.engine, cup, hand, rows, state,
        make_control(), make_hand_state(), make_control(),
    )  # fmt: skip
    return side, hand, built.batches[CUP]


@link(_make_side(np.zeros(3), 1, 1, 1e-3, True, make_port(), 1)[0])
def suction_link(stage, s, h):
    """The stages of palpo.physics.contract.links."""
    if stage == FRAME:
        _take_frame(s)
    elif stage == TELL:
        _tell(s)
    return DONE


def make_servo(
    position: NDArray[np.float64],
    contacts: int,
    cavities: int,
    dt: float = 1e-3,
    held: bool = True,
    turns: bool = True,
    port: Port | None = None,
    ratio: int = 20,
) -> tuple[TickState, SuctionServo]:
    """The servo of a handle at position (3,) [m], upright, with room for so many contacts and cavities.

    dt: period [s]. held: whether the hand holds it; else it feels nothing. turns: whether it turns with the
    device. ratio: ticks in a low period.
    """
    side, hand, points = _make_side(position, contacts, cavities, dt, held, port or make_port(), ratio)
    grip, links = make_grip(side.port, hand, points, turns), [Bound.bind(suction_link, side)]
    return make_tick_state(side.engine, [grip], links, side.ticks, side.frames), side
