"""Laws of what protects the hand, read from the force traces that it would feel."""

import numpy as np
import pytest

from app.devices import limits_of, scripted_path, workspace_of
from config.load import list_scenes, load_scene
from haptics.backends.mock import make_mock
from haptics.device import DEVICE_GONE, TOUCH, make_virtual_device
from haptics.errors import HapticsError
from haptics.guard import EDGE_RELAXATION, make_guard
from haptics.limits import (
    AT_EDGE,
    DEVICE_LOST,
    EMERGENCY,
    FADING,
    NEAR_LIMIT,
    REASONS,
    STARTING_PUSHED,
    STOP_DEVICE_LOST,
    STOP_EMERGENCY,
    STOP_REQUESTED,
    buttons_mask,
    make_limits,
)
from haptics.path import oscillation_path
from haptics.servo import finished_reason, request_stop, servo_run, servo_summary
from haptics.workspace import make_workspace, positions_to_device
from physics.exchange.port import LIVE_FORCE_SCALE, LIVE_MAX_FORCE
from tests.realtime.hand import along, columns, external, move
from tests.realtime.wall import make_wall

X = (1.0, 0.0, 0.0)
K = 300.0
LARGEST = TOUCH.max_force
AT_ONCE = {"max_rate": 1e9, "fade_in": 0.0}
ROUNDING = 1e-12


def hand_on_a_wall(**limits):
    return make_wall(external(), K, limits=make_limits(LARGEST, **limits))


# ---- the start


def test_a_start_in_contact_sends_nothing_until_withdrawn_and_then_fades_in():
    wall = hand_on_a_wall(max_rate=1e9, start_force=0.5)
    pushed = move(wall.servo, along(X, [0.005] * 700))
    assert (pushed["sent"] == 0.0).all() and (pushed["flags"] & STARTING_PUSHED).all()
    assert np.abs(pushed["force_x"]).max() == K * 0.005 > 0.5
    free = move(wall.servo, along(X, [0.001] * 100))
    assert not (free["flags"] & STARTING_PUSHED).any()
    again = move(wall.servo, along(X, [0.005] * 500))
    ramp = np.minimum(np.arange(1, 601) / 500, 1.0)
    sent = np.concatenate([free["sent_x"], again["sent_x"]])
    command = np.concatenate([free["force_x"], again["force_x"]])
    assert sent == pytest.approx(ramp * command, abs=ROUNDING)
    assert servo_summary(wall.servo)["limits"]["held_back"] == 700


def test_a_stale_frame_does_not_open_the_gate_of_the_start():
    wall = make_wall(external(), K, limits=make_limits(LARGEST), stale=(0, 600))
    assert (move(wall.servo, along(X, [0.005] * 900))["sent"] == 0.0).all()


def test_no_force_at_the_start_exceeds_the_ramp_however_the_hand_moves():
    path, _ = oscillation_path((0.0, 0.0, 0.0), (0.02, 0.0, 0.0), 7.0, 0.1)
    wall = make_wall(make_mock(TOUCH, path), 2000.0, limits=make_limits(LARGEST, max_rate=1e9))
    servo_run(wall.servo, 600)
    rows = columns(wall.servo)
    ramp = np.minimum(np.arange(1, 601) / 500, 1.0)
    norm = np.linalg.norm(rows["sent"], axis=1)
    assert (norm <= ramp * LARGEST + ROUNDING).all()
    assert (norm[:250] > 0.9 * ramp[:250] * LARGEST).any(), "the ramp is what holds it"


# ---- clamp, rate, live values


def test_the_hand_never_gets_more_than_the_device_can_give_nor_a_faster_change():
    path, _ = oscillation_path((0.0, 0.0, 0.0), (0.03, 0.0, 0.0), 9.0, 0.1)
    limits = make_limits(LARGEST, max_rate=500.0, fade_in=0.0, guard=make_guard(saturation_damping=2.0))
    wall = make_wall(make_mock(TOUCH, path), 3000.0, limits=limits)
    servo_run(wall.servo, 1000)
    sent = columns(wall.servo)["sent"]
    assert np.linalg.norm(sent, axis=1).max() == pytest.approx(LARGEST, abs=ROUNDING)
    assert np.linalg.norm(np.diff(sent, axis=0), axis=1).max() <= 0.5 + ROUNDING


def test_the_operators_force_scale_and_limit_take_the_place_of_the_configured_ones():
    workspace = make_workspace(1.0)
    wall = make_wall(external(), K, workspace=workspace, limits=make_limits(2.0, ceiling=LARGEST, **AT_ONCE))
    configured = move(wall.servo, along(X, [0.004, 0.02]))
    assert configured["sent_x"] == pytest.approx([-1.2, -2.0])
    wall.port.live[LIVE_FORCE_SCALE] = 0.5
    wall.port.live[LIVE_MAX_FORCE] = 1e3
    assert move(wall.servo, along(X, [0.004, 0.1]))["sent_x"] == pytest.approx([-0.6, -LARGEST])
    summary = servo_summary(wall.servo)["workspace"]
    assert summary == {"scale": 1.0, "force_scale": 0.5, "power_consistent": False, "stiffness_felt": 0.5}
    wall.port.live[LIVE_MAX_FORCE] = 0.25
    assert move(wall.servo, along(X, [0.1]))["sent_x"] == pytest.approx([-0.25])


