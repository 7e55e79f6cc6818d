"""How long a servo goes on against a frame, and what a tick leaves that waits for the next.

Until then the tool goes on against the last frame's model, which yields. Past it the scene's time stands
still: the tick moves nothing and leaves the force as it was. Nothing answers for that force any more: who
sends it lets it only fall, and lets the hand slip (haptics.limiter.let_go, haptics.clutch.slip), so that
no energy comes of it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.buffer import is_fresh
from palpo.physics.exchange.port import OK, end_tick
from palpo.physics.numerics.kernels import inlined

PATIENCE_PERIODS = 5
"""Low periods after which a frame is overdue."""
LEAST = 0.1
"""Seconds for which no frame is overdue, however high its rate: every machine stops for moments."""


def patience_of(
    period: int, wished: int, dt: float, least: float = LEAST, periods: int = PATIENCE_PERIODS
) -> tuple[int, int]:
    """What a frame tells of the next one: ticks after which that is overdue, and STATUS's stretch.

    period: ticks of dt [s] until it is due; wished: those of the scene's own rate. least: patience at any
    rate [s]; periods: at least so many.
    """
    return max(periods * period, round(least / dt)), max(0, period - wished)


IN_FORCE = np.dtype(
    [("frame", np.int64), ("adopted_at", np.int64), ("waited", np.int64), ("patience", np.int64),
     ("stretch", np.int64)]
)  # fmt: skip
"""The frame of a low loop that a servo goes on with: its id, 0 before the first; ticks done when it was
adopted; calls that have waited for the next since; how old it may become [ticks]; and by how many ticks such
frames come further apart than the scene asks."""


def none_in_force(*ratios: int) -> NDArray[Any]:
    """(k,) of IN_FORCE before the first frames of k low loops; ratios: ticks in a period of each."""
    in_force = np.zeros(len(ratios), IN_FORCE)
    in_force["patience"] = [PATIENCE_PERIODS * ratio for ratio in ratios]
    return in_force


@inlined
def come_into_force(in_force, frame, told, now, port):
    """A fresh frame of that id, which told `patience_of`; one that told nothing leaves the patience."""
    in_force.frame, in_force.adopted_at, in_force.waited = frame, now, 0
    in_force.stretch = port.status[0].stretch = told[1]
    if told[0] > 0:
        in_force.patience = told[0]


@inlined
def waits(in_force, now, control):
    """Whether the tick has to wait, as the frame in force is overdue and no other has come; it is counted."""
    overdue = in_force.frame > 0 and is_overdue(now - in_force.adopted_at, in_force.patience, control)
    in_force.waited += 1 if overdue else 0
    return overdue


@inlined
def is_stale(port, most):
    """Whether the frame is older than `most` and the frames' stretch [ticks]."""
    return port.status[0].age > most + port.status[0].stretch


@inlined
def is_overdue(age, patience, control):
    """Whether a frame of this age [ticks] is too old to go on with, and no other has come.

    The soft bodies answer the servo's forces a frame later. That loop loses its stability when a machine is
    so busy that frames come tenths of a second late; slow motion keeps it.
    """
    return age >= patience and not is_fresh(control)


@inlined
def wait(port, age, flags):
    """End a tick that waits: its flags, and the frame's age [ticks], which goes on; returns the status."""
    port.status[0].flags = flags
    return end_tick(port, OK, age)
