"""What the quasi-static servo exchanges with the slow loop: settings, slow to fast, and a picture, fast to
slow.

The servo computes everything itself, so the slow loop sends only what an operator may change, and reads only
what is drawn. Every array has the three slots of a triple buffer as its leading dimension.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.exchange.gains import GAINS

VALUES = np.dtype(
    [("friction", np.float64), ("tolerance", np.float64), ("sweeps", np.int64), ("time_cap", np.float64),
     ("collision", np.float64), ("modulus", np.float64, (2,)), ("renewed", np.float64, (2,)),
     ("hold", GAINS),
     ("force_scale", np.float64), ("max_force", np.float64), ("stylus_weight", np.float64),
     ("stylus_friction", np.float64), ("zoom_scale", np.float64), ("zoom_range", np.float64),
     ("solver", np.int64), ("rho", np.float64), ("rho_factor", np.float64), ("error_kind", np.int64),
     ("gauss_seidel_error", np.float64), ("uzawa_error", np.float64)]
)  # fmt: skip
"""What may change: mu of all contacts [-]; of the contact solver, natural-map residual, most sweeps and most
time [s] (0 for no limit); gap below which a vertex is a contact [m], inf for all of them; Young's modulus of
the mobile and of the fixed body over the one that they were built with, and the share in each of the boundary
that was made for another Poisson's ratio (0: none); the hold's gains; force scale [-] and largest force [N]
of the device's side, NaN to leave them (Port.live); force upward, and force along the hand's velocity, that
make up for the stylus's own [N]; share of the hand's motion that is left at contact (1: no zoom), and the gap
where that begins [m]; one of ANDERSON to UZAWA_LOCAL. Then of Uzawa's method: rho [N/m], 0 for rho_min of W,
and what multiplies either [-]; the stop of its sweeps, RESIDUAL, RELATIVE or PHYSICAL of
physics.contact.solvers.relaxation, and the error of the last two [-] (the residual's is the tolerance); and
the stop of the local method at a contact, in shares of the largest free gap or slip [-]."""

ANDERSON, UZAWA_GLOBAL, NEWTON, GAUSS_SEIDEL, MAXIMAL_DISSIPATION, UZAWA_LOCAL = range(6)
"""Values of VALUES' solver: accelerated sweeps; Uzawa's method, one step a visit; Newton's between sweeps;
sweeps as they are; maximal dissipation; or Uzawa's with steps to a stop. All but the last are a solver's
place in the engine's list."""


class Picture(NamedTuple):
    """Bodies and contacts at the end of a tick, servo to slow loop; at most c contacts, open ones too."""

    tick: NDArray[np.int64]  # (3,) ticks done, -1 before the first
    surface: NDArray[np.float64]  # (3, s1 + s2, 3) [m] boundary nodes of the mobile, then of the fixed body
    position: NDArray[np.float64]  # (3, 3) [m] centre of the mobile body's clamped nodes
    orientation: NDArray[np.float64]  # (3, 4)
    target: NDArray[np.float64]  # (3, 3) [m] where the hand wants it
    target_q: NDArray[np.float64]  # (3, 4)
    force: NDArray[np.float64]  # (3, 3) [N] of the contacts on the mobile body
    torque: NDArray[np.float64]  # (3, 3) [N m] the same about `position`
    n_contacts: NDArray[np.int64]  # (3,)
    contact_point: NDArray[np.float64]  # (3, c, 3) [m] on the mobile body
    contact_force: NDArray[np.float64]  # (3, c, 3) [N] on the mobile body
    contact_status: NDArray[np.int32]  # (3, c) OPEN, STICK or SLIP


def make_picture(n_surface: int, contacts: int) -> Picture:
    """An empty picture of that many boundary nodes and contacts."""
    orientation = np.zeros((SLOTS, 4))
    orientation[:, 0] = 1.0
    return Picture(
        tick=np.full(SLOTS, -1, np.int64),
        surface=np.zeros((SLOTS, n_surface, 3)),
        position=np.zeros((SLOTS, 3)),
        orientation=orientation,
        target=np.zeros((SLOTS, 3)),
        target_q=orientation.copy(),
        force=np.zeros((SLOTS, 3)),
        torque=np.zeros((SLOTS, 3)),
        n_contacts=np.zeros(SLOTS, np.int64),
        contact_point=np.zeros((SLOTS, contacts, 3)),
        contact_force=np.zeros((SLOTS, contacts, 3)),
        contact_status=np.zeros((SLOTS, contacts), np.int32),
    )
