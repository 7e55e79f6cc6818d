"""Laws of two eyes by OpenXR: where they see what, and what becomes of a headset that is taken away."""

import math
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palpo.app.cli.main import main
from palpo.render.camera import Camera
from palpo.render.headset import eye_of, rotation
from tests.realtime.xserver import acted, display

__all__ = ["display"]

UPRIGHT = (0.0, 0.0, 0.0, 1.0)
cameras = st.builds(
    Camera,
    st.just((0.1, 0.05, -0.02)),
    st.floats(0.05, 2.0),
    st.floats(-180.0, 180.0),
    st.floats(-80.0, 80.0),
)
place = st.tuples(*[st.floats(-0.3, 0.3)] * 3)
turn = st.tuples(*[st.floats(-1.0, 1.0)] * 4).filter(lambda q: np.linalg.norm(q) > 0.1)
angle = st.floats(0.2, 1.2)
scales = st.floats(0.1, 50.0)


def seen(eye, points):
    """Where points (n, 3) are in the picture, both ways from -1 to 1."""
    clip = np.column_stack([points, np.ones(len(points))]) @ eye.matrix(1.0).T
    return clip[:, :2] / clip[:, 3:]


@given(cameras, scales)
def test_an_eye_in_the_middle_of_the_head_sees_what_the_window_s_camera_sees(camera, scale):
    half = math.radians(camera.field_of_view / 2)
    wide = math.atan(1.5 * math.tan(half))
    eye = eye_of(camera, scale, "still", (0, 0, 0), UPRIGHT, (-wide, wide, half, -half))
    assert eye.eye == pytest.approx(camera.eye)
    assert eye.matrix(1.5) == pytest.approx(camera.matrix(1.5), rel=1e-6, abs=1e-9)


@given(cameras, scales, place, turn, angle, angle, angle, angle)
def test_directions_at_its_angles_are_the_edges_of_its_picture(camera, scale, at, q, left, right, up, down):
    for tracking in ("still", "tracked"):
        eye = eye_of(camera, scale, tracking, at, q, (-left, right, up, -down))
        ahead = -eye.axes[2]
        for own, tangent, column, edge in (
            (eye.axes[0], -math.tan(left), 0, -1.0), (eye.axes[0], math.tan(right), 0, 1.0),
            (eye.axes[1], math.tan(up), 1, 1.0), (eye.axes[1], -math.tan(down), 1, -1.0),
        ):  # fmt: skip
            point = eye.eye + camera.distance * (ahead + tangent * own)
            assert seen(eye, point[None])[0, column] == pytest.approx(edge, abs=1e-6)


@given(cameras, scales, place, place)
def test_a_head_that_moves_by_a_metre_moves_the_eye_by_as_much_of_the_scene(camera, scale, first, second):
    """The room is upright in the scene, turned by the camera's azimuth alone."""
    eyes = [eye_of(camera, scale, "tracked", at, UPRIGHT, (-1, 1, 1, -1)) for at in (first, second)]
    moved, way = eyes[1].eye - eyes[0].eye, np.subtract(second, first)
    assert np.linalg.norm(moved) == pytest.approx(scale * np.linalg.norm(way), abs=1e-9)
    assert moved[1] == pytest.approx(scale * way[1], abs=1e-9)
    # at rest it is where the camera is
    assert eye_of(camera, scale, "tracked", (0, 0, 0), UPRIGHT, (-1, 1, 1, -1)).eye == pytest.approx(
        camera.eye
    )


@given(turn)
def test_a_quaternion_turns_and_does_not_mirror(q):
    assert rotation(q) @ rotation(q).T == pytest.approx(np.eye(3), abs=1e-12)
    assert np.linalg.det(rotation(q)) == pytest.approx(1.0)
    quarter = rotation((0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5)))
    assert quarter @ [1.0, 0.0, 0.0] == pytest.approx([0.0, 0.0, -1.0])


def test_a_headset_needs_the_window(capsys):
    assert main(["run", "probe", "--headless", "--headset"]) == 2
    assert "--headset" in capsys.readouterr().err


# ---- through the loader, with a runtime that is as strict as the specification


@pytest.fixture(scope="module")
def worn(display, tmp_path_factory):
    """What was seen in the headset: numbers."""
    if find_spec("xr") is None:  # it is not imported here, since it brings PyOpenGL, which has one platform
        pytest.skip("needs palpo[headset]")
    return acted(display, "tests.realtime.worn_headset", tmp_path_factory.mktemp("headset"))


@pytest.mark.realtime
@pytest.mark.parametrize("tracking", ["still", "tracked"])
@pytest.mark.parametrize("head", ["rest", "aside", "turned"])
def test_each_eye_sees_each_ball_where_a_pinhole_at_its_place_would(worn, tracking, head):
    from tests.realtime.worn_headset import CAMERA, HEADS, PLACES, SCALE
    from tests.xr.eyes import ANGLES, HALF_IPD, HEIGHT, WIDTH

    at, q = HEADS[head] if tracking == "tracked" else HEADS["rest"]
    # from the camera's place: in its own axes, or in upright ones
    axes = CAMERA.axes if tracking == "still" else Camera(azimuth=CAMERA.azimuth, elevation=0.0).axes
    room = (PLACES - CAMERA.eye) @ axes.T / SCALE
    for k, (side, angles) in enumerate(zip(("left", "right"), ANGLES, strict=True)):
        own = (room - at) @ rotation(q) - [(2 * k - 1) * HALF_IPD, 0.0, 0.0]
        left, right, up, down = np.tan(angles)
        across = (own[:, 0] / -own[:, 2] - left) / (right - left) * WIDTH
        rise = (own[:, 1] / -own[:, 2] - down) / (up - down) * HEIGHT
        found = np.array(worn["middles"][f"{tracking} {head} {side}"])
        inside = (across > 8) & (across < WIDTH - 8)
        assert inside.sum() >= 2
        # a ball's middle is known to a pixel: its picture has some ten across
        assert found[inside] == pytest.approx(np.column_stack([across, rise])[inside], abs=1.0)


@pytest.mark.realtime
def test_without_a_known_place_or_where_none_is_wanted_no_picture_is_shown_and_it_goes_on(worn):
    for tracking in ("still", "tracked"):
        assert (worn[f"{tracking} unknown"], worn[f"{tracking} unwanted"], worn[f"{tracking} again"]) == (
            0,
            0,
            2,
        )


@pytest.mark.realtime
def test_a_headset_that_is_lost_is_a_sentence_and_the_window_goes_on(worn):
    assert len(worn["lost"]) == 3
    assert all(words.startswith("the headset was lost") for words in worn["lost"].values())
    assert worn["missing"].startswith("no headset (OpenXR: form factor unavailable)")


@pytest.mark.realtime
def test_a_run_draws_for_the_headset_breaks_no_rule_of_openxr_and_leaves_nothing_open(worn):
    assert worn["run"]["status"] == 0 and worn["run"]["frames"] > 10
    assert worn["refused"] == worn["run"]["refused"] == [] and worn["left"] == []
