"""The high-rate step of the multi-rate method: H1 to H6 of 003, section IV-A, as one compiled tick.

Each step is one or two of the engine's (palpo.physics.engine.tick), on whatever bodies the scene has. The
tick works on a `HighRate` tuple of preallocated arrays. It allocates nothing, asks nothing of the interpreter
and reports failure by its return value. `high_rate_tick` is the same as a C callback, for the servo and for a
device's own scheduler.
"""

from palpo.physics.contact.laws import SLIP
from palpo.physics.contract.stages import BEGIN, DONE, POINT
from palpo.physics.engine.equilibrium import equilibrium
from palpo.physics.engine.frames import adopt, keep_yield, log_forces, see_yield
from palpo.physics.engine.rows import free_motion
from palpo.physics.engine.table import ask_all
from palpo.physics.engine.tick import aim, end, feel, find, looks
from palpo.physics.exchange.atomics import store_release
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.handle import handle_like
from palpo.physics.exchange.patience import is_overdue, wait
from palpo.physics.exchange.port import FELT_BITS, NOT_FINITE, OK, SLIDES, TOUCHES, end_tick
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.systems.multirate.high_state import HOLD_REACTION, TAKEN_CALL, TAKEN_ID
from palpo.physics.systems.multirate.state_report import held_of, link_of, log_model, publish_state


@kernel
def h1_pose(s):
    """H1: each device's pose becomes its hold's target; its velocity is the target's own change."""
    for t in range(s.helds.shape[0]):
        held = held_of(s, t)
        copy(held.port.position, held.hand.position)
        copy(held.port.orientation, held.hand.orientation)
    return OK if aim(s.engine) == DONE else NOT_FINITE


@kernel
def take_frame(s):
    """Adopt the newest frames, brought to the present by replaying the forces that they do not contain."""
    if adopt(s.engine) != DONE:
        return NOT_FINITE
    replayed = 0
    for j in range(s.links.shape[0]):
        link = link_of(s, j)
        told, adopted = link.points.frame[0], link.adopted[0]
        replayed += told.replayed
        if told.fresh == 1:
            adopted.frame, adopted.tick = told.id, s.counts.tick[0]
            link.taken[TAKEN_CALL] = s.counts.calls[0] - 1
            store_release(link.taken, TAKEN_ID, told.id)
            adopted.stretch = told.stretch
            if told.patience > 0:
                adopted.patience = told.patience
            s.counts.waited[0] = 0
            if j == 0:
                _take_settings(s, reader_slot(link.frame_control))
    s.port.status[0].replayed = replayed
    return OK


@kernel
def _take_settings(s, f):
    """What the operator may have changed since the last frame of the first loop, which carries it."""
    frame = s.link.frame
    settings, solver = frame.settings[f], s.engine.solver.settings[0]
    solver.tolerance, solver.sweeps = settings.tolerance, settings.sweeps
    s.held.hold.gains[0] = settings.hold
    s.port.live[0].force_scale = settings.force_scale
    s.port.live[0].max_force = settings.max_force
    for t in range(s.helds.shape[0]):
        for i in range(3):
            held_of(s, t).chain.model.gravity[i] = frame.gravity[f, i]
    for a in range(s.mu.shape[0]):
        for b in range(s.mu.shape[1]):
            s.mu[a, b] = frame.friction[f, a, b]


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
    e, status = s.engine, s.port.status[0]
    if equilibrium(e) != DONE:
        return NOT_FINITE
    s.port.info[0].residual = e.solver.told[0].residual
    status.sweeps = e.solver.told[0].sweeps
    status.rows = 3 * (e.joints.what.shape[0] + e.contacts.count[0].found)
    return OK


@kernel
def h6_correct(s):
    """H6: corrected motion of the tool and of the reduced bodies; the forces go to the log."""
    if see_yield(s.engine) != DONE or end(s.engine) != DONE:
        return NOT_FINITE
    for j in range(s.links.shape[0]):
        link = link_of(s, j)
        log_model(link, s.counts.tick[0] - 1, s.engine.step[0])
        log_forces(s.engine, link.body[0], link.log)
    keep_yield(s.engine)
    return OK


