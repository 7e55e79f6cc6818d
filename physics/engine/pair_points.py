"""The points that a search for pairs asks the bodies for, and what it knows of them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.proximity_contacts import (
    PAIR_POINTS,
    Pairs,
    ProximityWork,
    make_proximity_work,
    pair_point,
)
from palpo.physics.collision.surface_feel import SlidingSurfaces, make_surfaces
from palpo.physics.collision.topology import Topology
from palpo.physics.contract.contacts import Contacts, make_contacts
from palpo.physics.contract.stages import (
    DONE,
    NOT_OFFERED,
    PLACE,
    POINT,
    Batch,
    Problem,
    address_of,
    call_unit,
    make_batch,
)
from palpo.physics.exchange.constraint_frame import (
    Capacity,
    ConstraintFrame,
)
from palpo.physics.exchange.handle import handle_like, of_process
from palpo.physics.numerics.kernels import inlined, kernel


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
    return PairSearch(
        topology, mu, frame, control, asked, owner, owner_of, np.array([skin]), np.array(reach),
        np.zeros(1), np.zeros(1), x, np.zeros(2, np.int64), np.zeros(p, np.int64), np.array([partial]),
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
