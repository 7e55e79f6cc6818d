"""The servo's step of HapCo: `palpo.physics.systems.hapco` as one compiled tick on W gathered from K^-1.

Pose, settings, detection, free displacement, W, contact forces, equilibrium, feedback, picture. No low-rate
loop takes part. The tick allocates nothing, asks nothing of the interpreter and reports by its status.

**Coupling.** The bodies have no inertia, so a virtual coupling between the hand's pose t and the frame's pose
p is a compliance in series. By backward Euler, with e = t - p, its force k e + b (e - e_last) / h balances
the contact force F:

    p = t - (b / h) / (k + b / h) e_last + F / (k + b / h)

so that H_rigid diag(1 / (k + b / h)) H_rigid^T joins W, and likewise for the rotation vector and the moment:
six columns in all. At rest the hand feels 1 / (1 / k + W). The damping is between frame and hand: in free
motion there is no force. The hand always feels F, for what holds a body without inertia is what pushes it.
Rotations are linearised about the pose in which contacts are found: the frame's last one, moved as the hand
has moved since.

**Working set.** Only contacts that bore last or sink in are solved for (palpo.physics.systems.working_set).

**Solver.** Anderson's method, or the bi-potential Uzawa's of 001 (N. Talbi's thesis, 2.8.2), whose parameters
are those of its interface (section 4.4.2). Stopped short, either gives the force of the least residual met.
Too large a rho makes the sweeps of the latter swing or grow; a relative residual does not tell a force of
that kind from a small one, so that in newtons it must be no worse than the starting force, which is given
otherwise.

**Time.** The solver ends at its tolerance, at its sweeps, or when the time lent to it is over; the clock is
looked at after every CHUNK sweeps only. So a tick whose sweeps a recording has kept is repeated bit for bit
without a clock, by giving it those sweeps as its limit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.arrays import all_finite, copy_rows
from palpo.physics.bodies.boundary import (
    Boundary,
    GatherScratch,
    add_delassus,
    add_surface_displacement,
    place_surface,
)
from palpo.physics.collision.contact_surface import ContactSurface
from palpo.physics.collision.mobile_vertices import (
    Contacts,
    MobileFeatures,
    Tracker,
    body_axes,
    contact_forces,
    find_contacts,
    free_gaps,
    hold_on,
    starting_forces,
)
from palpo.physics.contact.anchors import Anchors
from palpo.physics.contact.laws import BIPOTENTIAL, augment, contact_status, project_cone
from palpo.physics.contact.residual import RUNAWAY, natural_map_norm
from palpo.physics.contact.solvers.anderson import CONTINUE, RESIDUAL, SWEEPS, Acceleration, advance, begin
from palpo.physics.contact.solvers.block import set_offset
from palpo.physics.contact.solvers.relaxation import (
    DIVERGED,
    PHYSICAL,
    UZAWA,
    Local,
    least_stiffness,
    relative_residual,
    relax_sweeps,
)
from palpo.physics.contact.solvers.uzawa import DISPLACEMENT, ONCE
from palpo.physics.exchange.atomics import view_flat, view_square
from palpo.physics.exchange.buffer import acquire, is_fresh, publish, writer_slot
from palpo.physics.exchange.lent_clock import LentClock, read_clock
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
    TIME_SPENT,
    Port,
    end_tick,
)
from palpo.physics.exchange.quasistatic_frame import (
    ANDERSON,
    SET_COLLISION,
    SET_ERROR_KIND,
    SET_FRICTION,
    SET_GAUSS_SEIDEL_ERROR,
    SET_HOLD,
    SET_LIVE,
    SET_MODULUS,
    SET_RHO,
    SET_RHO_FACTOR,
    SET_SOLVER,
    SET_STYLUS_FRICTION,
    SET_STYLUS_WEIGHT,
    SET_SWEEPS,
    SET_TIME_CAP,
    SET_TOLERANCE,
    SET_UZAWA_ERROR,
    SET_ZOOM_RANGE,
    SET_ZOOM_SCALE,
    UZAWA_LOCAL,
    Picture,
    Settings,
)
from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import (
    cross3,
    norm3,
    quat_difference,
    quat_multiply,
    quat_normalise,
    quat_to_matrix,
    rotate_by,
)
from palpo.physics.systems.working_set import (
    READ_AT,
    SIZE,
    SOLVES,
    SPENT,
    WorkingSet,
    admit,
    gather_points,
    gather_rows,
    scatter,
    start_set,
    sunk,
)

CHUNK = 16
"""Sweeps between two looks at the clock."""

LOCAL_STEPS = 20
"""Most steps of a local visit, which the next one goes on from: between two looks at the clock 66 contacts
make some 2e4."""

PART = 0.5**0.5
"""Share of the solver's tolerance for the working set, and for what is outside: their squares add up."""

