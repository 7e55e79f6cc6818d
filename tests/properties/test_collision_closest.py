"""Closest points of simplices against independent minimisation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palpo.physics.collision.closest import (
    AT_END,
    AT_START,
    EDGE_AB,
    EDGE_BC,
    EDGE_CA,
    FACE,
    INTERIOR,
    VERTEX_A,
    VERTEX_B,
    VERTEX_C,
    point_triangle,
    segment_segment,
    triangle_normal,
)

# on a lattice of millimetres, so that parallel, degenerate and touching cases are common
points = arrays(float, 3, elements=st.integers(-8, 8).map(lambda i: 0.125 * i))
# features: which weights vanish
ZEROS = {
    FACE: (), EDGE_AB: (2,), EDGE_BC: (0,), EDGE_CA: (1,),
    VERTEX_A: (1, 2), VERTEX_B: (0, 2), VERTEX_C: (0, 1),
}  # fmt: skip
ROUNDING = 1e-12  # lengths of order one, a few dozen operations, one square root


def distance_to_segment(p, a, b):
    along = b - a
    length2 = along @ along
    t = np.clip((p - a) @ along / length2, 0.0, 1.0) if length2 > 0.0 else 0.0
    return np.linalg.norm(p - a - t * along)


def stationary(edges, to):
    """Weights in [0, 1] of the unconstrained minimum of |edges w - to|, or None where it lies elsewhere."""
    w, *_ = np.linalg.lstsq(edges, to, rcond=None)
    return w if w.min() >= 0.0 and w.max() <= 1.0 else None


def distance_to_triangle(p, a, b, c):
    """The least of the stationary point inside and of the three edges: a convex problem has no other."""
    best = min(distance_to_segment(p, *ends) for ends in ((a, b), (b, c), (c, a)))
    edges = np.stack([b - a, c - a], axis=1)
    inner = stationary(edges, p - a)
    if inner is not None and inner.sum() <= 1.0:
        best = min(best, np.linalg.norm(edges @ inner - (p - a)))
    return best


def distance_of_segments(p0, p1, q0, q1):
    best = min(
        distance_to_segment(p0, q0, q1), distance_to_segment(p1, q0, q1),
        distance_to_segment(q0, p0, p1), distance_to_segment(q1, p0, p1),
    )  # fmt: skip
    edges = np.stack([p1 - p0, q0 - q1], axis=1)
    inner = stationary(edges, q0 - p0)
    return best if inner is None else min(best, np.linalg.norm(edges @ inner - (q0 - p0)))


@settings(max_examples=300, deadline=None)
@given(points, points, points, points)
def test_no_point_of_the_triangle_is_nearer_than_the_one_found(p, a, b, c):
    weights = np.empty(3)
    feature = point_triangle(p, a, b, c, weights)
    assert weights.min() >= -1e-15
    assert weights.sum() == pytest.approx(1.0, abs=1e-15)
    assert not weights[list(ZEROS[feature])].any()
    found = np.linalg.norm(p - weights @ np.stack([a, b, c]))
    assert found == pytest.approx(distance_to_triangle(p, a, b, c), abs=ROUNDING)


@settings(max_examples=300, deadline=None)
@given(points, points, points, points)
def test_no_points_of_two_segments_are_nearer_than_the_ones_found(p0, p1, q0, q1):
    st_ = np.empty(2)
    ends = segment_segment(p0, p1, q0, q1, st_)
    s, t = st_
    assert 0.0 <= s <= 1.0
    assert 0.0 <= t <= 1.0
    for value, end in zip(st_, ends, strict=True):
        assert end == (AT_START if value == 0.0 else AT_END if value == 1.0 else INTERIOR)
    found = np.linalg.norm(p0 + s * (p1 - p0) - q0 - t * (q1 - q0))
    assert found == pytest.approx(distance_of_segments(p0, p1, q0, q1), abs=ROUNDING)


@given(points, points, points)
def test_the_normal_is_a_unit_vector_across_both_sides_or_nothing(a, b, c):
    n = np.empty(3)
    triangle_normal(a, b, c, n)
    area = np.linalg.norm(np.cross(b - a, c - a))
    assert np.linalg.norm(n) == (0.0 if area == 0.0 else pytest.approx(1.0, abs=1e-14))
    assert abs(n @ (b - a)) < 1e-13
    assert abs(n @ (c - a)) < 1e-13
    assert n @ np.cross(b - a, c - a) >= 0.0


def test_a_closest_point_is_carried_by_the_feature_it_lies_on():
    a, b, c = np.eye(3)[[0, 1, 2]] * [2.0, 2.0, 0.0]
    weights = np.empty(3)
    cases = {
        (0.5, 0.5, 1.0): FACE, (3.0, 0.0, 0.1): VERTEX_A, (0.0, 3.0, 0.1): VERTEX_B,
        (-1.0, -1.0, 0.1): VERTEX_C, (2.0, 2.0, 0.0): EDGE_AB, (-1.0, 1.0, 0.0): EDGE_BC,
        (1.0, -1.0, 0.0): EDGE_CA,
    }  # fmt: skip
    for p, feature in cases.items():
        assert point_triangle(np.array(p), a, b, c, weights) == feature
