"""Bodies of full order: how they yield in a slow step, which asks them from Python.

They answer the engine's stages (palpo.physics.contract.stages) as methods, on the engine's batches of points:

    BEGIN        begin                     the step begins
                 free_motion, take_fields  its motion without contact
    PLACE        places                    where contacts touch
    FREE, MOVED  displacement              how far the rows' points go in a motion
    DELASSUS     find_yields, add_yields,  how they yield
                 add_lines
    PUSH         push, answer              the change of motion by the rows' forces
    END          finish                    the step is made

A *motion* is what a body moves by: velocities of the nodes (n, 3) [m/s] of a soft one, (6,) of a rigid one;
a *force* has the same shape, [N] or [N, N m]. A *field* is a row of many points, as a cavity's volume or a
border's area: the force that its unit is on the body, which is also what it measures of a motion.

What a body of full order yields comes out of a sparse factor that is made in Python, made anew when its
elements have turned, and inverted only as far as the contacts reach. So the body is asked once a step for
all of its rows, from outside compiled code, and several bodies at the same time. Rows are those of contacts,
three each, then one a field; W comes in two parts, W of the contacts, and one line a field.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.boundary import GatherScratch, add_lower_delassus, add_rows, gather_scratch
from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.held_body import HeldBody
from palpo.physics.contact.lower_triangle import add_lower_products
from palpo.physics.contract.contacts import add_point
from palpo.physics.contract.stages import POINT, make_batch
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.kernels import kernel

Array = NDArray[np.float64]
Motion = Any
"""Velocities, or forces, in the shape that is a body's own."""


@kernel
def _take_points(contacts, member, body, batch):
    """The points of a body in the contacts of these numbers (m,), which are the row blocks."""
    batch.count[0] = 0
    for block in range(member.size):
        k = member[block]
        for side in range(2):
            if contacts.body[k, side] == body:
                add_point(
                    batch, POINT, contacts.slots[k, side], contacts.weights[k, side], contacts.arm[k, side],
                    block, contacts.frame[k], 1.0 - 2.0 * side,
                )  # fmt: skip


class BodyContacts:
    """A body's points in some of a step's contacts, up to `capacity` of them."""

    def __init__(self, capacity: int) -> None:
        self.batch = make_batch(capacity)
        self.handle = Handle(self.batch)
        self.blocks = 0

    def take(self, contacts: Handle, member: NDArray[np.int64], body: int) -> None:
        """Those of body number `body` in the contacts `member` (m,) of palpo.physics.contract.contacts."""
        _take_points(contacts, member, body, self.handle)
        self.blocks = len(member)

    @property
    def count(self) -> int:
        """How many the body has."""
        return int(self.batch.count[0])


class FullOrder(Protocol):
    """What a slow step asks of a body."""

    points: BodyContacts
    """In all contacts that were found."""
    fewer: BodyContacts
    """Room for those that are solved for, where they are fewer."""
    part: BodyContacts
    """In those that are solved for: either of these."""

    def begin(self, h: float) -> Motion | None:
        """Begin a step; None of a soft body, whose free motion takes a solve."""
        ...

    def free_motion(self, h: float) -> Motion:
        """The motion at the end of the step begun without contact and pressure."""
        ...

    def moving(self) -> Motion:
        """The motion with which a step begins."""
        ...

    def take_fields(self, forces: Sequence[Motion | None], free: Motion | None, h: float) -> Motion:
        """The step's f fields, and what the body yields to them; None if not its own.

        free: the free motion, which is given back; where it is None it is found with them, in one solve.
        """
        ...

    def places(self, slots: NDArray[np.int32], weights: Array, arm: Array) -> Array:
        """Where contacts touch it [m], shape (k, 3), as palpo.physics.contract.contacts.Contacts has them."""
        ...

    def displacement(self, points: BodyContacts, motion: Motion, h: float, out: Array) -> None:
        """out (3 m + f,) += h H v [m] of the points' rows and of all fields."""
        ...

    def find_yields(self, h: float) -> None:
        """What the next two add, for the part solved; two bodies may find theirs, and add it, at once."""
        ...

    def add_yields(self, w: Array, span: NDArray[np.int64]) -> None:
        """w (3 m, 3 m) += h^2 H A^-1 H^T [m/N], at least each span (b + 1,) of contacts, lower triangle."""
        ...

    def add_lines(self, lines: Array) -> None:
        """lines (f, 3 m + f) += how all rows yield to each field."""
        ...

    def push(self, x: Array) -> Motion:
        """H^T x of the part solved and all fields, x (3 m + f,)."""
        ...

    def answer(self, x: Array, h: float) -> Motion:
        """The change of motion h A^-1 H^T x."""
        ...

    def finish(self, motion: Motion, h: float) -> None:
        """End the step with that motion."""
        ...