SLOW = 5e-3
"""Speed of the hand below which friction is made up for in proportion [m/s]."""

# Entries of QuasistaticServo.counter
TICK, SETTINGS_ID, SWEEP_CAPS, TIME_CAPS, LOST_CONTACTS, DIRECT, TURNS, FACETED, DIVERGENCES = range(9)
# Entries of QuasistaticServo.value
STEP, EDGE_REACH = range(2)


class Side(NamedTuple):
    """One body of s boundary nodes in up to c contacts."""

    boundary: Boundary
    gravity: NDArray[np.float64]  # (3,) [m/s2], world axes
    position: NDArray[np.float64]  # (3,) [m] centre of the clamped nodes
    orientation: NDArray[np.float64]  # (4,)
    rotation: NDArray[np.float64]  # (3, 3)
    flat: NDArray[np.float64]  # (3 s,) displacement [m], body axes
    u: NDArray[np.float64]  # (s, 3) the same memory
    x: NDArray[np.float64]  # (s, 3) [m] world axes
    loaded: NDArray[np.int32]  # (m,) slots under load
    push: NDArray[np.float64]  # (m, 3) their loads over the modulus [N], body axes
    axes: NDArray[np.float64]  # (c, 3, 3) rows of H
    free: NDArray[np.float64]  # (c, 3) contact points without contact force [m], world axes
    gather: GatherScratch


class Coupling(NamedTuple):
    """Between the hand's pose and the frame's."""

    rest: NDArray[np.float64]  # (4,) orientation of the frame when the device's is the identity
    target: NDArray[np.float64]  # (3,) [m]
    target_q: NDArray[np.float64]  # (4,)
    hand: NDArray[np.float64]  # (3,) [m] the port's last position, before the zoom
    error: NDArray[np.float64]  # (6,) [m], [rad] target less frame at the end of the last tick
    free: NDArray[np.float64]  # (6,) the frame's motion from where contacts are found, without contact
    give: NDArray[np.float64]  # (6,) [m/N], [rad/(N m)]
    rows: NDArray[np.float64]  # (6, 3 c) H_rigid^T
    wrench: NDArray[np.float64]  # (6,) of the contacts on the frame [N], [N m]
    vectors: NDArray[np.float64]  # (6, 4) scratch


class Problem(NamedTuple):
    """The contact problem of up to c contacts; W of the m in the working set is packed in 9 m^2 entries."""

    w: NDArray[np.float64]  # (9 c^2,)
    b: NDArray[np.float64]  # (3 c,)
    mu: NDArray[np.float64]  # (c,)
    r: NDArray[np.float64]  # (3 c,)
    u: NDArray[np.float64]  # (3 c,)
    status: NDArray[np.int32]  # (c,)
    order: NDArray[np.int32]  # (c,) 0, 1, 2, ...
    force: NDArray[np.float64]  # (c, 3) on the mobile body [N], world axes
    part: WorkingSet
    acceleration: Acceleration
    """Of Anderson's method; Uzawa's keeps its sweeps, rho, best force and residual in the same places."""
    work: NDArray[np.float64]  # (15, 3) scratch of Uzawa's method


class QuasistaticServo(NamedTuple):
    """Everything that a tick reads and writes."""

    port: Port
    counter: NDArray[np.int64]
    value: NDArray[np.float64]
    live: NDArray[np.float64]  # (SETTINGS,) in force
    mobile: Side
    fixed: Side
    surface: ContactSurface
    features: MobileFeatures
    tracker: Tracker
    anchors: Anchors
    contacts: Contacts
    coupling: Coupling
    problem: Problem
    settings: Settings
    settings_control: NDArray[np.int64]
    picture: Picture
    picture_control: NDArray[np.int64]
    clock: LentClock


@kernel
def _take_settings(s):
    """What an operator may have changed."""
    if is_fresh(s.settings_control):
        slot, _ = acquire(s.settings_control)
        for i in range(s.live.shape[0]):
            s.live[i] = s.settings.value[slot, i]
        s.counter[SETTINGS_ID] = s.settings.id[slot]
    for i in range(2):
        s.port.live[i] = s.live[SET_LIVE + i]


