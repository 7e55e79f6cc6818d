"""Points and segments in a triangle: the pieces tile it exactly and carry every segment."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physics.suction.split import GRID, make_split, snap, split_triangle

CORNERS = np.array([[0, 0], [GRID, 0], [0, GRID]])


def split(weights, segments):
    """Triangles, fixed flags, representatives and exact grid coordinates of all points."""
    weights = np.array(weights, float).reshape(-1, 3)
    segments = np.array(segments, np.int64).reshape(-1, 2)
    for w in weights:
        snap(w)
    work = make_split(len(weights))
    count, lost = split_triangle(weights, len(weights), segments, len(segments), work)
    points = np.concatenate([CORNERS, (weights[:, 1:] * GRID).astype(np.int64)])
    return work.triangles[:count], work.fixed[:count], work.same_as, points, lost


def doubled_areas(triangles, points):
    """In grid steps, in Python's integers: no rounding and no overflow."""
    areas = []
    for a, b, c in points[triangles].tolist():
        areas.append((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
    return areas


def sides(triangles):
    return [tuple(s) for t in triangles.tolist() for s in zip(t, t[1:] + t[:1], strict=True)]


def assert_tiles(triangles, same_as, points):
    """Positive pieces of the whole area whose inner edges are each run once either way cover it once."""
    areas = doubled_areas(triangles, points)
    assert min(areas) > 0
    assert sum(areas) == GRID * GRID
    half = sides(triangles)
    assert len(set(half)) == len(half)
    on_hull = [
        any(p == 0 and q == 0 for p, q in zip(_weights(points[a]), _weights(points[b]), strict=True))
        for a, b in half
    ]
    for (a, b), outer in zip(half, on_hull, strict=True):
        assert ((b, a) in half) != outer
    assert set(triangles.ravel().tolist()) == set(same_as.tolist())


def _weights(point):
    return (GRID - point[0] - point[1], point[0], point[1])


def assert_carries(segment, triangles, fixed, same_as, points):
    """The fixed edges on a segment run from its one end to its other."""
    half = sides(triangles)
    marked = {s for s, f in zip(half, fixed.ravel().tolist(), strict=True) if f}
    assert all((b, a) in marked for a, b in marked if (b, a) in half)
    marked |= {(b, a) for a, b in marked}
    a, b = (int(same_as[k]) for k in segment)
    way = (points[b] - points[a]).tolist()
    while a != b:
        onward = [
            q
            for p, q in marked
            if p == a and _cross(way, (points[q] - points[a]).tolist()) == 0
            and np.dot(way, (points[q] - points[a]).astype(float)) > 0
        ]  # fmt: skip
        assert len(onward) == 1
        a = onward[0]


def _cross(u, v):
    return u[0] * v[1] - u[1] * v[0]


def on_edge(edge, t):
    w = np.zeros(3)
    w[edge], w[(edge + 1) % 3] = 1.0 - t, t
    return w


def ring(centre, radius, n, phase=0.0):
    angle = phase + 2 * np.pi * np.arange(n) / n
    u, v = centre[0] + radius * np.cos(angle), centre[1] + radius * np.sin(angle)
    return np.stack([1 - u - v, u, v], axis=1)


def loop(first, n):
    return [(first + i, first + (i + 1) % n) for i in range(n)]


def test_a_polyline_from_edge_to_edge_splits_the_triangle_exactly():
    weights = [on_edge(0, 0.3), (0.4, 0.3, 0.3), (0.2, 0.2, 0.6), on_edge(1, 0.8)]
    segments = [(3, 4), (4, 5), (5, 6)]
    triangles, fixed, same_as, points, lost = split(weights, segments)
    assert lost == 0
    assert_tiles(triangles, same_as, points)
    for segment in segments:
        assert_carries(segment, triangles, fixed, same_as, points)


def test_two_nested_loops_and_a_chain_in_one_triangle_all_become_edges():
    outer, inner = ring((0.33, 0.33), 0.2, 40), ring((0.33, 0.33), 0.05, 17, 0.1)
    chain = [on_edge(0, 0.05), (0.9, 0.04, 0.06), on_edge(2, 0.9)]
    segments = loop(3, 40) + loop(43, 17) + [(60, 61), (61, 62)]
    triangles, fixed, same_as, points, lost = split([*outer, *inner, *chain], segments)
    assert lost == 0
    assert_tiles(triangles, same_as, points)
    for segment in segments:
        assert_carries(segment, triangles, fixed, same_as, points)


def test_the_area_inside_a_loop_is_the_pieces_that_its_segments_enclose():
    polygon = ring((0.3, 0.4), 0.17, 24)
    triangles, fixed, _, points, _ = split(polygon, loop(3, 24))
    half = sides(triangles)
    # flood from the hull without crossing a segment
    outside, front = set(), [0]
    while front:
        t = front.pop()
        if t in outside:
            continue
        outside.add(t)
        for j in range(3):
            a, b = half[3 * t + j]
            if not fixed[t, j] and (b, a) in half:
                front.append(half.index((b, a)) // 3)
    assert 0 in triangles[0]
    inside = [a for t, a in enumerate(doubled_areas(triangles, points)) if t not in outside]
    x, y = (points[3:, i].tolist() for i in range(2))
    assert sum(inside) == sum(x[i - 1] * y[i] - x[i] * y[i - 1] for i in range(24))


def test_a_segment_through_a_point_is_cut_there_and_coincident_points_are_one():
    weights = [on_edge(0, 0.5), (0.25, 0.25, 0.5), (0.25, 0.25, 0.5), (0.0, 0.0, 1.0)]
    triangles, fixed, same_as, points, lost = split(weights, [(3, 6), (5, 0)])
    assert lost == 0
    assert same_as.tolist() == [0, 1, 2, 3, 4, 4, 2]
    assert_tiles(triangles, same_as, points)
    for segment in [(3, 4), (4, 2), (0, 4)]:
        assert_carries(segment, triangles, fixed, same_as, points)


def test_a_segment_across_an_earlier_one_is_counted_lost_and_the_pieces_still_tile():
    weights = [on_edge(0, 0.5), on_edge(1, 0.5), on_edge(2, 0.5)]
    triangles, fixed, same_as, points, lost = split(weights, [(0, 4), (3, 5), (1, 5)])
    assert lost == 2
    assert_tiles(triangles, same_as, points)
    assert_carries((0, 4), triangles, fixed, same_as, points)


def test_without_room_the_triangle_stays_whole_and_its_segments_are_counted_lost():
    work = make_split(1)
    weights = np.tile([0.25, 0.25, 0.5], (2, 1))
    assert split_triangle(weights, 2, np.array([[3, 4]]), 1, work) == (1, 1)
    assert work.triangles[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("edge", range(3))
@given(t=st.floats(0.0, 1.0))
@settings(max_examples=50)
def test_two_triangles_snap_a_point_of_their_common_edge_alike(edge, t):
    w, turned = on_edge(edge, t), np.roll(on_edge(edge, t)[::-1], 1)
    snap(w), snap(turned)
    assert w.sum() == 1.0
    # a tie of the rounding may fall either way, by one step
    np.testing.assert_allclose(np.roll(turned[::-1], 1 - 3), w, atol=1.0 / GRID)
    assert w[(edge + 2) % 3] == 0.0


@given(data=st.data())
@settings(max_examples=150)
def test_any_points_and_segments_tile_the_triangle_exactly_and_segments_end_as_edges(data):
    # a coarse lattice makes coincident points, points on edges and collinear triples frequent
    steps = data.draw(st.sampled_from([4, 7, 1000, 10**8]))
    lattice = st.tuples(st.integers(0, steps), st.integers(0, steps)).filter(lambda p: sum(p) <= steps)
    drawn = np.array(data.draw(st.lists(lattice, min_size=1, max_size=25)), float) / steps
    weights = np.column_stack([1.0 - drawn.sum(axis=1), drawn])
    weights[np.isclose(weights, 0.0, atol=1e-12)] = 0.0
    ends = st.integers(0, len(weights) + 2)
    segments = data.draw(st.lists(st.tuples(ends, ends), max_size=8))
    triangles, fixed, same_as, points, lost = split(weights, segments)
    assert_tiles(triangles, same_as, points)
    if lost == 0:
        for segment in segments:
            assert_carries(segment, triangles, fixed, same_as, points)
