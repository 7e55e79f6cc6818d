"""In which order the points of candidate pairs get their share of a small model.

No single order serves. The earliest time at which a pair can touch, whatever the hand does, puts what is
close to a quick tool first, even where it only passes by; a body that falls touches where its own motion
brings it. So the points are taken by turns from both orders, after those that a tool will lie on while the
frame serves, if it goes on as it does.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    EDGE_FACET,
    PAIR_POINTS,
    POINT_TRIANGLE,
    Pairs,
    pair_point,
)
from palpo.physics.collision.topology import LOW, Topology
from palpo.physics.exchange.handle import Handle
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3, norm3, quat_rotate


@kernel
def tool_points(start, stop, frame, lever, x, q, v, w, out_x, out_u):
    """Positions and velocities of the tool's points."""
    for p in range(start, stop):
        k = frame[p]
        quat_rotate(q[k], lever[p], out_x[p])
        arm = out_x[p]
        out_u[p, 0] = v[k, 0] + w[k, 1] * arm[2] - w[k, 2] * arm[1]
        out_u[p, 1] = v[k, 1] + w[k, 2] * arm[0] - w[k, 0] * arm[2]
        out_u[p, 2] = v[k, 2] + w[k, 0] * arm[1] - w[k, 1] * arm[0]
        for i in range(3):
            out_x[p, i] += x[k, i]


@kernel
def fastest(u):
    """Largest speed among velocities u (n, 3)."""
    most = 0.0
    for p in range(u.shape[0]):
        most = max(most, u[p, 0] * u[p, 0] + u[p, 1] * u[p, 1] + u[p, 2] * u[p, 2])
    return most**0.5


SOME_DAY = 1.0
"""Seconds added to the earliest time of pairs that do not approach: they come after those that do."""


@inlined
def _add_weighted(x, points, weight, out):
    """out (3,) += weight times the mean of x over some points."""
    for k in range(points.shape[0]):
        for i in range(3):
            out[i] += weight * x[points[k], i] / points.shape[0]


@kernel
def expected_arrival(topology, pairs, x, u, gaps, gravity, earliest):
    """Time [s] at which each pair will touch (n,), by its own closing speed, on planes by gravity too.

    x [m], u [m/s]: all points (points, 3); gaps [m] and earliest times of touch [s], (n,). Pairs that touch
    come first, the deepest before others; those that do not approach after SOME_DAY.
    """
    out, moves, normal, side, other = np.empty(gaps.size), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3)
    for k in range(gaps.size):
        if gaps[k] <= 0.0:
            out[k] = gaps[k]
            continue
        kind, first, second = pairs.kind[k], pairs.first[k], pairs.second[k]
        moves[:], normal[:], pull = 0.0, 0.0, 0.0
        if kind in (POINT_TRIANGLE, EDGE_FACET):
            triangle = topology.triangles[second]
            if kind == EDGE_FACET:
                _add_weighted(u, topology.edges[first], 1.0, moves)
            for i in range(3):
                side[i] = x[triangle[1], i] - x[triangle[0], i]
                other[i] = x[triangle[2], i] - x[triangle[0], i]
                if kind == POINT_TRIANGLE:
                    moves[i] = u[first, i]
            cross3(side, other, normal)
            _add_weighted(u, triangle, -1.0, moves)
        elif kind == EDGE_EDGE:
            one, two = topology.edges[first], topology.edges[second]
            _add_weighted(x, one, 1.0, normal)
            _add_weighted(x, two, -1.0, normal)
            _add_weighted(u, one, 1.0, moves)
            _add_weighted(u, two, -1.0, moves)
        else:
            for i in range(3):
                normal[i], moves[i] = topology.planes[second, 3 + i], u[first, i]
                pull -= normal[i] * gravity[i]
        length = max(norm3(normal), 1e-300)
        closing = -(moves[0] * normal[0] + moves[1] * normal[1] + moves[2] * normal[2]) / length
        # gap = closing t + pull t^2 / 2, in the form that holds for pull = 0 too
        speed = closing + (closing * closing + 2.0 * max(pull, 0.0) * gaps[k]) ** 0.5
        latest = SOME_DAY + earliest[k]
        out[k] = min(2.0 * gaps[k] / speed, latest) if speed > 0.0 else latest
    return out


@kernel
def _least_ranks(topology, pairs, rank):
    """Of each low-rate point the least rank of its pairs (points,), inf without any.

    Neighbours of edges, which only tell the side, come SOME_DAY later.
    """
    kinds, firsts, seconds = pairs.kind, pairs.first, pairs.second
    least = np.full(topology.point_body.size, np.inf)
    for k in range(rank.size):
        for i in range(PAIR_POINTS):
            p = pair_point(topology, kinds[k], firsts[k], seconds[k], i)
            tells_side = kinds[k] == EDGE_EDGE and i >= 4
            if p >= 0:
                least[p] = min(least[p], rank[k] + SOME_DAY if tells_side else rank[k])
    for p in range(least.size):
        if topology.body_role[topology.point_body[p]] != LOW:
            least[p] = np.inf
    return least


def gained(
    spans: Sequence[tuple[int, int]],
    before: NDArray[np.float64],
    now: NDArray[np.float64],
    span: float,
    most: float,
) -> NDArray[np.float64]:
    """Accelerations (points, 3) [m/s2] of tools' points, none of others, by their velocities a span [s] ago
    and now; a tool's are cut to the `most` that a hand can do, since it does not go on as in an impact."""
    out = np.zeros_like(now)
    for start, stop in spans:
        change = now[start:stop] - before[start:stop]
        out[start:stop] = change * min(1.0 / span, most / max(fastest(change), 1e-300)) if span > 0.0 else 0.0
    return out


def points_by(
    topology: Topology | Handle, pairs: Pairs, rank: NDArray[np.float64], below: float = np.inf
) -> NDArray[np.int32]:
    """Low-rate points of candidate pairs by a rank of each pair (n,), ascending, up to `below`."""
    least = _least_ranks(topology, pairs, rank)
    points = np.flatnonzero((least <= below) & np.isfinite(least))
    return points[np.argsort(least[points], kind="stable")].astype(np.int32)


@kernel
def distinct(points):
    """Numbers (n,), none of them negative, in their order, each where it comes first."""
    taken = np.zeros(points.max() + 1 if points.size else 0, np.bool_)
    out, n = np.empty_like(points), 0
    for k in range(points.size):
        if not taken[points[k]]:
            taken[points[k]] = True
            out[n] = points[k]
            n += 1
    return out[:n]


def by_turns(orders: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The first of each order, then the second of each, and so on; each point where it comes first."""
    longest = max((len(order) for order in orders), default=0)
    turns = np.full((longest, len(orders)), -1, np.int32)
    for k, order in enumerate(orders):
        turns[: len(order), k] = order
    return distinct(turns[turns >= 0])


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
