"""What the servo of a snap connector exchanges with the slow loop: settings one way, a picture the other.

The servo computes everything itself. It publishes coordinates, from which the slow loop reconstructs the
surfaces. Every array has the three slots of a triple buffer
as its leading dimension.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS, publish, writer_slot

# Entries of SnapSettings.value
SET_FRICTION, SET_RESTITUTION = 0, 1
"""mu and eps of all contacts [-]."""
SET_CORRECTION = 2
"""Share of a penetration that a contact's law takes away within a step [-]: 1 as in 002, 0 none of it."""
SET_SOLVER = 3
"""MAXIMAL_DISSIPATION or GAUSS_SEIDEL."""
SET_TOLERANCE, SET_SWEEPS = 4, 5
"""Of the contact solver: natural-map residual, most sweeps."""
SET_CLUSTERS = 6
"""Most contacts of a prong; 0 for every point that touches."""
SET_LIVE = 7
"""Force scale [-] and largest force [N] of the device's side, NaN to leave them (Port.live): two entries."""
SETTINGS = 9

MAXIMAL_DISSIPATION, GAUSS_SEIDEL = 0, 1
"""Values of SET_SOLVER."""

# Entries of SnapPicture.energy [J]
KINETIC, ELASTIC, COUPLING, PLUG = 0, 1, 2, 3
"""Of the prongs, of the couplings between their segments, of the plug and its hold; the last in their sum."""
WORK_NORMAL, WORK_FRICTION, WORK_CORRECTION = 4, 5, 6
"""Done since the start by normal forces, by friction, and, of the normal's, for penetrations and gaps."""
WORK_TARGET, LOST_DAMPING = 7, 8
"""Done by the hand on the hold; taken by all dampings."""
ENERGIES = 9

GAINS = 5
"""Matrices of palpo.physics.dynamics.admittance.PlugModel: mass, damping, stiffness, inverse, follow."""


class SnapSettings(NamedTuple):
    """What an operator may change, slow loop to servo."""

    id: NDArray[np.int64]  # (3,) rises with each change; the servo's status names the one in force
    value: NDArray[np.float64]  # (3, SETTINGS)
    gains: NDArray[np.float64]  # (3, GAINS, 6, 6)


class SnapPicture(NamedTuple):
    """Connector and contacts at the end of a tick, servo to slow loop; at most c contacts, open ones too."""

    tick: NDArray[np.int64]  # (3,) ticks done, -1 before the first
    coordinates: NDArray[np.float64]  # (3, n) of all prongs, one after the other
    position: NDArray[np.float64]  # (3, 3) [m] of the plug
    orientation: NDArray[np.float64]  # (3, 4)
    target: NDArray[np.float64]  # (3, 3) [m] where the hand wants it
    target_q: NDArray[np.float64]  # (3, 4)
    force: NDArray[np.float64]  # (3, 3) [N] of the contacts on the plug
    torque: NDArray[np.float64]  # (3, 3) [N m] the same about `position`
    hand: NDArray[np.float64]  # (3, 6) of the hold on the hand [N], [N m]
    floor: NDArray[np.float64]  # (3, 3) [N] of the prongs on what they stand on
    energy: NDArray[np.float64]  # (3, ENERGIES) [J]
    n_contacts: NDArray[np.int64]  # (3,)
    contact_point: NDArray[np.float64]  # (3, c, 3) [m] on the prongs
    contact_force: NDArray[np.float64]  # (3, c, 3) [N] on the plug
    contact_status: NDArray[np.int32]  # (3, c) OPEN, STICK or SLIP


def make_snap_settings(values: NDArray[np.float64], gains: NDArray[np.float64]) -> SnapSettings:
    """Settings that start from these values (SETTINGS,) and gains (GAINS, 6, 6)."""
    return SnapSettings(
        np.zeros(SLOTS, np.int64),
        np.tile(np.asarray(values, float), (SLOTS, 1)),
        np.tile(np.asarray(gains, float), (SLOTS, 1, 1, 1)),
    )


def publish_snap_settings(
    settings: SnapSettings,
    control: NDArray[np.int64],
    values: NDArray[np.float64],
    gains: NDArray[np.float64],
    identity: int,
) -> None:
    """Hand new values and gains to the servo, under a number that its status will name."""
    slot = writer_slot(control)
    settings.id[slot] = identity
    settings.value[slot] = values
    settings.gains[slot] = gains
    publish(control)


def make_snap_picture(coordinates: int, contacts: int) -> SnapPicture:
    """An empty picture of that many coordinates and contacts."""
    upright = np.zeros((SLOTS, 4))
    upright[:, 0] = 1.0
    return SnapPicture(
        tick=np.full(SLOTS, -1, np.int64),
        coordinates=np.zeros((SLOTS, coordinates)),
        position=np.zeros((SLOTS, 3)),
        orientation=upright,
        target=np.zeros((SLOTS, 3)),
        target_q=upright.copy(),
        force=np.zeros((SLOTS, 3)),
        torque=np.zeros((SLOTS, 3)),
        hand=np.zeros((SLOTS, 6)),
        floor=np.zeros((SLOTS, 3)),
        energy=np.zeros((SLOTS, ENERGIES)),
        n_contacts=np.zeros(SLOTS, np.int64),
        contact_point=np.zeros((SLOTS, contacts, 3)),
        contact_force=np.zeros((SLOTS, contacts, 3)),
        contact_status=np.zeros((SLOTS, contacts), np.int32),
    )
