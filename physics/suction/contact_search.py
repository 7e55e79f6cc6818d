"""Which points of cups, partner and ground may touch in a step (000, 3.2.1): a detector of contacts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.compliance.full import Motion
from palpo.physics.contract.contacts import make_contacts
from palpo.physics.exchange.handle import Handle
from palpo.physics.gas.flood import Thresholds
from palpo.physics.gas.gaps import Gaps, farthest, fastest, look, look_at_moved, make_gaps
from palpo.physics.suction.contacts import Pair, add_bulges, add_ground, add_vertices
from palpo.physics.suction.folds import add_folds, look_at_folds
from palpo.physics.suction.sides import ContactSide, SoftSide, partner_of

Array = NDArray[np.float64]
Each = Callable[[Callable[[int], Any], int], list[Any]]
"""Calls a function with each of the first numbers, and gives back what it returns."""


@dataclass(frozen=True, eq=False)
class Ground:
    """An endless ground under the partner: its height [m], mu, and which vertices of it may touch it."""

    height: float
    mu: float
    vertices: NDArray[np.int64]


class ContactSearch:
    """Gaps of all surfaces, and the contacts that could be.

    each: how cups are looked at, perhaps side by side. gaps: of each cup's vertices from the partner, shared
    with who finds its cavities. Read after `find`: contacts, at most `capacity`, each with a lasting number,
    and their handle; local, each cup's vertices (n, 3) [m] in the partner's axes.
    """

    def __init__(
        self, cups: Sequence[SoftSide], partner: ContactSide, limits: Thresholds, ground: Ground | None,
        gaps: Sequence[Gaps], capacity: int, each: Each,
    ) -> None:  # fmt: skip
        self._cups, self._partner, self._limits, self._ground = cups, partner, limits, ground
        m = len(partner.local)
        self._gaps, self._partner_gaps = gaps, [make_gaps(m) for _ in cups]
        self._known = [tuple(map(Handle, known)) for known in zip(gaps, self._partner_gaps, strict=True)]
        self._target, self._targets = Handle(partner.target), [Handle(cup.target) for cup in cups]
        self._folds = [None if cup.folds is None else Handle(cup.folds) for cup in cups]
        self._start = np.cumsum([0, *(2 * len(cup.local) + m for cup in cups)])
        self._seen = [cup.local.copy() for cup in cups]
        self._way, self._alarm, self._own_alarm = np.zeros((3, len(cups)))
        self._each = each
        self.contacts = make_contacts(capacity)
        self.handle = Handle(self.contacts)
        self.local: list[Array] = []

    def find(self, mu: Array, free: Motion, h: float) -> None:
        """Bring gaps and contacts up to date with the bodies; mu (cups,).

        free: the partner's motion in the step of h [s] without contact. What may come together in the step is
        found, however far apart it is: else a body ends it behind what it should have hit.
        """
        partner, kept = self._partner, self._limits.contact
        partner.place_surface()
        partner.fit_target()
        origin, turn = partner.axes
        world, as_one = origin + partner.local @ turn.T, partner.as_one(free, h)
        # where the partner moves as one and a cup with it they come no nearer: what differs from that counts
        bulging = fastest(partner.onward(free, h), world, as_one)
        self.local = self._each(lambda i: self._look(i, as_one, bulging, h), len(self._cups))
        contacts, met = self.handle, partner_of(partner, len(self._cups), origin)
        self.contacts.count[0] = 0, 0
        for i, cup in enumerate(self._cups):
            gaps, other = self._known[i]
            pair = Pair(i, mu[i], self._alarm[i], kept, turn)
            add_vertices(
                gaps, pair, cup.local, cup.nodes, cup.place, met, partner.target.surface.triangles,
                self._start[i], contacts,
            )  # fmt: skip
            add_bulges(
                other, gaps, pair, world, cup.nodes, cup.place, met, cup.target.surface.triangles,
                self._start[i] + len(cup.local), contacts,
            )  # fmt: skip
            if self._folds[i] is not None:
                add_folds(
                    self._folds[i], pair._replace(alarm=self._own_alarm[i]), cup.nodes, cup.place,
                    cup.target.surface.triangles, self._start[i + 1] - len(cup.local), contacts,
                )  # fmt: skip
        if self._ground is not None:
            down = -float(partner.onward(free, h)[:, 1].min())
            alarm = max(self._limits.alarm, kept + h * down)
            add_ground(
                world, self._ground.vertices, met, self._ground.height, alarm, kept, self._ground.mu,
                self._start[-1], contacts,
            )  # fmt: skip

    def _look(self, i: int, as_one: Array, bulging: float, h: float) -> Array:
        """Gaps between cup i and its partner; where the cup is (n, 3) [m], in the partner's axes.

        as_one (3, 3): of the partner; bulging [m/s]: how fast its points move against that.
        """
        partner, cup, (gaps, other) = self._partner, self._cups[i], self._known[i]
        cup.place_surface()
        nearing = fastest(cup.onward(None, h), cup.local, as_one) + cup.urge(h) + bulging
        alarm = self._alarm[i] = max(self._limits.alarm, self._limits.contact + h * nearing)
        if self._folds[i] is not None:
            # two of its parts that come at each other
            closing = fastest(cup.onward(None, h), cup.local, cup.as_one(None, h))
            self._own_alarm[i] = max(self._limits.alarm, self._limits.contact + 2.0 * h * closing)
            look_at_folds(self._folds[i], cup.target.surface, cup.local, self._own_alarm[i])
        origin, turn = partner.axes
        x = np.ascontiguousarray((cup.local - origin) @ turn)
        look(self._target, partner.local, x, alarm, partner.odometer, gaps)
        self._way[i] += farthest(x, self._seen[i])
        self._seen[i] = x
        look_at_moved(self._targets[i], x, partner.local, alarm, self._way[i], other)
        return x
