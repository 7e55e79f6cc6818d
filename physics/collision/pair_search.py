"""Which pairs of features come near each other, by trees of boxes; `physics.collision.broadphase` says when.

Nearer boxes come first, so that a search by gap costs what is near, however many pairs find no room.
"""

import numpy as np

from palpo.physics.collision.box_tree import box_distance2, high_corner, low_corner, refit_nodes
from palpo.physics.collision.closest import to_triangle, vector
from palpo.physics.collision.facing import BEFORE, BESIDE, faces, find_normals, may_face
from palpo.physics.collision.flipped import find_flipped
from palpo.physics.collision.kept_pairs import emit, fastest_against, leave_out_the_last, travel
from palpo.physics.collision.pair_gaps import facet_distance2, segment_distance2
from palpo.physics.collision.proximity_contacts import EDGE_EDGE, EDGE_FACET, POINT_PLANE, POINT_TRIANGLE
from palpo.physics.collision.topology import STATIC, kept_gap, meet_by_area
from palpo.physics.numerics.kernels import inlined, kernel


@inlined
def _try_point(s, p, t, touch):
    triangles = s.topology.triangles
    d2, _, _ = to_triangle(vector(s.x, p), s.x, triangles, t, s.scratch[0])
    s.count[0].looked_at += 1
    gap = d2**0.5 - touch
    speed = fastest_against(s.u, p, triangles[t], 0.0)
    if gap <= travel(s.settings[0], speed):
        emit(s, POINT_TRIANGLE, p, t, gap, speed)


@inlined
def _try_edges(s, e, f, touch):
    x, edges, near = s.x, s.topology.edges, s.scratch[0]
    a, b = edges[e, 0], edges[e, 1]
    c, g = edges[f, 0], edges[f, 1]
    d2 = segment_distance2(x, a, b, c, g, near)
    s.count[0].looked_at += 1
    gap = d2**0.5 - touch
    speed = fastest_against(s.u, a, edges[f], 0.0)
    speed = fastest_against(s.u, b, edges[f], speed)
    if gap <= travel(s.settings[0], speed):
        emit(s, EDGE_EDGE, e, f, gap, speed)


@inlined
def _try_facet(s, e, t, touch):
    edge, triangle = s.topology.edges[e], s.topology.triangles[t]
    s.count[0].looked_at += 1
    gap = facet_distance2(s.x, edge, s.topology.triangles, t, s.scratch[0]) ** 0.5 - touch
    speed = fastest_against(s.u, edge[1], triangle, fastest_against(s.u, edge[0], triangle, 0.0))
    if gap <= travel(s.settings[0], speed):
        emit(s, EDGE_FACET, e, t, gap, speed)


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
    most = _most(s, most) if a == b else travel(s.settings[0], most)
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
    return s.settings[0].own if s.settings[0].by_gap == 1 else travel(s.settings[0], speed)


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
    speed = fastest_against(s.u, p, triangles[t], 0.0)
    if d - touch > _most(s, speed) or before < BEFORE * (d - touch):
        return
    if to_triangle(vector(s.rest, p), s.rest, triangles, t, s.scratch[0])[0] > (BESIDE * touch) ** 2:
        emit(s, POINT_TRIANGLE, p, t, d - touch, speed)


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
        if height - touch <= travel(s.settings[0], speed):
            emit(s, POINT_PLANE, p, plane, height - touch, speed)


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
    find_flipped(s.flipped, topology.triangles, topology.triangle_edges, s.x)
    for k in range(s.planes.shape[0]):
        _search_plane(s, s.planes[k, 0], s.planes[k, 1])
    for k in range(s.bodies.shape[0]):
        _search_trees(s, s.bodies[k, 0], s.bodies[k, 1])
    for body in s.folding:
        first, stop = s.root[body], s.root[body + 1]
        find_normals(s.normals, s.tree, s.primitives, topology.triangles, s.x, first, stop)
        _search_trees(s, body, body)
    if s.count[0].found > s.gap.shape[0] // 2:
        leave_out_the_last(s, s.gap.shape[0] // 2)
