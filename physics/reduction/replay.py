"""Bringing a frame's reduced model to the present: the ticks since it was made, made again on it.

The forces of those ticks are known (physics.exchange.force_log), but no other body is there to answer: a
light part that is squeezed between joints by large forces, which cancel, would fall over like a rod that is
balanced with closed eyes, and farther with each frame. So the points that joints hold are led: each tick
brings them to where it left them, by what force that takes beside the logged one. That is C^-1 of how far
they would be off, with C their compliance to each other in one tick; what the new model knows better than the
old one then goes into the forces of the joints and not into gaps.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.constraint_frame import REDUCED
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import matvec3, matvec3_transposed
from palpo.physics.reduction.interface_model import (
    add_slot_force,
    advance,
    clear_forces,
    free_motion,
    pushed_motion,
)
from palpo.physics.reduction.slot_motion import (
    add_motion,
    add_rigid_part,
    add_rigid_row,
    model_position,
    slot_compliance,
    yield_rigidly,
)

MOST_LED = 64
"""Slots that can be led."""

SINGULAR = 1e-6
"""Share of their mean compliance that is added to that of a body's led slots: those of a rigid part depend on
each other."""


class HeldSlots(NamedTuple):
    """The slots that a frame's joints hold, those of one body side by side."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,) of them, -1 until a tick of the frame is made again
    slot: NDArray[np.int32]  # (MOST_LED,)
    first: NDArray[np.int32]  # (MOST_LED,) the first of the same body
    factor: NDArray[np.float64]  # (3 MOST_LED, 3 MOST_LED) Cholesky's of C, one block a body, body axes
    force: NDArray[np.float64]  # (MOST_LED, 3) how far they would be off [m], then the forces [N]; body axes
    vectors: NDArray[np.float64]  # (5, 3) scratch
    rows: NDArray[np.float64]  # (3, 3, 6) scratch


def make_led() -> HeldSlots:
    """None so far."""
    m = MOST_LED
    return HeldSlots(
        np.full(1, -1, np.int64), np.zeros(m, np.int32), np.zeros(m, np.int32), np.zeros((3 * m, 3 * m)),
        np.zeros((m, 3)), np.zeros((5, 3)), np.zeros((3, 3, 6)),
    )  # fmt: skip


@kernel
def replay(frame, f, state, led, log, entry, h):
    """One tick of the model under the logged forces of an entry of the force log, led by its joints.

    led.count is -1 at the first one after a frame was adopted.
    """
    free_motion(frame, f, state, h)
    clear_forces(frame, f, state)
    for k in range(log.used[entry]):
        slot = frame.slot_of[f, log.point[entry, k]]
        if slot >= 0:
            add_slot_force(frame, f, state, slot, log.force[entry, k])
    if frame.head[f].motion == REDUCED:
        if led.count[0] < 0:
            _find(frame, f, state, led, log, entry, h)
        if led.count[0] > 0:
            _lead(frame, f, state, led, log, entry, h)
    advance(frame, f, state, h)


@kernel
def replay_ticks(frame, f, state, led, log, first, until, h, work):
    """The ticks from `first` up to `until`, all of which the log still has.

    work (bodies,) [J] += that of their forces on each body.
    """
    mask = log.tick.shape[0] - 1
    for tick in range(first, until):
        replay(frame, f, state, led, log, tick & mask, h)
        add_work(frame, f, state, h, work)


@kernel
def add_work(frame, f, state, h, work):
    """work (bodies,) += what the tick's forces did."""
    for b in range(work.size):
        for k in range(frame.mode_body[f, b], frame.mode_body[f, b + 1]):
            work[b] += h * state.force[k] * state.rate[k]
        if frame.floating[f, b] == 1:
            for i in range(3):
                work[b] += h * state.wrench[b, i] * state.velocity[b, i]
                work[b] += h * state.wrench[b, 3 + i] * state.spin[b, i]


@kernel
def _find(frame, f, state, led, log, entry, h):
    """The slots that the entry's joints hold, body by body, and the factor of their compliance."""
    n = 0
    for b in range(frame.mass.shape[1]):
        first = n
        for k in range(log.used[entry]):
            slot = frame.slot_of[f, log.point[entry, k]]
            if log.led[entry, k] and slot >= 0 and frame.slot_body[f, slot] == b and n < MOST_LED:
                led.slot[n], led.first[n] = slot, first
                n += 1
        _gather(frame, f, state, led, first, n, h)
        _factor(led.factor, 3 * first, 3 * n)
    led.count[0] = n


