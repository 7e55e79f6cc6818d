"""Laws of a pause: the force goes first, then time stands still, and nothing jumps when it goes on."""

import threading
import time

import numpy as np
import pytest

from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.replay import replay
from palpo.app.runtime.session import Session
from palpo.haptics.backends.mock import make_mock
from palpo.haptics.clutch import TURN_BACK
from palpo.haptics.control import (
    finished_reason,
    grant_ticks,
    is_frozen,
    request_pause,
    request_stop,
    tick_count,
)
from palpo.haptics.device import DEVICE_ERRED, DEVICE_GONE
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drivers import ServoThread, servo_run
from palpo.haptics.flags import PAUSING, STOPPING
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.reasons import (
    REASONS,
    RUNNING,
    STOP_DEVICE_LOST,
    STOP_EMERGENCY,
    STOP_POSE,
    STOP_REQUESTED,
)
from palpo.haptics.recording import read_recording
from palpo.haptics.statistics import LATE
from palpo.haptics.workspace import (
    make_workspace,
    quaternion_from_axis_angle,
    quaternion_matrix,
    quaternion_product,
)
from tests.servo.hand import along, columns, external, move
from tests.servo.wall import make_wall

# the hand of these tests leaps while the scene is frozen
LIMITS = make_limits(TOUCH.max_force, max_rate=1e9, fades=AT_ONCE, hand_speed=np.inf)
DEPTH = 0.005
PRESSED = [[DEPTH, 0.0, 0.0]]


def pressed_servo(**options):
    """A hand held 5 mm deep in a wall of 300 N/m, at full gain."""
    wall = make_wall(external(), 300.0, limits=LIMITS, **options)
    move(wall.servo, PRESSED * 3)
    return wall


def freeze(servo, positions=PRESSED * 60):
    request_pause(servo, True)
    return move(servo, positions)


def test_a_pause_fades_the_force_while_the_scene_runs_on_and_freezes_it_at_zero():
    wall = pressed_servo()
    rows = freeze(wall.servo)
    assert len(rows["tick"]) == 50, "as many ticks as the fade, then none"
    # the wall's force under a gain that falls linearly in fade_out
    assert rows["sent_x"] == pytest.approx(-300.0 * DEPTH * (1.0 - np.arange(1, 51) / 50), abs=1e-12)
    assert (rows["flags"] & PAUSING).all()
    assert is_frozen(wall.servo) and tick_count(wall.servo) == wall.calls == 53
    assert (wall.servo.sent == 0.0).all()


def test_a_frozen_servo_stays_so_whatever_the_hand_does():
    wall = pressed_servo()
    freeze(wall.servo)
    assert len(move(wall.servo, along((1, 1, 1), np.linspace(0.0, 0.1, 20)))["tick"]) == 0
    assert (wall.servo.sent == 0.0).all() and wall.calls == 53


def test_granted_ticks_are_single_steps_at_zero_gain_with_the_scene_at_rest():
    wall = pressed_servo()
    last = freeze(wall.servo)["p"][-1]
    grant_ticks(wall.servo, 3)
    turned = quaternion_from_axis_angle((0, 0, 1), 1.0)
    rows = move(wall.servo, along((1, 1, 1), np.linspace(0.0, 0.1, 20)), 0, turned, (1, 1, 1), (1, 1, 1))
    assert len(rows["tick"]) == 3 and wall.calls == 56
    assert (rows["p"] == last).all() and (rows["q"] == [1.0, 0.0, 0.0, 0.0]).all()
    assert (rows["v"] == 0.0).all() and (rows["w"] == 0.0).all() and (rows["sent"] == 0.0).all()
    assert (rows["force_x"] == -300.0 * DEPTH).all(), "the scene does answer"
    assert (rows["flags"] & PAUSING).all() and is_frozen(wall.servo)


