"""A step of any bodies that touch: the engine's functions in the order of a step, over a table of addresses.

    begin         the hand's pose, and the motion of every body as if nothing touched
    find          the contacts
    free_motion   their gaps and slips without contact force
    equilibrium   W, contact forces, and the bodies under them, of a working set that grows
    end           the step is made; what sticks is remembered
    feel          what the hands feel

With J_b the rows' map to body b, d_b its displacement without contact and C_b its compliance, the problem is

    u = b + W r,   b = g + sum_b J_b d_b,   W = sum_b J_b C_b J_b^T

with u = 0 in the rows of joints, Signorini's and Coulomb's laws in those of contacts, and a gas law in those
of cavities (palpo.physics.engine.cavities). Each body supplies d and C by itself
(palpo.physics.engine.contract), so that this holds of any two kinds. A number that is none
is found before any force is pushed: the bodies then are as they were.

The tick allocates nothing, asks nothing of the interpreter and reports by its status.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.arrays import all_finite
from palpo.physics.contact.bilateral import eliminate, free_row, recover
from palpo.physics.contact.laws import OPEN, project_cone
from palpo.physics.contact.residual import asked_force, relative_error
from palpo.physics.engine.cavities import Cavities, add_cavities, free_volumes, gather_air, keep_air
from palpo.physics.engine.contacts import AGAIN, FIND, KEEP, MISSED, Contacts, call_detector
from palpo.physics.engine.contract import (
    AIM,
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FEEL,
    FREE,
    MOVED,
    NOT_FINITE,
    NOT_OFFERED,
    PLACE,
    POINT,
    PUSH,
    ROTATION,
    SHAPE,
    Batch,
    Problem,
    address_of,
    call_unit,
)
from palpo.physics.engine.joints import SLIDE, Joints
from palpo.physics.engine.memory import Memory, close_memory, open_memory, recall, remember
from palpo.physics.engine.points import add_point, batch_of, body_of, copy_point, part_of, solved_block
from palpo.physics.engine.solve import Solver, call_solver, judge, open_step
from palpo.physics.engine.working_set import PART, SOLVES, admit, members, start_set, sunk
from palpo.physics.exchange.atomics import view_flat, view_square
from palpo.physics.exchange.handle import handle_like
from palpo.physics.kernels import kernel
from palpo.physics.math3 import quat_difference, quat_multiply, quat_rotate, tangent_basis

COUNT = np.dtype(
    [("failed", np.int64), ("lost", np.int64), ("rounds", np.int64), ("sweeps", np.int64),
     ("members", np.int64)]
)  # fmt: skip
"""The body whose stage failed last, plus one; contacts lost to the capacity so far; this step's rounds of
detection, and the solver's sweeps in all of them; and contacts solved for."""


class Bodies(NamedTuple):
    """The table: addresses of each of n bodies."""

    unit: NDArray[np.int64]  # (n,)
    state: NDArray[np.int64]  # (n,)
    batch: NDArray[np.int64]  # (n,) its points in joints and contacts
    part: NDArray[np.int64]  # (n,) those of the working set
    whole: NDArray[np.int64]  # (n,) all of its points; 0 where nobody looks at them
    springs_back: NDArray[np.bool_]  # (n,) see palpo.physics.engine.contract.Kind
    held: NDArray[np.bool_]  # (n,) whether a hand feels it


class Engine(NamedTuple):
    """What a step reads and writes beside the bodies' states, for c contacts, j joints and k cavities."""

    bodies: Bodies
    batch: Batch  # of the first body; of all, the layout
    detector: NDArray[np.int64]  # (k,) addresses
    detector_state: NDArray[np.int64]  # (k,)
    solvers: NDArray[np.int64]  # (m,) addresses; the settings' method is a place here
    pressing: NDArray[np.int64]  # (1,) address of the solver of a step that has cavities
    contacts: Contacts
    joints: Joints
    cavities: Cavities
    memory: Memory
    at: NDArray[np.int32]  # (j + c + k, 2) where the sides of each block stand in their bodies' batches
    b: NDArray[np.float64]  # (3 (j + c + k),) of all blocks [m], see Problem
    r: NDArray[np.float64]  # (3 (j + c + k),) [N]
    u: NDArray[np.float64]  # (3 (j + c + k),) [m]
    gap: NDArray[np.float64]  # (c,) [m] of each contact as it is foreseen, or known to be
    inside: NDArray[np.bool_]  # (c,) the working set
    member: NDArray[np.int32]  # (c,)
    problem: Problem  # of the working set
    factor: NDArray[np.float64]  # (3 j, 3 j)
    solver: Solver
    now: NDArray[np.int64]  # (1,) steps done
    wants: NDArray[Any]  # (1,) see palpo.physics.engine.contract.WANTS
    step: NDArray[np.float64]  # (1,) h [s]
    count: NDArray[Any]  # type: ignore[assignment]  # (1,) of COUNT
    vectors: NDArray[np.float64]  # (4, 4) scratch


