"""Pointer and keys: what they do to camera, tool and the operator's requests, without a window."""

from dataclasses import fields

import numpy as np
import pytest

from palpo.render.camera import STANDARD_VIEWS, Camera
from palpo.render.controls import KEYS, Controls, key_list
from palpo.render.overlays import Overlays
from palpo.render.pace import Pace
from palpo.render.pointer import BALL, compose, recede, slide, trackball
from palpo.render.requests import Request
from tests.scenes.sight import ray

WIDTH, HEIGHT = 1280, 800
POINT = np.array([0.03, 0.05, -0.02])
TURNED = np.array([0.8, 0.0, 0.6, 0.0])
CAMERA = Camera((0.01, 0.02, 0.0), 0.6, 28.0, 22.0)
SHIFT, CTRL, ALT, ALT_SHIFT = (frozenset(m.split()) for m in ("shift", "ctrl", "alt", "alt shift"))


def held_point(controls, width=WIDTH, height=HEIGHT):
    return controls.camera.project(controls.hand.position, width, height)[0]


def operator(camera=CAMERA, drives_tool=True, at=None):
    """Controls whose pointer is on the tool's held point, or at a pixel."""
    controls = Controls(camera, drives_tool=drives_tool)
    controls.take_hold(POINT, TURNED)
    controls.move(*(held_point(controls) if at is None else at), WIDTH, HEIGHT)
    return controls


def drag(controls, *pixels, button="left", modifiers=frozenset()):
    controls.button(button, True, modifiers)
    for x, y in pixels:
        controls.move(x, y, WIDTH, HEIGHT, modifiers)
    controls.button(button, False, modifiers)


def rotation(quaternion):
    """Matrix of a unit quaternion, from its definition q v q*."""
    w, x, y, z = quaternion
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


@pytest.mark.parametrize("view", STANDARD_VIEWS)
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (500, 900)])
def test_a_dragged_tool_stays_under_the_pointer_in_the_plane_that_faces_the_camera(view, width, height):
    controls = Controls(CAMERA.seen_from(view), drives_tool=True)
    controls.take_hold(POINT, TURNED)
    controls.move(*held_point(controls, width, height), width, height)
    depth = controls.camera.depth(POINT)
    controls.button("left", True)
    for pixel in ((300, 40), (20, 700), (451.5, 333.25)):
        controls.move(*pixel, width, height)
        np.testing.assert_allclose(held_point(controls, width, height), pixel, atol=1e-6)
        assert controls.camera.depth(controls.hand.position) == pytest.approx(depth, rel=1e-12)


def test_a_drag_that_begins_beside_the_tool_keeps_its_distance():
    controls = operator()
    x, y = held_point(controls)
    controls.move(x + 40, y - 25, WIDTH, HEIGHT)
    drag(controls, (600, 300), (700, 500))
    np.testing.assert_allclose(held_point(controls), np.array([700, 500]) - [40, -25], atol=1e-6)


def test_the_plane_that_faces_the_camera_meets_the_line_of_sight_through_the_pixel():
    moved = slide(CAMERA, POINT, 130.0, -70.0, HEIGHT)
    x, y = CAMERA.project(POINT, WIDTH, HEIGHT)[0] + [130.0, -70.0]
    sight = ray(CAMERA, x, y, WIDTH, HEIGHT)
    met = CAMERA.eye + sight * CAMERA.depth(POINT) / -(sight @ CAMERA.axes[2])
    np.testing.assert_allclose(moved, met, atol=1e-12)


@pytest.mark.parametrize("how", ["wheel", "shift"])
def test_depth_moves_the_tool_away_along_its_line_of_sight_and_back_exactly(how):
    controls = operator()
    pixel, depth = held_point(controls), CAMERA.depth(POINT)
    controls.button("left", True, SHIFT if how == "shift" else frozenset())

    def push(steps):
        if how == "wheel":
            controls.scroll(0.0, steps)
        else:
            x, y = controls._pointer
            controls.move(x, y - 8 * steps, WIDTH, HEIGHT, SHIFT)

    push(5)
    np.testing.assert_allclose(held_point(controls), pixel, atol=1e-6)
    # 1/100 of the picture's height a notch and 8 of 800 pixels a step, as long as the way is short: 2 % here.
    way = np.linalg.norm(controls.hand.position - POINT)
    slant = np.linalg.norm(CAMERA.eye - POINT) / depth
    assert way == pytest.approx(0.05 * CAMERA.height(depth) * slant, rel=0.02)
    assert controls.camera.depth(controls.hand.position) > depth
    push(-5)
    np.testing.assert_allclose(controls.hand.position, POINT, atol=1e-12)


