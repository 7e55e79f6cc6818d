"""Which pairs of features come near each other, by trees of boxes; `physics.collision.broadphase` says when.

When the room for candidates is full the last ones go, and nearer boxes come first, so that a search by gap
costs what is near.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.box_tree import (
    Primitives,
    Tree,
    box_distance2,
    high_corner,
    low_corner,
    refit_nodes,
)
from palpo.physics.collision.closest import segment_segment, to_triangle, vector
from palpo.physics.collision.facing import BEFORE, BESIDE, Normals, faces, find_normals, may_face
from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    EDGE_FACET,
    POINT_PLANE,
    POINT_TRIANGLE,
    Pairs,
)
from palpo.physics.collision.topology import STATIC, Topology, kept_gap, meet_by_area
from palpo.physics.numerics.kernels import inlined, kernel

SETTINGS = np.dtype(
    [*((name, np.float64) for name in ("skin", "alarm", "acceleration", "horizon", "own")), ("by_gap", "i8")]
)
"""Of a search: distance [m] that counts as touch; gap [m] up to which features are candidates even if they
do not move; most acceleration [m/s2]; time [s] until the next candidates; where only gaps count, that up to
which features of one body are candidates [m], and 1."""

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
    used: NDArray[np.bool_]  # (n_points,) points of primitives that may move
    bodies: NDArray[np.int32]  # (k, 2) bodies that may meet
    planes: NDArray[np.int32]  # (m, 2) bodies and half spaces that may meet
    folding: NDArray[np.int32]  # (f,) bodies that may touch themselves
    rest: NDArray[np.float64]  # (n_points, 3) [m] positions at rest, none where no body folds
    normals: Normals  # of those that fold
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
def _fastest_against(u, p, points, worst):
    """Largest relative speed [m/s] of the point p against any of `points`, not below `worst`."""
    for k in range(points.shape[0]):
        d0, d1, d2 = u[p, 0] - u[points[k], 0], u[p, 1] - u[points[k], 1], u[p, 2] - u[points[k], 2]
        worst = max(worst, (d0 * d0 + d1 * d1 + d2 * d2) ** 0.5)
    return worst


@inlined
def _travel(settings, speed):
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
def _leave_out_the_last(s, capacity):
    """Keep the first `capacity` candidates by rank, of equal ones those that were found first."""
    n, by_gap = s.count[0].found, s.settings[0].by_gap == 1
    rank = s.gap if by_gap else s.arrival
    limit = np.partition(rank[:n], capacity)[capacity]
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


@kernel
def _emit(s, kind, first, second, gap, speed):
    """A candidate, unless it comes after all that there is room for."""
    if _is_joined(s, kind, first, second):
        return
    time = _arrival(s.settings[0], gap, speed)
    if (gap if s.settings[0].by_gap == 1 else time) >= s.limit[0]:
        s.count[0].dropped += 1
        return
    if s.count[0].found == s.gap.shape[0]:
        _leave_out_the_last(s, s.gap.shape[0] // 2)
    k = s.count[0].found
    s.pairs.kind[k], s.pairs.first[k], s.pairs.second[k] = kind, first, second
    s.arrival[k], s.gap[k] = time, gap
    s.count[0].found = k + 1


@inlined
def _try_point(s, p, t, touch):
    triangles = s.topology.triangles
    d2, _, _ = to_triangle(vector(s.x, p), s.x, triangles, t, s.scratch[0])
    s.count[0].looked_at += 1
    gap = d2**0.5 - touch
    speed = _fastest_against(s.u, p, triangles[t], 0.0)
    if gap <= _travel(s.settings[0], speed):
        _emit(s, POINT_TRIANGLE, p, t, gap, speed)


@inlined
def _try_edges(s, e, f, touch):
    x, edges, near = s.x, s.topology.edges, s.scratch[0]
    a, b = edges[e, 0], edges[e, 1]
    c, g = edges[f, 0], edges[f, 1]
    segment_segment(x[a], x[b], x[c], x[g], near)
    d2 = 0.0
    for i in range(3):
        d2 += (x[a, i] + near[0] * (x[b, i] - x[a, i]) - x[c, i] - near[1] * (x[g, i] - x[c, i])) ** 2
    s.count[0].looked_at += 1
    gap = d2**0.5 - touch
    speed = _fastest_against(s.u, a, edges[f], 0.0)
    speed = _fastest_against(s.u, b, edges[f], speed)
    if gap <= _travel(s.settings[0], speed):
        _emit(s, EDGE_EDGE, e, f, gap, speed)


@kernel
def _segment_triangle(s, e, t):
    """Squared distance [m2] of edge e from triangle t, as long as it does not pierce it."""
    x, edges, triangles, near = s.x, s.topology.edges, s.topology.triangles, s.scratch[0]
    a, b = edges[e, 0], edges[e, 1]
    least = to_triangle(vector(x, a), x, triangles, t, near)[0]
    if a == b:
        return least
    least = min(least, to_triangle(vector(x, b), x, triangles, t, near)[0])
    for k in range(3):
        c, g = triangles[t, k], triangles[t, (k + 1) % 3]
        segment_segment(x[a], x[b], x[c], x[g], near)
        d2 = 0.0
        for i in range(3):
            d2 += (x[a, i] + near[0] * (x[b, i] - x[a, i]) - x[c, i] - near[1] * (x[g, i] - x[c, i])) ** 2
        least = min(least, d2)
    return least


@inlined
def _try_facet(s, e, t, touch):
    edge, triangle = s.topology.edges[e], s.topology.triangles[t]
    s.count[0].looked_at += 1
    gap = _segment_triangle(s, e, t) ** 0.5 - touch
    speed = _fastest_against(s.u, edge[1], triangle, _fastest_against(s.u, edge[0], triangle, 0.0))
    if gap <= _travel(s.settings[0], speed):
        _emit(s, EDGE_FACET, e, t, gap, speed)


@kernel
def _leaf_facets(s, i, j, touch):
    """A thick edge and a facet that meet by area."""
    own = s.primitives
    if own.triangle[i] >= 0:
        i, j = j, i
    _try_facet(s, own.own_edges[i, 0], own.triangle[j], touch)


@kernel
def _leaf_pairs(s, i, j, touch):
    """The features that primitives i and j answer for."""
    own = s.primitives
    edges = s.topology.edges
    t1, t2 = own.triangle[i], own.triangle[j]
    for k in range(3):
        if t2 >= 0 and own.own_points[i, k] >= 0:
            _try_point(s, own.own_points[i, k], t2, touch)
        if t1 >= 0 and own.own_points[j, k] >= 0:
            _try_point(s, own.own_points[j, k], t1, touch)
    for k in range(3):
        e = own.own_edges[i, k]
        if e < 0:
            continue
        for m in range(3):
            f = own.own_edges[j, m]
            if f < 0:
                continue
            # a degenerate edge is the single point of a round tip: against faces, the point stands for it
            if edges[e, 0] == edges[e, 1] and t2 >= 0:
                continue
            if edges[f, 0] == edges[f, 1] and t1 >= 0:
                continue
            if (s.blunt[e] and t2 >= 0) or (s.blunt[f] and t1 >= 0):
                continue
            if t1 >= 0 and t2 < 0:
                _try_edges(s, f, e, touch)
            else:
                _try_edges(s, e, f, touch)


@kernel
def _push_nearest_last(s, top, one, two, split_one):
    """Put the pairs of node `one`'s children with node `two`, or the other way round, on the stack."""
    children, box = s.tree.children, s.tree.box
    node, other = (one, two) if split_one else (two, one)
    left, right = children[node, 0], children[node, 1]
    near, far = left, right
    low, high = low_corner(box, other), high_corner(box, other)
    if box_distance2(box, right, low, high) < box_distance2(box, left, low, high):
        near, far = right, left
    for k in range(2):
        child = far if k == 0 else near
        s.stack[top + k, 0] = child if split_one else other
        s.stack[top + k, 1] = other if split_one else child


