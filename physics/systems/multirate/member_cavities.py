"""The air between a cup and another soft body of a multi-rate scene, as the low loop finds it.

At the state that a frame is made about: the cavities between both surfaces and their volumes' gradients
(palpo.physics.gas.enclosure), which become fields of the two bodies, and their air. What the servo has
made of that air is read with its state, a low period earlier; the frame tells only what has happened to a
cavity since, so that no air is lost or made by the delay.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.exchange.constraint_frame import CAVITIES, ConstraintFrame
from palpo.physics.gas.enclosure import Enclosure
from palpo.physics.gas.labels import Thresholds
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.wall import SoftWall
from palpo.physics.systems.multirate.member import Member


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
