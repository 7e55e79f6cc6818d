"""The bodies of one low loop: their state, where their points are, and W.

How each two of their points yield to a force is told by modes and near slots.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.compliance.points import add_pair
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.constraint_frame import (
    IS_FIELD,
    REDUCED,
    TURNS,
    Capacity,
    ConstraintFrame,
)
from palpo.physics.exchange.force_log import ForceLog
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import matvec3_transposed
from palpo.physics.reduction.interface_model import InterfaceState, make_interface_state
from palpo.physics.reduction.replay import HeldSlots, make_led
from palpo.physics.reduction.slot_motion import (
    add_rigid_part,
    add_rigid_row,
    slot_compliance,
    slot_orientation,
    slot_position,
    yield_rigidly,
)


@kernel
def delassus(s, batch, w, h):
    """w += J C J^T, from the compliance that the frame knows among its near slots where it can be.

    A point yields to forces on its own body alone.
    """
    f = reader_slot(s.control)
    _prepare(s, f, batch)
    for m in range(batch.count[0]):
        body = s.body[m]
        if body < 0:
            continue
        if s.near[m] == 1:
            _yield(s, s.frame.compliance[f], batch, m, s.span[body, 0], s.span[body, 1])
        floats = _floats(s.frame, f, body)
        if floats:
            yield_rigidly(s.frame, f, body, s.rows[m], h, s.rigid)
        for k in range(m + 1):
            if s.body[k] != body:
                continue
            part = s.part[0]
            if s.near[k] == 1 and s.near[m] == 1:
                _near_part(s, batch, k, part)
            else:
                _slot_part(s, f, batch, k, m, h, part)
            if floats:
                add_rigid_part(s.rigid, s.rows[k], part)
            add_pair(w, batch, m, k, part)


@inlined
def _floats(frame, f, body):
    return frame.head[f].motion == REDUCED and frame.floating[f, body] == 1


@kernel
def _prepare(s, f, batch):
    """Fill slot, axes, rows, near, body and span."""
    frame = s.frame
    for b in range(s.span.shape[0]):
        s.span[b, 0], s.span[b, 1] = s.yielding.shape[2], 0
    for k in range(batch.count[0]):
        s.near[k] = 1
        body, field = -1, False
        for c in range(3):
            s.slot[k, c] = -1
            if batch.weights[k, c] == 0.0:
                continue
            slot = frame.slot_of[f, batch.slots[k, c]]
            s.slot[k, c] = slot
            if slot < 0 or slot >= frame.head[f].n_near:
                s.near[k] = 0
            else:
                span = s.span[frame.slot_body[f, slot]]
                span[0], span[1] = min(span[0], 3 * slot), max(span[1], 3 * slot + 3)
            if slot >= 0:
                body, field = frame.slot_body[f, slot], frame.slot_turns[f, slot] == IS_FIELD
        s.body[k] = body
        turned = body >= 0 and not field and _floats(frame, f, body)
        for d in range(3):
            row, axis = batch.axes[k, d], s.axes[k, d]
            for i in range(3):
                axis[i] = row[i]
                if turned:
                    axis[i] = (
                        row[0] * s.now.axes[body, 0, i]
                        + row[1] * s.now.axes[body, 1, i]
                        + row[2] * s.now.axes[body, 2, i]
                    )
        if body >= 0 and _floats(frame, f, body):
            _prepare_rows(s, f, batch, k)


@kernel
def _prepare_rows(s, f, batch, k):
    """rows[k] (3, 6) = how point k moves along its rows with its body's centre and spin."""
    rows, now, away, arm = s.rows[k], s.now, s.vectors[1], s.vectors[2]
    for d in range(3):
        for j in range(6):
            rows[d, j] = 0.0
    for c in range(3):
        weight = batch.weights[k, c]
        if s.slot[k, c] < 0 or weight == 0.0:
            continue
        slot, x = look(s, batch.slots[k, c]), s.looked.x[batch.slots[k, c]]
        for i in range(3):
            away[i] = x[i] - now.centre[s.body[k], i]
        matvec3_transposed(now.axes[s.body[k]], away, arm)
        for d in range(3):
            add_rigid_row(s.frame, f, slot, arm, s.axes[k, d], weight, rows[d])


@kernel
def _add_scaled(scale, x, out):
    for q in range(out.size):
        out[q] += scale * x[q]


@kernel
def _yield(s, known, batch, m, lo, hi):
    """yielding[1] (3, lo:hi) = displacement of the near slots under unit forces along the rows of point m.

    One pass for a point, so that each of its products with the others reads a third of the compliance.
    """
    push, out = s.yielding[0], s.yielding[1]
    for i in range(3):
        push[i, lo:hi] = 0.0
        out[i, lo:hi] = 0.0
    for c in range(3):
        weight = batch.weights[m, c]
        if weight != 0.0:
            slot = s.slot[m, c]
            for i in range(3):
                _add_scaled(weight, known[3 * slot + i, lo:hi], push[i, lo:hi])
    for d in range(3):
        for i in range(3):
            _add_scaled(s.axes[m, d, i], push[i, lo:hi], out[d, lo:hi])


@inlined
def _near_part(s, batch, k, part):
    """part = how much point k yields along its rows, columns, to what is in `yielding`, rows."""
    for j in range(3):
        y, c0, c1, c2 = s.yielding[1, j], 0.0, 0.0, 0.0
        for c in range(3):
            weight = batch.weights[k, c]
            if weight != 0.0:
                first = 3 * s.slot[k, c]
                c0 += weight * y[first]
                c1 += weight * y[first + 1]
                c2 += weight * y[first + 2]
        for i in range(3):
            axis = s.axes[k, i]
            part[j, i] = axis[0] * c0 + axis[1] * c1 + axis[2] * c2


@kernel
def _slot_part(s, f, batch, k, m, h, part):
    """part = how point m yields along its rows, rows, to point k, columns: sums over their slots."""
    frame, between = s.frame, s.part[1]
    for i in range(3):
        for j in range(3):
            part[i, j] = 0.0
    for a in range(3):
        slot_a = s.slot[m, a]
        if batch.weights[m, a] == 0.0 or slot_a < 0:
            continue
        for b in range(3):
            slot_b = s.slot[k, b]
            weight = batch.weights[m, a] * batch.weights[k, b]
            if weight == 0.0 or slot_b < 0 or frame.slot_body[f, slot_a] != frame.slot_body[f, slot_b]:
                continue
            slot_compliance(frame, f, s.now, slot_a, slot_b, h, between)
            for i in range(3):
                left = s.axes[m, i]
                for j in range(3):
                    give = left[0] * between[0, j] + left[1] * between[1, j] + left[2] * between[2, j]
                    for e in range(3):
                        part[i, e] += weight * give * s.axes[k, e, j]


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
    rows: NDArray[np.float64]  # (c, 3, 6) the batch's rows of the centre and the spin of their bodies
    rigid: NDArray[np.float64]  # (3, 6) scratch
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
        np.zeros((2, 3, 3 * capacity.near)), np.zeros((points, 3, 6)), np.zeros((3, 6)),
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
