"""The rows of a step of suction cups: contacts, cavities and borders, and how they yield (000, 3.3.3).

Contacts are the engine's (palpo.physics.contract.contacts and memory), three rows each. *Fields* follow, rows
of many points: the volumes of the cavities, then the areas of the borders under suction, springs that are
eliminated before the rest is solved (palpo.physics.suction.border_springs). With x the forces [N], gauge
pressures [Pa] and pulls of the springs,

    u = b + W x,    b = g + h H v_free,    W = sum_b h^2 H_b A_b^-1 H_b^T

and each body supplies its part of both (palpo.physics.compliance.full). W is made of the contacts that are
*solved* for alone.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.compliance.full import Motion
from palpo.physics.contact.lower_triangle import clear_lower, fill_upper
from palpo.physics.contact.solvers.joined_blocks import JoinedBlocks, pack, places_of, whole
from palpo.physics.contract.memory import make_memory
from palpo.physics.exchange.handle import Handle
from palpo.physics.suction.border_springs import BorderSprings, joined_blocks
from palpo.physics.suction.cavity_rows import Field
from palpo.physics.suction.contact_search import ContactSearch, Each
from palpo.physics.suction.contacts import (
    add_pressing,
    carry_on,
    forces_in_frames,
    keep_forces,
    recall_all,
    remember_all,
)
from palpo.physics.suction.sides import ContactSide, SoftSide

UPRIGHT = np.array([1.0, 0.0, 0.0, 0.0])
"""The axes in which contacts are remembered: the world's."""

PARTING = 0.05
"""How fast [m/s] bodies that overlap come apart. Undone in one step, an overlap of a long step would become
a speed of it over h in a short one, at the expense of nothing: this one lifts a body by 0.13 mm."""

Array = NDArray[np.float64]


