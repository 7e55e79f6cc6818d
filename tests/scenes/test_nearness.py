"""How near what is held is, and the normals of what is touched, of shapes whose answer is known."""

import numpy as np
import pytest

from palpo.app.visual.nearness import NEAR, Nearness
from palpo.physics.contact.laws import OPEN, STICK
from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry, plane_corners
from palpo.physics.mesh.generate import sphere_surface
from palpo.render.overlays import Overlays, place_marks
from palpo.render.solids import ROD

RADIUS = 0.01
"""Of a ball that hangs over a floor."""


def scene(height, tube=0.0):
    """A ball (or a rod) at a height over a floor at y = 0, its state, and what looks at it."""
    ball = sphere_surface(RADIUS, 3)
    points, triangles = ball.vertices, ball.triangles
    if tube:
        points, triangles = np.array([[-0.02, 0, 0], [0.02, 0, 0]]), np.zeros((0, 3), np.int32)
    points = np.add(points, [0.0, height, 0.0])
    floor = plane_corners(np.zeros(3), np.array([0.0, 1.0, 0.0]), 0.1)
    kind = {"kind": "tube", "radius": tube} if tube else {"kind": "surface"}
    held = Drawable("tool", first_vertex=0, n_vertices=len(points), triangles=triangles, **kind)
    other = Drawable("floor", "plane", len(points), 4)
    vertices = np.vstack([points, floor])
    geometry = make_geometry([held, other], vertices)
    return geometry, SceneState(vertices), Nearness(geometry, held)


def test_the_distance_is_that_of_the_lowest_point_to_the_foot_below_it():
    _, state, nearness = scene(RADIUS + 1e-3)
    nearness.look(state)
    start, end = state.nearest
    # vertices of the ball lie on it; the lowest one is within the mesh's own sag of its pole
    sag = RADIUS * (1.0 - np.cos(np.pi / 16))
    assert 1e-3 - 1e-12 <= np.linalg.norm(end - start) <= 1e-3 + sag
    assert end[1] == pytest.approx(0.0, abs=1e-12) and end[[0, 2]] == pytest.approx(start[[0, 2]], abs=1e-12)


def test_of_a_rod_it_is_that_of_its_skin():
    _, state, nearness = scene(0.004, tube=0.001)
    nearness.look(state)
    assert np.linalg.norm(state.nearest[1] - state.nearest[0]) == pytest.approx(0.003, rel=1e-9)


def test_it_begins_at_what_is_held_where_a_face_of_that_hangs_over_a_corner_of_another():
    held = np.array([[-0.05, 0.02, -0.05], [0.0, 0.02, 0.1], [0.05, 0.02, -0.05]])
    spike = np.array([[0.0, 0.018, 0.0], [0.01, 0.0, 0.0], [-0.01, 0.0, 0.01], [-0.01, 0.0, -0.01]])
    faces = np.array([[0, 2, 1], [0, 3, 2], [0, 1, 3], [1, 2, 3]], np.int32)
    tool = Drawable("tool", "surface", 0, 3, np.array([[0, 1, 2]], np.int32))
    vertices = np.vstack([held, spike])
    geometry = make_geometry([tool, Drawable("spike", "surface", 3, 4, faces)], vertices)
    state = SceneState(vertices)
    Nearness(geometry, tool).look(state)
    assert state.nearest == pytest.approx(np.array([[0.0, 0.02, 0.0], [0.0, 0.018, 0.0]]), abs=1e-12)


def test_far_away_and_once_it_is_touched_there_is_none():
    geometry, state, nearness = scene(RADIUS + 1e-3)
    far = scene(RADIUS + 2.0 * NEAR * geometry.length)
    far[2].look(far[1])
    assert np.isnan(far[1].nearest).all()
    state.contact_point, state.contact_force = np.zeros((1, 3)), np.zeros((1, 3))
    state.contact_state = np.array([STICK])
    nearness.look(state)
    assert np.isnan(state.nearest).all()
    state.contact_state = np.array([OPEN])
    nearness.look(state)
    assert np.isfinite(state.nearest).all()


def test_discs_lie_across_the_normals_of_what_is_touched_and_none_where_nothing_is():
    geometry, state, nearness = scene(RADIUS)
    state.contact_point = np.array([[0.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    state.contact_force, state.contact_state = np.zeros((2, 3)), np.array([STICK, STICK])
    nearness.look(state)
    assert np.abs(state.contact_normal[0]) == pytest.approx([0, 1, 0], abs=1e-12)
    assert np.isnan(state.contact_normal[1]).all()
    marks = place_marks(geometry, state, Overlays(device=False, forces=False), 1.0)
    rods = marks.rows(ROD)
    assert len(rods) == 1
    # across the normal, and much wider than thick
    thick, wide = rods[0, 9:12], rods[0, 3:6]
    assert abs(thick @ wide) < 1e-9 and np.linalg.norm(wide) > 5.0 * np.linalg.norm(thick)
    hidden = place_marks(geometry, state, Overlays(device=False, forces=False, nearness=False), 1.0)
    assert not len(hidden.rows(ROD))


def test_a_state_at_which_nobody_has_looked_has_neither():
    geometry, state, _ = scene(RADIUS + 1e-3)
    assert not len(place_marks(geometry, state, Overlays(device=False, forces=False), 1.0).rows(ROD))
