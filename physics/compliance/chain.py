"""Chains of six-freedom frames moved by force: beams and, as a chain of one frame, rigid bodies.

A step is that of palpo.physics.bodies.chain; a hand may hold one frame, through an implicit coupling or
directly (palpo.physics.compliance.hold). Each point rides on a frame, and yields by J A_h^-1 J^T h^2.
"""

from typing import NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.chain import chain_advance, chain_assemble, chain_reaction
from palpo.physics.bodies.chain_factor import chain_factor, chain_inverse, chain_solve
from palpo.physics.bodies.chain_models import (
    ChainModel,
    ChainState,
    ChainWork,
    chain_work,
    rest_state,
    rigid_model,
)
from palpo.physics.compliance.hold import Hold, apply_hold, coupling_force, held_point, make_hold
from palpo.physics.compliance.points import add_pair
from palpo.physics.contract.stages import (
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
    PUSH,
    ROTATION,
    SHAPE,
    Kind,
    unit,
)
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.gains import Gains
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, quat_difference, quat_multiply, quat_rotate


class Chain(NamedTuple):
    """A chain of n frames with s points, of which up to c are asked about at once."""

    model: ChainModel
    now: ChainState
    work: ChainWork
    hold: Hold
    frame: NDArray[np.int32]  # (s,) frame that carries each point
    lever: NDArray[np.float64]  # (s, 3) [m], frame axes
    inverse: NDArray[np.float64]  # (6 n, 6 n) A_h^-1, 0 where a freedom is imposed
    change: NDArray[np.float64]  # (n, 6) of the velocity without pushed forces
    pull: NDArray[np.float64]  # (n, 6) pushed forces and moments [N], [N m]
    gave: NDArray[np.float64]  # (n, 6) the change of velocity that they make
    jacobian: NDArray[np.float64]  # (c, 3, 3, 6) rows on the frames of each point's slots
    reach: NDArray[np.float64]  # (n,) [m] of the farthest point of each frame
    gain: NDArray[np.float64]  # (3, 6 n) h^2 J A_h^-1 of one point
    vectors: NDArray[np.float64]  # (6, 4) scratch


def make_chain(
    model: ChainModel,
    state: ChainState,
    frame: ArrayLike,
    lever: ArrayLike,
    capacity: int,
    hold: Hold | None = None,
) -> Chain:
    """A chain with points at lever (s, 3) [m] in the axes of their frame (s,); free without a hold."""
    n = model.mass.size
    carrier, levers = np.array(frame, np.int32).reshape(-1), np.array(lever, np.float64).reshape(-1, 3)
    reach = np.zeros(n)
    np.maximum.at(reach, carrier, np.linalg.norm(levers, axis=1))
    return Chain(
        model, state, chain_work(n), hold or make_hold(0, False, False, Gains(0.0, 0.0, 0.0, 0.0)),
        carrier, levers,
        np.zeros((6 * n, 6 * n)), np.zeros((n, 6)), np.zeros((n, 6)), np.zeros((n, 6)),
        np.zeros((capacity, 3, 3, 6)), reach, np.zeros((3, 6 * n)), np.zeros((6, 4)),
    )  # fmt: skip


@kernel
def aim(s, hand, first, h):
    """The hand's pose becomes the hold's target; its velocity is the target's own change."""
    hold, want, turn = s.hold, s.vectors[0], s.vectors[1]
    quat_multiply(hand.orientation, hold.rest, want)
    quat_difference(want, hold.target_q, turn)
    for i in range(3):
        hold.target_v[i] = 0.0 if first else (hand.position[i] - hold.target[i]) / h
        hold.target_w[i] = 0.0 if first else turn[i] / h
        hold.target[i] = hand.position[i]
    for i in range(4):
        hold.target_q[i] = want[i]


@kernel
def begin(s, h):
    """Free motion and inverse; False where a pivot is not positive."""
    chain_assemble(s.model, s.now, h, s.work)
    apply_hold(s.hold, s.now, h, s.work)
    if chain_factor(s.work) != 0:
        return False
    chain_solve(s.work, s.work.rhs, s.change)
    chain_inverse(s.work, s.inverse)
    for i in range(s.change.shape[0]):
        for c in range(6):
            # imposed freedoms do not yield to forces; their unit diagonal is bookkeeping
            held = s.hold.direct[0] == 1 and i == s.hold.frame[0] and s.hold.mask[c]
            if held or s.model.fixed[i]:
                for j in range(s.inverse.shape[0]):
                    s.inverse[6 * i + c, j] = 0.0
                    s.inverse[j, 6 * i + c] = 0.0
    yield_to_forces(s, h)
    return True


