"""Soft, rigid and beam bodies whose model a low loop sends in frames: modes and rigid motions, or offered
positions and compliances (palpo.physics.exchange.constraint_frame).

One state has all bodies of one low loop. A slot of the engine is a number that the frames call a point; a
frame carries only some. A point that it lacks has no place (infinity): nothing may touch it.

A new frame is brought to the present under the forces that the log has for the ticks since it was made. With
modes, points leave the old frame's positions smoothly, but for those of a model that went astray; offered
points jump, which ADOPT tells.
"""

import numpy as np
from numba import typeof

from palpo.physics.compliance.modal_state import Modal, delassus, look, make_modal
from palpo.physics.contract.stages import (
    ADOPT,
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
    ROTATION,
    Kind,
    unit,
)
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.buffer import acquire, is_fresh, make_control, reader_slot
from palpo.physics.exchange.constraint_frame import (
    EXACT,
    EXTRAPOLATED,
    HELD,
    REDUCED,
    TURNS,
    Capacity,
    make_frame,
)
from palpo.physics.exchange.force_log import make_force_log
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_difference
from palpo.physics.reduction.interface_model import (
    add_slot_force,
    adopt,
    advance,
    clear_forces,
    free_motion,
    is_astray,
    pushed_motion,
)
from palpo.physics.reduction.replay import replay
from palpo.physics.reduction.slot_motion import (
    slot_compliance,
    slot_orientation,
    slot_position,
    slot_pushed_step,
    slot_step,
    slot_velocity,
)


@kernel
def place(s, batch):
    """x and q of the batch."""
    at = s.looked
    for k in range(batch.count[0]):
        for i in range(3):
            batch.x[k, i] = 0.0
        for c in range(3):
            weight, p = batch.weights[k, c], batch.slots[k, c]
            if weight != 0.0:
                look(s, p)
                for i in range(3):
                    batch.x[k, i] += weight * at.x[p, i]
        for i in range(4):
            turned = batch.what[k] == ROTATION
            batch.q[k, i] = at.q[batch.slots[k, 0], i] if turned else (1.0 if i == 0 else 0.0)


@kernel
def clear(s, f):
    """No force is pushed."""
    clear_forces(s.frame, f, s.now)
    s.loads[0] = 0


@kernel
def adopt_newest(s, batch, h):
    """The newest frame, if one waits, brought to the present; d of the batch is how far its points jump."""
    told, at, control, tick = batch.frame[0], s.looked, s.control, batch.now[0]
    told.fresh, told.replayed = 0, 0
    for k in range(batch.count[0]):
        for i in range(3):
            batch.d[k, i] = 0.0
    if not is_fresh(control):
        return
    had = told.id > 0
    if had:
        place(s, batch)
    before, lost = at.stamp[0], is_astray(s.now.rate, s.frame.head[reader_slot(control)].n_modes)
    at.stamp[0] += 1
    at.stamp[1] += 1
    f, _ = acquire(control)
    adopt(s.frame, f, s.now)
    s.led.count[0] = -1
    mask = s.log.tick.shape[0] - 1
    for past in range(s.frame.head[f].base_tick, tick):
        entry = past & mask
        if s.log.tick[entry] == past:
            replay(s.frame, f, s.now, s.led, s.log, entry, h)
            told.replayed += 1
    clear(s, f)
    s.now.clock[0] = 0.0
    motion = s.frame.head[f].motion
    if had and motion == REDUCED:
        if not lost:
            join_places(s, f, before)
    elif had and motion != EXACT:
        _jump(s, f, batch)
    told.fresh, told.id = 1, s.frame.head[f].id
    told.stays = 1 if motion in (HELD, EXTRAPOLATED) else 0
    told.base_tick = s.frame.head[f].base_tick


@kernel
def join_places(s, f, before):
    """now.join of every point that was looked up last and that the new frame carries too."""
    x, q, at = s.vectors[1], s.vectors[2], s.looked
    for slot in range(s.frame.head[f].n_slots):
        p = s.frame.slot_point[f, slot]
        if at.x_stamp[p] != before or not np.isfinite(at.x[p, 0]):
            continue
        slot_position(s.frame, f, s.now, slot, x)
        if s.frame.slot_turns[f, slot] == TURNS:
            slot_orientation(s.frame, f, s.now, slot, x, s.vectors[0], q)
            quat_difference(at.q[p], q, s.now.join[slot])
        else:
            for i in range(3):
                s.now.join[slot, i] = at.x[p, i] - x[i]


@kernel
def _jump(s, f, batch):
    """d of the batch: where its points are, less where they were, for those that the new frame carries."""
    x, at = s.vectors[1], s.looked
    for k in range(batch.count[0]):
        for c in range(3):
            weight, p = batch.weights[k, c], batch.slots[k, c]
            slot = s.frame.slot_of[f, p]
            if weight == 0.0 or slot < 0 or not np.isfinite(at.x[p, 0]):
                continue
            slot_position(s.frame, f, s.now, slot, x)
            for i in range(3):
                batch.d[k, i] += weight * (x[i] - at.x[p, i])


