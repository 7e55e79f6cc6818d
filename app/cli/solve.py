"""`palpo solve`: a contact problem from a file through one solver, several or all, in one table."""

import json
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.app.cli.summary import number
from palpo.app.report.outcome import write_json
from palpo.config.words import Refusal
from palpo.physics.contact.errors import quoted_errors
from palpo.physics.contact.feasibility import find_infeasible, giving_way
from palpo.physics.contact.io import read_guess, read_problem, write_solution
from palpo.physics.contact.laws import OPEN, SLIP, STICK, judge
from palpo.physics.contact.problem import AnyProblem, ContactResult, Infeasible, Stop, Wedge
from palpo.physics.contact.solvers.registry import Solver, find_solver, solver_names
from palpo.physics.contact.wedging import find_wedge
from palpo.physics.numerics.errors import InputError

BEST, ALL = "best", "all"

REPEATS, PATIENCE = 7, 1.0
"""Timed solves at most, and the time [s] after which no further one begins."""


WIDTH = 140
"""Columns of the table where no terminal says how many there are."""


@dataclass(frozen=True)
class SolvedProblem:
    """The force r, shape (3 n,), that a solver found, and what follows from it."""

    solver: Solver
    problem: AnyProblem
    stop: Stop
    options: Mapping[str, Any]
    r: NDArray[np.float64]
    infeasible: Infeasible | None = None
    wedge: Wedge | None = None

    @property
    def u(self) -> NDArray[np.float64]:
        """W r + b, shape (3 n,)."""
        return np.asarray(self.problem.w @ self.r + self.problem.b)

    @property
    def status(self) -> NDArray[np.int32]:
        """OPEN, STICK or SLIP, shape (n,)."""
        return judge(self.problem, self.stop, self.r, 0, "converged", 0.0).status

    def history(self) -> NDArray[np.float64]:
        """Rows (iterations, residual) of solves with budgets that double: what it has when it is stopped."""
        rows, budget = [], 1
        while True:
            cut = replace(self.stop, max_iterations=min(budget, self.stop.max_iterations))
            result = self.solver.solve(self.problem, cut, **self.options)
            rows.append((float(result.iterations), result.residual))
            if result.reason != "iterations" or budget >= self.stop.max_iterations:
                return np.array(rows)
            budget *= 2


@dataclass(frozen=True)
class SolverRow:
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
    errors: dict[str, float] = field(default_factory=dict)
    """What others quote: natural_map, unit_map, primal, dual, complementarity (physics.contact.errors)."""
    worst: float | None = None
    worst_contact: int | None = None
    """The largest error of a contact over its own force, and which contact that is, from 0."""