@kernel
def _zoomed(s, moved):
    """moved (3,) = the target's step for the hand's step [m].

    Within the zoom's range of the other body the share falls continuously with the gap, from 1 to the least
    at contact. What the hand is ahead then comes back beyond the range, in proportion to the hand's way, so
    that the map needs no clutch.
    """
    c, least, reach = s.coupling, s.live[SET_ZOOM_SCALE], s.live[SET_ZOOM_RANGE]
    share, back = 1.0, 1.0
    if reach > 0.0:
        near = min(1.0, max(0.0, s.tracker.gap[0] / reach))
        share = least + (1.0 - least) * near
        back = min(1.0, norm3(moved) / reach) if share >= 1.0 else 0.0
    for i in range(3):
        ahead = s.port.position[i] - moved[i] - c.target[i]
        moved[i] = share * moved[i] + back * ahead


@kernel
def _pose(s):
    """The hand's pose becomes the target; the frame is moved as the target has moved."""
    c, mobile, first = s.coupling, s.mobile, s.counter[TICK] == 0
    moved, turn, aim = c.vectors[0], c.vectors[1], c.vectors[2]
    for i in range(3):
        moved[i] = s.port.position[i] - c.hand[i]
        c.hand[i] = s.port.position[i]
    if not first:
        _zoomed(s, moved[:3])
    for i in range(4):
        aim[i] = c.rest[i]
    if s.counter[TURNS] == 1:
        quat_multiply(s.port.orientation, c.rest, aim)
        quat_normalise(aim)
    if first or s.counter[DIRECT] == 1:
        for i in range(4):
            mobile.orientation[i] = aim[i]
    else:
        quat_difference(aim, c.target_q, turn)
        rotate_by(turn, mobile.orientation)
    for i in range(3):
        c.target[i] = s.port.position[i] if first else c.target[i] + moved[i]
        mobile.position[i] = c.target[i] - c.error[i]
    for i in range(4):
        c.target_q[i] = aim[i]
    quat_to_matrix(mobile.orientation, mobile.rotation)


@kernel
def _free_frame(s):
    """How far the frame would move, and how much it yields, without contact from here on."""
    c, h, hold = s.coupling, s.value[STEP], s.live[SET_HOLD : SET_HOLD + 4]
    c.free[:] = 0.0
    c.give[:] = 0.0
    if s.counter[DIRECT] == 1:
        return
    turn = c.vectors[1]
    quat_difference(c.target_q, s.mobile.orientation, turn)
    stiff, damped = hold[0] + hold[1] / h, hold[1] / h
    stiff_turn, damped_turn = hold[2] + hold[3] / h, hold[3] / h
    for i in range(3):
        c.give[i] = 1.0 / stiff
        c.give[3 + i] = 1.0 / stiff_turn
        c.free[i] = (1.0 - damped / stiff) * c.error[i]
        c.free[3 + i] = turn[i] - damped_turn / stiff_turn * c.error[3 + i]


@kernel
def _detect(s):
    """Contacts between the last deformed surfaces, where the frames are now; False where one is nowhere."""
    mobile, fixed = s.mobile, s.fixed
    place_surface(mobile.boundary.rest, mobile.u, mobile.position, mobile.rotation, mobile.x)
    if not (all_finite(view_flat(mobile.x)) and all_finite(view_flat(fixed.x))):
        return False
    find_contacts(
        s.features, mobile.x, s.surface, fixed.x, fixed.rotation, s.live[SET_COLLISION], s.value[EDGE_REACH],
        s.counter[FACETED] == 1, s.anchors, s.tracker, s.contacts,
    )  # fmt: skip
    s.counter[LOST_CONTACTS] += s.contacts.count[1]
    return True


@inlined
def _body_gravity(side, softness, out):
    """out (3,) = gravity over the modulus in the body's axes: what the sag is proportional to."""
    for i in range(3):
        out[i] = 0.0
        for j in range(3):
            out[i] += softness * side.rotation[j, i] * side.gravity[j]


