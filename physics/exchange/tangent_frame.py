"""What the two loops of HapCo exchange where the servo follows tangents: a solution with its derivatives,
slow to fast; where the hand is, fast to slow.

Every array has the three slots of a triple buffer as its leading dimension; at most c contacts. Forces are in
the contacts' axes, on the mobile body; motions of its frame are (6,): translation, then rotation vector.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.exchange.contact_count import CONTACT_COUNT


class TangentFrame(NamedTuple):
    """Contact forces where the hand was and where it is going to be, and how they change from there."""

    mobile_u: NDArray[np.float64]  # (3, s1, 3) displacement of the boundary [m], body axes
    fixed_u: NDArray[np.float64]  # (3, s2, 3)
    nearest: NDArray[np.float64]  # (3,) least gap of all vertices [m]
    count: NDArray[np.void]  # type: ignore[assignment]  # (3,) of CONTACT_COUNT
    identity: NDArray[np.int64]  # (3, c)
    axes: NDArray[np.float64]  # (3, c, 3, 3) rows n, t1, t2, world axes
    arm: NDArray[np.float64]  # (3, c, 3) from the frame's centre to the mobile points [m], world axes
    behind: NDArray[np.float64]  # (3, 3) [m] where the hand was
    behind_q: NDArray[np.float64]  # (3, 4)
    held: NDArray[np.float64]  # (3, c, 3) forces there [N]
    ahead: NDArray[np.float64]  # (3, 3) [m] where it is going to be
    ahead_q: NDArray[np.float64]  # (3, 4)
    force: NDArray[np.float64]  # (3, c, 3) forces there [N]
    tangent: NDArray[np.float64]  # (3, c, 3, 6) their derivative while each contact does as there
    elastic: NDArray[np.float64]  # (3, c, 3, 6) the same while all that bear stick
    release: NDArray[np.float64]  # (3, 6) [N], [N m] friction's power on what slides, by the frame's velocity


class HandState(NamedTuple):
    """The hand at the end of a tick, servo to slow loop."""

    calls: NDArray[np.int64]  # (3,) calls of the tick done, -1 before the first
    position: NDArray[np.float64]  # (3, 3) [m] of the mobile body's frame
    orientation: NDArray[np.float64]  # (3, 4)
    velocity: NDArray[np.float64]  # (3, 6) [m/s], [rad/s]


def make_tangent_frame(n_mobile: int, n_fixed: int, contacts: int) -> TangentFrame:
    """No contacts between bodies of that many boundary nodes."""
    c, upright = contacts, np.tile((1.0, 0.0, 0.0, 0.0), (SLOTS, 1))
    return TangentFrame(
        np.zeros((SLOTS, n_mobile, 3)), np.zeros((SLOTS, n_fixed, 3)), np.full(SLOTS, np.inf),
        np.zeros(SLOTS, CONTACT_COUNT), np.zeros((SLOTS, c), np.int64), np.zeros((SLOTS, c, 3, 3)),
        np.zeros((SLOTS, c, 3)), np.zeros((SLOTS, 3)), upright.copy(), np.zeros((SLOTS, c, 3)),
        np.zeros((SLOTS, 3)), upright,
        np.zeros((SLOTS, c, 3)), np.zeros((SLOTS, c, 3, 6)), np.zeros((SLOTS, c, 3, 6)), np.zeros((SLOTS, 6)),
    )  # fmt: skip


def make_hand_state() -> HandState:
    """Nothing has been computed yet."""
    upright = np.tile((1.0, 0.0, 0.0, 0.0), (SLOTS, 1))
    return HandState(np.full(SLOTS, -1, np.int64), np.zeros((SLOTS, 3)), upright, np.zeros((SLOTS, 6)))
