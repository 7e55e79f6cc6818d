"""The cavities of a multi-rate scene at the servo, from the frames of the low loop that finds them.

A frame names each cavity, its two walls and its air. One that the servo knows already keeps the air that the
servo has: what the low loop has seen of it since, air that an opening let in, comes as a share.

Between two frames a seal is as the frame has it, but for what the servo sees by itself: while less than half
as many of the walls' contacts are close enough to seal as there were when the frame came, the cavities are
open. So they are while a valve is open, by the hand's button or at times that the scene gives. The pressure
of an open cavity is the atmosphere's, whatever its volume does.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.contract.contacts import FIND, KEEP, detector
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.cavities import Cavities, make_cavities, take_cavities
from palpo.physics.exchange.buffer import make_control, reader_slot
from palpo.physics.exchange.constraint_frame import Capacity, ConstraintFrame, make_frame
from palpo.physics.numerics.kernels import inlined, kernel


class Valve(NamedTuple):
    """What opens all cavities to the atmosphere."""

    buttons: NDArray[np.int64]  # (1,) of the hand, a bit mask
    mask: NDArray[np.int64]  # (1,) of the button that does
    open: NDArray[np.int64]  # (k, 2) and the scene's ticks at which it does: first, and past the last


def make_valve(buttons: NDArray[np.int64] | None = None, mask: int = 0, ticks: ArrayLike = ()) -> Valve:
    """Without anything, one that stays shut."""
    pressed = np.zeros(1, np.int64) if buttons is None else buttons
    return Valve(pressed, np.array([mask], np.int64), np.array(ticks, np.int64).reshape(-1, 2))


class FrameCavities(NamedTuple):
    """A detector's state: the frames, and the engine's list."""

    frame: ConstraintFrame
    control: NDArray[np.int64]
    cavities: Cavities
    valve: Valve
    now: NDArray[np.int64]  # (1,) ticks done
    body: NDArray[np.int64]  # (2,) of the engine, that has the fields, and its first point's global number
    span: NDArray[np.int64]  # (2, 2) the walls' points in that body, first and past the last
    gap: NDArray[np.float64]  # (1,) [m] of a contact up to which it seals
    sealed: NDArray[np.int64]  # (1,) contacts that did when the frame had come, -1 until they are counted
    torn: NDArray[np.bool_]  # (1,) whether too few of them did after the last step
    seen: NDArray[np.int64]  # (1,) id of the frame that the list is of


def make_frame_cavities(
    frame: ConstraintFrame, control: NDArray[np.int64], cavities: Cavities, body: int, first: int,
    walls: tuple[slice, slice], gap: float = 0.0, valve: Valve | None = None,
) -> FrameCavities:  # fmt: skip
    """No frame has come yet; walls: the global numbers of the points of both; gap [m]: as in the state."""
    span = np.array([[wall.start, wall.stop] for wall in walls], np.int64) - first
    return FrameCavities(
        frame, control, cavities, valve or make_valve(), np.zeros(1, np.int64),
        np.array([body, first], np.int64), span, np.array([gap]), np.full(1, -1, np.int64),
        np.zeros(1, np.bool_), np.zeros(1, np.int64),
    )  # fmt: skip


@inlined
def _on(s, contacts, k, side, wall):
    """Whether a side of contact k is on that wall."""
    point = contacts.slots[k, side, 0]
    return contacts.body[k, side] == s.body[0] and s.span[wall, 0] <= point < s.span[wall, 1]


@kernel
def seals(s, contacts):
    """Whether half as many contacts between the walls are close as when the frame came."""
    close = 0
    for k in range(contacts.count[0].found):
        for first in range(2):
            if _on(s, contacts, k, first, 0) and _on(s, contacts, k, 1 - first, 1):
                close += contacts.gap[k] <= s.gap[0]
    if s.sealed[0] < 0:
        s.sealed[0] = close
    return 2 * close >= s.sealed[0]


@kernel
def valve_is_open(valve, tick):
    """Whether the button is down, or it is one of the ticks."""
    is_open = valve.buttons[0] & valve.mask[0] != 0
    for k in range(valve.open.shape[0]):
        is_open = is_open or valve.open[k, 0] <= tick < valve.open[k, 1]
    return is_open


@kernel
def open_or_shut(s):
    """All cavities are open, at the atmosphere's pressure, or all are shut with the air that they have."""
    cavities, is_open = s.cavities, s.torn[0] or valve_is_open(s.valve, s.now[0])
    for k in range(cavities.count[0]):
        cavities.active[k] = is_open
        if is_open:
            cavities.pressure[k] = cavities.air[0]


def _smallest() -> FrameCavities:
    capacity = Capacity(slots=1, near=1, modes=1, pairs=1, contacts=1, points=1, bodies=1, all_bodies=1)
    return make_frame_cavities(
        make_frame(capacity), make_control(), make_cavities(1), 0, 0, (slice(0, 1), slice(1, 2))
    )


@detector(_smallest())
def cavity_detector(stage, s, contacts, h):
    """No contacts; the cavities of a frame when it has been adopted."""
    if stage == FIND:
        f = reader_slot(s.control)
        if s.frame.head[f].id != s.seen[0]:
            s.seen[0] = s.frame.head[f].id
            take_cavities(s.frame.cavities, f, s.cavities, s.body[0], s.body[1])
            s.sealed[0], s.torn[0] = -1, False
        open_or_shut(s)
    elif stage == KEEP:
        s.now[0] += 1
        s.torn[0] = s.cavities.count[0] > 0 and not seals(s, contacts)
    return DONE
