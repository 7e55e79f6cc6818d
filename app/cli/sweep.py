"""Many runs of a scene over a grid of its keys: in lock-step, spread over processes by Dask, into one table.

Each run that ends is written to a journal beside the table at once, so that neither a worker that dies nor an
interrupted sweep loses a finished run; the same command goes on where the journal ends.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from palpo.app.cli.refusal import account, check_file
from palpo.config.load import load_scene
from palpo.config.words import Refusal

if TYPE_CHECKING:
    from distributed import Client

ERROR = -1
"""Exit status in the table of a run that raised an error, or whose workers died."""
DEATHS = 3
"""Workers that may die of one run before it is given up."""
SETTLED = ("force_N", "penetration_m", "system")
"""Parts of a run's result that depend on the scene alone, not on the machine."""


@dataclass(frozen=True)
class Axis:
    """One key of the scene and the texts of its values, as `--set` reads them."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """What to run: the product of the axes, the last one fastest."""

    scene: str
    axes: tuple[Axis, ...]
    overrides: tuple[str, ...] = ()
    device: str = "mock"
    duration: float | None = None

    def points(self) -> list[dict[str, str]]:
        """The values of each run by key."""
        keys = [axis.key for axis in self.axes]
        return [
            dict(zip(keys, chosen, strict=True))
            for chosen in itertools.product(*(a.values for a in self.axes))
        ]

    def changes(self, point: Mapping[str, str]) -> tuple[str, ...]:
        """All of a run's overrides."""
        return (*self.overrides, *(f"{key}={value}" for key, value in point.items()))


def axis_of(text: str) -> Axis:
    """An axis from `key=first:last:count` (evenly spaced) or `key=a,b,c`; Refusal for anything else."""
    key, equals, values = text.partition("=")
    key, parts = key.strip(), values.split(":")
    if not key or not equals or not values.strip():
        raise Refusal(f"--param {text}: write key=first:last:count or key=a,b,c")
    if len(parts) != 3:
        return Axis(key, tuple(value.strip() for value in values.split(",")))
    try:
        first, last, count = float(parts[0]), float(parts[1]), int(parts[2])
    except ValueError:
        raise Refusal(f"--param {text}: first and last are numbers without units, count is whole") from None
    if count < 1 or not (math.isfinite(first) and math.isfinite(last)):
        raise Refusal(f"--param {text}: first and last must be finite, and count at least 1")
    spacing = (last - first) / max(1, count - 1)
    # twelve digits: 0.1 + 2 x 0.1 is called 0.3
    return Axis(key, tuple(repr(float(f"{first + i * spacing:.12g}")) for i in range(count)))


def one_run(sweep: Sweep, point: Mapping[str, str]) -> dict[str, Any]:
    """Row of the table for one run; what goes wrong stands in it."""
    from palpo.app.runtime.options import Options
    from palpo.app.runtime.session import run

    start = time.perf_counter()
    row: dict[str, Any] = dict(point)
    options = Options(
        sweep.scene,
        sweep.changes(point),
        sweep.device,
        duration=sweep.duration,
        lock_step=True,
        baseline=False,
    )
    try:
        result = run(options).result
        row |= {"exit_status": result["exit_status"], "exit_reason": result["exit_reason"]}
        row |= {"duration_s": result["duration_s"], "contacts_max": result["slow"]["contacts_max"]}
        for part in SETTLED:
            row |= dict(_leaves(part, result.get(part)))
    except Exception as error:
        row |= {"exit_status": ERROR, "exit_reason": account(error)}
    return row | {"wall_s": time.perf_counter() - start}


