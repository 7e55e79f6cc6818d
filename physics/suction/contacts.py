"""Contact rows between cups, their partner and the ground (000, 3.2.1 and H_c of 3.3.3).

A row adds something only where it says what no other row says already. So there is at most one for each cup
vertex near the partner; one for a partner's vertex only where the partner bulges into a triangle of the cup
(elsewhere its gap is the mean of those at the triangle's corners); and none, at first, where free motion
leaves the gap open: what the solution then closes after all is added, and solved again.

Rows are (n, t1, t2), the normal from body 2 to body 1; the cup is body 1 against its partner, the partner
against the ground. Bodies are numbered; WORLD never moves.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.kernels import inlined, kernel
from palpo.physics.math3 import tangent_basis

WORLD = -1
"""Number of what never moves."""

COUNT, LOST = 0, 1
"""Entries of `Rows.size`."""


class Rows(NamedTuple):
    """Up to c contacts. A soft body's point is weights of three nodes, a rigid one's a place in the world."""

    size: NDArray[np.int64]  # (2,) contacts; lost for room, or where they touch on nodes that never yield
    identity: NDArray[np.int64]  # (c,) lasting number
    body: NDArray[np.int64]  # (c, 2) bodies 1 and 2
    nodes: NDArray[np.int32]  # (c, 2, 3)
    weights: NDArray[np.float64]  # (c, 2, 3)
    point: NDArray[np.float64]  # (c, 3) closest point of body 2 [m]
    axes: NDArray[np.float64]  # (c, 3, 3) n, t1, t2, world
    gap: NDArray[np.float64]  # (c,) at the step's start, less the contact distance [m]
    mu: NDArray[np.float64]  # (c,)


def make_rows(capacity: int) -> Rows:
    """Room for so many contacts."""
    c = capacity
    return Rows(
        np.zeros(2, np.int64), np.zeros(c, np.int64), np.zeros((c, 2), np.int64),
        np.zeros((c, 2, 3), np.int32), np.zeros((c, 2, 3)), np.zeros((c, 3)), np.zeros((c, 3, 3)),
        np.zeros(c), np.zeros(c),
    )  # fmt: skip


@inlined
def _add(rows, identity, first, second, normal, gap, mu):
    """A new contact; its nodes and weights are still to be written. -1 if it is lost."""
    k = rows.size[COUNT]
    if k == rows.gap.size:
        rows.size[LOST] += 1
        return -1
    rows.size[COUNT] = k + 1
    rows.identity[k], rows.body[k, 0], rows.body[k, 1] = identity, first, second
    rows.gap[k], rows.mu[k] = gap, mu
    axes = rows.axes[k]
    axes[0] = normal
    tangent_basis(axes[0], axes[1], axes[2])
    rows.nodes[k] = 0
    rows.weights[k] = 0.0
    return k


class Pair(NamedTuple):
    """A cup, body 1, and its partner, body 2, as they may touch."""

    first: int
    second: int
    """Their numbers."""
    mu: float
    alarm: float
    """Distance [m] up to which there are rows."""
    kept: float
    """Contact distance [m]."""
    turn: NDArray[np.float64]
    """The axes in which gaps were measured, shape (3, 3)."""


@kernel
def add_vertex_rows(gaps, pair, x, nodes, place, second_nodes, triangles, start, rows):
    """Rows of a cup's vertices near its partner.

    gaps: of the surface's vertices. x (n, 3): the vertices [m], world. nodes, second_nodes (n,): node of each
    vertex on either body; place: of the nodes, see `points_of_body`; triangles (m, 3): the partner's.
    start: number of vertex 0.
    """
    normal = np.empty(3)
    for v in range(gaps.distance.size):
        d = gaps.distance[v]
        if not d <= pair.alarm:
            continue
        if place[nodes[v]] < 0:
            # a stem far from what it will not reach lacks no row
            rows.size[LOST] += d <= pair.kept
            continue
        _turned(pair.turn, gaps.normal[v], normal)
        k = _add(rows, start + v, pair.first, pair.second, normal, d - pair.kept, pair.mu)
        if k < 0:
            continue
        rows.nodes[k, 0, 0], rows.weights[k, 0, 0] = nodes[v], 1.0
        for j in range(3):
            rows.nodes[k, 1, j] = second_nodes[triangles[gaps.triangle[v], j]]
            rows.weights[k, 1, j] = gaps.weights[v, j]
            rows.point[k, j] = x[v, j] - d * normal[j]


@kernel
def add_bulge_rows(gaps, cup_gaps, pair, x, nodes, place, second_nodes, triangles, start, rows):
    """Rows of a partner's vertices where it bulges into a triangle of the cup by half the contact distance.

    gaps: of the partner's vertices from the cup; x (n, 3): them, world [m]; second_nodes (n,). nodes,
    triangles, cup_gaps: of the cup. Others see `add_vertex_rows`.
    """
    normal = np.empty(3)
    for u in range(gaps.distance.size):
        d = gaps.distance[u]
        if not d <= pair.alarm:
            continue
        t, between, yields = gaps.triangle[u], 0.0, False
        for j in range(3):
            if gaps.weights[u, j] > 0.0:
                yields |= place[nodes[triangles[t, j]]] >= 0
                between += gaps.weights[u, j] * min(cup_gaps.distance[triangles[t, j]], 2.0 * pair.alarm)
        if d > between - 0.5 * pair.kept:
            continue
        if not yields:
            rows.size[LOST] += d <= pair.kept
            continue
        _turned(pair.turn, gaps.normal[u], normal)
        for i in range(3):
            normal[i] = -normal[i]
        k = _add(rows, start + u, pair.first, pair.second, normal, d - pair.kept, pair.mu)
        if k < 0:
            continue
        rows.nodes[k, 1, 0], rows.weights[k, 1, 0] = second_nodes[u], 1.0
        for j in range(3):
            rows.nodes[k, 0, j] = nodes[triangles[t, j]]
            rows.weights[k, 0, j] = gaps.weights[u, j]
            rows.point[k, j] = x[u, j]


@kernel
def add_ground_rows(x, vertices, nodes, height, alarm, kept, body, mu, start, rows):
    """Rows of those `vertices` (k,) of a body, at x (n, 3) [m], that are within `alarm` of the ground.

    Others see `add_vertex_rows`; the body is rigid, or its vertices may yield.
    """
    normal = np.array([0.0, 1.0, 0.0])
    for v in vertices:
        d = x[v, 1] - height
        if d <= alarm:
            k = _add(rows, start + v, body, WORLD, normal, d - kept, mu)
            if k >= 0:
                rows.nodes[k, 0, 0], rows.weights[k, 0, 0] = nodes[v], 1.0
                rows.point[k] = x[v]


@inlined
def _turned(turn, a, out):
    for i in range(3):
        out[i] = turn[i, 0] * a[0] + turn[i, 1] * a[1] + turn[i, 2] * a[2]


@kernel
def keep_rows(rows, wanted, out):
    """out = the rows that are wanted (c,), in their order."""
    out.size[:] = 0
    for k in range(rows.size[COUNT]):
        if not wanted[k]:
            continue
        m = out.size[COUNT]
        out.size[COUNT] = m + 1
        out.identity[m], out.gap[m], out.mu[m] = rows.identity[k], rows.gap[k], rows.mu[k]
        out.body[m], out.nodes[m], out.weights[m] = rows.body[k], rows.nodes[k], rows.weights[k]
        out.point[m], out.axes[m] = rows.point[k], rows.axes[k]


@kernel
def recall_forces(rows, memory, r):
    """r (3 c,) = the forces remembered by identity (i, 3) [N], world, in the rows' axes."""
    for k in range(rows.size[COUNT]):
        f = memory[rows.identity[k]]
        for i in range(3):
            a = rows.axes[k, i]
            r[3 * k + i] = a[0] * f[0] + a[1] * f[1] + a[2] * f[2]


