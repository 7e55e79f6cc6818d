"""A rigid body on an admittance hold under the passive midpoint rule (002, II-B; EQUATIONS.md, 3).

Its law is `physics.bodies.admittance`: a wrench F acts on the velocity in the middle of the step,
V = Mh^-1 F + V_f (5), and the step ends with the velocity 2 V - V_k. Laws of contact ask for that one: rows
see T (2 V_f - V_k) and 2 T Mh^-1 is how the body yields; what moves is T V. Its one slot is its origin; arms
count from there, at the step's start.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from palpo.physics.bodies.admittance import (
    PlugModel,
    PlugState,
    make_plug,
    plug_advance,
    plug_energy,
    plug_free,
)
from palpo.physics.compliance.points import add_low_rank
from palpo.physics.contract.stages import (
    AIM,
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FEEL,
    FREE,
    MOVED,
    NOT_FINITE,
    NOT_OFFERED,
    PLACE,
    PUSH,
    ROTATION,
    SHAPE,
    Kind,
    unit,
)
from palpo.physics.exchange.atomics import view_square
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3

BOUNDED = 1e12
"""Past this energy [J] a run is lost."""


class MidpointHeld(NamedTuple):
    """One body and its hold."""

    model: PlugModel
    motion: PlugState
    target: NDArray[np.float64]  # (3,) [m] where the hold leads it by the end of the step
    target_q: NDArray[np.float64]  # (4,)
    load: NDArray[np.float64]  # (6,) besides hold and contacts [N], [N m]
    wrench: NDArray[np.float64]  # (6,) pushed [N], [N m]
    seen: NDArray[np.float64]  # (6,) T (2 V - V_k) [m], [rad]
    moment: NDArray[np.float64]  # (3,)
    stretch: NDArray[np.float64]  # (6,) of the hold in the middle of the step [m], [rad]
    hand: NDArray[np.float64]  # (6,) of the hold on the hand [N], [N m]
    energy: NDArray[np.float64]  # (1,) of body and hold [J]


def make_midpoint_held(model: PlugModel, motion: PlugState) -> MidpointHeld:
    """Led to where its target is."""
    load, wrench, seen, stretch, hand = (np.zeros(6) for _ in range(5))
    return MidpointHeld(
        model, motion, motion.target_position.copy(), motion.target_orientation.copy(), load, wrench, seen,
        np.zeros(3), stretch, hand, np.zeros(1),
    )  # fmt: skip


@kernel
def aim(s, batch):
    """The hand's pose is where the hold leads."""
    copy(batch.hand.position, s.target)
    copy(batch.hand.orientation, s.target_q)


@kernel
def begin(s):
    """Velocity in the middle of the step without contact (5)."""
    plug_free(s.model, s.motion, s.target, s.target_q, s.load)


@kernel
def place(s, batch):
    """The origin, and the turning."""
    for k in range(batch.count[0]):
        copy(s.motion.position, batch.x[k])
        copy(s.motion.orientation, batch.q[k])


@inlined
def _carried(twist, what, arm, out):
    """What a twist (6,) about the origin does to a point, or to the body's turning."""
    if what == ROTATION:
        for i in range(3):
            out[i] = twist[3 + i]
        return
    out[0] = twist[0] + twist[4] * arm[2] - twist[5] * arm[1]
    out[1] = twist[1] + twist[5] * arm[0] - twist[3] * arm[2]
    out[2] = twist[2] + twist[3] * arm[1] - twist[4] * arm[0]


@kernel
def free_points(s, batch, h):
    """T (2 V_f - V_k) of points, and their velocity at the start."""
    _foresee(s, h)
    for k in range(batch.count[0]):
        _carried(s.seen, batch.what[k], batch.arm[k], batch.d[k])
        _carried(s.motion.velocity, batch.what[k], batch.arm[k], batch.v[k])


@inlined
def _foresee(s, h):
    for i in range(6):
        s.seen[i] = h * (2.0 * s.motion.free[i] - s.motion.velocity[i])


