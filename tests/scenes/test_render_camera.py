"""The orbiting camera: perspective geometry in closed form."""

import numpy as np
import pytest

from palpo.render.camera import STANDARD_VIEWS, Camera
from tests.scenes.sight import ray

WIDTH, HEIGHT = 640, 400
CLOUD = np.random.default_rng(7).uniform(-1, 1, (200, 3)) * [0.30, 0.05, 0.12] + [1.0, -2.0, 0.5]


@pytest.mark.parametrize("aspect", [0.5, 1.6])
@pytest.mark.parametrize("view", STANDARD_VIEWS)
def test_a_fitted_view_holds_every_point_and_fills_the_picture_one_way(view, aspect):
    width, height = round(aspect * 1000), 1000
    margin = 1.1
    pixels = Camera.looking(view, CLOUD, aspect, margin).project(CLOUD, width, height)
    ndc = 2 * pixels / [width, height] - 1
    # The nearest eye leaves exactly the margin on two opposite sides and more on the others.
    assert np.abs(ndc).max() == pytest.approx(1 / margin, abs=1e-9)
    reach = np.array([ndc.max(axis=0), -ndc.min(axis=0)])
    assert np.any(np.isclose(reach, 1 / margin, atol=1e-9).all(axis=0))


def test_the_target_is_the_middle_of_the_picture():
    camera = Camera((0.2, -0.1, 0.4), 0.7, 33.0, -12.0)
    np.testing.assert_allclose(camera.project([camera.target], WIDTH, HEIGHT), [[320, 200]], atol=1e-9)


def test_size_falls_with_the_inverse_of_depth():
    near, far = Camera(distance=1.0), Camera(distance=3.0)
    across = 0.01 * near.axes[0]
    shift = [c.project([across], WIDTH, HEIGHT)[0, 0] - WIDTH / 2 for c in (near, far)]
    assert shift[0] == pytest.approx(3 * shift[1])


def test_a_ray_through_a_pixel_meets_the_point_seen_there():
    camera = Camera((0.1, 0.2, 0.3), 0.9, 50.0, 20.0)
    point = np.array([0.15, 0.12, 0.41])
    x, y = camera.project([point], WIDTH, HEIGHT)[0]
    sight = ray(camera, x, y, WIDTH, HEIGHT)
    np.testing.assert_allclose(np.cross(sight, point - camera.eye), 0, atol=1e-12)
    assert sight @ (point - camera.eye) > 0


@pytest.mark.parametrize(
    ("view", "right", "up"),
    [("front", [1, 0, 0], [0, 1, 0]), ("right", [0, 0, -1], [0, 1, 0]), ("left", [0, 0, 1], [0, 1, 0])],
)
def test_standard_views_have_y_up_and_the_user_at_plus_z(view, right, up):
    axes = Camera.looking(view, CLOUD).axes
    np.testing.assert_allclose(axes[:2], [right, up], atol=1e-12)


def test_from_above_x_points_right_and_z_down():
    camera = Camera.looking("top", CLOUD)
    # 0.1 degrees short of the pole, where the upward direction would be lost.
    tilt = np.sin(np.radians(0.1)) * 1.01
    np.testing.assert_allclose(camera.axes, [[1, 0, 0], [0, 0, -1], [0, 1, 0]], atol=tilt)


def test_orbiting_keeps_target_and_distance_and_never_passes_the_pole():
    camera = Camera((1.0, 2.0, 3.0), 0.5)
    for _ in range(50):
        camera = camera.orbit(17.0, 9.0)
        assert np.linalg.norm(camera.eye - camera.target) == pytest.approx(0.5)
        assert camera.axes[1, 1] > 0
        np.testing.assert_allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)


def test_panning_moves_the_old_target_by_that_fraction_of_the_height():
    camera = Camera((0.2, 0.1, 0.0), 0.8, 12.0, 30.0)
    x, y = camera.pan(0.25, 0.10).project([camera.target], WIDTH, HEIGHT)[0]
    assert (x, y) == pytest.approx((WIDTH / 2 - 0.25 * HEIGHT, HEIGHT / 2 + 0.10 * HEIGHT))


def test_an_unknown_view_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"'above'.*perspective"):
        Camera.looking("above", CLOUD)


@pytest.mark.parametrize("aspect", [0.6, 1.6])
def test_a_view_that_keeps_points_moves_no_more_than_it_must(aspect):
    margin, rng = 1.1, np.random.default_rng(3)
    camera = Camera((1.0, -2.0, 0.5), 0.6, 40.0, 15.0)

    def share(camera, points):
        pixels = camera.project(points, round(aspect * 1000), 1000)
        return np.abs(2 * pixels / [round(aspect * 1000), 1000] - 1).max() * margin

    for spread in (0.02, 0.2, 0.6):
        points = CLOUD.mean(axis=0) + spread * rng.uniform(-1, 1, (50, 3))
        kept = camera.keep(points, aspect, margin)
        if share(camera, points) <= 1.0:
            assert kept == camera
            continue
        # all are seen, the outermost just so, from the same side
        assert share(kept, points) == pytest.approx(1.0, abs=1e-9)
        assert kept.keep(points, aspect, margin).eye == pytest.approx(kept.eye, abs=1e-12)
        assert (kept.azimuth, kept.elevation) == (camera.azimuth, camera.elevation)
        # it came no nearer, and went no farther back than one that had to show nothing else
        back = (kept.eye - camera.eye) @ camera.axes[2]
        alone = (camera.fit(points, aspect, margin).eye - camera.eye) @ camera.axes[2]
        assert -1e-12 <= back <= max(0.0, alone) + 1e-9


@pytest.mark.parametrize("aspect", [0.6, 1.6])
def test_a_followed_point_comes_just_into_the_middle_part_of_the_picture_and_no_nearer(aspect):
    width, height = round(1000 * aspect), 1000
    camera = Camera((0.1, 0.0, 0.2), 0.8, 33.0, -12.0)
    for across, up, back in ((0.4, 0.1, 0.2), (-0.5, -0.4, -0.1), (0.01, 0.3, 0.0), (0.01, -0.02, 0.1)):
        point = np.asarray(camera.target) + np.array([across, up, back]) @ camera.axes
        moved = camera.follow(point, aspect, 0.5)
        before, after = (
            2 * c.project([point], width, height)[0] / [width, height] - 1 for c in (camera, moved)
        )
        np.testing.assert_allclose(after, np.clip(before, -0.5, 0.5), atol=1e-9)
        assert moved.depth(point) == pytest.approx(camera.depth(point), rel=1e-12)
        assert moved.axes == pytest.approx(camera.axes)
