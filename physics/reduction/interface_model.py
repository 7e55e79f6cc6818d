"""The reduced model of the low-rate bodies that the servo integrates.

Each low-rate body moves as x = c + R (X + V z): a rigid motion (only where nothing holds it) and modes of
the rational Krylov basis V (`physics.reduction.rational_krylov`) with V^T A_h V = 1, A_h = M + h C + h^2 K at
the servo's step h, so that backward Euler costs one product with S = V^T K V:

    z'+ = V^T M V z' + h (g - S z + V^T R^T f),    z+ = z + h z'+                     (EQUATIONS.md, 1)

K is the exact tangent, which the damping C = alpha M + beta K follows too: V^T M V is then
(1 - h (beta + h) S) / (1 + h alpha), and nothing has to be diagonal. The compliance is h^2 J V V^T J^T.
A slot that is a field has one row, W_p = V^T dV/dx, and its pull (G, T), force and moment of a unit pressure
about the centre, both in body axes: a volume changes at the rate W_p z' + G . R^T v + T . R^T w, so that one
that moves as a whole with its walls stays as it is. Rigid motions have their own velocities by Newton and
Euler, with the gyroscopic torque at the start of the tick. The body axes turn with the body, so a swinging
body keeps its linearisation.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.constraint_frame import (
    IS_FIELD,
    MODE_FADING,
    MODE_FORCE,
    MODE_RATE,
    MODE_Z,
    REDUCED,
    TURNS,
    Capacity,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import (
    cross3,
    matvec3,
    matvec3_transposed,
    quat_to_matrix,
    rotate_by,
)
from palpo.physics.reduction.slot_motion import model_position, pull_of, swept_rate


class InterfaceState(NamedTuple):
    """State of the reduced model, of its free motion and of the forces of the present tick."""

    z: NDArray[np.float64]  # (modes,)
    rate: NDArray[np.float64]  # (modes,)
    free_rate: NDArray[np.float64]  # (modes,) rate after the tick's free motion
    end_rate: NDArray[np.float64]  # (modes,) rate under the forces of the tick
    force: NDArray[np.float64]  # (modes,) V^T R^T f of the tick
    centre: NDArray[np.float64]  # (L, 3)
    q: NDArray[np.float64]  # (L, 4)
    axes: NDArray[np.float64]  # (L, 3, 3) rotation matrix of q
    velocity: NDArray[np.float64]  # (L, 3)
    spin: NDArray[np.float64]  # (L, 3)
    free_velocity: NDArray[np.float64]  # (L, 3)
    free_spin: NDArray[np.float64]  # (L, 3)
    end_velocity: NDArray[np.float64]  # (L, 3)
    end_spin: NDArray[np.float64]  # (L, 3)
    wrench: NDArray[np.float64]  # (L, 6) force and torque about the centre, world axes
    clock: NDArray[np.float64]  # (1,) time since the frame was adopted [s]
    join: NDArray[np.float64]  # (slots, 3) where the frame before had a slot, less where this one has it
    swept: NDArray[np.float64]  # (slots,) volume that rigid motion has added to a field since the frame [m3]
    weighed: NDArray[np.float64]  # (modes,) scratch
    scratch: NDArray[np.float64]  # (6, 3)


MOST_ENERGY = 1e3
"""Energy of motion [J] of the modes of a loop's bodies beyond which their model went astray: no hand can give
them as much. It is found thousands of ticks before a number is lost."""


@kernel
def is_astray(rate, modes):
    """Whether so many modes of unit mass move with more than MOST_ENERGY, or at a rate that is no number."""
    twice = 0.0
    for k in range(modes):
        twice += rate[k] * rate[k]
    return not twice < 2.0 * MOST_ENERGY


def make_interface_state(capacity: Capacity) -> InterfaceState:
    """A state at rest."""
    m, n = capacity.modes, capacity.bodies
    q = np.zeros((n, 4))
    q[:, 0] = 1.0
    return InterfaceState(
        np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m),
        np.zeros((n, 3)), q, np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3)), np.zeros((n, 3)),
        np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 6)),
        np.zeros(1), np.zeros((capacity.slots, 3)), np.zeros(capacity.slots), np.zeros(m), np.zeros((6, 3)),
    )  # fmt: skip


@kernel
def adopt(frame, f, state):
    """Start the state from slot f of the frame, with nothing to join."""
    for k in range(frame.head[f].n_slots):
        state.swept[k] = 0.0
        for i in range(3):
            state.join[k, i] = 0.0
    n = frame.head[f].n_modes
    for k in range(n):
        state.z[k] = frame.modes[f, MODE_Z, k]
        state.rate[k] = frame.modes[f, MODE_RATE, k]
    for b in range(frame.mass.shape[1]):
        for i in range(3):
            state.centre[b, i] = frame.centre[f, b, i]
            state.velocity[b, i] = frame.velocity[f, b, i]
            state.spin[b, i] = frame.spin[f, b, i]
        for i in range(4):
            state.q[b, i] = frame.orientation[f, b, i]
        quat_to_matrix(state.q[b], state.axes[b])
    state.clock[0] = 0.0


@inlined
def _angular_rate(frame, f, b, state, h, torque, out):
    """out = h I^-1 torque / (1 + h alpha) in world axes."""
    s = state.scratch
    matvec3_transposed(state.axes[b], torque, s[0])
    matvec3(frame.inertia[f, b, 1], s[0], s[1])
    matvec3(state.axes[b], s[1], out)
    scale = h / (1.0 + h * frame.damping[f, b, 0])
    for i in range(3):
        out[i] *= scale


@kernel
def _free_rates(stiffness, first, load, fading, t, damping, z, rate, free_rate, weighed, h):
    """free_rate = V^T M V rate + h (load + t fading - S z) over one body's modes; weighed: scratch.

    S is symmetric: whole rows are added, several columns an instruction, because every index starts at 0 and
    every array is an argument. One pass over S serves both terms that have it.
    """
    n = z.shape[0]
    kept = 1.0 / (1.0 + h * damping[0])
    held = h * (damping[1] + h) * kept
    for k in range(n):
        free_rate[k] = kept * rate[k] + h * (load[k] + t * fading[k])
        weighed[k] = h * z[k] + held * rate[k]
    for j in range(n):
        row, w = stiffness[j, first : first + n], weighed[j]
        for k in range(n):
            free_rate[k] -= w * row[k]


@kernel
def free_motion(frame, f, state, h):
    """Velocities at the tick's end without contact force."""
    if frame.head[f].motion != REDUCED:
        return
    s = state.scratch
    for b in range(frame.mass.shape[1]):
        first, last = frame.mode_body[f, b], frame.mode_body[f, b + 1]
        _free_rates(
            frame.stiffness[f, first:last], first, frame.modes[f, MODE_FORCE, first:last],
            frame.modes[f, MODE_FADING, first:last], state.clock[0] + h, frame.damping[f, b],
            state.z[first:last], state.rate[first:last], state.free_rate[first:last],
            state.weighed[first:last], h,
        )  # fmt: skip
        if frame.floating[f, b] == 0:
            continue
        damped = 1.0 / (1.0 + h * frame.damping[f, b, 0])
        for i in range(3):
            state.free_velocity[b, i] = (state.velocity[b, i] + h * frame.gravity[f, i]) * damped
        matvec3_transposed(state.axes[b], state.spin[b], s[2])
        matvec3(frame.inertia[f, b, 0], s[2], s[3])
        matvec3(state.axes[b], s[3], s[4])
        cross3(s[4], state.spin[b], s[3])
        _angular_rate(frame, f, b, state, h, s[3], s[5])
        for i in range(3):
            state.free_spin[b, i] = state.spin[b, i] * damped + s[5, i]