def test_no_way_in_depth_leads_behind_the_eye():
    assert CAMERA.depth(recede(CAMERA, POINT, -40.0)) > 0


def test_a_turn_takes_the_point_under_the_pointer_along():
    radius = BALL * HEIGHT
    middle = CAMERA.project(POINT, WIDTH, HEIGHT)[0]
    # Within 1/sqrt 2 of the radius it is a ball.
    start, end = np.array([0.3, -0.2]), np.array([-0.1, 0.5])
    turn = trackball(CAMERA, POINT, middle + radius * start, middle + radius * end, WIDTH, HEIGHT)

    def on_ball(p):
        return np.array([p[0], -p[1], np.sqrt(1 - p @ p)]) @ CAMERA.axes

    np.testing.assert_allclose(rotation(turn) @ on_ball(start), on_ball(end), atol=1e-12)


def test_a_circle_far_outside_the_ball_rolls_the_tool_about_the_line_of_sight():
    controls = operator()
    middle = held_point(controls)
    angles = np.linspace(0.0, np.pi / 2, 40)
    circle = middle + 20 * BALL * HEIGHT * np.c_[np.cos(angles), -np.sin(angles)]
    controls.move(*circle[0], WIDTH, HEIGHT)
    drag(controls, *circle[1:], modifiers=CTRL)
    expected = rotation([np.cos(np.pi / 4), *(np.sin(np.pi / 4) * CAMERA.axes[2])]) @ rotation(TURNED)
    # At 20 radii the hyperbola is 1/800 rad off the picture's plane, and so is each step's axis.
    np.testing.assert_allclose(rotation(controls.hand.orientation), expected, atol=2e-3)
    np.testing.assert_array_equal(controls.hand.position, POINT)


def test_turns_compose_as_their_matrices_do():
    rng = np.random.default_rng(3)
    p, q = (v / np.linalg.norm(v) for v in rng.normal(size=(2, 4)))
    np.testing.assert_allclose(rotation(compose(p, q)), rotation(p) @ rotation(q), atol=1e-12)


def test_letting_go_leaves_the_tool_where_it_is():
    controls = operator()
    drag(controls, (500, 300))
    left = controls.hand.position
    for pixel in ((10, 10), (900, 700)):
        controls.move(*pixel, WIDTH, HEIGHT)
    controls.scroll(0.0, 3.0)
    np.testing.assert_array_equal(controls.hand.position, left)
    assert not controls.hand.grip


def test_the_grip_key_holds_the_tool_without_a_button_until_it_is_pressed_again():
    controls = operator()
    controls.key("g")
    assert controls.hand.grip
    controls.move(420, 260, WIDTH, HEIGHT)
    np.testing.assert_allclose(held_point(controls), (420, 260), atol=1e-6)
    controls.key("g")
    assert not controls.hand.grip
    controls.move(100, 100, WIDTH, HEIGHT)
    np.testing.assert_allclose(held_point(controls), (420, 260), atol=1e-6)


def test_a_key_presses_the_tools_button_whether_the_tool_is_held_or_not():
    controls = operator()
    for begin in (lambda: None, lambda: controls.key("g")):
        begin()
        controls.key("x")
        assert controls.hand.buttons == 1
        controls.key("x")
        assert controls.hand.buttons == 0
    controls.key("x")
    controls.take_hold(POINT, controls.hand.orientation)
    assert controls.hand.buttons == 0


@pytest.mark.parametrize("begin", [lambda c: c.button("left", True), lambda c: c.key("g")])
def test_a_pointer_that_left_no_longer_moves_the_tool_when_it_returns(begin):
    controls = operator()
    begin(controls)
    assert controls.hand.grip
    controls.release()
    controls.move(30, 30, WIDTH, HEIGHT)
    np.testing.assert_array_equal(controls.hand.position, POINT)
    assert not controls.hand.grip


def test_the_emergency_stop_lets_go():
    controls = operator()
    controls.key("g")
    controls.key("escape")
    assert not controls.hand.grip
    assert controls.requests() == [Request("emergency")]


