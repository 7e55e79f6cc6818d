"""The air between a cup and another soft body of a multi-rate scene, as the low loop finds it.

At the state that a frame is made about: the cavities between both surfaces and their volumes' gradients
(palpo.physics.gas.enclosure), which become fields of the two bodies, and their air. What the servo has
made of that air is read with its state, a low period earlier; the frame tells only what has happened to a
cavity since, so that no air is lost or made by the delay.

The cavities of a multi-rate scene at the servo, from the frames of the low loop that finds them.

A frame names each cavity, its two walls and its air. One that the servo knows already keeps the air that the
servo has: what the low loop has seen of it since, air that an opening let in, comes as a share.

Between two frames a seal is as the frame has it, but for what the servo sees by itself: while less than half
as many of the walls' contacts are close enough to seal as there were when the frame came, the cavities are
open. So they are while a valve is open, by the hand's button or at times that the scene gives. The pressure
of an open cavity is the atmosphere's, whatever its volume does.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.contract.contacts import FIND, KEEP, detector
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.cavities import Cavities, make_cavities, take_cavities
from palpo.physics.exchange.buffer import make_control, reader_slot
from palpo.physics.exchange.constraint_frame import CAVITIES, Capacity, ConstraintFrame, make_frame
from palpo.physics.gas.enclosure import Enclosure
from palpo.physics.gas.flood import Thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.wall_regions import SoftWall
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.systems.multirate.member import Member


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


class MemberCavities:
    """Up to `most` cavities at once between two members, whose first 2 * most fields are theirs.

    limits, roughness [m]: see palpo.physics.gas.enclosure.Enclosure. button: mask of the hand's button
    that opens all cavities while it is down; valve (k, 2): the scene's ticks from and up to which they are
    open. Read after `find`: identity, number of the field, amount [mol] and share (k,), see CavityFrame.
    """

    def __init__(
        self, cup: Member, partner: Member, limits: Thresholds, roughness: float,
        air: OutsideAir, most: int, button: int = 0, valve: ArrayLike = (),
    ) -> None:  # fmt: skip
        self.button, self.valve = button, valve
        self.members = cup, partner
        self.walls = _wall_of(cup), _wall_of(partner)
        self.limits, self.air, self.most = limits, air, most
        self.enclosure = Enclosure(*self.walls, limits, roughness, max(2, most))
        self.identity, self.field = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.amount, self.share = np.zeros(0), np.zeros(0)
        self.lost = 0
        """Cavities that found no room so far."""
        self._started = False

    def find(self) -> None:
        """The cavities at the bodies' present state; the members' fields are those of them."""
        enclosure, (cup, partner) = self.enclosure, self.walls
        held = {int(enclosure.tracks.identity[i]): float(enclosure.tracks.air[i]) for i in enclosure.active}
        for wall in self.walls:
            wall.place_surface()
        partner.fit_target()
        enclosure.look(cup.local)
        enclosure.find(cup.local, self.air)
        if not self._started:
            enclosure.require_start(cup.local)
            self._started = True
        tracks, active = enclosure.tracks, enclosure.active
        self.lost += max(0, len(active) - self.most)
        active = active[np.argsort(-enclosure.volume[active], kind="stable")][: self.most]
        identity = tracks.identity[active].copy()
        before, self.field = self.field, self._fields(identity)
        self.identity, self.amount = identity, tracks.air[active].copy()
        had = np.array([held.get(int(i), 0.0) for i in identity])
        self.share = np.where(had > 0.0, self.amount / np.where(had > 0.0, had, 1.0), 1.0)
        # ticks of the last frame are made again on the next one: what pushed a wall then still has it to push
        gone = np.setdiff1d(np.arange(2 * self.most), np.concatenate([before, self.field]))
        for wall, gradient in zip(self.walls, (enclosure.gradient, enclosure.partner_gradient), strict=True):
            wall.body.wall[gone] = 0.0
            wall.body.volume[:] = 0.0
            for k, i in zip(self.field, active, strict=True):
                wall.body.wall[k, wall.nodes] = gradient[i]
        cup.body.volume[self.field] = enclosure.volume[active]

    def _fields(self, identity: NDArray[np.int64]) -> NDArray[np.int64]:
        """A field for each: its own of before, or one that none had then and cannot be taken for its."""
        own = dict(zip(self.identity.tolist(), self.field.tolist(), strict=True))
        free = [k for k in range(2 * self.most) if k not in own.values()]
        return np.array([own[i] if i in own else free.pop(0) for i in identity.tolist()], np.int64)

    def write(self, frame: ConstraintFrame, f: int) -> None:
        """The list of cavities of slot f."""
        n, out = min(len(self.identity), CAVITIES), frame.cavities
        out.count[f], out.identity[f, :n], out.pressure[f, :n] = n, self.identity[:n], self.air.atmosphere
        out.amount[f, :n], out.share[f, :n] = self.amount[:n], self.share[:n]
        for side, (member, wall) in enumerate(zip(self.members, self.walls, strict=True)):
            out.fields[f, :n, side] = member.first + wall.body.nodes + self.field[:n]


def _wall_of(member: Member) -> SoftWall:
    assert isinstance(member.body, SoftBody)
    return SoftWall(member.body)


def points_of(members: Sequence[Member]) -> NDArray[np.int32]:
    """Global numbers of all fields of those members."""
    numbers = [m.first + np.arange(len(m.body.x), m.count) for m in members]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *numbers])).astype(np.int32)