@kernel
def ask(e, b, stage, batch):
    """A stage of body b on the batch at that address; DONE, or what is wrong."""
    code = call_unit(e.bodies.unit[b], stage, e.bodies.state[b], batch, address_of(e.problem), e.step[0])
    if code in (DONE, NOT_OFFERED):
        return DONE
    e.count[0].failed = b + 1
    return NOT_FINITE


@kernel
def ask_all(e, stage, batches):
    """A stage of all bodies on their batches (n,); DONE, or what is wrong with the first that fails."""
    for b in range(batches.shape[0]):
        if batches[b] != 0 and ask(e, b, stage, batches[b]) != DONE:
            return NOT_FINITE
    return DONE


@kernel
def ask_held(e, stage):
    """A stage of the bodies that a hand holds."""
    for b in range(e.bodies.held.shape[0]):
        if e.bodies.held[b] and ask(e, b, stage, e.bodies.batch[b]) != DONE:
            return NOT_FINITE
    return DONE


@kernel
def begin(e):
    """The hands' poses become targets; every body moves as if nothing touched, and tells its points."""
    if aim(e) != DONE:
        return NOT_FINITE
    return let_go(e)


@kernel
def aim(e):
    """The hands' poses become targets."""
    e.count[0].rounds = 0
    e.count[0].sweeps = 0
    return ask_held(e, AIM)


@kernel
def let_go(e):
    """Every body moves as if nothing touched, and tells its points."""
    if ask_all(e, BEGIN, e.bodies.batch) != DONE:
        return NOT_FINITE
    return tell_shapes(e)


@kernel
def tell_shapes(e):
    """All points of the bodies looked at; NOT_FINITE where one is nowhere, for it would touch nothing."""
    if ask_all(e, SHAPE, e.bodies.whole) != DONE:
        return NOT_FINITE
    for b in range(e.bodies.whole.shape[0]):
        whole = e.bodies.whole[b]
        if whole != 0 and not all_finite(view_flat(handle_like(e.batch, whole).x)):
            e.count[0].failed = b + 1
            return NOT_FINITE
    return DONE


@kernel
def find(e):
    """The contacts of this step, by all detectors."""
    e.contacts.count[0] = e.contacts.count[1] = 0
    for k in range(e.detector.shape[0]):
        code = call_detector(e.detector[k], FIND, e.detector_state[k], address_of(e.contacts), e.step[0])
        if code != DONE:
            return NOT_FINITE
    e.count[0].rounds += 1
    return DONE


@kernel
def _missed(e):
    """Whether a detector wants to look again."""
    for k in range(e.detector.shape[0]):
        code = call_detector(e.detector[k], MISSED, e.detector_state[k], address_of(e.contacts), e.step[0])
        if code == AGAIN:
            return True
    return False


@kernel
def _drop_what_has_no_room(e):
    """Contacts past the room of a body's batch are lost; only one that touches itself can have so many."""
    contacts = e.contacts
    for b in range(e.bodies.unit.shape[0]):
        batch = batch_of(e, b)
        left = batch.what.shape[0] - batch.count[0]
        for k in range(e.cavities.count[0]):
            left -= (e.cavities.body[k, 0] == b) + (e.cavities.body[k, 1] == b)
        for k in range(contacts.count[0]):
            left -= (contacts.body[k, 0] == b) + (contacts.body[k, 1] == b)
            if left < 0:
                contacts.count[1] += contacts.count[0] - k
                contacts.count[0] = k
                break


