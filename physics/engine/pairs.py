"""The detector of contacts among candidate pairs that a low loop names, for bodies of any kinds.

All points of a scene have one numbering here (palpo.physics.collision.topology); each belongs to a body of
the engine, whose unit places those that are looked at. A pair of bodies of two low loops, of which one's
frame lacks a point, waits until that has it. With a frame whose geometry is FROZEN, its own
contacts are taken instead, with their gaps at the present places.

A contact is looked for as far as the bodies may come in a step at the speeds that they have; where the forces
found move them faster, once more and farther.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.proximity import find_contacts, group_pairs
from palpo.physics.collision.proximity_contacts import (
    PAIR_POINTS,
    POINT_TRIANGLE,
    Pairs,
    ProximityWork,
    make_proximity_work,
    pair_point,
    second_body,
)
from palpo.physics.collision.surface_feel import SlidingSurfaces, make_surfaces, surface_at
from palpo.physics.collision.topology import TOOL, Topology, kept_gap
from palpo.physics.contract.contacts import (
    AGAIN,
    FIND,
    KEEP,
    MISSED,
    Contacts,
    append,
    begin,
    detector,
    make_contacts,
)
from palpo.physics.contract.stages import (
    DONE,
    NOT_FINITE,
    NOT_OFFERED,
    PLACE,
    POINT,
    Batch,
    Problem,
    address_of,
    call_unit,
    make_batch,
    make_problem,
)
from palpo.physics.exchange.buffer import reader_slot
from palpo.physics.exchange.constraint_frame import (
    FROZEN,
    Capacity,
    ConstraintFrame,
)
from palpo.physics.exchange.handle import handle_like, of_process
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import dot3


class QueriedBodies(NamedTuple):
    """The n bodies of the engine, as the detector asks them."""

    unit: NDArray[np.int64]  # (n,) addresses
    state: NDArray[np.int64]  # (n,)
    rows: NDArray[np.int64]  # (n,) of the batches that BEGIN is called with, for the points' speeds
    look: NDArray[np.int64]  # (n,) of batches to place points by; 0 where the points never move
    first: NDArray[np.int32]  # (n,) number of a body's first point
    batch: Batch  # one of those; of all, the layout
    problem: Problem  # none


@of_process("asked")
class PairSearch(NamedTuple):
    """What a detector of p points knows and remembers."""

    topology: Topology
    mu: NDArray[np.float64]  # (topology's bodies, those) friction coefficients
    frame: ConstraintFrame
    control: NDArray[np.int64]  # of the frames' triple buffer
    asked: QueriedBodies
    owner: NDArray[np.int32]  # (p,) body of the engine
    owner_of: NDArray[np.int32]  # (topology's bodies,) the same
    skin: NDArray[np.float64]  # (1,) gap that contacts keep [m]
    bounds: NDArray[np.float64]  # (2,) least and most gap [m] up to which a contact is a row
    reach: NDArray[np.float64]  # (1,) that gap in this step [m]
    apart: NDArray[
        np.bool_
    ]  # (bodies of the engine, those) whose contacts are left out, as of a needle inside
    tools: NDArray[np.bool_]  # (bodies of the engine,) whether a hand holds it
    folding: NDArray[np.bool_]  # (bodies of the engine,) whether the frame has pairs of a body with itself
    odometer: NDArray[np.float64]  # (1,) bound on the relative travel of any two points so far [m]
    x: NDArray[np.float64]  # (p, 3) [m]
    stamp: NDArray[np.int64]  # (2,) number of this search; of the frame whose candidates `work` knows
    seen: NDArray[np.int64]  # (p,) number of the last search that looked at a point
    partial: NDArray[np.bool_]  # (1,) whether pairs may name points that another loop's frame lacks
    depth: NDArray[np.float64]  # (1,) [m] of the deepest contact of this search, 0 without any
    surfaces: SlidingSurfaces
    rest: NDArray[np.float64]  # (p, 3) [m] of the points at rest
    at: NDArray[np.float64]  # (3,) scratch
    work: ProximityWork
    found: Contacts  # of the topology's bodies and points
    last: Pairs  # (pairs capacity,) that `work` knows: a frame's slot may be written again
    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,) of them
    due: NDArray[np.float64]  # (pairs capacity,) scratch
    aside: NDArray[np.int32]  # (pairs capacity, 2) pairs that wait for a frame, and their groups


def make_pair_search(
    topology: Topology,
    rest: NDArray[np.float64],
    mu: NDArray[np.float64],
    frame: ConstraintFrame,
    control: NDArray[np.int64],
    capacity: Capacity,
    skin: float,
    reach: tuple[float, float],
    asked: QueriedBodies,
    owner: NDArray[np.int32],
    owner_of: NDArray[np.int32],
    partial: bool = False,
) -> PairSearch:
    """A search that has found nothing yet, on surfaces without grooves and films (`PairSearch.surfaces`).

    reach: least and most gap [m] up to which a contact is a row, however little or much bodies move.
    rest (p, 3): places of points that never move, or at rest [m].
    partial: whether pairs may name points of bodies of other low loops, whose frames may lack them.
    """
    p = capacity.points
    x = np.zeros((p, 3))
    x[: len(rest)] = rest
    tools = np.zeros(len(asked.unit), np.bool_)
    tools[owner_of[topology.body_role == TOOL]] = True
    return PairSearch(
        topology, mu, frame, control, asked, owner, owner_of, np.array([skin]), np.array(reach),
        np.zeros(1), np.zeros((len(asked.unit), len(asked.unit)), np.bool_),
        tools, np.zeros(len(asked.unit), np.bool_), np.zeros(1), x, np.zeros(2, np.int64),
        np.zeros(p, np.int64), np.array([partial]),
        np.zeros(1), make_surfaces(), x.copy(), np.zeros(3),
        make_proximity_work(capacity.pairs), make_contacts(capacity.contacts),
        Pairs(*(np.zeros(capacity.pairs, np.int32) for _ in range(3))), np.zeros(1, np.int64),
        np.zeros(capacity.pairs), np.zeros((capacity.pairs, 2), np.int32),
    )  # fmt: skip


def look_batch(points: int) -> Batch:
    """Room for that many points that are only placed."""
    return make_batch(points)._replace(rows=np.zeros((0, 6)), give=np.zeros((0, 6)))


@inlined
def look(s, b):
    return handle_like(s.asked.batch, s.asked.look[b])


@inlined
def want(s, p):
    """Point p is to be placed in this search."""
    b = s.owner[p]
    if s.seen[p] == s.stamp[0] or s.asked.look[b] == 0:
        return
    s.seen[p] = s.stamp[0]
    batch = look(s, b)
    k = batch.count[0]
    batch.count[0] = k + 1
    batch.slots[k, 0] = p - s.asked.first[b]


@kernel
def place_wanted(s, h):
    """x of the points that are wanted; False where one is nowhere, for it would touch nothing."""
    total = 0.0
    for b in range(s.asked.unit.shape[0]):
        if s.asked.look[b] == 0:
            continue
        batch = look(s, b)
        n, first = batch.count[0], s.asked.first[b]
        for k in range(n):
            batch.what[k], batch.weights[k, 0] = POINT, 1.0
        code = call_unit(
            s.asked.unit[b], PLACE, s.asked.state[b], s.asked.look[b], address_of(s.asked.problem), h
        )
        if code != DONE and code != NOT_OFFERED:
            return False
        for k in range(n):
            p = first + batch.slots[k, 0]
            there = batch.x[k, 0] != np.inf or not s.partial[0]
            for i in range(3):
                s.x[p, i] = batch.x[k, i]
                if there:
                    total += batch.x[k, i]
    return np.isfinite(total)


@kernel
def lacks_a_point(s, kind, first, second):
    """Whether a point of a pair has no place, since its body's frame lacks it."""
    for i in range(PAIR_POINTS):
        p = pair_point(s.topology, kind, first, second, i)
        if p >= 0 and s.x[p, 0] == np.inf:
            return True
    return False


