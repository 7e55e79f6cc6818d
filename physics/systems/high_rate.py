"""The high-rate step of the multi-rate method: H1 to H6 of 003, section IV-A, as one compiled tick.

The tick works on a `HighRate` tuple of preallocated arrays. It allocates nothing, asks nothing of the
interpreter and reports failure by its return value. `high_rate_tick` is the same as a C callback, for the
servo and for a device's own scheduler.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.arrays import all_finite
from palpo.physics.bodies.chain import (
    ChainModel,
    ChainState,
    ChainWork,
    chain_advance,
    chain_assemble,
    chain_factor,
    chain_inverse,
    chain_reaction,
    chain_solve,
)
from palpo.physics.collision.proximity import (
    EDGE_EDGE,
    POINT_TRIANGLE,
    Contacts,
    Pairs,
    ProximityWork,
    find_contacts,
)
from palpo.physics.collision.topology import LOW, Topology
from palpo.physics.contact.bilateral import eliminate, recover
from palpo.physics.contact.laws import STICK
from palpo.physics.contact.memory import ContactMemory, recall, remember
from palpo.physics.contact.residual import natural_map_norm
from palpo.physics.contact.rows import (
    Attachments,
    PointState,
    Rows,
    ToolPoints,
    add_tool_forces,
    add_tool_motion,
    assemble_delassus,
    attachment_rows,
    block_force,
    contact_row,
)
from palpo.physics.contact.solvers.gauss_seidel import sweep_contacts
from palpo.physics.exchange.ahead import row_at
from palpo.physics.exchange.buffer import acquire, is_fresh, publish, reader_slot, writer_slot
from palpo.physics.exchange.constraint_frame import (
    BASE_TICK,
    EXACT,
    FROZEN,
    GEOMETRY,
    ID,
    MOTION,
    N_CONTACTS,
    N_PAIRS,
    N_SLOTS,
    REDUCED,
    SET_HOLD,
    SET_LIVE,
    SET_SWEEPS,
    SET_TOLERANCE,
    TOLD_PATIENCE,
    TOLD_STRETCH,
    ConstraintFrame,
)
from palpo.physics.exchange.force_log import ForceLog, add_force, close_entry, open_entry
from palpo.physics.exchange.patience import is_overdue, renewed, wait
from palpo.physics.exchange.port import (
    INFO_DEPTH,
    INFO_HELD,
    INFO_RESIDUAL,
    INFO_SUM,
    NOT_FINITE,
    OK,
    STATUS_AGE,
    STATUS_CONTACTS,
    STATUS_FLAGS,
    STATUS_FRAME,
    STATUS_REPLAYED,
    STATUS_ROWS,
    STATUS_SWEEPS,
    Port,
    end_tick,
)
from palpo.physics.exchange.tool_state import ToolState
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import dot3, quat_difference, quat_multiply, quat_rotate
from palpo.physics.reduction.interface_model import (
    InterfaceState,
    add_slot_force,
    adopt,
    advance,
    free_motion,
    replay,
    slot_orientation,
    slot_position,
    slot_step,
)
from palpo.physics.systems.hold import Hold, apply_hold, coupling_force, held_point

CONSTRAINT_SUM, HOLD_REACTION = 0, 1
"""What is fed back: the sum of constraint forces on the tool (003, IV-B) or the held frame's reaction."""

# Entries of HighRate.counter
TICK, ADOPTED_AT, FRAME_ID, LOST_CONTACTS, CALLS, WAITED = range(6)
# Entries of HighRate.setting
FEEDBACK, MAX_SWEEPS, PATIENCE = range(3)
# Entries of HighRate.value
STEP, TOLERANCE, SKIN, REACH, ODOMETER, SEEN = range(6)
"""SEEN: sum of the coordinates of the soft points looked at in this tick; not finite if one is not."""


