"""What the quasi-static servo exchanges with the slow loop: settings, slow to fast, and a picture, fast to
slow.

The servo computes everything itself, so the slow loop sends only what an operator may change, and reads only
what is drawn. Every array has the three slots of a triple buffer as its leading dimension.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS, publish, writer_slot

# Entries of Settings.value; those that end a range of several entries are followed by its length.
SET_FRICTION = 0
"""mu of all contacts [-]."""
SET_TOLERANCE, SET_SWEEPS, SET_TIME_CAP = 1, 2, 3
"""Of the contact solver: natural-map residual, most sweeps, most time [s] (0 for no limit)."""
SET_COLLISION = 4
"""Gap below which a vertex is a contact [m]; inf for all of them."""
SET_MODULUS = 5
"""Young's modulus of the mobile and of the fixed body over the one that they were built with: two entries."""
SET_HOLD = 7
"""Stiffness [N/m], damping [N s/m], and of the rotation [N m/rad], [N m s/rad]: four entries."""
SET_LIVE = 11
"""Force scale [-] and largest force [N] of the device's side, NaN to leave them (Port.live): two entries."""
SET_STYLUS_WEIGHT, SET_STYLUS_FRICTION = 13, 14
"""Force upward, and force along the hand's velocity, that make up for the stylus's own [N]."""
SET_ZOOM_SCALE, SET_ZOOM_RANGE = 15, 16
"""Share of the hand's motion that is left at contact (1: no zoom), and the gap where it begins [m]."""
SET_SOLVER = 17
"""ANDERSON, UZAWA_GLOBAL or UZAWA_LOCAL."""
SET_RHO, SET_RHO_FACTOR = 18, 19
"""Of Uzawa's method: rho [N/m], 0 for rho_min of W, and what multiplies either [-]."""
SET_ERROR_KIND, SET_GAUSS_SEIDEL_ERROR = 20, 21
"""Stop of Uzawa's sweeps: RESIDUAL, RELATIVE or PHYSICAL of physics.contact.solvers.relaxation, and the error
of the last two [-]; the residual's is the tolerance."""
SET_UZAWA_ERROR = 22
"""Stop of the local method at a contact, in shares of the largest free gap or slip [-]."""
SETTINGS = 23

ANDERSON, UZAWA_GLOBAL, UZAWA_LOCAL = range(3)
"""Values of SET_SOLVER: accelerated sweeps; or Uzawa's, one step a visit, or steps to a stop."""


class Settings(NamedTuple):
    """What an operator may change, slow loop to servo."""

    id: NDArray[np.int64]  # (3,) rises with each change; the servo's status names the one in force
    value: NDArray[np.float64]  # (3, SETTINGS)


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


def make_settings(values: NDArray[np.float64]) -> Settings:
    """Settings that start from these values, shape (SETTINGS,)."""
    return Settings(np.zeros(SLOTS, np.int64), np.tile(np.asarray(values, float), (SLOTS, 1)))


def publish_settings(
    settings: Settings, control: NDArray[np.int64], values: NDArray[np.float64], identity: int
) -> None:
    """Hand new values (SETTINGS,) to the servo, under a number that its status will name."""
    slot = writer_slot(control)
    settings.id[slot] = identity
    settings.value[slot] = values
    publish(control)


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
