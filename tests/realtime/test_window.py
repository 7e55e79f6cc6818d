"""The window under a virtual screen, with real pointer, keys and window events."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from palpo.render.camera import Camera
from palpo.render.controls import ORBIT, ZOOM
from palpo.render.gl import RenderUnavailable
from palpo.render.offscreen import EglContext, render_picture
from palpo.render.pointer import recede, trackball
from palpo.render.scene_view import visible_points
from tests.realtime.operated_window import (
    CAMERA,
    GREENISH,
    HEIGHT,
    HELD,
    MAGENTA,
    PLAIN,
    REDDISH,
    STRIPE,
    WIDTH,
    ball,
)
from tests.realtime.xserver import SCREEN, display

__all__ = ["display"]

OPEN = "from palpo.render.window import Window; Window('w', 200, 100).close(); print('opened')"


def run_python(*arguments, **environment):
    env = {**os.environ, **environment}
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def operated(display, tmp_path_factory):
    """What the operator of a window saw: numbers and pictures."""
    probe = run_python("-c", OPEN, DISPLAY=display)
    if "RenderUnavailable" in probe.stderr:
        pytest.skip(probe.stderr.strip().splitlines()[-1])
    folder = tmp_path_factory.mktemp("window")
    done = run_python("-m", "tests.realtime.operated_window", str(folder), DISPLAY=display)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "seen.json").read_text()), dict(np.load(folder / "pictures.npz"))


@pytest.fixture
def seen(operated):
    return operated[0]


@pytest.fixture
def pictures(operated):
    return operated[1]


def like(picture, colour):
    """Pixels whose hue is near a colour's, whatever the light."""
    hue = picture / 255.0 - picture.mean(axis=2, keepdims=True) / 255.0
    wanted = np.array(colour) - np.mean(colour)
    along = hue @ wanted / np.linalg.norm(wanted)
    across = np.linalg.norm(hue - along[..., None] * wanted / np.linalg.norm(wanted), axis=2)
    return (along > 0.15) & (across < 0.35 * along)


def box(mask):
    """Centre and size of what is set, each (x, y)."""
    rows, columns = np.nonzero(mask)
    lower, upper = np.array([columns.min(), rows.min()]), np.array([columns.max(), rows.max()]) + 1
    return (lower + upper) / 2, upper - lower


def test_the_window_shows_what_its_screenshot_holds(seen, pictures):
    assert seen["size"] == [WIDTH + STRIPE, HEIGHT]
    np.testing.assert_array_equal(pictures["on_screen"], pictures["first"])


def test_the_scene_stands_where_the_camera_says_and_the_layer_beside_it(seen, pictures):
    assert seen["scene_size"] == [WIDTH, HEIGHT]
    picture = pictures["first"]
    centre, size = box(like(picture, REDDISH)[:, :WIDTH])
    np.testing.assert_allclose(centre, (WIDTH / 2, HEIGHT / 2), atol=3)
    diameter = 2 * HEIGHT / CAMERA.height(1.0) * np.tan(np.arcsin(0.1 / CAMERA.distance))
    np.testing.assert_allclose(size, diameter, rtol=0.05)  # its silhouette has 20 sides
    np.testing.assert_array_equal(
        picture[:, WIDTH:], np.broadcast_to(255 * np.array(MAGENTA), (HEIGHT, STRIPE, 3))
    )


def test_the_window_draws_as_offscreen_pictures_do(pictures):
    try:
        EglContext().close()
    except RenderUnavailable as why:
        pytest.skip(str(why))
    offscreen = render_picture(*ball(REDDISH), CAMERA, WIDTH, HEIGHT, PLAIN).astype(int)
    # The same driver and samples; a rounding of the last digit of a colour is left to it.
    assert np.abs(offscreen - pictures["first"][:, :WIDTH]).max() <= 1


def test_a_process_with_a_window_takes_offscreen_pictures_and_its_window_goes_on(pictures):
    for name in ("hidden_context", "after_another_context"):
        np.testing.assert_array_equal(pictures[name][:, :WIDTH], pictures["first"][:, :WIDTH])