class MovingPoints(NamedTuple):
    """Points and frames of the world that follow a script (attachments to a moving frame)."""

    point: NDArray[np.int32]  # (m,) global point; its rotation is the next global number
    x: NDArray[
        np.float64
    ]  # (m, rows, 3) [m] at the end of each tick, as palpo.physics.exchange.ahead keeps them
    q: NDArray[np.float64]  # (m, rows, 4)
    known: NDArray[np.int64]  # (1,) rows of the script so far


class HighRate(NamedTuple):
    """Everything that a tick reads and writes."""

    port: Port
    counter: NDArray[np.int64]
    setting: NDArray[np.int64]
    value: NDArray[np.float64]
    topology: Topology
    mu: NDArray[np.float64]  # (bodies, bodies) friction coefficients
    model: ChainModel
    tool: ChainState
    work: ChainWork
    hold: Hold
    inverse: NDArray[np.float64]  # (6 n, 6 n) A_tool^-1
    twist: NDArray[np.float64]  # (n, 6) velocities; free, then final
    push: NDArray[np.float64]  # (n, 6) their change by the constraint forces
    change: NDArray[np.float64]  # (n, 6) change of velocity
    pull: NDArray[np.float64]  # (n, 6) constraint forces on the tool's frames
    tool_points: ToolPoints
    moving: MovingPoints
    attachments: Attachments
    points: PointState
    contacts: Contacts
    proximity: ProximityWork
    memory: ContactMemory
    rows: Rows
    start: NDArray[np.float64]  # (contacts, 3) gap and offset after the free motion [m]
    leftover: NDArray[np.float64]  # (contacts, 3) gap and offset at the end of the tick [m]
    frame: ConstraintFrame
    frame_control: NDArray[np.int64]
    interface: InterfaceState
    log: ForceLog
    state: ToolState
    state_control: NDArray[np.int64]
    shown: ToolState  # the same once more, with the reduced bodies, for the picture
    shown_control: NDArray[np.int64]
    scratch: NDArray[np.float64]  # (8, 4)


@kernel
def _h1_pose(s):
    """H1: the device's pose becomes the hold's target; its velocity is the target's own change."""
    h, hold, port = s.value[STEP], s.hold, s.port
    turn, aim = s.scratch[0], s.scratch[1]
    quat_multiply(port.orientation, hold.rest, aim)
    quat_difference(aim, hold.target_q, turn)
    first = s.counter[TICK] == 0
    for i in range(3):
        hold.target_v[i] = 0.0 if first else (port.position[i] - hold.target[i]) / h
        hold.target_w[i] = 0.0 if first else turn[i] / h
        hold.target[i] = port.position[i]
    for i in range(4):
        hold.target_q[i] = aim[i]


@kernel
def _h2_free_motion(s):
    """H2: the tool's free motion and its inverse system matrix."""
    h = s.value[STEP]
    chain_assemble(s.model, s.tool, h, s.work)
    apply_hold(s.hold, s.tool, h, s.work)
    if chain_factor(s.work) != 0:
        return NOT_FINITE
    chain_solve(s.work, s.work.rhs, s.change)
    chain_inverse(s.work, s.inverse)
    if s.hold.direct[0] == 1:
        # imposed freedoms do not yield to forces; their unit diagonal is bookkeeping
        for c in range(6):
            if s.hold.mask[c]:
                i = 6 * s.hold.frame[0] + c
                for j in range(s.inverse.shape[0]):
                    s.inverse[i, j] = 0.0
                    s.inverse[j, i] = 0.0
    for k in range(s.twist.shape[0]):
        for i in range(3):
            s.twist[k, i] = s.tool.v[k, i] + s.change[k, i]
            s.twist[k, 3 + i] = s.tool.w[k, i] + s.change[k, 3 + i]
    return OK


