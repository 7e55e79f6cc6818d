"""Laws of the servo: one step under two drivers, no tick lost, and every end a fade."""

import threading

import numpy as np
import pytest

from palpo.haptics.backends.mock import make_mock
from palpo.haptics.clock import make_scratch
from palpo.haptics.control import finished_reason, request_stop, tick_count
from palpo.haptics.device_spec import TOUCH
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import ServoThread, baseline_loop, servo_baseline, servo_run
from palpo.haptics.flags import STOOD_STILL, STOPPING
from palpo.haptics.limiter import NOTED
from palpo.haptics.limits import AT_ONCE, make_limits
from palpo.haptics.reasons import REASONS, STOP_NON_FINITE, STOP_REQUESTED, STOP_TICK_FAILED
from palpo.haptics.row import COLUMNS, NAMES, write_row
from palpo.haptics.statistics import LATE, count_duration, make_statistics, summarise_duration
from palpo.haptics.summary import servo_summary
from palpo.haptics.workspace import make_workspace
from palpo.physics.exchange.durations import percentile_us
from palpo.physics.exchange.port import make_port
from tests.realtime.busy import busy_python
from tests.servo.swing import oscillation_path
from tests.servo.wall import make_wall

SENT = [NAMES.index(f"sent_{axis}") for axis in "xyz"]
TIMES = [NAMES.index("late_us"), NAMES.index("step_us")]


def touch_on_a_wall(seconds=0.5, **options):
    path, _ = oscillation_path((0.0, 0.0, 0.0), (0.01, 0.0, 0.0), 2.0, seconds)
    return make_wall(make_mock(TOUCH, path), 300.0, limits=make_limits(TOUCH.max_force), **options)


def test_two_lock_step_runs_are_equal_to_the_bit():
    rows = []
    for _ in range(2):
        wall = touch_on_a_wall()
        servo_run(wall.servo, 1000)
        rows.append(drain_rows(wall.servo))
    assert rows[0].shape == (1000, len(COLUMNS))
    assert rows[0].tobytes() == rows[1].tobytes()


def test_the_real_time_driver_does_the_very_ticks_of_the_lock_step_driver():
    wall = touch_on_a_wall()
    with ServoThread(wall.servo) as thread:
        while tick_count(wall.servo) < 300 and thread.running:
            threading.Event().wait(0.01)
        thread.stop()
        thread.join()
    threaded = drain_rows(wall.servo)
    reference = touch_on_a_wall()
    gate = reference.servo.limit_state.gate
    for flags in threaded[:, NAMES.index("flags")].astype(int):
        if flags & STOPPING:
            request_stop(reference.servo)
        # the clock's part: on a machine that something else holds a tick may come too late
        if flags & STOOD_STILL and not gate["standstill"]:
            gate["standstill"] = NOTED
        servo_run(reference.servo, 1)
    lock_step = drain_rows(reference.servo)
    timeless = np.delete(threaded, TIMES, axis=1), np.delete(lock_step, TIMES, axis=1)
    assert timeless[0].tobytes() == timeless[1].tobytes()
    assert (threaded[:, TIMES] > 0.0).all() and (lock_step[:, TIMES] == 0.0).all()


def test_a_busy_python_thread_costs_the_servo_no_more_deadlines_than_the_bare_clock_loop():
    wall = touch_on_a_wall()
    bare = make_statistics()
    with busy_python(), ServoThread(wall.servo) as servo:
        baseline_loop(1000, wall.servo.period_ns, bare, make_scratch())
        servo.stop()
        assert servo.join(5.0)
    steps = tick_count(wall.servo)
    assert steps == wall.calls
    assert steps + wall.servo.statistics.counts["skipped"][0] >= 1000, (
        "as many periods as the bare loop beside it"
    )
    # both share the machine's bad moments; a loop that needed the interpreter would miss most deadlines
    assert wall.servo.statistics.counts["missed"][0] <= bare.counts["missed"][0] + 0.05 * steps


def test_a_stop_request_fades_the_force_within_50_ticks_and_then_ends():
    wall = touch_on_a_wall()
    servo_run(wall.servo, 800)
    request_stop(wall.servo)
    assert servo_run(wall.servo, 1000) == 50
    assert (drain_rows(wall.servo)[-1, SENT] == 0.0).all()
    assert finished_reason(wall.servo) == STOP_REQUESTED
    assert servo_run(wall.servo, 10) == 0, "a servo that has stopped stays so"


@pytest.mark.parametrize(("fault", "reason"), [("nan_at", STOP_NON_FINITE), ("fail_at", STOP_TICK_FAILED)])
def test_a_tick_that_fails_is_not_called_again_and_the_force_fades_without_a_jump(fault, reason):
    wall = touch_on_a_wall(**{fault: 700})
    assert servo_run(wall.servo, 5000) == 750
    assert wall.calls == 701
    sent = drain_rows(wall.servo)[:, SENT]
    assert np.isfinite(sent).all() and (sent[-1] == 0.0).all()
    fade = np.linalg.norm(sent[699:], axis=1)
    # a linear ramp of 50 ticks from the last good force
    assert fade == pytest.approx(fade[0] * (1.0 - np.arange(51) / 50), abs=1e-12)
    assert finished_reason(wall.servo) == reason
    assert servo_summary(wall.servo)["stop_reason"] == REASONS[reason]


