"""The contact solvers on the thesis's benches: chapter 3 of 001, tables 3.19 to 3.41, figures 3.4 to 3.35.

A path is led once with an exact solver at REFERENCE. Every solver then gets the very problems that were met
there, from r = 0 as 001 starts (2.72), so that all are compared on the same problems and none on what it
itself did in earlier steps. The stops are

printed   001's: |dr| <= 1e-4 |r| (2.72), and in the local methods a visit from r = 0 to (3.6) or (3.7)
warm      the same, but a visit of the local methods goes on from its last force
tight     the common residual at 1e-8, local methods going on from their last force; the laws that are not
          consistent cannot meet it and stop at |dr| <= 1e-8 |r| where they have such a stop

A solver has failed where it has not met its stop within 001's number of sweeps.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from palpo.physics.contact.laws import OPEN, SLIP, STICK
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.registry import Solver, find_solver, solver_names
from palpo.studies.claims import Claim
from palpo.studies.force_errors import deviation
from palpo.studies.hapco_benches import CM, PAIRS, lead, make_interaction, penetration, sliding
from palpo.studies.hapco_findings import findings
from palpo.studies.hapco_limits import scanned
from palpo.studies.hapco_page import write_page
from palpo.studies.hapco_plots import draw_all
from palpo.studies.hapco_thesis import MUS
from palpo.studies.rows import Row, mean
from palpo.studies.tables import write_csv

PATHS = {"penetration": (penetration(), 0), "sliding": (sliding(), 5)}
"""Displacements, and how many of them lead to where the path begins."""
REFERENCE = Stop(1e-12, 20000)
OURS = "anderson"
SURE = "uzawa-global-bipotential-rho_min"
"""Finishes what OURS leaves of a reference: its extrapolations may drive it round a solution for ever, while
this one's steps contract, and converge on every bench (001, 3.10)."""

UZAWA_ERROR = 1e-3
LENGTH = 1.0 * CM
"""L of (3.6) and (3.7), which 001 does not state [m]: the side of the mobile block."""
PRINTED_ERROR, PRINTED_SWEEPS = 1e-4, 5000
"""From section 3.6 on."""
TIGHT, TIGHT_SWEEPS = 1e-8, 10000
"""In sections 3.4 and 3.5; 5000 sweeps in the comparison of all solvers."""

SHORT, REPEATS = 2e-3, 3
"""A solve of fewer seconds is repeated: others use the machine too."""

FORMULATIONS = ("GB", "G*B", "G*B'", "G*P", "G*P'")
"""Section 3.4: rho_min, and the * as printed and corrected; G*P is 001's GP, with and without its sign."""
SCANNED = ("GB", "G*B", "G*B'")
"""Section 3.5."""


@dataclass(frozen=True)
class SolverPlan:
    """How much is computed."""

    mus: tuple[float, ...] = MUS
    stride: int = 1
    """Every so many steps of a path are solved, the last among them; all are led."""
    seconds: float = 0.5
    """Most time of one solve [s]."""
    leave_out: tuple[str, ...] = ()
    """Solvers whose names start so."""
    factors: tuple[float, ...] = (0.5, 1.0, 1.2, 1.5, 1.8, 2.0, 2.2, 2.5, 3.0, 4.0)


FULL = SolverPlan()
QUICK = SolverPlan(
    mus=(0.3, 0.7),
    stride=10,
    seconds=0.1,
    leave_out=("lemke-16", "uzawa-local-pseudo", "uzawa-signorini-pseudo"),
    factors=(0.5, 1.0, 1.5, 2.0, 2.2, 3.0),
)


@dataclass(frozen=True)
class SolverStep:
    """One problem of a path and its solution."""

    number: int
    """Counted from 1."""
    problem: ContactProblem
    reference: ContactResult

    @property
    def rho_min(self) -> float:
        """min 1 / W_ii (3.1) [N/m]."""
        return 1.0 / float(self.problem.w.diagonal().max())

    @property
    def largest_factor(self) -> float:
        """2 / (rho_min lmax(W_aa)) of the contacts that bear: one step of Uzawa at each is over-relaxation.

        rho lmax(W_aa) is its omega, and successive over-relaxation converges for 0 < omega < 2 while no
        contact changes its status.
        """
        n = self.problem.n_contacts
        own = self.problem.w.reshape(n, 3, n, 3)[np.arange(n), :, np.arange(n)]
        bearing = self.reference.status != OPEN
        return 2.0 / (self.rho_min * float(np.linalg.eigvalsh(own[bearing])[:, -1].max()))


