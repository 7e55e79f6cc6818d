"""How the slots of a frame yield to forces on each other (`physics.reduction.interface_model`)."""

from palpo.physics.exchange.constraint_frame import (
    IS_FIELD,
    REDUCED,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.reduction.slot_motion import pull_of


@inlined
def _has_field(frame, f, a, b):
    return frame.slot_turns[f, a] == IS_FIELD or frame.slot_turns[f, b] == IS_FIELD


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
