"""Points of the world: those that nothing moves, and some that follow a script of one place a step."""

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
    Kind,
    unit,
)
from palpo.physics.exchange.ahead import row_at
from palpo.physics.numerics.kernels import kernel


class ScriptedPoints(NamedTuple):
    """s points and orientations, of which m follow a script."""

    x: NDArray[np.float64]  # (s, 3) [m]
    q: NDArray[np.float64]  # (s, 4)
    moving: NDArray[np.int32]  # (m,)
    script_x: NDArray[np.float64]  # (m, rows, 3) [m] at the end of each step, as exchange.ahead keeps them
    script_q: NDArray[np.float64]  # (m, rows, 4)
    known: NDArray[np.int64]  # (1,) rows of the script so far


def make_scripted(
    x: ArrayLike,
    moving: ArrayLike = (),
    script_x: NDArray[np.float64] | None = None,
    script_q: NDArray[np.float64] | None = None,
    known: NDArray[np.int64] | None = None,
) -> ScriptedPoints:
    """Points at x (s, 3) [m], upright; those numbered `moving` are where the script has them."""
    places = np.array(x, dtype=np.float64).reshape(-1, 3)
    q = np.zeros((len(places), 4))
    q[:, 0] = 1.0
    return ScriptedPoints(
        places, q, np.array(moving, np.int32).reshape(-1),
        np.zeros((0, 1, 3)) if script_x is None else script_x,
        np.zeros((0, 1, 4)) if script_q is None else script_q,
        np.ones(1, np.int64) if known is None else known,
    )  # fmt: skip


@kernel
def follow(s, now):
    """The moving points go where the script has them at the end of step `now`."""
    if s.moving.shape[0] == 0:
        return
    row = row_at(s.known, s.script_x.shape[1], now)
    for m in range(s.moving.shape[0]):
        for i in range(3):
            s.x[s.moving[m], i] = s.script_x[m, row, i]
        for i in range(4):
            s.q[s.moving[m], i] = s.script_q[m, row, i]


@kernel
def place(s, batch):
    """x and q of the batch."""
    weighted_points(s.x, batch, batch.x)
    for k in range(batch.count[0]):
        for i in range(4):
            batch.q[k, i] = s.q[batch.slots[k, 0], i]


_SMALLEST = make_scripted(np.zeros((1, 3)))


@unit(_SMALLEST)
def scripted_unit(stage, s, batch, problem, h):
    """The stages of palpo.physics.contract.stages."""
    if stage == BEGIN:
        follow(s, batch.now[0])
    elif stage == PLACE:
        place(s, batch)
    elif stage in (FREE, MOVED, END):
        stand_still(batch)
    elif stage not in (AIM, DELASSUS, CLEAR, PUSH):
        return NOT_OFFERED
    return DONE


SCRIPTED = Kind("scripted", scripted_unit, typeof(_SMALLEST), points=lambda s: len(s.x))
