"""The servo's step of HapCo as one compiled tick on the engine.

Two quasi-static surfaces, one in the hand (palpo.physics.compliance.surface), the vertices of one tracked
over the other (palpo.physics.collision.tracked_contacts), and the steps of N. Talbi's thesis (section 2.7,
figure 2.12) in their order: move the frame, detect, free displacement, W, contact forces, displacement of
both bodies, force on the hand. No low-rate loop takes part. The tick allocates nothing, asks nothing of the
interpreter and reports by its status.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.tracked_contacts import Tracked
from palpo.physics.compliance.surface import swap_poses
from palpo.physics.compliance.surface_state import Surface
from palpo.physics.contact.laws import SLIP
from palpo.physics.contract.stages import DONE, PLACE, Batch, Hand
from palpo.physics.engine.equilibrium import delassus, equilibrium, gather
from palpo.physics.engine.rows import free_motion
from palpo.physics.engine.table import Engine, ask
from palpo.physics.engine.tick import begin, end, feel, find
from palpo.physics.exchange.atomics import view_flat
from palpo.physics.exchange.buffer import acquire, is_fresh, publish, writer_slot
from palpo.physics.exchange.port import CONTACTS_LOST, NOT_FINITE, OK, SLIDES, TOUCHES, Port, end_tick
from palpo.physics.exchange.quasistatic_frame import UZAWA_GLOBAL, UZAWA_LOCAL, Picture, Settings
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import norm3, quat_multiply, quat_normalise

SLOW = 5e-3
"""Speed of the hand below which friction is made up for in proportion [m/s]."""

MOBILE, FIXED = 0, 1
"""The engine's numbers of the body in the hand and of the other."""


class HandPose(NamedTuple):
    """How the port's pose becomes the hand's."""

    turns: NDArray[np.bool_]  # (1,) whether the frame turns with the hand
    rest: NDArray[np.float64]  # (4,) orientation of the frame when the device's is the identity
    last: NDArray[np.float64]  # (3,) [m] the port's last position, before the zoom
    vectors: NDArray[np.float64]  # (2, 4) scratch


class QuasistaticServo(NamedTuple):
    """Everything that a tick reads and writes."""

    port: Port
    live: NDArray[np.void]  # (1,) of VALUES in force
    live_id: NDArray[np.int64]  # (1,) their number, or that of the frame that brought them
    engine: Engine
    mobile: Surface
    fixed: Surface
    mobile_x: NDArray[np.float64]  # (s1, 3) [m] where they are, world axes
    fixed_x: NDArray[np.float64]  # (s2, 3)
    points: Batch  # of the contacts on the mobile body
    tracked: Tracked
    hand: Hand
    grip: HandPose
    settings: Settings
    settings_control: NDArray[np.int64]
    picture: Picture
    picture_control: NDArray[np.int64]


@kernel
def take_settings(s):
    """What an operator may have changed."""
    if is_fresh(s.settings_control):
        slot, _ = acquire(s.settings_control)
        s.live[0] = s.settings.value[slot]
        s.live_id[0] = s.settings.id[slot]
    put_settings(s)


@kernel
def put_settings(s):
    """The settings in force, to those that they are of."""
    live, solver, detection = s.live[0], s.engine.solver.settings[0], s.tracked.settings[0]
    s.port.live[0].force_scale, s.port.live[0].max_force = live.force_scale, live.max_force
    s.mobile.frame.gains[0] = live.hold
    s.mobile.softness[0], s.fixed.softness[0] = 1.0 / live.modulus[0], 1.0 / live.modulus[1]
    s.mobile.share[0], s.fixed.share[0] = live.renewed[0], live.renewed[1]
    detection.tolerance, detection.mu = live.collision, live.friction
    local = live.solver == UZAWA_LOCAL
    solver.method, solver.local = UZAWA_GLOBAL if local else live.solver, local
    solver.sweeps = live.sweeps
    solver.tolerance, solver.seconds = live.tolerance, live.time_cap
    solver.rho, solver.rho_factor = live.rho, live.rho_factor
    solver.error_kind = live.error_kind
    solver.gauss_seidel_error, solver.uzawa_error = live.gauss_seidel_error, live.uzawa_error


@kernel
def _zoomed(s, moved):
    """moved (3,) = the target's step for the hand's step [m].

    Within the zoom's range of the other body the share falls continuously with the gap, from 1 to the least
    at contact. What the hand is ahead then comes back beyond the range, in proportion to the hand's way, so
    that the map needs no clutch.
    """
    least, reach = s.live[0].zoom_scale, s.live[0].zoom_range
    share, back = 1.0, 1.0
    if reach > 0.0:
        near = min(1.0, max(0.0, s.tracked.tracker.gap[0] / reach))
        share = least + (1.0 - least) * near
        back = min(1.0, norm3(moved) / reach) if share >= 1.0 else 0.0
    for i in range(3):
        ahead = s.port.position[i] - moved[i] - s.hand.position[i]
        moved[i] = share * moved[i] + back * ahead