@kernel
def fastest(s, pushed):
    """Bound on the speed of the points [m/s]: at the step's start, or at its end under the pushed forces."""
    worst = 0.0
    for k in range(s.change.shape[0]):
        linear, turning = 0.0, 0.0
        for i in range(3):
            v, w = s.now.v[k, i], s.now.w[k, i]
            if pushed:
                v += s.change[k, i] + s.gave[k, i]
                w += s.change[k, 3 + i] + s.gave[k, 3 + i]
            linear += v * v
            turning += w * w
        worst = max(worst, linear**0.5 + s.reach[k] * turning**0.5)
    return worst


@inlined
def _arm(s, a, extra, out):
    """out (3,) = from the frame of point a to where a force acts, `extra` beside the point."""
    quat_rotate(s.now.q[s.frame[a]], s.lever[a], out)
    for i in range(3):
        out[i] += extra[i]


@kernel
def place(s, batch):
    """x and q of the batch."""
    arm = s.vectors[0]
    for k in range(batch.count[0]):
        for i in range(3):
            batch.x[k, i] = 0.0
        for i in range(4):
            batch.q[k, i] = s.now.q[s.frame[batch.slots[k, 0]], i]
        for c in range(3):
            weight, a = batch.weights[k, c], batch.slots[k, c]
            if weight != 0.0:
                quat_rotate(s.now.q[s.frame[a]], s.lever[a], arm)
                for i in range(3):
                    batch.x[k, i] += weight * (s.now.x[s.frame[a], i] + arm[i])


@kernel
def shape(s, batch):
    """x of all points."""
    arm = s.vectors[0]
    for a in range(s.frame.shape[0]):
        quat_rotate(s.now.q[s.frame[a]], s.lever[a], arm)
        for i in range(3):
            batch.x[a, i] = s.now.x[s.frame[a], i] + arm[i]


@kernel
def yield_to_forces(s, h):
    """gave = h A_h^-1 pull."""
    n = s.pull.shape[0]
    for k in range(n):
        for i in range(6):
            line, total = s.inverse[6 * k + i], 0.0
            for j in range(n):
                for c in range(6):
                    total += line[6 * j + c] * s.pull[j, c]
            s.gave[k, i] = h * total


@kernel
def moved(s, batch, pushed, h):
    """d of the batch in the free motion, or under the pushed forces too, and v at the start."""
    arm, twist, turn = s.vectors[0], s.vectors[1:3], s.vectors[3]
    for k in range(batch.count[0]):
        for i in range(3):
            batch.d[k, i] = 0.0
            batch.v[k, i] = 0.0
        for c in range(3):
            weight, a = batch.weights[k, c], batch.slots[k, c]
            if weight == 0.0:
                continue
            f = s.frame[a]
            for start in range(2):
                for i in range(3):
                    twist[0, i], twist[1, i] = s.now.v[f, i], s.now.w[f, i]
                    if start == 0:
                        twist[0, i] += s.change[f, i] + (s.gave[f, i] if pushed else 0.0)
                        twist[1, i] += s.change[f, 3 + i] + (s.gave[f, 3 + i] if pushed else 0.0)
                _arm(s, a, batch.arm[k], arm)
                cross3(twist[1], arm, turn)
                for i in range(3):
                    speed = twist[1, i] if batch.what[k] == ROTATION else twist[0, i] + turn[i]
                    if start == 0:
                        batch.d[k, i] += weight * h * speed
                    else:
                        batch.v[k, i] += weight * speed


@kernel
def _jacobian(s, batch):
    """s.jacobian = the rows of each point on the frames of its slots."""
    arm = s.vectors[0]
    for k in range(batch.count[0]):
        for c in range(3):
            weight, a = batch.weights[k, c], batch.slots[k, c]
            if weight == 0.0:
                continue
            _arm(s, a, batch.arm[k], arm)
            for d in range(3):
                axis, row = batch.axes[k, d], s.jacobian[k, c, d]
                if batch.what[k] == ROTATION:
                    for i in range(3):
                        row[i], row[3 + i] = 0.0, weight * axis[i]
                else:
                    cross3(arm, axis, row[3:6])
                    for i in range(3):
                        row[i] = weight * axis[i]
                        row[3 + i] *= weight


