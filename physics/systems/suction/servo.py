"""The servo's tick of a held suction cup: the slow loop's own problem, solved with the hand's present pose.

A step of the slow loop (palpo.physics.systems.suction.step) is linear in the twist d by which its held frame,
the handle, moves until the step's end, but for the laws of contact, friction and air. So a frame carries

    u = W x + b + B d,    wrench on what holds the handle = S d - F - B^T x

with x = (r, p - P_atm) and u = (gaps and slips, volumes), and each tick solves contacts, friction and
pressures together (physics.engine.pressing) for the pose in which the hand is now. The virtual coupling
to the hand is a spring and a damper in parallel, implicit in the step as in the other systems: the slow loop
condenses it into W, so that the handle's twist needs no unknowns of its own. The force on the hand is minus
what the coupling has to pull the handle with: inertia, weight, elasticity, contact and suction.

**What is frozen** for a frame's life: the contacts, their normals and arms; the borders of the cavities and
their volumes' gradients; the elements' rotations, W, B and S; and n of each cavity at the step's start.
All of it is about the state in which the step began, so that the error is of first order in the low period.
The amount that escapes at P_max is found anew by each tick and committed by the slow loop alone. At the tick
in which the slow loop ends the step it solves the same problem, with the same pose.

**Momentum.** Within a step the bodies' start velocities count in proportion to the time since it began:
in free motion the handle then goes along with the hand instead of lagging behind or running ahead, and
at the step's end all of it is there. A tick keeps no state from another one but what to start from: between
two frames the hand moves in the field of a convex potential, but for friction and the momentum's share.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof, types
from numpy.typing import NDArray

from palpo.physics.contact.solvers.relaxation import project_cones
from palpo.physics.engine.pressing import press
from palpo.physics.engine.solve import Solver, make_solver, open_step
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.buffer import acquire, is_fresh, make_control, publish, reader_slot, writer_slot
from palpo.physics.exchange.handle import Handle, HandleType, handle_for
from palpo.physics.exchange.patience import come_into_force, none_in_force, wait, waits
from palpo.physics.exchange.port import NOT_FINITE, OK, SUCKS, TOUCHES, Port, end_tick, make_port
from palpo.physics.exchange.suction_frame import HandState, SuctionFrame, make_hand_state, make_suction_frame
from palpo.physics.numerics.arrays import all_finite, copy
from palpo.physics.numerics.kernels import callback, inlined, kernel
from palpo.physics.numerics.math3 import quat_difference, quat_multiply, quat_normalise, rotate_by
from palpo.physics.suction.pressure import Gas

LATEST = 2.0
"""Most steps for which the start velocities are followed when a frame is late."""

HOLDS = 0.01
"""Share of the atmosphere's pressure by which a cavity that holds is below it."""

COUNTS = np.dtype([("tick", np.int64), ("calls", np.int64), ("held", np.int64), ("turns", np.int64)])
"""Ticks done and calls; whether the hand holds the handle, and turns it."""


class Air(NamedTuple):
    """The cavities' air in the present tick, room for k of them (palpo.physics.suction.pressure.Gas)."""

    pressure: NDArray[np.float64]  # (k,) [Pa]
    amount: NDArray[np.float64]  # (k,) [mol]
    volume: NDArray[np.float64]  # (k,) [m3]
    area: NDArray[np.float64]  # (k,) [m2]
    start: NDArray[np.float64]  # (2, k)


class SuctionServo(NamedTuple):
    """Everything that a tick reads and writes."""

    port: Port
    counts: NDArray[np.void]  # (1,) of COUNTS
    in_force: NDArray[np.void]  # (1,) of palpo.physics.exchange.patience.IN_FORCE
    dt: NDArray[np.float64]  # (1,) [s]
    rest: NDArray[np.float64]  # (4,) orientation of the handle when the device's is the identity
    target: NDArray[np.float64]  # (3,) [m]
    target_q: NDArray[np.float64]  # (4,)
    position: NDArray[np.float64]  # (3,) [m] of the handle
    orientation: NDArray[np.float64]  # (4,)
    twist: NDArray[np.float64]  # (6,) of the handle since the step began
    pull: NDArray[np.float64]  # (6,) of the coupling on the handle [N], [N m]
    scratch: NDArray[np.float64]  # (2, 6)
    b: NDArray[np.float64]  # (m,)
    x: NDArray[np.float64]  # (m,)
    u: NDArray[np.float64]  # (m,)
    air: Air
    solver: Solver
    frame: SuctionFrame
    frame_control: NDArray[np.int64]
    state: HandState
    state_control: NDArray[np.int64]
    shown: HandState  # the same once more, for the picture
    shown_control: NDArray[np.int64]