@kernel
def pose(s):
    """The port's pose becomes the hand's, near contact with a share of its way."""
    grip, hand, moved, first = s.grip, s.hand, s.grip.vectors[0], s.engine.now[0] == 0
    for i in range(3):
        moved[i] = s.port.position[i] - grip.last[i]
        grip.last[i] = s.port.position[i]
    if not first:
        _zoomed(s, moved[:3])
    for i in range(3):
        hand.position[i] = s.port.position[i] if first else hand.position[i] + moved[i]
    copy(grip.rest, hand.orientation)
    if grip.turns[0]:
        quat_multiply(s.port.orientation, grip.rest, hand.orientation)
        quat_normalise(hand.orientation)


@kernel
def tell_hand(s):
    """What the hand feels, to the port, with what makes up for the stylus's own weight and friction.

    Returns OK, or NOT_FINITE where a number is none.
    """
    port, hand, info = s.port, s.hand, s.port.info[0]
    along, check = s.live[0].stylus_friction / max(norm3(port.velocity), SLOW), 0.0
    for i in range(3):
        info.total[i], info.held[i] = hand.force[i], hand.held[i]
        port.force[i] = hand.force[i] + along * port.velocity[i]
        port.torque[i] = hand.torque[i]
        check += abs(port.force[i]) + abs(port.torque[i]) + abs(hand.held[i])
    port.force[1] += s.live[0].stylus_weight
    return OK if check < 1e12 else NOT_FINITE


@kernel
def feedback(s):
    """Force and moment on the hand, and the numbers that go with them; returns the tick's status."""
    e, status, depth, active, slides = s.engine, s.port.status[0], 0.0, 0, False
    if feel(e) != DONE or ask(e, MOBILE, PLACE, e.bodies.batch[MOBILE]) != DONE:
        return NOT_FINITE
    for k in range(e.contacts.count[0].found):
        depth = max(depth, -e.u[3 * k])
        active += e.r[3 * k] > 0.0
        slides = slides or (e.r[3 * k] > 0.0 and e.contacts.status[k] == SLIP)
    s.port.info[0].depth, s.port.info[0].residual = depth, e.solver.told[0].residual
    status.sweeps, status.contacts, status.rows = (
        e.solver.told[0].sweeps,
        active,
        3 * e.contacts.count[0].found,
    )
    status.frame, status.replayed = s.live_id[0], 0
    status.felt = (TOUCHES if active > 0 else 0) | (SLIDES if slides else 0)
    status.flags = e.solver.told[0].flags | (CONTACTS_LOST if e.contacts.count[0].lost > 0 else 0)
    return tell_hand(s)


@kernel
def draw_bodies(s, w, orientation):
    """Bodies and hand to slot w of the picture; orientation (4,) of the mobile body's frame."""
    out, first = s.picture, s.mobile_x.shape[0]
    out.tick[w] = s.engine.now[0]
    copy_rows(s.mobile_x, out.surface[w, :first])
    copy_rows(s.fixed_x, out.surface[w, first:])
    copy(s.hand.held, out.position[w])
    copy(orientation, out.orientation[w])
    copy(s.hand.position, out.target[w])
    copy(s.hand.orientation, out.target_q[w])
    copy(s.hand.force, out.force[w])
    copy(s.hand.torque, out.torque[w])


@kernel
def publish_picture(s):
    """The picture of this tick."""
    out, w, e = s.picture, writer_slot(s.picture_control), s.engine
    draw_bodies(s, w, s.mobile.frame.now.orientation)
    out.n_contacts[w] = e.contacts.count[0].found
    for k in range(e.contacts.count[0].found):
        copy(s.points.x[e.at[k, MOBILE]], out.contact_point[w, k])
        copy(e.contacts.force[k], out.contact_force[w, k])
        out.contact_status[w, k] = e.contacts.status[k]
    publish(s.picture_control)


@kernel
def tick(s):
    """One step of the servo. Returns OK or NOT_FINITE; force and moment are on s.port."""
    e = s.engine
    take_settings(s)
    pose(s)
    if begin(e) != DONE or find(e) != DONE:
        return end_tick(s.port, NOT_FINITE, 0)
    if free_motion(e) != DONE or equilibrium(e) != DONE or end(e) != DONE:
        return end_tick(s.port, NOT_FINITE, 0)
    status = feedback(s)
    publish_picture(s)
    return end_tick(s.port, status, 0)


@kernel
def whole_matrix(s, w):
    """w (3 n, 3 n) [m/N] of all contacts that the last tick found, not of its working set; between ticks."""
    e = s.engine
    for k in range(e.contacts.count[0].found):
        e.inside[k] = True
    swap_poses(s.mobile.frame)
    gather(e)
    delassus(e)
    swap_poses(s.mobile.frame)
    copy(e.problem.w, view_flat(w))


@kernel
def run_ticks(s, positions, forces):
    """A tick for each of positions (n, 3) [m], the feedback to forces (n, 3) [N]; how many were well."""
    for k in range(positions.shape[0]):
        copy(positions[k], s.port.position)
        if tick(s) != OK:
            return k
        copy(s.port.force, forces[k])
    return positions.shape[0]