@kernel
def remember_forces(rows, r, memory):
    """memory (i, 3) = the forces r (3 c,) [N] by identity, world, 0 elsewhere."""
    memory[:] = 0.0
    for k in range(rows.size[COUNT]):
        for i in range(3):
            for j in range(3):
                memory[rows.identity[k], j] += rows.axes[k, i, j] * r[3 * k + i]


class Points(NamedTuple):
    """The points of one soft body in a problem's rows, as palpo.physics.bodies.boundary takes them."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (2,) points; those no node of which may yield
    contact: NDArray[np.int64]  # (c,)
    nodes: NDArray[np.int32]  # (c, 3)
    slots: NDArray[np.int32]  # (c, 3) places among the last nodes
    weights: NDArray[np.float64]  # (c, 3)
    yielding: NDArray[np.float64]  # (c, 3) weights, 0 where a node has no place
    axes: NDArray[np.float64]  # (c, 3, 3) negative on body 2


def make_points(capacity: int) -> Points:
    """Room for so many contacts."""
    c = capacity
    return Points(
        np.zeros(2, np.int64), np.zeros(c, np.int64), np.zeros((c, 3), np.int32), np.zeros((c, 3), np.int32),
        np.zeros((c, 3)), np.zeros((c, 3)), np.zeros((c, 3, 3)),
    )  # fmt: skip


@kernel
def points_of_body(rows, body, place, points):
    """Write the body's points; place (n,): of its nodes among its last ones, -1 for none. Least place met."""
    count, least = 0, place.size
    points.count[1] = 0
    for k in range(rows.size[COUNT]):
        for side in range(2):
            if rows.body[k, side] != body:
                continue
            points.contact[count] = k
            rigid = True
            for j in range(3):
                node, weight = rows.nodes[k, side, j], rows.weights[k, side, j]
                points.nodes[count, j], points.weights[count, j] = node, weight
                points.slots[count, j], points.yielding[count, j] = 0, 0.0
                if weight != 0.0 and place[node] >= 0:
                    points.slots[count, j], points.yielding[count, j] = place[node], weight
                    least, rigid = min(least, place[node]), False
            points.count[1] += rigid
            sign = 1.0 if side == 0 else -1.0
            for i in range(3):
                for j in range(3):
                    points.axes[count, i, j] = sign * rows.axes[k, i, j]
            count += 1
    points.count[0] = count
    return least