def test_what_passes_over_the_panel_neither_moves_the_tool_nor_lets_it_jump():
    controls = operator(at=(100, 100))
    controls.key("g")
    offset = held_point(controls) - (800, 700)
    controls.pass_by(800, 700)
    np.testing.assert_array_equal(controls.hand.position, POINT)
    controls.move(810, 690, WIDTH, HEIGHT)
    np.testing.assert_allclose(held_point(controls), np.array([810, 690]) + offset, atol=1e-6)


def test_the_view_turns_about_a_held_tool_that_stays_in_the_scene():
    controls = operator()
    controls.button("left", True)
    drag(controls, (700, 200), button="right")
    assert controls.camera != CAMERA
    np.testing.assert_array_equal(controls.hand.position, POINT)
    x, y = held_point(controls)
    controls.move(705, 190, WIDTH, HEIGHT)
    np.testing.assert_allclose(held_point(controls), (x + 5, y - 10), atol=1e-6)


def test_alt_that_is_lifted_during_a_drag_of_the_view_does_not_hand_the_tool_over():
    controls = operator()
    controls.button("left", True, ALT)
    controls.move(500, 400, WIDTH, HEIGHT)
    assert not controls.hand.grip
    np.testing.assert_array_equal(controls.hand.position, POINT)


def test_each_change_of_the_hand_is_told_at_once():
    told = []
    controls = Controls(CAMERA, drives_tool=True, follow=told.append)
    controls.take_hold(POINT, TURNED)
    controls.move(*held_point(controls), WIDTH, HEIGHT)
    drag(controls, (600, 410), (610, 420))
    assert [hand.grip for hand in told] == [False, True, True, True, False]
    assert told[-1] is controls.hand
    np.testing.assert_array_equal(told[0].position, POINT)


ORBITS = [(True, "right", frozenset()), (True, "left", ALT), (False, "left", frozenset())]


@pytest.mark.parametrize(("drives_tool", "button", "modifiers"), ORBITS)
def test_two_heights_of_the_picture_turn_the_view_once_round(drives_tool, button, modifiers):
    controls = operator(drives_tool=drives_tool, at=(0, 400))
    drag(controls, (HEIGHT / 2, 400), button=button, modifiers=modifiers)
    assert controls.camera.azimuth == pytest.approx(28.0 - 90.0)
    drag(controls, (HEIGHT, 300), (2 * HEIGHT, 400), button=button, modifiers=modifiers)
    np.testing.assert_allclose(controls.camera.axes, CAMERA.axes, atol=1e-12)
    np.testing.assert_array_equal(controls.hand.position, POINT)


PANS = [(True, "middle", frozenset()), (True, "left", ALT_SHIFT), (False, "left", ALT_SHIFT)]


@pytest.mark.parametrize(("drives_tool", "button", "modifiers"), PANS)
def test_panning_keeps_the_target_s_plane_under_the_pointer(drives_tool, button, modifiers):
    controls = operator(drives_tool=drives_tool, at=(600, 400))
    seen = slide(CAMERA, CAMERA.target, 123.0, 45.0, HEIGHT)
    before = CAMERA.project(seen, WIDTH, HEIGHT)[0]
    drag(controls, (650, 320), (800, 350), button=button, modifiers=modifiers)
    after = controls.camera.project(seen, WIDTH, HEIGHT)[0]
    np.testing.assert_allclose(after - before, (200, -50), atol=1e-6)


@pytest.mark.parametrize(("grip", "modifiers"), [(False, frozenset()), (True, CTRL)])
def test_the_wheel_zooms_and_back_again(grip, modifiers):
    controls = operator()
    if grip:
        controls.key("g")
    controls.scroll(0.0, 4.0, modifiers)
    assert controls.camera.distance < 0.75 * CAMERA.distance
    controls.scroll(0.0, -4.0, modifiers)
    assert controls.camera.distance == pytest.approx(CAMERA.distance)
    np.testing.assert_array_equal(controls.hand.position, POINT)


def test_a_wheel_that_turns_and_turns_leaves_a_camera():
    controls = operator()
    for notches in (1e9, -1e9):
        for _ in range(1000):
            controls.scroll(0.0, notches)
        assert np.isfinite(controls.camera.matrix(1.6)).all()