def test_a_resume_continues_where_the_scene_stood_and_the_force_comes_back_in_recovery():
    wall = pressed_servo(workspace=make_workspace(1.2, (0.0, 0.1, 0.0)))
    last = freeze(wall.servo)["p"][-1]
    grant_ticks(wall.servo, 7)
    request_pause(wall.servo, False)
    away = np.array([0.05, -0.03, 0.02])
    step = np.array([0.0, 2e-4, 1e-4])
    rows = move(wall.servo, away + np.outer(np.arange(300), step))
    assert rows["p"] == pytest.approx(last + 1.2 * np.outer(np.arange(300), step), abs=1e-14)
    assert not (rows["flags"] & PAUSING).any() and not is_frozen(wall.servo)
    gain = np.minimum(np.arange(1, 301) / 250, 1.0)
    assert rows["sent_x"] == pytest.approx(1.2 * gain * rows["force_x"], abs=1e-12)


def test_a_resume_drops_the_ticks_that_were_granted_and_not_yet_made():
    wall = pressed_servo()
    freeze(wall.servo)
    grant_ticks(wall.servo, 7)
    request_pause(wall.servo, False)
    move(wall.servo, PRESSED)
    assert len(freeze(wall.servo)["tick"]) == 1, "the fade from a gain of 1 / 250, and nothing after it"
    assert is_frozen(wall.servo)


def angle_between(p, q):
    """Angles [rad] between quaternions (n, 4)."""
    return 2.0 * np.arccos(np.minimum(np.abs(np.sum(p * q, axis=-1)), 1.0))


def test_after_a_pause_the_tool_turns_back_to_the_stylus_exponentially():
    wall = pressed_servo()
    freeze(wall.servo)
    request_pause(wall.servo, False)
    turned = quaternion_from_axis_angle((1.0, -2.0, 0.5), 1.2)
    rows = move(wall.servo, PRESSED * 2000, orientation=turned)
    assert (rows["q"][0] == [1.0, 0.0, 0.0, 0.0]).all()
    expected = 1.2 * np.exp(-1e-3 * np.arange(2000) / TURN_BACK)
    # arccos near 1 resolves an angle to 1e-8
    assert angle_between(rows["q"], turned) == pytest.approx(expected, abs=1e-7)


def test_the_angular_velocity_of_turning_back_is_that_of_the_orientation():
    wall = pressed_servo()
    freeze(wall.servo)
    request_pause(wall.servo, False)
    rate, dt = 2.0, 1e-3
    turned = quaternion_from_axis_angle((1.0, -2.0, 0.5), 0.9)
    ticks, spins = [], []
    for k in range(400):
        now = quaternion_product(quaternion_from_axis_angle((0.0, 0.0, 1.0), rate * k * dt), turned)
        rows = move(wall.servo, PRESSED, orientation=now, spin=(0.0, 0.0, rate))
        ticks.append(quaternion_matrix(rows["q"][0]))
        spins.append(rows["w"][0])
    for before, after, spin in zip(ticks[1:], ticks[2:], spins[2:], strict=False):
        skew = (after - before) / dt @ after.T
        seen = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
        # a backward difference over a tick misses w dt / 2 of a spin w of 5 rad/s
        assert spin == pytest.approx(seen, abs=0.5 * 5.0**2 * dt)


def test_a_stop_ends_a_frozen_servo_at_once():
    wall = pressed_servo()
    freeze(wall.servo)
    request_stop(wall.servo)
    assert servo_run(wall.servo, 10) == 0
    assert finished_reason(wall.servo) == STOP_REQUESTED


def test_a_stop_during_the_fade_of_a_pause_ends_with_it():
    wall = pressed_servo()
    freeze(wall.servo, PRESSED * 20)
    request_stop(wall.servo)
    rows = move(wall.servo, PRESSED * 60)
    assert len(rows["tick"]) == 30 and (rows["flags"] & STOPPING).all()
    assert finished_reason(wall.servo) == STOP_REQUESTED


def test_a_pause_before_the_first_force_keeps_the_gate_of_the_start_closed():
    wall = make_wall(external(), 300.0, limits=make_limits(TOUCH.max_force))
    request_pause(wall.servo, True)
    assert len(move(wall.servo, PRESSED * 5)["tick"]) == 1, "one tick finds the gain at zero"
    request_pause(wall.servo, False)
    assert (move(wall.servo, PRESSED * 300)["sent"] == 0.0).all()