@kernel
def _free_points(side, softness, contacts, slots, weights, scratch):
    """side.free = where the contacts' points stand under the weight alone."""
    gravity, local = scratch[0], scratch[1]
    _body_gravity(side, softness, gravity)
    for k in range(contacts.count[0]):
        for j in range(3):
            local[j] = 0.0
        for c in range(3):
            a = slots[k, c]
            if weights[k, c] == 0.0:
                continue
            for j in range(3):
                u = 0.0
                for i in range(3):
                    u += gravity[i] * side.boundary.sag[i, a, j]
                local[j] += weights[k, c] * (side.boundary.rest[a, j] + u)
        for i in range(3):
            side.free[k, i] = (
                side.position[i]
                + side.rotation[i, 0] * local[0]
                + side.rotation[i, 1] * local[1]
                + side.rotation[i, 2] * local[2]
            )


@kernel
def _free_motion(s):
    """b: gaps and slips of the contacts without contact force."""
    contacts, c, scratch = s.contacts, s.coupling, s.coupling.vectors
    _free_points(
        s.mobile, 1.0 / s.live[SET_MODULUS], contacts, contacts.slots[0], contacts.weights[0], scratch
    )
    _free_points(
        s.fixed, 1.0 / s.live[SET_MODULUS + 1], contacts, contacts.slots[1], contacts.weights[1], scratch
    )
    free_gaps(contacts, s.mobile.free, s.fixed.free, s.fixed.rotation, s.problem.b)
    if s.counter[DIRECT] == 1:
        return
    arm, moment = scratch[0], scratch[1]
    for k in range(contacts.count[0]):
        for i in range(3):
            arm[i] = s.mobile.free[k, i] - s.mobile.position[i]
        for d in range(3):
            cross3(arm, contacts.frame[k, d], moment)
            for i in range(3):
                c.rows[i, 3 * k + d] = contacts.frame[k, d, i]
                c.rows[3 + i, 3 * k + d] = moment[i]
                s.problem.b[3 * k + d] += c.free[i] * contacts.frame[k, d, i] + c.free[3 + i] * moment[i]


@kernel
def _delassus(s, w):
    """w (3 m, 3 m) = H1 K1^-1 H1^T + H2 K2^-1 H2^T of the working set, and the coupling's six columns."""
    part = s.problem.part
    n = part.count[SIZE]
    gather_points(s.contacts, s.coupling.rows, part)
    w[:] = 0.0
    # a body of another modulus has its compliance scaled, hence its rows by the root
    frame, member = s.contacts.frame, part.member[:n]
    body_axes(frame, member, s.mobile.rotation, (1.0 / s.live[SET_MODULUS]) ** 0.5, s.mobile.axes)
    body_axes(frame, member, s.fixed.rotation, -((1.0 / s.live[SET_MODULUS + 1]) ** 0.5), s.fixed.axes)
    add_delassus(
        s.mobile.boundary.compliance, n, s.problem.order, part.slots[0], part.weights[0], s.mobile.axes,
        s.mobile.gather, w,
    )  # fmt: skip
    add_delassus(
        s.fixed.boundary.compliance, n, s.problem.order, part.slots[1], part.weights[1], s.fixed.axes,
        s.fixed.gather, w,
    )  # fmt: skip
    if s.counter[DIRECT] == 1:
        return
    rows = part.rows
    for i in range(3 * n):
        line = w[i]
        for c in range(6):
            factor, column = s.coupling.give[c] * rows[c, i], rows[c]
            for j in range(3 * n):
                line[j] += factor * column[j]


@kernel
def _start(s):
    """The last equilibrium's forces, in the contacts' present axes and in their cones."""
    p = s.problem
    starting_forces(s.contacts, s.fixed.rotation, p.r)
    for k in range(s.contacts.count[0]):
        p.mu[k] = s.live[SET_FRICTION]
        project_cone(p.r[3 * k : 3 * k + 3], p.mu[k], p.r[3 * k : 3 * k + 3])


@kernel
def _bound(w, b, r, n):
    """|r| past which a solve has diverged [N] (palpo.physics.contact.residual.runaway)."""
    trace, free, warm = 0.0, 0.0, 0.0
    for i in range(n):
        trace += w[i, i]
        free += b[i] ** 2
        warm += r[i] ** 2
    scale = n / trace if trace > 0.0 else 1.0
    return RUNAWAY * (free**0.5 * scale + warm**0.5)