@kernel
def delassus(s, batch, w, h):
    """w += h^2 J A_h^-1 J^T."""
    _jacobian(s, batch)
    part = s.vectors[:3]
    for k in range(batch.count[0]):
        for d in range(3):
            gain = s.gain[d]
            for j in range(gain.shape[0]):
                gain[j] = 0.0
            for c in range(3):
                if batch.weights[k, c] == 0.0:
                    continue
                first = 6 * s.frame[batch.slots[k, c]]
                for i in range(6):
                    factor, line = h * h * s.jacobian[k, c, d, i], s.inverse[first + i]
                    for j in range(gain.shape[0]):
                        gain[j] += factor * line[j]
        for m in range(k + 1):
            for d in range(3):
                for e in range(3):
                    part[d, e] = 0.0
            for c in range(3):
                if batch.weights[m, c] == 0.0:
                    continue
                first = 6 * s.frame[batch.slots[m, c]]
                for d in range(3):
                    for e in range(3):
                        row = s.jacobian[m, c, e]
                        for i in range(6):
                            part[d, e] += s.gain[d, first + i] * row[i]
            add_pair(w, batch, k, m, part)


@kernel
def push(s, batch, h):
    """The batch's forces and moments on the frames, and what they do to the velocities."""
    arm, moment = s.vectors[0], s.vectors[1]
    for k in range(batch.count[0]):
        for c in range(3):
            weight, a = batch.weights[k, c], batch.slots[k, c]
            if weight == 0.0:
                continue
            pull = s.pull[s.frame[a]]
            if batch.what[k] == ROTATION:
                for i in range(3):
                    pull[3 + i] += weight * batch.f[k, i]
                continue
            _arm(s, a, batch.arm[k], arm)
            cross3(arm, batch.f[k], moment)
            for i in range(3):
                pull[i] += weight * batch.f[k, i]
                pull[3 + i] += weight * moment[i]
    yield_to_forces(s, h)


@kernel
def clear(s):
    """No force is pushed."""
    s.pull[:] = 0.0
    s.gave[:] = 0.0


@kernel
def end(s, batch, h):
    """The step under the pushed forces; False where a velocity is no number."""
    if batch.wants[0].d:
        moved(s, batch, True, h)
    total = 0.0
    for k in range(s.change.shape[0]):
        for i in range(6):
            s.change[k, i] += s.gave[k, i]
            s.gave[k, i] = (s.now.v[k, i] if i < 3 else s.now.w[k, i - 3]) + s.change[k, i]
            total += abs(s.gave[k, i])
    chain_advance(s.model, s.now, s.gave, h)
    return total < np.inf


@kernel
def feel(s, hand, h):
    """The hold's force on the hand: of its coupling, or the reaction of the imposed freedoms."""
    hold = s.hold
    if hold.direct[0] == 1:
        chain_reaction(s.work, s.change, h, hold.force)
        for c in range(6):
            if hold.mask[c]:
                hold.force[c] -= s.pull[hold.frame[0], c]
    else:
        coupling_force(hold, s.now)
    held_point(hold, s.now, hand.held)
    for i in range(3):
        hand.force[i] = -hold.force[i]
        hand.torque[i] = -hold.force[3 + i]


def _smallest() -> Chain:
    model, state = rigid_model(1.0, np.eye(3)), rest_state(np.zeros((1, 3)), [[1.0, 0.0, 0.0, 0.0]])
    return make_chain(model, state, [0], np.zeros((1, 3)), 1)


_SMALLEST = _smallest()


@unit(_SMALLEST)
def chain_unit(stage, s, batch, problem, h):
    """The stages of palpo.physics.contract.stages."""
    if stage == AIM:
        aim(s, batch.hand, batch.now[0] == 0, h)
    elif stage == BEGIN:
        if not begin(s, h):
            return NOT_FINITE
        batch.speed[0] = fastest(s, False)
    elif stage == SHAPE:
        shape(s, batch)
    elif stage == PLACE:
        place(s, batch)
    elif stage == FREE:
        moved(s, batch, False, h)
    elif stage == MOVED:
        moved(s, batch, True, h)
    elif stage == DELASSUS:
        delassus(s, batch, view_square(problem.w, problem.rows[1]), h)
    elif stage == CLEAR:
        clear(s)
    elif stage == PUSH:
        push(s, batch, h)
        batch.speed[0] = fastest(s, True)
    elif stage == END:
        return DONE if end(s, batch, h) else NOT_FINITE
    elif stage == FEEL:
        feel(s, batch.hand, h)
    else:
        return NOT_OFFERED
    return DONE


CHAIN = Kind(
    "chain", chain_unit, typeof(_SMALLEST), points=lambda s: len(s.frame), room=lambda s: len(s.jacobian)
)