def test_a_frozen_loop_keeps_its_clock_and_makes_no_tick():
    wall = make_wall(make_mock(TOUCH, PRESSED), 300.0, limits=LIMITS)
    with ServoThread(wall.servo):
        request_pause(wall.servo, True)
        while not is_frozen(wall.servo):
            time.sleep(1e-3)
        ticks, late = tick_count(wall.servo), wall.servo.statistics.histograms[LATE].sum()
        while wall.servo.statistics.histograms[LATE].sum() < late + 50:
            time.sleep(1e-3)
        assert tick_count(wall.servo) == ticks == wall.calls
        assert finished_reason(wall.servo) == RUNNING
        grant_ticks(wall.servo, 2)
        while tick_count(wall.servo) < ticks + 2:
            time.sleep(1e-3)
        request_pause(wall.servo, False)
        while tick_count(wall.servo) < ticks + 10:
            time.sleep(1e-3)
    flags = columns(wall.servo)["flags"]
    assert (flags[ticks : ticks + 2] & PAUSING).all() and not flags[ticks + 2] & PAUSING


TOUCHING = (
    "bodies.probe.placement.position=[0, 0.041, 0]",
    "device.path=[[0, 0, 0.041, 0], [0.3, 0, 0.035, 0], [0.6, 0.01, 0.035, 0], [0.9, 0.01, 0.045, 0]]",
    "workspace.offset=[0, 0.041, 0]",
    "workspace.rotation=[0, 1, 0, 0.6]",
    "workspace.scale=1.5",
    "safety.fade_in=0",
    'safety.passivity="control"',
)


def wait(servo, until):
    """Until something holds or the servo has ended."""
    while not until() and finished_reason(servo) == RUNNING:
        time.sleep(1e-3)


def operated(path, operate):
    """A recorded run of the probe in threads under an operator; its outcome and its replay's."""
    session = Session(Options("probe", TOUCHING, device="mock", record=path, baseline=False))
    session.prepare()
    operator = threading.Thread(target=operate, args=(session.rig.servo,))
    operator.start()
    outcome = session.run()
    operator.join()
    return outcome, replay(path).result


def test_a_run_that_was_paused_stepped_and_resumed_is_repeated_bit_for_bit(tmp_path):
    frozen = []

    def operate(servo):
        for at in (150, 400):
            wait(servo, lambda at=at: tick_count(servo) >= at)
            request_pause(servo, True)
            wait(servo, lambda: is_frozen(servo))
            frozen.append(tick_count(servo))
            grant_ticks(servo, 5)
            wait(servo, lambda: tick_count(servo) == frozen[-1] + 5)
            request_pause(servo, False)

    outcome, again = operated(tmp_path / "run.h5", operate)
    assert outcome.status == FINISHED
    recorded = read_recording(tmp_path / "run.h5").columns
    flags = recorded["flags"]
    for at in frozen:
        assert (flags[at - 1 : at + 5] & PAUSING).all() and not flags[at + 5] & PAUSING
    assert np.abs(recorded["sent_y"]).max() > 0.1
    assert again["replay"]["equal"], again["exit_reason"]


def test_an_emergency_a_lost_device_and_poses_of_no_hand_are_repeated_bit_for_bit(tmp_path):
    def emergency(servo):
        wait(servo, lambda: tick_count(servo) >= 300)
        request_stop(servo, STOP_EMERGENCY)

    def loss(servo):
        wait(servo, lambda: tick_count(servo) >= 300)
        servo.device.health[0] = DEVICE_GONE

    def nonsense(servo):
        wait(servo, lambda: tick_count(servo) >= 300)
        servo.device.health[0] = DEVICE_ERRED

    for operate, reason in ((emergency, STOP_EMERGENCY), (loss, STOP_DEVICE_LOST), (nonsense, STOP_POSE)):
        outcome, again = operated(tmp_path / "run.h5", operate)
        assert REASONS[reason] in outcome.result["exit_reason"]
        assert again["replay"]["equal"], again["exit_reason"]
