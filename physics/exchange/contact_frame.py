"""What the two loops of HapCo exchange: contacts with their W, slow to fast; where they are, fast to slow.

Every array has the three slots of a triple buffer as its leading dimension; at most c contacts.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS
from palpo.physics.exchange.contact_count import CONTACT_COUNT


class ContactFrame(NamedTuple):
    """Contacts found at one pose, slow loop to servo; see physics.collision.mobile_contacts.Contacts."""

    mobile_u: NDArray[np.float64]  # (3, s1, 3) displacement of the boundary [m], body axes
    fixed_u: NDArray[np.float64]  # (3, s2, 3)
    nearest: NDArray[np.float64]  # (3,) least gap of all vertices [m]
    count: NDArray[np.void]  # type: ignore[assignment]  # (3,) of CONTACT_COUNT
    identity: NDArray[np.int64]  # (3, c)
    triangle: NDArray[np.int32]  # (3, c)
    slots: NDArray[np.int32]  # (3, 2, c, 3)
    weights: NDArray[np.float64]  # (3, 2, c, 3)
    axes: NDArray[np.float64]  # (3, c, 3, 3) rows n, t1, t2, world axes
    w: NDArray[np.float64]  # (3, 9 c^2) W of n contacts [m/N], packed in the first 9 n^2 entries


class ContactPlaces(NamedTuple):
    """Where the contacts are at the end of a tick, servo to slow loop, beside a HandState."""

    identity: NDArray[np.int64]  # (3, c)
    triangle: NDArray[np.int32]  # (3, c)
    slots: NDArray[np.int32]  # (3, 2, c, 3)
    weights: NDArray[np.float64]  # (3, 2, c, 3)


def make_contact_frame(n_mobile: int, n_fixed: int, contacts: int) -> ContactFrame:
    """No contacts between bodies of that many boundary nodes."""
    c = contacts
    return ContactFrame(
        np.zeros((SLOTS, n_mobile, 3)),
        np.zeros((SLOTS, n_fixed, 3)), np.full(SLOTS, np.inf), np.zeros(SLOTS, CONTACT_COUNT),
        np.zeros((SLOTS, c), np.int64), np.zeros((SLOTS, c), np.int32), np.zeros((SLOTS, 2, c, 3), np.int32),
        np.zeros((SLOTS, 2, c, 3)), np.zeros((SLOTS, c, 3, 3)), np.zeros((SLOTS, 9 * c * c)),
    )  # fmt: skip


def make_contact_places(contacts: int) -> ContactPlaces:
    """Of no contacts yet."""
    c = contacts
    return ContactPlaces(
        np.zeros((SLOTS, c), np.int64), np.zeros((SLOTS, c), np.int32), np.zeros((SLOTS, 2, c, 3), np.int32),
        np.zeros((SLOTS, 2, c, 3)),
    )  # fmt: skip