@kernel
def _search_trees(s, a, b):
    """Candidate pairs of two bodies, or of one with itself."""
    tree, order, box = s.tree, s.tree.order, s.tree.box
    radius = s.topology.body_radius
    touch = radius[a] + radius[b] + kept_gap(s.topology, a, b, s.settings[0].skin)
    most, by_gap = s.speed[a] + s.speed[b], s.settings[0].by_gap == 1
    most = _most(s, most) if a == b else _travel(s.settings[0], most)
    by_area = meet_by_area(s.topology, a, b) or meet_by_area(s.topology, b, a)
    s.stack[0, 0], s.stack[0, 1] = s.root[a], s.root[b]
    top = 1
    while top > 0:
        top -= 1
        n1, n2 = s.stack[top, 0], s.stack[top, 1]
        if a == b and not may_face(s.normals, n1, n2):
            continue
        reach = touch + (min(most, s.limit[0]) if by_gap else most)
        if box_distance2(box, n1, low_corner(box, n2), high_corner(box, n2)) > max(reach, 0.0) ** 2:
            continue
        leaf_1, leaf_2 = tree.children[n1, 0] < 0, tree.children[n2, 0] < 0
        if leaf_1 and leaf_2:
            for i in range(tree.span[n1, 0], tree.span[n1, 1]):
                for j in range(i + 1 if n1 == n2 else tree.span[n2, 0], tree.span[n2, 1]):
                    if a == b:
                        _leaf_folds(s, order[i], order[j], touch)
                    elif by_area:
                        _leaf_facets(s, order[i], order[j], touch)
                    else:
                        _leaf_pairs(s, order[i], order[j], touch)
        elif n1 == n2:
            left, right = tree.children[n1, 0], tree.children[n1, 1]
            for k in range(3):
                s.stack[top + k, 0] = right if k == 1 else left
                s.stack[top + k, 1] = left if k == 2 else right
            top += 3
        else:
            size_1, size_2 = tree.span[n1, 1] - tree.span[n1, 0], tree.span[n2, 1] - tree.span[n2, 0]
            _push_nearest_last(s, top, n1, n2, leaf_2 or (not leaf_1 and size_1 >= size_2))
            top += 2