def test_a_scaled_workspace_keeps_power_and_is_felt_stiffer_by_the_square_of_its_scale():
    wall = make_wall(external(), K, workspace=make_workspace(2.0), limits=make_limits(1e3, **AT_ONCE))
    sent = move(wall.servo, along(X, [0.001]))["sent_x"][0]
    summary = servo_summary(wall.servo)["workspace"]
    assert summary == {"scale": 2.0, "force_scale": 2.0, "power_consistent": True, "stiffness_felt": 4.0}
    assert -sent / 0.001 == pytest.approx(summary["stiffness_felt"] * K)


# ---- the edge of the reach

EDGE = make_guard(*TOUCH.reach, margin=0.01, edge_stiffness=200.0)


def test_beyond_the_edge_a_spring_pushes_inward_and_inside_there_is_nothing():
    wall = make_wall(external(), 0.0, limits=make_limits(1e3, guard=EDGE, **AT_ONCE))
    lower, upper = np.array(TOUCH.reach[0]) + 0.01, np.array(TOUCH.reach[1]) - 0.01
    points = np.random.default_rng(0).uniform(lower - 0.02, upper + 0.02, (500, 3))
    rows = move(wall.servo, points)
    law = 200.0 * (np.clip(points, lower, upper) - points)
    assert rows["sent"] == pytest.approx(law, abs=ROUNDING)
    inside = (law == 0.0).all(axis=1)
    assert inside.any() and (rows["flags"] & AT_EDGE > 0).tolist() == (~inside).tolist()


def test_the_edge_damps_both_ways_and_never_pulls_outward():
    wall = make_wall(external(), 0.0, limits=make_limits(1e3, guard=EDGE, **AT_ONCE))
    beyond = EDGE.upper + np.array([0.004, -0.05, -0.05])
    force = {v: move(wall.servo, beyond, velocity=(v, 0.0, 0.0))["sent_x"][0] for v in (-5.0, -0.1, 0.1)}
    damping = 200.0 * EDGE_RELAXATION
    assert force[0.1] == pytest.approx(-200.0 * 0.004 - damping * 0.1)
    assert force[-0.1] == pytest.approx(-200.0 * 0.004 + damping * 0.1)
    assert force[-5.0] == 0.0


@pytest.mark.parametrize("speed", [0.05, 0.2, 0.4])
def test_a_stylus_thrown_at_the_edge_comes_back_with_less_energy(speed):
    """A bare stylus with the encoder and the velocity filter of a Touch: the worst case of a sampled edge."""
    stylus = make_virtual_device(
        [[0.19, 0.0, 0.0]], held=True, mass=TOUCH.mass, hand_stiffness=0.0, hand_damping=0.0,
        resolution=TOUCH.resolution, velocity_cutoff_hz=30.0,
    )  # fmt: skip
    stylus.velocity[0] = speed
    wall = make_wall(stylus, 0.0, limits=make_limits(LARGEST, fade_in=0.0, guard=EDGE))
    servo_run(wall.servo, 600)
    assert stylus.position[0] < EDGE.upper[0], "it has left the edge"
    assert -speed < stylus.velocity[0] < 0.0
    # a half swing with c = 1 N s/m keeps exp(-pi c / (2 sqrt(K m))) = 0.59 of its speed; the filter's lag
    # of 20 degrees at the swing's 11 Hz and the clamp cost some of that
    assert -stylus.velocity[0] < 0.8 * speed


@pytest.mark.parametrize("name", sorted(list_scenes()))
def test_no_scripted_path_of_a_scene_comes_near_the_edge(name):
    spec = load_scene(name)
    guard = limits_of(spec).guard
    path = positions_to_device(workspace_of(spec), scripted_path(spec)[0])
    assert (path > guard.lower).all() and (path < guard.upper).all()


def test_a_margin_that_leaves_no_room_and_a_negative_coefficient_are_refused():
    with pytest.raises(HapticsError, match="edge_margin"):
        make_guard(*TOUCH.reach, margin=0.2)
    with pytest.raises(HapticsError, match="edge_stiffness"):
        make_guard(edge_stiffness=-1.0)


# ---- damping near the largest force


