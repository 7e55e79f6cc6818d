"""The high-rate step of the multi-rate method: H1 to H6 of 003, section IV-A, as one compiled tick.

The tick works on a `HighRate` tuple of preallocated arrays. It allocates nothing, asks nothing of the
interpreter and reports failure by its return value. `high_rate_tick` is the same as a C callback, for the
servo and for a device's own scheduler.
"""

import numpy as np

from palpo.physics.arrays import all_finite
from palpo.physics.bodies.chain import (
    chain_advance,
    chain_assemble,
    chain_factor,
    chain_inverse,
    chain_reaction,
    chain_solve,
)
from palpo.physics.contact.bilateral import eliminate, recover
from palpo.physics.contact.laws import STICK
from palpo.physics.contact.memory import recall, remember
from palpo.physics.contact.residual import natural_map_norm
from palpo.physics.contact.rows import (
    add_tool_forces,
    add_tool_motion,
    assemble_delassus,
    attachment_rows,
    block_force,
    contact_row,
)
from palpo.physics.contact.solvers.gauss_seidel import sweep_contacts
from palpo.physics.exchange.constraint_frame import (
    EXACT,
    FROZEN,
    GEOMETRY,
    MOTION,
    REDUCED,
)
from palpo.physics.exchange.force_log import add_force, close_entry, open_entry
from palpo.physics.exchange.patience import is_overdue, wait
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
    STATUS_ROWS,
    STATUS_SWEEPS,
    end_tick,
)
from palpo.physics.kernels import kernel
from palpo.physics.math3 import quat_difference, quat_multiply
from palpo.physics.reduction.interface_model import (
    add_slot_force,
    advance,
    clear_forces,
    free_motion,
)
from palpo.physics.systems.frame_adoption import take_frame
from palpo.physics.systems.high_state import HOLD_REACTION
from palpo.physics.systems.hold import apply_hold, coupling_force, held_point
from palpo.physics.systems.present_points import see_step, see_tool
from palpo.physics.systems.state_report import publish_state
from palpo.physics.systems.tick_contacts import fresh_contacts, frozen_contacts


@kernel
def h1_pose(s):
    """H1: the device's pose becomes the hold's target; its velocity is the target's own change."""
    h, hold, port = s.settings.step[0], s.hold, s.port
    turn, aim = s.scratch[0], s.scratch[1]
    quat_multiply(port.orientation, hold.rest, aim)
    quat_difference(aim, hold.target_q, turn)
    first = s.counts.tick[0] == 0
    for i in range(3):
        hold.target_v[i] = 0.0 if first else (port.position[i] - hold.target[i]) / h
        hold.target_w[i] = 0.0 if first else turn[i] / h
        hold.target[i] = port.position[i]
    for i in range(4):
        hold.target_q[i] = aim[i]


@kernel
def h2_free_motion(s):
    """H2: the tool's free motion and its inverse system matrix."""
    h = s.settings.step[0]
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
def h3_violation(s, f):
    """H3: rows of attachments and contacts, and their violation after both bodies' free motions."""
    h = s.settings.step[0]
    s.seen[0] = 0.0
    free_motion(s.frame, f, s.interface, h)
    clear_forces(s.frame, f, s.interface)
    see_tool(s)
    if s.frame.head[f, GEOMETRY] == FROZEN:
        frozen_contacts(s, f)
    else:
        fresh_contacts(s, f)
    for k in range(s.attachments.kind.shape[0]):
        for side in range(2):
            for i in range(3):
                see_step(s, f, s.attachments.points[k, side, i])
        see_step(s, f, s.attachments.turn[k])
    s.counts.lost_contacts[0] += s.contacts.count[1]
    attachment_rows(
        s.attachments, s.topology, s.tool_points, s.tool.x, s.points, s.frame, f, s.interface, s.rows
    )
    for c in range(s.contacts.count[0]):
        for side in range(2):
            for i in range(3):
                see_step(s, f, s.contacts.points[c, side, i])
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
def h4_compliance(s, f):
    """H4: W = W_soft^dt + W_stiff^dt."""
    assemble_delassus(s.rows, s.attachments, s.inverse, s.frame, f, s.interface, s.settings.step[0])


@kernel
def h5_solve(s):
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
            s.settings.tolerance[0], s.settings.sweeps[0], s.scratch,
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
def h6_correct(s, f):
    """H6: corrected motion of the tool and of the reduced model; the forces go to the log."""
    h, rows = s.settings.step[0], s.rows
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
    entry = open_entry(s.log, s.counts.tick[0])
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
    h, rows = s.settings.step[0], s.rows
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
def feedback(s):
    """Force on the device's hand (003, IV-B), and the numbers that go with it. Returns the tick's status."""
    h, hold, port = s.settings.step[0], s.hold, s.port
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
        reaction = s.settings.feedback[0] == HOLD_REACTION
        port.force[c] = -hold.force[c] if reaction else total[c]
        port.torque[c] = -hold.force[3 + c]
    depth, active = 0.0, 0
    for c in range(s.rows.count[1]):
        depth = max(depth, -s.contacts.gap[c] - s.settings.skin[0])
        if s.rows.r[3 * (s.rows.count[0] + c)] > 0.0:
            active += 1
    port.info[INFO_DEPTH] = depth
    port.status[STATUS_CONTACTS] = active
    port.status[STATUS_FRAME] = s.counts.frame[0]
    port.status[STATUS_FLAGS] = 0
    check = 0.0
    for c in range(3):
        check += abs(port.force[c]) + abs(port.torque[c]) + abs(s.tool.x[i, c]) + abs(s.tool.v[i, c])
    return OK if check < 1e12 else NOT_FINITE


@kernel
def tick(s):
    """One high-rate step, H1 to H6. Returns OK or NOT_FINITE; the force is on s.port.

    While a frame is overdue by far the scene's time stands still (palpo.physics.exchange.patience).
    """
    s.counts.calls[0] += 1
    age = s.counts.tick[0] - s.counts.adopted_at[0]
    if s.counts.frame[0] > 0 and is_overdue(age, s.settings.patience[0], s.frame_control):
        s.counts.waited[0] += 1
        return wait(s.port, age + s.counts.waited[0])
    h1_pose(s)
    status, age = h2_free_motion(s), s.port.status[STATUS_AGE]
    if status == OK:
        f = take_frame(s)
        h3_violation(s, f)
        h4_compliance(s, f)
        # a point at no place has no contacts: it must not look like one that is free
        status = h5_solve(s) if np.isfinite(s.seen[0]) else NOT_FINITE
        if status == OK:
            h6_correct(s, f)
            status = feedback(s)
            age = s.counts.tick[0] - s.counts.adopted_at[0]
            s.counts.tick[0] += 1
            publish_state(s)
    return end_tick(s.port, status, age)


@kernel
def run_ticks(s, n):
    """n ticks in a row with the port as it stands; returns the first status that is not OK."""
    for _ in range(n):
        status = tick(s)
        if status != OK:
            return status
    return OK
