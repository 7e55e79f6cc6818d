"""Broad phase: candidate pairs that may touch before the next candidates arrive.

Each body has a bounding-volume tree over its triangles (or the edges of a line), built once by median
splits and refitted to the present positions. A pair of features is a candidate when its distance now
is less than what its points can travel towards each other until the candidates are next renewed:

    distance <= thickness + alarm + horizon |v_1 - v_2| + acceleration horizon^2 / 2

so that no contact is lost between two low steps, whatever the hand does within that acceleration. Or, with
one distance for all pairs (`within`), when its gap is below that: then the list holds until any two points
may have come closer by as much, however long that takes.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.closest import point_triangle, segment_segment
from palpo.physics.collision.proximity import EDGE_EDGE, POINT_PLANE, POINT_TRIANGLE, Pairs
from palpo.physics.collision.topology import STATIC, Topology
from palpo.physics.kernels import inlined, kernel

LEAF = 4
"""Most primitives in a leaf of the tree."""


class Tree(NamedTuple):
    """A binary tree of axis-aligned boxes over the primitives of one body, children after parents."""

    order: NDArray[np.int32]  # (n_primitives,) primitives, those of a node contiguous
    span: NDArray[np.int32]  # (n_nodes, 2) range in `order`
    children: NDArray[np.int32]  # (n_nodes, 2), -1 for a leaf
    box: NDArray[np.float64]  # (n_nodes, 6) lower and upper corner [m]


class Primitives(NamedTuple):
    """The primitives of one body and the points and edges that each one answers for."""

    points: NDArray[np.int32]  # (n_primitives, 3) points; an edge repeats its second point
    triangle: NDArray[np.int32]  # (n_primitives,) triangle, -1 for an edge
    own_points: NDArray[np.int32]  # (n_primitives, 3) points named by no earlier primitive, else -1
    own_edges: NDArray[np.int32]  # (n_primitives, 3) edges likewise


def _first_seen(names: NDArray[np.int32]) -> NDArray[np.int32]:
    """names where a name appears for the first time (row by row), -1 elsewhere."""
    flat = names.reshape(-1)
    _, first = np.unique(flat, return_index=True)
    kept = np.full(flat.shape, -1, np.int32)
    kept[first] = flat[first]
    return kept.reshape(names.shape)


def body_primitives(topology: Topology, body: int) -> Primitives:
    """Triangles of the body, or its edges where it has no triangles."""
    triangles = np.flatnonzero(topology.point_body[topology.triangles[:, 0]] == body).astype(np.int32)
    if len(triangles):
        points, edges = topology.triangles[triangles], topology.triangle_edges[triangles]
        return Primitives(points, triangles, _first_seen(points), _first_seen(edges))
    edges = np.flatnonzero(topology.point_body[topology.edges[:, 0]] == body).astype(np.int32)
    points = topology.edges[edges][:, [0, 1, 1]]
    own_edges = np.full((len(edges), 3), -1, np.int32)
    own_edges[:, 0] = edges
    return Primitives(
        np.ascontiguousarray(points), np.full(len(edges), -1, np.int32), _first_seen(points), own_edges
    )


def build_tree(centres: NDArray[np.float64]) -> Tree:
    """Median-split tree over primitives with the given centres, shape (n, 3)."""
    order = np.arange(len(centres), dtype=np.int32)
    spans, children = [(0, len(centres))], [[-1, -1]]
    node = 0
    while node < len(spans):
        start, stop = spans[node]
        if stop - start > LEAF:
            part = order[start:stop]
            axis = int(np.argmax(np.ptp(centres[part], axis=0)))
            middle = (stop - start) // 2
            order[start:stop] = part[np.argpartition(centres[part, axis], middle)]
            children[node] = [len(spans), len(spans) + 1]
            spans += [(start, start + middle), (start + middle, stop)]
            children += [[-1, -1], [-1, -1]]
        node += 1
    return Tree(
        order,
        np.array(spans, np.int32).reshape(-1, 2),
        np.array(children, np.int32).reshape(-1, 2),
        np.zeros((len(spans), 6)),
    )


@kernel
def refit(tree, primitives, x):
    """Fit the boxes of the tree to the present positions x (n_points, 3)."""
    for node in range(tree.span.shape[0] - 1, -1, -1):
        for i in range(3):
            tree.box[node, i] = 1e300
            tree.box[node, 3 + i] = -1e300
        left, right = tree.children[node, 0], tree.children[node, 1]
        if left >= 0:
            for i in range(3):
                tree.box[node, i] = min(tree.box[left, i], tree.box[right, i])
                tree.box[node, 3 + i] = max(tree.box[left, 3 + i], tree.box[right, 3 + i])
        else:
            for k in range(tree.span[node, 0], tree.span[node, 1]):
                for c in range(3):
                    p = primitives.points[tree.order[k], c]
                    for i in range(3):
                        tree.box[node, i] = min(tree.box[node, i], x[p, i])
                        tree.box[node, 3 + i] = max(tree.box[node, 3 + i], x[p, i])


@inlined
def _box_distance_squared(a, b):
    d2 = 0.0
    for i in range(3):
        gap = max(a[i] - b[3 + i], b[i] - a[3 + i])
        if gap > 0.0:
            d2 += gap * gap
    return d2


@inlined
def _fastest_against(u, p, points, worst):
    """Largest relative speed [m/s] of the point p against any of `points`, not below `worst`."""
    for k in range(points.shape[0]):
        d0, d1, d2 = u[p, 0] - u[points[k], 0], u[p, 1] - u[points[k], 1], u[p, 2] - u[points[k], 2]
        worst = max(worst, (d0 * d0 + d1 * d1 + d2 * d2) ** 0.5)
    return worst


class Reach(NamedTuple):
    """How far and how fast the features of two bodies may come towards each other."""

    touch: float
    """Distance at which they touch [m]."""
    alarm: float
    """Distance beyond that at which they are candidates at rest [m]."""
    acceleration: float
    """[m/s2]"""
    horizon: float
    """[s]"""


@inlined
def _travel(reach, speed):
    """Distance [m] within which features closing at `speed` [m/s] are candidates."""
    h = reach.horizon
    return reach.touch + reach.alarm + h * speed + 0.5 * reach.acceleration * h * h


@inlined
def _arrival(reach, gap, speed):
    """Earliest time [s] at which a gap [m] can close: gap = speed t + acceleration t^2 / 2.

    Features that touch already come before all others, the deepest first.
    """
    if gap <= 0.0:
        return gap
    a = reach.acceleration
    return 2.0 * gap / (speed + (speed * speed + 2.0 * a * gap) ** 0.5 + 1e-12)


@inlined
def _emit(pairs, arrival, gaps, count, kind, first, second, gap, time):
    if count[0] < pairs.kind.shape[0]:
        k = count[0]
        pairs.kind[k] = kind
        pairs.first[k] = first
        pairs.second[k] = second
        arrival[k] = time
        gaps[k] = gap
        count[0] += 1
    else:
        count[1] += 1


@inlined
def _try_point(topology, x, u, p, t, reach, scratch, pairs, arrival, gaps, count):
    a, b, c = topology.triangles[t, 0], topology.triangles[t, 1], topology.triangles[t, 2]
    point_triangle(x[p], x[a], x[b], x[c], scratch[0])
    d2 = 0.0
    for i in range(3):
        q = scratch[0, 0] * x[a, i] + scratch[0, 1] * x[b, i] + scratch[0, 2] * x[c, i]
        d2 += (x[p, i] - q) ** 2
    speed = _fastest_against(u, p, topology.triangles[t], 0.0)
    distance = d2**0.5
    if distance <= _travel(reach, speed):
        gap = distance - reach.touch
        _emit(pairs, arrival, gaps, count, POINT_TRIANGLE, p, t, gap, _arrival(reach, gap, speed))


@inlined
def _try_edges(topology, x, u, e, f, reach, scratch, pairs, arrival, gaps, count):
    a, b = topology.edges[e, 0], topology.edges[e, 1]
    c, g = topology.edges[f, 0], topology.edges[f, 1]
    segment_segment(x[a], x[b], x[c], x[g], scratch[0])
    s, t = scratch[0, 0], scratch[0, 1]
    d2 = 0.0
    for i in range(3):
        d2 += (x[a, i] + s * (x[b, i] - x[a, i]) - x[c, i] - t * (x[g, i] - x[c, i])) ** 2
    speed = _fastest_against(u, a, topology.edges[f], 0.0)
    speed = _fastest_against(u, b, topology.edges[f], speed)
    distance = d2**0.5
    if distance <= _travel(reach, speed):
        gap = distance - reach.touch
        _emit(pairs, arrival, gaps, count, EDGE_EDGE, e, f, gap, _arrival(reach, gap, speed))


@kernel
def _leaf_pairs(topology, x, u, prim_1, prim_2, i, j, reach, scratch, pairs, arrival, gaps, count):
    t1, t2 = prim_1.triangle[i], prim_2.triangle[j]
    for k in range(3):
        if t2 >= 0 and prim_1.own_points[i, k] >= 0:
            _try_point(
                topology, x, u, prim_1.own_points[i, k], t2, reach, scratch, pairs, arrival, gaps, count
            )
        if t1 >= 0 and prim_2.own_points[j, k] >= 0:
            _try_point(
                topology, x, u, prim_2.own_points[j, k], t1, reach, scratch, pairs, arrival, gaps, count
            )
    for k in range(3):
        e = prim_1.own_edges[i, k]
        if e < 0:
            continue
        for m in range(3):
            f = prim_2.own_edges[j, m]
            if f < 0:
                continue
            # a degenerate edge is the single point of a round tip: against faces, the point stands for it
            if topology.edges[e, 0] == topology.edges[e, 1] and t2 >= 0:
                continue
            if topology.edges[f, 0] == topology.edges[f, 1] and t1 >= 0:
                continue
            if t1 >= 0 and t2 < 0:
                _try_edges(topology, x, u, f, e, reach, scratch, pairs, arrival, gaps, count)
            else:
                _try_edges(topology, x, u, e, f, reach, scratch, pairs, arrival, gaps, count)


@kernel
def query_trees(
    topology, x, u, tree_1, prim_1, tree_2, prim_2, reach, speed,
    stack, scratch, pairs, arrival, gaps, count,
):  # fmt: skip
    """Append the candidate pairs of two bodies.

    speed [m/s]: bound on the relative speed of the two bodies. count = (candidates kept, candidates lost to
    the capacity).
    """
    most = _travel(reach, speed)
    top = 0
    stack[0, 0] = 0
    stack[0, 1] = 0
    while top >= 0:
        n1, n2 = stack[top, 0], stack[top, 1]
        top -= 1
        if _box_distance_squared(tree_1.box[n1], tree_2.box[n2]) > most * most:
            continue
        leaf_1, leaf_2 = tree_1.children[n1, 0] < 0, tree_2.children[n2, 0] < 0
        if leaf_1 and leaf_2:
            for i in range(tree_1.span[n1, 0], tree_1.span[n1, 1]):
                for j in range(tree_2.span[n2, 0], tree_2.span[n2, 1]):
                    _leaf_pairs(
                        topology, x, u, prim_1, prim_2, tree_1.order[i], tree_2.order[j],
                        reach, scratch, pairs, arrival, gaps, count,
                    )  # fmt: skip
        elif leaf_2 or (
            not leaf_1 and tree_1.span[n1, 1] - tree_1.span[n1, 0] >= tree_2.span[n2, 1] - tree_2.span[n2, 0]
        ):
            for c in range(2):
                top += 1
                stack[top, 0] = tree_1.children[n1, c]
                stack[top, 1] = n2
        else:
            for c in range(2):
                top += 1
                stack[top, 0] = n1
                stack[top, 1] = tree_2.children[n2, c]


@kernel
def query_plane(topology, x, u, start, stop, plane, reach, used, pairs, arrival, gaps, count):
    """Append the points start..stop-1 that may touch a half space; `used` masks points off the surface."""
    o, n = topology.planes[plane, 0:3], topology.planes[plane, 3:6]
    for p in range(start, stop):
        if not used[p]:
            continue
        height, speed = 0.0, 0.0
        for i in range(3):
            height += (x[p, i] - o[i]) * n[i]
            speed -= u[p, i] * n[i]
        speed = max(speed, 0.0)
        if height <= _travel(reach, speed):
            gap = height - reach.touch
            _emit(pairs, arrival, gaps, count, POINT_PLANE, p, plane, gap, _arrival(reach, gap, speed))


class BroadPhase:
    """Candidate pairs of a scene. Trees are built from the positions given at construction.

    `ignored` holds pairs of body numbers that never touch. `capacity` bounds the pairs; when it is
    exceeded the pairs that can touch last are dropped and counted in `dropped`, with `within` the farthest.
    `complete`: gap [m] below which the last `find` with `within` left none out.
    """

    def __init__(
        self,
        topology: Topology,
        x: NDArray[np.float64],
        capacity: int,
        alarm: float,
        acceleration: float,
        ignored: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self.topology, self.capacity = topology, capacity
        self.alarm, self.acceleration = alarm, acceleration
        self.dropped = 0
        self.complete = np.inf
        n_bodies = len(topology.body_role)
        self.primitives = [body_primitives(topology, b) for b in range(n_bodies)]
        self.trees = [build_tree(x[p.points].mean(axis=1)) for p in self.primitives]
        self.used = np.zeros(len(topology.point_body), bool)
        for primitives in self.primitives:
            self.used[primitives.points] = True
        self.first = np.searchsorted(topology.point_body, np.arange(n_bodies + 1)).astype(np.int64)
        self.body_pairs = [
            (a, b)
            for a in range(n_bodies)
            for b in range(a + 1, n_bodies)
            if len(self.primitives[a].points)
            and len(self.primitives[b].points)
            and not (topology.body_role[a] == STATIC and topology.body_role[b] == STATIC)
            and (a, b) not in ignored
        ]
        self.plane_pairs = [
            (b, k)
            for b in range(n_bodies)
            for k in range(len(topology.planes))
            if topology.body_role[b] != STATIC
            and (min(b, topology.plane_body[k]), max(b, topology.plane_body[k])) not in ignored
        ]
        self._make_room(8 * capacity)
        self._stack = np.zeros((4096, 2), np.int32)
        self._scratch = np.zeros((2, 3))
        for b, primitives in enumerate(self.primitives):
            if topology.body_role[b] == STATIC and len(primitives.points):
                refit(self.trees[b], primitives, x)

    def find(
        self,
        x: NDArray[np.float64],
        u: NDArray[np.float64],
        horizon: float,
        skin: float,
        within: float | None = None,
    ) -> tuple[Pairs, NDArray[np.float64], NDArray[np.float64]]:
        """Candidates for the next `horizon` seconds, or of gaps up to `within` [m]; sorted by kind and first.

        x, u: positions [m] and velocities [m/s] of all points, (n_points, 3). Also returns the earliest time
        [s] at which each pair can touch, (n,), 0 or less for those that do; and the gap [m] of each, (n,).
        """
        alarm = self.alarm if within is None else within
        count = self._query(x, u, horizon if within is None else 0.0, skin, alarm)
        while count[1]:
            # only with all of them at hand can the last be told
            self._make_room(int(2 * count.sum()))
            count = self._query(x, u, horizon if within is None else 0.0, skin, alarm)
        n = int(count[0])
        keep = np.arange(n)
        self.dropped = max(0, n - self.capacity)
        self.complete = np.inf if within is None else within
        if self.dropped:
            order = np.argpartition((self._arrival if within is None else self._gaps)[:n], self.capacity)
            keep = order[: self.capacity]
            if within is not None:
                self.complete = float(self._gaps[order[self.capacity]])
        keep = keep[np.lexsort((self._pairs.second[keep], self._pairs.first[keep], self._pairs.kind[keep]))]
        return Pairs(*(a[keep] for a in self._pairs)), self._arrival[keep], self._gaps[keep]

    def _make_room(self, n: int) -> None:
        self._pairs = Pairs(*(np.zeros(n, np.int32) for _ in range(3)))
        self._arrival = np.zeros(n)
        self._gaps = np.zeros(n)

    def _query(
        self, x: NDArray[np.float64], u: NDArray[np.float64], horizon: float, skin: float, alarm: float
    ) -> NDArray[np.int64]:
        """Fill the room with candidates; returns (candidates kept, candidates that found no room)."""
        topology = self.topology
        count = np.zeros(2, np.int64)
        speed = np.zeros(len(topology.body_role))
        np.maximum.at(speed, topology.point_body, np.sqrt((u**2).sum(axis=1)))
        for b, primitives in enumerate(self.primitives):
            if topology.body_role[b] != STATIC and len(primitives.points):
                refit(self.trees[b], primitives, x)
        for a, b in self.body_pairs:
            query_trees(
                topology, x, u, self.trees[a], self.primitives[a], self.trees[b], self.primitives[b],
                self._reach(a, b, horizon, skin, alarm), speed[a] + speed[b],
                self._stack, self._scratch, self._pairs, self._arrival, self._gaps, count,
            )  # fmt: skip
        for b, plane in self.plane_pairs:
            query_plane(
                topology, x, u, self.first[b], self.first[b + 1], plane,
                self._reach(b, topology.plane_body[plane], horizon, skin, alarm), self.used,
                self._pairs, self._arrival, self._gaps, count,
            )  # fmt: skip
        return count

    def _reach(self, a: int, b: int, horizon: float, skin: float, alarm: float) -> Reach:
        """What two bodies may do to each other until the candidates are next renewed."""
        radius = self.topology.body_radius
        return Reach(float(radius[a] + radius[b] + skin), alarm, self.acceleration, horizon)
