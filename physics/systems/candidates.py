"""In which order the points of candidate pairs get their share of a small model.

No single order serves. The earliest time at which a pair can touch, whatever the hand does, puts what is
close to a quick tool first, even where it only passes by; a body that falls touches where its own motion
brings it. So the points are taken by turns from both orders.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.proximity import EDGE_EDGE, POINT_TRIANGLE, Pairs
from palpo.physics.collision.topology import Topology

Floats = NDArray[np.float64]

SOME_DAY = 1.0
"""Seconds added to the earliest time of pairs that do not approach: they come after those that do."""


def expected_arrival(
    topology: Topology, pairs: Pairs, x: Floats, u: Floats, gaps: Floats, gravity: Floats, earliest: Floats
) -> Floats:
    """Time [s] at which each pair will touch (n,), by its own closing speed, on planes by gravity too.

    x [m], u [m/s]: all points (points, 3); gaps [m] and earliest times of touch [s], (n,). Pairs that touch
    come first, the deepest before others; those that do not approach after SOME_DAY.
    """
    closing, pull = np.zeros(len(gaps)), np.zeros(len(gaps))
    triangle, edge = pairs.kind == POINT_TRIANGLE, pairs.kind == EDGE_EDGE
    plane = ~(triangle | edge)
    a, b = pairs.first[triangle], topology.triangles[pairs.second[triangle]]
    normal = _units(np.cross(x[b[:, 1]] - x[b[:, 0]], x[b[:, 2]] - x[b[:, 0]]))
    closing[triangle] = -((u[a] - u[b].mean(axis=1)) * normal).sum(axis=1)
    a, b = topology.edges[pairs.first[edge]], topology.edges[pairs.second[edge]]
    apart = _units(x[a].mean(axis=1) - x[b].mean(axis=1))
    closing[edge] = -((u[a].mean(axis=1) - u[b].mean(axis=1)) * apart).sum(axis=1)
    normal = topology.planes[pairs.second[plane], 3:6]
    closing[plane] = -(u[pairs.first[plane]] * normal).sum(axis=1)
    pull[plane] = np.maximum(0.0, -(normal @ gravity))
    # gap = closing t + pull t^2 / 2, in the form that holds for pull = 0 too
    with np.errstate(divide="ignore", invalid="ignore"):
        time = 2.0 * gaps / (closing + np.sqrt(closing**2 + 2.0 * pull * gaps))
    time = np.where((time > 0.0) & np.isfinite(time), time, np.inf)
    return np.where(gaps <= 0.0, gaps, np.minimum(time, SOME_DAY + earliest))


def by_turns(orders: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The first of each order, then the second of each, and so on; each point where it comes first."""
    longest = max((len(order) for order in orders), default=0)
    turns = np.full((longest, len(orders)), -1, np.int32)
    for k, order in enumerate(orders):
        turns[: len(order), k] = order
    points = turns.reshape(-1)
    points = points[points >= 0]
    _, first = np.unique(points, return_index=True)
    return points[np.sort(first)]


def _units(vectors: Floats) -> Floats:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1), 1e-300)[:, None]


def shared_out(needs: Sequence[int], room: int) -> list[int]:
    """Shares of the room for all who need some of it, whose sum is the room.

    Who needs least is served first, with no more than an equal part of what is left; so nobody goes short
    for somebody who needs more. What nobody needs is added in equal parts.
    """
    shares, left = [0] * len(needs), room
    for served, i in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        shares[i] = min(needs[i], left // (len(needs) - served))
        left -= shares[i]
    for i in range(len(shares)):
        part = left // (len(shares) - i)
        shares[i] += part
        left -= part
    return shares
