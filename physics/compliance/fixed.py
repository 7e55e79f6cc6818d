"""Points that stand still: the ground, a wall, whatever is far heavier than all that touches it."""

from typing import NamedTuple

import numpy as np
from numba import typeof
from numpy.typing import ArrayLike, NDArray

from palpo.physics.compliance.points import stand_still, weighted_points
from palpo.physics.contract.stages import (
    AIM,
    BEGIN,
    CLEAR,
    DELASSUS,
    DONE,
    END,
    FREE,
    MOVED,
    NOT_OFFERED,
    PLACE,
    PUSH,
    SHAPE,
    Kind,
    unit,
)
from palpo.physics.numerics.arrays import copy_rows
from palpo.physics.numerics.kernels import kernel


class Fixed(NamedTuple):
    """s points of the world."""

    x: NDArray[np.float64]  # (s, 3) [m]


def make_fixed(x: ArrayLike) -> Fixed:
    """A body of those points x (s, 3) [m]."""
    return Fixed(np.array(x, dtype=np.float64).reshape(-1, 3))


@kernel
def place(s, batch):
    """x of the batch; nothing turns."""
    weighted_points(s.x, batch, batch.x)
    for k in range(batch.count[0]):
        for i in range(4):
            batch.q[k, i] = 1.0 if i == 0 else 0.0


_SMALLEST = make_fixed(np.zeros((1, 3)))


@unit(_SMALLEST)
def fixed_unit(stage, s, batch, problem, h):
    """The stages of palpo.physics.contract.stages."""
    if stage == SHAPE:
        copy_rows(s.x, batch.x)
    elif stage == PLACE:
        place(s, batch)
    elif stage in (FREE, MOVED, END):
        stand_still(batch)
    elif stage not in (AIM, BEGIN, DELASSUS, CLEAR, PUSH):
        return NOT_OFFERED
    return DONE


FIXED = Kind("fixed", fixed_unit, typeof(_SMALLEST), points=lambda s: len(s.x))