@kernel
def add_nodal_forces(points, r, out):
    """out (n, 3) += H^T r [N] on the body's nodes; r (3 c,)."""
    for k in range(points.count[0]):
        first = 3 * points.contact[k]
        for i in range(3):
            f = 0.0
            for a in range(3):
                f += points.axes[k, a, i] * r[first + a]
            for j in range(3):
                out[points.nodes[k, j], i] += points.weights[k, j] * f


@kernel
def wrench_rows(rows, body, centre, out):
    """out (3 c, 6) = H of a rigid body: the rows' displacement by that of its centre and its turn, world."""
    out[:] = 0.0
    for k in range(rows.size[COUNT]):
        for side in range(2):
            if rows.body[k, side] != body:
                continue
            sign = 1.0 if side == 0 else -1.0
            r0, r1, r2 = (
                rows.point[k, 0] - centre[0], rows.point[k, 1] - centre[1], rows.point[k, 2] - centre[2]
            )  # fmt: skip
            for i in range(3):
                a0, a1, a2 = sign * rows.axes[k, i, 0], sign * rows.axes[k, i, 1], sign * rows.axes[k, i, 2]
                line = out[3 * k + i]
                line[0], line[1], line[2] = a0, a1, a2
                line[3], line[4], line[5] = r1 * a2 - r2 * a1, r2 * a0 - r0 * a2, r0 * a1 - r1 * a0


def pressing(rows: Rows, r: NDArray[np.float64], cup: int, partner: int, nodes: int) -> NDArray[np.float64]:
    """How hard each of a cup's nodes presses on the partner (n,) [N]; a bulge's force is its triangle's."""
    n = int(rows.size[COUNT])
    its = (rows.body[:n] == (cup, partner)).all(axis=1)
    share = rows.weights[:n][its, 0] * r[::3][its, None]
    return np.bincount(rows.nodes[:n][its, 0].ravel(), share.ravel(), nodes).astype(np.float64)
