"""Points on a rigid solid's edges against the facets of another body, seen from the solid's side."""

import numpy as np

from palpo.physics.collision.distance_field import EXACT, DistanceField
from palpo.physics.collision.edge_search import look_at_edges
from palpo.physics.collision.field_search import make_edges, make_field_contacts, make_probe, make_solid
from palpo.physics.collision.grid_distance import no_grid_distance
from palpo.physics.collision.learned_distance import no_learned_distance
from palpo.physics.collision.near_band import everywhere
from palpo.physics.collision.signed_distance import no_exact_distance
from palpo.physics.collision.surface_points import surface_points
from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.exchange.handle import Handle
from palpo.physics.mesh.generate import box_surface

SIDE, GAP, MARGIN = 0.04, 2e-4, 1e-3
OUT = np.vstack([np.eye(3), -np.eye(3)])
"""Out of the six faces of a cube."""
ALONG, ACROSS = np.roll(OUT, 1, axis=1), np.roll(OUT, 2, axis=1)
PLACE = (0.5 * SIDE + GAP) * OUT + 0.003 * ALONG + 0.002 * ACROSS
"""Before each face, and not before an edge of one of its facets."""


def looked_at(ways):
    """The candidates after points at PLACE of the edges that leave along ways (6, q, 3) were looked at."""
    mesh = box_surface((SIDE, SIDE, SIDE), (4, 4, 4))
    field = DistanceField(
        EXACT, everywhere(mesh.vertices), no_exact_distance(), no_grid_distance(), no_learned_distance()
    )
    points = surface_points(mesh.vertices, mesh.triangles, SIDE)
    body = FIXED.bind(make_fixed(mesh.vertices))
    edges = make_edges(PLACE, ways, mesh, 2.0 * MARGIN)
    probe = make_probe(body, 0, mesh.triangles, points, 0, edges)
    s = make_field_contacts([Handle(probe)], make_solid(body, 1), field, 1)
    probe.local[:] = mesh.vertices
    look_at_edges(s, probe, MARGIN, 0.0)
    own = slice(len(points.nodes), None)
    return s.candidates.told[own], s.candidates.close[own], s.candidates.normal[own]


def test_an_edge_that_stands_on_any_face_of_a_cube_may_touch_it_at_its_distance_and_along_its_normal():
    told, close, normal = looked_at(np.stack([OUT + ALONG, OUT - ALONG], axis=1))
    np.testing.assert_allclose(told, GAP, rtol=1e-9)
    assert close.all()
    np.testing.assert_allclose(normal, -OUT, atol=1e-12)


def test_an_edge_beside_which_the_solid_goes_on_into_the_body_touches_no_face_of_it():
    """It is no edge of the solid that presses there, and the points of the faces beside it see the body."""
    told, close, normal = looked_at(np.stack([OUT + ALONG, ALONG - OUT], axis=1))
    np.testing.assert_allclose(told, GAP, rtol=1e-9)
    assert not close.any() and not normal.any()


def test_a_normal_a_little_beyond_an_edges_two_faces_is_turned_back_to_the_nearer_ones():
    """By five degrees, within the ten that it is touched at: what pushes it lies between its faces."""
    lean = np.radians(5.0)
    low = np.cos(lean) * ALONG - np.sin(lean) * OUT
    _, close, normal = looked_at(np.stack([low, OUT - ALONG], axis=1))
    assert close.all()
    np.testing.assert_allclose(normal, -(np.cos(lean) * OUT + np.sin(lean) * ALONG), atol=1e-12)