@kernel
def _gather(frame, f, state, led, first, last, h):
    """The lower triangle of C of slots first .. last - 1, all of one body, made regular."""
    part, total = led.vectors[:3], 0.0
    for j in range(first, last):
        body = frame.slot_body[f, led.slot[j]]
        if frame.floating[f, body] == 1:
            _rigid_rows(frame, f, state, led, led.slot[j], led.rows[0])
            yield_rigidly(frame, f, body, led.rows[0], h, led.rows[1])
        for k in range(first, j + 1):
            slot_compliance(frame, f, state, led.slot[j], led.slot[k], h, part)
            if frame.floating[f, body] == 1:
                _rigid_rows(frame, f, state, led, led.slot[k], led.rows[2])
                add_rigid_part(led.rows[1], led.rows[2], part)
            for c in range(3):
                for d in range(3):
                    led.factor[3 * j + c, 3 * k + d] = part[c, d]
        for c in range(3):
            total += led.factor[3 * j + c, 3 * j + c]
    # where none of them can move, any regular matrix finds that no force is needed
    regular = SINGULAR * total / (3 * (last - first)) if total > 0.0 else 1.0
    for i in range(3 * first, 3 * last):
        led.factor[i, i] += regular


@inlined
def _rigid_rows(frame, f, state, led, slot, rows):
    """rows (3, 6): how a slot moves along the axes of its floating body with that one's centre and spin."""
    body, away, arm = frame.slot_body[f, slot], led.vectors[3], led.vectors[4]
    model_position(frame, f, state, slot, away)
    for i in range(3):
        away[i] -= state.centre[body, i]
    matvec3_transposed(state.axes[body], away, arm)
    for i in range(3):
        for j in range(3):
            away[j] = 1.0 if i == j else 0.0
        for j in range(6):
            rows[i, j] = 0.0
        add_rigid_row(frame, f, slot, arm, away, 1.0, rows[i])


@inlined
def _factor(a, first, last):
    """The lower triangle of a[first:last, first:last] becomes its Cholesky factor."""
    for i in range(first, last):
        for j in range(first, i + 1):
            rest = a[i, j]
            for k in range(first, j):
                rest -= a[i, k] * a[j, k]
            a[i, j] = rest**0.5 if i == j else rest / a[j, j]


@kernel
def _lead(frame, f, state, led, log, entry, h):
    """The forces that bring led slots to where the entry's tick left them are added to the tick's."""
    x, step, n = led.vectors[3], led.vectors[4], led.count[0]
    led.force[:n] = 0.0
    pushed_motion(frame, f, state, h)
    for k in range(log.used[entry]):
        slot = frame.slot_of[f, log.point[entry, k]]
        if slot < 0 or not log.led[entry, k]:
            continue
        model_position(frame, f, state, slot, x)
        for i in range(3):
            step[i] = 0.0
        add_motion(frame, f, state, slot, x, h, state.end_rate, state.end_velocity, state.end_spin, step)
        for i in range(3):
            step[i] = log.place[entry, k, i] - x[i] - step[i]
        for j in range(n):
            if led.slot[j] == slot:
                matvec3_transposed(state.axes[frame.slot_body[f, slot]], step, led.force[j])
    _solve(led)
    for j in range(n):
        slot = led.slot[j]
        matvec3(state.axes[frame.slot_body[f, slot]], led.force[j], step)
        add_slot_force(frame, f, state, slot, step)


@kernel
def _solve(led):
    """force = C^-1 force."""
    a, x = led.factor, led.force
    for i in range(3 * led.count[0]):
        for k in range(3 * led.first[i // 3], i):
            x[i // 3, i % 3] -= a[i, k] * x[k // 3, k % 3]
        x[i // 3, i % 3] /= a[i, i]
    for i in range(3 * led.count[0] - 1, -1, -1):
        x[i // 3, i % 3] /= a[i, i]
        for k in range(3 * led.first[i // 3], i):
            x[k // 3, k % 3] -= a[i, k] * x[i // 3, i % 3]