@kernel
def moved(s, batch, h):
    """T (2 V - V_k) of points under the wrench pushed."""
    _foresee(s, h)
    for i in range(6):
        for j in range(6):
            s.seen[i] += 2.0 * h * s.model.inverse[i, j] * s.wrench[j]
    for k in range(batch.count[0]):
        _carried(s.seen, batch.what[k], batch.arm[k], batch.d[k])


@kernel
def delassus(s, batch, problem, h):
    """W += 2 T J_p Mh_p^-1 J_p^T (25, 26)."""
    for k in range(batch.count[0]):
        for d in range(3):
            row, give, axis = batch.rows[3 * k + d], batch.give[3 * k + d], batch.axes[k, d]
            for i in range(3):
                row[i] = 0.0 if batch.what[k] == ROTATION else axis[i]
                row[3 + i] = axis[i]
            if batch.what[k] != ROTATION:
                cross3(batch.arm[k], axis, row[3:6])
            for j in range(6):
                total = 0.0
                for i in range(6):
                    total += row[i] * s.model.inverse[i, j]
                give[j] = 2.0 * h * total
    add_low_rank(batch, view_square(problem.w, problem.rows[1]))


@kernel
def push(s, batch):
    """Forces on points, and moments."""
    for k in range(batch.count[0]):
        f, moment = batch.f[k], s.moment
        if batch.what[k] == ROTATION:
            copy(f, moment)
        else:
            cross3(batch.arm[k], f, moment)
            for i in range(3):
                s.wrench[i] += f[i]
        for i in range(3):
            s.wrench[3 + i] += moment[i]


@kernel
def end(s, batch):
    """It moves under the wrench pushed (14, 18); energies, and the hold's pull on the hand."""
    m, T = s.motion, s.model.step
    copy(m.error, s.stretch)
    plug_advance(s.model, m, s.wrench)
    for k in range(batch.count[0] if batch.wants[0].d else 0):
        _carried(m.middle, batch.what[k], batch.arm[k], batch.d[k])
        for i in range(3):
            batch.d[k, i] *= T
    # D_ad (V - W) + K_ad eh in the middle of the step: times W, it is work
    for i in range(6):
        s.stretch[i] += 0.5 * T * (m.middle[i] - m.target_velocity[i])
    for i in range(6):
        s.hand[i] = 0.0
        for j in range(6):
            s.hand[i] += s.model.damping[i, j] * (m.middle[j] - m.target_velocity[j])
            s.hand[i] += s.model.stiffness[i, j] * s.stretch[j]
    s.energy[0] = plug_energy(s.model, m)
    return DONE if s.energy[0] + abs(m.work[0].damping) < BOUNDED else NOT_FINITE


@kernel
def feel(s, batch):
    """The hold's pull on the hand, and where the body is."""
    for i in range(3):
        batch.hand.force[i] = s.hand[i]
        batch.hand.torque[i] = s.hand[3 + i]
        batch.hand.held[i] = s.motion.position[i]


_SMALLEST = make_midpoint_held(*make_plug(np.ones(6), np.ones(6), np.ones(6), 1.0))


@unit(_SMALLEST)
def midpoint_held_unit(stage, s, batch, problem, h):
    """`int32 f(stage, state *, batch *, problem *, h)`: one stage of a MidpointHeld."""
    if stage == AIM:
        aim(s, batch)
    elif stage == BEGIN:
        begin(s)
    elif stage == SHAPE:
        copy(s.motion.position, batch.x[0])
    elif stage == PLACE:
        place(s, batch)
    elif stage == FREE:
        free_points(s, batch, h)
    elif stage == MOVED:
        moved(s, batch, h)
    elif stage == DELASSUS:
        delassus(s, batch, problem, h)
    elif stage == CLEAR:
        s.wrench[:] = 0.0
    elif stage == PUSH:
        push(s, batch)
    elif stage == END:
        return end(s, batch)
    elif stage == FEEL:
        feel(s, batch)
    else:
        return NOT_OFFERED
    return DONE


MIDPOINT_HELD = Kind("midpoint held", midpoint_held_unit, typeof(_SMALLEST), lambda s: 1)
