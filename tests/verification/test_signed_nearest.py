"""The distance to a surface of triangles that moves, against a closed one's, and where a surface ends."""

import numpy as np
import pytest

from palpo.physics.collision.distance_field import exact_field, signed_distance
from palpo.physics.collision.nearest import make_descent, signed_nearest, target
from palpo.physics.collision.surface_points import border_of, edge_points
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.systems.snap.connectors.registry import generate

REACH = 2e-3


def test_it_is_the_signed_distance_of_a_closed_surface_and_its_way_leads_to_it():
    plug = generate("cap").plug
    rng = np.random.default_rng(3)
    seen = plug.vertices[rng.integers(len(plug.vertices), size=400)] + 4e-4 * rng.normal(size=(400, 3))
    exact, _ = signed_distance(exact_field(plug, REACH), seen)
    x, surface, descent = np.ascontiguousarray(plug.vertices), target(plug), make_descent()
    weights, way = np.zeros(3), np.zeros(3)
    for p, told in zip(seen, exact, strict=True):
        gap, t = signed_nearest(surface, x, tuple(p), -1, REACH, weights, way, descent)
        assert gap == pytest.approx(told, abs=1e-12)
        foot = weights @ x[plug.triangles[t]]
        np.testing.assert_allclose(foot + gap * way, p, atol=1e-12)
        assert np.linalg.norm(way) == pytest.approx(1.0)


def test_beyond_its_reach_it_is_its_reach():
    one = SurfaceMesh.patch(np.eye(3), np.array([[0, 1, 2]]))
    found = signed_nearest(
        target(one), np.eye(3), (5.0, 5.0, 5.0), -1, 1.0, np.zeros(3), np.zeros(3), make_descent()
    )
    assert found == (1.0, -1)


def test_a_square_ends_at_its_four_sides_and_not_at_its_diagonal():
    border = border_of(np.array([[0, 1, 2], [0, 2, 3]]))
    assert border.tolist() == [[True, False, True], [True, True, False]]


def test_edges_are_where_a_plug_stands_out():
    """Of the stopper, whose neck is drawn in: none there, but on its bead and its rim."""
    plug = generate("cap").plug
    points = edge_points(plug, 1.0, np.radians(10.0))
    radius = np.hypot(*plug.vertices[np.unique(points.nodes)][:, [0, 2]].T)
    neck = 12.6e-3
    assert not np.isclose(radius, neck, atol=1e-6).any()
    assert np.isclose(radius, 13.3e-3, atol=1e-6).any() and np.isclose(radius, 15e-3, atol=1e-6).any()
