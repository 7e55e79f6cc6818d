"""What the slow loop of HapCo brings where the servo follows tangents: a solution with its derivatives.

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