@kernel
def _take_frame(s):
    """Adopt the newest frame, brought to the present by replaying the forces that it does not contain.

    Reduced slots join the old frame's positions; slots that are held jump, and stick offsets follow them,
    so that a sticking contact returns to its anchor. Returns the frame's slot.
    """
    control, tick = s.frame_control, s.counter[TICK]
    slot, replayed = reader_slot(control), 0
    if is_fresh(control):
        had = s.counter[FRAME_ID] > 0
        if had:
            _mark_places(s, slot)
        slot, _ = acquire(control)
        adopt(s.frame, slot, s.interface)
        mask = s.log.tick.shape[0] - 1
        for past in range(s.frame.head[slot, BASE_TICK], tick):
            entry = past & mask
            if s.log.tick[entry] == past:
                replay(s.frame, slot, s.interface, s.log, entry, s.value[STEP])
                replayed += 1
        s.interface.clock[0] = 0.0
        motion = s.frame.head[slot, MOTION]
        if had and motion == REDUCED:
            _join_places(s, slot)
        elif had and motion != EXACT:
            _shift_anchors(s, slot)
        s.counter[FRAME_ID] = s.frame.head[slot, ID]
        s.counter[ADOPTED_AT] = tick
        s.counter[WAITED] = 0
        for k in range(s.frame.head[slot, N_PAIRS]):
            s.proximity.due[k] = s.frame.pair_due[slot, k]
        _take_settings(s, slot)
    s.port.status[STATUS_REPLAYED] = replayed
    return slot


@kernel
def _take_settings(s, f):
    """What the operator may have changed since the last frame."""
    settings, head = s.frame.settings[f], s.frame.head[f]
    s.setting[PATIENCE] = renewed(s.port, s.setting[PATIENCE], head[TOLD_PATIENCE], head[TOLD_STRETCH])
    s.value[TOLERANCE] = settings[SET_TOLERANCE]
    s.setting[MAX_SWEEPS] = int(settings[SET_SWEEPS])
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
    s.points.x_tick[p] = -2 - s.counter[TICK]


@kernel
def _join_places(s, f):
    """interface.join of every marked point that the new frame carries too."""
    x, q, now = s.scratch[1], s.scratch[3], -2 - s.counter[TICK]
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
    memory, x, now = s.memory, s.scratch[1], -2 - s.counter[TICK]
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


@inlined
def _see_point(s, f, p):
    """Make points.x[p] present; tool and static points already are."""
    if s.points.x_tick[p] == s.counter[TICK]:
        return
    if s.topology.body_role[s.topology.point_body[p]] != LOW:
        return
    slot = s.frame.slot_of[f, p]
    x = s.points.x[p]
    slot_position(s.frame, f, s.interface, slot, x)
    s.points.x_tick[p] = s.counter[TICK]
    s.value[SEEN] += x[0] + x[1] + x[2]


@inlined
def _see_step(s, f, p):
    """Make points.step[p] present for a low-rate point."""
    if p < 0 or s.points.step_tick[p] == s.counter[TICK]:
        return
    if s.topology.body_role[s.topology.point_body[p]] != LOW:
        return
    _see_point(s, f, p)
    slot = s.frame.slot_of[f, p]
    slot_step(s.frame, f, s.interface, slot, s.points.x[p], s.value[STEP], s.points.step[p])
    if s.frame.slot_turns[f, slot] == 1:
        slot_orientation(s.frame, f, s.interface, slot, s.points.x[p], s.scratch[2], s.points.q[p])
    s.points.step_tick[p] = s.counter[TICK]