@inlined
def _most(s, speed):
    """Gap [m] up to which features of one body that close at `speed` [m/s] are candidates."""
    return s.settings[0].own if s.settings[0].by_gap == 1 else _travel(s.settings[0], speed)


@inlined
def _fold_point(s, p, t, touch):
    """A point of a body before one of its own triangles, unless they are that near at rest."""
    triangles, a, before = s.topology.triangles, s.topology.triangles[t, 0], 0.0
    for i in range(3):
        before += s.normals.face[t, i] * (s.x[p, i] - s.x[a, i])
    s.count[0].looked_at += 1
    if before < -touch:
        return
    d = to_triangle(vector(s.x, p), s.x, triangles, t, s.scratch[0])[0] ** 0.5
    speed = _fastest_against(s.u, p, triangles[t], 0.0)
    if d - touch > _most(s, speed) or before < BEFORE * (d - touch):
        return
    if to_triangle(vector(s.rest, p), s.rest, triangles, t, s.scratch[0])[0] > (BESIDE * touch) ** 2:
        _emit(s, POINT_TRIANGLE, p, t, d - touch, speed)


@kernel
def _leaf_folds(s, i, j, touch):
    """Points of each of two triangles of a body that face each other, and the other one."""
    points, t1, t2 = s.primitives.points, s.primitives.triangle[i], s.primitives.triangle[j]
    if faces(s.normals, t1, t2):
        for k in range(3):
            _fold_point(s, points[i, k], t2, touch)
            _fold_point(s, points[j, k], t1, touch)


@kernel
def _search_plane(s, body, plane):
    """The points of a body that may touch a half space."""
    o, n = s.topology.planes[plane, 0:3], s.topology.planes[plane, 3:6]
    radius = s.topology.body_radius
    touch = radius[body] + radius[s.topology.plane_body[plane]] + s.settings[0].skin
    for p in range(s.first[body], s.first[body + 1]):
        if not s.used[p]:
            continue
        height, speed = 0.0, 0.0
        for i in range(3):
            height += (s.x[p, i] - o[i]) * n[i]
            speed -= s.u[p, i] * n[i]
        speed = max(speed, 0.0)
        if height - touch <= _travel(s.settings[0], speed):
            _emit(s, POINT_PLANE, p, plane, height - touch, speed)


@kernel
def search(s):
    """Fill the room of a Search with candidates, at most half of it."""
    u, topology = s.u, s.topology
    s.count[0].found = s.count[0].dropped = s.count[0].looked_at = 0
    s.limit[0] = np.inf
    s.speed[:] = 0.0
    for p in range(u.shape[0]):
        squares = u[p, 0] * u[p, 0] + u[p, 1] * u[p, 1] + u[p, 2] * u[p, 2]
        body = topology.point_body[p]
        s.speed[body] = max(s.speed[body], squares**0.5)
    for body in range(s.speed.size):
        if topology.body_role[body] != STATIC:
            refit_nodes(s.tree, s.primitives.points, s.x, s.root[body], s.root[body + 1])
    for k in range(s.planes.shape[0]):
        _search_plane(s, s.planes[k, 0], s.planes[k, 1])
    for k in range(s.bodies.shape[0]):
        _search_trees(s, s.bodies[k, 0], s.bodies[k, 1])
    for body in s.folding:
        first, stop = s.root[body], s.root[body + 1]
        find_normals(s.normals, s.tree, s.primitives, topology.triangles, s.x, first, stop)
        _search_trees(s, body, body)
    if s.count[0].found > s.gap.shape[0] // 2:
        _leave_out_the_last(s, s.gap.shape[0] // 2)