@kernel
def _joint_axes(e, k, out):
    """out (3, 3) = rows of joint k: the world's axes, or a slide's free direction and two across."""
    joints = e.joints
    for i in range(3):
        for j in range(3):
            out[i, j] = 1.0 if i == j else 0.0
    if joints.what[k] != SLIDE:
        return DONE
    body, along = joints.carrier[k, 0], out[0]
    if body < 0:
        for i in range(3):
            along[i] = joints.direction[k, i]
    else:
        part = part_of(e, body)
        part.count[0], part.what[0] = 1, ROTATION
        for i in range(3):
            part.slots[0, i] = joints.carrier[k, 1] if i == 0 else 0
            part.weights[0, i] = 1.0 if i == 0 else 0.0
        if ask(e, body, PLACE, e.bodies.part[body]) != DONE:
            return NOT_FINITE
        quat_rotate(part.q[0], joints.direction[k], along)
    tangent_basis(along, out[1], out[2])
    return DONE


@kernel
def set_rows(e):
    """Every body's points in joints and contacts, its fields of cavities, and where they are."""
    joints, contacts, frame, none = e.joints, e.contacts, e.vectors[:3], e.vectors[3]
    first = joints.what.shape[0]
    for b in range(e.bodies.unit.shape[0]):
        batch_of(e, b).count[0] = 0
    for i in range(3):
        none[i] = 0.0
    for k in range(first):
        what = ROTATION if joints.what[k] == ROTATION else POINT
        if _joint_axes(e, k, frame) != DONE:
            return NOT_FINITE
        for side in range(2):
            e.at[k, side] = add_point(
                batch_of(e, joints.body[k, side]), what, joints.slots[k, side], joints.weights[k, side],
                none, k, frame, 1.0 - 2.0 * side,
            )  # fmt: skip
    _drop_what_has_no_room(e)
    e.wants[0].v = 0
    for k in range(contacts.count[0]):
        if contacts.restitution[k] > 0.0:
            e.wants[0].v = 1
        for side in range(2):
            e.at[first + k, side] = add_point(
                batch_of(e, contacts.body[k, side]), POINT, contacts.slots[k, side],
                contacts.weights[k, side], contacts.arm[k, side], first + k, contacts.frame[k],
                1.0 - 2.0 * side,
            )  # fmt: skip
    add_cavities(e)
    return _place(e)


@kernel
def _place(e):
    """Where the points are, which all but a detector that remembers want to know."""
    wanted = e.joints.what.shape[0] > 0 or e.cavities.count[0] > 0
    for k in range(e.contacts.count[0]):
        wanted = wanted or not e.contacts.anchored[k]
    return ask_all(e, PLACE, e.bodies.batch) if wanted else DONE


@kernel
def relative(e, block, body, field, out):
    """out (3,) = rows of a block times d (field 0) or v (field 1) of its bodies."""
    for i in range(3):
        out[i] = 0.0
    for side in range(2):
        batch, k = batch_of(e, body[side]), e.at[block, side]
        values = batch.d[k] if field == 0 else batch.v[k]
        for i in range(3):
            axis = batch.axes[k, i]
            out[i] += axis[0] * values[0] + axis[1] * values[1] + axis[2] * values[2]


@kernel
def _joint_offset(e, k, out):
    """out (3,) = how far apart the sides of joint k are [m] or [rad]."""
    joints, want = e.joints, e.vectors[1]
    one, two = batch_of(e, joints.body[k, 0]), batch_of(e, joints.body[k, 1])
    i, j = e.at[k, 0], e.at[k, 1]
    if joints.what[k] == ROTATION:
        quat_multiply(joints.reference[k], two.q[j], want)
        quat_difference(one.q[i], want, out)
    else:
        for c in range(3):
            out[c] = one.x[i, c] - two.x[j, c]


@kernel
def _bounce(e, k):
    """h eps v of contact k along its normal [m]: what it closed by, share eps, it is to open by."""
    if e.contacts.restitution[k] == 0.0:
        return 0.0
    speed = e.vectors[1]
    relative(e, e.joints.what.shape[0] + k, e.contacts.body[k], 1, speed)
    return e.step[0] * e.contacts.restitution[k] * speed[0]