@kernel
def _see_tool(s):
    """Positions (and orientations) of the tool's points and of the scripted ones; the odometer's travel."""
    tick, lever = s.counter[TICK], s.scratch[1]
    for p in range(s.tool_points.span[0], s.tool_points.span[1]):
        k = s.tool_points.frame[p]
        quat_rotate(s.tool.q[k], s.tool_points.lever[p], lever)
        for i in range(3):
            s.points.x[p, i] = s.tool.x[k, i] + lever[i]
        for i in range(4):
            s.points.q[p, i] = s.tool.q[k, i]
    if s.moving.point.shape[0] > 0:
        now = row_at(s.moving.known, s.moving.x.shape[1], tick)
        for m in range(s.moving.point.shape[0]):
            p = s.moving.point[m]
            for i in range(3):
                s.points.x[p, i] = s.moving.x[m, now, i]
            for i in range(4):
                s.points.q[p, i] = s.moving.q[m, now, i]


@kernel
def _fastest_tool_point(s):
    """Bound on the speed of the tool's points in this tick [m/s], before and after its free motion."""
    worst = 0.0
    for k in range(s.twist.shape[0]):
        reach = 0.0
        for p in range(s.tool_points.span[0], s.tool_points.span[1]):
            if s.tool_points.frame[p] == k:
                reach = max(reach, dot3(s.tool_points.lever[p], s.tool_points.lever[p]) ** 0.5)
        linear, turning = 0.0, 0.0
        for i in range(3):
            linear += s.twist[k, i] ** 2
            turning += s.twist[k, 3 + i] ** 2
        worst = max(worst, linear**0.5 + reach * turning**0.5)
        linear, turning = 0.0, 0.0
        for i in range(3):
            linear += s.tool.v[k, i] ** 2
            turning += s.tool.w[k, i] ** 2
        worst = max(worst, linear**0.5 + reach * turning**0.5)
    return worst


@kernel
def _fresh_contacts(s, f):
    """Contacts from the present geometry of the frame's candidate pairs."""
    n_pairs = s.frame.head[f, N_PAIRS]
    # the soft points' own speed is bounded by twice the fastest that the low loop saw
    s.value[ODOMETER] += s.value[STEP] * (_fastest_tool_point(s) + s.frame.soft_speed[f])
    odometer = s.value[ODOMETER]
    pairs = Pairs(s.frame.pair_kind[f], s.frame.pair_first[f], s.frame.pair_second[f])
    for k in range(n_pairs):
        if s.proximity.due[k] > odometer:
            continue
        kind = pairs.kind[k]
        if kind == EDGE_EDGE:
            for c in range(2):
                _see_point(s, f, s.topology.edges[pairs.first[k], c])
                _see_point(s, f, s.topology.edges[pairs.second[k], c])
            for c in range(2):
                for edge in (pairs.first[k], pairs.second[k]):
                    opposite = s.topology.edge_opposite[edge, c]
                    if opposite >= 0:
                        _see_point(s, f, opposite)
        else:
            _see_point(s, f, pairs.first[k])
            if kind == POINT_TRIANGLE:
                for c in range(3):
                    _see_point(s, f, s.topology.triangles[pairs.second[k], c])
    find_contacts(
        s.topology, pairs, n_pairs, s.points.x, odometer, s.value[REACH], s.value[SKIN], s.mu,
        s.proximity, s.contacts,
    )  # fmt: skip


@kernel
def _frozen_contacts(s, f):
    """The frame's own contacts: directions of low step L1, gaps at the present positions."""
    frame, contacts = s.frame, s.contacts
    n = frame.head[f, N_CONTACTS]
    contacts.count[0] = n
    contacts.count[1] = 0
    for c in range(n):
        contacts.identity[c] = frame.contact_identity[f, c]
        contacts.mu[c] = frame.contact_mu[f, c]
        gap = -s.value[SKIN]
        for side in range(2):
            sense = 1.0 if side == 0 else -1.0
            body = frame.contact_body[f, c, side]
            contacts.body[c, side] = body
            gap -= s.topology.body_radius[body]
            for k in range(3):
                p = frame.contact_points[f, c, side, k]
                contacts.points[c, side, k] = p
                contacts.weights[c, side, k] = frame.contact_weights[f, c, side, k]
                contacts.arms[c, side, k] = frame.contact_arms[f, c, side, k]
                if p >= 0:
                    _see_point(s, f, p)
                    gap += (
                        sense
                        * contacts.weights[c, side, k]
                        * dot3(frame.contact_frame[f, c, 0], s.points.x[p])
                    )
        if contacts.points[c, 1, 0] < 0:
            for plane in range(s.topology.planes.shape[0]):
                if s.topology.plane_body[plane] == contacts.body[c, 1]:
                    gap -= dot3(frame.contact_frame[f, c, 0], s.topology.planes[plane])
        contacts.gap[c] = gap
        for d in range(3):
            for i in range(3):
                contacts.frame[c, d, i] = frame.contact_frame[f, c, d, i]


