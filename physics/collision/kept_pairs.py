"""What a search for pairs is asked, and which of the pairs that it finds are kept.

Pairs that can touch are kept but for those of which nothing can move, whose sides are joined or of which one
lies flipped over. When the room
is full the last ones go: those that can touch last, or the farthest.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.box_tree import Primitives, Tree
from palpo.physics.collision.facing import Normals
from palpo.physics.collision.flipped import Flipped, is_flipped
from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    EDGE_FACET,
    PAIR_POINTS,
    POINT_PLANE,
    Pairs,
    pair_point,
)
from palpo.physics.collision.topology import Topology
from palpo.physics.numerics.kernels import inlined, kernel

SETTINGS = np.dtype(
    [*((name, np.float64) for name in ("skin", "alarm", "acceleration", "horizon", "own")), ("by_gap", "i8")]
)
"""Of a search: distance [m] that counts as touch; gap [m] up to which features are candidates even if they
do not move; most acceleration [m/s2]; time [s] until the next candidates; gap [m] up to which features of one
body are candidates where only gaps count; whether they do, 0 or 1."""

COUNT = np.dtype([("found", np.int64), ("dropped", np.int64), ("looked_at", np.int64)])
"""Candidates; those lost to the capacity; pairs measured."""


class Search(NamedTuple):
    """All that a search reads and writes."""

    x: NDArray[np.float64]  # (n_points, 3) [m] positions of all points
    u: NDArray[np.float64]  # (n_points, 3) [m/s] their velocities
    topology: Topology
    tree: Tree  # those of all bodies, one after another
    primitives: Primitives  # likewise
    root: NDArray[np.int32]  # (n_bodies + 1,) first node of each body's tree
    first: NDArray[np.int64]  # (n_bodies + 1,) first point of each body
    used: NDArray[np.bool_]  # (n_points,) points of primitives
    moves: NDArray[np.bool_]  # (n_points,) whether a point may move: nothing holds it
    bodies: NDArray[np.int32]  # (k, 2) bodies that may meet
    planes: NDArray[np.int32]  # (m, 2) bodies and half spaces that may meet
    folding: NDArray[np.int32]  # (f,) bodies that may touch themselves
    rest: NDArray[np.float64]  # (n_points, 3) [m] positions at rest, none where no body folds
    normals: Normals  # of those that fold
    flipped: Flipped  # facets that have no outside now
    joints: NDArray[np.int32]  # (j, 2) points and bodies that are joined
    blunt: NDArray[np.bool_]  # (edges,) those that never meet an edge of a surface
    settings: NDArray[np.void]  # (1,) of SETTINGS
    speed: NDArray[np.float64]  # (n_bodies,) [m/s] of each body's fastest point
    limit: NDArray[np.float64]  # (1,) rank of the first candidate that found no room
    stack: NDArray[np.int32]  # (depth, 2)
    scratch: NDArray[np.float64]  # (2, 3)
    count: NDArray[np.void]  # type: ignore[assignment]  # (1,) of COUNT
    pairs: Pairs  # (2 capacity,)
    arrival: NDArray[np.float64]  # (2 capacity,) [s] earliest time of touch
    gap: NDArray[np.float64]  # (2 capacity,) [m]


@inlined
def fastest_against(u, p, points, worst):
    """Largest relative speed [m/s] of the point p against any of `points`, not below `worst`."""
    for k in range(points.shape[0]):
        d0, d1, d2 = u[p, 0] - u[points[k], 0], u[p, 1] - u[points[k], 1], u[p, 2] - u[points[k], 2]
        worst = max(worst, (d0 * d0 + d1 * d1 + d2 * d2) ** 0.5)
    return worst


@inlined
def travel(settings, speed):
    """Gap [m] up to which features closing at `speed` [m/s] are candidates."""
    h = settings.horizon
    return settings.alarm + h * speed + 0.5 * settings.acceleration * h * h


@inlined
def _arrival(settings, gap, speed):
    """Earliest time [s] at which a gap [m] can close: gap = speed t + acceleration t^2 / 2.

    Features that touch already come before all others, the deepest first.
    """
    if gap <= 0.0:
        return gap
    a = settings.acceleration
    return 2.0 * gap / (speed + (speed * speed + 2.0 * a * gap) ** 0.5 + 1e-12)


@inlined
def _is_joined(s, kind, first, second):
    """Whether an attachment holds a point of one side to the body of the other.

    A wire that ends on a surface overlaps it there; contact would push against the joint.
    """
    topology = s.topology
    for j in range(s.joints.shape[0]):
        point, body = s.joints[j, 0], s.joints[j, 1]
        if kind == EDGE_EDGE:
            a, b, c = topology.edges[first, 0], topology.edges[first, 1], topology.edges[second, 0]
            meets = (a == point or b == point) and topology.point_body[c] == body
            back = c == point or topology.edges[second, 1] == point
        elif kind != POINT_PLANE:
            a, c = first, topology.triangles[second, 0]
            b = a
            if kind == EDGE_FACET:
                a, b = topology.edges[first, 0], topology.edges[first, 1]
            meets = (a == point or b == point) and topology.point_body[c] == body
            triangle = topology.triangles[second]
            back = triangle[0] == point or triangle[1] == point or triangle[2] == point
        else:
            a = first
            meets = a == point and topology.plane_body[second] == body
            back = False
        if meets or (back and topology.point_body[a] == body):
            return True
    return False


@kernel
def kth_least(values, k):
    """What stands at k once the values (n,) are sorted; puts them in another order. Source: C. A. R. Hoare,
    Algorithm 65: find, Comm. ACM 4 (1961). (NumPy's takes six seconds to compile.)"""
    first, last = 0, values.shape[0] - 1
    while first < last:
        pivot, i, j = values[(first + last) // 2], first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if j < k < i:
            break
        if k <= j:
            last = j
        else:
            first = i
    return values[k]


@kernel
def leave_out_the_last(s, capacity):
    """Keep the first `capacity` candidates by rank, of equal ones those that were found first."""
    n, by_gap = s.count[0].found, s.settings[0].by_gap == 1
    rank = s.gap if by_gap else s.arrival
    limit = kth_least(rank[:n].copy(), capacity)
    equal = capacity
    for k in range(n):
        equal -= rank[k] < limit
    kept = 0
    for k in range(n):
        if rank[k] > limit or (rank[k] == limit and equal <= 0):
            continue
        equal -= rank[k] == limit
        s.pairs.kind[kept], s.pairs.first[kept] = s.pairs.kind[k], s.pairs.first[k]
        s.pairs.second[kept] = s.pairs.second[k]
        s.arrival[kept], s.gap[kept] = s.arrival[k], s.gap[k]
        kept += 1
    s.count[0].found = kept
    s.count[0].dropped += n - kept
    s.limit[0] = limit


@inlined
def _may_move(s, kind, first, second):
    """Whether a point of either side may: held nodes that lie in something fixed touch nothing."""
    for i in range(PAIR_POINTS):
        p = pair_point(s.topology, kind, first, second, i)
        if p >= 0 and s.moves[p]:
            return True
    return False


@kernel
def emit(s, kind, first, second, gap, speed):
    """A candidate, unless it cannot be, or it comes after all that there is room for."""
    if not _may_move(s, kind, first, second) or _is_joined(s, kind, first, second):
        return
    if is_flipped(s.flipped, s.topology, kind, first, second):
        return
    time = _arrival(s.settings[0], gap, speed)
    if (gap if s.settings[0].by_gap == 1 else time) >= s.limit[0]:
        s.count[0].dropped += 1
        return
    if s.count[0].found == s.gap.shape[0]:
        leave_out_the_last(s, s.gap.shape[0] // 2)
    k = s.count[0].found
    s.pairs.kind[k], s.pairs.first[k], s.pairs.second[k] = kind, first, second
    s.arrival[k], s.gap[k] = time, gap
    s.count[0].found = k + 1
