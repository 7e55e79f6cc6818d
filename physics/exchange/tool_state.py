"""What the servo says of itself at each tick: its tool, the hand's target, the contacts, the reduced bodies.

The low loop and the picture each have a triple buffer of it, so that both get the newest and neither waits.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.exchange.constraint_frame import BLADES, CAVITIES, PATH_POINTS, PATHS

INSERTED = np.dtype(
    [("count", np.int64), ("plan", np.int64), ("point", np.int64, 3), ("weight", np.float64, 3),
     ("depth", np.float64), ("inside", np.float64)]
)  # fmt: skip
"""Of a needle: points of its path so far, 0 outside, and the plan that they are of; outside, the points of
the tissue's surface that its tip touches, -1 for none, and their weights; the length of its channel, and of
the shaft in it [m]."""


def make_inserted() -> NDArray[Any]:
    """(PATHS,) of INSERTED, all outside."""
    out = np.zeros(PATHS, INSERTED)
    out["point"] = -1
    return out


INCISED = np.dtype([("inside", np.int64), ("work", np.float64)])
"""Of a blade: whether it is in its tissue, and what cutting has taken so far [J]."""


def make_incised() -> NDArray[Any]:
    """(BLADES,) of INCISED, all outside."""
    return np.zeros(BLADES, INCISED)


class ToolState(NamedTuple):
    """Triple-buffered state of the tool's n frames, of the hand that holds it and of up to c contacts."""

    tick: NDArray[np.int64]  # (3,) ticks done, -1 before the first
    calls: NDArray[np.int64]  # (3,) calls of the tick so far, those in which the scene waited included
    odometer: NDArray[np.float64]  # (3,) [m] bound on the relative travel of any two points so far
    x: NDArray[np.float64]  # (3, n, 3) [m]
    q: NDArray[np.float64]  # (3, n, 4)
    v: NDArray[np.float64]  # (3, n, 3) [m/s]
    w: NDArray[np.float64]  # (3, n, 3) [rad/s]
    target: NDArray[np.float64]  # (3, 3) hand target [m]
    target_q: NDArray[np.float64]  # (3, 4)
    target_v: NDArray[np.float64]  # (3, 3) [m/s]
    target_w: NDArray[np.float64]  # (3, 3) [rad/s]
    force: NDArray[np.float64]  # (3, 3) commanded force [N]
    n_contacts: NDArray[np.int64]  # (3,)
    contact_point: NDArray[np.float64]  # (3, c, 3) [m]
    contact_force: NDArray[np.float64]  # (3, c, 3) on body 1 [N]
    contact_status: NDArray[np.int32]  # (3, c) OPEN, STICK or SLIP
    n_cavities: NDArray[np.int64]  # (3,)
    cavity: NDArray[np.int64]  # (3, CAVITIES) identities
    cavity_air: NDArray[np.float64]  # (3, CAVITIES, 3) n [mol], V [m3] and p [Pa]
    incised: NDArray[Any]  # (3, BLADES) of INCISED
    inserted: NDArray[Any]  # (3, PATHS) of INSERTED
    path: NDArray[
        np.float64
    ]  # (3, PATHS, PATH_POINTS, 3) [m] points of their paths, the first `count` of each
    frame: NDArray[np.int64]  # (3, k) id of the constraint frame of each low loop that z belongs to
    z: NDArray[np.float64]  # (3, k, m) coordinates of the reduced model's modes
    centre: NDArray[np.float64]  # (3, k, L, 3) its bodies' centres of mass [m]
    orientation: NDArray[np.float64]  # (3, k, L, 4) and body axes
    rate: NDArray[np.float64]  # (3, k, r) dz/dt
    velocity: NDArray[np.float64]  # (3, k, L', 3) of those centres [m/s]
    spin: NDArray[np.float64]  # (3, k, L', 3) and of those axes [rad/s]
    gravity: NDArray[np.float64]  # (3, 3) [m/s2]


def make_tool_state(
    n: int, contacts: int, modes: int = 0, bodies: int = 0, loops: int = 1, moving: bool = False
) -> ToolState:
    """A tool of n frames at the origin, with room for so many contacts, modes and bodies of each low loop.

    moving: with room for the velocities of these modes and bodies, too.
    """
    rates, moves = (modes, bodies) if moving else (0, 0)
    q = np.zeros((SLOTS, n, 4))
    q[..., 0] = 1.0
    target_q = np.zeros((SLOTS, 4))
    target_q[:, 0] = 1.0
    return ToolState(
        tick=np.full(SLOTS, -1, np.int64),
        calls=np.full(SLOTS, -1, np.int64),
        odometer=np.zeros(SLOTS),
        x=np.zeros((SLOTS, n, 3)),
        q=q,
        v=np.zeros((SLOTS, n, 3)),
        w=np.zeros((SLOTS, n, 3)),
        target=np.zeros((SLOTS, 3)),
        target_q=target_q,
        target_v=np.zeros((SLOTS, 3)),
        target_w=np.zeros((SLOTS, 3)),
        force=np.zeros((SLOTS, 3)),
        n_contacts=np.zeros(SLOTS, np.int64),
        contact_point=np.zeros((SLOTS, contacts, 3)),
        contact_force=np.zeros((SLOTS, contacts, 3)),
        contact_status=np.zeros((SLOTS, contacts), np.int32),
        n_cavities=np.zeros(SLOTS, np.int64),
        cavity=np.zeros((SLOTS, CAVITIES), np.int64),
        cavity_air=np.zeros((SLOTS, CAVITIES, 3)),
        incised=np.tile(make_incised(), (SLOTS, 1)),
        inserted=np.tile(make_inserted(), (SLOTS, 1)),
        path=np.zeros((SLOTS, PATHS, PATH_POINTS, 3)),
        frame=np.zeros((SLOTS, loops), np.int64),
        z=np.zeros((SLOTS, loops, modes)),
        centre=np.zeros((SLOTS, loops, bodies, 3)),
        orientation=np.zeros((SLOTS, loops, bodies, 4)),
        rate=np.zeros((SLOTS, loops, rates)),
        velocity=np.zeros((SLOTS, loops, moves, 3)),
        spin=np.zeros((SLOTS, loops, moves, 3)),
        gravity=np.zeros((SLOTS, 3)),
    )