def solve_file(
    file: Path,
    names: Iterable[str],
    stop: Stop,
    progress: Progress,
    options: Mapping[str, Any] | None = None,
    guess: Path | None = None,
    least_violation: bool = False,
) -> tuple[dict[str, Any], dict[str, SolvedProblem]]:
    """The summary of all solves and the solutions by solver, in the file's units.

    names: of solvers, or `all`; none stands for the best one that takes the problem. options: of the solver;
    guess: a file with a force to start from. The summary's kind says what the file was taken for, its notes
    what was changed in the problem, its infeasible why no forces solve it, its wedge why there may be none;
    with least_violation its normals then give by the least that is needed. Raises InputError for a file, a
    name or an option that is none, Refusal for a stop that never stops.
    """
    options = options or {}
    _check(stop)
    wanted = _chosen(list(names))
    notes: list[str] = []
    kinds: list[str] = []
    problem = read_problem(file, notes.append, kinds.append)
    for note in (*kinds, *notes):
        progress.say(f"{file}: {note}")
    if guess is not None:
        problem = replace(problem, warm=read_guess(guess, problem.n_contacts))
    found = None
    if least_violation:
        problem, found = giving_way(problem)
    chosen = wanted or _chosen([BEST])
    everyone = len(chosen) == len(solver_names())
    rows, solutions = [], {}
    for solver in chosen:
        with progress.stage(solver.name):
            try:
                row, r = run_solver(solver, problem, stop, options)
                solutions[solver.name] = SolvedProblem(solver, problem, stop, options, r)
            except InputError as error:
                if not everyone:
                    raise
                row = SolverRow(
                    solver.name, None, 0, None, 0, 0, 0, False, f"refused: {error}", solver.consistent
                )
        rows.append(row)
    wedge, failed = None, [row.solver for row in rows if row.consistent and not row.converged]
    if found is None and failed:
        found = find_infeasible(problem)
        if found is not None:
            rows = [replace(row, reason=_told_infeasible(row)) for row in rows]
        else:
            wedge = find_wedge(problem)
        solutions = {name: replace(own, infeasible=found, wedge=wedge) for name, own in solutions.items()}
    summary = {
        "file": str(file),
        "kind": kinds[0],
        "contacts": problem.n_contacts,
        "notes": notes,
        "infeasible": None if found is None else _in_words(found, least_violation),
        "wedge": None if wedge is None else _wedged(wedge),
        "tolerance": stop.tolerance,
        "solvers": [asdict(row) for row in rows],
        "failed": failed,
        "exit_status": 1 if failed else 0,
    }
    return summary, solutions


def run_solver(
    solver: Solver, problem: AnyProblem, stop: Stop, options: Mapping[str, Any]
) -> tuple[SolverRow, NDArray[np.float64]]:
    """One solve that compiles and gives the result, then cold ones that are timed."""
    result = solver.solve(problem, stop, **options)
    times: list[float] = []
    began = time.perf_counter()
    while not times or (len(times) < REPEATS and time.perf_counter() - began < PATIENCE):
        start = time.perf_counter()
        result = solver.solve(problem, stop, **options)
        times.append(time.perf_counter() - start)
    return _row(solver, problem, result, statistics.median(times)), result.r


def write_solutions(path: Path, solutions: Mapping[str, SolvedProblem]) -> None:
    """What each solver found: in an .npz archive all, in an HDF5 file the first one's as FCLIB's `solution`.

    Keys of the archive: NAME for r, NAME/u, NAME/status, and NAME/history, rows (iterations, residual);
    `certificate` and `violation`, as in `Infeasible`, where no forces solve the problem; `wedge`, the
    certificate of a `Wedge`, where there may be none.
    """
    if path.suffix != ".npz":
        first = next(iter(solutions.values()))
        write_solution(path, first.r, first.u)
        return
    arrays: dict[str, NDArray[Any]] = {}
    for name, found in solutions.items():
        arrays |= {name: found.r, f"{name}/u": found.u, f"{name}/status": found.status}
        arrays[f"{name}/history"] = found.history()
        if found.infeasible is not None:
            arrays |= {"certificate": found.infeasible.certificate, "violation": found.infeasible.violation}
        if found.wedge is not None:
            arrays["wedge"] = found.wedge.certificate
    np.savez(path, **arrays)  # type: ignore[arg-type]


def read_options(settings: Iterable[str]) -> dict[str, Any]:
    """KEY=VALUE of --set: a number, true, false or a word. Raises Refusal for what is none."""
    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not (key and equals and text):
            raise Refusal(f"--set {setting}: give KEY=VALUE, such as differences=8")
        try:
            options[key.replace("-", "_")] = json.loads(text)
        except json.JSONDecodeError:
            options[key.replace("-", "_")] = text
    return options


