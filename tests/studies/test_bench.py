"""The benchmarks, in short: what they count and what they print. No time is asserted."""

import math

import numpy as np
import pytest

from palpo.app.cli.registry import summary_of
from palpo.app.systems.multirate.build import build_scene
from palpo.benchmarks import latency
from palpo.benchmarks.large_body import large_body
from palpo.benchmarks.low_step import low_step
from palpo.benchmarks.memory import memory
from palpo.benchmarks.pictures import pictures
from palpo.benchmarks.registry import BENCHES
from palpo.benchmarks.servo import servo
from palpo.benchmarks.soak import COLUMNS, SAMPLES, slope_an_hour, soak
from palpo.benchmarks.solve import solve
from palpo.benchmarks.start import start
from palpo.benchmarks.timing import STAGES, time_stages, time_ticks, well_timed
from palpo.config.load import load_scene
from palpo.physics.systems.multirate.lock_step import LockStep
from palpo.render.gl import RenderUnavailable

PERCENTILES = ["p50", "p99", "p999", "max"]


def test_every_benchmark_has_a_line_about_it():
    assert set(BENCHES) == {
        "servo", "slow-step", "solve", "hapco", "snap", "suction", "start", "memory", "realtime", "latency",
        "soak", "stall", "large-body", "robots", "remote", "pictures",
    }  # fmt: skip
    assert all(summary_of(bench) for bench in BENCHES.values())


def test_the_servo_is_timed_under_at_least_twenty_contacts():
    figures = servo(ticks=40, staged=20)
    assert figures["active contacts"]["least"] >= 20
    # three rows for each contact and for the wire's end
    assert figures["rows"] >= 3 * (figures["active contacts"]["least"] + 1)
    assert list(figures["step us"]) == list(STAGES)
    assert all(list(step) == PERCENTILES for step in figures["step us"].values())
    assert figures["tick us"]["p50"] > 0.0


def test_a_tick_in_timed_stages_is_the_tick():
    runs = [LockStep(build_scene(load_scene("wire"))) for _ in range(2)]
    for run, kernel, shape in zip(runs, (time_ticks, time_stages), ((40,), (40, len(STAGES))), strict=True):
        run.high.port.position[:] = run.high.held.tool.x[run.high.held.hold.frame[0]]
        ns = np.zeros(shape, np.int64)
        run.advance(40, lambda span, run=run, kernel=kernel, ns=ns: well_timed(kernel, run.handle, ns[:span]))
        run.close()
    # the same operations in the same order
    for one, other in zip(runs[0].high.held.tool, runs[1].high.held.tool, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(runs[0].high.engine.r, runs[1].high.engine.r)


def test_a_large_body_is_timed_with_multigrid_and_with_factors():
    figures = large_body(small=True)
    cases = [figures[f"9 mm, {solver}"] for solver in ("multigrid", "direct")]
    assert cases[0]["tetrahedra"] == cases[1]["tetrahedra"] > 5000
    assert all(case["slow step, processor ms"]["p50"] > 0.0 for case in cases)


def test_the_low_step_is_timed_under_at_least_thirty_contacts():
    figures = low_step(steps=4)
    for kind in ("paper", "krylov"):
        assert figures[kind]["contacts that are rows"]["least"] >= 30
        assert figures[kind]["tetrahedra"] >= 1500
        assert list(figures[kind]["step ms"]) == PERCENTILES
        assert sum(step["p50"] for step in figures[kind]["by step ms"].values()) > 0.0


def test_the_contact_solver_and_its_baseline_are_timed_at_one_residual():
    figures = solve(small=True)
    assert figures.pop("bare loop us")["p50"] > 0.0
    walls = {name: figures.pop(name) for name in list(figures) if name.endswith("W sparse")}
    assert len(walls) == 1 and len(figures) >= 2
    for wall in walls.values():
        assert wall["sweep us"] > 0.0 and wall["1e-08"]["residual"] <= 1e-8
    for held in figures.values():
        for tolerance, both in held.items():
            for name in ("plain", "anderson", "portfolio", "interior-point"):
                assert both[name]["residual"] <= float(tolerance)
                assert both[name]["ms"] > 0.0
            assert both["anderson ms"]["ratio"] == both["anderson"]["ms"] / both["plain"]["ms"]


def test_a_tick_sends_the_force_of_the_motion_that_it_read(monkeypatch):
    monkeypatch.setattr(latency, "PHASES", (0, 13))
    figures = latency._device_to_force("krylov")
    assert set(figures) == {"in contact, constraints", "in contact, reaction", "free, reaction"}
    assert all(waits == {"least": 0, "most": 0} for waits in figures.values())


@pytest.mark.parametrize("kind", latency.KINDS)
def test_what_only_the_low_loop_sees_is_felt_a_low_period_later(kind):
    assert latency._through_low_loop(kind) == load_scene(latency.SCENE).rates.ratio


def test_a_change_that_nobody_feels_is_no_latency():
    still = latency._run("krylov", "constraints", latency._path(latency.ABOVE))
    with pytest.raises(RuntimeError, match="must be felt"):
        latency._first(still, still.copy(), latency.OUTPUT)


@pytest.mark.parametrize("bench", [lambda: start(0.05), lambda: memory(0.05, 0.1)], ids=["start", "memory"])
def test_processes_report_finite_figures(bench):
    def leaves(figures):
        for value in figures.values():
            yield from leaves(value) if isinstance(value, dict) else [value]

    assert all(math.isfinite(value) for value in leaves(bench()))


@pytest.mark.realtime
def test_a_soak_tells_what_grew_and_loses_no_descriptor():
    figures = soak(6.0)
    assert figures["exit"] == "0: finished"
    table = figures["over time"]
    assert table.pop("columns") == COLUMNS[1:]
    # the hand is moved and the row taken between two pictures
    assert SAMPLES - 2 <= len(table) <= SAMPLES + 1
    rows = np.array(list(table.values()))
    assert rows.shape[1] == len(COLUMNS) - 1
    assert (np.diff(rows[:, 1]) >= 0.0).all() and rows[-1, 1] > rows[0, 1]
    assert len(set(rows[:, 2])) == 1
    change = figures["change an hour"]
    assert change.pop("columns") == ("slope", "standard error", "now")
    assert tuple(change) == COLUMNS[1:]
    assert change["descriptors"][:2] == pytest.approx((0.0, 0.0), abs=1e-6)


def test_the_slope_of_a_straight_line_is_its_own_and_noise_stays_within_its_error():
    seconds = np.arange(200.0)
    assert slope_an_hour(seconds, 5.0 + seconds / 3600.0) == pytest.approx((1.0, 0.0), abs=1e-6)
    noise = np.random.default_rng(0).standard_normal((400, 200))
    outside = [abs(slope) > 2.0 * error for slope, error in (slope_an_hour(seconds, row) for row in noise)]
    # two standard errors of 198 degrees of freedom hold 95.3%; 400 tries of it scatter by 1.1%
    assert np.mean(outside) == pytest.approx(0.047, abs=0.033)


@pytest.mark.slow
def test_pictures_are_timed_as_the_window_draws_them():
    try:
        figures = pictures(3, ("probe",))["probe"]
    except RenderUnavailable as why:
        pytest.skip(str(why))
    assert figures["cpu ms"]["p50"] > 0.0
    assert figures["target cpu ms"]["ours"] == pytest.approx(figures["cpu ms"]["p50"])