MARGIN = 1e-4
"""Gap [m] up to which a contact is a row beside what the bodies may move by in the step. The speeds that they
have are not those that they will have: half of it is for that, or the contacts are looked for once more."""

JUMP = 0.5
"""Share of the reach of contacts by which the models of two frames may differ in where a point is: far more
than they do."""

PUSH_SPEED = 0.5
"""Speed [m/s] at which a penetration is pushed out at most."""


@kernel
def _set_aside(s, pairs, limit):
    """Pairs with a point that has no place are not due in this step."""
    work, aside, n = s.work, s.aside, 0
    for g in range(work.groups[0]):
        if work.soonest[g] > limit:
            continue
        for k in range(work.start[g], work.start[g + 1]):
            if work.due[k] <= limit and lacks_a_point(s, pairs.kind[k], pairs.first[k], pairs.second[k]):
                work.due[k] = np.inf
                aside[n, 0], aside[n, 1] = k, g
                n += 1
    return n


@kernel
def _take_back(s, n):
    """They are again in the next one."""
    for k in range(n):
        s.work.due[s.aside[k, 0]] = s.work.soonest[s.aside[k, 1]] = -np.inf


@kernel
def travel(s, h):
    """What any two points may have moved by in this step [m], as far as the bodies know."""
    first, second, own = 0.0, 0.0, 0.0
    for b in range(s.asked.rows.shape[0]):
        speed = handle_like(s.asked.batch, s.asked.rows[b]).speed[0]
        second = max(second, min(first, speed))
        first = max(first, speed)
        if s.folding[b]:
            own = max(own, speed)
    return h * max(first + second, 2.0 * own)


