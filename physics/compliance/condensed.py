"""A held body whose slow loop has condensed its whole step to the handle, contacts and cavities.

A step of the slow loop is linear in the twist d by which its held frame, the handle, moves until the step's
end, but for the laws of contact, friction and air. So a frame carries

    u = W x + b + B d,    wrench on what holds the handle = S d - F - B^T x

with x = (r, p - P_atm) and u = (gaps and slips, volumes). To the servo it is a body whose points are the
frame's rows: point k is contact k, in the contact's own axes, and field j is cavity j. The virtual coupling
to the hand is a spring and a damper in parallel, implicit in the step; the slow loop condenses it into W, so
that the handle's twist needs no unknowns of its own. The force on the hand is minus what the coupling has to
pull the handle with: inertia, weight, elasticity, contact and suction.

Within a step the bodies' start velocities count in proportion to the time since it began: in free motion
the handle then goes along with the hand instead of lagging behind or running ahead, and at the step's end
all of it is there.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from palpo.physics.contract.stages import (
    AIM,
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FEEL,
    FIELD,
    FREE,
    NOT_OFFERED,
    PLACE,
    PUSH,
    Kind,
    unit,
)
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.suction_frame import SuctionFrame, make_suction_frame
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import quat_difference, rotate_by

LATEST = 2.0
"""Most steps for which the start velocities are followed when a frame is late."""


class Condensed(NamedTuple):
    """A frame, and the handle on it; room for m rows."""

    frame: SuctionFrame
    slot: NDArray[np.int64]  # (1,) of the frame in force, -1 where nobody holds the handle
    target: NDArray[np.float64]  # (3,) [m] where the hand wants the handle
    target_q: NDArray[np.float64]  # (4,)
    position: NDArray[np.float64]  # (3,) [m] of the handle
    orientation: NDArray[np.float64]  # (4,)
    twist: NDArray[np.float64]  # (6,) of the handle since the step began
    pull: NDArray[np.float64]  # (6,) of the coupling on the handle [N], [N m]
    scratch: NDArray[np.float64]  # (2, 6)
    b: NDArray[np.float64]  # (m,) of the rows without contact and pressure [m], [m3]
    x: NDArray[np.float64]  # (m,) [N], [Pa]


def make_condensed(position: NDArray[np.float64], contacts: int, cavities: int) -> Condensed:
    """An upright handle at position (3,) [m], with room for so many contacts and cavities."""
    m, upright, at = 3 * contacts + cavities, np.array([1.0, 0.0, 0.0, 0.0]), np.array(position, float)
    state = Condensed(
        make_suction_frame(contacts, cavities), np.full(1, -1, np.int64), at.copy(), upright.copy(), at,
        upright, np.zeros(6), np.zeros(6), np.zeros((2, 6)), np.zeros(m), np.zeros(m),
    )  # fmt: skip
    state.frame.position[:] = at
    return state


@inlined
def _rows_of(s, batch, k):
    """First row of point k of a batch, and how many rows it has."""
    at = batch.slots[k, 0]
    return (3 * s.frame.size[s.slot[0], 0] + at, 1) if batch.what[k] == FIELD else (3 * at, 3)


@kernel
def begin(s, now, h):
    """The handle's twist and b without contact and pressure; scratch[0] = F, wrench on the held handle."""
    f, frame, load, way = s.slot[0], s.frame, s.scratch[0], s.scratch[1]
    if f < 0:
        return
    share = min(max((now + 1 - frame.origin[f]) * h / frame.settings[f].step, 0.0), LATEST)
    for i in range(3):
        way[i] = s.target[i] - frame.position[f, i]
    quat_difference(s.target_q, frame.orientation[f], way[3:6])
    for i in range(6):
        load[i] = frame.load[f, i] + share * frame.load_momentum[f, i]
    for i in range(6):
        s.twist[i] = frame.drift[f, i]
        for j in range(6):
            s.twist[i] += frame.follow[f, i, j] * way[j] + frame.give[f, i, j] * load[j]
    for i in range(3 * frame.size[f, 0] + frame.size[f, 1]):
        s.b[i] = frame.b[f, i] + share * frame.momentum[f, i]
        for j in range(6):
            s.b[i] += frame.rows[f, i, j] * s.twist[j]


