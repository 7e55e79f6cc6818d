"""The tool state, high rate to low: where the servo's tool and the hand's target are, published each tick."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from physics.exchange.buffer import SLOTS


class ToolState(NamedTuple):
    """Triple-buffered state of the tool's n frames and of the hand that holds it."""

    tick: NDArray[np.int64]  # (3,)
    x: NDArray[np.float64]  # (3, n, 3) [m]
    q: NDArray[np.float64]  # (3, n, 4)
    v: NDArray[np.float64]  # (3, n, 3) [m/s]
    w: NDArray[np.float64]  # (3, n, 3) [rad/s]
    target: NDArray[np.float64]  # (3, 3) hand target [m]
    target_q: NDArray[np.float64]  # (3, 4)
    target_v: NDArray[np.float64]  # (3, 3) [m/s]
    target_w: NDArray[np.float64]  # (3, 3) [rad/s]


def make_tool_state(n: int) -> ToolState:
    """A tool of n frames at the origin."""
    q = np.zeros((SLOTS, n, 4))
    q[..., 0] = 1.0
    target_q = np.zeros((SLOTS, 4))
    target_q[:, 0] = 1.0
    return ToolState(
        np.full(SLOTS, -1, np.int64),
        np.zeros((SLOTS, n, 3)), q, np.zeros((SLOTS, n, 3)), np.zeros((SLOTS, n, 3)),
        np.zeros((SLOTS, 3)), target_q, np.zeros((SLOTS, 3)), np.zeros((SLOTS, 3)),
    )  # fmt: skip