@kernel
def free(s, batch, h):
    """d of the batch in the free motion, and v at its start if it is wanted."""
    f, at, v, wanted = reader_slot(s.control), s.looked, s.vectors[1], batch.wants[0].v == 1
    for k in range(batch.count[0]):
        for i in range(3):
            batch.d[k, i] = 0.0
            if wanted:
                batch.v[k, i] = 0.0
        for c in range(3):
            weight, p = batch.weights[k, c], batch.slots[k, c]
            if weight == 0.0:
                continue
            slot = look(s, p)
            if slot < 0:
                continue
            if at.step_stamp[p] != at.stamp[1]:
                at.step_stamp[p] = at.stamp[1]
                slot_step(s.frame, f, s.now, slot, at.x[p], h, at.step[p])
            for i in range(3):
                batch.d[k, i] += weight * at.step[p, i]
            if wanted:
                slot_velocity(s.frame, f, s.now, slot, at.x[p], v)
                for i in range(3):
                    batch.v[k, i] += weight * v[i]


@kernel
def moved(s, batch, h):
    """d of the batch under the pushed forces."""
    f, d = reader_slot(s.control), s.vectors[1]
    pushed_motion(s.frame, f, s.now, h)
    for k in range(batch.count[0]):
        for i in range(3):
            batch.d[k, i] = 0.0
        for c in range(3):
            weight, p = batch.weights[k, c], batch.slots[k, c]
            if weight == 0.0:
                continue
            slot = look(s, p)
            if slot < 0:
                continue
            slot_pushed_step(s.frame, f, s.now, slot, s.looked.x[p], h, d)
            for j in range(s.loads[0]):
                slot_compliance(s.frame, f, s.now, slot, s.loaded[j], h, s.part[1])
                for i in range(3):
                    give, force = s.part[1, i], s.load[s.loaded[j]]
                    d[i] += give[0] * force[0] + give[1] * force[1] + give[2] * force[2]
            for i in range(3):
                batch.d[k, i] += weight * d[i]


@kernel
def push(s, batch):
    """The batch's forces on the model, at its own arms: the full bodies must get the same torques."""
    f, force = reader_slot(s.control), s.vectors[1]
    for k in range(batch.count[0]):
        if batch.f[k, 0] == 0.0 and batch.f[k, 1] == 0.0 and batch.f[k, 2] == 0.0:
            continue
        for c in range(3):
            weight, p = batch.weights[k, c], batch.slots[k, c]
            slot = s.frame.slot_of[f, p]
            if weight == 0.0 or slot < 0:
                continue
            for i in range(3):
                force[i] = weight * batch.f[k, i]
            if s.frame.head[f].motion == REDUCED:
                add_slot_force(s.frame, f, s.now, slot, force)
            else:
                _load(s, slot, force)


@kernel
def _load(s, slot, force):
    """A force on a slot of a body that is as it was offered."""
    n = s.loads[0]
    for j in range(n):
        if s.loaded[j] == slot:
            for i in range(3):
                s.load[slot, i] += force[i]
            return
    s.loaded[n] = slot
    s.loads[0] = n + 1
    for i in range(3):
        s.load[slot, i] = force[i]


@kernel
def gained_speed(frame, f, velocity):
    """How much a floating body's velocity (bodies, 3) [m/s] differs at most from the frame's.

    A body that is let go falls ever faster until the next frame comes.
    """
    most = 0.0
    if frame.head[f].motion == REDUCED:
        for b in range(frame.mass.shape[1]):
            square = 0.0
            for i in range(3):
                square += frame.floating[f, b] * (velocity[b, i] - frame.velocity[f, b, i]) ** 2
            most = max(most, square)
    return most**0.5


@kernel
def end(s, batch, h):
    """The step under the pushed forces; False where a coordinate is no number."""
    f, total = reader_slot(s.control), 0.0
    if batch.wants[0].d:
        moved(s, batch, h)
    advance(s.frame, f, s.now, h)
    s.looked.stamp[0] += 1
    s.looked.stamp[1] += 1
    for k in range(s.frame.head[f].n_modes):
        total += abs(s.now.rate[k])
    for b in range(s.now.centre.shape[0]):
        for i in range(3):
            total += abs(s.now.centre[b, i])
    return total < np.inf


def _smallest() -> Modal:
    capacity = Capacity(slots=1, near=1, modes=1, pairs=1, contacts=1, points=1, bodies=1, all_bodies=1)
    return make_modal(capacity, make_frame(capacity), make_control(), make_force_log(2, 1), 1)


_SMALLEST = _smallest()


@unit(_SMALLEST)
def modal_unit(stage, s, batch, problem, h):
    """The stages of palpo.physics.contract.stages."""
    f = reader_slot(s.control)
    if stage == ADOPT:
        adopt_newest(s, batch, h)
    elif stage == BEGIN:
        free_motion(s.frame, f, s.now, h)
        s.looked.stamp[1] += 1
        batch.speed[0] = s.frame.soft_speed[f] + gained_speed(s.frame, f, s.now.velocity)
    elif stage == PLACE:
        place(s, batch)
    elif stage == FREE:
        free(s, batch, h)
    elif stage == MOVED:
        moved(s, batch, h)
    elif stage == DELASSUS:
        delassus(s, batch, view_square(problem.w, problem.rows[1]), h)
    elif stage == CLEAR:
        clear(s, f)
    elif stage == PUSH:
        push(s, batch)
        pushed_motion(s.frame, f, s.now, h)
        batch.speed[0] = s.frame.soft_speed[f] + gained_speed(s.frame, f, s.now.end_velocity)
    elif stage == END:
        return DONE if end(s, batch, h) else NOT_FINITE
    else:
        return NOT_OFFERED
    return DONE


MODAL = Kind(
    "modal", modal_unit, typeof(_SMALLEST), points=lambda s: len(s.looked.x_stamp), room=lambda s: len(s.axes)
)
