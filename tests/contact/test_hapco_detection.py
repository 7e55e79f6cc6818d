"""Detection between two deforming surfaces: closest points, smoothed normals, creases, edges, anchors."""

import numpy as np
import pytest

from palpo.physics.collision.closest import point_triangle
from palpo.physics.collision.contact_surface import (
    contact_surface,
    crease_at,
    crease_normal,
    faceted_normal,
    search,
    smooth_normal,
    walk,
)
from palpo.physics.collision.mobile_contacts import make_contacts, make_tracker, mobile_features
from palpo.physics.collision.mobile_vertices import find_contacts, hold_on, locate
from palpo.physics.contact.anchors import find_anchor, make_anchors
from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.mesh.generate import box_surface, sphere_surface
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError

BALL = sphere_surface(0.01, 2)
BOX = box_surface((0.04, 0.02, 0.03), (4, 2, 3))
EYE = np.eye(3)


def of(mesh):
    """Surface, positions."""
    return contact_surface(mesh, np.arange(len(mesh.vertices), dtype=np.int32)), mesh.vertices.copy()


def closest_of_all(mesh, p):
    """Distance of p from the mesh by looking at every triangle."""
    best, w = np.inf, np.zeros(3)
    for t in mesh.triangles:
        point_triangle(p, *mesh.vertices[t], w)
        best = min(best, np.linalg.norm(p - w @ mesh.vertices[t]))
    return best


def outside(mesh, n, seed=0):
    rng = np.random.default_rng(seed)
    d = rng.standard_normal((n, 3))
    return 2.5 * np.abs(mesh.vertices).max() * d / np.linalg.norm(d, axis=1)[:, None]


@pytest.mark.parametrize("mesh", [BALL, BOX], ids=["ball", "box"])
def test_a_walk_over_a_convex_surface_ends_at_the_closest_point(mesh):
    surface, x = of(mesh)
    w, trial = np.zeros(3), np.zeros(3)
    for k, p in enumerate(outside(mesh, 50)):
        t = walk(surface, x, tuple(p), (37 * k) % len(surface.triangles), w, trial)
        found = np.linalg.norm(p - w @ x[surface.triangles[t]])
        assert found == pytest.approx(closest_of_all(mesh, p), rel=1e-9)


def test_a_search_finds_the_closest_triangle_wherever_it_starts_and_leaves_what_is_held():
    surface, x = of(BOX)
    rng = np.random.default_rng(1)
    points = rng.uniform(-0.03, 0.03, (40, 3))  # inside too, where a walk may stop at another face
    triangle = rng.integers(0, len(surface.triangles), 40).astype(np.int32)
    held = np.where(np.arange(40) % 4 == 0, 0, -1).astype(np.int32)
    before = triangle.copy()
    search(surface, x, points, held, 30, 25, triangle, np.zeros(40), np.zeros((2, 3)))
    w = np.zeros(3)
    for k in range(40):
        point_triangle(points[k], *x[surface.triangles[triangle[k]]], w)
        distance = np.linalg.norm(points[k] - w @ x[surface.triangles[triangle[k]]])
        turn = (k - 30) % 40 < 25 and held[k] < 0
        if turn:
            assert distance == pytest.approx(closest_of_all(BOX, points[k]), rel=1e-12)
        else:
            assert triangle[k] == before[k]


def test_smoothed_normals_of_a_ball_are_radial_everywhere():
    """Exact at vertices on a sphere (Max 1999); and the mean of radii is the radius of the mean."""
    surface, x = of(BALL)
    n, face = np.zeros(3), np.zeros(3)
    for t in range(len(surface.triangles)):
        for w in (*EYE, np.array([0.5, 0.3, 0.2])):
            smooth_normal(surface, x, t, w, n, face)
            p = w @ x[surface.triangles[t]]
            np.testing.assert_allclose(n, p / np.linalg.norm(p), atol=1e-12)


def test_the_faces_of_a_box_stay_flat_up_to_their_rims():
    surface, x = of(BOX)
    n, m, face = np.zeros(3), np.zeros(3), np.zeros(3)
    for t in range(len(surface.triangles)):
        faceted_normal(surface, x, t, m)
        for w in (*EYE, np.array([0.5, 0.5, 0.0])):
            smooth_normal(surface, x, t, w, n, face)
            np.testing.assert_allclose(n, m, atol=1e-12)


def test_ridges_are_the_twelve_edges_of_a_box_and_none_of_a_ball():
    surface, x = of(BOX)
    ends = x[surface.edges[surface.ridge]]
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).sum()
    assert length == pytest.approx(4 * (0.04 + 0.02 + 0.03), rel=1e-12) and not surface.concave.any()
    ball, _ = of(BALL)
    assert ball.ridge.size == 0 and not ball.sharp.any()