@inlined
def _is_before(pairs, i, others, k):
    if pairs.kind[i] != others.kind[k]:
        return pairs.kind[i] < others.kind[k]
    if pairs.first[i] != others.first[k]:
        return pairs.first[i] < others.first[k]
    return pairs.second[i] < others.second[k]


@kernel
def keep_due(last, count, due, pairs, told, jump, out):
    """due (n,) of a new frame's pairs, whose loop told it by what it saw some time ago.

    Of a pair that the last frame had too, `count` in all, what was seen since holds, but for `jump` [m], by
    which it may be nearer by the new model. Both are sorted by kind, first and second; `last` becomes the new
    ones. out: scratch.
    """
    i, n = 0, told.shape[0]
    for k in range(n):
        while i < count[0] and _is_before(last, i, pairs, k):
            i += 1
        out[k] = told[k]
        if i < count[0] and not _is_before(pairs, k, last, i):
            out[k] = max(told[k], due[i] - jump)
    for k in range(n):
        due[k] = out[k]
        last.kind[k], last.first[k], last.second[k] = pairs.kind[k], pairs.first[k], pairs.second[k]
    count[0] = n


@kernel
def _take_pairs(s, f, pairs):
    """The pairs of a frame that has not been searched yet."""
    n = s.frame.head[f].n_pairs
    s.stamp[1] = s.frame.head[f].id
    told, jump = s.frame.pair_due[f, :n], JUMP * s.bounds[1]
    keep_due(s.last, s.count, s.work.due, pairs, told, jump, s.due)
    group_pairs(s.topology, pairs, n, s.work)
    s.folding[:] = False
    for k in range(n):
        if pairs.kind[k] == POINT_TRIANGLE:
            one = s.topology.point_body[pairs.first[k]]
            if one == second_body(s.topology, POINT_TRIANGLE, pairs.second[k]):
                s.folding[s.owner_of[one]] = True


