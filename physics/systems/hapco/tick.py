"""What the servo of HapCo exchanges, in a tick of the engine: settings and pictures.

Two quasi-static surfaces, one in the hand (palpo.physics.compliance.surface), the vertices of one tracked
over the other (palpo.physics.collision.tracked_contacts), and the steps of N. Talbi's thesis (section 2.7,
figure 2.12), which are the engine's (palpo.physics.engine.tick) in their order: move the frame, detect, free
displacement, W, contact forces, displacement of both bodies, force on the hand. No low-rate loop takes part.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.tracked_contacts import Tracked
from palpo.physics.compliance.surface import swap_poses
from palpo.physics.compliance.surface_state import Surface
from palpo.physics.contract.stages import DONE, NOT_FINITE, PLACE, Batch, Hand
from palpo.physics.engine.equilibrium import delassus, gather
from palpo.physics.engine.grip import Grip
from palpo.physics.engine.table import Engine, ask
from palpo.physics.exchange.atomics import view_flat
from palpo.physics.exchange.buffer import publish, writer_slot
from palpo.physics.exchange.frames import SlowFrames, take_frame
from palpo.physics.exchange.hand_state import HandState, write_hand
from palpo.physics.exchange.port import Port
from palpo.physics.exchange.quasistatic_frame import UZAWA_GLOBAL, UZAWA_LOCAL
from palpo.physics.numerics.arrays import copy, copy_rows
from palpo.physics.numerics.kernels import kernel

MOBILE, FIXED = 0, 1
"""The engine's numbers of the body in the hand and of the other."""


class QuasistaticServo(NamedTuple):
    """Two bodies and their contacts in an engine, and what is exchanged of them."""

    port: Port
    ticks: NDArray[np.void]  # (1,) of palpo.physics.engine.servo.TICKS
    live: NDArray[np.void]  # (1,) of VALUES in force
    engine: Engine
    mobile: Surface
    fixed: Surface
    mobile_x: NDArray[np.float64]  # (s1, 3) [m] where they are, world axes
    fixed_x: NDArray[np.float64]  # (s2, 3)
    points: Batch  # of the contacts on the mobile body
    tracked: Tracked
    hand: Hand
    grip: Grip
    frames: SlowFrames
    settings: NDArray[np.void]  # (3,) of VALUES, that the frames bring
    picture: HandState
    surface: NDArray[np.float64]  # (3, s1 + s2, 3) [m] boundary of the mobile, then of the fixed body: drawn
    picture_control: NDArray[np.int64]


@kernel
def take_settings(s):
    """What an operator may have changed comes into force; slot of the frame with it, -1 without one."""
    f = take_frame(s.frames, 0, s.ticks[0])
    if f >= 0:
        s.live[0] = s.settings[f]
    put_settings(s)
    return f


@kernel
def put_settings(s):
    """The settings in force, to those that they are of."""
    live, solver, detection = s.live[0], s.engine.solver.settings[0], s.tracked.settings[0]
    s.mobile.frame.gains[0] = live.hold
    how = s.grip.how[0]
    how.zoom_scale, how.zoom_range = live.zoom_scale, live.zoom_range
    how.stylus_weight, how.stylus_friction = live.stylus_weight, live.stylus_friction
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
def tell(s):
    """The numbers and the picture of this tick; DONE or NOT_FINITE."""
    e, depth = s.engine, 0.0
    if ask(e, MOBILE, PLACE, e.bodies.batch[MOBILE]) != DONE:
        return NOT_FINITE
    for k in range(e.contacts.count[0].found):
        depth = max(depth, -e.u[3 * k])
    s.port.info[0].depth = depth
    publish_picture(s)
    return DONE


@kernel
def draw_bodies(s, w, orientation):
    """Bodies and hand to slot w of the picture; orientation (4,) of the mobile body's frame."""
    first = s.mobile_x.shape[0]
    copy_rows(s.mobile_x, s.surface[w, :first])
    copy_rows(s.fixed_x, s.surface[w, first:])
    write_hand(s.picture, w, s.ticks[0], s.hand, orientation)
    copy(s.hand.force, s.picture.force[w])
    copy(s.hand.torque, s.picture.torque[w])


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