def profile(options: Any, stop: Stop, settings: Mapping[str, Any], progress: Progress) -> int:
    """`--profile`: all consistent solvers, or those asked for, over a folder; 1 if a problem is unsolved."""
    from palpo.app.cli.profile import print_profile, profile_folder, write_profile

    _check(stop)
    if not options.file.is_dir():
        raise Refusal(f"--profile {options.file}: give a folder with contact problems")
    out = options.out or Path("out") / "profile"
    if out.exists() and not out.is_dir():
        raise Refusal(f"--out {out}: with --profile this is a folder, and a file of that name is there")
    names = options.solver or [name for name in solver_names() if find_solver(name).consistent]
    rows = profile_folder(options.file, _chosen(list(names)), stop, settings, progress)
    write_profile(out, rows)
    write_json(options.json, rows)
    print_profile(rows)
    print(f"table, profiles and picture: {out}")
    solved = {row["problem"] for row in rows if row["converged"] or row["reason"] == "infeasible"}
    return 0 if solved == {row["problem"] for row in rows} else 1


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
    for name in ("time [ms]", "iterations", "residual", "worst contact", "open", "stick", "slip"):
        table.add_column(name, justify="right")
    table.add_column("ended")
    for row in summary["solvers"]:
        residual = "–" if row["residual"] is None else f"{row['residual']:.1e}"
        table.add_row(
            row["solver"] + ("" if row["consistent"] else " *"),
            number(row["time_ms"]),
            number(row["iterations"]),
            residual,
            "–" if row["worst"] is None else f"{row['worst']:.1e} of {row['worst_contact']}",
            *(number(row[name]) for name in ("open", "stick", "slip")),
            row["reason"],
        )
    console.print(table)
    for why in ("infeasible", "wedge"):
        if summary[why] is not None:
            console.print(summary[why]["said"])
    if not all(row["consistent"] for row in summary["solvers"]):
        console.print("* follows another law than the problem's: an answer of its own where that law matters")


def _row(solver: Solver, problem: AnyProblem, result: ContactResult, seconds: float) -> SolverRow:
    counts = np.bincount(result.status, minlength=3)
    errors = quoted_errors(problem, result.r)
    return SolverRow(
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
        {key: value for key, value in asdict(errors).items() if key not in ("per_contact", "own")},
        errors.worst,
        errors.worst_contact,
    )


def _told_infeasible(row: SolverRow) -> str:
    return "infeasible" if row.consistent and not row.converged and row.time_ms is not None else row.reason


def _in_words(found: Infeasible, eased: bool) -> dict[str, Any]:
    """What there is to know of a problem that no forces solve, and a sentence of it."""
    said = (
        f"no forces solve it: normal forces p >= 0 on {_named(found.contacts)} "
        f"move nothing (W p = 0 to {found.answer:.1g}), but p . b = {found.depth:.3g} < 0; "
    )
    least = float(found.violation.max())
    if eased:
        said += f"its normals gave by {least:.3g} at most, the least that makes it solvable"
    else:
        said += f"--least-violation lets normals give by the least that is needed, {least:.3g} at most"
    return {
        "said": said,
        "certificate": found.certificate.tolist(),
        "depth": found.depth,
        "answer": found.answer,
        "violation": found.violation.tolist(),
        "contacts": found.contacts.tolist(),
    }


def _wedged(found: Wedge) -> dict[str, Any]:
    """What there is to know of a problem that may have no solution, and a sentence of it."""
    return {
        "said": (
            f"it may have no solution: forces s in the cones of {_named(found.contacts)} hold one another "
            f"(W s = 0 to {found.answer:.1g}), and s . b = {found.depth:.3g} < 0, so that sum mu s_n |u_t| "
            f"must be {-found.depth:.3g} at least"
        ),
        "certificate": found.certificate.tolist(),
        "depth": found.depth,
        "answer": found.answer,
        "contacts": found.contacts.tolist(),
    }


def _named(contacts: NDArray[np.int64]) -> str:
    more = f" and {len(contacts) - 8} more" if len(contacts) > 8 else ""
    return f"contact{'s' * (len(contacts) > 1)} {', '.join(map(str, contacts[:8].tolist()))}{more}"


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