def _leaves(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Numbers below a name, such as force_N.final.0."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(f"{name}.{key}", below)
    elif isinstance(value, list | tuple):
        for i, below in enumerate(value):
            yield from _leaves(f"{name}.{i}", below)
    elif isinstance(value, int | float):
        yield name, float(value)


def run_sweep(
    sweep: Sweep,
    table: Path,
    jobs: int | None = None,
    scheduler: str | None = None,
    console: Console | None = None,
) -> list[dict[str, Any]]:
    """All runs; their rows, also written to `table` (.parquet or .csv).

    jobs: processes on this machine, one being this one; scheduler: address of a Dask scheduler instead.
    Raises Refusal, ConfigError; KeyboardInterrupt leaves the journal.
    """
    console = console or Console(stderr=True, highlight=False, markup=False)
    check_table(table)
    points = sweep.points()
    for point in points:
        load_scene(sweep.scene, sweep.changes(point))
    journal = Journal(table, sweep)
    todo = [i for i in range(len(points)) if i not in journal.rows]
    if journal.rows:
        console.print(f"{len(journal.rows)} of {len(points)} runs were finished before")
    alone = scheduler is None and jobs in (None, 1)
    with (
        nullcontext() if alone else _client(jobs, scheduler) as client,
        journal,
        _bar(console, len(points), len(journal.rows)) as step,
    ):
        for i, row in _finished(client, sweep, points, todo):
            journal.add(i, row)
            step()
    rows = [journal.rows[i] for i in range(len(points))]
    write_table(table, rows)
    journal.path.unlink()
    return rows


def _finished(
    client: Client | None, sweep: Sweep, points: Sequence[Mapping[str, str]], todo: Sequence[int]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and row of each run, as they end; without a client they are made here, one after the other."""
    if client is None:
        yield from ((i, one_run(sweep, points[i])) for i in todo)
        return
    from distributed import as_completed

    # every run is a run of its own, whatever its values: Dask would take two equal calls for one
    futures = {client.submit(one_run, sweep, points[i], pure=False, key=f"run-{i}"): i for i in todo}
    for future in as_completed(list(futures)):
        i = futures.pop(future)
        if future.status == "finished":
            yield i, future.result()
        else:
            why = f"the run failed: {future.exception()}"
            yield i, {**points[i], "exit_status": ERROR, "exit_reason": " ".join(why.split())}


@contextmanager
def _client(jobs: int | None, scheduler: str | None) -> Iterator[Client]:
    """Dask's scheduler at an address, or one of our own with `jobs` processes, two or more."""
    try:
        import dask
        from distributed import Client, LocalCluster
    except ImportError:
        raise Refusal("a sweep needs Dask: pip install 'palpo[sweep]'") from None
    # a worker has one thread for runs, and a long compiled step must not look like a dead worker
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.worker.memory.terminate": False,
    }
    with dask.config.set(settings):
        if scheduler is not None:
            try:
                client = Client(scheduler, timeout=10)
            except (OSError, ValueError) as error:
                raise Refusal(f"--scheduler {scheduler}: no Dask scheduler answers there ({error})") from None
            with client:
                yield client
            return
        with (
            LocalCluster(
                n_workers=jobs, threads_per_worker=1, processes=True, memory_limit=0,
                dashboard_address=None, silence_logs=50,
            ) as cluster,
            Client(cluster) as client,
        ):  # fmt: skip
            yield client


@contextmanager
def _bar(console: Console, total: int, done: int) -> Iterator[Any]:
    """A progress bar; without a terminal, a line for each tenth."""
    if console.is_terminal:
        columns = TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Bar(*columns, console=console) as bar:
            task = bar.add_task("", total=total, completed=done)
            yield lambda: bar.advance(task)
        return
    count = done

    def step() -> None:
        nonlocal count
        count += 1
        if count == total or count * 10 // total > (count - 1) * 10 // total:
            console.print(f"  {count} of {total} runs")

    yield step


class Journal:
    """The finished runs of a sweep, one JSON line each, beside its table."""

    def __init__(self, table: Path, sweep: Sweep) -> None:
        """Raises Refusal where there is the journal of another sweep."""
        self.path = table.with_name(table.name + ".journal")
        self.rows: dict[int, dict[str, Any]] = {}
        text = load_scene(sweep.scene, sweep.overrides).origin.text
        self._mark = hashlib.sha256(json.dumps([repr(sweep), text]).encode()).hexdigest()
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        mark, *lines = self.path.read_text("utf-8").split("\n")
        if mark != self._mark:
            raise Refusal(
                f"{self.path} holds finished runs of another sweep; remove it, or give another --out"
            )
        for line in lines[:-1]:  # what follows the last line's end was cut short
            kept = json.loads(line)
            self.rows[kept["run"]] = kept["row"]

    def __enter__(self) -> Journal:
        self._file = self.path.open("w", encoding="utf-8")
        self._file.write(self._mark + "\n")
        for i, row in self.rows.items():
            self._write(i, row)
        self._file.flush()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, i: int, row: dict[str, Any]) -> None:
        """Keep a finished run, on disk too."""
        self.rows[i] = row
        self._write(i, row)
        self._file.flush()

    def _write(self, i: int, row: Mapping[str, Any]) -> None:
        self._file.write(json.dumps({"run": i, "row": row}) + "\n")


def check_table(table: Path) -> None:
    """Refusal for a table that could not be written after the runs."""
    if table.suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise Refusal(
                f"--out {table}: Parquet needs pyarrow; pip install 'palpo[sweep]', or name a .csv file"
            ) from None
    elif table.suffix != ".csv":
        raise Refusal(f"--out {table}: the table is written to a file that ends in .parquet or .csv")
    table.parent.mkdir(parents=True, exist_ok=True)
    check_file(table, "--out")


def write_table(table: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Rows under all columns of all rows, in the order of their first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {name: [_number(row.get(name)) for row in rows] for name in names}
    if table.suffix == ".csv":
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(zip(*columns.values(), strict=True))
        return
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({name: _one_type(values) for name, values in columns.items()}), table)


def _number(value: Any) -> Any:
    """The text of a number as that number."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _one_type(values: list[Any]) -> list[Any]:
    """A column of texts where some value is one."""
    if any(isinstance(v, str) for v in values):
        return [None if v is None else str(v) for v in values]
    return values
