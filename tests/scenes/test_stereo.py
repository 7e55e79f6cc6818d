"""A pair of eyes: parallax in closed form, and pictures in which each eye finds its own."""

import numpy as np
import pytest

from palpo.physics.exchange.snapshot import Drawable, SceneState, make_geometry
from palpo.render.camera import SEPARATION, Camera
from palpo.render.gl import RenderUnavailable
from palpo.render.offscreen import Offscreen
from palpo.render.overlays import Overlays

WIDTH, HEIGHT = 400, 300
CAMERA = Camera((0.1, 0.2, -0.1), 0.8, 33.0, -12.0)


def test_the_target_s_plane_has_no_parallax_and_what_is_nearer_has_it_by_similar_triangles():
    left, right = CAMERA.pair()
    assert np.linalg.norm(right.eye - left.eye) == pytest.approx(SEPARATION * CAMERA.distance)
    for nearer in (0.0, 0.3, -0.5):
        point = np.asarray(CAMERA.target) + np.array([0.05, -0.08, nearer * CAMERA.distance]) @ CAMERA.axes
        (xl, yl), (xr, yr) = (eye.project([point], WIDTH, HEIGHT)[0] for eye in (left, right))
        # seen from a depth d of the screen's D, eyes e apart see it shifted by e (1 - D / d) of the screen
        depth = (1 - nearer) * CAMERA.distance
        metres = SEPARATION * CAMERA.distance * (1 - CAMERA.distance / depth)
        assert xr - xl == pytest.approx(metres * HEIGHT / CAMERA.height(CAMERA.distance), abs=1e-9)
        assert yl == pytest.approx(yr)  # nothing is shifted up or down


@pytest.fixture
def take():
    ball = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float) * 0.1 + [0.0, 0.0, 0.15]
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]], np.int32)
    body = make_geometry([Drawable("body", "surface", 0, 4, faces, colour=(0.3, 0.3, 0.3))], ball)
    try:
        photographer = Offscreen(body, SceneState(ball), WIDTH, HEIGHT)
    except RenderUnavailable as none:
        pytest.skip(str(none))

    def picture(camera, **shown):
        overlays = Overlays(labels=False, grid=False, axes=False, **shown)
        return photographer.picture(SceneState(ball), camera, overlays).astype(int)

    with photographer:
        yield picture


def test_each_glass_of_an_anaglyph_shows_the_picture_of_its_eye(take):
    camera = Camera((0.0, 0.05, 0.0), 0.9, 10.0, 5.0)
    both = take(camera, anaglyph=True)
    left, right = (take(eye) for eye in camera.pair())
    np.testing.assert_array_equal(both[..., 0], left[..., 0])
    np.testing.assert_array_equal(both[..., 1:], right[..., 1:])
    assert (left != right).any()
    # and what comes after is drawn in all colours again
    np.testing.assert_array_equal(take(camera), take(camera))
    assert (take(camera)[..., 1] == take(camera)[..., 0]).mean() < 1.0


def test_side_by_side_the_left_half_is_the_left_eye_s(take):
    camera = Camera((0.0, 0.05, 0.0), 0.9, 10.0, 5.0)
    both = take(camera, side_by_side=True)
    halves = both[:, : WIDTH // 2], both[:, WIDTH // 2 :]
    middles = []
    for half in halves:
        dark = np.nonzero(half.sum(axis=2) < 0.75 * half.sum(axis=2).max())
        assert len(dark[0]) > 100
        middles.append([dark[1].mean(), dark[0].mean()])
    (xl, yl), (xr, yr) = middles
    assert xr < xl - 1  # before the screen: the right eye sees it further left
    assert yl == pytest.approx(yr, abs=1)
