"""Laws of target paths and of the map between device and scene."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palpo.haptics.errors import HapticsError
from palpo.haptics.path import waypoint_path
from palpo.haptics.workspace import (
    force_to_device,
    make_workspace,
    orientations_to_device,
    pose_to_scene,
    positions_to_device,
    quaternion_from_axis_angle,
    quaternion_matrix,
    quaternion_product,
)
from palpo.physics.exchange.port import make_port
from tests.servo.swing import oscillation_path

WAYPOINTS = [[0.0, 0.0, 0.1, 0.0], [0.5, 0.02, 0.05, 0.0], [0.8, 0.02, 0.05, 0.03], [1.5, 0.0, 0.1, 0.0]]
VECTOR = arrays(np.float64, 3, elements=st.floats(-5.0, 5.0))


@pytest.mark.parametrize("kind", ["smooth", "linear"])
def test_a_path_passes_through_its_waypoints_on_time(kind):
    positions, orientations = waypoint_path(WAYPOINTS, kind)
    assert len(positions) == len(orientations) == 1501
    for t, *point in WAYPOINTS:
        assert positions[round(1000 * t)] == pytest.approx(point, abs=1e-15)


def test_a_smooth_path_has_the_peak_speed_and_no_jump_of_speed_of_minimum_jerk():
    positions, _ = waypoint_path([[0.0, 0.0, 0.0, 0.0], [1.0, 0.1, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]])
    speed = np.diff(positions[:, 0]) * 1000.0
    # v_max = 15/8 L/T; a_max = 10/sqrt(3) L/T^2; the differences are second order in the tick
    assert speed.max() == pytest.approx(15 / 8 * 0.1, rel=1e-5)
    assert np.abs(np.diff(speed)).max() * 1000.0 == pytest.approx(10 / np.sqrt(3) * 0.1, rel=1e-3)


def test_a_linear_path_has_constant_speed_between_waypoints():
    positions, _ = waypoint_path([[0.0, 0.0, 0.0, 0.0], [1.0, 0.1, 0.0, 0.0]], "linear")
    assert np.diff(positions[:, 0]) == pytest.approx(1e-4)


def test_a_path_holds_its_first_point_until_its_first_time():
    positions, _ = waypoint_path([[0.2, 1.0, 2.0, 3.0], [0.4, 0.0, 0.0, 0.0]])
    assert (positions[:201] == [1.0, 2.0, 3.0]).all()
    assert waypoint_path([[0.1, 1.0, 2.0, 3.0]])[0].shape == (101, 3)


def test_a_turn_follows_the_great_circle():
    turns = [[0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.2]]
    _, orientations = waypoint_path([[0.0] * 4, [1.0, 0.0, 0.0, 0.0]], "linear", turns)
    angle = 1.2 * np.arange(1001) / 1000
    assert orientations[:, 0] == pytest.approx(np.cos(angle / 2))
    assert orientations[:, 2] == pytest.approx(np.sin(angle / 2))


def test_an_oscillation_is_the_sine_that_it_says_after_its_ramp():
    positions, _ = oscillation_path((0.1, 0.0, 0.0), (0.02, 0.0, 0.0), 3.0, 2.0, ramp=0.5)
    t = np.arange(2001) / 1000
    assert positions[500:, 0] == pytest.approx(0.1 + 0.02 * np.sin(6 * np.pi * t[500:]))
    # it starts at rest: the ramp's u^3 times the sine's w t
    assert positions[1, 0] - 0.1 == pytest.approx(0.02 * 10 * (1e-3 / 0.5) ** 3 * 6 * np.pi * 1e-3, rel=0.01)


@pytest.mark.parametrize(
    ("waypoints", "message"),
    [
        ([[0.0, 1.0, 2.0]], "t, x, y, z"),
        ([[0.0, 0.0, 0.0, np.nan]], "waypoint 0 must be finite"),
        ([[0.0] * 4, [0.0] * 4], "waypoint 1 .* after"),
        ([[-1.0, 0.0, 0.0, 0.0]], "before the start"),
    ],
)
def test_broken_waypoints_are_refused_by_number(waypoints, message):
    with pytest.raises(HapticsError, match=message):
        waypoint_path(waypoints)


def mapped(workspace, position, velocity, force):
    device, scene = make_port(), make_port()
    device.position[:], device.velocity[:], scene.force[:] = position, velocity, force
    pose_to_scene.py_func(workspace, device, scene)
    force_to_device.py_func(workspace, workspace.force_scale, scene, device)
    return device, scene


@given(VECTOR, VECTOR, VECTOR, st.floats(0.1, 10.0), st.floats(-3.0, 3.0))
def test_the_default_map_conserves_power_and_inverts(axis, velocity, force, scale, angle):
    if np.linalg.norm(axis) < 1e-3:
        axis = np.array([0.0, 1.0, 0.0])
    workspace = make_workspace(scale, (0.1, -0.2, 0.3), quaternion_from_axis_angle(axis, angle))
    device, scene = mapped(workspace, velocity, velocity, force)
    assert device.force @ device.velocity == pytest.approx(scene.force @ scene.velocity, abs=1e-9)
    assert positions_to_device(workspace, scene.position) == pytest.approx(device.position, abs=1e-12)
    assert orientations_to_device(workspace, scene.orientation) == pytest.approx(device.orientation)


def test_with_force_scale_one_a_newton_stays_a_newton():
    workspace = make_workspace(
        0.5, rotation=quaternion_from_axis_angle((0, 0, 1), np.pi / 2), force_scale=1.0
    )
    device, _ = mapped(workspace, np.zeros(3), np.zeros(3), np.array([1.0, 2.0, 3.0]))
    assert device.force == pytest.approx([2.0, -1.0, 3.0])


def test_the_quaternion_product_composes_rotations():
    p, q = quaternion_from_axis_angle((1, 2, 3), 0.7), quaternion_from_axis_angle((-1, 0, 1), 1.9)
    assert quaternion_matrix(quaternion_product(p, q)) == pytest.approx(
        quaternion_matrix(p) @ quaternion_matrix(q)
    )


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"scale": np.nan}, {"rotation": [0.0] * 4}])
def test_a_broken_workspace_is_refused(options):
    with pytest.raises(HapticsError, match="workspace"):
        make_workspace(**options)