@kernel
def feed_back(held):
    """Force and torque on one device's hand (003, IV-B), of its own tool alone; False for no numbers."""
    port, hand, points = held.port, held.hand, held.points
    total = port.info[0].total
    copy(hand.held, port.info[0].held)
    for i in range(3):
        total[i] = 0.0
        for k in range(points.count[0]):
            if points.what[k] == POINT:
                total[i] += points.f[k, i]
        port.force[i] = hand.force[i] if held.feedback[0] == HOLD_REACTION else total[i]
        port.torque[i] = hand.torque[i]
    check, i = 0.0, held.hold.frame[0]
    for c in range(3):
        check += abs(port.force[c]) + abs(port.torque[c]) + abs(held.tool.x[i, c]) + abs(held.tool.v[i, c])
    return check < 1e12


@kernel
def _felt(s, held):
    """TOUCHES and SLIDES of what one hand holds."""
    e, points, felt = s.engine, held.points, 0
    first = e.joints.what.shape[0]
    for k in range(points.count[0]):
        c = points.block[k] - first
        if 0 <= c < e.contacts.count[0].found and e.r[3 * (first + c)] > 0.0:
            felt |= TOUCHES | (SLIDES if e.contacts.status[c] == SLIP else 0)
    return felt


@kernel
def feedback(s):
    """Force on each device's hand, and the numbers that go with it. Returns the tick's status."""
    port, e = s.port, s.engine
    if feel(e) != DONE:
        return NOT_FINITE
    well = True
    port.status[0].felt = 0
    for t in range(s.helds.shape[0]):
        well = feed_back(held_of(s, t)) and well
        port.status[0].felt |= _felt(s, held_of(s, t)) << (FELT_BITS * t)
    depth, active, first = 0.0, 0, e.joints.what.shape[0]
    for j in range(s.searches.shape[0]):
        depth = max(depth, handle_like(s.search, s.searches[j]).depth[0])
    for c in range(e.contacts.count[0].found):
        if e.r[3 * (first + c)] > 0.0:
            active += 1
    port.info[0].depth = depth
    port.status[0].contacts = active
    port.status[0].frame = s.link.adopted[0].frame
    port.status[0].flags = 0
    return OK if well else NOT_FINITE


@kernel
def frame_age(s):
    """Age [ticks] of the frame that is oldest by its loop's own measure, and that one's stretch."""
    worst = _age(s, s.link)
    s.port.status[0].stretch = s.link.adopted[0].stretch
    for j in range(1, s.links.shape[0]):
        link = link_of(s, j)
        age, stretch = _age(s, link), link.adopted[0].stretch
        if age - stretch > worst - s.port.status[0].stretch:
            worst, s.port.status[0].stretch = age, stretch
    return worst


@inlined
def _age(s, link):
    return s.counts.tick[0] - link.adopted[0].tick


@kernel
def _is_waiting(s):
    """Whether any low loop's frame is overdue by far."""
    for j in range(s.links.shape[0]):
        link = link_of(s, j)
        adopted = link.adopted[0]
        if adopted.frame > 0 and is_overdue(_age(s, link), adopted.patience, link.frame_control):
            return True
    return False


@kernel
def tick(s):
    """One high-rate step, H1 to H6. Returns OK or NOT_FINITE; the force is on s.port.

    While a frame is overdue by far the scene's time stands still (palpo.physics.exchange.patience).
    """
    s.counts.calls[0] += 1
    if _is_waiting(s):
        s.counts.waited[0] += 1
        return wait(s.port, frame_age(s) + s.counts.waited[0])
    status, age = _steps(s), s.port.status[0].age
    if status == OK:
        age = frame_age(s) - 1
        publish_state(s)
    return end_tick(s.port, status, age)


@kernel
def _steps(s):
    """H1 to H6 and the force; OK, or NOT_FINITE from the first step on that fails."""
    if h1_pose(s) != OK or take_frame(s) != OK or h2_free_motion(s) != OK:
        return NOT_FINITE
    while looks(s.engine):
        if h3_violation(s) != OK or h4_h5_solve(s) != OK:
            return NOT_FINITE
    if h6_correct(s) != OK:
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
