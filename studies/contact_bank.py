"""Every contact problem that we have through our solvers: is one left unsolved, and which is the quickest.

The problems, each from no force:

f    blocks refined together in sliding contact, 16 to 400 of them (`hapco_contacts`): 144, near singular
c    the benches of 001 that have names, pressed and slid: 144
t    001's chapter 3, three pairs of materials, two paths, four frictions: 420
b    stacks of bricks, pressed and squeezed blocks (`palpo bench solve`), and whatever is in ../shared/data

They are written to out/problems and not made again where they lie there, so that `palpo solve out/problems
--profile` solves the same by any solver. What is solved is kept in out/solves.json, rows as `--json` of that
command writes them: a run that was broken off goes on. A problem counts as easy where accelerated sweeps end
within EASY. Times are the thread's processor's, solvers taking turns in one process.

Constants of the portfolio were chosen on problems of the first half, every other one by name; the claims of
speed are made on the second half.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palpo.app.cli.profile import ERRORS, performance, print_profile, solve_in_turns, write_profile
from palpo.app.cli.progress import Progress
from palpo.app.cli.summary import console_for_people
from palpo.app.report.outcome import write_json
from palpo.benchmarks.solve import problems as benched
from palpo.physics.contact.io import read_problem
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.studies import hapco_solvers
from palpo.studies.claims import Claim, Line, Reported, at_least, at_most
from palpo.studies.hapco_benches import PAIRS, make_interaction, penetration, sliding
from palpo.studies.hapco_contacts import BENCH_NAMES, SIDES, TIMED, build, problems_along, refined
from palpo.studies.hapco_thesis import MUS

Row = dict[str, Any]

OURS, SWEEPS = "portfolio", "anderson"
RIVALS = (SWEEPS, "interior-point", "admm")
"""The others of ours that solve most of them."""

STOP = Stop(1e-8, 100_000)
RIVALS_STOP = Stop(1e-8, 20_000, 30.0)
"""A rival that takes longer is not the quickest anyway."""

EASY = 200
TAUS = (1.0, 1.05, 1.2, 2.0)


def run(out: Path, quick: bool) -> list[Line]:
    """The problems, every solver on each, tables of the easy and the hard ones, the profiles."""
    folder, progress = out / "problems", Progress()
    folder.mkdir(exist_ok=True)
    with progress.stage("problems"):
        write_problems(folder, quick)
    solvers = [(find_solver(OURS), STOP), *((find_solver(name), RIVALS_STOP) for name in RIVALS)]
    rows = read_rows(out / "solves.json")
    solved = {row["problem"] for row in rows}
    files = [file for file in sorted(folder.glob("*.npz")) if file.stem not in solved]
    for k, file in enumerate(files, 1):
        with progress.stage(f"{file.stem}, {k} of {len(files)}"):
            rows += solve_in_turns(file.stem, read_problem(file), solvers, {})
        write_json(out / "solves.json", rows)
    write_profile(out, rows)
    for title, chosen in parted(rows).items():
        if chosen:
            console_for_people().print(title)
            print_profile(chosen)
    return claims(rows)


def read_rows(path: Path) -> list[Row]:
    """Rows of problems that are solved already, by name without suffix; none where there is no such file."""
    if not path.exists():
        return []
    rows: list[Row] = json.loads(path.read_text("utf-8"))
    for row in rows:
        row["problem"] = Path(row["problem"]).stem if row["problem"].endswith(".npz") else row["problem"]
        row |= {key: np.nan for key in ERRORS if key in row and row[key] is None}
    return rows


# ---- problems


def write_problems(folder: Path, quick: bool) -> None:
    """Those that are not in the folder yet; a group of which one is there counts as there."""
    pairs = ["tissue-tissue"] if quick else list(PAIRS)
    for name, problem in _benches(folder, quick):
        _write(folder / f"b_{name}.npz", problem)
    for pair in pairs:
        for side in SIDES[:2] if quick else SIDES:
            start = f"f_{pair}_{side * side:03d}"
            if not any(folder.glob(f"{start}_*")):
                found, _ = problems_along(
                    build(refined(side), *PAIRS[pair]), sliding(10), 2 if quick else TIMED
                )
                _write_all(folder, start, found)
        for bench in BENCH_NAMES[:1] if quick else BENCH_NAMES:
            for path, positions in {"penetration": penetration(), "sliding": sliding()}.items():
                start = f"c_{pair}_{bench}_{path}"
                if not any(folder.glob(f"{start}_*")):
                    interaction = make_interaction(bench, *PAIRS[pair])
                    _write_all(
                        folder, start, problems_along(interaction, positions, 2 if quick else TIMED)[0]
                    )
        for path in hapco_solvers.PATHS:
            for mu in MUS[:1] if quick else MUS:
                start = f"t_{pair}_{path}_{mu:g}"
                if not any(folder.glob(f"{start}_*")):
                    steps = hapco_solvers.record(pair, path, mu).every(7 if quick else 1).steps
                    for step in steps:
                        _write(folder / f"{start}_{step.number:02d}.npz", step.problem)


def _benches(folder: Path, quick: bool) -> Iterator[tuple[str, ContactProblem]]:
    if any(folder.glob("b_*")):
        return
    for name, problem in benched(small=quick).items():
        yield "".join(c if c.isalnum() else "_" for c in name), problem


def _write_all(folder: Path, start: str, problems: Sequence[ContactProblem]) -> None:
    for k, problem in enumerate(problems):
        _write(folder / f"{start}_{k}.npz", problem)


def _write(path: Path, problem: ContactProblem) -> None:
    np.savez(path, W=problem.w, q=problem.b, mu=problem.mu)


# ---- what came out


def easy_problems(rows: Sequence[Row]) -> set[str]:
    """Those that accelerated sweeps solve within EASY."""
    return {
        row["problem"]
        for row in rows
        if row["solver"] == SWEEPS and row["converged"] and row["iterations"] <= EASY
    }


def parted(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of the easy problems and of the hard ones."""
    easy = easy_problems(rows)
    return {
        "Easy:": [row for row in rows if row["problem"] in easy],
        "Hard:": [row for row in rows if row["problem"] not in easy],
    }


