"""The servo's tick of a snap connector: the hand's pose is the target that the admittance controller follows.

Everything is computed at the servo's rate (`palpo.physics.systems.snap.step`), in substeps if there are any,
along which the target goes evenly from one pose of the hand to the next. The hand feels the pull of the
hold, D_ad (V - W) + K_ad eh, in the mean of the tick: its work on the hand's way is the energy that the
books say the hand gave, so that the coupling is passive. The tick allocates nothing, asks nothing of the
interpreter and reports by its status.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.solvers.maximal_dissipation import CONVERGED, DIVERGED
from palpo.physics.dynamics.admittance import TARGET, plug_energy
from palpo.physics.exchange.buffer import acquire, is_fresh, publish, writer_slot
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.port import (
    CONTACTS_LOST,
    INFO_DEPTH,
    INFO_HELD,
    INFO_RESIDUAL,
    INFO_SUM,
    NOT_FINITE,
    OK,
    SOLVE_DIVERGED,
    STATUS_CONTACTS,
    STATUS_FLAGS,
    STATUS_FRAME,
    STATUS_REPLAYED,
    STATUS_ROWS,
    STATUS_SWEEPS,
    SWEEPS_SPENT,
    Port,
    end_tick,
)
from palpo.physics.exchange.snap_frame import SET_LIVE, SnapPicture, SnapSettings
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import dot3, norm3, quat_difference, quat_multiply, quat_normalise, rotate_by
from palpo.physics.systems.snap import BOUNDED, measure, step
from palpo.physics.systems.snap_model import CODE, CONTACTS, LOST, SWEEPS, SnapState

# Entries of SnapServo.counter
TICK, SETTINGS_ID, SUBSTEPS, TURNS, SWEEP_CAPS, DIVERGENCES = range(6)


class SnapServo(NamedTuple):
    """Everything that a tick reads and writes."""

    port: Port
    counter: NDArray[np.int64]
    snap: SnapState
    rest: NDArray[np.float64]  # (4,) orientation of the plug when the device's is the identity
    offset: NDArray[np.float64]  # (3,) [m] of the goal from the hand
    rail: NDArray[np.float64]  # (2, 3) point [m] and direction of a line that the goal keeps to, or 0
    goal: NDArray[np.float64]  # (3,) [m] where the hand wants the plug
    goal_q: NDArray[np.float64]  # (4,)
    way: NDArray[np.float64]  # (6,) [m], [rad] of the target in a substep
    target: NDArray[np.float64]  # (3,) [m] at the end of the present substep
    target_q: NDArray[np.float64]  # (4,)
    hand: NDArray[np.float64]  # (6,) of the hold on the hand in the mean of the tick [N], [N m]
    settings: SnapSettings
    settings_control: NDArray[np.int64]
    picture: SnapPicture
    picture_control: NDArray[np.int64]


@kernel
def _take_settings(s):
    """What an operator may have changed; what other gains do to the hold's energy is work of the target."""
    if is_fresh(s.settings_control):
        slot, _ = acquire(s.settings_control)
        snap, plug = s.snap, s.snap.plug
        for i in range(snap.live.shape[0]):
            snap.live[i] = s.settings.value[slot, i]
        before = plug_energy(plug, snap.motion)
        for i in range(6):
            for j in range(6):
                plug.mass[i, j] = s.settings.gains[slot, 0, i, j]
                plug.damping[i, j] = s.settings.gains[slot, 1, i, j]
                plug.stiffness[i, j] = s.settings.gains[slot, 2, i, j]
                plug.inverse[i, j] = s.settings.gains[slot, 3, i, j]
                plug.follow[i, j] = s.settings.gains[slot, 4, i, j]
        snap.motion.work[TARGET] += plug_energy(plug, snap.motion) - before
        s.counter[SETTINGS_ID] = s.settings.id[slot]
    for i in range(2):
        s.port.live[i] = s.snap.live[SET_LIVE + i]


@inlined
def _railed(s):
    """Whether the goal keeps to a line."""
    return norm3(s.rail[1]) > 0.0


@inlined
def _follow(s):
    """s.goal = where the hand is, or the foot of its perpendicular on the rail, and the offset."""
    way, start, along = s.way, s.rail[0], s.rail[1]
    for i in range(3):
        way[i] = s.port.position[i] - start[i]
    travel = dot3(way, along)
    for i in range(3):
        s.goal[i] = s.offset[i] + (start[i] + travel * along[i] if _railed(s) else s.port.position[i])


@kernel
def _pose(s):
    """The hand's pose becomes the goal; at the first tick the plug is there, at rest."""
    m = s.snap.motion
    _follow(s)
    for i in range(4):
        s.goal_q[i] = s.rest[i]
    if s.counter[TURNS] == 1:
        quat_multiply(s.port.orientation, s.rest, s.goal_q)
        quat_normalise(s.goal_q)
    if s.counter[TICK] == 0:
        for i in range(3):
            m.position[i] = s.goal[i]
            m.target_position[i] = s.goal[i]
        for i in range(4):
            m.orientation[i] = s.goal_q[i]
            m.target_orientation[i] = s.goal_q[i]
    quat_difference(s.goal_q, m.target_orientation, s.way[3:])
    for i in range(3):
        s.way[i] = (s.goal[i] - m.target_position[i]) / s.counter[SUBSTEPS]
        s.way[3 + i] /= s.counter[SUBSTEPS]
        s.target[i] = m.target_position[i]
    for i in range(4):
        s.target_q[i] = m.target_orientation[i]


