"""Which points of cups, partner and ground may touch in a step (000, 3.2.1): a detector of contacts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.engine.contacts import make_contacts
from palpo.physics.exchange.handle import Handle
from palpo.physics.suction.contacts import Pair, add_bulges, add_ground, add_vertices
from palpo.physics.suction.gaps import Gaps, choose_points, make_gaps, measure, move_target
from palpo.physics.suction.labels import Thresholds
from palpo.physics.suction.sides import Side, SoftSide, partner_of
from palpo.physics.yields.full import Motion

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ground:
    """An endless ground under the partner: its height [m], mu, and which vertices of it may touch it."""

    height: float
    mu: float
    vertices: NDArray[np.int64]


class ContactSearch:
    """Gaps of all surfaces, and the contacts that could be.

    gaps: of each cup's vertices from the partner, shared with who finds its cavities. Read after `find`:
    contacts, at most `capacity`, each with a lasting number, and their handle; local, each cup's vertices
    (n, 3) [m] in the partner's axes.
    """

    def __init__(
        self, cups: Sequence[SoftSide], partner: Side, limits: Thresholds, ground: Ground | None,
        gaps: Sequence[Gaps], capacity: int,
    ) -> None:  # fmt: skip
        self._cups, self._partner, self._limits, self._ground = cups, partner, limits, ground
        m = len(partner.local)
        self._gaps, self._partner_gaps = gaps, [make_gaps(m) for _ in cups]
        self._start = np.cumsum([0, *(len(cup.local) + m for cup in cups)])
        self._seen = [cup.local.copy() for cup in cups]
        self._way = [0.0 for _ in cups]
        self.contacts = make_contacts(capacity)
        self.handle = Handle(self.contacts)
        self.local: list[Array] = []

    def find(self, mu: Array, free: Motion, h: float) -> None:
        """Bring gaps and contacts up to date with the bodies; mu (cups,).

        free: the partner's motion in the step of h [s] without contact. What may come together in the step is
        found, however far apart it is: else a body ends it behind what it should have hit.
        """
        partner, kept = self._partner, self._limits.contact
        for side in (*self._cups, partner):
            side.place_surface()
        origin, turn = partner.axes
        self.local, world = [], origin + partner.local @ turn.T
        contacts, met = self.handle, partner_of(partner, len(self._cups), origin)
        self.contacts.count[0] = 0, 0
        for i, cup in enumerate(self._cups):
            alarm = max(self._limits.alarm, kept + h * _nearing(cup, partner, free, h))
            x = np.ascontiguousarray((cup.local - origin) @ turn)
            self.local.append(x)
            gaps, other = self._gaps[i], self._partner_gaps[i]
            near = choose_points(x, alarm, partner.odometer, gaps)
            measure(partner.target, partner.local, x, gaps.asked[:near], partner.odometer, gaps)
            self._ask_partner(i, x, other, alarm)
            pair = Pair(i, mu[i], alarm, kept, turn)
            add_vertices(
                gaps, pair, cup.local, cup.nodes, cup.place, met, partner.target.surface.triangles,
                self._start[i], contacts,
            )  # fmt: skip
            add_bulges(
                other, gaps, pair, world, cup.nodes, cup.place, met, cup.target.surface.triangles,
                self._start[i] + len(x), contacts,
            )  # fmt: skip
        if self._ground is not None:
            down = -float(partner.onward(free, h)[:, 1].min())
            alarm = max(self._limits.alarm, kept + h * down)
            add_ground(
                world, self._ground.vertices, met, self._ground.height, alarm, kept, self._ground.mu,
                self._start[-1], contacts,
            )  # fmt: skip

    def _ask_partner(self, i: int, x: Array, gaps: Gaps, alarm: float) -> None:
        """Gaps of the partner's vertices from cup i at x, both in the partner's axes."""
        partner, cup = self._partner, self._cups[i]
        self._way[i] += float(np.sqrt(((x - self._seen[i]) ** 2).sum(axis=1).max()))
        self._seen[i] = x
        near = choose_points(partner.local, alarm, self._way[i], gaps)
        if near:
            move_target(cup.target, x)
            measure(cup.target, x, partner.local, gaps.asked[:near], self._way[i], gaps)


def _nearing(cup: SoftSide, partner: Side, free: Motion, h: float) -> float:
    """How fast [m/s] points of both surfaces may come nearer each other; free: of the partner.

    Where the partner moves as one and the cup with it they do not: only what differs from that counts.
    """
    origin, turn = partner.axes
    bulging = partner.onward(free, h) - partner.carried(origin + partner.local @ turn.T, free, h)
    own = cup.onward(None, h) - partner.carried(cup.local, free, h)
    return _fastest(own) + cup.urge(h) + _fastest(bulging)


def _fastest(velocities: Array) -> float:
    return float(np.sqrt((velocities**2).sum(axis=1).max()))
