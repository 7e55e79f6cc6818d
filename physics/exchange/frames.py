"""Frames of slow loops: how one comes into force, and how long a servo goes on with it.

Whatever a loop brings, a frame is a slot of its triple buffer (palpo.physics.exchange.buffer) with a head. A
servo goes on against the last one's models, which yield, until the next is overdue by far. Past that the
scene's time stands still: the tick moves nothing and leaves the force as it was. Nothing answers for that
force any more: who sends it lets it only fall, and lets the hand slip (haptics.limiter.let_go,
haptics.clutch.slip), so that no energy comes of it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.atomics import store_release
from palpo.physics.exchange.buffer import SLOTS, acquire, is_fresh, make_control, publish, writer_slot
from palpo.physics.exchange.port import LIVE, OK, UNSET, end_tick
from palpo.physics.numerics.kernels import inlined

PATIENCE_PERIODS = 5
"""Low periods after which a frame is overdue."""
LEAST = 0.1
"""Seconds for which no frame is overdue, however high its rate: every machine stops for moments."""
NEVER = 1e15
"""Seconds of patience of a servo that no frame keeps waiting."""

HEAD = np.dtype([("id", np.int64), ("patience", np.int64), ("stretch", np.int64), *LIVE.descr])
"""Which frame it is, 1, 2, ...; what it tells of the next one, see `patience_of`. One of patience 0 brings
settings alone: it does not age, and nobody waits for the next. Then what an operator has set for the device's
side (Port.live), which those of the first loop bring."""

IN_FORCE = np.dtype(
    [("frame", np.int64), ("adopted_at", np.int64), ("waited", np.int64), ("patience", np.int64),
     ("stretch", np.int64)]
)  # fmt: skip
"""The frame of a low loop that a servo goes on with: its id, 0 before the first; ticks done when it was
adopted; calls that have waited for the next since; how old it may become [ticks]; and by how many ticks such
frames come further apart than the scene asks."""

TAKEN_ID, TAKEN_CALL = 0, 1
"""Entries of SlowFrames.taken: the id in force once more, written last; calls of the tick before the one that
took it."""


class SlowFrames(NamedTuple):
    """What the servo and the k slow loops of a scene know of each other's frames, the quickest loop first."""

    control: NDArray[np.int64]  # (k, 24) of the triple buffers
    head: NDArray[Any]  # (k, 3) of HEAD
    in_force: NDArray[Any]  # (k,) of IN_FORCE
    taken: NDArray[np.int64]  # (k, 2) what each loop is told


def make_frames(*ratios: int) -> SlowFrames:
    """Before the first frames of k slow loops; ratios: ticks in a period of each, 0 for settings alone."""
    k, in_force = len(ratios), np.zeros(len(ratios), IN_FORCE)
    in_force["patience"] = [PATIENCE_PERIODS * ratio for ratio in ratios]
    words, head = make_control(), np.zeros((k, SLOTS), HEAD)
    for name in LIVE.names or ():
        head[name] = np.nan
    return SlowFrames(np.tile(words, (k, 1)), head, in_force, np.zeros((k, 2), np.int64))


def patience_of(
    period: int, wished: int, dt: float, least: float = LEAST, periods: int = PATIENCE_PERIODS
) -> tuple[int, int]:
    """What a frame tells of the next one: ticks after which that is overdue, and STATUS's stretch.

    period: ticks of dt [s] until it is due; wished: those of the scene's own rate. least: patience at any
    rate [s]; periods: at least so many.
    """
    return max(periods * period, round(least / dt)), max(0, period - wished)


def hand_over(
    frames: SlowFrames, number: int, identity: int, patience: tuple[int, int] = (0, 0),
    live: tuple[float, ...] = UNSET,
) -> None:  # fmt: skip
    """Publish what is in the writer's slot of that loop, under this head."""
    control = frames.control[number]
    frames.head[number, int(writer_slot(control))] = identity, *patience, *live
    publish(control)


@inlined
def come_into_force(frames, j, slot, ticks):
    """A fresh frame of loop j, in that slot; telling no patience leaves it. ticks: the servo's TICKS."""
    head, one, taken = frames.head[j, slot], frames.in_force[j], frames.taken[j]
    one.frame, one.adopted_at, one.waited, one.stretch = head.id, ticks.done, 0, head.stretch
    if head.patience > 0:
        one.patience = head.patience
    taken[TAKEN_CALL] = ticks.calls - 1
    store_release(taken, TAKEN_ID, head.id)


@inlined
def take_frame(frames, j, ticks):
    """Slot of loop j's newest frame if it has not been in force yet, which it is now; else -1."""
    slot = -1
    if is_fresh(frames.control[j]):
        slot, _ = acquire(frames.control[j])
        come_into_force(frames, j, slot, ticks)
    return slot


@inlined
def waits(frames, j, now):
    """Whether the tick has to wait, as loop j's frame is overdue and no other has come; it is counted."""
    overdue = is_overdue(frames, j, now)
    frames.in_force[j].waited += 1 if overdue else 0
    return overdue


@inlined
def is_stale(port, most):
    """Whether the frame is older than `most` and the frames' stretch [ticks]."""
    return port.status[0].age > most + port.status[0].stretch


@inlined
def is_overdue(frames, j, now):
    """Whether loop j's frame is too old to go on with after so many ticks, and no other has come.

    The soft bodies answer the servo's forces a frame later. That loop loses its stability when a machine is
    so busy that frames come tenths of a second late; slow motion keeps it.
    """
    one = frames.in_force[j]
    aged = one.frame > 0 and one.patience > 0 and now - one.adopted_at >= one.patience
    return aged and not is_fresh(frames.control[j])


@inlined
def wait(port, age, flags):
    """End a tick that waits: its flags, and the frame's age [ticks], which goes on; returns the status."""
    port.status[0].flags = flags
    return end_tick(port, OK, age)