@kernel
def _h3_violation(s, f):
    """H3: rows of attachments and contacts, and their violation after both bodies' free motions."""
    h = s.value[STEP]
    s.value[SEEN] = 0.0
    free_motion(s.frame, f, s.interface, h)
    _see_tool(s)
    if s.frame.head[f, GEOMETRY] == FROZEN:
        _frozen_contacts(s, f)
    else:
        _fresh_contacts(s, f)
    for k in range(s.attachments.kind.shape[0]):
        for side in range(2):
            for i in range(3):
                _see_step(s, f, s.attachments.points[k, side, i])
        _see_step(s, f, s.attachments.turn[k])
    s.counter[LOST_CONTACTS] += s.contacts.count[1]
    attachment_rows(
        s.attachments, s.topology, s.tool_points, s.tool.x, s.points, s.frame, f, s.interface, s.rows
    )
    for c in range(s.contacts.count[0]):
        for side in range(2):
            for i in range(3):
                _see_step(s, f, s.contacts.points[c, side, i])
        k = contact_row(
            s.contacts, c, s.topology, s.tool_points, s.tool.x, s.points, s.frame, f, s.interface, h, s.rows
        )
        recall(s.memory, s.contacts, c, k, s.rows)
    add_tool_motion(s.rows, s.twist, h)
    first = s.rows.count[0]
    for c in range(s.contacts.count[0]):
        for d in range(3):
            s.start[c, d] = s.rows.b[3 * (first + c) + d]


@kernel
def _h4_compliance(s, f):
    """H4: W = W_soft^dt + W_stiff^dt."""
    assemble_delassus(s.rows, s.attachments, s.inverse, s.frame, f, s.interface, s.value[STEP])


@kernel
def _h5_solve(s):
    """H5: the mixed complementarity problem within its sweeps; bilateral rows exactly."""
    rows = s.rows
    m, n_contacts = 3 * rows.count[0], rows.count[1]
    n = m + 3 * n_contacts
    for i in range(n):
        if not all_finite(rows.w[i, :n]):
            return NOT_FINITE
    if not all_finite(rows.b[:n]):
        return NOT_FINITE
    if m > 0 and eliminate(rows.w, rows.b, m, n, rows.factor) != 0:
        return NOT_FINITE
    mu, status = rows.mu[rows.count[0] :], rows.status[rows.count[0] :]
    sweeps = 0
    if n_contacts > 0:
        sweeps = sweep_contacts(
            rows.w, rows.b, mu, rows.r, rows.u, status, m, n_contacts,
            s.value[TOLERANCE], s.setting[MAX_SWEEPS], s.scratch,
        )  # fmt: skip
        error, size = natural_map_norm(rows.w, mu, rows.r, rows.u, m, n_contacts, s.scratch)
        s.port.info[INFO_RESIDUAL] = error / size if size > 0.0 else error
        for c in range(n_contacts):
            for d in range(3):
                s.leftover[c, d] = rows.u[m + 3 * c + d]
    else:
        s.port.info[INFO_RESIDUAL] = 0.0
    recover(rows.w, rows.b, m, n, rows.factor, rows.r)
    s.port.status[STATUS_SWEEPS] = sweeps
    s.port.status[STATUS_ROWS] = n
    return OK


