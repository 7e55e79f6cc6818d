"""Laws of the clutch: the scene's origin moves, and nothing in the scene does."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.haptics.clutch import follow_hand
from palpo.haptics.flags import CLUTCHED
from palpo.haptics.workspace import make_workspace, quaternion_from_axis_angle
from tests.servo.hand import UPRIGHT, along, external, move
from tests.servo.wall import make_wall

BUTTON = 0b10
TURN = quaternion_from_axis_angle((1.0, 2.0, -1.0), 0.8)
PLACE = (0.3, 0.1, -0.2)


def servo(scale=2.0, **options):
    workspace = make_workspace(scale, PLACE, TURN, clutch_buttons=BUTTON)
    return make_wall(external(), 300.0, face=1.0, workspace=workspace, **options).servo


def test_a_clutched_scene_stands_at_rest_and_its_tool_still_turns_with_the_stylus():
    hand = servo()
    before = move(hand, along((1, 1, 0), [0.0, 0.01]))
    turned = quaternion_from_axis_angle((0.0, 1.0, 0.0), 0.5)
    held = move(
        hand, along((1, 1, 0), [0.02, 0.05, -0.07]), BUTTON, turned, velocity=(1, 2, 3), spin=(1, 0, 0)
    )
    assert (held["p"] == before["p"][-1]).all() and (held["v"] == 0.0).all()
    assert (held["flags"] & CLUTCHED).all() and not (before["flags"] & CLUTCHED).any()
    assert not np.allclose(held["q"], before["q"][-1])
    assert np.linalg.norm(held["w"], axis=1) == pytest.approx(1.0)


def test_after_the_release_the_scene_moves_as_the_hand_does_and_has_not_jumped():
    hand = servo()
    start = move(hand, along((1, 0, 0), [0.01]))["p"][-1]
    move(hand, along((0, 1, 0), [0.02, 0.08]), BUTTON)
    step = np.array([1e-3, -2e-3, 5e-4])
    free = move(hand, np.array([0.0, 0.08, 0.0]) + np.outer([1, 2], step))
    motion = 2.0 * hand.workspace.rotation @ step
    assert free["p"] == pytest.approx(start + np.outer([1, 2], motion), abs=1e-15)


def test_ten_thousand_clutches_add_up_to_the_free_motion_within_the_rounding_of_each():
    hand = servo(1.0)
    rng = np.random.default_rng(0)
    start = move(hand, [[0.0, 0.0, 0.0]])["p"][-1]
    device, free = np.zeros(3), np.zeros(3)
    for _ in range(10_000):
        stroke, back = rng.uniform(-0.05, 0.05, (2, 3))
        device = device + stroke
        free = free + stroke
        move(hand, [device])
        device = back
        move(hand, [device], BUTTON)
    end = move(hand, [device])["p"][-1]
    # each clutch rounds a position below 10 m, 2e-15; ten thousand are a random walk of a hundred times that
    assert np.abs(start + hand.workspace.rotation @ free - end).max() < 2e-13


def test_while_an_offset_of_the_orientation_decays_the_spin_is_that_of_what_is_seen():
    """Of a hand that goes on turning about another axis than the offset's: log(q(t + h) q(t)^-1) / h."""
    hand, h = servo(), 1e-5
    parts = hand.clutch, hand.workspace, hand.device_port, hand.port
    device, tool = hand.device_port, hand.port
    device.orientation[:] = UPRIGHT
    follow_hand(*parts, False, False, h)
    device.orientation[:] = quaternion_from_axis_angle((0.3, 1.0, -0.5), 1.2)
    follow_hand(*parts, True, True, h)
    spin, start, steps = (
        np.array([2.0, -1.0, 1.5]),
        Rotation.from_quat(device.orientation, scalar_first=True),
        [],
    )
    device.angular_velocity[:] = spin
    for k in range(1, 4):
        turned = Rotation.from_rotvec(k * h * spin) * start
        device.orientation[:] = turned.as_quat(scalar_first=True)
        follow_hand(*parts, False, False, h)
        steps.append((Rotation.from_quat(tool.orientation, scalar_first=True), tool.angular_velocity.copy()))
    for (before, _), (now, velocity) in pairwise(steps):
        # first order in h: of rates up to 5 rad/s, 25 h
        np.testing.assert_allclose((now * before.inv()).as_rotvec() / h, velocity, atol=25 * h)


def test_holding_the_clutch_for_long_does_not_wander():
    hand = servo()
    start = move(hand, [[0.01, 0.02, 0.03]])["p"][-1]
    shaken = np.random.default_rng(1).normal(0.0, 0.05, (5000, 3))
    held = move(hand, shaken, BUTTON)
    assert (held["p"] == start).all()
    back = move(hand, shaken[-1:])
    assert back["p"][0] == pytest.approx(start, abs=1e-15)


def test_a_start_at_a_point_maps_the_device_onto_it_wherever_it_is_and_then_follows_the_hand():
    point = np.array([0.4, 0.5, 0.6])
    hand = servo(start_at=point)
    rows = move(hand, [[0.1, -0.05, 0.02], [0.1, -0.04, 0.02]], velocity=(0.0, 1.0, 0.0))
    assert (rows["p"][0] == point).all() and (rows["v"][0] == 0.0).all()
    motion = 2.0 * hand.workspace.rotation @ [0.0, 0.01, 0.0]
    assert rows["p"][1] == pytest.approx(point + motion, abs=1e-15)
    assert (rows["flags"] & CLUTCHED > 0).tolist() == [True, False]


def test_a_run_moves_its_own_origin_and_not_the_workspace_that_it_was_given():
    workspace = make_workspace(1.0, PLACE, clutch_buttons=BUTTON)
    hand = make_wall(external(), 300.0, workspace=workspace).servo
    move(hand, along((1, 0, 0), [0.0, 0.1]), BUTTON)  # at the first tick there is nothing to hold yet
    assert workspace.offset.tolist() == list(PLACE)
    assert hand.workspace.offset == pytest.approx(np.array(PLACE) - [0.1, 0.0, 0.0])


@pytest.mark.parametrize(("mask", "buttons"), [(0, 0b11), (0b10, 0b01)])
def test_other_buttons_and_a_clutch_without_a_button_leave_the_map_alone(mask, buttons):
    hand = make_wall(external(), 300.0, workspace=make_workspace(clutch_buttons=mask)).servo
    path = along((1, 2, 3), np.linspace(0.0, 0.02, 5))
    assert (move(hand, path, buttons)["p"] == path).all()
