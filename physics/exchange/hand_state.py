"""What a servo says at the end of each tick of its hand, of what that holds and of the contacts.

A slow loop and the picture each have a triple buffer of it, so that both get the newest and neither waits;
what a scene tells beside stands in arrays of its own behind the same control words.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined


class HandState(NamedTuple):
    """At most c contacts, open ones too; what a scene does not tell stays as it was made."""

    tick: NDArray[np.int64]  # (3,) ticks done, -1 before the first
    calls: NDArray[np.int64]  # (3,) calls of the tick so far, those in which the scene waited included
    target: NDArray[np.float64]  # (3, 3) [m] where the hand wants what it holds
    target_q: NDArray[np.float64]  # (3, 4)
    velocity: NDArray[np.float64]  # (3, 6) of the hand [m/s], [rad/s]
    position: NDArray[np.float64]  # (3, 3) [m] of what it holds
    orientation: NDArray[np.float64]  # (3, 4)
    force: NDArray[np.float64]  # (3, 3) [N] of the contacts on it, or of all that acts on the hand
    torque: NDArray[np.float64]  # (3, 3) [N m] the same about `position`
    n_contacts: NDArray[np.int64]  # (3,)
    contact_point: NDArray[np.float64]  # (3, c, 3) [m]
    contact_force: NDArray[np.float64]  # (3, c, 3) [N] on what the hand holds, world axes
    contact_status: NDArray[np.int32]  # (3, c) OPEN, STICK or SLIP


def make_hand_state(contacts: int = 0) -> HandState:
    """Nothing has been told yet; room for so many contacts."""
    upright, c = np.tile((1.0, 0.0, 0.0, 0.0), (SLOTS, 1)), contacts
    return HandState(
        np.full(SLOTS, -1, np.int64), np.full(SLOTS, -1, np.int64), np.zeros((SLOTS, 3)), upright.copy(),
        np.zeros((SLOTS, 6)), np.zeros((SLOTS, 3)), upright, np.zeros((SLOTS, 3)), np.zeros((SLOTS, 3)),
        np.zeros(SLOTS, np.int64), np.zeros((SLOTS, c, 3)), np.zeros((SLOTS, c, 3)),
        np.zeros((SLOTS, c), np.int32),
    )  # fmt: skip


@inlined
def write_hand(out, w, ticks, hand, orientation):
    """Into slot w: the servo's TICKS, the hand (contract.stages.Hand), the orientation of what it holds."""
    out.tick[w], out.calls[w] = ticks.done, ticks.calls
    copy(hand.position, out.target[w])
    copy(hand.orientation, out.target_q[w])
    copy(hand.held, out.position[w])
    copy(orientation, out.orientation[w])
