"""`palpo solve`: a contact problem from a file through one solver, several or all, in one table."""

import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.app.cli.refusal import Refusal
from palpo.app.cli.summary import number
from palpo.physics.contact.io import read_problem
from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.contact.problem import AnyProblem, ContactResult, SparseProblem, Stop
from palpo.physics.contact.solvers.registry import Solver, find_solver, solver_names
from palpo.physics.errors import InputError

BEST, ALL = "best", "all"
BEST_SPARSE = "gauss-seidel"

REPEATS, PATIENCE = 7, 1.0
"""Timed solves at most, and the time [s] after which no further one begins."""


WIDTH = 140
"""Columns of the table where no terminal says how many there are."""


@dataclass(frozen=True)
class Row:
    """What one solver came to."""

    solver: str
    time_ms: float | None
    """Median of cold solves, compiled before."""
    iterations: int
    residual: float | None
    open: int
    stick: int
    slip: int
    converged: bool
    reason: str
    consistent: bool


def solve_file(
    file: Path, names: Iterable[str], stop: Stop, progress: Progress
) -> tuple[dict[str, Any], dict[str, NDArray[np.float64]]]:
    """The summary of all solves and the forces by solver, shape (3 n,), in the file's units.

    names: of solvers, or `all`; none stands for the best one that takes the problem. The summary's notes say
    what was changed in it. Raises InputError for a file or a name that is none, Refusal for a stop that never
    stops.
    """
    _check(stop)
    wanted = _chosen(list(names))
    notes: list[str] = []
    problem = read_problem(file, notes.append)
    for note in notes:
        progress.say(f"{file}: {note}")
    chosen = wanted or _chosen([BEST_SPARSE if isinstance(problem, SparseProblem) else BEST])
    everyone = len(chosen) == len(solver_names())
    rows, forces = [], {}
    for solver in chosen:
        with progress.stage(solver.name):
            try:
                row, forces[solver.name] = run_solver(solver, problem, stop)
            except InputError as error:
                if not everyone:
                    raise
                row = Row(solver.name, None, 0, None, 0, 0, 0, False, f"refused: {error}", solver.consistent)
        rows.append(row)
    failed = [row.solver for row in rows if row.consistent and not row.converged]
    summary = {
        "file": str(file),
        "contacts": problem.n_contacts,
        "notes": notes,
        "tolerance": stop.tolerance,
        "solvers": [asdict(row) for row in rows],
        "failed": failed,
        "exit_status": 1 if failed else 0,
    }
    return summary, forces


def run_solver(solver: Solver, problem: AnyProblem, stop: Stop) -> tuple[Row, NDArray[np.float64]]:
    """One solve that compiles and gives the result, then cold ones that are timed."""
    result = solver.solve(problem, stop)
    times: list[float] = []
    began = time.perf_counter()
    while not times or (len(times) < REPEATS and time.perf_counter() - began < PATIENCE):
        start = time.perf_counter()
        result = solver.solve(problem, stop)
        times.append(time.perf_counter() - start)
    return _row(solver, result, statistics.median(times)), result.r


def write_forces(path: Path, forces: Mapping[str, NDArray[np.float64]]) -> None:
    """r of each solver under its name in a .npz archive."""
    np.savez(path, **forces)  # type: ignore[arg-type]


def print_solves(summary: Mapping[str, Any]) -> None:
    """The table: one solver a line, a star at those that follow another law than the problem's."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = WIDTH
    table = Table(
        title=f"{summary['file']}: {summary['contacts']} contacts, tolerance {summary['tolerance']:g}",
        title_justify="left",
    )
    table.add_column("solver", no_wrap=True)
    for name in ("time [ms]", "iterations", "residual", "open", "stick", "slip"):
        table.add_column(name, justify="right")
    table.add_column("ended")
    for row in summary["solvers"]:
        residual = "–" if row["residual"] is None else f"{row['residual']:.1e}"
        table.add_row(
            row["solver"] + ("" if row["consistent"] else " *"),
            number(row["time_ms"]),
            number(row["iterations"]),
            residual,
            *(number(row[name]) for name in ("open", "stick", "slip")),
            row["reason"],
        )
    console.print(table)
    if not all(row["consistent"] for row in summary["solvers"]):
        console.print("* follows another law than the problem's: an answer of its own where that law matters")


def _row(solver: Solver, result: ContactResult, seconds: float) -> Row:
    counts = np.bincount(result.status, minlength=3)
    return Row(
        solver.name,
        1e3 * seconds,
        int(result.iterations),
        float(result.residual),
        int(counts[OPEN]),
        int(counts[STICK]),
        int(counts[SLIP]),
        bool(result.converged),
        result.reason,
        solver.consistent,
    )


def _chosen(names: list[str]) -> list[Solver]:
    if ALL in names:
        names = solver_names()
    return list({solver.name: solver for solver in map(find_solver, names)}.values())


def _check(stop: Stop) -> None:
    if not 0.0 < stop.tolerance < 1.0:
        raise Refusal(f"--tol {stop.tolerance:g}: give a relative residual between 0 and 1, such as 1e-8")
    if stop.max_iterations < 1:
        raise Refusal(f"--max-iterations {stop.max_iterations}: give at least 1")
    if not stop.seconds > 0.0:
        raise Refusal(f"--time-cap {stop.seconds:g}: give a positive time [s]")