@dataclass(frozen=True)
class Recorded:
    """A path of one pair of materials at one friction."""

    pair: str
    path: str
    mu: float
    bench: str = "main"
    steps: list[SolverStep] = field(default_factory=list)

    def every(self, stride: int) -> "Recorded":
        """Every stride-th step, the last among them."""
        return replace(self, steps=self.steps[::-1][::stride][::-1])


@dataclass(frozen=True)
class SolverTrial:
    """A solver under one of the stops."""

    solver: Solver
    stop: str
    limit: Stop
    options: Mapping[str, Any]

    def met(self, result: ContactResult) -> bool:
        """Whether it ended by its own stop, which `stalled` is where another than the residual counts."""
        own = "outer" in self.options or not self.solver.consistent
        return result.converged or (own and result.reason == "stalled")


def run(out: Path, quick: bool) -> list[Claim]:
    """Both comparisons, the tables, the figures and the page of verdicts."""
    plan = QUICK if quick else FULL
    console = Console(stderr=True, highlight=False)
    trials = make_trials(plan)
    recorded, rows = [], []
    for pair in PAIRS:
        for path in PATHS:
            for mu in plan.mus:
                console.print(f"  {pair}, {path}, mu {mu:g}", style="dim")
                one = record(pair, path, mu)
                recorded.append(one)
                rows += [row for trial in trials for row in solve(one.every(plan.stride), trial)]
    console.print("  formulations and factors on rho", style="dim")
    formulations = list(_formulations(plan, recorded))
    factors = list(_factors(plan, recorded))
    paths = [row for one in recorded for row in _path_rows(one)]
    summary = list(summarise(rows))
    data = {
        "paths": paths, "steps": rows, "solvers": summary, "formulations": formulations, "factors": factors,
    }  # fmt: skip
    for name, table in data.items():
        write_csv(out / f"{name}.csv", table)
    draw_all(out, data)
    found = findings(data)
    write_page(out / "verdict.md", found, data, quick)
    return [finding.claim for finding in found]


# ---- problems


def record(pair: str, path: str, mu: float, bench: str = "main") -> Recorded:
    """Lead the mobile block along a path and keep its problems, each to be solved from r = 0."""
    interaction = make_interaction(bench, *PAIRS[pair], mu=mu, solver=OURS, stop=REFERENCE)
    one = Recorded(pair, path, mu, bench)
    displacements, approach = PATHS[path]
    for k, displacement in enumerate(displacements, 1 - approach):
        done = lead(interaction, displacement)
        if k > 0 and isinstance(done.problem, ContactProblem):
            problem = replace(done.problem, warm=None)
            one.steps.append(SolverStep(k, problem, reference(problem, done.result)))
    return one


def reference(problem: ContactProblem, found: ContactResult) -> ContactResult:
    """The solution of a problem to REFERENCE, from what OURS has found of it."""
    if found.converged:
        return found
    return find_solver(SURE).solve(replace(problem, warm=found.r), REFERENCE)


def _path_rows(one: Recorded) -> Iterator[Row]:
    for step in one.steps:
        yield {
            "pair": one.pair,
            "path": one.path,
            "mu": one.mu,
            "step": step.number,
            "force_norm_N": float(np.linalg.norm(step.reference.r)),
            "rho_min_N_per_m": step.rho_min,
            "largest_factor": step.largest_factor,
            **_statuses(step.reference),
            "reference_residual": step.reference.residual,
        }


def _statuses(result: ContactResult) -> Row:
    return {"stick": int((result.status == STICK).sum()), "slip": int((result.status == SLIP).sum())}


# ---- solves


def make_trials(plan: SolverPlan) -> list[SolverTrial]:
    """001's members under its stop, and every solver under the tight one."""
    names = [name for name in solver_names() if not name.startswith(plan.leave_out or ("\0",))]
    members = [name for name in names if name.startswith("uzawa")]
    # 001 goes on with the bi-potential alone once the pseudo-potential has failed
    printed = [n for n in members if "global" in n or "bipotential" in n]
    return [
        *(printed_trial(name, plan.seconds) for name in printed),
        *(printed_trial(name, plan.seconds, warm=True) for name in printed if "global" not in name),
        *(tight_trial(name, plan.seconds) for name in names),
    ]


def printed_trial(name: str, seconds: float, warm: bool = False) -> SolverTrial:
    """An Uzawa solver as 001 stops it from section 3.6 on; warm: local visits go on from their last force."""
    options = {
        "outer": ("relative", PRINTED_ERROR), "uzawa_error": UZAWA_ERROR, "length": LENGTH,
        "from_zero": not warm and "-global-" not in name,
    }  # fmt: skip
    return SolverTrial(
        find_solver(name), "warm" if warm else "printed", Stop(TIGHT, PRINTED_SWEEPS, seconds), options
    )


