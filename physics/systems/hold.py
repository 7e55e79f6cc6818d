"""How the hand holds the tool: through a virtual coupling or directly, the point or point and orientation.

The coupling is implicit: its stiffness and damping enter the tool's system matrix at whatever rate it is
stepped, which is why the low-rate proxy can carry the very same hold as the servo's tool
(EQUATIONS.md, 1: "The proxy carries the same hold and loads as the stiff body").
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from physics.bodies.chain import chain_hold_direct
from physics.math3 import quat_difference

# Entries of Hold.gain
STIFFNESS, DAMPING, TURN_STIFFNESS, TURN_DAMPING = range(4)


class Hold(NamedTuple):
    """The held frame and the hand's target. Arrays, because a panel may change the gains while it runs."""

    frame: NDArray[np.int64]  # (1,) frame of the tool
    direct: NDArray[np.int64]  # (1,) 1 imposes the pose, 0 couples it
    turns: NDArray[np.int64]  # (1,) 1 where the orientation is held too
    gain: NDArray[np.float64]  # (4,) [N/m], [N s/m], [N m/rad], [N m s/rad]
    target: NDArray[np.float64]  # (3,) [m]
    target_q: NDArray[np.float64]  # (4,)
    target_v: NDArray[np.float64]  # (3,) [m/s]
    target_w: NDArray[np.float64]  # (3,) [rad/s]
    force: NDArray[np.float64]  # (6,) of the hold on the tool at the end of the tick [N], [N m]
    twist: NDArray[np.float64]  # (6,) scratch
    mask: NDArray[np.bool_]  # (6,) scratch


def make_hold(frame: int, direct: bool, turns: bool, gain: tuple[float, float, float, float]) -> Hold:
    """A hold of one frame with the four gains of `Hold.gain`."""
    return Hold(
        np.array([frame], np.int64),
        np.array([direct], np.int64),
        np.array([turns], np.int64),
        np.array(gain),
        np.zeros(3),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.zeros(3),
        np.zeros(3),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6, np.bool_),
    )


@njit(nogil=True, cache=True)
def apply_hold(hold, state, h, work):
    """Add the hold to an assembled chain: D += h b + h^2 k, rhs += h (k (x_t - x - h v) + b (v_t - v))."""
    i = hold.frame[0]
    turn = hold.twist[3:6]
    quat_difference(hold.target_q, state.q[i], turn)
    if hold.direct[0] == 1:
        for c in range(3):
            hold.twist[c] = (hold.target[c] - state.x[i, c]) / h
            turn[c] /= h
            hold.mask[c] = True
            hold.mask[3 + c] = hold.turns[0] == 1
        chain_hold_direct(work, state, i, hold.mask, hold.twist)
        return
    k, b = hold.gain[STIFFNESS], hold.gain[DAMPING]
    for c in range(3):
        work.D[i, c, c] += h * b + h * h * k
        work.rhs[i, c] += h * (
            k * (hold.target[c] - state.x[i, c] - h * state.v[i, c]) + b * (hold.target_v[c] - state.v[i, c])
        )
    if hold.turns[0] == 1:
        k, b = hold.gain[TURN_STIFFNESS], hold.gain[TURN_DAMPING]
        for c in range(3):
            work.D[i, 3 + c, 3 + c] += h * b + h * h * k
            work.rhs[i, 3 + c] += h * (
                k * (turn[c] - h * state.w[i, c]) + b * (hold.target_w[c] - state.w[i, c])
            )


@njit(nogil=True, cache=True)
def coupling_force(hold, state):
    """hold.force = force and moment of a coupling on the tool at its present state."""
    i = hold.frame[0]
    turn = hold.twist[3:6]
    quat_difference(hold.target_q, state.q[i], turn)
    for c in range(3):
        hold.force[c] = hold.gain[STIFFNESS] * (hold.target[c] - state.x[i, c]) + hold.gain[DAMPING] * (
            hold.target_v[c] - state.v[i, c]
        )
        hold.force[3 + c] = 0.0
        if hold.turns[0] == 1:
            hold.force[3 + c] = hold.gain[TURN_STIFFNESS] * turn[c] + hold.gain[TURN_DAMPING] * (
                hold.target_w[c] - state.w[i, c]
            )