class FullSoft:
    """A HeldBody; `capacity`: most contacts."""

    def __init__(self, body: HeldBody, capacity: int) -> None:
        self.body = body
        self.place = body.place_of
        self.points, self.fewer = BodyContacts(capacity), BodyContacts(capacity)
        self.part = self.points
        self._slots, self._weights = np.zeros((capacity, 3), np.int32), np.zeros((capacity, 3))
        self._scratch: GatherScratch = gather_scratch(max(1, body.last.size), capacity)
        self._compliance = np.zeros((0, 0))
        self._rows, self._fields = np.zeros(0, np.int64), np.zeros((0, body.x.size))
        self._ways: list[Array] = []
        self._answered = np.zeros(0)

    def begin(self, h: float) -> Motion | None:
        """See FullOrder."""
        self.body.begin(h)
        return None

    def free_motion(self, h: float) -> Motion:
        """See FullOrder."""
        return self.body.motions((), h)[0]

    def moving(self) -> Motion:
        """See FullOrder."""
        return self.body.moving()

    def take_fields(self, forces: Sequence[Motion | None], free: Motion | None, h: float) -> Motion:
        """See FullOrder."""
        own = [force for force in forces if force is not None]
        self._rows = np.array([row for row, force in enumerate(forces) if force is not None], np.int64)
        self._fields = np.array(own).reshape(len(own), self.body.x.size)
        if free is None:
            free, answers = self.body.motions(own, h)
        else:
            answers = self.body.responses(own, h)
        self._ways = [h * answer for answer in answers]
        return free

    def places(self, slots: NDArray[np.int32], weights: Array, arm: Array) -> Array:
        """See FullOrder."""
        return np.asarray(np.einsum("ij,ijc->ic", weights, self.body.x[slots]))

    def displacement(self, points: BodyContacts, motion: Motion, h: float, out: Array) -> None:
        """See FullOrder."""
        self._go(points, h * motion, out)

    def _go(self, points: BodyContacts, way: Array, out: Array) -> None:
        """out += H way, of displacements (n, 3) [m]."""
        p = points.batch
        add_rows(way, points.count, p.block, p.slots, p.weights, p.axes, out)
        if len(self._rows):
            out[3 * points.blocks + self._rows] += self._fields @ way.ravel()

    def find_yields(self, h: float) -> None:
        """See FullOrder."""
        least = _yielding(self.part.handle, self.place, self._slots, self._weights)
        last = self.body.last.size
        if self.body.large:
            self._compliance = self.body.compliance_at(self._used(), h)
            return
        needed = least < last
        self._compliance = self.body.compliance(last - least, h) if needed else np.zeros((0, 0))

    def _used(self) -> NDArray[np.int64]:
        """Places that the points need, ascending; they have the numbers among these from now on."""
        slots, held = self._slots[: self.part.count], self._weights[: self.part.count] != 0.0
        used = np.unique(slots[held])
        slots[held] = np.searchsorted(used, slots[held])
        return used.astype(np.int64)

    def add_yields(self, w: Array, span: NDArray[np.int64]) -> None:
        """See FullOrder; all of its contacts."""
        count, part = self.part.count, self.part.batch
        if self._compliance.size:
            skipped = np.int32(0 if self.body.large else self.body.last.size - len(self._compliance) // 3)
            slots = np.maximum(self._slots[:count] - skipped, 0)
            add_lower_delassus(
                self._compliance, count, part.block, slots, self._weights, part.axes, self._scratch, w
            )

    def add_lines(self, lines: Array) -> None:
        """See FullOrder."""
        for row, way in zip(self._rows, self._ways, strict=True):
            self._go(self.part, way, lines[row])

    def push(self, x: Array) -> Motion:
        """See FullOrder."""
        out = self._bearing(x)
        if len(self._rows):
            out += (x[3 * self.part.blocks + self._rows] @ self._fields).reshape(out.shape)
        return out

    def _bearing(self, x: Array) -> Motion:
        """H^T x of the contacts alone."""
        out = np.zeros_like(self.body.x)
        _add_forces(self.part.handle, x, out)
        return out

    def answer(self, x: Array, h: float) -> Motion:
        """See FullOrder; to fields it is known, and forces at the end of the factor pass by the rest."""
        self._answered = x
        out = self.body.respond(self._bearing(x), h)
        for force, way in zip(x[3 * self.part.blocks + self._rows], self._ways, strict=True):
            out += (force / h) * way
        return out

    def refine(self, motion: Motion, h: float) -> Motion | None:
        """What its motion lacks under the forces of the last `answer`; None if next to nothing."""
        return self.body.refine(motion, self.push(self._answered), h) if self.body.late else None

    def finish(self, motion: Motion, h: float) -> None:
        """See FullOrder."""
        self.body.finish(motion, h)


@kernel
def _yielding(batch, place, slots, weights):
    """slots, weights (c, 3): of the points, among the nodes that may yield. Returns the least place met.

    place (n,): of each node among them, -1 for one that never does. None met: how many places there are.
    """
    least = place.size
    for k in range(batch.count[0]):
        for j in range(3):
            at, weight = place[batch.slots[k, j]], batch.weights[k, j]
            slots[k, j], weights[k, j] = 0, 0.0
            if weight != 0.0 and at >= 0:
                slots[k, j], weights[k, j] = at, weight
                least = min(least, at)
    return least


@kernel
def _add_forces(batch, x, out):
    """out (n, 3) += H^T x [N] on the body's nodes."""
    for k in range(batch.count[0]):
        first = 3 * batch.block[k]
        for i in range(3):
            f = 0.0
            for a in range(3):
                f += batch.axes[k, a, i] * x[first + a]
            for j in range(3):
                out[batch.slots[k, j], i] += batch.weights[k, j] * f


class FullRigid:
    """A free rigid body: its points are arms beside its centre."""

    def __init__(self, body: RigidBody, capacity: int) -> None:
        self.body = body
        self.points, self.fewer = BodyContacts(capacity), BodyContacts(capacity)
        self.part = self.points
        self._fields = self._rows = np.zeros((0, 6))
        self.half, self._half_rows = np.zeros((0, 6)), np.zeros((6, 0))
        """Y (3 m + f, 6) of physics.contact.solvers.joined_blocks, of the part solved and all fields."""

    def begin(self, h: float) -> Motion | None:
        """See FullOrder."""
        self.body.linearise()
        self._factor = self.body.factor(h)
        return self.free_motion(h)

    def free_motion(self, h: float) -> Motion:
        """See FullOrder."""
        return self.body.free_velocity(self._factor, h)

    def moving(self) -> Motion:
        """See FullOrder."""
        return self.body.v

    def take_fields(self, forces: Sequence[Motion | None], free: Motion | None, h: float) -> Motion:
        """See FullOrder."""
        own = [np.zeros(6) if force is None else force for force in forces]
        self._fields = np.array(own).reshape(len(own), 6)
        return free

    def places(self, slots: NDArray[np.int32], weights: Array, arm: Array) -> Array:
        """See FullOrder."""
        return np.asarray(self.body.x[0] + arm)

    def _map(self, points: BodyContacts) -> Array:
        """H (3 m + f, 6) of the points' rows and the fields."""
        n = 3 * points.blocks
        out = np.zeros((n + len(self._fields), 6))
        _wrenches(points.handle, out)
        out[n:] = self._fields
        return out

    def displacement(self, points: BodyContacts, motion: Motion, h: float, out: Array) -> None:
        """See FullOrder."""
        out += self._map(points) @ (h * motion)

    def find_yields(self, h: float) -> None:
        """See FullOrder."""
        self._rows = self._map(self.part)
        half = self._factor.half_solve_many(np.ascontiguousarray(self._rows.T))
        self._half_rows = h * half
        self.half = np.ascontiguousarray(self._half_rows.T)

    def add_yields(self, w: Array, span: NDArray[np.int64]) -> None:
        """See FullOrder; no more than that."""
        add_lower_products(w, 3 * span, self._half_rows, 1.0)

    def add_lines(self, lines: Array) -> None:
        """See FullOrder."""
        if len(lines):
            lines += self.half[3 * self.part.blocks :] @ self.half.T

    def push(self, x: Array) -> Motion:
        """See FullOrder."""
        return self._rows.T @ x

    def answer(self, x: Array, h: float) -> Motion:
        """See FullOrder."""
        return self.body.correction_velocity(self._factor, h, self.push(x))

    def finish(self, motion: Motion, h: float) -> None:
        """See FullOrder."""
        self.body.advance(motion, h)


@kernel
def _wrenches(batch, out):
    """out (3 m, 6) = H of a rigid body: the rows' displacement by that of its centre and its turn, world."""
    for k in range(batch.count[0]):
        r0, r1, r2 = batch.arm[k, 0], batch.arm[k, 1], batch.arm[k, 2]
        for i in range(3):
            a0, a1, a2 = batch.axes[k, i, 0], batch.axes[k, i, 1], batch.axes[k, i, 2]
            line = out[3 * batch.block[k] + i]
            line[0], line[1], line[2] = a0, a1, a2
            line[3], line[4], line[5] = r1 * a2 - r2 * a1, r2 * a0 - r0 * a2, r0 * a1 - r1 * a0
