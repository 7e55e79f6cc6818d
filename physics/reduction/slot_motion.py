"""Slots of a frame on its reduced model: where they are, how they move, and how they yield to forces.

The model and its state are `physics.reduction.interface_model`'s.
"""

from palpo.physics.exchange.constraint_frame import (
    EXTRAPOLATED,
    IS_FIELD,
    REDUCED,
    TURNS,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import (
    cross3,
    matvec3,
    quat_from_rotvec,
    quat_multiply,
)

JOIN_TIME = 0.01
"""Time [s] over which a new frame's slots leave the old one's positions. A jump of a micrometre, met by a
light tool within one tick, would be felt as a click; spread over ten ticks it is not."""


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
def pull_of(frame, f, slot):
    """Number of a slot among the frame's fields."""
    for k in range(frame.head[f].n_fields):
        if frame.field_slot[f, k] == slot:
            return k
    return 0


@kernel
def swept_rate(frame, f, state, slot, velocity, spin):
    """Rate [m3/s] of a field's volume by its body's rigid motion."""
    b, pull, rate = frame.slot_body[f, slot], frame.field_pull[f, pull_of(frame, f, slot)], 0.0
    for i in range(3):
        for j in range(3):
            axis = state.axes[b, j, i]
            rate += axis * (pull[i] * velocity[j] + pull[3 + i] * spin[j])
    return rate


@inlined
def _extrapolated_time(frame, f, slot, clock):
    """How long a slot has moved at its velocity, within the limits of time and distance."""
    if frame.head[f].motion != EXTRAPOLATED:
        return 0.0
    time, v = min(clock, frame.extrapolation[f, 1]), frame.slot_v[f, slot]
    speed = (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]) ** 0.5
    return frame.extrapolation[f, 0] / speed if time * speed > frame.extrapolation[f, 0] else time


@kernel
def slot_position(frame, f, state, slot, x):
    """x = present position of a slot (or its rotation vector since slot_q), joined to the frame before."""
    model_position(frame, f, state, slot, x)
    if frame.head[f].motion == REDUCED:
        share = max(0.0, 1.0 - state.clock[0] / JOIN_TIME)
        for i in range(3):
            x[i] += share * state.join[slot, i]


@kernel
def model_position(frame, f, state, slot, x):
    """x = where the model itself has a slot: what the full body has too, under the same forces."""
    if frame.head[f].motion != REDUCED:
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
    if frame.head[f].motion != REDUCED:
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
    if frame.head[f].motion == REDUCED:
        add_motion(frame, f, state, slot, x, 1.0, state.rate, state.velocity, state.spin, v)
    elif frame.head[f].motion == EXTRAPOLATED:
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
        step[0] += p[0] + h * swept_rate(frame, f, state, slot, velocity[b], spin[b])
        return
    arm, turn, along = state.scratch[1], state.scratch[2], state.scratch[3]
    matvec3(state.axes[b], p, along)
    for i in range(3):
        arm[i] = x[i] - state.centre[b, i]
    cross3(spin[b], arm, turn)
    for i in range(3):
        step[i] += along[i] + h * (velocity[b, i] + turn[i])


@inlined
def slot_orientation(frame, f, state, slot, turn, scratch, out):
    """out = orientation of a rotation slot whose rotation vector since slot_q is `turn`; scratch (4,).

    The frame of a floating body turns with the body instead.
    """
    b = frame.slot_body[f, slot]
    if frame.head[f].motion == REDUCED and frame.floating[f, b] == 1:
        quat_multiply(state.q[b], frame.slot_q[f, slot], out)
    else:
        quat_from_rotvec(turn, scratch)
        quat_multiply(scratch, frame.slot_q[f, slot], out)


@kernel
def slot_compliance(frame, f, state, a, b, h, out):
    """out (3, 3) = displacement of slot a on the modes under a unit force on slot b, in body axes [m/N].

    A floating body's rigid motion comes to it: `yield_rigidly`, `add_rigid_part`.
    """
    near = frame.head[f].n_near
    if a < near and b < near:
        for i in range(3):
            for j in range(3):
                out[i, j] = frame.compliance[f, 3 * a + i, 3 * b + j]
        return
    body = frame.slot_body[f, a]
    if body != frame.slot_body[f, b] or frame.head[f].motion != REDUCED:
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


@inlined
def add_rigid_row(frame, f, slot, arm, axis, weight, row):
    """row (6,) += weight times how a slot moves along an axis with unit velocities of its floating body's
    centre and unit spins about it, in body axes; arm (3,) [m]: where it is now. A field moves by its pull."""
    if frame.slot_turns[f, slot] == IS_FIELD:
        pull = frame.field_pull[f, pull_of(frame, f, slot)]
        for j in range(6):
            row[j] += weight * axis[0] * pull[j]
    elif frame.slot_turns[f, slot] == TURNS:
        for j in range(3):
            row[3 + j] += weight * axis[j]
    else:
        for j in range(3):
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            row[j] += weight * axis[j]
            row[3 + j] += weight * (arm[j1] * axis[j2] - arm[j2] * axis[j1])


@kernel
def yield_rigidly(frame, f, body, rows, h, motion):
    """motion (3, 6) = velocities of a floating body under unit forces along rows (3, 6), times h [m/N]."""
    scale, inverse = h * h / (1.0 + h * frame.damping[f, body, 0]), frame.inertia[f, body, 1]
    for i in range(3):
        for j in range(3):
            motion[i, j] = scale / frame.mass[f, body] * rows[i, j]
            motion[i, 3 + j] = scale * (
                inverse[j, 0] * rows[i, 3] + inverse[j, 1] * rows[i, 4] + inverse[j, 2] * rows[i, 5]
            )


@kernel
def add_rigid_part(motion, rows, part):
    """part (3, 3) += how rows (3, 6), columns, move with each motion (3, 6), rows."""
    for i in range(3):
        m0, m1, m2, m3, m4, m5 = motion[i]
        for j in range(3):
            r = rows[j]
            part[i, j] += m0 * r[0] + m1 * r[1] + m2 * r[2] + m3 * r[3] + m4 * r[4] + m5 * r[5]