def tight_trial(name: str, seconds: float, sweeps: int = PRINTED_SWEEPS, **options: Any) -> SolverTrial:
    """A solver at the common residual; an inconsistent Uzawa at the same relative change."""
    solver = find_solver(name)
    if name.startswith("uzawa") and not solver.consistent:
        options |= {"outer": ("relative", TIGHT)}
    return SolverTrial(solver, "tight", Stop(TIGHT, sweeps, seconds), options)


def solve(one: Recorded, trial: SolverTrial) -> Iterator[Row]:
    """Every step of a path from r = 0; short solves are timed as the least of REPEATS."""
    # the first may compile
    trial.solver.solve(one.steps[0].problem, replace(trial.limit, max_iterations=2), **trial.options)
    for step in one.steps:
        result = trial.solver.solve(step.problem, trial.limit, **trial.options)
        seconds = [result.seconds]
        while seconds[0] < SHORT and len(seconds) < REPEATS:
            seconds.append(trial.solver.solve(step.problem, trial.limit, **trial.options).seconds)
        yield {
            "pair": one.pair,
            "path": one.path,
            "mu": one.mu,
            "step": step.number,
            "solver": trial.solver.name,
            "symbol": trial.solver.short,
            "consistent": trial.solver.consistent,
            "stop": trial.stop,
            "time_ms": 1e3 * min(seconds),
            "iterations": result.iterations,
            "met": trial.met(result),
            "reason": result.reason,
            "residual": result.residual,
            "deviation_percent": deviation(result.r, step.reference.r),
            **_statuses(result),
        }


KEYS = ("pair", "path", "mu", "solver", "symbol", "consistent", "stop")


def summarise(rows: Iterable[Row], keys: Sequence[str] = KEYS) -> Iterator[Row]:
    """One row a path and trial: means along it, the worst, and how many steps failed and why."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    for values, own in groups.items():
        yield {
            **dict(zip(keys, values, strict=True)),
            "steps": len(own),
            "failed": sum(not row["met"] for row in own),
            "by_time": sum(row["reason"] == "time" for row in own),
            "diverged": sum(row["reason"] == "diverged" for row in own),
            **{f"mean_{key}": mean(own, key) for key in MEANS},
            "worst_deviation_percent": max(row["deviation_percent"] for row in own),
            "worst_residual": max(row["residual"] for row in own),
        }


MEANS = ("time_ms", "iterations", "deviation_percent", "stick", "slip")


# ---- sections 3.4 and 3.5: aluminium on tissue at mu 0.3


def _formulations(plan: SolverPlan, recorded: Sequence[Recorded]) -> Iterator[Row]:
    """16 contacts pressed, 36 slid, at 1e-8 and at most 10000 sweeps."""
    few = record("aluminium-tissue", "penetration", 0.3, "main-16")
    for one, contacts in ((few, 16), (_find(recorded, "aluminium-tissue", "sliding"), 36)):
        for symbol in FORMULATIONS:
            for row in solve(one.every(plan.stride), _relative(symbol, 1.0)):
                yield {"contacts": contacts, **row}


def _factors(plan: SolverPlan, recorded: Sequence[Recorded]) -> Iterator[Row]:
    """Factors on rho, and a bisection to the largest one borne; the other pairs on every third step."""
    for pair in PAIRS:
        stride = plan.stride if pair == "aluminium-tissue" else max(plan.stride, 3)
        both = [_find(recorded, pair, path).every(stride) for path in PATHS]
        for symbol in SCANNED:
            yield from scanned(plan.factors, partial(_at_factor, both, symbol))


def _at_factor(recorded: Sequence[Recorded], symbol: str, factor: float) -> list[Row]:
    return [{"factor": factor, **row} for one in recorded for row in solve(one, _relative(symbol, factor))]


def _relative(symbol: str, factor: float) -> SolverTrial:
    """Stopped at |dr| <= 1e-8 |r|, as 001 stops its references."""
    options = {"outer": ("relative", TIGHT), "factor": factor}
    return SolverTrial(find_solver(symbol), "tight", Stop(TIGHT, TIGHT_SWEEPS), options)


def _find(recorded: Sequence[Recorded], pair: str, path: str, mu: float = 0.3) -> Recorded:
    return next(one for one in recorded if (one.pair, one.path, one.mu) == (pair, path, mu))