def test_a_corner_s_normal_weighs_faces_by_their_angle_however_they_are_cut_and_numbered():
    """Three right angles meet at a box's corner: the normal is the diagonal (Baerentzen 2005)."""
    cube = box_surface((0.02, 0.02, 0.02))
    for turn in range(3):
        surface, x = of(SurfaceMesh.from_triangles(cube.vertices, np.roll(cube.triangles, turn, axis=1)))
        for t, corners in enumerate(surface.triangles):
            for j, corner in enumerate(corners):
                n, face = np.zeros(3), np.zeros(3)
                crease_normal(surface, x, t, 4 + j, n, face)
                np.testing.assert_allclose(n, np.sign(x[corner]) / np.sqrt(3.0), atol=1e-12)


def test_a_groove_is_no_ridge():
    """A strip bent upwards: its inner edge is concave, its borders are ridges."""
    vertices = np.array([[-1, 1, 0], [-1, 1, 1], [0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]], float)
    mesh = SurfaceMesh.from_triangles(vertices, [[0, 1, 2], [1, 3, 2], [2, 3, 4], [3, 5, 4]])
    surface, _ = of(mesh)
    inner = [set(e) for e in surface.edges[surface.concave]]
    assert inner == [{2, 3}] and surface.ridge.size == 6


def probe(mesh, points, tolerance=np.inf, faceted=False, edges=None):
    """Contacts of one vertex at each of points in turn, with coherence; rows of (gap, normal)."""
    surface, x = of(mesh)
    tool = box_surface((2e-3, 2e-3, 2e-3))
    shape = contact_surface(tool, np.arange(8, dtype=np.int32))
    features = mobile_features(shape, [0], edges=False)
    tracker, anchors, contacts = make_tracker(features), make_anchors(1, 4), make_contacts(4)
    rows, first = [], True
    for p in points:
        x_1 = np.zeros((8, 3)) + p
        if first:
            locate(features, x_1, surface, x, anchors, tracker, 1)
            first = False
        find_contacts(features, x_1, surface, x, EYE, tolerance, 0.0, faceted, anchors, tracker, contacts)
        n = contacts.count[0]["found"]
        rows.append(np.r_[contacts.gap[0], contacts.frame[0, 0]] if n else np.full(4, np.nan))
    return np.array(rows)


def test_the_normal_turns_continuously_over_a_ball_where_facets_jump():
    angle = np.linspace(0.0, 1.5, 3001)
    path = 0.0101 * np.stack([np.cos(angle), np.sin(angle), 0.3 + 0 * angle], axis=1)
    steps = {
        faceted: np.linalg.norm(np.diff(probe(BALL, path, faceted=faceted)[:, 1:], axis=0), axis=1).max()
        for faceted in (False, True)
    }
    # the path turns by 5e-4 a step; the smoothed normal by some times that, the facets by their own angle
    assert steps[False] < 4e-3 and steps[True] > 0.1


def test_beside_and_below_a_rim_a_vertex_is_outside():
    """Next to the box's side, below its top: the nearest point is on a face or a crease, the gap positive."""
    rng = np.random.default_rng(2)
    half = np.array([0.02, 0.01, 0.015])
    points = rng.uniform(-1.5, 1.5, (400, 3)) * half
    for p, row in zip(points, np.concatenate([probe(BOX, [p]) for p in points]), strict=True):
        beyond = np.maximum(np.abs(p) - half, 0.0)
        if beyond.any():
            # a crease is rounded by a thousandth of its edge
            assert row[0] == pytest.approx(np.linalg.norm(beyond), rel=1e-2, abs=1e-9)
            assert row[1:] @ (np.sign(p) * beyond) > 0.0
        else:
            assert row[0] == pytest.approx((np.abs(p) - half).max(), abs=1e-12)


def test_a_vertex_farther_than_the_tolerance_is_no_contact():
    rows = probe(BOX, [[0.0, 0.012, 0.0], [0.0, 0.0105, 0.0]], tolerance=1e-3)
    assert np.isnan(rows[0, 0]) and rows[1, 0] == pytest.approx(5e-4)