@pytest.mark.parametrize("aspect", [0.6, 1.6])
def test_fit_holds_every_point_whatever_was_seen_before(aspect):
    cloud = np.random.default_rng(5).normal(size=(60, 3)) * [0.2, 0.05, 0.1]
    controls = operator()
    controls.scroll(0.0, 9.0)
    drag(controls, (100, 900), button="right")
    turned = controls.camera.axes
    controls.see(lambda: cloud, aspect)
    controls.key("f")
    pixels = controls.camera.project(cloud, round(1000 * aspect), 1000)
    assert (pixels >= 0).all()
    assert (pixels <= [1000 * aspect, 1000]).all()
    np.testing.assert_allclose(controls.camera.axes, turned)


def test_seven_keys_show_the_standard_views_from_where_the_eye_is():
    controls = operator()
    seen = set()
    for digit in "1234567":
        controls.key(digit)
        seen.add((controls.camera.azimuth, controls.camera.elevation))
        assert controls.camera.target == CAMERA.target
        assert controls.camera.distance == CAMERA.distance
    assert seen == set(STANDARD_VIEWS.values())


def test_a_key_switches_an_overlay_and_switches_it_back():
    names = {f.name for f in fields(Overlays)}
    for key in KEYS:
        if key.request.kind == "overlay":
            assert key.request.key in names
            controls = operator()
            controls.key(key.name)
            shown = getattr(controls.overlays, key.request.key)
            assert shown != getattr(Overlays(), key.request.key)
            controls.key(key.name)
            assert controls.overlays == Overlays()


def test_every_key_is_listed_once_and_does_something():
    names = [key.name for key in KEYS]
    assert len(names) == len(set(names))
    for drives_tool in (True, False):
        listed = [shown for shown, _ in key_list(drives_tool)]
        assert len(listed) == len(set(listed))
        assert set(names) - set(listed) == (set() if drives_tool else {"g"}) | {","}
    again = {shown for shown, _ in key_list(False, recorded=True)}
    assert set(names) - again == {"escape", "r", "o", "k", "z", "e", "g", "x", "l", "m", "i", "j"}
    for key in KEYS:
        controls = operator(Camera(distance=3.0, azimuth=5.0))
        before = controls.camera, controls.overlays, controls.hand, controls.follows
        controls.see(lambda: np.array([POINT]), 1.6)
        controls.key(key.name)
        after = controls.camera, controls.overlays, controls.hand, controls.follows
        assert controls.requests() or after != before, key


def test_the_key_of_a_valve_is_asked_for_whether_or_not_a_tool_has_a_button():
    for drives_tool in (True, False):
        controls = Controls(Camera(), drives_tool=drives_tool)
        controls.key("x")
        assert controls.hand.pressed == drives_tool
        assert controls.requests() == [Request("press")]


def test_requests_come_in_their_order_and_only_once():
    controls = operator()
    for name in ("space", ".", "unknown", "o"):
        controls.key(name)
    controls.ask(Request("set", "friction.default", 0.3))
    asked = controls.requests()
    assert [r.kind for r in asked] == ["pause", "step", "record", "set"]
    assert asked[-1].value == 0.3
    assert controls.requests() == []


def test_a_key_with_ctrl_is_someone_else_s_except_the_emergency_stop():
    controls = operator()
    for name in ("c", "q", "r", "escape"):
        controls.key(name, CTRL)
    assert [r.kind for r in controls.requests()] == ["emergency"]
    assert controls.overlays == Overlays()


def test_an_unknown_overlay_is_named_with_those_there_are():
    with pytest.raises(ValueError, match=r"'fog'.*wireframe"):
        operator().ask(Request("overlay", "fog", True))


MS = 1_000_000


def frames(pace, drawing, n, now=0):
    """Begins [ns] of n frames that each take `drawing` ns and wait for the pace."""
    begins = []
    for _ in range(n):
        begins.append(now)
        pace.shown(now, now + drawing)
        now += drawing
        now += round(1e9 * pace.left(now))
    return np.array(begins)


def test_frames_come_at_their_rate_if_drawing_is_faster():
    pace = Pace(50.0)
    begins = frames(pace, 4 * MS, 100)
    # The first is due as soon as it is asked for, and the grid of the others begins where it ends.
    np.testing.assert_array_equal(np.diff(begins)[1:], 20 * MS)
    assert pace.frame_rate == pytest.approx(50.0, rel=0.01)
    assert pace.draw_ms == pytest.approx(4.0)


