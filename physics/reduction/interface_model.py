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
    BASE_TICK,
    EXTRAPOLATED,
    IS_FIELD,
    MODE_FORCE,
    MODE_RATE,
    MODE_Z,
    MOTION,
    N_FIELDS,
    N_MODES,
    N_NEAR,
    N_SLOTS,
    REDUCED,
    TURNS,
    Capacity,
)
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import (
    cross3,
    matvec3,
    matvec3_transposed,
    quat_from_rotvec,
    quat_multiply,
    quat_to_matrix,
    rotate_by,
)

JOIN_TIME = 0.01
"""Time [s] over which a new frame's slots leave the old one's positions. A jump of a micrometre, met by a
light tool within one tick, would be felt as a click; spread over ten ticks it is not."""


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
    for k in range(frame.head[f, N_SLOTS]):
        state.swept[k] = 0.0
        for i in range(3):
            state.join[k, i] = 0.0
    n = frame.head[f, N_MODES]
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
def _free_rates(stiffness, first, load, damping, z, rate, free_rate, weighed, h):
    """free_rate = V^T M V rate + h (load - S z) over one body's modes; weighed: scratch.

    S is symmetric: whole rows are added, several columns an instruction, because every index starts at 0 and
    every array is an argument. One pass over S serves both terms that have it.
    """
    n = z.shape[0]
    kept = 1.0 / (1.0 + h * damping[0])
    held = h * (damping[1] + h) * kept
    for k in range(n):
        free_rate[k] = kept * rate[k] + h * load[k]
        weighed[k] = h * z[k] + held * rate[k]
    for j in range(n):
        row, w = stiffness[j, first : first + n], weighed[j]
        for k in range(n):
            free_rate[k] -= w * row[k]


@kernel
def _product(a, b):
    """Scalar product in four interleaved sums: one alone would wait for every addition.

    The order is fixed here and not left to the compiler, so that a run and its replay agree bit for bit.
    """
    n = a.shape[0] // 4 * 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for k in range(0, n, 4):
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
    for k in range(n, a.shape[0]):
        s0 += a[k] * b[k]
    return (s0 + s1) + (s2 + s3)