def second_half(rows: Sequence[Row]) -> list[Row]:
    """Rows of every other problem by name, from the second on."""
    names = sorted({row["problem"] for row in rows})[1::2]
    return [row for row in rows if row["problem"] in set(names)]


def over_sweeps(rows: Sequence[Row]) -> float:
    """Median of the portfolio's time over that of accelerated sweeps, where both solve."""
    times: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["converged"]:
            times.setdefault(row["problem"], {})[row["solver"]] = row["time_ms"]
    both = [own[OURS] / own[SWEEPS] for own in times.values() if OURS in own and SWEEPS in own]
    return float(np.median(both)) if both else float("nan")


def claims(rows: Sequence[Row]) -> list[Line]:
    """None unsolved; no slower than sweeps on easy ones; how often the quickest on hard ones."""
    own = [row for row in rows if row["solver"] == OURS]
    left = [row["problem"] for row in own if not row["converged"]]
    lines: list[Line] = [
        Claim(f"problems left unsolved at {STOP.tolerance:g}, of {len(own)}" + (f": {left}" if left else ""),
              len(left), "", "0", not left),
        *(Reported(f"left unsolved by {name}", float(sum(row["solver"] == name and not row["converged"]
                   for row in rows)), "", "beside it") for name in RIVALS),
    ]  # fmt: skip
    parts = parted(second_half(rows))
    lines.append(
        at_most(
            "easy: the portfolio's time over that of accelerated sweeps, median",
            over_sweeps(parts["Easy:"]),
            1.05,
            "",
            "what it may cost not to know beforehand; on the half that chose no constant",
        )
    )
    hard = performance(parts["Hard:"]).get(OURS, np.array([]))
    for tau in TAUS:
        share = 100.0 * float((hard <= tau).mean()) if len(hard) else float("nan")
        name = f"hard: solved within {tau:g} times the least time of all"
        if tau == 1.0:
            lines.append(at_least(name, share, 90.0, "%", "a portfolio is to be the best of its members"))
        else:
            lines.append(Reported(name, share, "%", "on the half that chose no constant"))
    return lines