def test_a_frame_that_shows_nothing_new_is_counted_and_its_time_is_not():
    """Every second of twenty a second."""
    pace = Pace(20.0)
    for k in range(41):
        pace.shown(50 * MS * k, 50 * MS * k + (9 * MS if k % 2 == 0 else 0), drawn=k % 2 == 0)
    assert pace.draw_ms == pytest.approx(9.0)
    assert pace.frame_rate == pytest.approx(20.0, rel=0.01)
    assert pace.drawn_rate == pytest.approx(10.0, rel=0.01)


def test_frames_come_at_a_lower_rate_from_when_it_is_asked_for():
    pace = Pace(50.0)
    last = frames(pace, 4 * MS, 10)[-1]
    pace.at_most(10.0)
    begins = frames(pace, 4 * MS, 10, last + 20 * MS)
    np.testing.assert_array_equal(np.diff(begins)[1:], 100 * MS)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_slow_frames_leave_the_rest_of_the_time_and_are_not_made_up_for(share):
    pace = Pace(50.0, share)
    begins = frames(pace, 30 * MS, 20)
    np.testing.assert_allclose(np.diff(begins), 30 * MS / share, atol=2)
    resumed = frames(pace, 2 * MS, 20, begins[-1] + 60 * MS)
    assert np.diff(resumed)[1:].min() >= 20 * MS - 2


def test_a_snapshot_counts_for_latency_when_it_is_first_shown():
    pace = Pace(50.0)
    for now, published in ((10 * MS, 6 * MS), (30 * MS, 6 * MS), (50 * MS, 42 * MS), (70 * MS, 0)):
        pace.shown(now - MS, now, published)
    assert pace.latency.p50 == pytest.approx((4 + 8) / 2)
    assert pace.latency.p99 == pytest.approx(8, rel=0.01)


def test_what_was_once_in_view_stays_in_it_until_the_operator_moves_the_view():
    controls, aspect = operator(), WIDTH / HEIGHT
    there, here = np.array([[0.4, 0.1, 0.0]]), np.array([[-0.3, 0.0, 0.0]])

    def seen(points):
        pixels = controls.camera.project(points, WIDTH, HEIGHT)
        return bool(((pixels >= 0) & (pixels <= [WIDTH, HEIGHT])).all())

    assert not seen(there)
    controls.keep(there, aspect)
    assert seen(there)
    controls.keep(here, aspect)
    assert seen(there) and seen(here)
    controls.scroll(0.0, 5.0)
    zoomed = controls.camera
    controls.keep(there, aspect)
    assert controls.camera == zoomed
    controls.see(lambda: here, aspect)
    controls.ask(Request("fit"))
    controls.keep(there, aspect)
    assert seen(there) and seen(here)


def test_the_view_comes_near_to_what_is_held_follows_it_and_goes_back_to_everything():
    controls = Controls(CAMERA)
    everything = np.random.default_rng(5).uniform(-0.3, 0.3, (40, 3))
    controls.see(lambda: everything, WIDTH / HEIGHT)
    held = POINT + 0.01 * np.random.default_rng(6).uniform(-1, 1, (20, 3))
    controls.track(held, POINT, WIDTH / HEIGHT)
    assert controls.camera == CAMERA
    controls.key("t")
    controls.track(held, POINT, WIDTH / HEIGHT)
    near = controls.camera
    assert near.distance < CAMERA.distance / 3
    far = POINT + np.array([0.2, -0.1, 0.0])
    controls.keep(everything, WIDTH / HEIGHT)  # what else there is does not draw it back
    controls.track(held + far - POINT, far, WIDTH / HEIGHT)
    x, y = controls.camera.project(far, WIDTH, HEIGHT)[0]
    assert 0 < x < WIDTH and 0 < y < HEIGHT
    assert controls.camera.distance == near.distance
    controls.key("t")
    before = controls.camera
    controls.track(held, POINT, WIDTH / HEIGHT)
    assert controls.camera == before
    pixels = controls.camera.project(everything, WIDTH, HEIGHT)
    assert ((pixels > 0) & (pixels < [WIDTH, HEIGHT])).all()