@kernel
def _solve(s, w, began):
    """Forces of the working set within tolerance and what is left of sweeps and time; returns the flags.

    began: reading of the clock at the tick's first solve [ns].
    """
    p, a, n = s.problem.part, s.problem.acceleration, s.problem.part.count[SIZE]
    mu, flags = p.mu[:n], 0
    s.port.info[INFO_RESIDUAL] = 0.0
    if n == 0:
        return flags
    before = p.count[SPENT]
    limit, cap = int(s.live[SET_SWEEPS]) - before, 1e9 * s.live[SET_TIME_CAP]
    uzawa = s.live[SET_SOLVER] != ANDERSON
    begin(w, p.b, mu, p.r, p.u, 0, a)
    at_start = 0.0
    if uzawa:
        at_start = _error(s, w, p.r)
        _set_rho(s, w)
    bound, code = _bound(w, p.b, p.r, 3 * n), CONTINUE
    while code == CONTINUE:
        left, done = limit - a.count[SWEEPS], before + a.count[SWEEPS]
        if left <= 0:
            flags |= SWEEPS_SPENT
            s.counter[SWEEP_CAPS] += 1
            break
        if cap > 0.0 and done % CHUNK == 0 and done != p.count[READ_AT]:
            p.count[READ_AT] = done
            if read_clock(s.clock) - began > cap:
                flags |= TIME_SPENT
                s.counter[TIME_CAPS] += 1
                break
        span = min(CHUNK - done % CHUNK, left)
        if uzawa:
            code = _relax(s, w, bound, span)
        else:
            code = advance(w, p.b, mu, p.r, p.u, 0, _tolerance(s), bound, span, a)
    if uzawa:
        code = _end_uzawa(s, w, code, at_start)
    if code == DIVERGED:
        flags |= SOLVE_DIVERGED
        s.counter[DIVERGENCES] += 1
    for i in range(3 * n):
        p.r[i] = a.best[i]
    set_offset(w, p.b, p.r, p.u, 0, 3 * n)
    p.count[SPENT] += a.count[SWEEPS]
    s.port.info[INFO_RESIDUAL] = a.least[RESIDUAL]
    return flags


@inlined
def _tolerance(s):
    """The solver's, of which the set and what is outside have a part each if anything is outside."""
    whole = s.problem.part.count[SIZE] == s.contacts.count[0]
    return s.live[SET_TOLERANCE] if whole else PART * s.live[SET_TOLERANCE]


@kernel
def _set_rho(s, w):
    """rho of every contact: imposed, or rho_min of W; times the factor."""
    rho = s.live[SET_RHO] if s.live[SET_RHO] > 0.0 else least_stiffness(w)
    s.problem.acceleration.step[: s.problem.part.count[SIZE]] = s.live[SET_RHO_FACTOR] * rho


@kernel
def _relax(s, w, bound, sweeps):
    """Up to `sweeps` sweeps more of Uzawa's method after `begin`; returns as `advance`."""
    p, a, n = s.problem.part, s.problem.acceleration, s.problem.part.count[SIZE]
    length = 0.0  # L: the largest free gap or slip [m]
    for i in range(3 * n):
        length = max(length, abs(p.b[i]))
    kind, limit = int(s.live[SET_ERROR_KIND]), s.live[SET_GAUSS_SEIDEL_ERROR]
    rule = DISPLACEMENT if s.live[SET_SOLVER] == UZAWA_LOCAL else ONCE
    local = Local(UZAWA, BIPOTENTIAL, rule, s.live[SET_UZAWA_ERROR] * length, False, LOCAL_STEPS)
    code, done, a.least[RESIDUAL] = relax_sweeps(
        w, p.b, p.mu[:n], a.step, local, kind, limit * length if kind == PHYSICAL else limit,
        _tolerance(s), bound, sweeps, p.r[: 3 * n], p.u[: 3 * n], a.best[: 3 * n],
        a.least[RESIDUAL], s.problem.work,
    )  # fmt: skip
    a.count[SWEEPS] += done
    return code


@kernel
def _error(s, w, r):
    """|| r - Proj(r - rho (u + mu |u_t| n)) || [N] of the force r, shape (3 n,) at least; u follows it."""
    p, n = s.problem.part, s.problem.part.count[SIZE]
    set_offset(w, p.b, r, p.u, 0, 3 * n)
    return natural_map_norm(w, p.mu, r, p.u, 0, n, s.problem.work)[0]