@kernel
def free_motion(frame, f, state, h):
    """Velocities at the tick's end without contact force."""
    if frame.head[f, MOTION] != REDUCED:
        return
    s = state.scratch
    for b in range(frame.mass.shape[1]):
        first, last = frame.mode_body[f, b], frame.mode_body[f, b + 1]
        _free_rates(
            frame.stiffness[f, first:last], first, frame.modes[f, MODE_FORCE, first:last],
            frame.damping[f, b], state.z[first:last], state.rate[first:last],
            state.free_rate[first:last], state.weighed[first:last], h,
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
    for k in range(frame.head[f, N_MODES]):
        state.force[k] = 0.0
    for b in range(frame.mass.shape[1]):
        for i in range(6):
            state.wrench[b, i] = 0.0


@kernel
def pushed_motion(frame, f, state, h):
    """Velocities at the tick's end under the tick's forces so far."""
    if frame.head[f, MOTION] != REDUCED:
        return
    for k in range(frame.head[f, N_MODES]):
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


@inlined
def _extrapolated_time(frame, f, slot, clock):
    """How long a slot has moved at its velocity, within the limits of time and distance."""
    if frame.head[f, MOTION] != EXTRAPOLATED:
        return 0.0
    time, v = min(clock, frame.extrapolation[f, 1]), frame.slot_v[f, slot]
    speed = (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) ** 0.5
    return frame.extrapolation[f, 0] / speed if time * speed > frame.extrapolation[f, 0] else time


@kernel
def slot_position(frame, f, state, slot, x):
    """x = present position of a slot (or its rotation vector since slot_q), joined to the frame before."""
    model_position(frame, f, state, slot, x)
    if frame.head[f, MOTION] == REDUCED:
        share = max(0.0, 1.0 - state.clock[0] / JOIN_TIME)
        for i in range(3):
            x[i] += share * state.join[slot, i]


@kernel
def model_position(frame, f, state, slot, x):
    """x = where the model itself has a slot: what the full body has too, under the same forces."""
    if frame.head[f, MOTION] != REDUCED:
        time = _extrapolated_time(frame, f, slot, state.clock[0])
        for i in range(3):
            x[i] = frame.slot_x[f, slot, i] + time * frame.slot_v[f, slot, i]
        return
    b = frame.slot_body[f, slot]
    first, last = frame.mode_body[f, b], frame.mode_body[f, b + 1]
    p = state.scratch[0]
    for i in range(3):
        row = frame.slot_modes[f, slot, i, first:last]
        p[i] = frame.slot_x[f, slot, i] + _product(row, state.z[first:last])
    if frame.floating[f, b] == 0 or frame.slot_turns[f, slot] != 0:
        for i in range(3):
            x[i] = p[i]
        x[0] += state.swept[slot]  # of fields alone
    else:
        matvec3(state.axes[b], p, x)
        for i in range(3):
            x[i] += state.centre[b, i]


@kernel
def slot_step(frame, f, state, slot, x, h, step):
    """step = displacement of a slot at present position x over the tick's free motion."""
    _step(frame, f, state, slot, x, h, state.free_rate, state.free_velocity, state.free_spin, step)


@kernel
def slot_pushed_step(frame, f, state, slot, x, h, step):
    """As `slot_step`, under the tick's forces, after `pushed_motion`."""
    _step(frame, f, state, slot, x, h, state.end_rate, state.end_velocity, state.end_spin, step)


@kernel
def _step(frame, f, state, slot, x, h, rate, velocity, spin, step):
    """step = displacement of a slot at present position x in h at these velocities."""
    if frame.head[f, MOTION] != REDUCED:
        clock = state.clock[0]
        time = _extrapolated_time(frame, f, slot, clock + h) - _extrapolated_time(frame, f, slot, clock)
        for i in range(3):
            step[i] = frame.slot_step[f, slot, i] + time * frame.slot_v[f, slot, i]
        return
    clock = state.clock[0]
    left = max(0.0, 1.0 - (clock + h) / JOIN_TIME) - max(0.0, 1.0 - clock / JOIN_TIME)
    for i in range(3):
        step[i] = left * state.join[slot, i]
    add_motion(frame, f, state, slot, x, h, rate, velocity, spin, step)


@kernel
def slot_velocity(frame, f, state, slot, x, v):
    """v = velocity of a slot at present position x [m/s] or [rad/s]; 0 where a frame tells none."""
    for i in range(3):
        v[i] = 0.0
    if frame.head[f, MOTION] == REDUCED:
        add_motion(frame, f, state, slot, x, 1.0, state.rate, state.velocity, state.spin, v)
    elif frame.head[f, MOTION] == EXTRAPOLATED:
        for i in range(3):
            v[i] = frame.slot_v[f, slot, i]


@kernel
def add_motion(frame, f, state, slot, x, h, rate, velocity, spin, step):
    """step += h times the velocity of a slot of the reduced model at these velocities."""
    b = frame.slot_body[f, slot]
    first, last = frame.mode_body[f, b], frame.mode_body[f, b + 1]
    p = state.scratch[0]
    for i in range(3):
        row = frame.slot_modes[f, slot, i, first:last]
        p[i] = h * _product(row, rate[first:last])
    if frame.floating[f, b] == 0:
        for i in range(3):
            step[i] += p[i]
        return
    if frame.slot_turns[f, slot] == TURNS:
        for i in range(3):
            step[i] += h * spin[b, i]
        return
    if frame.slot_turns[f, slot] == IS_FIELD:
        step[0] += p[0] + h * _swept_rate(frame, f, state, slot, velocity[b], spin[b])
        return
    arm, turn, along = state.scratch[1], state.scratch[2], state.scratch[3]
    matvec3(state.axes[b], p, along)
    for i in range(3):
        arm[i] = x[i] - state.centre[b, i]
    cross3(spin[b], arm, turn)
    for i in range(3):
        step[i] += along[i] + h * (velocity[b, i] + turn[i])


@kernel
def pull_of(frame, f, slot):
    """Number of a slot among the frame's fields."""
    for k in range(frame.head[f, N_FIELDS]):
        if frame.field_slot[f, k] == slot:
            return k
    return 0


@inlined
def _has_field(frame, f, a, b):
    return frame.slot_turns[f, a] == IS_FIELD or frame.slot_turns[f, b] == IS_FIELD


@kernel
def _swept_rate(frame, f, state, slot, velocity, spin):
    """Rate [m3/s] of a field's volume by its body's rigid motion."""
    b, pull, rate = frame.slot_body[f, slot], frame.field_pull[f, pull_of(frame, f, slot)], 0.0
    for i in range(3):
        for j in range(3):
            axis = state.axes[b, j, i]
            rate += axis * (pull[i] * velocity[j] + pull[3 + i] * spin[j])
    return rate


@kernel
def _add_field_compliance(frame, f, a, b, scale, out):
    """out += scale (G_a . v_b + T_a . w_b): the rigid part of two slots, at least one a field."""
    body, turned = frame.slot_body[f, a], frame.slot_turns[f, a] != IS_FIELD
    field, other = (b, a) if turned else (a, b)
    pull = frame.field_pull[f, pull_of(frame, f, field)]
    mass, inverse = frame.mass[f, body], frame.inertia[f, body, 1]
    for i in range(3):
        i1, i2 = (i + 1) % 3, (i + 2) % 3
        if frame.slot_turns[f, other] == IS_FIELD:
            second = frame.field_pull[f, pull_of(frame, f, other)]
            out[0, 0] += scale * pull[i] * second[i] / mass
            for j in range(3):
                out[0, 0] += scale * pull[3 + i] * inverse[i, j] * second[3 + j]
            continue
        # velocity of a point under a unit pressure: G / m + (I^-1 T) x X
        x, spin_1, spin_2 = frame.slot_x[f, other], 0.0, 0.0
        for j in range(3):
            spin_1 += inverse[i1, j] * pull[3 + j]
            spin_2 += inverse[i2, j] * pull[3 + j]
        value = scale * (pull[i] / mass + spin_1 * x[i2] - spin_2 * x[i1])
        if turned:
            out[i, 0] += value
        else:
            out[0, i] += value


@kernel
def slot_compliance(frame, f, state, a, b, h, out):
    """out (3, 3) = displacement of slot a under a unit force on slot b, in body axes [m/N]."""
    near = frame.head[f, N_NEAR]
    if a < near and b < near:
        for i in range(3):
            for j in range(3):
                out[i, j] = frame.compliance[f, 3 * a + i, 3 * b + j]
        return
    body = frame.slot_body[f, a]
    if body != frame.slot_body[f, b] or frame.head[f, MOTION] != REDUCED:
        for i in range(3):
            for j in range(3):
                out[i, j] = 0.0
        return
    first, last = frame.mode_body[f, body], frame.mode_body[f, body + 1]
    for i in range(3):
        row_a = frame.slot_modes[f, a, i]
        for j in range(3):
            row_b = frame.slot_modes[f, b, j]
            s = 0.0
            for k in range(first, last):
                s += row_a[k] * row_b[k]
            out[i, j] = h * h * s
        if a == b:
            out[i, i] += frame.slot_rest[f, a, i]
    if frame.floating[f, body] == 1 and _has_field(frame, f, a, b):
        _add_field_compliance(frame, f, a, b, h * h / (1.0 + h * frame.damping[f, body, 0]), out)
    elif frame.floating[f, body] == 1:
        add_rigid_compliance(
            frame.mass[f, body],
            frame.inertia[f, body, 1],
            frame.slot_x[f, a],
            frame.slot_x[f, b],
            h * h / (1.0 + h * frame.damping[f, body, 0]),
            out,
        )


@kernel
def add_rigid_compliance(mass, inertia_inverse, ra, rb, scale, out):
    """out += scale (1/m - [ra]x I^-1 [rb]x), the rigid part of a floating body's compliance."""
    for i in range(3):
        out[i, i] += scale / mass
        for j in range(3):
            # column j of -[rb]x is -(rb x e_j); left factor [ra]x acts on I^-1 of it
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            # rb x e_j has components +rb[j2] at j1 and -rb[j1] at j2
            i1, i2 = (i + 1) % 3, (i + 2) % 3
            w1 = inertia_inverse[i1, j1] * rb[j2] - inertia_inverse[i1, j2] * rb[j1]
            w2 = inertia_inverse[i2, j1] * rb[j2] - inertia_inverse[i2, j2] * rb[j1]
            # (w x ra)_i = w[i1] ra[i2] - w[i2] ra[i1]
            out[i, j] += scale * (w1 * ra[i2] - w2 * ra[i1])


@kernel
def add_slot_force(frame, f, state, slot, force):
    """Add a force [N] (or moment [N m] on a rotation slot), world axes, to the tick's forces."""
    if frame.head[f, MOTION] != REDUCED:
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
    if frame.head[f, MOTION] != REDUCED:
        return
    pushed_motion(frame, f, state, h)
    for k in range(frame.head[f, N_FIELDS]):
        slot = frame.field_slot[f, k]
        b = frame.slot_body[f, slot]
        if frame.floating[f, b] == 1:
            rate = _swept_rate(frame, f, state, slot, state.end_velocity[b], state.end_spin[b])
            state.swept[slot] += h * rate
    for k in range(frame.head[f, N_MODES]):
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


@inlined
def slot_orientation(frame, f, state, slot, turn, scratch, out):
    """out = orientation of a rotation slot whose rotation vector since slot_q is `turn`; scratch (4,).

    The frame of a floating body turns with the body instead.
    """
    b = frame.slot_body[f, slot]
    if frame.head[f, MOTION] == REDUCED and frame.floating[f, b] == 1:
        quat_multiply(state.q[b], frame.slot_q[f, slot], out)
    else:
        quat_from_rotvec(turn, scratch)
        quat_multiply(scratch, frame.slot_q[f, slot], out)


@kernel
def store(frame, f, state, base_tick):
    """Write the state back into slot f as its new base, with all ticks before base_tick contained."""
    for k in range(frame.head[f, N_MODES]):
        frame.modes[f, MODE_Z, k] = state.z[k]
        frame.modes[f, MODE_RATE, k] = state.rate[k]
    for k in range(frame.head[f, N_FIELDS]):
        frame.slot_x[f, frame.field_slot[f, k], 0] += state.swept[frame.field_slot[f, k]]
    for b in range(frame.mass.shape[1]):
        for i in range(3):
            frame.centre[f, b, i] = state.centre[b, i]
            frame.velocity[f, b, i] = state.velocity[b, i]
            frame.spin[f, b, i] = state.spin[b, i]
        for i in range(4):
            frame.orientation[f, b, i] = state.q[b, i]
    frame.head[f, BASE_TICK] = base_tick