@kernel
def free_motion(e):
    """b: offsets of joints, gaps and slips of contacts, without contact force; and what is foreseen."""
    joints, contacts, away, apart = e.joints, e.contacts, e.vectors[0], e.vectors[2]
    if set_rows(e) != DONE or ask_all(e, FREE, e.bodies.batch) != DONE:
        return NOT_FINITE
    first = joints.what.shape[0]
    e.count[0].lost += contacts.count[1]
    for k in range(first):
        _joint_offset(e, k, apart)
        relative(e, k, joints.body[k], 0, away)
        for i in range(3):
            axis = batch_of(e, joints.body[k, 0]).axes[e.at[k, 0], i]
            e.b[3 * k + i] = axis[0] * apart[0] + axis[1] * apart[1] + axis[2] * apart[2] + away[i]
    for k in range(contacts.count[0]):
        body, row = contacts.body[k], 3 * (first + k)
        if not contacts.anchored[k]:
            recall(e.memory, contacts, k, batch_of(e, body[1]).q[e.at[first + k, 1]], e.step[0])
        relative(e, first + k, body, 0, away)
        for i in range(3):
            offset = contacts.gap[k]
            if i > 0:
                axis, slip = contacts.frame[k, i], contacts.offset[k]
                offset = axis[0] * slip[0] + axis[1] * slip[1] + axis[2] * slip[2]
            e.b[row + i] = offset + away[i]
        e.b[row] += _bounce(e, k)
    free_volumes(e)
    _foresee(e)
    return DONE


@kernel
def _foresee(e):
    """gap: of each contact after the free motion of the bodies that do move by it."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    for k in range(contacts.count[0]):
        e.gap[k] = contacts.gap[k]
        for side in range(2):
            body = contacts.body[k, side]
            if not e.bodies.springs_back[body]:
                batch, i = batch_of(e, body), e.at[first + k, side]
                axis, d = batch.axes[i, 0], batch.d[i]
                e.gap[k] += axis[0] * d[0] + axis[1] * d[1] + axis[2] * d[2]
        e.gap[k] = min(e.gap[k] + _bounce(e, k), contacts.gap[k])


@kernel
def warm_start(e):
    """The forces of the last step, in the contacts' present axes and in their cones; none on joints."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    for i in range(3 * first):
        e.r[i] = 0.0
    for i in range(3 * e.cavities.count[0]):  # who solves for pressures starts from them by itself
        e.r[3 * (first + contacts.count[0]) + i] = 0.0
    for k in range(contacts.count[0]):
        force, r = contacts.force[k], e.r[3 * (first + k) : 3 * (first + k) + 3]
        for i in range(3):
            axis = contacts.frame[k, i]
            r[i] = axis[0] * force[0] + axis[1] * force[1] + axis[2] * force[2]
        project_cone(r, contacts.mu[k], r)


@kernel
def gather(e):
    """The working set's problem but for W: its rows, and the points of each body."""
    p, contacts, first = e.problem, e.contacts, e.joints.what.shape[0]
    m, cavities = members(contacts.count[0], e.inside, e.member), e.cavities.count[0]
    p.rows[0], p.rows[1] = 3 * first, 3 * (first + m + cavities)
    e.count[0].members = m
    for b in range(e.bodies.unit.shape[0]):
        part_of(e, b).count[0] = 0
    for k in range(first + m + cavities):
        block = solved_block(e, k, m)
        for i in range(3):
            p.b[3 * k + i], p.r[3 * k + i] = e.b[3 * block + i], e.r[3 * block + i]
        if first <= k < first + m:
            p.mu[k - first] = contacts.mu[block - first]
        for side in range(2):
            body = body_of(e, block, side)
            if body >= 0:
                copy_point(batch_of(e, body), e.at[block, side], part_of(e, body), k)


@kernel
def delassus(e):
    """W of the working set: what each body adds to the lower triangle, and its mirror."""
    n = e.problem.rows[1]
    w = view_square(e.problem.w, n)
    w[:] = 0.0
    if ask_all(e, DELASSUS, e.bodies.part) != DONE:
        return NOT_FINITE
    for i in range(n):
        for j in range(i):
            w[j, i] = w[i, j]
    return DONE