@kernel
def clear_forces(frame, f, state):
    """No force acts in the tick so far."""
    for k in range(frame.head[f].n_modes):
        state.force[k] = 0.0
    for b in range(frame.mass.shape[1]):
        for i in range(6):
            state.wrench[b, i] = 0.0


@kernel
def pushed_motion(frame, f, state, h):
    """Velocities at the tick's end under the tick's forces so far."""
    if frame.head[f].motion != REDUCED:
        return
    for k in range(frame.head[f].n_modes):
        state.end_rate[k] = state.free_rate[k] + h * state.force[k]
    s = state.scratch
    for b in range(frame.mass.shape[1]):
        if frame.floating[f, b] == 0:
            continue
        scale = h / ((1.0 + h * frame.damping[f, b, 0]) * frame.mass[f, b])
        _angular_rate(frame, f, b, state, h, state.wrench[b, 3:6], s[5])
        for i in range(3):
            state.end_velocity[b, i] = state.free_velocity[b, i] + scale * state.wrench[b, i]
            state.end_spin[b, i] = state.free_spin[b, i] + s[5, i]


@kernel
def add_slot_force(frame, f, state, slot, force):
    """Add a force [N] (or moment [N m] on a rotation slot), world axes, to the tick's forces."""
    if frame.head[f].motion != REDUCED:
        return
    b = frame.slot_body[f, slot]
    local, arm, turn = state.scratch[0], state.scratch[1], state.scratch[2]
    if frame.floating[f, b] == 1 and frame.slot_turns[f, slot] == TURNS:
        for i in range(3):
            state.wrench[b, 3 + i] += force[i]
        return
    if frame.slot_turns[f, slot] == IS_FIELD:
        for i in range(3):
            local[i] = force[i]
        if frame.floating[f, b] == 1:
            pull = frame.field_pull[f, pull_of(frame, f, slot)]
            matvec3(state.axes[b], pull[0:3], arm)
            matvec3(state.axes[b], pull[3:6], turn)
            for i in range(3):
                state.wrench[b, i] += force[0] * arm[i]
                state.wrench[b, 3 + i] += force[0] * turn[i]
    elif frame.floating[f, b] == 1:
        # the arm of the model, not of the joined position: the full body must get the same torque
        model_position(frame, f, state, slot, state.scratch[3])
        for i in range(3):
            arm[i] = state.scratch[3, i] - state.centre[b, i]
        cross3(arm, force, turn)
        for i in range(3):
            state.wrench[b, i] += force[i]
            state.wrench[b, 3 + i] += turn[i]
        matvec3_transposed(state.axes[b], force, local)
    else:
        for i in range(3):
            local[i] = force[i]
    first, last = frame.mode_body[f, b], frame.mode_body[f, b + 1]
    modal = state.force[first:last]
    for i in range(3):
        row, s = frame.slot_modes[f, slot, i, first:last], local[i]
        for k in range(row.shape[0]):
            modal[k] += s * row[k]