@kernel
def _h6_correct(s, f):
    """H6: corrected motion of the tool and of the reduced model; the forces go to the log."""
    h, rows = s.value[STEP], s.rows
    n = s.twist.shape[0]
    s.pull[:] = 0.0
    add_tool_forces(rows, s.pull)
    for k in range(n):
        for i in range(6):
            line = s.inverse[6 * k + i]
            dv = 0.0
            for j in range(n):
                for c in range(6):
                    dv += line[6 * j + c] * s.pull[j, c]
            s.push[k, i] = h * dv
            s.twist[k, i] += h * dv
            s.change[k, i] += h * dv
    chain_advance(s.model, s.tool, s.twist, h)
    entry = open_entry(s.log, s.counter[TICK])
    force, part = s.scratch[1], s.scratch[2]
    for k in range(rows.count[0] + rows.count[1]):
        block_force(rows, k, force)
        for e in range(6):
            slot = rows.slot[k, e]
            if slot < 0 or rows.share[k, e] == 0.0:
                continue
            for i in range(3):
                part[i] = rows.share[k, e] * force[i]
            add_slot_force(s.frame, f, s.interface, slot, part)
            if entry >= 0:
                add_force(s.log, entry, s.frame.slot_point[f, slot], part, 1.0)
    if entry >= 0:
        close_entry(s.log)
    advance(s.frame, f, s.interface, h)
    _move_anchors(s, f)
    remember(s.memory, s.contacts, rows, s.leftover)


@kernel
def _move_anchors(s, f):
    """leftover = tangential offset from the anchor as the next tick will see it; slip has moved the anchor.

    Where the slots move with the forces, that is the offset at the end of this tick. HELD and EXTRAPOLATED
    slots do not: there the offset is that of the tool's own motion, and yields W_soft r anew in each tick.
    """
    h, rows = s.value[STEP], s.rows
    motion = s.frame.head[f, MOTION]
    follows = motion in (REDUCED, EXACT)
    for c in range(rows.count[1]):
        k = rows.count[0] + c
        for d in range(1, 3):
            end = s.leftover[c, d]
            left = end if rows.status[k] == STICK else 0.0
            if not follows:
                left += s.start[c, d] - end
                for side in range(2):
                    frame = rows.tool_frame[k, side]
                    if frame >= 0:
                        for i in range(6):
                            left += h * rows.jacobian[k, side, d, i] * s.push[frame, i]
            s.leftover[c, d] = left


@kernel
def _feedback(s):
    """Force on the device's hand (003, IV-B), and the numbers that go with it. Returns the tick's status."""
    h, hold, port = s.value[STEP], s.hold, s.port
    i = hold.frame[0]
    if hold.direct[0] == 1:
        chain_reaction(s.work, s.change, h, hold.force)
        for c in range(6):
            if hold.mask[c]:
                hold.force[c] -= s.pull[i, c]
    else:
        coupling_force(hold, s.tool)
    total = port.info[INFO_SUM : INFO_SUM + 3]
    held_point(hold, s.tool, port.info[INFO_HELD : INFO_HELD + 3])
    for c in range(3):
        total[c] = 0.0
        for k in range(s.pull.shape[0]):
            total[c] += s.pull[k, c]
        reaction = s.setting[FEEDBACK] == HOLD_REACTION
        port.force[c] = -hold.force[c] if reaction else total[c]
        port.torque[c] = -hold.force[3 + c]
    depth, active = 0.0, 0
    for c in range(s.rows.count[1]):
        depth = max(depth, -s.contacts.gap[c] - s.value[SKIN])
        if s.rows.r[3 * (s.rows.count[0] + c)] > 0.0:
            active += 1
    port.info[INFO_DEPTH] = depth
    port.status[STATUS_CONTACTS] = active
    port.status[STATUS_FRAME] = s.counter[FRAME_ID]
    port.status[STATUS_FLAGS] = 0
    check = 0.0
    for c in range(3):
        check += abs(port.force[c]) + abs(port.torque[c]) + abs(s.tool.x[i, c]) + abs(s.tool.v[i, c])
    return OK if check < 1e12 else NOT_FINITE


