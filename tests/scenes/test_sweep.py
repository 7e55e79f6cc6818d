"""Sweeps: a run is the same run in any process, and a finished run is never lost."""

import csv
import os
import signal
import threading

import pytest

pytest.importorskip("distributed", reason="a sweep needs Dask")

from distributed import LocalCluster
from pyarrow import parquet

from palpo.app.cli import sweep as sweeping
from palpo.app.cli.sweep import Axis, Journal, Sweep, axis_of, one_run, run_sweep, write_table
from palpo.config.words import ConfigError, Refusal

SHORT = Sweep("probe", (Axis("friction.default", ("0.0", "0.3", "0.6")),), duration=0.2)


def settled(row):
    return {name: value for name, value in row.items() if name != "wall_s"}


def test_an_axis_is_evenly_spaced_with_both_ends_and_twelve_digits():
    axis = axis_of("solver.tolerance=0.1:0.4:4")
    assert axis == Axis("solver.tolerance", ("0.1", "0.2", "0.3", "0.4"))
    assert axis_of("a=2:1:1").values == ("2.0",)
    assert axis_of("a=x, y").values == ("x", "y")


@pytest.mark.parametrize("text", ["a", "=1:2:3", "a=", "a=1:x:3", "a=0:1:0", "a=0:inf:3", "a=1 m:2 m:3"])
def test_what_is_no_axis_is_refused(text):
    with pytest.raises(Refusal, match="--param"):
        axis_of(text)


def test_points_are_the_product_of_the_axes_with_the_last_fastest():
    points = Sweep("probe", (Axis("a", ("1", "2")), Axis("b", ("3", "4")))).points()
    assert points == [{"a": "1", "b": "3"}, {"a": "1", "b": "4"}, {"a": "2", "b": "3"}, {"a": "2", "b": "4"}]


def test_a_worker_that_dies_loses_no_run_and_a_scheduler_elsewhere_gives_the_same_rows(tmp_path, monkeypatch):
    expected = [settled(one_run(SHORT, point)) for point in SHORT.points()]
    with LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=None, silence_logs=50
    ) as cluster:
        add, killed = Journal.add, threading.Event()

        def add_and_kill(journal, i, row):
            add(journal, i, row)
            if not killed.is_set():
                killed.set()
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

        monkeypatch.setattr(Journal, "add", add_and_kill)
        table = tmp_path / "rows.parquet"
        rows = run_sweep(SHORT, table, scheduler=cluster.scheduler_address)
    assert killed.is_set()
    assert [settled(row) for row in rows] == expected
    kept = parquet.read_table(table).to_pydict()
    assert kept["force_N.max_norm"] == [row["force_N.max_norm"] for row in expected]
    assert not table.with_name("rows.parquet.journal").exists()


def test_an_interrupted_sweep_goes_on_where_it_ended(tmp_path, monkeypatch):
    table = tmp_path / "rows.csv"
    with Journal(table, SHORT) as journal:
        journal.add(1, {"friction.default": "0.3", "exit_status": 0, "wall_s": 7.0})
    with table.with_name("rows.csv.journal").open("a") as file:
        file.write('{"run": 2, "row": {"fric')  # a machine that went down while it wrote
    asked = []

    def finished(client, sweep, points, todo):
        asked.extend(todo)
        yield from ((i, {**points[i], "exit_status": 0, "wall_s": 1.0}) for i in todo)

    monkeypatch.setattr(sweeping, "_finished", finished)
    rows = run_sweep(SHORT, table, jobs=1)
    assert asked == [0, 2]
    assert [row["wall_s"] for row in rows] == [1.0, 7.0, 1.0]
    with table.open() as file:
        assert [line["friction.default"] for line in csv.DictReader(file)] == ["0.0", "0.3", "0.6"]


def test_the_journal_of_another_sweep_is_refused(tmp_path):
    table = tmp_path / "rows.csv"
    with Journal(table, SHORT) as journal:
        journal.add(0, {})
    with pytest.raises(Refusal, match="another sweep"):
        Journal(table, Sweep("probe", SHORT.axes, duration=0.3))


def test_a_value_that_the_scene_refuses_is_refused_before_the_first_run(tmp_path):
    bad = Sweep("probe", (Axis("friction.default", ("0.1", "-1")),))
    with pytest.raises(ConfigError, match="friction"):
        run_sweep(bad, tmp_path / "rows.csv")
    with pytest.raises(Refusal, match=r"\.parquet or \.csv"):
        run_sweep(SHORT, tmp_path / "rows.txt")


def test_a_run_that_fails_stands_in_the_table_with_its_reason(tmp_path):
    row = one_run(Sweep("probe", SHORT.axes, device="replay:nowhere.txt"), {"friction.default": "0.1"})
    assert row["exit_status"] == sweeping.ERROR
    assert "nowhere.txt" in row["exit_reason"]
    write_table(tmp_path / "rows.parquet", [row, {"friction.default": "0.2", "force": 1.0}])
    kept = parquet.read_table(tmp_path / "rows.parquet").to_pydict()
    assert kept["friction.default"] == [0.1, 0.2]
    assert kept["force"] == [None, 1.0]