@kernel
def _want_due(s, pairs, limit):
    """The points of all pairs that may be in reach are to be placed."""
    work, topology = s.work, s.topology
    for g in range(work.groups[0]):
        if work.soonest[g] > limit:
            continue
        for k in range(work.start[g], work.start[g + 1]):
            if work.due[k] > limit:
                continue
            for i in range(PAIR_POINTS):
                p = pair_point(topology, pairs.kind[k], pairs.first[k], pairs.second[k], i)
                if p >= 0:
                    want(s, p)


@kernel
def fresh_contacts(s, f, h):
    """Contacts from the present geometry of the frame's candidate pairs."""
    pairs = Pairs(s.frame.pair_kind[f], s.frame.pair_first[f], s.frame.pair_second[f])
    if s.stamp[1] != s.frame.head[f].id:
        _take_pairs(s, f, pairs)
    s.reach[0] = min(s.bounds[1], max(s.bounds[0], MARGIN + travel(s, h)))
    odometer = s.odometer[0]
    limit, aside = odometer + s.reach[0], 0
    _want_due(s, pairs, limit)
    if not place_wanted(s, h):
        return False
    if s.partial[0]:
        aside = _set_aside(s, pairs, limit)
    find_contacts(s.topology, pairs, s.x, odometer, s.reach[0], s.skin[0], s.mu, s.work, s.found)
    _take_back(s, aside)
    return True


@kernel
def missed(s, h):
    """Whether the forces found move the bodies farther than contacts were looked for."""
    f = reader_slot(s.control)
    if s.frame.head[f].geometry == FROZEN or s.reach[0] >= s.bounds[1]:
        return False
    return travel(s, h) > s.reach[0] - 0.5 * MARGIN


@kernel
def frozen_contacts(s, f, h):
    """The frame's own contacts: directions of low step L1, gaps at the present positions."""
    frame, found = s.frame, s.found
    n = frame.head[f].n_contacts
    found.count[0].found, found.count[0].lost = n, 0
    for c in range(n):
        for side in range(2):
            for k in range(3):
                if frame.contact_points[f, c, side, k] >= 0:
                    want(s, frame.contact_points[f, c, side, k])
    if not place_wanted(s, h):
        return False
    for c in range(n):
        found.identity[c], found.mu[c] = frame.contact_identity[f, c], frame.contact_mu[f, c]
        found.give[c] = frame.contact_give[f, c]
        gap = frame.contact_rest[f, c]
        for side in range(2):
            sense = 1.0 - 2.0 * side
            found.body[c, side] = frame.contact_body[f, c, side]
            for k in range(3):
                p = frame.contact_points[f, c, side, k]
                found.slots[c, side, k] = p
                found.weights[c, side, k] = frame.contact_weights[f, c, side, k]
                found.arm[c, side, k] = frame.contact_arms[f, c, side, k]
                if p >= 0:
                    along = dot3(frame.contact_frame[f, c, 0], s.x[p])
                    gap += sense * found.weights[c, side, k] * along
        found.gap[c] = gap
        for d in range(3):
            for i in range(3):
                found.frame[c, d, i] = frame.contact_frame[f, c, d, i]
    return True


@kernel
def _feel(s, contacts, k, c):
    """What the surfaces of both sides make of the friction of contact k, found as c."""
    found, at = s.found, s.at
    for side in range(2):
        # a plane has no points: it is where the other side touches it
        own = side if found.slots[c, side, 0] >= 0 else 1 - side
        places = s.rest if own == side else s.x
        for i in range(3):
            at[i] = 0.0
        for j in range(3):
            p = found.slots[c, own, j]
            if p >= 0:
                for i in range(3):
                    at[i] += found.weights[c, own, j] * places[p, i]
        factor, viscosity = surface_at(s.surfaces, found.body[c, side], at)
        contacts.mu[k] *= factor
        contacts.viscosity[k] += viscosity


@kernel
def _instead(s, contacts, identity, one, two):
    """Number of a tool's new contact in place of the last of other bodies, -1 where all are tools' own."""
    for back in range(contacts.count[0].found):
        k = contacts.count[0].found - 1 - back
        if not s.tools[contacts.body[k, 0]] and not s.tools[contacts.body[k, 1]]:
            begin(contacts, k, identity, one, two)
            return k
    return -1


