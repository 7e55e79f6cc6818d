"""Laws of what protects the hand, read from the force traces that it would feel."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palpo.app.devices.mock import scripted_path
from palpo.app.devices.protection import limits_of, workspace_of
from palpo.config.load import list_scenes, load_scene
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.control import finished_reason, request_stop
from palpo.haptics.device import DEVICE_GONE, HandGrip, make_virtual_device
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drivers import servo_run
from palpo.haptics.errors import HapticsError
from palpo.haptics.flags import (
    AT_EDGE,
    DEVICE_LOST,
    EMERGENCY,
    FADING,
    NEAR_LIMIT,
    POSE_HELD,
    STARTING_PUSHED,
)
from palpo.haptics.guard import EDGE_RELAXATION, make_guard
from palpo.haptics.limits import AT_ONCE, Fades, buttons_mask, make_limits
from palpo.haptics.plausible import HAND_SPEED, HAND_TURN, judge_pose, keep_pose, make_pose_memory
from palpo.haptics.reasons import REASONS, STOP_DEVICE_LOST, STOP_EMERGENCY, STOP_POSE, STOP_REQUESTED
from palpo.haptics.summary import servo_summary
from palpo.haptics.workspace import make_workspace, positions_to_device
from palpo.physics.exchange.port import make_port
from tests.servo.hand import along, columns, external, move
from tests.servo.swing import oscillation_path
from tests.servo.wall import make_wall

X = (1.0, 0.0, 0.0)
K = 300.0
LARGEST = TOUCH.max_force
AS_ASKED = {"max_rate": 1e9, "fades": AT_ONCE, "hand_speed": np.inf}
ROUNDING = 1e-12
FIVE_THEN_FADE = 1.0 - np.r_[[0.0] * 5, np.arange(1, 51) / 50]


def hand_on_a_wall(**limits):
    return make_wall(external(), K, limits=make_limits(LARGEST, **limits))


# ---- the start


def test_a_start_in_contact_sends_nothing_until_withdrawn_and_then_fades_in():
    wall = hand_on_a_wall(max_rate=1e9)
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
    limits = make_limits(LARGEST, max_rate=500.0, fades=AT_ONCE, guard=make_guard(saturation_damping=2.0))
    wall = make_wall(make_mock(TOUCH, path), 3000.0, limits=limits)
    servo_run(wall.servo, 1000)
    sent = columns(wall.servo)["sent"]
    assert np.linalg.norm(sent, axis=1).max() == pytest.approx(LARGEST, abs=ROUNDING)
    assert np.linalg.norm(np.diff(sent, axis=0), axis=1).max() <= 0.5 + ROUNDING


def test_the_operators_force_scale_and_limit_take_the_place_of_the_configured_ones():
    workspace = make_workspace(1.0)
    wall = make_wall(external(), K, workspace=workspace, limits=make_limits(2.0, ceiling=LARGEST, **AS_ASKED))
    configured = move(wall.servo, along(X, [0.004, 0.02]))
    assert configured["sent_x"] == pytest.approx([-1.2, -2.0])
    wall.port.live["force_scale"][0] = 0.5
    wall.port.live["max_force"][0] = 1e3
    move(wall.servo, along(X, [0.0] * 100))
    assert move(wall.servo, along(X, [0.004, 0.1]))["sent_x"] == pytest.approx([-0.6, -LARGEST])
    summary = servo_summary(wall.servo)["workspace"]
    assert summary == {"scale": 1.0, "force_scale": 0.5, "power_consistent": False, "stiffness_felt": 0.5}
    wall.port.live["max_force"][0] = 0.25
    move(wall.servo, along(X, [0.0] * 100))
    assert move(wall.servo, along(X, [0.1]))["sent_x"] == pytest.approx([-0.25])


@pytest.mark.parametrize(
    ("entry", "before", "after"), [("force_scale", 1.0, 10.0), ("max_force", LARGEST, 0.3)]
)
def test_a_live_change_in_contact_goes_over_evenly_in_a_tenth_of_a_second(entry, before, after):
    """The wall holds 0.9 N, or as much of it as the limit lets through."""
    wall = make_wall(external(), K, limits=make_limits(LARGEST, **AS_ASKED))
    move(wall.servo, along(X, [0.003]))
    wall.port.live[entry] = after
    sent = -move(wall.servo, along(X, [0.003] * 150))["sent_x"]
    value = before + (after - before) * np.minimum(np.arange(1, 151) / 100, 1.0)
    law = np.minimum(value * 0.9, LARGEST) if entry == "force_scale" else np.minimum(value, 0.9)
    assert sent == pytest.approx(law, abs=1e-9)


def test_a_live_value_that_changes_again_and_again_never_goes_faster_than_a_tenth_of_its_way_a_tick():
    wall = make_wall(external(), K, limits=make_limits(1e3, **AS_ASKED))
    move(wall.servo, along(X, [0.003]))
    rng, sent, force = np.random.default_rng(0), [0.9], K * 0.003
    for _ in range(300):
        wall.port.live["force_scale"][0] = goal = rng.uniform(0.1, 10.0)
        felt = -move(wall.servo, along(X, [0.003]))["sent_x"][0]
        assert abs(felt - sent[-1]) <= abs(goal * force - sent[-1]) / 100 + ROUNDING
        sent.append(felt)


def test_a_live_value_set_before_anything_is_felt_is_there_at_once():
    wall = make_wall(external(), K, limits=make_limits(LARGEST, max_rate=1e9, fades=Fades(start_force=5.0)))
    wall.port.live["force_scale"][0] = 2.0
    sent = move(wall.servo, along(X, [0.003] * 600))["sent_x"]
    assert sent == pytest.approx(-1.8 * np.minimum(np.arange(1, 601) / 500, 1.0), abs=1e-9)


def test_a_scaled_workspace_keeps_power_and_is_felt_stiffer_by_the_square_of_its_scale():
    wall = make_wall(external(), K, workspace=make_workspace(2.0), limits=make_limits(1e3, **AS_ASKED))
    sent = move(wall.servo, along(X, [0.001]))["sent_x"][0]
    summary = servo_summary(wall.servo)["workspace"]
    assert summary == {"scale": 2.0, "force_scale": 2.0, "power_consistent": True, "stiffness_felt": 4.0}
    assert -sent / 0.001 == pytest.approx(summary["stiffness_felt"] * K)


# ---- the edge of the reach

EDGE = make_guard(*TOUCH.reach, margin=0.01, edge_stiffness=200.0)


def test_beyond_the_edge_a_spring_pushes_inward_and_inside_there_is_nothing():
    wall = make_wall(external(), 0.0, limits=make_limits(1e3, guard=EDGE, **AS_ASKED))
    lower, upper = np.array(TOUCH.reach[0]) + 0.01, np.array(TOUCH.reach[1]) - 0.01
    points = np.random.default_rng(0).uniform(lower - 0.02, upper + 0.02, (500, 3))
    rows = move(wall.servo, points)
    law = 200.0 * (np.clip(points, lower, upper) - points)
    assert rows["sent"] == pytest.approx(law, abs=ROUNDING)
    inside = (law == 0.0).all(axis=1)
    assert inside.any() and (rows["flags"] & AT_EDGE > 0).tolist() == (~inside).tolist()


def test_the_edge_damps_both_ways_and_never_pulls_outward():
    wall = make_wall(external(), 0.0, limits=make_limits(1e3, guard=EDGE, **AS_ASKED))
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
        [[0.19, 0.0, 0.0]], grip=HandGrip(0.0, 0.0), mass=TOUCH.mass,
        resolution=TOUCH.resolution, velocity_cutoff_hz=30.0,
    )  # fmt: skip
    stylus.velocity[0] = speed
    wall = make_wall(stylus, 0.0, limits=make_limits(LARGEST, fades=AT_ONCE, guard=EDGE))
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
    path = positions_to_device(workspace_of(spec), scripted_path(spec).table()[0])
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
    wall = make_wall(external(), K, limits=make_limits(LARGEST, guard=guard, **AS_ASKED))
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
    wall = hand_on_a_wall(**AS_ASKED)
    move(wall.servo, along(X, [0.005] * 5))
    request_stop(wall.servo, STOP_EMERGENCY)
    rows = move(wall.servo, along(X, [0.005] * 20))
    assert rows["sent_x"] == pytest.approx(-1.5 * (1.0 - np.arange(1, 11) / 10), abs=ROUNDING)
    assert (rows["flags"] & EMERGENCY).all()
    assert finished_reason(wall.servo) == STOP_EMERGENCY
    assert servo_summary(wall.servo)["stop_reason"] == REASONS[STOP_EMERGENCY]


@pytest.mark.parametrize("later", [STOP_EMERGENCY, STOP_REQUESTED])
def test_an_emergency_hurries_a_fade_and_no_later_request_takes_it_back(later):
    wall = hand_on_a_wall(**AS_ASKED)
    move(wall.servo, along(X, [0.005] * 5))
    request_stop(wall.servo, STOP_REQUESTED + STOP_EMERGENCY - later)
    request_stop(wall.servo, later)
    assert len(move(wall.servo, along(X, [0.005] * 60))["sent"]) == 10


def test_all_emergency_buttons_together_stop_and_one_alone_does_not_though_it_is_the_clutch():
    workspace = make_workspace(clutch_buttons=buttons_mask([2]))
    limits = make_limits(LARGEST, emergency_buttons=buttons_mask([1, 2]), **AS_ASKED)
    wall = make_wall(external(), K, workspace=workspace, limits=limits)
    for buttons in (0b00, 0b01, 0b10, 0b110):
        assert not (move(wall.servo, along(X, [0.005] * 5), buttons)["flags"] & EMERGENCY).any()
    rows = move(wall.servo, along(X, 0.005 + 1e-4 * np.arange(20)), 0b11)
    assert len(rows["sent"]) == 10 and (rows["sent"][-1] == 0.0).all()
    assert finished_reason(wall.servo) == STOP_EMERGENCY
    assert np.diff(rows["px"]) == pytest.approx(1e-4), "the clutch does not hold"


def test_without_emergency_buttons_none_stop():
    wall = hand_on_a_wall(**AS_ASKED)
    assert len(move(wall.servo, along(X, [0.005] * 50), 0b11111111)["sent"]) == 50


def test_a_device_that_is_lost_fades_the_force_and_says_so():
    wall = hand_on_a_wall(**AS_ASKED)
    move(wall.servo, along(X, [0.005] * 5))
    wall.servo.device.health[0] = DEVICE_GONE
    rows = move(wall.servo, along(X, [0.005] * 100))
    assert rows["sent_x"] == pytest.approx(-1.5 * (1.0 - np.arange(1, 51) / 50), abs=ROUNDING)
    assert (rows["flags"] & DEVICE_LOST).all() and (rows["flags"] & FADING).all()
    assert finished_reason(wall.servo) == STOP_DEVICE_LOST
    assert np.isfinite(rows["energy_J"]).all()


def test_a_pose_that_is_no_number_is_held_for_five_ticks_then_the_force_fades_and_the_account_is_finite():
    wall = hand_on_a_wall(**AS_ASKED)
    move(wall.servo, along(X, [0.005] * 5))
    rows = move(wall.servo, along(X, [np.nan] * 100))
    assert rows["sent_x"] == pytest.approx(-1.5 * FIVE_THEN_FADE, abs=ROUNDING)
    assert (rows["flags"] & POSE_HELD).all() and np.isfinite(rows["energy_J"]).all()
    assert finished_reason(wall.servo) == STOP_POSE


# ---- poses that no hand can have


def spike(ticks, column="position", size=(0.1, 0.0, 0.0)):
    """What is sent to a hand at rest 3 mm in the wall while the device reports nonsense for some ticks."""
    wall = make_wall(external(), K, limits=make_limits(LARGEST, max_rate=1e9, fades=AT_ONCE))
    move(wall.servo, along(X, [0.003] * 5))
    pose = {"position": np.array([0.003, 0.0, 0.0]), "velocity": np.zeros(3), "spin": np.zeros(3)}
    pose["orientation"] = np.array([1.0, 0.0, 0.0, 0.0])
    wrong = dict(pose)
    wrong[column] = pose[column] + np.array(size)
    rows = []
    for told, n in ((wrong, ticks), (pose, 100 - ticks)):
        options = {name: value for name, value in told.items() if name != "position"}
        rows.append(move(wall.servo, np.tile(told["position"], (n, 1)), **options))
    return wall, {name: np.concatenate([r[name] for r in rows]) for name in rows[0]}


NONSENSE = [
    ("position", (0.1, 0.0, 0.0)),
    ("position", (0.0, np.inf, 0.0)),
    ("velocity", (0.0, 0.0, 40.0)),
    ("spin", (0.0, 300.0, 0.0)),
    ("orientation", (-1.0, 0.0, 1.0, 0.0)),
]


@pytest.mark.parametrize(("column", "size"), NONSENSE)
@pytest.mark.parametrize("ticks", [1, 5])
def test_a_spike_of_the_pose_is_not_felt(column, size, ticks):
    wall, rows = spike(ticks, column, size)
    assert rows["sent_x"] == pytest.approx(np.full(100, -0.9), abs=ROUNDING)
    assert np.count_nonzero(rows["flags"] & POSE_HELD) == ticks
    assert servo_summary(wall.servo)["limits"]["pose_held"] == ticks
    assert (rows["px"] == 0.003).all() and (rows["device_px"] == 0.003).all()


def test_a_pose_that_has_jumped_for_good_fades_the_force_from_the_sixth_tick_on():
    wall, rows = spike(99, size=(0.5, 0.0, 0.0))
    assert rows["sent_x"] == pytest.approx(-0.9 * FIVE_THEN_FADE, abs=ROUNDING)
    assert finished_reason(wall.servo) == STOP_POSE


@pytest.mark.parametrize("speed", [0.99, 1.01])
def test_the_speed_that_is_judged_is_that_since_the_last_plausible_pose(speed):
    """A hand that is lost for four ticks and comes back where it can have gone, or a little farther."""
    wall = make_wall(external(), 0.0, limits=make_limits(LARGEST, **(AS_ASKED | {"hand_speed": HAND_SPEED})))
    move(wall.servo, along(X, [0.0]))
    lost = move(wall.servo, along(X, [1.0] * 4))
    back = move(wall.servo, along(X, [5e-3 * speed * HAND_SPEED]))
    assert (lost["flags"] & POSE_HELD).all() and bool(back["flags"][0] & POSE_HELD) == (speed > 1.0)


def test_a_late_tick_is_given_the_way_of_the_time_that_it_is_late():
    memory, port = make_pose_memory(), make_port()
    for late, plausible in ((0.0, False), (0.05, True)):
        port.position[:] = 0.0
        keep_pose(memory, port, True)
        port.position[0] = 0.3
        assert judge_pose(memory, HAND_SPEED, HAND_TURN, port, 1e-3 + late) == plausible


@settings(deadline=None, max_examples=40)
@given(arrays(np.float64, (60, 3), elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_whatever_a_device_reports_the_scenes_hand_is_finite_and_no_faster_than_a_hand(positions):
    wall = make_wall(external(), K, limits=make_limits(LARGEST, max_rate=1e9, fades=AT_ONCE))
    rows = move(wall.servo, positions)
    p = rows["p"]
    assert np.isfinite(p).all() and np.isfinite(rows["sent"]).all()
    good = np.flatnonzero(rows["flags"] & POSE_HELD == 0)
    if len(good):
        ways = np.linalg.norm(np.diff(p[good], axis=0), axis=1)
        assert (ways <= HAND_SPEED * 1e-3 * np.diff(good) * (1.0 + 1e-9)).all()