@kernel
def assemble(e):
    """The problem of the working set, joints eliminated; NOT_FINITE where a number of it is none."""
    gather(e)
    if not gather_air(e) or delassus(e) != DONE:
        return NOT_FINITE
    p, m, n = e.problem, e.problem.rows[0], e.problem.rows[1]
    for k in range(m // 3):
        if e.joints.what[k] == SLIDE:
            free_row(view_square(p.w, n), p.b, 3 * k, n)
    if not (all_finite(p.w[: n * n]) and all_finite(p.b[:n])):
        return NOT_FINITE
    blocks = e.joints.what.shape[0] + e.contacts.count[0] + e.cavities.count[0]
    if not all_finite(e.b[: 3 * blocks]):
        return NOT_FINITE
    if m > 0 and eliminate(view_square(p.w, n), p.b, m, n, e.factor) != 0:
        return NOT_FINITE
    return DONE


@kernel
def _tolerance(e):
    """The solver's, of which the set and what is outside have a part each if anything is outside."""
    whole = e.count[0].members == e.contacts.count[0]
    return e.solver.settings[0].tolerance if whole else PART * e.solver.settings[0].tolerance


@kernel
def solve(e):
    """Forces of the working set, and the pressures."""
    p, told = e.problem, e.solver.told[0]
    m, n = p.rows[0], p.rows[1]
    told.residual = 0.0
    told.tolerance = _tolerance(e)
    if n > m:
        pressing = e.cavities.count[0] > 0
        method = e.pressing[0] if pressing else e.solvers[e.solver.settings[0].method]
        if call_solver(method, address_of(p), address_of(e.solver)) != DONE:
            return NOT_FINITE
    if m > 0:
        recover(view_square(p.w, n), p.b, m, n, e.factor, p.r)
    return DONE


@kernel
def scatter(e):
    """r and u of all blocks: the set's, and no force on the others, whose u stays."""
    p, contacts, first = e.problem, e.contacts, e.joints.what.shape[0]
    for i in range(3 * (first + contacts.count[0])):
        e.r[i] = 0.0
    for k in range(p.rows[1] // 3):
        block = solved_block(e, k, e.count[0].members)
        for i in range(3):
            e.r[3 * block + i] = p.r[3 * k + i]
            if k >= first:
                e.u[3 * block + i] = p.u[3 * k + i]


@kernel
def push(e):
    """The forces found, on every body; contacts outside the set have none."""
    scatter(e)
    return push_all(e)


@kernel
def push_all(e):
    """The forces r of all blocks, on both bodies of each."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    last = first + contacts.count[0]
    for k in range(last + e.cavities.count[0]):
        for side in range(2):
            body = body_of(e, k, side)
            if body < 0:
                continue
            batch, i = batch_of(e, body), e.at[k, side]
            for c in range(3):
                batch.f[i, c] = (
                    batch.axes[i, 0, c] * e.r[3 * k]
                    + batch.axes[i, 1, c] * e.r[3 * k + 1]
                    + batch.axes[i, 2, c] * e.r[3 * k + 2]
                )
                if first <= k < last and side == 0:
                    contacts.force[k - first, c] = batch.f[i, c]
    if ask_all(e, CLEAR, e.bodies.batch) != DONE or ask_all(e, PUSH, e.bodies.batch) != DONE:
        return NOT_FINITE
    return DONE


@kernel
def _see_gaps(e):
    """gap and u of the contacts outside the working set, under the forces found."""
    contacts, first, away = e.contacts, e.joints.what.shape[0], e.vectors[0]
    if ask_all(e, MOVED, e.bodies.batch) != DONE:
        return NOT_FINITE
    for k in range(contacts.count[0]):
        if e.inside[k]:
            continue
        relative(e, first + k, contacts.body[k], 0, away)
        e.gap[k] = contacts.gap[k] + away[0] + _bounce(e, k)
        e.u[3 * (first + k)] = e.gap[k]
        for i in range(1, 3):
            axis, slip = contacts.frame[k, i], contacts.offset[k]
            slid = axis[0] * slip[0] + axis[1] * slip[1] + axis[2] * slip[2]
            e.u[3 * (first + k) + i] = slid + away[i]
    return DONE


@kernel
def settled(e):
    """Whether what sinks in outside the set is within the solver's tolerance; the residual has it, too."""
    p, told = e.problem, e.solver.told[0]
    m, n = p.rows[0], p.rows[1]
    last = n - 3 * e.cavities.count[0]
    error, size = sunk(view_square(p.w, n), p.r, m, last, e.gap, e.contacts.count[0], e.inside)
    if error == 0.0:
        return True
    error = relative_error(error, size, asked_force(view_square(p.w, n), p.b, m, (last - m) // 3))
    told.residual = (told.residual**2 + error * error) ** 0.5
    return error <= _tolerance(e)


@kernel
def open_set(e):
    """The forces to start from, and the first working set of a step."""
    contacts, n = e.contacts, e.contacts.count[0]
    warm_start(e)
    open_step(e.solver)
    start_set(contacts.force, n, e.inside)
    if n <= e.solver.settings[0].at_once:
        e.inside[:n] = True
    admit(e.gap, n, e.inside)


@kernel
def respond(e, last):
    """Whether the forces pushed stand: DONE, or AGAIN where the working set has grown; NOT_FINITE."""
    n = e.contacts.count[0]
    if e.count[0].members == n:
        return DONE
    if _see_gaps(e) != DONE:
        return NOT_FINITE
    if settled(e) or e.solver.told[0].flags != 0 or last:
        return DONE
    admit(e.gap, n, e.inside)
    return AGAIN


@kernel
def equilibrium(e):
    """Contact forces, and the bodies under them, of a working set that grows by what sinks in."""
    code = AGAIN
    open_set(e)
    for left in range(SOLVES, 0, -1):
        if assemble(e) != DONE or solve(e) != DONE or push(e) != DONE:
            return NOT_FINITE
        code = respond(e, left == 1)
        if code != AGAIN:
            break
    e.count[0].sweeps += e.solver.told[0].sweeps
    tell_statuses(e)
    return code


@kernel
def tell_statuses(e):
    """Which contacts are open, stick or slide under the forces found."""
    p, first, contacts = e.problem, e.problem.rows[0], e.contacts
    size = (p.rows[1] - first) // 3 - e.cavities.count[0]
    judge(view_square(p.w, p.rows[1]), p.mu[:size], p.r, p.u, first, e.vectors[0], p.status)
    for k in range(contacts.count[0]):
        contacts.status[k] = OPEN
    for k in range(size):
        contacts.status[e.member[k]] = p.status[k]


@kernel
def end(e):
    """Every body makes its step; contacts are remembered, and the air of the cavities."""
    contacts, first = e.contacts, e.joints.what.shape[0]
    if ask_all(e, END, e.bodies.batch) != DONE or ask_all(e, SHAPE, e.bodies.whole) != DONE:
        return NOT_FINITE
    if _place(e) != DONE:
        return NOT_FINITE
    open_memory(e.memory)
    for k in range(contacts.count[0]):
        if not contacts.anchored[k] and contacts.status[k] != OPEN:
            row = 3 * (first + k)
            q = batch_of(e, contacts.body[k, 1]).q[e.at[first + k, 1]]
            remember(e.memory, contacts, k, e.u[row : row + 3], q)
    close_memory(e.memory)
    keep_air(e)
    for k in range(e.detector.shape[0]):
        code = call_detector(e.detector[k], KEEP, e.detector_state[k], address_of(e.contacts), e.step[0])
        if code != DONE:
            return NOT_FINITE
    e.now[0] += 1
    return DONE


@kernel
def feel(e):
    """What the hands feel."""
    return ask_held(e, FEEL)


MOST_ROUNDS = 3
"""Of detection in one step."""


@kernel
def looks(e):
    """Whether there is another round of detection in this step: the first, or where a detector wants it."""
    rounds = e.count[0].rounds
    return rounds == 0 or (rounds < MOST_ROUNDS and _missed(e))


@kernel
def step(e):
    """One step; DONE or NOT_FINITE."""
    if begin(e) != DONE:
        return NOT_FINITE
    while looks(e):
        if find(e) != DONE or free_motion(e) != DONE or equilibrium(e) != DONE:
            return NOT_FINITE
    if end(e) != DONE:
        return NOT_FINITE
    return feel(e)
