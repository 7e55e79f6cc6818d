"""Paths that are evaluated as time goes on: the rows are those of a whole table, whatever their number."""

import numpy as np
import pytest

from palpo.app.devices.table import choose
from palpo.app.report.outcome import FINISHED
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import run
from palpo.app.systems.multirate.build import build_scene
from palpo.app.systems.suction.build import _path
from palpo.config.load import load_scene
from palpo.haptics.device import device_read, first_rows, make_virtual_device, path_ahead
from palpo.haptics.path import oscillation, waypoints
from palpo.physics.exchange.ahead import BATCH, ROWS, row_at
from palpo.physics.exchange.port import make_port
from palpo.physics.numerics.kernels import kernel

LONG = [[0.0, 0.0, 0.04, 0.0], [7.0, 0.02, 0.041, 0.0], [2e4, 0.0, 0.05, 0.01], [4.5e6, 0.0, 0.04, 0.0]]
TURNS = [[0, 1, 0, 0.0], [0, 1, 0, 0.5], [1, 0, 0, -0.5], [0, 0, 1, 3.0]]
PERIOD = 4000
"""Ticks of the slowest slow period."""


@kernel
def read_all(device, port, first, stop, positions, turns):
    """What the device reports at the ticks first to stop - 1."""
    for tick in range(first, stop):
        device_read(device, tick, port)
        positions[tick], turns[tick] = port.position, port.orientation


@kernel
def row(known, rows, tick):
    return row_at(known, rows, tick)


def test_a_device_that_is_led_reports_the_rows_of_the_whole_path_bit_for_bit():
    way = waypoints(LONG[:3], "smooth", TURNS[:3])
    device, n = make_virtual_device(*first_rows(way)), 5 * ROWS // 2
    ahead, port = path_ahead(device, way), make_port()
    positions, turns = np.zeros((n, 3)), np.zeros((n, 4))
    for first in range(0, n, PERIOD):
        ahead.keep(first)
        read_all(device, port, first, min(first + PERIOD, n), positions, turns)
    expected, quaternions = way.rows(0, n)
    assert len(device.positions) == ROWS
    assert positions.tobytes() == expected.tobytes()
    norms = np.linalg.norm(quaternions, axis=1)[:, None]
    assert turns.tobytes() == (quaternions / norms).tobytes()


def test_a_reader_may_lag_and_an_abandoned_one_keeps_the_last_row():
    way = waypoints(LONG)
    device = make_virtual_device(*first_rows(way))
    ahead = path_ahead(device, way)
    tick = 3 * ROWS + 17
    ahead.keep(tick)
    known = int(device.known[0])
    assert tick + ROWS - 2 * BATCH < known <= tick + ROWS
    for asked in (tick - BATCH + 1, tick, known - 1):
        here = row(device.known, ROWS, asked)
        assert device.positions[here].tobytes() == way.rows(asked, asked + 1)[0][0].tobytes()
    assert row(device.known, ROWS, 10 * known) == row(device.known, ROWS, known - 1)


def test_a_short_path_is_held_at_its_end():
    way = waypoints([[0.0] * 4, [0.2505, 0.1, 0.0, 0.0]])
    assert way.ticks == len(way.table()[0])
    assert way.rows(0, 400)[0][-1].tobytes() == way.table()[0][-1].tobytes()


def test_an_oscillation_without_a_duration_goes_on():
    way, cycle = oscillation(np.zeros(3), [0.01, 0.0, 0.0], 2.0), 500
    x = way.rows(7_200_000, 7_200_000 + cycle)[0]
    # the sine of 9e4 rad has an argument that is 1.5e-11 off
    assert np.abs(x - way.rows(0, cycle)[0]).max() < 1e-12


def test_a_run_of_two_months_is_begun_in_the_room_of_seconds():
    overrides = (f"device.path={LONG}", "bodies.probe.placement.position=[0, 0.06, 0]")
    spec = load_scene("probe", overrides)
    device, ahead = choose(Options("probe", device="mock")).make(spec, np.zeros(3))
    assert ahead.ticks == 4_500_000_001
    assert device.positions.nbytes + device.orientations.nbytes <= 7 * 8 * ROWS
    done = run(Options("probe", overrides, "mock", duration=0.05, lock_step=True, baseline=False))
    assert done.status == FINISHED


def test_a_foreign_trajectory_of_two_months_is_followed_in_the_room_of_seconds(tmp_path):
    (tmp_path / "long.txt").write_text("0 0 0 0\n1 0 0.01 0\n4.5e6 0 0 0\n")
    choice = choose(Options("probe", device=f"replay:{tmp_path / 'long.txt'}"))
    device, ahead = choice.make(load_scene("probe"), np.array([0.0, 0.05, 0.0]))
    assert (ahead.ticks, len(device.positions)) == (4_500_000_001, ROWS)


@pytest.mark.parametrize(
    "motion",
    [
        f"path={[[t, *(0.1 * np.array(x)).tolist()] for t, *x in LONG]}",
        "oscillation={direction=[0, 1, 0], amplitude=0.01, frequency=2}",
    ],
)
def test_an_attached_frame_follows_its_motion_for_ever(motion):
    frame = f'[{{kind="frame",a={{body="cylinder",at=[0,0,0]}},{motion}}}]'
    scene = build_scene(load_scene("wire", (f"attachments={frame}",)))
    moving, ahead = scene.moving, scene.script
    assert ahead.ticks > 1 << 30 and moving.x.shape[1] == ROWS
    tick, at_rest = 5 * ROWS + 3, scene.rest[moving.point[0]]
    ahead.keep(tick)
    x = moving.x[0, row(moving.known, ROWS, tick)] - at_rest
    if motion.startswith("path"):
        expected = waypoints(np.array(LONG) * [1.0, 0.1, 0.1, 0.1]).rows(tick, tick + 1)[0][0]
    else:
        expected = np.array([0.0, 0.01 * np.sin(4e-3 * np.pi * tick), 0.0])
    assert np.abs(x - expected).max() < 1e-15


def test_a_scripted_cup_follows_its_path_for_ever():
    spec = load_scene("suction-plane")
    told = spec.cups[0].drive.model_copy(update={"path": tuple(map(tuple, LONG)), "smooth": True})
    way, at = waypoints(LONG, rate_hz=spec.rates.low_hz), _path(spec, told)
    for time in (0.0, 3.0, 1e5, 1e9):
        tick = round(time * spec.rates.low_hz)
        assert at(time).tobytes() == way.rows(tick, tick + 1)[0][0].tobytes()