@kernel
def advance(frame, f, state, h):
    """Finish the tick: velocities with the tick's forces, then positions."""
    state.clock[0] += h
    if frame.head[f].motion != REDUCED:
        return
    pushed_motion(frame, f, state, h)
    for k in range(frame.head[f].n_fields):
        slot = frame.field_slot[f, k]
        b = frame.slot_body[f, slot]
        if frame.floating[f, b] == 1:
            rate = swept_rate(frame, f, state, slot, state.end_velocity[b], state.end_spin[b])
            state.swept[slot] += h * rate
    for k in range(frame.head[f].n_modes):
        state.rate[k] = state.end_rate[k]
        state.z[k] += h * state.rate[k]
    s = state.scratch
    for b in range(frame.mass.shape[1]):
        if frame.floating[f, b] == 0:
            continue
        for i in range(3):
            state.velocity[b, i] = state.end_velocity[b, i]
            state.spin[b, i] = state.end_spin[b, i]
            state.centre[b, i] += h * state.velocity[b, i]
            s[4, i] = h * state.spin[b, i]
        rotate_by(s[4], state.q[b])
        quat_to_matrix(state.q[b], state.axes[b])


@kernel
def store(frame, f, state, base_tick, h):
    """Write the state back into slot f as its new base, with all ticks h [s] before base_tick contained."""
    later = h * (base_tick - frame.head[f].base_tick)
    for k in range(frame.head[f].n_modes):
        frame.modes[f, MODE_FORCE, k] += later * frame.modes[f, MODE_FADING, k]
        frame.modes[f, MODE_Z, k] = state.z[k]
        frame.modes[f, MODE_RATE, k] = state.rate[k]
    for k in range(frame.head[f].n_fields):
        frame.slot_x[f, frame.field_slot[f, k], 0] += state.swept[frame.field_slot[f, k]]
    for b in range(frame.mass.shape[1]):
        for i in range(3):
            frame.centre[f, b, i] = state.centre[b, i]
            frame.velocity[f, b, i] = state.velocity[b, i]
            frame.spin[f, b, i] = state.spin[b, i]
        for i in range(4):
            frame.orientation[f, b, i] = state.q[b, i]
    frame.head[f].base_tick = base_tick