def test_crossed_edges_touch_with_the_common_normal_and_their_gap():
    """A beam's lower edge turned by 90 degrees over a box's upper rim, vertices far from both."""
    fixed, x_2 = of(box_surface((0.04, 0.02, 0.03)))
    beam = box_surface((0.06, 0.004, 0.004))
    shape = contact_surface(beam, np.arange(8, dtype=np.int32))
    features = mobile_features(shape, np.arange(8))
    tilt = np.array([[1.0, 0, 0], [0, np.sqrt(0.5), -np.sqrt(0.5)], [0, np.sqrt(0.5), np.sqrt(0.5)]])
    low = np.sqrt(0.5) * 0.004
    for gap in (3e-4, -2e-4):
        x_1 = beam.vertices @ tilt.T + [0.03, 0.01 + low + gap, 0.0]
        tracker, anchors, contacts = make_tracker(features), make_anchors(8, 64), make_contacts(64)
        locate(features, x_1, fixed, x_2, anchors, tracker, 8)
        find_contacts(features, x_1, fixed, x_2, EYE, 1e-6, 1e-3, False, anchors, tracker, contacts)
        touching = [k for k in range(contacts.count[0]["found"]) if contacts.triangle[k] < 0]
        assert touching
        for k in touching:
            np.testing.assert_allclose(contacts.frame[k, 0], [0.0, 1.0, 0.0], atol=1e-12)
            assert contacts.gap[k] == pytest.approx(gap, abs=1e-12)
            for side, x in enumerate((x_1, x_2)):
                assert contacts.weights[side, k].sum() == pytest.approx(1.0)
                assert np.isfinite(contacts.weights[side, k] @ x[contacts.slots[side, k]]).all()


def test_contacts_without_room_are_those_of_one_search_and_not_of_the_last():
    fixed, x_2 = of(box_surface((0.04, 0.02, 0.03)))
    beam = box_surface((0.02, 0.01, 0.01))
    features = mobile_features(contact_surface(beam, np.arange(8, dtype=np.int32)), np.arange(8), edges=False)
    tracker, anchors, contacts = make_tracker(features), make_anchors(8, 1), make_contacts(1)
    lost = []
    for height in (0.015, 0.015, 0.03):
        x_1 = beam.vertices + np.array([0.0, height, 0.0])
        if not lost:
            locate(features, x_1, fixed, x_2, anchors, tracker, 8)
        find_contacts(features, x_1, fixed, x_2, EYE, 1e-4, 0.0, False, anchors, tracker, contacts)
        lost.append(int(contacts.count[0]["lost"]))
    # four corners stand on the box, and there is room for one
    assert lost == [3, 3, 0]


def test_what_sticks_keeps_its_point_and_what_slides_is_anchored_where_it_went():
    surface, x_2 = of(BOX)
    tool = box_surface((2e-3, 2e-3, 2e-3))
    features = mobile_features(contact_surface(tool, np.arange(8, dtype=np.int32)), [0], edges=False)
    tracker, anchors, contacts = make_tracker(features), make_anchors(1, 2), make_contacts(2)

    def at(x, status):
        x_1 = np.tile([x, 0.01, 0.001], (8, 1))
        find_contacts(features, x_1, surface, x_2, EYE, np.inf, 0.0, False, anchors, tracker, contacts)
        point = contacts.weights[1, 0] @ x_2[contacts.slots[1, 0]]
        hold_on(
            contacts, np.array([[0.0, 1.0, 0.0]]), np.array([status], np.int32), x_1, surface, x_2, EYE,
            anchors, tracker,
        )  # fmt: skip
        return point[0], contacts.remainder[0, 0], float(x_1[0, 0])

    locate(features, np.tile([0.0, 0.01, 0.001], (8, 1)), surface, x_2, anchors, tracker, 1)
    at(0.0005, STICK)
    point, remainder, x = at(0.0015, STICK)
    assert point == pytest.approx(0.0005) and remainder == pytest.approx(0.0)
    point, remainder, x = at(0.002, SLIP)
    assert point == pytest.approx(0.0005)
    assert anchors.count[0] == 1 and find_anchor(anchors, 0) == 0
    # it slid to 0.002: from there the slip counts, wherever its partner point is now
    point, remainder, x = at(0.006, STICK)
    assert x - point - remainder == pytest.approx(0.004)
    at(0.006, OPEN)
    assert anchors.count[0] == 0 and find_anchor(anchors, 0) == -1


def test_the_crease_of_a_point_is_told_by_its_weights():
    surface, x = of(BOX)
    for t in range(len(surface.triangles)):
        assert crease_at(surface, t, np.array([0.2, 0.3, 0.5])) == 0
        for j in range(3):
            w = np.zeros(3)
            w[j] = w[(j + 1) % 3] = 0.5
            ends = x[surface.triangles[t, [j, (j + 1) % 3]]]
            on_rim = (np.isclose(np.abs(ends), [0.02, 0.01, 0.015]).all(axis=0)).sum() >= 2
            assert (crease_at(surface, t, w) == 1 + j) == on_rim


def test_contact_vertices_that_are_none_or_named_twice_are_refused():
    surface, _ = of(BOX)
    for vertices, words in (([], "at least one"), ([10**6], "slots 0 to"), ([1, 1], "named twice")):
        with pytest.raises(InputError, match=words):
            mobile_features(surface, vertices)
