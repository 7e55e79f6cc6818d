"""How the hand holds the tool: through a virtual coupling or directly, the point or point and orientation.

The coupling is implicit: its stiffness and damping enter the tool's system matrix at whatever rate it is
stepped, which is why the low-rate proxy can carry the very same hold as the servo's tool
(EQUATIONS.md, 1: "The proxy carries the same hold and loads as the stiff body").
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain import chain_hold_direct
from palpo.physics.exchange.gains import Gains, gains_record
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, dot3, quat_difference, quat_rotate


class Hold(NamedTuple):
    """The held frame and the hand's target. Arrays, because a panel may change the gains while it runs."""

    frame: NDArray[np.int64]  # (1,) frame of the tool
    direct: NDArray[np.int64]  # (1,) 1 imposes the pose, 0 couples it
    turns: NDArray[np.int64]  # (1,) 1 where the orientation is held too
    gains: NDArray[np.void]  # (1,) of GAINS
    lever: NDArray[np.float64]  # (3,) held point in the frame's axes [m]
    rest: NDArray[np.float64]  # (4,) orientation of the frame when the device's is the identity
    target: NDArray[np.float64]  # (3,) [m]
    target_q: NDArray[np.float64]  # (4,)
    target_v: NDArray[np.float64]  # (3,) [m/s]
    target_w: NDArray[np.float64]  # (3,) [rad/s]
    force: NDArray[np.float64]  # (6,) of the hold on the tool at the end of the tick [N], [N m]
    twist: NDArray[np.float64]  # (6,) scratch
    mask: NDArray[np.bool_]  # (6,) scratch
    scratch: NDArray[np.float64]  # (4, 3)


def make_hold(
    frame: int,
    direct: bool,
    turns: bool,
    gains: Gains,
    lever: NDArray[np.float64] | None = None,
    rest: NDArray[np.float64] | None = None,
) -> Hold:
    """A hold of one frame through these gains, at a point `lever` (3,) off its origin."""
    return Hold(
        np.array([frame], np.int64),
        np.array([direct], np.int64),
        np.array([turns], np.int64),
        gains_record(gains),
        np.zeros(3) if lever is None else np.array(lever, float),
        np.array([1.0, 0.0, 0.0, 0.0]) if rest is None else np.array(rest, float),
        np.zeros(3),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.zeros(3),
        np.zeros(3),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6, np.bool_),
        np.zeros((4, 3)),
    )


@inlined
def _arm(hold, state, arm, velocity):
    """World arm of the held point from its frame's origin, and the point's velocity."""
    i = hold.frame[0]
    quat_rotate(state.q[i], hold.lever, arm)
    cross3(state.w[i], arm, velocity)
    for c in range(3):
        velocity[c] += state.v[i, c]


@kernel
def apply_hold(hold, state, h, work):
    """Add the hold to an assembled chain: D += h b + h^2 k, rhs += h (k (x_t - x - h v) + b (v_t - v)).

    A direct hold imposes the pose instead; where it leaves the orientation free its lever must be zero.
    """
    i = hold.frame[0]
    turn = hold.twist[3:6]
    arm, velocity, pull, moment = hold.scratch[0], hold.scratch[1], hold.scratch[2], hold.scratch[3]
    quat_difference(hold.target_q, state.q[i], turn)
    if hold.direct[0] == 1:
        quat_rotate(hold.target_q, hold.lever, arm)
        for c in range(3):
            hold.twist[c] = (hold.target[c] - arm[c] - state.x[i, c]) / h
            turn[c] /= h
            hold.mask[c] = True
            hold.mask[3 + c] = hold.turns[0] == 1
        chain_hold_direct(work, state, i, hold.mask, hold.twist)
        return
    _arm(hold, state, arm, velocity)
    gains = hold.gains[0]
    k, b = gains.stiffness, gains.damping
    weight = h * b + h * h * k
    d = work.D[i]
    for c in range(3):
        d[c, c] += weight
        pull[c] = h * (
            k * (hold.target[c] - state.x[i, c] - arm[c] - h * velocity[c])
            + b * (hold.target_v[c] - velocity[c])
        )
        work.rhs[i, c] += pull[c]
    # the arm's share of J^T weight J with J = (1, -[arm]x)
    square = dot3(arm, arm)
    for r in range(3):
        for c in range(3):
            d[3 + r, 3 + c] += weight * ((square if r == c else 0.0) - arm[r] * arm[c])
    for sign, r, c, a in ((1.0, 0, 1, 2), (1.0, 1, 2, 0), (1.0, 2, 0, 1)):
        d[r, 3 + c] += sign * weight * arm[a]
        d[3 + c, r] += sign * weight * arm[a]
        d[c, 3 + r] -= sign * weight * arm[a]
        d[3 + r, c] -= sign * weight * arm[a]
    cross3(arm, pull, moment)
    for c in range(3):
        work.rhs[i, 3 + c] += moment[c]
    if hold.turns[0] == 1:
        k, b = gains.turn_stiffness, gains.turn_damping
        for c in range(3):
            d[3 + c, 3 + c] += h * b + h * h * k
            work.rhs[i, 3 + c] += h * (
                k * (turn[c] - h * state.w[i, c]) + b * (hold.target_w[c] - state.w[i, c])
            )


@kernel
def coupling_force(hold, state):
    """hold.force = force on the tool at the held point, and moment of the orientation's coupling, now."""
    i = hold.frame[0]
    turn, gains = hold.twist[3:6], hold.gains[0]
    arm, velocity = hold.scratch[0], hold.scratch[1]
    _arm(hold, state, arm, velocity)
    quat_difference(hold.target_q, state.q[i], turn)
    for c in range(3):
        way = hold.target[c] - state.x[i, c] - arm[c]
        hold.force[c] = gains.stiffness * way + gains.damping * (hold.target_v[c] - velocity[c])
        hold.force[3 + c] = 0.0
        if hold.turns[0] == 1:
            slower = hold.target_w[c] - state.w[i, c]
            hold.force[3 + c] = gains.turn_stiffness * turn[c] + gains.turn_damping * slower


@kernel
def held_point(hold, state, out):
    """out = world position of the held point [m]."""
    quat_rotate(state.q[hold.frame[0]], hold.lever, out)
    for c in range(3):
        out[c] += state.x[hold.frame[0], c]
