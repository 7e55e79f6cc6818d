"""The high-rate step of the multi-rate method: H1 to H6 of 003, section IV-A, as one compiled tick.

Each step is one or two of the engine's (palpo.physics.engine.tick), on three bodies: the tool, the bodies
with a low loop, and the world. The tick works on a `HighRate` tuple of preallocated arrays. It allocates
nothing, asks nothing of the interpreter and reports failure by its return value. `high_rate_tick` is the same
as a C callback, for the servo and for a device's own scheduler.
"""

from palpo.physics.arrays import copy
from palpo.physics.engine.contract import AIM, BEGIN, DONE, POINT
from palpo.physics.engine.frames import adopt, keep_yield, log_forces, see_yield
from palpo.physics.engine.tick import ask_all, ask_held, end, equilibrium, feel, find, free_motion
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.constraint_frame import SET_HOLD, SET_LIVE, SET_SWEEPS, SET_TOLERANCE
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
    end_tick,
)
from palpo.physics.kernels import kernel
from palpo.physics.systems.high_state import HOLD_REACTION, SOFT
from palpo.physics.systems.state_report import publish_state


@kernel
def h1_pose(s):
    """H1: the device's pose becomes the hold's target; its velocity is the target's own change."""
    copy(s.port.position, s.hand.position)
    copy(s.port.orientation, s.hand.orientation)
    return OK if ask_held(s.engine, AIM) == DONE else NOT_FINITE


@kernel
def take_frame(s):
    """Adopt the newest frame, brought to the present by replaying the forces that it does not contain."""
    told = s.soft.frame[0]
    if adopt(s.engine) != DONE:
        return NOT_FINITE
    s.port.status[STATUS_REPLAYED] = told.replayed
    if told.fresh == 1:
        s.counts.frame[0], s.counts.adopted_at[0], s.counts.waited[0] = told.id, s.counts.tick[0], 0
        s.patience[0] = renewed(s.port, s.patience[0], told.patience, told.stretch)
        _take_settings(s, reader_slot(s.frame_control))
    return OK


@kernel
def _take_settings(s, f):
    """What the operator may have changed since the last frame."""
    settings, solver = s.frame.settings[f], s.engine.solver.settings[0]
    solver.tolerance, solver.sweeps = settings[SET_TOLERANCE], int(settings[SET_SWEEPS])
    for k in range(4):
        s.hold.gain[k] = settings[SET_HOLD + k]
    for k in range(2):
        s.port.live[k] = settings[SET_LIVE + k]
    for i in range(3):
        s.chain.model.gravity[i] = s.frame.gravity[f, i]
    for a in range(s.mu.shape[0]):
        for b in range(s.mu.shape[1]):
            s.mu[a, b] = s.frame.friction[f, a, b]


@kernel
def h2_free_motion(s):
    """H2: free motion of the tool and of the reduced bodies, and the tool's inverse system matrix."""
    return OK if ask_all(s.engine, BEGIN, s.engine.bodies.batch) == DONE else NOT_FINITE


@kernel
def h3_violation(s):
    """H3: rows of attachments and contacts, and their violation after all bodies' free motions."""
    return OK if find(s.engine) == DONE and free_motion(s.engine) == DONE else NOT_FINITE


@kernel
def h4_h5_solve(s):
    """H4: W = W_soft^dt + W_stiff^dt. H5: the complementarity problem within its sweeps, joints exactly."""
    e, status = s.engine, s.port.status
    if equilibrium(e) != DONE:
        return NOT_FINITE
    s.port.info[INFO_RESIDUAL] = e.solver.told[0].residual
    status[STATUS_SWEEPS] = e.solver.told[0].sweeps
    status[STATUS_ROWS] = 3 * (e.joints.what.shape[0] + e.contacts.count[0])
    return OK


@kernel
def h6_correct(s):
    """H6: corrected motion of the tool and of the reduced bodies; the forces go to the log."""
    log_forces(s.engine, SOFT, s.log)
    if see_yield(s.engine) != DONE or end(s.engine) != DONE:
        return NOT_FINITE
    keep_yield(s.engine)
    return OK


@kernel
def feedback(s):
    """Force on the device's hand (003, IV-B), and the numbers that go with it. Returns the tick's status."""
    port, hand, stiff, e = s.port, s.hand, s.stiff, s.engine
    if feel(e) != DONE:
        return NOT_FINITE
    total = port.info[INFO_SUM : INFO_SUM + 3]
    copy(hand.held, port.info[INFO_HELD : INFO_HELD + 3])
    for i in range(3):
        total[i] = 0.0
        for k in range(stiff.count[0]):
            if stiff.what[k] == POINT:
                total[i] += stiff.f[k, i]
        port.force[i] = hand.force[i] if s.feedback[0] == HOLD_REACTION else total[i]
        port.torque[i] = hand.torque[i]
    depth, active, first = 0.0, 0, e.joints.what.shape[0]
    for c in range(e.contacts.count[0]):
        depth = max(depth, -s.search.found.gap[c] - s.search.skin[0])
        if e.r[3 * (first + c)] > 0.0:
            active += 1
    port.info[INFO_DEPTH] = depth
    port.status[STATUS_CONTACTS] = active
    port.status[STATUS_FRAME] = s.counts.frame[0]
    port.status[STATUS_FLAGS] = 0
    check, i = 0.0, s.hold.frame[0]
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
    if s.counts.frame[0] > 0 and is_overdue(age, s.patience[0], s.frame_control):
        s.counts.waited[0] += 1
        return wait(s.port, age + s.counts.waited[0])
    status, age = _steps(s), s.port.status[STATUS_AGE]
    if status == OK:
        age = s.counts.tick[0] - 1 - s.counts.adopted_at[0]
        publish_state(s)
    return end_tick(s.port, status, age)


@kernel
def _steps(s):
    """H1 to H6 and the force; OK, or NOT_FINITE from the first step on that fails."""
    if h1_pose(s) != OK or take_frame(s) != OK or h2_free_motion(s) != OK:
        return NOT_FINITE
    if h3_violation(s) != OK or h4_h5_solve(s) != OK or h6_correct(s) != OK:
        return NOT_FINITE
    return feedback(s)


@kernel
def run_ticks(s, n):
    """n ticks in a row with the port as it stands; returns the first status that is not OK."""
    for _ in range(n):
        status = tick(s)
        if status != OK:
            return status
    return OK