@kernel
def hand_over(s, contacts, h):
    """What was found, as the engine has contacts; a penetration is pushed out no faster than PUSH_SPEED.

    However deep that is: after a late frame, say. Where there is no room for all, a tool's go before others.
    """
    found = s.found
    contacts.count[0].lost += found.count[0].lost
    for c in range(found.count[0].found):
        one, two = s.owner_of[found.body[c, 0]], s.owner_of[found.body[c, 1]]
        if s.apart[one, two]:
            continue
        k = append(contacts, found.identity[c], one, two)
        if k < 0 and (s.tools[one] or s.tools[two]):
            k = _instead(s, contacts, found.identity[c], one, two)
        if k < 0:
            continue
        contacts.mu[k], contacts.give[k] = found.mu[c], found.give[c]
        if found.give[c] > 0.0:  # it is as deep as it gives way, and pushes no harder than it is stiff
            contacts.gap[k] = found.gap[c]
        else:
            kept = kept_gap(s.topology, found.body[c, 0], found.body[c, 1], s.skin[0])
            s.depth[0] = max(s.depth[0], -found.gap[c] - kept)
            contacts.gap[k] = max(found.gap[c], -PUSH_SPEED * h)
        if s.surfaces.body.shape[0] > 0:
            _feel(s, contacts, k, c)
        for side in range(2):
            first = s.asked.first[one if side == 0 else two]
            for i in range(3):
                p = found.slots[c, side, i]
                contacts.slots[k, side, i] = p - first if p >= 0 else 0
                contacts.weights[k, side, i] = found.weights[c, side, i] if p >= 0 else 0.0
                contacts.arm[k, side, i] = found.arm[c, side, i]
        for d in range(3):
            for i in range(3):
                contacts.frame[k, d, i] = found.frame[c, d, i]


@kernel
def search(s, contacts, h):
    """All contacts of this step; False where a point is nowhere."""
    f = reader_slot(s.control)
    s.stamp[0] += 1
    s.depth[0] = 0.0
    for b in range(s.asked.look.shape[0]):
        if s.asked.look[b] != 0:
            look(s, b).count[0] = 0
    well = frozen_contacts(s, f, h) if s.frame.head[f].geometry == FROZEN else fresh_contacts(s, f, h)
    if well:
        hand_over(s, contacts, h)
    return well


def _smallest() -> PairSearch:
    from palpo.physics.collision.topology import TOOL, CollisionShape, join_shapes
    from palpo.physics.exchange.buffer import make_control
    from palpo.physics.exchange.constraint_frame import make_frame

    point = CollisionShape(1, np.zeros((0, 3), np.int32), np.zeros((0, 2), np.int32), 0.01, TOOL)
    capacity = Capacity(slots=1, near=1, modes=1, pairs=1, contacts=1, points=1, bodies=1, all_bodies=1)
    nobody = np.zeros(1, np.int64)
    asked = QueriedBodies(
        nobody, nobody, nobody, nobody, np.zeros(1, np.int32), look_batch(1), make_problem(1)
    )  # fmt: skip
    return make_pair_search(
        join_shapes([point])[0], np.zeros((1, 3)), np.zeros((1, 1)), make_frame(capacity), make_control(),
        capacity, 0.0, (0.0, 0.0), asked, np.zeros(1, np.int32), np.zeros(1, np.int32),
    )  # fmt: skip


@detector(_smallest())
def pair_detector(stage, s, contacts, h):
    """The stages of palpo.physics.contract.contacts."""
    if stage == FIND:
        return DONE if search(s, contacts, h) else NOT_FINITE
    if stage == MISSED:
        return AGAIN if missed(s, h) else DONE
    if stage == KEEP:
        s.odometer[0] += travel(s, h)
    return DONE