@kernel
def _end_uzawa(s, w, code, at_start):
    """a.best becomes the force to give, and p.r is spent; DIVERGED where that is the one at the start."""
    p, a, n = s.problem.part, s.problem.acceleration, s.problem.part.count[SIZE]
    ended = code != CONTINUE and code != DIVERGED
    if code != DIVERGED:
        set_offset(w, p.b, p.r, p.u, 0, 3 * n)
        error = relative_residual(w, p.mu[:n], p.r[: 3 * n], p.u[: 3 * n], s.problem.work)
        if ended or error < a.least[RESIDUAL]:
            a.least[RESIDUAL] = error
            for i in range(3 * n):
                a.best[i] = p.r[i]
    if ended or _error(s, w, a.best) <= at_start:
        return code
    sweeps = a.count[SWEEPS]
    gather_rows(s.contacts.count[0], s.problem.b, s.problem.mu, s.problem.r, p)
    begin(w, p.b, p.mu[:n], p.r, p.u, 0, a)
    a.count[SWEEPS] = sweeps
    return DIVERGED


@kernel
def _judge(s, w):
    """Status of each contact, by the branch of the natural map's projection."""
    p, n, mean, star = s.problem, s.contacts.count[0], 0.0, s.coupling.vectors[0]
    rows = 3 * p.part.count[SIZE]
    for i in range(rows):
        mean += w[i, i]
    rho = rows / mean if mean > 0.0 else 1.0
    for k in range(n):
        i = 3 * k
        augment(BIPOTENTIAL, p.r[i : i + 3], p.u[i : i + 3], p.mu[k], rho, rho, star)
        p.status[k] = contact_status(p.r[i], star, p.mu[k])


@kernel
def _press(side, softness, sense, contacts, slots, weights, force):
    """side.u and side.x in equilibrium under sense times the contact forces (n, 3), and the weight."""
    n = 0
    for k in range(contacts.count[0]):
        f = force[k]
        if f[0] == 0.0 and f[1] == 0.0 and f[2] == 0.0:
            continue
        for c in range(3):
            a = slots[k, c]
            if weights[k, c] == 0.0:
                continue
            if side.gather.place[a] < 0:
                side.gather.place[a] = n
                side.loaded[n] = a
                side.push[n] = 0.0
                n += 1
            m, share = side.gather.place[a], sense * softness * weights[k, c]
            for j in range(3):
                for i in range(3):
                    side.push[m, j] += share * side.rotation[i, j] * f[i]
    gravity = side.free[0]
    _body_gravity(side, softness, gravity)
    for a in range(side.u.shape[0]):
        for j in range(3):
            side.u[a, j] = 0.0
            for i in range(3):
                side.u[a, j] += gravity[i] * side.boundary.sag[i, a, j]
    add_surface_displacement(side.boundary.compliance, side.loaded[:n], side.push[:n], side.flat)
    for m in range(n):
        side.gather.place[side.loaded[m]] = -1
    place_surface(side.boundary.rest, side.u, side.position, side.rotation, side.x)


@kernel
def _yield_frame(s):
    """The contact forces on the mobile body, and its frame's pose under them."""
    contacts, c, mobile, p = s.contacts, s.coupling, s.mobile, s.problem
    n, arm, moment = contacts.count[0], c.vectors[0], c.vectors[1]
    contact_forces(contacts, p.r, p.force)
    if s.counter[DIRECT] == 0:
        c.wrench[:] = 0.0
        for k in range(n):
            for i in range(3):
                arm[i] = mobile.free[k, i] - mobile.position[i]
            cross3(arm, p.force[k], moment)
            for i in range(3):
                c.wrench[i] += p.force[k, i]
                c.wrench[3 + i] += moment[i]
        for i in range(3):
            mobile.position[i] += c.free[i] + c.give[i] * c.wrench[i]
            c.error[i] = c.target[i] - mobile.position[i]
            moment[i] = c.free[3 + i] + c.give[3 + i] * c.wrench[3 + i]
        rotate_by(moment, mobile.orientation)
        quat_to_matrix(mobile.orientation, mobile.rotation)
        quat_difference(c.target_q, mobile.orientation, c.error[3:6])


@kernel
def _shape(s):
    """Both bodies under the contact forces and their weight."""
    contacts, mobile, fixed, p = s.contacts, s.mobile, s.fixed, s.problem
    _press(mobile, 1.0 / s.live[SET_MODULUS], 1.0, contacts, contacts.slots[0], contacts.weights[0], p.force)
    _press(
        fixed, 1.0 / s.live[SET_MODULUS + 1], -1.0, contacts, contacts.slots[1], contacts.weights[1], p.force
    )


@kernel
def _hold(s):
    """What sticks in the equilibrium holds on."""
    hold_on(
        s.contacts, s.problem.force, s.problem.status, s.mobile.x, s.surface, s.fixed.x, s.fixed.rotation,
        s.anchors, s.tracker,
    )  # fmt: skip


