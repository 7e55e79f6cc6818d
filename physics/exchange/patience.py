"""How long a servo goes on against a frame, and what a tick leaves that waits for the next.

Until then the tool goes on against the last frame's model, which yields. Past it the scene's time stands
still: the tick moves nothing and leaves the force as it was. Nothing answers for that force any more: who
sends it lets it only fall, and lets the hand slip (haptics.limits.let_go, haptics.clutch.slip), so that
no energy comes of it.
"""

from palpo.physics.exchange.buffer import is_fresh
from palpo.physics.exchange.port import OK, WAITING, end_tick
from palpo.physics.kernels import inlined

PATIENCE_PERIODS = 5
"""Low periods after which a frame is overdue."""
LEAST = 0.1
"""Seconds for which no frame is overdue, however high its rate: every machine stops for moments."""


def patience_of(period: int, wished: int, dt: float, least: float = LEAST) -> tuple[int, int]:
    """What a frame tells of the next one: ticks after which that is overdue, and STATUS's stretch.

    period: ticks of dt [s] until it is due; wished: those of the scene's own rate. least: patience at any
    rate [s].
    """
    return max(PATIENCE_PERIODS * period, round(least / dt)), max(0, period - wished)


@inlined
def renewed(port, patience, told, stretch):
    """Patience from a fresh frame on, which told `patience_of`; a frame that told nothing leaves it."""
    port.status[0].stretch = stretch
    return told if told > 0 else patience


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
def wait(port, age):
    """End a tick that waits: its flag, and the frame's age [ticks], which goes on; returns the status."""
    port.status[0].flags = WAITING
    return end_tick(port, OK, age)
