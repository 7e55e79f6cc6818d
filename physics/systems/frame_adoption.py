"""How the tick takes a new frame: brought to the present by replay, and joined to the one before."""

from palpo.physics.collision.topology import LOW
from palpo.physics.exchange.buffer import acquire, is_fresh, reader_slot
from palpo.physics.exchange.constraint_frame import (
    BASE_TICK,
    EXACT,
    ID,
    MOTION,
    N_PAIRS,
    N_SLOTS,
    REDUCED,
    SET_HOLD,
    SET_LIVE,
    SET_SWEEPS,
    SET_TOLERANCE,
    TOLD_PATIENCE,
    TOLD_STRETCH,
)
from palpo.physics.exchange.patience import renewed
from palpo.physics.exchange.port import STATUS_REPLAYED
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import quat_difference
from palpo.physics.reduction.interface_model import adopt, replay, slot_orientation, slot_position


@kernel
def take_frame(s):
    """Adopt the newest frame, brought to the present by replaying the forces that it does not contain.

    Reduced slots join the old frame's positions; slots that are held jump, and stick offsets follow them,
    so that a sticking contact returns to its anchor. Returns the frame's slot.
    """
    control, tick = s.frame_control, s.counts.tick[0]
    slot, replayed = reader_slot(control), 0
    if is_fresh(control):
        had = s.counts.frame[0] > 0
        if had:
            _mark_places(s, slot)
        slot, _ = acquire(control)
        adopt(s.frame, slot, s.interface)
        mask = s.log.tick.shape[0] - 1
        for past in range(s.frame.head[slot, BASE_TICK], tick):
            entry = past & mask
            if s.log.tick[entry] == past:
                replay(s.frame, slot, s.interface, s.log, entry, s.settings.step[0])
                replayed += 1
        s.interface.clock[0] = 0.0
        motion = s.frame.head[slot, MOTION]
        if had and motion == REDUCED:
            _join_places(s, slot)
        elif had and motion != EXACT:
            _shift_anchors(s, slot)
        s.counts.frame[0] = s.frame.head[slot, ID]
        s.counts.adopted_at[0] = tick
        s.counts.waited[0] = 0
        for k in range(s.frame.head[slot, N_PAIRS]):
            s.proximity.due[k] = s.frame.pair_due[slot, k]
        _take_settings(s, slot)
    s.port.status[STATUS_REPLAYED] = replayed
    return slot


@kernel
def _take_settings(s, f):
    """What the operator may have changed since the last frame."""
    settings, head = s.frame.settings[f], s.frame.head[f]
    s.settings.patience[0] = renewed(s.port, s.settings.patience[0], head[TOLD_PATIENCE], head[TOLD_STRETCH])
    s.settings.tolerance[0] = settings[SET_TOLERANCE]
    s.settings.sweeps[0] = int(settings[SET_SWEEPS])
    for k in range(4):
        s.hold.gain[k] = settings[SET_HOLD + k]
    for k in range(2):
        s.port.live[k] = settings[SET_LIVE + k]
    for i in range(3):
        s.model.gravity[i] = s.frame.gravity[f, i]
    for a in range(s.mu.shape[0]):
        for b in range(s.mu.shape[1]):
            s.mu[a, b] = s.frame.friction[f, a, b]


@inlined
def _low_slot(s, f, p):
    """Slot of a global point if a low-rate body moves it and the frame carries it, else -1."""
    if p < 0 or s.topology.body_role[s.topology.point_body[p]] != LOW:
        return -1
    return s.frame.slot_of[f, p]


@kernel
def _mark_places(s, f):
    """points.x and points.q of all points in use, by the frame that is about to be given back."""
    g = s.memory.count[2]
    for c in range(s.memory.count[g]):
        for side in range(2):
            for k in range(3):
                _mark_place(s, f, s.memory.points[g, c, side, k])
    for a in range(s.attachments.kind.shape[0]):
        for side in range(2):
            for k in range(3):
                _mark_place(s, f, s.attachments.points[a, side, k])


@kernel
def _mark_place(s, f, p):
    slot = _low_slot(s, f, p)
    if slot < 0:
        return
    slot_position(s.frame, f, s.interface, slot, s.points.x[p])
    if s.frame.slot_turns[f, slot] == 1:
        slot_orientation(s.frame, f, s.interface, slot, s.points.x[p], s.scratch[2], s.points.q[p])
    s.points.x_tick[p] = -2 - s.counts.tick[0]


@kernel
def _join_places(s, f):
    """interface.join of every marked point that the new frame carries too."""
    x, q, now = s.scratch[1], s.scratch[3], -2 - s.counts.tick[0]
    for slot in range(s.frame.head[f, N_SLOTS]):
        p = s.frame.slot_point[f, slot]
        if s.points.x_tick[p] != now:
            continue
        slot_position(s.frame, f, s.interface, slot, x)
        if s.frame.slot_turns[f, slot] == 1:
            slot_orientation(s.frame, f, s.interface, slot, x, s.scratch[2], q)
            quat_difference(s.points.q[p], q, s.interface.join[slot])
        else:
            for i in range(3):
                s.interface.join[slot, i] = s.points.x[p, i] - x[i]


@kernel
def _shift_anchors(s, f):
    """Add the jump of the marked points to the stick offsets of the contacts that they carry."""
    memory, x, now = s.memory, s.scratch[1], -2 - s.counts.tick[0]
    g = memory.count[2]
    for c in range(memory.count[g]):
        for side in range(2):
            sense = 1.0 if side == 0 else -1.0
            for k in range(3):
                p = memory.points[g, c, side, k]
                slot = _low_slot(s, f, p)
                if slot < 0 or s.points.x_tick[p] != now:
                    continue
                slot_position(s.frame, f, s.interface, slot, x)
                weight = sense * memory.weights[g, c, side, k]
                for i in range(3):
                    memory.offset[g, c, i] += weight * (x[i] - s.points.x[p, i])