@kernel
def whole_matrix(s, w):
    """w (3 n, 3 n) [m/N] of all contacts that the last tick found, not of its working set; between ticks."""
    part, mobile = s.problem.part, s.mobile
    for i in range(3):
        for j in range(3):
            mobile.rotation[i, j] = part.pose[7 + 3 * i + j]
    for k in range(s.contacts.count[0]):
        part.inside[k] = True
    gather_rows(s.contacts.count[0], s.problem.b, s.problem.mu, s.problem.r, part)
    _delassus(s, w)
    quat_to_matrix(mobile.orientation, mobile.rotation)


@kernel
def _open_set(s):
    """The first working set of a tick; returns the reading of the clock [ns]."""
    contacts, part = s.contacts, s.problem.part
    start_set(contacts.force, contacts.count[0], part)
    admit(contacts.count[0], contacts.gap, 1, part)
    _keep_pose(s)
    return read_clock(s.clock)


@kernel
def _assemble(s):
    """The problem of the working set; False where a number is not finite."""
    p = s.problem
    gather_rows(s.contacts.count[0], p.b, p.mu, p.r, p.part)
    _delassus(s, _matrix(s))
    return _posed(s)


@kernel
def _respond(s, last):
    """Frame and shapes under the forces found; whether they stand, or the set has grown."""
    p, part, n = s.problem, s.problem.part, s.contacts.count[0]
    scatter(n, part, p.r, p.u)
    _yield_frame(s)
    _shape(s)
    _gaps(s)
    if _settled(s, _matrix(s)) or last:
        s.port.status[STATUS_SWEEPS] = part.count[SPENT]
        _judge(s, _matrix(s))
        return True
    admit(n, p.u, 3, part)
    _take_pose_back(s)
    return False


@kernel
def _solve_set(s):
    """Forces and equilibrium of a working set that grows by what sinks in; the flags, -1 if not posed."""
    began = _open_set(s)
    for left in range(SOLVES, 0, -1):
        if not _assemble(s):
            return -1
        flags = _solve(s, _matrix(s), began)
        if _respond(s, flags != 0 or left == 1):
            break
    return flags


@kernel
def _gaps(s):
    """u_n of the contacts outside the working set, between the bodies as they are shaped."""
    contacts, p, q = s.contacts, s.coupling.vectors[0], s.coupling.vectors[1]
    for k in range(contacts.count[0]):
        if s.problem.part.inside[k]:
            continue
        _contact_point(s.mobile, contacts.slots[0, k], contacts.weights[0, k], p)
        _contact_point(s.fixed, contacts.slots[1, k], contacts.weights[1, k], q)
        s.problem.u[3 * k] = 0.0
        for i in range(3):
            s.problem.u[3 * k] += contacts.frame[k, 0, i] * (p[i] - q[i])


@kernel
def _settled(s, w):
    """Whether what sinks in outside the set is within the solver's tolerance; the residual has it, too."""
    error, size = sunk(s.contacts.count[0], w, s.problem.part, s.problem.u)
    if error == 0.0:
        return True
    error = error / size if size > 0.0 else np.inf
    s.port.info[INFO_RESIDUAL] = (s.port.info[INFO_RESIDUAL] ** 2 + error * error) ** 0.5
    return error <= _tolerance(s)


@kernel
def _keep_pose(s):
    """Remember where the frame is."""
    pose = s.problem.part.pose
    for i in range(3):
        pose[i] = s.mobile.position[i]
        for j in range(3):
            pose[7 + 3 * i + j] = s.mobile.rotation[i, j]
    for i in range(4):
        pose[3 + i] = s.mobile.orientation[i]


@kernel
def _take_pose_back(s):
    """The frame to where `_keep_pose` found it."""
    pose = s.problem.part.pose
    for i in range(3):
        s.mobile.position[i] = pose[i]
        for j in range(3):
            s.mobile.rotation[i, j] = pose[7 + 3 * i + j]
    for i in range(4):
        s.mobile.orientation[i] = pose[3 + i]


