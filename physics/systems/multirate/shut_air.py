"""The air between a cup and another soft body of a multi-rate scene, as the low loop finds it.

At the state that a frame is made about: the cavities between both surfaces and their volumes' gradients
(palpo.physics.suction.enclosure), which become fields of the two bodies, and their air. What the servo has
made of that air is read with its state, a low period earlier; the frame tells only what has happened to a
cavity since, so that no air is lost or made by the delay.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.collision.nearest import fit, target
from palpo.physics.exchange.constraint_frame import CAVITIES, ConstraintFrame
from palpo.physics.suction.enclosure import Enclosure
from palpo.physics.suction.gaps import choose_points, measure
from palpo.physics.suction.gas import OutsideAir
from palpo.physics.suction.labels import Thresholds
from palpo.physics.systems.multirate.member import Member

Floats = NDArray[np.float64]


class MemberSide:
    """The surface of a member, as palpo.physics.suction.enclosure wants it; in world axes."""

    def __init__(self, member: Member) -> None:
        assert isinstance(member.body, SoftBody)
        self.member, self.body = member, member.body
        whole = self.body.mesh.surface(self.body.name)
        self.surface = whole.compact()
        self.nodes = whole.used_vertices
        self.local = np.ascontiguousarray(self.body.x[self.nodes])
        self.odometer = 0.0
        self.target = target(self.surface)

    def place_surface(self) -> None:
        """Bring `local` and the target up to date with the body."""
        before = self.local
        self.local = np.ascontiguousarray(self.body.x[self.nodes])
        self.odometer += float(np.sqrt(((self.local - before) ** 2).sum(axis=1).max()))
        fit(self.target.boxes, self.local)


class ShutAir:
    """Up to `most` cavities at once between two members, whose first 2 * most fields are theirs.

    limits, roughness [m]: see palpo.physics.suction.enclosure.Enclosure. button: mask of the hand's button
    that opens all cavities while it is down; valve (k, 2): the scene's ticks from and up to which they are
    open. Read after `find`: identity, number
    of the field, amount [mol] and share (k,), see ConstraintFrame.
    """

    def __init__(
        self, cup: Member, partner: Member, limits: Thresholds, roughness: float,
        air: OutsideAir, most: int, button: int = 0, valve: ArrayLike = (),
    ) -> None:  # fmt: skip
        self.button, self.valve = button, valve
        self.sides = MemberSide(cup), MemberSide(partner)
        self.limits, self.air, self.most = limits, air, most
        self.enclosure = Enclosure(*self.sides, limits, roughness, max(2, most))
        self.identity, self.field = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self.amount, self.share = np.zeros(0), np.zeros(0)
        self.lost = 0
        """Cavities that found no room so far."""
        self._started = False

    def hear(self, identity: NDArray[np.int64], amount: Floats, volume: Floats) -> None:
        """What the servo's cavities hold: n [mol] and V [m3], each (k,)."""
        tracks = self.enclosure.tracks
        for i in self.enclosure.active.tolist():
            for k in np.flatnonzero(identity == tracks.identity[i]).tolist():
                tracks.air[i], tracks.volume[i] = amount[k], max(float(volume[k]), 0.0)

    def find(self) -> None:
        """The cavities at the bodies' present state; the members' fields are those of them."""
        enclosure, (cup, partner) = self.enclosure, self.sides
        held = {int(enclosure.tracks.identity[i]): float(enclosure.tracks.air[i]) for i in enclosure.active}
        for side in self.sides:
            side.place_surface()
        gaps, x = enclosure.gaps, cup.local
        near = choose_points(x, self.limits.alarm, partner.odometer, gaps)
        measure(partner.target, partner.local, x, gaps.asked[:near], partner.odometer, gaps)
        enclosure.find(x, self.air)
        if not self._started:
            enclosure.require_start(x)
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
        for side, gradient in zip(self.sides, (enclosure.gradient, enclosure.partner_gradient), strict=True):
            side.body.wall[gone] = 0.0
            side.body.volume[:] = 0.0
            for k, i in zip(self.field, active, strict=True):
                side.body.wall[k, side.nodes] = gradient[i]
        cup.body.volume[self.field] = enclosure.volume[active]

    def _fields(self, identity: NDArray[np.int64]) -> NDArray[np.int64]:
        """A field for each: its own of before, or one that none had then and cannot be taken for its."""
        own = dict(zip(self.identity.tolist(), self.field.tolist(), strict=True))
        free = [k for k in range(2 * self.most) if k not in own.values()]
        return np.array([own[i] if i in own else free.pop(0) for i in identity.tolist()], np.int64)

    def write(self, frame: ConstraintFrame, f: int) -> None:
        """The list of cavities of slot f."""
        n = min(len(self.identity), CAVITIES)
        frame.head["n_cavities"][f] = n
        frame.cavity_identity[f, :n], frame.cavity_amount[f, :n] = self.identity[:n], self.amount[:n]
        frame.cavity_share[f, :n] = self.share[:n]
        for side, member in enumerate((self.sides[0].member, self.sides[1].member)):
            frame.cavity_points[f, :n, side] = member.first + self.sides[side].body.nodes + self.field[:n]


def points_of(members: Sequence[Member]) -> NDArray[np.int32]:
    """Global numbers of all fields of those members."""
    numbers = [m.first + np.arange(len(m.body.x), m.count) for m in members]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *numbers])).astype(np.int32)