@inlined
def _steps(s):
    """The substeps; returns the flags and the status."""
    snap, n, flags = s.snap, s.counter[SUBSTEPS], 0
    s.hand[:] = 0.0
    s.port.status[STATUS_SWEEPS] = 0
    s.port.info[INFO_RESIDUAL] = 0.0
    lost = snap.counter[LOST]
    for k in range(n):
        for i in range(3):
            s.target[i] += s.way[i]
        rotate_by(s.way[3:], s.target_q)
        if k + 1 == n:  # there, to the last bit
            for i in range(3):
                s.target[i] = s.goal[i]
            for i in range(4):
                s.target_q[i] = s.goal_q[i]
        if step(snap, s.target, s.target_q) != OK:
            return flags, NOT_FINITE
        for i in range(6):
            s.hand[i] += snap.hand[i] / n
        s.port.status[STATUS_SWEEPS] += snap.counter[SWEEPS]
        s.port.info[INFO_RESIDUAL] = max(s.port.info[INFO_RESIDUAL], snap.residual[0])
        if snap.counter[CODE] == DIVERGED:
            flags |= SOLVE_DIVERGED
            s.counter[DIVERGENCES] += 1
        elif snap.counter[CODE] != CONVERGED:
            flags |= SWEEPS_SPENT
            s.counter[SWEEP_CAPS] += 1
    return flags | (CONTACTS_LOST if snap.counter[LOST] > lost else 0), OK


@kernel
def _feedback(s, flags):
    """Force and moment on the hand, and the numbers that go with them."""
    port, snap, depth, pressed = s.port, s.snap, 0.0, 0
    for k in range(snap.counter[CONTACTS]):
        depth = max(depth, -snap.candidates.gap[snap.contacts.near[k]])
        pressed += 1 if snap.system.r[3 * k] > 0.0 else 0
    along = s.rail[1]
    pull = dot3(s.hand, along)
    for i in range(3):
        # what the rail takes does no work on the hand
        port.force[i] = pull * along[i] if _railed(s) else s.hand[i]
        port.torque[i] = s.hand[3 + i]
        port.info[INFO_SUM + i] = snap.wrench[i]
        port.info[INFO_HELD + i] = snap.motion.position[i]
    port.info[INFO_DEPTH] = depth
    port.status[STATUS_CONTACTS] = pressed
    port.status[STATUS_ROWS] = 3 * snap.counter[CONTACTS]
    port.status[STATUS_FRAME] = s.counter[SETTINGS_ID]
    port.status[STATUS_REPLAYED] = 0
    port.status[STATUS_FLAGS] = flags


@kernel
def _publish(s):
    """The picture of this tick."""
    out, snap, w, first = s.picture, s.snap, writer_slot(s.picture_control), 0
    out.tick[w] = s.counter[TICK]
    for k in range(snap.prongs.size):
        x = handle_like(snap.prong, snap.prongs[k]).state.x
        for i in range(x.size):
            out.coordinates[w, first + i] = x[i]
        first += x.size
    for i in range(3):
        out.position[w, i] = snap.motion.position[i]
        out.target[w, i] = s.goal[i]
        out.force[w, i] = snap.wrench[i]
        out.torque[w, i] = snap.wrench[3 + i]
        out.floor[w, i] = snap.floor[i]
    for i in range(4):
        out.orientation[w, i] = snap.motion.orientation[i]
        out.target_q[w, i] = s.goal_q[i]
    for i in range(6):
        out.hand[w, i] = s.hand[i]
    for i in range(snap.books.size):
        out.energy[w, i] = snap.books[i]
    t, n = snap.contacts, snap.counter[CONTACTS]
    out.n_contacts[w] = n
    for k in range(n):
        out.contact_status[w, k] = t.status[k]
        for i in range(3):
            out.contact_point[w, k, i] = t.point[k, i]
            out.contact_force[w, k, i] = -t.force[k, i]
    publish(s.picture_control)


@kernel
def tick(s):
    """One tick of the servo. Returns OK or NOT_FINITE; force and moment are on s.port."""
    _take_settings(s)
    _pose(s)
    flags, status = _steps(s)
    if status != OK:
        return end_tick(s.port, status, 0)
    status = measure(s.snap)
    _feedback(s, flags)
    for i in range(3):
        if not abs(s.port.force[i]) + abs(s.port.torque[i]) < BOUNDED:
            status = NOT_FINITE
    s.counter[TICK] += 1
    _publish(s)
    return end_tick(s.port, status, 0)