@kernel
def _feedback(s, flags):
    """Force and moment on the hand, and the numbers that go with them; returns the tick's status."""
    port, contacts, p, mobile = s.port, s.contacts, s.problem, s.mobile
    arm, moment = s.coupling.vectors[0], s.coupling.vectors[1]
    wrench, depth, active = s.coupling.wrench, 0.0, 0
    wrench[:] = 0.0
    for k in range(contacts.count[0]):
        _contact_point(mobile, contacts.slots[0, k], contacts.weights[0, k], arm)
        for i in range(3):
            arm[i] -= mobile.position[i]
        cross3(arm, p.force[k], moment)
        for i in range(3):
            wrench[i] += p.force[k, i]
            wrench[3 + i] += moment[i]
        depth = max(depth, -p.u[3 * k])
        if p.r[3 * k] > 0.0:
            active += 1
    speed = norm3(port.velocity)
    along = s.live[SET_STYLUS_FRICTION] / max(speed, SLOW)
    check = 0.0
    for i in range(3):
        port.info[INFO_SUM + i] = wrench[i]
        port.info[INFO_HELD + i] = mobile.position[i]
        port.force[i] = wrench[i] + along * port.velocity[i]
        port.torque[i] = wrench[3 + i]
        check += abs(port.force[i]) + abs(port.torque[i]) + abs(mobile.position[i])
    port.force[1] += s.live[SET_STYLUS_WEIGHT]
    port.info[INFO_DEPTH] = depth
    port.status[STATUS_CONTACTS] = active
    port.status[STATUS_ROWS] = 3 * contacts.count[0]
    port.status[STATUS_FRAME] = s.counter[SETTINGS_ID]
    port.status[STATUS_REPLAYED] = 0
    port.status[STATUS_FLAGS] = flags | (CONTACTS_LOST if contacts.count[1] > 0 else 0)
    return OK if check < 1e12 else NOT_FINITE


@inlined
def _contact_point(side, slots, weights, out):
    """out (3,) = the point of a body by slots and weights (3,) [m]."""
    for i in range(3):
        out[i] = 0.0
        for c in range(3):
            out[i] += weights[c] * side.x[slots[c], i]


@kernel
def _publish(s):
    """The picture of this tick."""
    out, w, c = s.picture, writer_slot(s.picture_control), s.coupling
    first, n = s.mobile.x.shape[0], s.contacts.count[0]
    out.tick[w] = s.counter[TICK]
    copy_rows(s.mobile.x, out.surface[w, :first])
    copy_rows(s.fixed.x, out.surface[w, first:])
    for i in range(3):
        out.position[w, i] = s.mobile.position[i]
        out.target[w, i] = c.target[i]
        out.force[w, i] = c.wrench[i]
        out.torque[w, i] = c.wrench[3 + i]
    for i in range(4):
        out.orientation[w, i] = s.mobile.orientation[i]
        out.target_q[w, i] = c.target_q[i]
    out.n_contacts[w] = n
    for k in range(n):
        _contact_point(s.mobile, s.contacts.slots[0, k], s.contacts.weights[0, k], out.contact_point[w, k])
        out.contact_status[w, k] = s.problem.status[k]
        for i in range(3):
            out.contact_force[w, k, i] = s.problem.force[k, i]
    publish(s.picture_control)


@inlined
def _matrix(s):
    """W of the working set, shape (3 m, 3 m), over the packed memory."""
    return view_square(s.problem.w, 3 * s.problem.part.count[SIZE])


@inlined
def _posed(s):
    """Whether all numbers of the contact problem are."""
    rows = 3 * s.problem.part.count[SIZE]
    return all_finite(s.problem.w[: rows * rows]) and all_finite(s.problem.b[: 3 * s.contacts.count[0]])


@kernel
def tick(s):
    """One step of the servo. Returns OK or NOT_FINITE; force and moment are on s.port."""
    _take_settings(s)
    _pose(s)
    _free_frame(s)
    if not _detect(s):
        return end_tick(s.port, NOT_FINITE, 0)
    _free_motion(s)
    _start(s)
    flags = _solve_set(s)
    if flags < 0:
        return end_tick(s.port, NOT_FINITE, 0)
    _hold(s)
    status = _feedback(s, flags)
    s.counter[TICK] += 1
    _publish(s)
    return end_tick(s.port, status, 0)


@kernel
def run_ticks(s, positions, forces):
    """A tick for each of positions (n, 3) [m], the feedback to forces (n, 3) [N]; how many were well."""
    for k in range(positions.shape[0]):
        for i in range(3):
            s.port.position[i] = positions[k, i]
        if tick(s) != OK:
            return k
        for i in range(3):
            forces[k, i] = s.port.force[i]
    return positions.shape[0]