@pytest.mark.parametrize(
    ("share", "damping"), [(0.5, 0.0), (0.79, 0.0), (0.85, 0.3125), (0.9, 1.0), (1.0, 2.0), (4.0, 2.0)]
)
def test_near_the_largest_force_a_damper_sets_in_smoothly_and_opposes_the_motion(share, damping):
    guard = make_guard(saturation_damping=2.0)
    wall = make_wall(external(), K, limits=make_limits(LARGEST, guard=guard, **AT_ONCE))
    depth = share * LARGEST / K
    # driven out by the wall, and along it, where the clamp cannot take the damping away
    rows = move(wall.servo, along(X, [depth]), velocity=(-0.2, 0.0, 0.0))
    sent = rows["sent"][0]
    expected = -min(share, 1.0) * LARGEST + damping * 0.2
    # 3 s^2 - 2 s^3 at a quarter of the rise is 3/16 - 2/64, at half of it 3/4 - 2/8
    assert sent[0] == pytest.approx(expected, abs=1e-9)
    assert bool(rows["flags"][0] & NEAR_LIMIT) == (damping > 0.0)
    pressed = move(wall.servo, along(X, [depth]), velocity=(0.2, 0.0, 0.0))["sent"][0]
    assert np.linalg.norm(pressed) <= LARGEST + ROUNDING
    assert pressed[0] <= -min(share, 1.0) * LARGEST + ROUNDING, "it never helps the hand in"


# ---- stops


def test_an_emergency_stop_takes_the_force_away_within_its_own_time():
    wall = hand_on_a_wall(**AT_ONCE)
    move(wall.servo, along(X, [0.005] * 5))
    request_stop(wall.servo, STOP_EMERGENCY)
    rows = move(wall.servo, along(X, [0.005] * 20))
    assert rows["sent_x"] == pytest.approx(-1.5 * (1.0 - np.arange(1, 11) / 10), abs=ROUNDING)
    assert (rows["flags"] & EMERGENCY).all()
    assert finished_reason(wall.servo) == STOP_EMERGENCY
    assert servo_summary(wall.servo)["stop_reason"] == REASONS[STOP_EMERGENCY]


@pytest.mark.parametrize("later", [STOP_EMERGENCY, STOP_REQUESTED])
def test_an_emergency_hurries_a_fade_and_no_later_request_takes_it_back(later):
    wall = hand_on_a_wall(**AT_ONCE)
    move(wall.servo, along(X, [0.005] * 5))
    request_stop(wall.servo, STOP_REQUESTED + STOP_EMERGENCY - later)
    request_stop(wall.servo, later)
    assert len(move(wall.servo, along(X, [0.005] * 60))["sent"]) == 10


def test_all_emergency_buttons_together_stop_and_one_alone_does_not_though_it_is_the_clutch():
    workspace = make_workspace(clutch_buttons=buttons_mask([2]))
    limits = make_limits(LARGEST, emergency_buttons=buttons_mask([1, 2]), **AT_ONCE)
    wall = make_wall(external(), K, workspace=workspace, limits=limits)
    for buttons in (0b00, 0b01, 0b10, 0b110):
        assert not (move(wall.servo, along(X, [0.005] * 5), buttons)["flags"] & EMERGENCY).any()
    rows = move(wall.servo, along(X, 0.005 + 1e-4 * np.arange(20)), 0b11)
    assert len(rows["sent"]) == 10 and (rows["sent"][-1] == 0.0).all()
    assert finished_reason(wall.servo) == STOP_EMERGENCY
    assert np.diff(rows["px"]) == pytest.approx(1e-4), "the clutch does not hold"


def test_without_emergency_buttons_none_stop():
    wall = hand_on_a_wall(**AT_ONCE)
    assert len(move(wall.servo, along(X, [0.005] * 50), 0b11111111)["sent"]) == 50


def test_a_device_that_is_lost_fades_the_force_and_says_so():
    wall = hand_on_a_wall(**AT_ONCE)
    move(wall.servo, along(X, [0.005] * 5))
    wall.servo.device.health[0] = DEVICE_GONE
    rows = move(wall.servo, along(X, [0.005] * 100))
    assert rows["sent_x"] == pytest.approx(-1.5 * (1.0 - np.arange(1, 51) / 50), abs=ROUNDING)
    assert (rows["flags"] & DEVICE_LOST).all() and (rows["flags"] & FADING).all()
    assert finished_reason(wall.servo) == STOP_DEVICE_LOST
    assert np.isfinite(rows["energy_J"]).all()


def test_a_pose_that_is_no_number_fades_the_force_and_leaves_the_account_finite():
    wall = hand_on_a_wall(**AT_ONCE)
    move(wall.servo, along(X, [0.005] * 5))
    rows = move(wall.servo, along(X, [np.nan] * 100))
    assert np.isfinite(rows["sent"]).all() and (rows["sent"][-1] == 0.0).all()
    assert len(rows["sent"]) == 50 and np.isfinite(rows["energy_J"]).all()
