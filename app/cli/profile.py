"""`palpo solve FOLDER --profile`: all solvers over all problems of a folder, and their performance profiles.

Dolan & More (Math. Program. 91, 2002): with t_ps the time of solver s on problem p and t_p the least of all,
rho_s(tau) is the share of the problems on which s has converged with t_ps <= tau t_p. rho_s(1) says how often
it is the fastest, the level at the right what it solves at all. Times are of the thread's processor, the
least of a few solves in one process, solvers taking turns.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.table import Table

from palpo.app.cli.peers import Peer, peers
from palpo.app.cli.progress import Progress
from palpo.app.cli.solve import WIDTH
from palpo.app.cli.summary import console_for_people
from palpo.physics.contact.errors import quoted_errors
from palpo.physics.contact.feasibility import find_infeasible
from palpo.physics.contact.io import HDF5, read_problem
from palpo.physics.contact.problem import AnyProblem, Stop
from palpo.physics.contact.solvers.registry import Solver
from palpo.physics.numerics.errors import InputError

Row = dict[str, Any]

ROUNDS, PATIENCE, LONG, QUICK = 7, 0.03, 10.0, 5e-3
"""Turns at most, and processor times of one solve [s]: after the first it is not repeated, after the second
not even for what compiling took; one below the third is timed after another of its own, so that none finds
the caches as another solver has left them."""

SUFFIXES = (".npz", *HDF5)
MEDIANS, WORST = ("time_ms", "iterations"), ("natural_map", "unit_map", "dual")
MEDIANS_TOLD, WORST_TOLD = ("ms", "iterations"), ("natural map", "unit map", "dual")
TAUS = (1.0, 1.05, 1.2, 2.0, 10.0)
"""Columns of the table: medians, worst, and times over that of the fastest."""

ERRORS = ("natural_map", "unit_map", "primal", "dual", "complementarity")


def profile_folder(
    folder: Path, solvers: Sequence[Solver], stop: Stop, options: Mapping[str, Any], progress: Progress
) -> list[Row]:
    """A row for every solver on every problem below the folder; what a solver refuses is said in its row.

    Raises InputError where there is no problem, or where a file is none.
    """
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not files:
        raise InputError(f"{folder}: no file below it ends in {', '.join(SUFFIXES)}")
    rows: list[Row] = []
    for k, file in enumerate(files, 1):
        problem = read_problem(file)
        name = str(file.relative_to(folder))
        with progress.stage(f"{name}, {k} of {len(files)}"):
            stopped = [(solver, stop) for solver in (*solvers, *peers())]
            rows += solve_in_turns(name, problem, stopped, options)
    return rows


def solve_in_turns(
    name: str, problem: AnyProblem, solvers: Sequence[tuple[Any, Stop]], options: Mapping[str, Any]
) -> list[Row]:
    """A row for each solver, with its stop, on the problem of this name; options go to ours, not to peers."""
    rows: dict[str, Row] = {}
    for turn in range(ROUNDS + 1):
        first = turn % len(solvers)  # each is the first in its turn
        for solver, stop in (*solvers[first:], *solvers[:first]):
            row = rows.setdefault(solver.name, {"problem": name, "contacts": problem.n_contacts,
                                                "solver": solver.name, "time_ms": None})  # fmt: skip
            if "refused" in row or (turn > 0 and row["time_ms"] > 1e3 * (PATIENCE if turn > 1 else LONG)):
                continue
            own = {} if isinstance(solver, Peer) else options
            if turn > 0 and row["time_ms"] < 1e3 * QUICK:
                solver.solve(problem, stop, **own)
            begun = time.thread_time()
            try:
                result = solver.solve(problem, stop, **own)
            except InputError as error:
                row |= {"refused": str(error), "converged": False, "reason": "refused"}
                continue
            spent = 1e3 * (result.seconds if isinstance(solver, Peer) else time.thread_time() - begun)
            if turn == 0:  # it may have compiled
                errors = quoted_errors(problem, result.r)
                row |= {key: getattr(errors, key) for key in ERRORS}
                row |= {
                    "worst_contact": errors.worst_contact,
                    "worst": errors.worst,
                    "iterations": int(result.iterations),
                    "converged": bool(result.converged),
                    "reason": result.reason,
                    "consistent": bool(solver.consistent),
                    "time_ms": spent,
                }
            elif turn == 1:
                row["time_ms"] = spent
            else:
                row["time_ms"] = min(row["time_ms"], spent)
    failed = [row for row in rows.values() if not row["converged"] and "refused" not in row]
    if failed and find_infeasible(problem) is not None:
        for row in failed:
            row["reason"] = "infeasible"
    return list(rows.values())


def performance(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    """t_ps / t_p of each solver over the problems that any has solved, infinite where it has not converged.

    Shape (problems,) each, sorted.
    """
    names = list(dict.fromkeys(row["solver"] for row in rows))
    times: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["converged"]:
            times.setdefault(row["problem"], {})[row["solver"]] = max(row["time_ms"], 1e-6)
    return {
        name: np.sort([own.get(name, np.inf) / min(own.values()) for own in times.values()]) for name in names
    }


def write_profile(out: Path, rows: Sequence[Row]) -> None:
    """solves.csv, profile.csv (tau and the share of each solver) and profile.png in the folder `out`."""
    import csv

    out.mkdir(parents=True, exist_ok=True)
    keys = list(dict.fromkeys(key for row in rows for key in row))
    with (out / "solves.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, keys)
        writer.writeheader()
        writer.writerows(rows)
    ratios = performance(rows)
    tau = np.geomspace(1.0, 1e3, 61)
    shares = {
        name: [float((own <= t).mean()) if len(own) else 0.0 for t in tau] for name, own in ratios.items()
    }
    with (out / "profile.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["tau", *shares])
        lines.writerows([t, *(shares[name][k] for name in shares)] for k, t in enumerate(tau))
    _draw(out / "profile.png", tau, shares)


def _draw(path: Path, tau: np.ndarray, shares: Mapping[str, Sequence[float]]) -> None:
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    best_first = sorted(shares, key=lambda name: -sum(shares[name]))
    for k, name in enumerate(best_first[:12]):
        axes.step(tau, shares[name], where="post", label=name, linewidth=2.5 if k == 0 else 1.4,
                  linestyle=("-", "--", ":")[k // 10])  # fmt: skip
    axes.set(xscale="log", xlabel="time over that of the fastest, tau", ylim=(0.0, 1.02), xlim=(1.0, tau[-1]),
             ylabel="share of the problems solved within tau")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=130)


def print_profile(rows: Sequence[Row]) -> None:
    """A line a solver: what it solved, how often it was the fastest or nearly, and its worst errors."""
    console = console_for_people()
    ratios, problems = performance(rows), len({row["problem"] for row in rows})
    if not console.is_terminal:
        console.width = WIDTH
    title = f"{problems} problems; medians of what each has solved, worst of all"
    table = Table(title=title, title_justify="left")
    table.add_column("solver", no_wrap=True)
    for name in ("solved", "fastest", *(f"<= {tau:g}" for tau in TAUS[1:]), *MEDIANS_TOLD, *WORST_TOLD):
        table.add_column(name, justify="right")
    for name in sorted(ratios, key=lambda name: (-int(np.isfinite(ratios[name]).sum()), name)):
        own = [row for row in rows if row["solver"] == name]
        done = [row for row in own if row["converged"]]
        shares = [(ratios[name] <= tau).mean() if len(ratios[name]) else 0.0 for tau in TAUS]
        medians = [np.median([row[key] for row in done]) if done else None for key in MEDIANS]
        worst = [max((row[key] for row in own if key in row), default=np.nan) for key in WORST]
        table.add_row(
            name + ("" if all(row.get("consistent", True) for row in own) else " *"),
            str(len(done)),
            *(f"{100.0 * share:.0f}%" for share in shares),
            *("–" if value is None else f"{value:.4g}" for value in medians),
            *(f"{value:.1e}" for value in worst),
        )
    console.print(table)
    unsolved = [p for p in dict.fromkeys(row["problem"] for row in rows)
                if not any(row["converged"] for row in rows if row["problem"] == p)]  # fmt: skip
    for name in unsolved:
        if any(row["reason"] == "infeasible" for row in rows if row["problem"] == name):
            console.print(f"! no forces solve {name}: `palpo solve` on it gives the certificate")
            continue
        least = min(row["natural_map"] for row in rows if row["problem"] == name and "natural_map" in row)
        console.print(f"! no solver has solved {name}: the least residual is {least:.1e}")
