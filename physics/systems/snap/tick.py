"""The servo's tick of a snap connector: the hand's pose is the target that the admittance controller follows.

Everything is computed at the servo's rate (`palpo.physics.systems.snap.step.step`), in substeps, if any,
along which the target goes evenly from one pose of the hand to the next. The hand feels the pull of the
hold, D_ad (V - W) + K_ad eh, in the mean of the tick: its work on the hand's way is the energy that the
books say the hand gave, so that the coupling is passive. The tick allocates nothing, asks nothing of the
interpreter and reports by its status.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.admittance import plug_energy
from palpo.physics.contact.laws import SLIP
from palpo.physics.exchange.buffer import acquire, is_fresh, publish, writer_slot
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.port import CONTACTS_LOST, NOT_FINITE, OK, SLIDES, TOUCHES, Port, end_tick
from palpo.physics.exchange.snap_frame import SnapPicture, SnapSettings
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import (
    dot3,
    norm3,
    quat_difference,
    quat_multiply,
    quat_normalise,
    rotate_by,
)
from palpo.physics.systems.snap.model import SnapState
from palpo.physics.systems.snap.step import step, take_settings

BOUNDED = 1e12
"""Past this sum of forces [N] and moments [N m] a run is lost."""

COUNT = np.dtype([("tick", np.int64), ("settings", np.int64)])
"""Ticks done; the number of the settings in force."""


class SnapServo(NamedTuple):
    """Everything that a tick reads and writes."""

    port: Port
    count: NDArray[np.void]  # type: ignore[assignment]  # (1,) of COUNT
    substeps: int
    turns: int  # whether the plug turns with the hand
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
        plug, motion, new = s.snap.plug.model, s.snap.plug.motion, s.settings.gains[slot]
        take_settings(s.snap, s.settings.value, slot)
        before = plug_energy(plug, motion)
        for i in range(6):
            for j in range(6):
                plug.mass[i, j] = new[0, i, j]
                plug.damping[i, j] = new[1, i, j]
                plug.stiffness[i, j] = new[2, i, j]
                plug.inverse[i, j] = new[3, i, j]
                plug.follow[i, j] = new[4, i, j]
        motion.work[0].target += plug_energy(plug, motion) - before
        s.count[0].settings = s.settings.id[slot]
        s.port.live[0].force_scale = s.settings.value[slot].force_scale
        s.port.live[0].max_force = s.settings.value[slot].max_force


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
    m = s.snap.plug.motion
    _follow(s)
    copy(s.rest, s.goal_q)
    if s.turns == 1:
        quat_multiply(s.port.orientation, s.rest, s.goal_q)
        quat_normalise(s.goal_q)
    if s.count[0].tick == 0:
        copy(s.goal, m.position)
        copy(s.goal, m.target_position)
        copy(s.goal_q, m.orientation)
        copy(s.goal_q, m.target_orientation)
    quat_difference(s.goal_q, m.target_orientation, s.way[3:])
    for i in range(3):
        s.way[i] = (s.goal[i] - m.target_position[i]) / s.substeps
        s.way[3 + i] /= s.substeps
    copy(m.target_position, s.target)
    copy(m.target_orientation, s.target_q)


@inlined
def _steps(s):
    """The substeps; returns the flags and the status."""
    snap, n, flags, told = s.snap, s.substeps, 0, s.snap.engine.solver.told[0]
    s.hand[:] = 0.0
    s.port.status[0].sweeps = 0
    s.port.info[0].residual = 0.0
    lost = snap.engine.count[0].lost
    for k in range(n):
        for i in range(3):
            s.target[i] += s.way[i]
        rotate_by(s.way[3:], s.target_q)
        if k + 1 == n:  # there, to the last bit
            copy(s.goal, s.target)
            copy(s.goal_q, s.target_q)
        if step(snap, s.target, s.target_q) != OK:
            return flags, NOT_FINITE
        for i in range(6):
            s.hand[i] += snap.plug.hand[i] / n
        s.port.status[0].sweeps += snap.engine.count[0].sweeps
        s.port.info[0].residual = max(s.port.info[0].residual, told.residual)
        flags |= told.flags
    return flags | (CONTACTS_LOST if snap.engine.count[0].lost > lost else 0), OK


@kernel
def _feedback(s, flags):
    """Force and moment on the hand, and the numbers that go with them."""
    port, snap, depth, pressed, slides = s.port, s.snap, 0.0, 0, False
    n = snap.engine.contacts.count[0].found
    for k in range(n):
        depth = max(depth, -snap.search.found.gap[k])
        pressed += 1 if snap.engine.r[3 * k] > 0.0 else 0
        slides = slides or (snap.engine.r[3 * k] > 0.0 and snap.engine.contacts.status[k] == SLIP)
    along = s.rail[1]
    pull = dot3(s.hand, along)
    for i in range(3):
        # what the rail takes does no work on the hand
        port.force[i] = pull * along[i] if _railed(s) else s.hand[i]
        port.torque[i] = s.hand[3 + i]
        port.info[0].total[i] = snap.plug.wrench[i]
        port.info[0].held[i] = snap.plug.motion.position[i]
    port.info[0].depth = depth
    port.status[0].contacts = pressed
    port.status[0].felt = (TOUCHES if pressed > 0 else 0) | (SLIDES if slides else 0)
    port.status[0].rows = 3 * n
    port.status[0].frame = s.count[0].settings
    port.status[0].replayed = 0
    port.status[0].flags = flags


@kernel
def _publish(s):
    """The picture of this tick."""
    out, snap, w, first = s.picture, s.snap, writer_slot(s.picture_control), 0
    out.tick[w] = s.count[0].tick
    for k in range(snap.prongs.size):
        x = handle_like(snap.prong, snap.prongs[k]).state.x
        copy(x, out.coordinates[w, first : first + x.size])
        first += x.size
    plug = snap.plug
    for i in range(3):
        out.force[w, i] = plug.wrench[i]
        out.torque[w, i] = plug.wrench[3 + i]
    copy(plug.motion.position, out.position[w])
    copy(plug.motion.orientation, out.orientation[w])
    copy(s.goal, out.target[w])
    copy(s.goal_q, out.target_q[w])
    copy(snap.floor, out.floor[w])
    copy(s.hand, out.hand[w])
    out.energy[w] = snap.books[0]
    t, search, n = snap.engine.contacts, snap.search, snap.engine.contacts.count[0].found
    out.n_contacts[w] = n
    for k in range(n):
        out.contact_status[w, k] = t.status[k]
        copy(search.candidates.position[search.found.candidate[k]], out.contact_point[w, k])
        for i in range(3):
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
    _feedback(s, flags)
    for i in range(3):
        if not abs(s.port.force[i]) + abs(s.port.torque[i]) < BOUNDED:
            status = NOT_FINITE
    s.count[0].tick += 1
    _publish(s)
    return end_tick(s.port, status, 0)