def test_a_new_frame_and_a_new_scene_are_seen(pictures):
    assert not like(pictures["first"], GREENISH).any()
    assert not like(pictures["second_scene"], REDDISH)[:, :WIDTH].any()
    assert like(pictures["second_scene"], GREENISH)[HEIGHT // 2, WIDTH // 2]
    (moved, _), (first, _) = (box(like(pictures[k], REDDISH)[:, :WIDTH]) for k in ("moved", "first"))
    expected = CAMERA.project([[0.1, 0.0, 0.0], [0.0, 0.0, 0.0]], WIDTH, HEIGHT)
    np.testing.assert_allclose(moved - first, expected[0] - expected[1], atol=3)


def test_frames_and_their_latency_are_measured(seen):
    rate, draw_ms, p50, p99 = seen["statistics"]
    assert rate > 0
    assert draw_ms > 0
    assert 0 < p50 == p99  # two frames showed the one snapshot that said when it was published


def test_a_right_drag_and_an_alt_drag_orbit_by_its_share_of_the_picture_s_height(seen):
    assert seen["orbit"] == pytest.approx(-ORBIT * 100 / HEIGHT)
    assert seen["alt_orbit"] == pytest.approx(ORBIT * 100 / HEIGHT)


def test_a_left_drag_takes_the_tool_along_and_letting_go_leaves_it(seen):
    before, after, gripped = seen["drag"]
    np.testing.assert_allclose(np.subtract(after, before), (90, 60), atol=1e-6)
    assert gripped
    assert seen["released"] == [after, False]


def test_shift_and_wheel_move_the_held_tool_in_depth(seen):
    depth = CAMERA.depth(HELD)
    assert seen["shift_drag"] == pytest.approx(CAMERA.depth(recede(CAMERA, HELD, 40 / HEIGHT)) - depth)
    assert seen["wheel_held"] == pytest.approx(CAMERA.depth(recede(CAMERA, HELD, 0.02)) - depth)


def test_the_wheel_zooms_where_nothing_is_held(seen):
    assert seen["wheel"] == pytest.approx(ZOOM * CAMERA.distance)


def test_ctrl_turns_the_tool(seen):
    expected = trackball(CAMERA, HELD, (400, 200), (430, 190), WIDTH, HEIGHT)
    np.testing.assert_allclose(seen["turn"], expected, atol=1e-12)


def test_keys_ask_for_what_they_stand_for(seen):
    assert seen["requests"] == ["pause", "step", "record", "reset", "screenshot", "help", "quit"]
    assert seen["key_2"] == Camera().seen_from("back").azimuth
    assert seen["key_w"]
    assert seen["ctrl_c_escape"] == ["emergency"]
    assert seen["ctrl_c"]


@pytest.mark.parametrize("how", ["left", "unfocused"])
def test_a_pointer_that_leaves_and_a_focus_that_is_lost_let_the_tool_go(seen, how):
    assert seen[how] == [True, False, True]  # gripped before, not after, and not moved by the return


def test_the_layer_goes_before_the_scene_but_not_before_the_emergency_stop(seen):
    assert seen["over_layer"]
    assert seen["layer_keys"] == ["emergency"]


def test_a_drag_that_ends_over_the_layer_ends(seen):
    assert seen["ended_over_layer"] is False


def test_the_layer_is_filled_between_its_begin_and_its_end_and_given_back(seen):
    assert seen["ui_after"] == ["begin"]
    assert seen["then"] == "end"
    assert seen["calls"] == ["attach", "detach"]


@pytest.mark.parametrize(
    ("name", "size"),
    [("resized", (500, 450)), ("fullscreen", SCREEN), ("restored", (WIDTH + STRIPE, HEIGHT))],
)
def test_a_ball_stays_round_in_a_window_of_any_size(seen, pictures, name, size):
    assert tuple(seen[name]) == size
    assert pictures[name].shape == (size[1], size[0], 3)
    centre, extent = box(like(pictures[name], REDDISH)[:, : size[0] - STRIPE])
    np.testing.assert_allclose(centre, ((size[0] - STRIPE) / 2, size[1] / 2), atol=0.01 * size[1])
    assert extent[0] / extent[1] == pytest.approx(1.0, abs=0.03)
    assert extent[1] / size[1] == pytest.approx(2 * 0.1 / CAMERA.height(CAMERA.distance), rel=0.05)


def test_a_fitted_scene_fills_what_the_layer_leaves(seen):
    fitted = Camera(**seen["fitted"])
    width, height = seen["resized"][0] - STRIPE, seen["resized"][1]
    expected = CAMERA.fit(visible_points(*ball(REDDISH)), width / height)
    assert fitted.distance == pytest.approx(expected.distance)
    assert fitted.target == pytest.approx(expected.target)


def test_what_fails_in_a_callback_is_raised_by_the_frame_and_the_window_goes_on(seen):
    assert seen["failure"] == "the hand went wrong"
    assert seen["after_failure"] == ["emergency"]


def test_the_close_button_asks_the_application_to_close(seen):
    assert seen["close"] == [False, True]


def sentence(program, **environment):
    """The one line that a process prints about a window that it cannot have."""
    caught = f"""
from palpo.render.gl import RenderUnavailable
try:
    {program}
except RenderUnavailable as why:
    print(why)
"""
    done = run_python("-c", caught, **environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.strip().splitlines()
    assert len(lines) == 1, done.stdout
    assert lines[0].endswith(".")
    return lines[0]


@pytest.mark.parametrize(("name", "words"), [("", "DISPLAY is not set"), (":4001", ":4001")])
def test_without_a_display_one_sentence_says_so(name, words):
    pytest.importorskip("glfw")
    said = sentence(OPEN, DISPLAY=name)
    assert words in said or "libgl1" in said  # on a machine without OpenGL, that is missing first


def test_without_glfw_one_sentence_says_what_to_install(display):
    hidden = f"import sys; sys.modules['glfw'] = None; {OPEN}"
    said = sentence(hidden, DISPLAY=display)
    assert "palpo[render]" in said or "libgl1" in said


def test_a_driver_without_opengl_3_3_is_one_sentence(operated, display):
    # Mesa takes the version that it offers from here.
    said = sentence(OPEN, DISPLAY=display, MESA_GL_VERSION_OVERRIDE="2.1")
    assert "OpenGL through x11 is not available" in said
    assert "3.3" in said


def test_a_layer_that_is_not_due_is_drawn_again_over_the_scene_only(seen):
    assert seen["moved"] == ["again", "again"]


def test_a_frame_in_which_nothing_changes_is_not_drawn(seen, pictures):
    assert seen["kept"] == []
    np.testing.assert_array_equal(pictures["kept"], pictures["drawn"])


def test_the_bodies_leave_no_trace_on_the_kept_backdrop(pictures):
    np.testing.assert_array_equal(pictures["moved_back"], pictures["drawn"])
    assert (pictures["moved_away"] != pictures["drawn"]).any()
