"""What the slow loop brings to the servo of a held suction cup.

Every array has the three slots of a triple buffer as its leading dimension.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.exchange.cavity_frame import CavityFrame, make_cavity_frame

VALUES = np.dtype(
    [("step", np.float64), ("atmosphere", np.float64), ("largest", np.float64), ("rt", np.float64),
     ("tolerance", np.float64), ("sweeps", np.int64)]
)  # fmt: skip
"""Settings of a frame: h of the slow loop's step [s]; P_atm and P_max [Pa], R T [J/mol]; of the servo's
solver, natural-map residual and most sweeps."""


class SuctionFrame(NamedTuple):
    """A step's problem, condensed to the handle; room for c contacts and k cavities, m = 3 c + k rows.

    Those in use come first, the contacts' rows before the cavities'. x = (r, p - P_atm) [N, Pa]; twists are a
    displacement [m] and a rotation vector about the handle's origin, wrenches their duals [N, N m].
    """

    origin: NDArray[np.int64]  # (3,) ticks done when the step began
    size: NDArray[np.int64]  # (3, 2) contacts, cavities
    settings: NDArray[np.void]  # (3,) of VALUES
    position: NDArray[np.float64]  # (3, 3) [m] of the handle when the step began
    orientation: NDArray[np.float64]  # (3, 4)
    w: NDArray[np.float64]  # (3, m m) of the rows in use, packed; the handle yields through its coupling
    b: NDArray[np.float64]  # (3, m) gaps [m] and volumes [m3] at x = 0 with the handle held, from rest
    momentum: NDArray[np.float64]  # (3, m) what the start velocities add in a whole step
    rows: NDArray[np.float64]  # (3, m, 6) what a twist of the handle adds
    stiffness: NDArray[np.float64]  # (3, 6, 6) S: wrench of a twist on what holds the handle, at x = 0
    load: NDArray[np.float64]  # (3, 6) wrench on the held handle, from rest
    load_momentum: NDArray[np.float64]  # (3, 6) what the start velocities add in a whole step
    give: NDArray[np.float64]  # (3, 6, 6) twist of a wrench, with the coupling; 0 where the pose is imposed
    follow: NDArray[np.float64]  # (3, 6, 6) twist of one of the hand's
    drift: NDArray[np.float64]  # (3, 6) twist by the coupling's dampers if neither moves
    mu: NDArray[np.float64]  # (3, c)
    start: NDArray[np.float64]  # (3, 3 c) contact forces to start from [N]
    cavities: CavityFrame  # k of them, as when the step began, each on the cup's field of its number


def make_suction_frame(contacts: int, cavities: int) -> SuctionFrame:
    """Empty slots with room for so many contacts and cavities."""
    m = 3 * contacts + cavities
    return SuctionFrame(
        origin=np.zeros(SLOTS, np.int64),
        size=np.zeros((SLOTS, 2), np.int64),
        settings=np.zeros(SLOTS, VALUES),
        position=np.zeros((SLOTS, 3)),
        orientation=np.tile((1.0, 0.0, 0.0, 0.0), (SLOTS, 1)),
        w=np.zeros((SLOTS, m * m)),
        b=np.zeros((SLOTS, m)),
        momentum=np.zeros((SLOTS, m)),
        rows=np.zeros((SLOTS, m, 6)),
        stiffness=np.zeros((SLOTS, 6, 6)),
        load=np.zeros((SLOTS, 6)),
        load_momentum=np.zeros((SLOTS, 6)),
        give=np.zeros((SLOTS, 6, 6)),
        follow=np.zeros((SLOTS, 6, 6)),
        drift=np.zeros((SLOTS, 6)),
        mu=np.zeros((SLOTS, contacts)),
        start=np.zeros((SLOTS, 3 * contacts)),
        cavities=make_cavity_frame(cavities),
    )