def make_servo(
    position: NDArray[np.float64],
    contacts: int,
    cavities: int,
    dt: float = 1e-3,
    held: bool = True,
    turns: bool = True,
    port: Port | None = None,
    ratio: int = 20,
) -> SuctionServo:
    """A handle at position (3,) [m], upright, with room for so many contacts and cavities.

    held: whether the hand holds it; else it feels nothing. turns: whether it turns with the device. ratio:
    ticks in a low period.
    """
    m, upright = 3 * contacts + cavities, np.array([1.0, 0.0, 0.0, 0.0])
    counts = np.zeros(1, COUNTS)
    counts["held"], counts["turns"] = held, turns
    start = np.array(position, float)
    servo = SuctionServo(
        port=port or make_port(),
        counts=counts,
        in_force=none_in_force(ratio),
        dt=np.array([dt]),
        rest=upright.copy(),
        target=start.copy(),
        target_q=upright.copy(),
        position=start.copy(),
        orientation=upright.copy(),
        twist=np.zeros(6),
        pull=np.zeros(6),
        scratch=np.zeros((2, 6)),
        b=np.zeros(m),
        x=np.zeros(m),
        u=np.zeros(m),
        air=Air(
            np.ones(cavities),
            np.zeros(cavities),
            np.zeros(cavities),
            np.ones(cavities),
            np.zeros((2, cavities)),
        ),
        solver=make_solver(contacts + -(-cavities // 3)),
        frame=make_suction_frame(contacts, cavities),
        frame_control=make_control(),
        state=make_hand_state(),
        state_control=make_control(),
        shown=make_hand_state(),
        shown_control=make_control(),
    )
    servo.frame.position[:] = start
    servo.state.target[:] = servo.state.position[:] = start
    return servo


@kernel
def _take_frame(s):
    """Slot of the newest frame; a fresh one brings what to start from."""
    if not is_fresh(s.frame_control):
        return reader_slot(s.frame_control)
    f, _ = acquire(s.frame_control)
    frame = s.frame
    come_into_force(s.in_force[0], frame.id[f], frame.patience[f], s.counts[0].tick, s.port)
    rows = 3 * frame.size[f, 0]
    copy(frame.start[f], s.x[:rows])
    project_cones(frame.mu[f, : frame.size[f, 0]], s.x)
    for j in range(frame.size[f, 1]):
        s.air.pressure[j] = frame.pressure[f, j]
    s.port.live[0].force_scale = frame.settings[f].force_scale
    s.port.live[0].max_force = frame.settings[f].max_force
    return f


@kernel
def _aim(s):
    """The hand's pose becomes the target."""
    for i in range(3):
        s.target[i] = s.port.position[i]
    if s.counts[0].turns == 1:
        quat_multiply(s.port.orientation, s.rest, s.target_q)
        quat_normalise(s.target_q)


@kernel
def _free_motion(s, f):
    """The handle's twist and b without contact and pressure; scratch[0] = F, wrench on the held handle."""
    frame, load, way = s.frame, s.scratch[0], s.scratch[1]
    since = (s.counts[0].tick + 1 - frame.origin[f]) * s.dt[0]
    share = min(max(since / frame.settings[f].step, 0.0), LATEST)
    for i in range(3):
        way[i] = s.target[i] - frame.position[f, i]
    quat_difference(s.target_q, frame.orientation[f], way[3:6])
    for i in range(6):
        load[i] = frame.load[f, i] + share * frame.load_momentum[f, i]
    for i in range(6):
        s.twist[i] = frame.drift[f, i]
        for j in range(6):
            s.twist[i] += frame.follow[f, i, j] * way[j] + frame.give[f, i, j] * load[j]
    for i in range(3 * frame.size[f, 0] + frame.size[f, 1]):
        s.b[i] = frame.b[f, i] + share * frame.momentum[f, i]
        for j in range(6):
            s.b[i] += frame.rows[f, i, j] * s.twist[j]


@inlined
def _posed(s, f):
    """Whether all numbers of the problem are."""
    m = 3 * s.frame.size[f, 0] + s.frame.size[f, 1]
    return all_finite(s.frame.w[f, : m * m]) and all_finite(s.b[:m])


@kernel
def _solve(s, f):
    """Contact forces and pressures within tolerance and sweeps, from those of the last tick."""
    frame, air, told, limits = s.frame, s.air, s.solver.told[0], s.solver.settings[0]
    n, k = frame.size[f, 0], frame.size[f, 1]
    m = 3 * n + k
    open_step(s.solver)
    if m == 0:
        return
    settings, mu = frame.settings[f], frame.mu[f, :n]
    told.tolerance, limits.sweeps = settings.tolerance, settings.sweeps
    w, b, x, u = view_square(frame.w[f], m), s.b[:m], s.x[:m], s.u[:m]
    for j in range(k):
        air.amount[j] = frame.amount[f, j]
    gas = Gas(
        frame.active[f, :k], air.pressure[:k], air.amount[:k], air.volume[:k], air.area[:k],
        view_square(frame.seeping[f], k + 1), settings.atmosphere, settings.largest, settings.rt,
    )  # fmt: skip
    press(w, b, mu, x, u, gas, air.start, s.solver)


@kernel
def _yield_handle(s, f):
    """The handle's pose under contact and pressure, and what the coupling pulls it with."""
    frame, load, press = s.frame, s.scratch[0], s.scratch[1]
    press[:] = 0.0
    for i in range(3 * frame.size[f, 0] + frame.size[f, 1]):
        for j in range(6):
            press[j] += frame.rows[f, i, j] * s.x[i]
    for i in range(6):
        for j in range(6):
            s.twist[i] += frame.give[f, i, j] * press[j]
    for i in range(6):
        s.pull[i] = -load[i] - press[i]
        for j in range(6):
            s.pull[i] += frame.stiffness[f, i, j] * s.twist[j]
    for i in range(3):
        s.position[i] = frame.position[f, i] + s.twist[i]
    for i in range(4):
        s.orientation[i] = frame.orientation[f, i]
    rotate_by(s.twist[3:6], s.orientation)


@kernel
def _feedback(s, f):
    """Force and moment on the hand, and the numbers that go with them; returns the tick's status."""
    port, frame, told, depth, active, check = s.port, s.frame, s.solver.told[0], 0.0, 0, 0.0
    sucks = False
    for k in range(frame.size[f, 0]):
        depth = max(depth, -s.u[3 * k])
        active += s.x[3 * k] > 0.0
    for k in range(frame.size[f, 1]):
        sucks = sucks or s.air.pressure[k] < (1.0 - HOLDS) * frame.settings[f].atmosphere
    for i in range(3):
        port.force[i] = -s.pull[i]
        port.torque[i] = -s.pull[3 + i]
        port.info[0].total[i] = port.force[i]
        port.info[0].held[i] = s.position[i]
        check += abs(port.force[i]) + abs(port.torque[i]) + abs(s.position[i])
    port.info[0].depth = depth
    port.status[0].contacts = active
    port.status[0].felt = (TOUCHES if active > 0 else 0) | (SUCKS if sucks else 0)
    port.status[0].rows = 3 * frame.size[f, 0] + frame.size[f, 1]
    port.status[0].frame = s.in_force[0].frame
    port.status[0].replayed = 0
    port.status[0].flags = told.flags
    port.status[0].sweeps = told.sweeps
    port.info[0].residual = told.residual
    return OK if check < 1e12 else NOT_FINITE


@kernel
def _write_state(s, out, k):
    """Hand and handle after the tick into slot k of `out`."""
    out.tick[k], out.calls[k] = s.counts[0].tick, s.counts[0].calls
    for i in range(3):
        out.target[k, i], out.position[k, i] = s.target[i], s.position[i]
        out.force[k, i] = s.port.force[i]
    for i in range(4):
        out.target_q[k, i], out.orientation[k, i] = s.target_q[i], s.orientation[i]


@kernel
def _publish(s):
    """Hand and handle for the slow loop, and once more for the picture."""
    _write_state(s, s.state, writer_slot(s.state_control))
    publish(s.state_control)
    _write_state(s, s.shown, writer_slot(s.shown_control))
    publish(s.shown_control)


@kernel
def tick(s):
    """One step of the servo. Returns OK or NOT_FINITE; force and moment are on s.port.

    While a frame is overdue by far the scene's time stands still (palpo.physics.exchange.patience).
    """
    counts, in_force = s.counts[0], s.in_force[0]
    feels = counts.held == 1
    counts.calls += 1
    if feels and waits(in_force, counts.tick, s.frame_control):
        return wait(s.port, counts.tick - in_force.adopted_at + in_force.waited)
    f = _take_frame(s)
    if feels and in_force.frame > 0:
        _aim(s)
        _free_motion(s, f)
        if not _posed(s, f):
            return end_tick(s.port, NOT_FINITE, s.port.status[0].age)
        _solve(s, f)
        _yield_handle(s, f)
    status = _feedback(s, f)
    age = counts.tick - in_force.adopted_at
    counts.tick += 1
    _publish(s)
    return end_tick(s.port, status, age)


_CONTENT = typeof(make_servo(np.zeros(3), 1, 1))


@callback(types.int32(HandleType(_CONTENT)))
def suction_tick(state):
    """`int32 f(void *)`: one tick of the SuctionServo behind the handle; its status."""
    return tick(state)


def tick_data(servo: SuctionServo) -> Handle:
    """The handle whose address is the callback's user data; TypeError for a tuple of another layout."""
    return handle_for(servo, _CONTENT, "servo of a suction cup")
