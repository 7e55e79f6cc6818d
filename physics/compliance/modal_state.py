"""The state of the bodies of one low loop, and where their points are."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.constraint_frame import (
    TURNS,
    Capacity,
    ConstraintFrame,
)
from palpo.physics.exchange.force_log import ForceLog
from palpo.physics.numerics.kernels import inlined
from palpo.physics.reduction.interface_model import InterfaceState, make_interface_state
from palpo.physics.reduction.replay import HeldSlots, make_led
from palpo.physics.reduction.slot_motion import slot_orientation, slot_position


class Looked(NamedTuple):
    """Points that were looked up in this step; each is, once, for all batches."""

    stamp: NDArray[np.int64]  # (2,) number of the present positions, and of the present free motion
    x_stamp: NDArray[np.int64]  # (points,)
    step_stamp: NDArray[np.int64]  # (points,)
    x: NDArray[np.float64]  # (points, 3) [m], or the rotation vector since the slot's reference
    q: NDArray[np.float64]  # (points, 4), of rotations
    step: NDArray[np.float64]  # (points, 3) displacement in the free motion


class Modal(NamedTuple):
    """The bodies of one low loop, in up to c points of a batch."""

    frame: ConstraintFrame
    control: NDArray[np.int64]  # of the frames' triple buffer
    log: ForceLog  # that frames are brought to the present with
    now: InterfaceState
    led: HeldSlots  # in the frame in force
    looked: Looked
    loads: NDArray[np.int64]  # (1,) slots under load, where they stay as they were offered
    loaded: NDArray[np.int32]  # (slots,)
    load: NDArray[np.float64]  # (slots, 3) [N]
    axes: NDArray[np.float64]  # (c, 3, 3) the batch's rows in the axes of their bodies
    slot: NDArray[np.int32]  # (c, 3) the frame's slots of the batch's points, -1 for none
    near: NDArray[np.int64]  # (c,) 1 where the frame knows the compliance of all of a point's slots
    body: NDArray[np.int64]  # (c,) the frame's body of a point, -1 for none
    span: NDArray[np.int64]  # (bodies, 2) columns of that compliance that the near slots of each have in use
    yielding: NDArray[np.float64]  # (2, 3, 3 near) scratch, and how the near slots yield to one point's rows
    part: NDArray[np.float64]  # (2, 3, 3) scratch
    vectors: NDArray[np.float64]  # (4, 4) scratch


def make_modal(
    capacity: Capacity, frame: ConstraintFrame, control: NDArray[np.int64], log: ForceLog, points: int
) -> Modal:
    """Bodies that wait for their first frame; room for that many points in a batch."""
    p = capacity.points
    return Modal(
        frame, control, log, make_interface_state(capacity), make_led(),
        Looked(
            np.ones(2, np.int64), np.zeros(p, np.int64), np.zeros(p, np.int64), np.zeros((p, 3)),
            np.zeros((p, 4)), np.zeros((p, 3)),
        ),
        np.zeros(1, np.int64), np.zeros(capacity.slots, np.int32), np.zeros((capacity.slots, 3)),
        np.zeros((points, 3, 3)), np.zeros((points, 3), np.int32), np.zeros(points, np.int64),
        np.zeros(points, np.int64), np.zeros((capacity.bodies, 2), np.int64),
        np.zeros((2, 3, 3 * capacity.near)),
        np.zeros((2, 3, 3)), np.zeros((4, 4)),
    )  # fmt: skip


@inlined
def look(s, p):
    """Make looked.x[p] (and q) present; returns the frame's slot, -1 without."""
    f, at = reader_slot(s.control), s.looked
    slot = s.frame.slot_of[f, p]
    if at.x_stamp[p] != at.stamp[0]:
        at.x_stamp[p] = at.stamp[0]
        x = at.x[p]
        if slot < 0:
            for i in range(3):
                x[i] = np.inf
        else:
            slot_position(s.frame, f, s.now, slot, x)
            if s.frame.slot_turns[f, slot] == TURNS:
                slot_orientation(s.frame, f, s.now, slot, x, s.vectors[0], at.q[p])
    return slot