class StepRows:
    """Rows of up to `capacity` contacts and `cavities` of cups and, the last of the sides, their partner.

    search: whose contacts they are. each: how sides are asked.

    Read after `assemble`: solved (m,), numbers of the contacts solved for; w (3 m + k, 3 m + k) and b of
    these and of the cavities, and blocks, where w is whole only within each of them. After `set`: springs,
    fields (f,), the count n of contacts, and b_all (3 n + f,), b of all of these.
    """

    def __init__(
        self, sides: Sequence[ContactSide], search: ContactSearch, capacity: int, cavities: int, each: Each
    ) -> None:
        self._sides, self._cups, self._partner = sides, sides[:-1], sides[-1]
        self._contacts, self._found, self._each = search.contacts, search.handle, each
        self._memory = Handle(make_memory(capacity))
        self._every, self.inside = np.arange(capacity), np.zeros(capacity, np.bool_)
        self._room = np.zeros((3 * capacity + cavities) ** 2)
        self._single = np.empty(0, np.float32)
        self.fields: list[Field] = []
        self.springs = BorderSprings((), np.zeros(0))
        self.count = 0
        self.solved, self.b_all = self._every[:0], np.zeros(0)
        self.w, self.b = np.zeros((0, 0)), np.zeros(0)
        self.blocks: JoinedBlocks | None = None

    def set(
        self,
        walls: Sequence[Field],
        volume: Array,
        springs: BorderSprings,
        free: Sequence[Motion | None],
        h: float,
    ) -> list[Motion]:
        """The rows of all contacts and fields, and what the free motion of the sides makes of them.

        walls, volume (k,): of the cavities, [m3] at the step's start. Returns the free motions, with those
        that were None found.
        """
        self.count = n = int(self._contacts.count["found"][0])
        k = len(walls)
        self.springs, self.fields = springs, [*walls, *springs.fields]

        out = np.zeros(3 * n + len(self.fields))

        def take(i: int) -> Motion:
            side, cup = self._sides[i], i < len(self._cups)
            side.points.take(self._found, self._every[:n], i)
            shares = [(f.own if f.cup == i else None) if cup else f.other for f in self.fields]
            motion = side.take_fields(shares, free[i], h)
            if cup:
                # in rows that no other cup has
                side.displacement(side.points, motion, h, out)
            return motion

        motions = self._each(take, len(self._sides))
        self._partner.displacement(self._partner.points, motions[-1], h, out)
        recall_all(self._memory, self._found, UPRIGHT, h)
        carry_on(self._memory, self._found)
        out[: 3 * n : 3] += np.maximum(self._contacts.gap[:n], -PARTING * h)
        out[3 * n : 3 * n + k] += volume
        self.b_all = out
        return motions

    def choose(self, near: float, close: float, h: float) -> None:
        """Solve for the contacts that carried a force, and for those that are likely to.

        They are those that free motion brings nearer than `near` [m] and that are within `close` [m] of
        contact, or would be within two steps of h [s] at the present velocities: what presses a body alone
        brings far more of it nearer than what holds it lets come.
        """
        n = self.count
        gap, held = self._contacts.gap[:n], self._contacts.force[:n].any(axis=1)
        onward = self.moved_all([side.moving() for side in self._sides], h)[: 3 * n : 3]
        likely = (self.b_all[: 3 * n : 3] < near) & (gap + np.minimum(0.0, 2.0 * onward) < close)
        self.inside[:n] = held | likely

    def admit(self, motions: Sequence[Motion], h: float, depth: float) -> bool:
        """Solve for those, too, that motions under the forces found close by more than `depth` [m].

        Whether there are some.
        """
        inside, n = self.inside[: self.count], 3 * self.count
        if inside.all():
            return False
        end = self.b_all[:n:3] + self.moved_all(motions, h)[:n:3]
        lacking = ~inside & (end < -depth)
        inside |= lacking
        return bool(lacking.any())

    def moved_all(self, motions: Sequence[Motion], h: float) -> Array:
        """h H v (3 n + f,): what motions of the sides do to all contacts and fields."""
        out = np.zeros(3 * self.count + len(self.fields))
        for side, motion in zip(self._sides, motions, strict=True):
            side.displacement(side.points, motion, h, out)
        return out

    def moved(self, motion: Motion, number: int, h: float) -> Array:
        """h H v (3 m + f,): what a motion of that side does to the contacts solved for and to all fields."""
        out = np.zeros(3 * len(self.solved) + len(self.fields))
        side = self._sides[number]
        side.displacement(side.part, motion, h, out)
        return out

    def assemble(self, h: float) -> None:
        """W and b of the contacts inside and of the cavities, in memory that the next ones share."""
        found, f = self.count, len(self.fields)
        k = f - len(self.springs.fields)
        self.solved = np.flatnonzero(self.inside[:found])
        n, span = 3 * len(self.solved), self.spans()
        size, blocks = n + k, len(span) - 1
        w = self._room[: size * size].reshape(size, size)
        b = np.concatenate(
            [self.b_all[: 3 * found].reshape(-1, 3)[self.solved].ravel(), self.b_all[3 * found :]]
        )
        lines = np.zeros((f, n + f))
        if blocks == 1:
            clear_lower(w, 3 * span)

        def own(i: int) -> None:
            """What a cup adds, to rows that no other has; a block of its own is cleared before."""
            if blocks > 1:
                clear_lower(w, 3 * span[i : i + 2])
            side = self._sides[i]
            side.part = side.points
            if len(self.solved) < found:
                side.part = side.fewer
                side.part.take(self._found, self.solved, i)
            side.find_yields(h)
            if i < len(self._cups):
                side.add_yields(w, span)
                side.add_lines(lines)

        self._each(own, len(self._sides))
        alone = lines[k:, :n].copy()
        self._partner.add_lines(lines)
        # the last bits of a product depend on its order
        lines[:, n:] = 0.5 * (lines[:, n:] + lines[:, n:].T)
        w[n:], w[:n, n:] = lines[:k, :size], lines[:k, :n].T
        self.w, self.b = w, b[:size]
        self.springs.take_out(w, self.b, lines[k:], b[size:], n)

        def mutual(i: int) -> None:
            """What a block has by the partner and by springs."""
            part = span[i : i + 2]
            self._partner.add_yields(w, part)
            self.springs.take_out_of(w, 3 * part)
            fill_upper(w, 3 * part)
            if blocks > 1:
                pack(w, part, single[place[i] : place[i + 1]])

        place = places_of(span)
        single = self._packed(int(place[-1]) if blocks > 1 else 0)
        self._each(mutual, blocks)
        self.blocks = None
        if blocks > 1 and n:
            self.blocks = joined_blocks(span, self._partner, self.springs, alone, single)

    def _packed(self, size: int) -> NDArray[np.float32]:
        """Room for so many entries of blocks in single precision, which the next ones share."""
        if size > self._single.size:
            self._single = np.empty(size, np.float32)
        return self._single[:size]

    def spans(self) -> NDArray[np.int64]:
        """Where the contacts of each cup begin, and of the ground: blocks that only a partner's motions join.

        A soft partner joins them in more than six ways: then all contacts are one block.
        """
        if len(self._cups) == 1 or isinstance(self._partner, SoftSide):
            return np.array([0, len(self.solved)])
        first = self._contacts.body[self.solved, 0]
        return np.searchsorted(first, np.arange(len(self._cups) + 2)).astype(np.int64)

    def whole(self) -> tuple[Array, Array]:
        """W, also between blocks, and b."""
        return (self.w if self.blocks is None else whole(self.w, self.blocks)), self.b

    def remembered(self) -> Array:
        """Forces (3 m,) [N] to start from on the contacts solved for, 0 on those that are new.

        Those of the step's last solution; before there is one what the last steps lead to.
        """
        r = np.zeros(3 * len(self.solved))
        forces_in_frames(self._found, self.solved, r)
        return r

    def keep(self, r: Array) -> None:
        """The forces (3 m,) [N] of a solution."""
        keep_forces(self._found, self.solved, r)

    def remember(self, u: Array) -> None:
        """The step ends with these gaps and slips (3 m,) [m]."""
        remember_all(self._memory, self._found, self.solved, u, UPRIGHT)

    def push(self, x: Array, h: float) -> list[Motion]:
        """The motions of the sides by a solution x (3 m + k,) [N], [Pa]."""
        pushed = np.concatenate([x, self.springs.forces(x)])
        return self._each(lambda i: self._sides[i].answer(pushed, h), len(self._sides))

    def refine(self, free: list[Motion], motions: Sequence[Motion], h: float) -> bool:
        """Add to free motions, and to what they make of the rows, what they and `push` lack together.

        Of bodies whose factor is too old; whether there are some.
        """
        found = False
        for i, side in enumerate(self._sides):
            missing = side.refine(free[i] + motions[i], h) if isinstance(side, SoftSide) else None
            if missing is not None:
                free[i] = free[i] + missing
                side.displacement(side.points, missing, h, self.b_all)
                found = True
        return found

    def pressing(self, r: Array, cup: int) -> Array:
        """How hard each node of a cup presses on the partner (n,) [N] under forces r (3 m,) [N]."""
        side = self._cups[cup]
        assert isinstance(side, SoftSide)
        out = np.zeros(len(side.body.x))
        add_pressing(self._found, self.solved, r, cup, len(self._cups), out)
        return out

    def places(self) -> Array:
        """Where the contacts solved for touch the partner [m], or a cup itself, shape (m, 3)."""
        c, k, itself = self._contacts, self.solved, self.with_itself()
        out = np.zeros((len(k), 3))
        for number in np.unique(np.append(c.body[k[itself], 0], len(self._cups))):
            member = itself & (c.body[k, 0] == number) if number < len(self._cups) else ~itself
            at = k[member]
            side = (c.body[at, 1] == number).astype(np.int64)
            out[member] = self._sides[number].places(c.slots[at, side], c.weights[at, side], c.arm[at, side])
        return out

    def with_itself(self) -> NDArray[np.bool_]:
        """Which of the contacts solved for (m,) are those of a cup with itself."""
        body = self._contacts.body[self.solved]
        return np.asarray(body[:, 0] == body[:, 1])
