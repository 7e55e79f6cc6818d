"""The cavities in a frame that a slow loop brings to the servo, whatever kind of scene it is of.

A cavity has a row, whose volume bodies answer for by their fields. The servo goes on with the air of one that
it knows; what the slow loop has seen of it since, air that an opening let in, comes as a share.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import SLOTS


class CavityFrame(NamedTuple):
    """Room for c cavities; every array has the three slots of a triple buffer as its leading dimension."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (3,) k
    identity: NDArray[np.int64]  # (3, c) the same cavity's in each frame
    fields: NDArray[np.int32]  # (3, c, 2) of its two walls, by the frame's own numbers; -1 for none
    active: NDArray[np.bool_]  # (3, c) whether the pressure is given
    pressure: NDArray[np.float64]  # (3, c) [Pa], absolute: given, or to start from
    amount: NDArray[np.float64]  # (3, c) n [mol] of one that the servo does not know yet
    share: NDArray[np.float64]  # (3, c) what is left of n in one that it does
    seeping: NDArray[np.float64]  # (3, (c + 1)^2) h G [m3/Pa] between the k and outside, packed


def make_cavity_frame(cavities: int) -> CavityFrame:
    """None, and room for so many."""
    n, c = SLOTS, cavities
    return CavityFrame(
        np.zeros(n, np.int64), np.zeros((n, c), np.int64), np.full((n, c, 2), -1, np.int32),
        np.zeros((n, c), np.bool_), np.ones((n, c)), np.zeros((n, c)), np.ones((n, c)),
        np.zeros((n, (c + 1) ** 2)),
    )  # fmt: skip
