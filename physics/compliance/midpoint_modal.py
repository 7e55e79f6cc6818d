"""A body of joined segments under the passive midpoint rule (002, II-B and III; EQUATIONS.md, 3).

Its segments may be whole, cut or reduced by balanced modes (`physics.reduction.segments`); no low loop takes
part. Its points are its k contact nodes. A force f acts on the velocity in the middle of the step,
vh = A f + v_f (14), and the step ends with x+ = x + T vh, v+ = 2 vh - v. Laws of contact ask for v+, so that

    d = T v+ = T (2 v_f - v) + 2 T A f

is what rows see, and 2 T A how it yields; what moves is T vh.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import NDArray

from palpo.physics.compliance.points import add_pair, weighted_points
from palpo.physics.contact.solvers.block import add_row
from palpo.physics.contract.stages import (
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FREE,
    MOVED,
    NOT_FINITE,
    NOT_OFFERED,
    PLACE,
    PUSH,
    SHAPE,
    Kind,
    unit,
)
from palpo.physics.exchange.atomics import view_flat, view_square
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import dot3, matvec3_transposed
from palpo.physics.reduction.segments import (
    SegmentedModel,
    SegmentedState,
    SegmentedWork,
    add_point_force,
    advance,
    apply,
    dissipated,
    empty_model,
    energies,
    floor_force,
    free,
    make_state,
    make_work,
    point_compliance,
    point_value,
    surface_values,
)

BOUNDED = 1e12
"""Past this energy [J] a run is lost."""


class MidpointModal(NamedTuple):
    """One body of n coordinates and k contact nodes."""

    model: SegmentedModel
    state: SegmentedState
    work: SegmentedWork
    v: NDArray[np.float64]  # (k, 3) velocity of the contact nodes at the step's start [m/s]
    vh: NDArray[np.float64]  # (k, 3) and in its middle without contact
    push: NDArray[np.float64]  # (k, 3) forces on them [N]
    seen: NDArray[np.float64]  # (k, 3) T v+ under these [m]
    block: NDArray[np.float64]  # (7, 3) scratch
    floor: NDArray[np.float64]  # (3,) force on the clamped nodes in the last step [N]
    energy: NDArray[np.float64]  # (segments + 1, 2) kinetic and elastic; the last row is the coupling's [J]
    lost: NDArray[np.float64]  # (1,) taken by all dampings since the start [J]


def make_midpoint_modal(model: SegmentedModel) -> MidpointModal:
    """At rest, without forces."""
    k = len(model.rest)
    v, vh, push, seen = (np.zeros((k, 3)) for _ in range(4))
    energy = np.zeros((len(model.segment_start), 2))
    return MidpointModal(
        model, make_state(model), make_work(model), v, vh, push, seen, np.zeros((7, 3)), np.zeros(3), energy,
        np.zeros(1),
    )  # fmt: skip


@kernel
def begin(s):
    """Velocity in the middle of the step without contact (4, 11 to 14)."""
    free(s.model, s.state, s.work)
    surface_values(s.model, s.state.v, s.v)
    surface_values(s.model, s.work.vh, s.vh)


@kernel
def shape(s, batch):
    """All contact nodes."""
    rest, x = s.model.rest, batch.x
    surface_values(s.model, s.state.x, x[: rest.shape[0]])
    for k in range(rest.shape[0]):
        for i in range(3):
            x[k, i] += rest[k, i]


@kernel
def place(s, batch):
    """Points on the contact nodes' surface."""
    rest = s.model.rest
    for k in range(batch.count[0]):
        point_value(s.model, s.state.x, batch.slots[k], batch.weights[k], batch.x[k])
        for i in range(3):
            for a in range(3):
                batch.x[k, i] += batch.weights[k, a] * rest[batch.slots[k, a], i]


@kernel
def free_points(s, batch, h):
    """T v+ of points without contact, and their velocity at the start."""
    weighted_points(s.v, batch, batch.v)
    weighted_points(s.vh, batch, batch.d)
    for k in range(batch.count[0]):
        for i in range(3):
            batch.d[k, i] = h * (2.0 * batch.d[k, i] - batch.v[k, i])


@kernel
def moved(s, batch, h):
    """T v+ of points under the forces pushed."""
    seen, push, compliance = s.seen, s.push, s.model.compliance
    flat = view_flat(seen)
    for a in range(push.shape[0]):
        for i in range(3):
            seen[a, i] = h * (2.0 * s.vh[a, i] - s.v[a, i])
    for a in range(push.shape[0]):
        for i in range(3):
            if push[a, i] != 0.0:
                add_row(flat, compliance[3 * a + i], 2.0 * h * push[a, i])
    weighted_points(seen, batch, batch.d)


@kernel
def delassus(s, batch, problem, h):
    """W += 2 T J_s A J_s^T (24 to 26)."""
    slots, weights, axes = batch.slots, batch.weights, batch.axes
    world, turned, part = s.block[0:3], s.block[3], s.block[4:7]
    w = view_square(problem.w, problem.rows[1])
    for a in range(batch.count[0]):
        for b in range(a + 1):
            point_compliance(s.model, slots[a], weights[a], slots[b], weights[b], world)
            for d in range(3):
                matvec3_transposed(world, axes[a, d], turned)
                for e in range(3):
                    part[d, e] = 2.0 * h * dot3(turned, axes[b, e])
            add_pair(w, batch, a, b, part)


@kernel
def push(s, batch):
    """Forces on points."""
    for k in range(batch.count[0]):
        add_point_force(batch.slots[k], batch.weights[k], batch.f[k], s.push)


@kernel
def end(s, batch):
    """All moves under the forces pushed (14, 18); energies, and the force on the floor (29)."""
    apply(s.model, s.work, s.push)
    for k in range(batch.count[0] if batch.wants[0].d else 0):
        point_value(s.model, s.work.vh, batch.slots[k], batch.weights[k], batch.d[k])
        for i in range(3):
            batch.d[k, i] *= s.model.step
    s.lost[0] += dissipated(s.model, s.state, s.work)
    floor_force(s.model, s.state, s.work, s.floor)
    advance(s.model, s.state, s.work)
    total = energies(s.model, s.state, s.energy)
    return DONE if total + abs(s.lost[0]) < BOUNDED else NOT_FINITE


_SMALLEST = make_midpoint_modal(empty_model())


@unit(_SMALLEST)
def midpoint_modal_unit(stage, s, batch, problem, h):
    """`int32 f(stage, state *, batch *, problem *, h)`: one stage of a MidpointModal."""
    if stage == BEGIN:
        begin(s)
    elif stage == SHAPE:
        shape(s, batch)
    elif stage == PLACE:
        place(s, batch)
    elif stage == FREE:
        free_points(s, batch, h)
    elif stage == MOVED:
        moved(s, batch, h)
    elif stage == DELASSUS:
        delassus(s, batch, problem, h)
    elif stage == CLEAR:
        s.push[:] = 0.0
    elif stage == PUSH:
        push(s, batch)
    elif stage == END:
        return end(s, batch)
    else:
        return NOT_OFFERED
    return DONE


MIDPOINT_MODAL = Kind("midpoint modal", midpoint_modal_unit, typeof(_SMALLEST), lambda s: len(s.push))