@kernel
def place(s, batch):
    """Contacts are where their gaps are counted from; a cavity has the volume that it would have."""
    for k in range(batch.count[0]):
        first, rows = _rows_of(s, batch, k)
        for i in range(4):
            batch.q[k, i] = 1.0 if i == 0 else 0.0
        for i in range(3):
            batch.x[k, i] = s.b[first] if rows == 1 and i == 0 else 0.0


@kernel
def free(s, batch):
    """d of contacts: their gaps and slips without contact."""
    for k in range(batch.count[0]):
        first, rows = _rows_of(s, batch, k)
        for i in range(3):
            batch.d[k, i] = s.b[first + i] if rows == 3 else 0.0
            batch.v[k, i] = 0.0


@kernel
def delassus(s, batch, w):
    """The frame's W of the batch's rows, to the lower triangle."""
    f = s.slot[0]
    whole = view_square(s.frame.w[f], 3 * s.frame.size[f, 0] + s.frame.size[f, 1])
    for p in range(batch.count[0]):
        row, rows = _rows_of(s, batch, p)
        for q in range(p + 1):
            column, columns = _rows_of(s, batch, q)
            for i in range(rows):
                for j in range(columns):
                    w[3 * batch.block[p] + i, 3 * batch.block[q] + j] += whole[row + i, column + j]


@kernel
def push(s, batch):
    """x of the rows."""
    for k in range(batch.count[0]):
        first, rows = _rows_of(s, batch, k)
        for i in range(rows):
            s.x[first + i] = batch.f[k, i]


@kernel
def end(s):
    """The handle's pose under contact and pressure, and what the coupling pulls it with."""
    f, frame, load, press = s.slot[0], s.frame, s.scratch[0], s.scratch[1]
    if f < 0:
        return
    press[:] = 0.0
    for i in range(3 * frame.size[f, 0] + frame.size[f, 1]):
        for j in range(6):
            press[j] += frame.rows[f, i, j] * s.x[i]
    for i in range(6):
        for j in range(6):
            s.twist[i] += frame.give[f, i, j] * press[j]
    for i in range(6):
        s.pull[i] = -load[i] - press[i]
        for j in range(6):
            s.pull[i] += frame.stiffness[f, i, j] * s.twist[j]
    for i in range(3):
        s.position[i] = frame.position[f, i] + s.twist[i]
    copy(frame.orientation[f], s.orientation)
    rotate_by(s.twist[3:6], s.orientation)


@kernel
def feel(s, hand):
    """The hand feels the reaction of the coupling."""
    for i in range(3):
        hand.force[i], hand.torque[i] = -s.pull[i], -s.pull[3 + i]
        hand.held[i] = s.position[i]


_SMALLEST = make_condensed(np.zeros(3), 1, 1)


@unit(_SMALLEST)
def condensed_unit(stage, s, batch, problem, h):
    """The stages of palpo.physics.contract.stages."""
    if stage == AIM:
        copy(batch.hand.position, s.target)
        copy(batch.hand.orientation, s.target_q)
    elif stage == BEGIN:
        begin(s, batch.now[0], h)
    elif stage == PLACE:
        place(s, batch)
    elif stage == FREE:
        free(s, batch)
    elif stage == DELASSUS:
        delassus(s, batch, view_square(problem.w, problem.rows[1]))
    elif stage == CLEAR:
        s.x[:] = 0.0
    elif stage == PUSH:
        push(s, batch)
    elif stage == END:
        end(s)
    elif stage == FEEL:
        feel(s, batch.hand)
    else:
        return NOT_OFFERED
    return DONE


CONDENSED = Kind("condensed", condensed_unit, typeof(_SMALLEST), points=lambda s: 0)