def test_a_fault_ends_the_real_time_loop_by_itself():
    wall = touch_on_a_wall(nan_at=100)
    with ServoThread(wall.servo) as thread:
        assert thread.join(10.0)
        assert thread.reason == REASONS[STOP_NON_FINITE]


def test_an_exception_in_the_block_stops_the_servo():
    wall = touch_on_a_wall()
    with pytest.raises(RuntimeError, match="outside"), ServoThread(wall.servo) as thread:
        raise RuntimeError("outside")
    assert not thread.running
    assert thread.reason == REASONS[STOP_REQUESTED]


def test_a_stale_frame_takes_the_force_away_and_a_fresh_one_brings_it_back():
    limits = make_limits(TOUCH.max_force, fades=AT_ONCE)
    device = make_mock(TOUCH, [[0.005, 0.0, 0.0]])
    wall = make_wall(device, 300.0, limits=limits, stale=(1000, 2000))
    servo_run(wall.servo, 3000)
    sent = np.linalg.norm(drain_rows(wall.servo)[:, SENT], axis=1)
    assert sent[999] > 0.5
    assert (sent[1301:2000] == 0.0).all()
    # friction may hold the stylus on either side of where hand and wall balance
    assert sent[-1] == pytest.approx(sent[999], abs=2.0 * TOUCH.friction * 300.0 / (400.0 + 300.0))
    # ages 251 to 999
    assert servo_summary(wall.servo)["stale"] == 749
    assert servo_summary(wall.servo)["limits"]["watchdog_trips"] == 1


def test_rows_that_nobody_drains_are_counted_and_the_servo_goes_on():
    wall = touch_on_a_wall(ring_capacity=256)
    servo_run(wall.servo, 1000)
    assert servo_summary(wall.servo)["rows_lost"] == 744
    assert drain_rows(wall.servo)[:, 0].tolist() == list(range(256))


def test_the_wall_feels_the_same_however_the_workspace_is_turned():
    """Lock-step runs in two frames differ only by the rotation of the sent force."""
    results = []
    half_turn = np.sqrt(0.5)
    for rotation in ([1.0, 0.0, 0.0, 0.0], [half_turn, 0.0, 0.0, half_turn]):
        workspace = make_workspace(rotation=rotation)
        path, _ = oscillation_path((0.0, 0.0, 0.0), (0.01, 0.0, 0.0), 2.0, 0.5)
        device = make_mock(TOUCH, path @ workspace.rotation)._replace(resolution=0.0)
        wall = make_wall(device, 300.0, workspace=workspace)
        servo_run(wall.servo, 500)
        results.append(drain_rows(wall.servo)[:, SENT] @ workspace.rotation.T)
    assert results[0] == pytest.approx(results[1], abs=1e-12)


def test_each_column_of_a_row_is_the_field_that_its_name_says():
    port, own, sent = make_port(), make_port(), np.array([91.0, 92.0, 93.0])
    turned = np.array([94.0, 95.0, 96.0])
    row = np.full(len(COLUMNS), np.nan)
    for ports_start, one in ((0, port), (200, own)):
        for start, field in zip((10, 20, 30, 40, 50, 60, 70, 80, 100, 110), one, strict=True):
            # named fields one after the other
            flat = field.view(field.dtype[0].base if field.dtype.names else field.dtype)
            flat[:] = np.arange(ports_start + start, ports_start + start + len(flat))
    write_row(row, 7, 1e-3, port, own, sent, turned, 5, 1.5, 2.5, 0.25, 0.75)
    value = dict(zip(NAMES, row, strict=True))
    assert np.isfinite(row).all() and len(set(NAMES)) == len(NAMES)
    assert (value["tick"], value["time_s"], value["flags"], value["late_us"], value["step_us"]) == (
        7,
        7e-3,
        5,
        1.5,
        2.5,
    )
    expected = {"px": 10, "qw": 20, "vx": 30, "wz": 42, "buttons": 50, "force_y": 61, "torque_x": 70}
    expected |= {"sent_z": 93, "status": 80, "frame": 81, "frame_age": 82, "tick_flags": 87}
    expected |= {"device_pz": 212, "device_qw": 220, "device_vy": 231, "device_wz": 242, "energy_J": 0.25}
    expected |= {"residual": 100, "depth": 101, "held_x": 102, "sum_z": 107}
    expected |= {"sent_torque_x": 94, "sent_torque_z": 96, "allowance": 0.75}
    assert {name: value[name] for name in expected} == expected


def test_percentiles_of_the_histogram_are_those_of_the_durations_within_a_bin():
    rng = np.random.default_rng(1)
    durations = (rng.lognormal(11.0, 0.7, 20_000)).astype(np.int64)
    statistics = make_statistics()
    for ns in durations:
        count_duration(statistics, LATE, ns)
    for share in (0.5, 0.99, 0.999):
        exact = np.quantile(durations, share) * 1e-3
        # a bin is a factor 10^(1/64) = 3.7% wide
        assert percentile_us(statistics.histograms[LATE], share) == pytest.approx(exact, rel=0.037)
    assert summarise_duration(statistics, LATE)["max"] == durations.max() * 1e-3


def test_the_baseline_serves_every_deadline_that_it_is_asked_for():
    baseline = servo_baseline(100)
    assert baseline["steps"] == 100
    assert 0.0 <= baseline["clock_baseline_us"]["p50"] <= baseline["clock_baseline_us"]["max"]