@kernel
def _write_state(s, out, w):
    """The state after the tick into slot w of `out`."""
    out.tick[w] = s.counter[TICK]
    out.calls[w] = s.counter[CALLS]
    out.odometer[w] = s.value[ODOMETER]
    for k in range(s.twist.shape[0]):
        for i in range(3):
            out.x[w, k, i] = s.tool.x[k, i]
            out.v[w, k, i] = s.tool.v[k, i]
            out.w[w, k, i] = s.tool.w[k, i]
        for i in range(4):
            out.q[w, k, i] = s.tool.q[k, i]
    for i in range(3):
        out.target[w, i] = s.hold.target[i]
        out.target_v[w, i] = s.hold.target_v[i]
        out.target_w[w, i] = s.hold.target_w[i]
        out.force[w, i] = s.port.force[i]
    for i in range(4):
        out.target_q[w, i] = s.hold.target_q[i]
    n = min(s.contacts.count[0], out.contact_point.shape[1])
    out.n_contacts[w] = n
    g = s.memory.count[2]
    for c in range(n):
        out.contact_status[w, c] = s.rows.status[s.rows.count[0] + c]
        for i in range(3):
            out.contact_force[w, c, i] = s.memory.force[g, c, i]
            x = s.contacts.arms[c, 0, i]
            for k in range(3):
                p = s.contacts.points[c, 0, k]
                if p >= 0:
                    x += s.contacts.weights[c, 0, k] * s.points.x[p, i]
            out.contact_point[w, c, i] = x
    out.frame[w] = s.counter[FRAME_ID]
    for k in range(out.z.shape[1]):
        out.z[w, k] = s.interface.z[k]
    for b in range(out.centre.shape[1]):
        for i in range(3):
            out.centre[w, b, i] = s.interface.centre[b, i]
        for i in range(4):
            out.orientation[w, b, i] = s.interface.q[b, i]


@kernel
def _publish(s):
    """The tool's state for the low-rate loop, and once more for the picture."""
    _write_state(s, s.state, writer_slot(s.state_control))
    publish(s.state_control)
    _write_state(s, s.shown, writer_slot(s.shown_control))
    publish(s.shown_control)


@kernel
def tick(s):
    """One high-rate step, H1 to H6. Returns OK or NOT_FINITE; the force is on s.port.

    While a frame is overdue by far the scene's time stands still (palpo.physics.exchange.patience).
    """
    s.counter[CALLS] += 1
    age = s.counter[TICK] - s.counter[ADOPTED_AT]
    if s.counter[FRAME_ID] > 0 and is_overdue(age, s.setting[PATIENCE], s.frame_control):
        s.counter[WAITED] += 1
        return wait(s.port, age + s.counter[WAITED])
    _h1_pose(s)
    status, age = _h2_free_motion(s), s.port.status[STATUS_AGE]
    if status == OK:
        f = _take_frame(s)
        _h3_violation(s, f)
        _h4_compliance(s, f)
        # a point at no place has no contacts: it must not look like one that is free
        status = _h5_solve(s) if np.isfinite(s.value[SEEN]) else NOT_FINITE
        if status == OK:
            _h6_correct(s, f)
            status = _feedback(s)
            age = s.counter[TICK] - s.counter[ADOPTED_AT]
            s.counter[TICK] += 1
            _publish(s)
    return end_tick(s.port, status, age)


@kernel
def run_ticks(s, n):
    """n ticks in a row with the port as it stands; returns the first status that is not OK."""
    for _ in range(n):
        status = tick(s)
        if status != OK:
            return status
    return OK
