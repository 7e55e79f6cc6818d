"""Contact solvers on two-sided squeezes: 002, section IV-B.

The paper: the Delassus operator of a snap connector is ill conditioned, projected Gauss-Seidel does not
converge well, maximal dissipation takes its place. Here both meet the same wedges (palpo.studies.squeezes),
from loose to nearly jammed, beside the other solvers of the house, from r = 0, under one residual. A second
part measures how far the force of (28), the least on an ellipse, is from Coulomb's on random single slips.

The paper compares with projected Gauss-Seidel alone; what accelerates its sweeps is ours. Hwangbo et al.
relax sweeps that would swing for ever, and pay with the speed of those that do not: a sweep that takes away
the share a of what it finds needs 1 / a times as many. On these wedges none swings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.physics.contact.laws import SLIP, natural_map_residual
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.maximal_dissipation import COULOMB, ELLIPSE, dissipate
from palpo.physics.contact.solvers.registry import find_solver
from palpo.studies.claims import Line, Reported, at_least, at_most, close_to, greatest
from palpo.studies.squeezes import SQUEEZES, Squeeze, squeeze_problem
from palpo.studies.tables import save_figure, write_csv

Row = dict[str, Any]

LIMIT = 20000
"""Most sweeps of a solve."""
BUDGETS = (10, 20, 30, 50, 80, 120, 200, 300, 500, 800, 1200, 2000, 3000, 5000)
"""Sweeps after which a solve is cut and its least residual taken."""
TOLERANCES = (1e-4, 1e-8)
REPEATS = 5
DRAWS = 4000
"""Random slips of each kind."""
PAPER = "002, IV-B"
FLOOR = 0.6
"""Share of a step at which the decaying relaxation ends."""


@dataclass(frozen=True)
class Method:
    """A solver under the name and stroke of the figure."""

    name: str
    solver: str
    colour: str
    options: Mapping[str, Any] = field(default_factory=dict)
    stroke: Any = "-"

    def solve(self, problem: ContactProblem, stop: Stop) -> ContactResult:
        """From r = 0."""
        return find_solver(self.solver).solve(problem, stop, **self.options)


DISSIPATION, DECAY, ANDERSON = "maximal dissipation", "decaying to 0.6", "anderson"
BLOCK, PROJECTED = "block Gauss-Seidel", "projected Gauss-Seidel"
METHODS = (
    Method(DISSIPATION, "maximal-dissipation", "#2f6fc0"),
    Method(DECAY, "maximal-dissipation", "#6b9fdb", {"decay": 0.99, "floor": FLOOR}),
    Method("over-relaxed by 1.3", "maximal-dissipation", "#173d70", {"start": 1.3, "floor": 1.3}),
    Method(BLOCK, "gauss-seidel", "#e08a2e", {}, (0, (4, 3))),
    Method(PROJECTED, "uzawa-global-pseudopotential-rho_alpha", "#d64550"),
    Method("bi-potential, rho_min", "uzawa-global-bipotential-rho_min", "#8a97a8"),
    Method(ANDERSON, "anderson", "#3f9b57"),
    Method("(28) as printed", "maximal-dissipation-printed", "#8b6fc0", {}, (0, (1, 1.5))),
)
"""Block Gauss-Seidel solves each contact, projected Gauss-Seidel takes one step of each row and projects."""

SLIPS = {"0.163": (0.163, 0.163), "0 to 1": (0.0, 1.0)}
"""Friction of the random slips: the paper's, and uniform."""
FREEDOMS = (3, 6, 12)
NOTED = (6, "0 to 1")
"""The kind of slip that is reported."""
SMALL = (0.005, 0.01)
"""Friction between which the order of (28)'s error is measured."""


def run(out: Path, quick: bool) -> list[Line]:
    """Residuals, solves and slips as CSV, one figure, two tables and the claims."""
    budgets = BUDGETS[::3] if quick else BUDGETS
    cases = [(case, squeeze_problem(case)) for case in SQUEEZES]
    residuals = [row for case, problem in cases for row in residuals_of(case, problem, budgets)]
    solves = [row for case, problem in cases for row in solves_of(case, problem, 1 if quick else REPEATS)]
    errors = {
        (freedoms, mu): printed_errors(freedoms, SLIPS[mu], DRAWS // 8 if quick else DRAWS)
        for freedoms in FREEDOMS
        for mu in SLIPS
    }
    slips = [
        {"freedoms": f, "mu": mu, **{f"p{p}_percent": float(np.percentile(e, p)) for p in (50, 95, 99)}}
        for (f, mu), e in errors.items()
    ]
    for name, rows in {"residuals": residuals, "solves": solves, "slips": slips}.items():
        write_csv(out / f"{name}.csv", rows)
    save_figure(out / "residuals.png", 6.6, partial(_draw, rows=residuals, errors=errors))
    _print(solves, slips)
    return claims_of(solves, errors)


def residuals_of(case: Squeeze, problem: ContactProblem, budgets: Sequence[int]) -> Iterator[Row]:
    """The least residual of each method after so many sweeps."""
    for method in METHODS:
        for sweeps in budgets:
            result = method.solve(problem, Stop(1e-13, sweeps))
            yield {
                "case": case.name,
                "method": method.name,
                "sweeps": sweeps,
                "residual": result.residual,
            }
            if result.iterations < sweeps:
                break


def solves_of(case: Squeeze, problem: ContactProblem, repeats: int) -> Iterator[Row]:
    """Sweeps and least time of each method to the tolerances."""
    for method in METHODS:
        if not find_solver(method.solver).consistent:
            continue
        for tolerance in TOLERANCES:
            stop = Stop(tolerance, LIMIT)
            method.solve(problem, stop)  # may compile
            results = [method.solve(problem, stop) for _ in range(repeats)]
            yield {
                "case": case.name,
                "contacts": problem.n_contacts,
                "rank": int(np.linalg.matrix_rank(problem.w)),
                "method": method.name,
                "tolerance": tolerance,
                "sweeps": results[0].iterations,
                "time_ms": 1e3 * min(result.seconds for result in results),
                "residual": results[0].residual,
                "converged": results[0].converged,
            }


def printed_errors(freedoms: int, mus: tuple[float, float], draws: int) -> NDArray[np.float64]:
    """100 |r_printed - r| / |r| of random sliding contacts, shape (draws,).

    W = J J^T with J (3, freedoms) normal: a contact of so many freedoms of unit mass; b normal, closing.
    Without those whose ellipse is open.
    """
    rng = np.random.default_rng(0)
    errors: list[float] = []
    while len(errors) < draws:
        j, b, mu = rng.normal(size=(3, freedoms)), rng.normal(size=3), rng.uniform(*mus)
        b[0] = -abs(b[0])
        w, r, printed = j @ j.T, np.zeros(3), np.zeros(3)
        closed = mu * np.hypot(w[0, 1], w[0, 2]) < w[0, 0]
        if dissipate(COULOMB, w, b, mu, r) == SLIP and closed:
            dissipate(ELLIPSE, w, b, mu, printed)
            errors.append(100.0 * float(np.linalg.norm(printed - r) / np.linalg.norm(r)))
    return np.array(errors)


def single_contact_residual(draws: int = 2000) -> float:
    """Largest natural map of bisected random contacts, jammed ones among them."""
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(draws):
        j, b, mu = rng.normal(size=(3, 6)), rng.normal(size=3), rng.uniform(0.0, 2.0)
        b[0] = -abs(b[0])
        r = np.zeros(3)
        dissipate(COULOMB, j @ j.T, b, mu, r)
        worst = max(worst, natural_map_residual(j @ j.T, b, np.array([mu]), r))
    return worst


def order_in_friction(draws: int) -> float:
    """Of the error of (28) as printed: 2 where the median falls with the square of mu."""
    least, most = (float(np.median(printed_errors(NOTED[0], (mu, mu), draws))) for mu in SMALL)
    return float(np.log(most / least) / np.log(SMALL[1] / SMALL[0]))


def claims_of(solves: Sequence[Row], errors: Mapping[tuple[int, str], NDArray[np.float64]]) -> list[Line]:
    """What the paper says, and what is found."""
    own = [row for row in solves if (row["method"], row["tolerance"]) == (DISSIPATION, TOLERANCES[-1])]
    return [
        at_most(
            "largest residual of 2000 random contacts by bisection",
            single_contact_residual(), 1e-11, "", "exact but for roundings, jammed contacts too",
        ),
        at_most(
            "largest residual of maximal dissipation on the wedges", greatest(row["residual"] for row in own),
            TOLERANCES[-1], "", f"it converges within {LIMIT} sweeps",
        ),
        at_least(
            "sweeps of projected Gauss-Seidel over those of maximal dissipation, least of the wedges",
            min(_ratios(solves, PROJECTED, "sweeps")), 1.0, "", f"{PAPER}: it does not converge well",
        ),
        close_to(
            "sweeps of block Gauss-Seidel over those of maximal dissipation without relaxation, mean",
            geometric_mean(_ratios(solves, BLOCK, "sweeps")), 1.0, 1.0, "",
            "the same iteration: both solve each contact exactly",
        ),
        at_most(
            "time of maximal dissipation over that of block Gauss-Seidel, mean",
            1.0 / geometric_mean(_ratios(solves, BLOCK, "time_ms")), 1.0, "",
            "one bisection in place of inner sweeps",
        ),
        Reported(
            f"sweeps with a decay to {FLOOR:g} over those without, mean",
            geometric_mean(_ratios(solves, DECAY, "sweeps")), "",
            f"1 / a of the share a that a slow sweep takes away is {1.0 / FLOOR:.2f}: none swings here",
        ),
        Reported(
            "sweeps of anderson over those of maximal dissipation, mean",
            geometric_mean(_ratios(solves, ANDERSON, "sweeps")), "", "ours: what scenes have",
        ),
        close_to(
            "order in mu of the force error of (28) as printed, median of random slips of 6 freedoms",
            order_in_friction(DRAWS // 8), 2.0, 5.0, "",
            "its slip's direction errs by mu, and the friction is mu of the force",
        ),
        Reported(
            "force error of (28) as printed, 95th percentile of random slips of 6 freedoms, mu 0 to 1",
            float(np.percentile(errors[NOTED], 95)), "%", "28 to 30 by the draw; the slips are ours",
        ),
        at_most(
            "the same at the paper's mu of 0.163", float(np.percentile(errors[6, "0.163"], 95)), 5.0, "%",
            "second order in mu: little at low friction",
        ),
    ]  # fmt: skip


def _ratios(solves: Sequence[Row], method: str, key: str) -> list[float]:
    """A method's figure over that of maximal dissipation, case by case, at the tighter tolerance."""
    by = {(row["case"], row["method"]): row[key] for row in solves if row["tolerance"] == TOLERANCES[-1]}
    return [by[case, method] / by[case, DISSIPATION] for case in dict.fromkeys(case for case, _ in by)]


def _print(solves: Sequence[Row], slips: Sequence[Row]) -> None:
    console = Console(stderr=True, highlight=False)
    cases = list(dict.fromkeys(row["case"] for row in solves))
    for tolerance in TOLERANCES:
        table = Table(title=f"sweeps (ms) to {tolerance:g}", title_justify="left")
        table.add_column("method")
        for case in cases:
            table.add_column(case, justify="right", no_wrap=True)
        for method in METHODS:
            own = {
                row["case"]: f"{row['sweeps']} ({row['time_ms']:.2f})" if row["converged"] else "-"
                for row in solves
                if (row["method"], row["tolerance"]) == (method.name, tolerance)
            }
            if own:
                table.add_row(method.name, *(own[case] for case in cases))
        console.print(table)
    table = Table(title="force error of (28) as printed on random slips [%]", title_justify="left")
    for name in ("freedoms", "mu", "median", "95th", "99th"):
        table.add_column(name, justify="right")
    for row in slips:
        table.add_row(str(row["freedoms"]), row["mu"], *(f"{row[f'p{p}_percent']:.1f}" for p in (50, 95, 99)))
    console.print(table)


def _draw(figure: Figure, rows: Sequence[Row], errors: Mapping[tuple[int, str], NDArray[np.float64]]) -> None:
    axes = figure.subplots(2, 3).ravel()
    for ax, case in zip(axes, SQUEEZES, strict=False):
        kept = "" if case.modes is None else f", {case.modes} modes"
        ax.set_title(f"{case.half_angle:g} degrees, mu {case.mu:g}{kept}", loc="left", fontsize=9.5)
        for method in METHODS:
            own = [row for row in rows if (row["case"], row["method"]) == (case.name, method.name)]
            ax.plot(
                [row["sweeps"] for row in own], [row["residual"] for row in own],
                color=method.colour, ls=method.stroke, lw=1.4, label=method.name,
            )  # fmt: skip
        ax.set(xscale="log", yscale="log", ylim=(1e-13, 2.0))
        ax.set_xlabel("sweeps", fontsize=9)
    for ax in (axes[0], axes[3]):
        ax.set_ylabel("least residual")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    _draw_errors(axes[-1], errors)


def _draw_errors(ax: Axes, errors: Mapping[tuple[int, str], NDArray[np.float64]]) -> None:
    """How many of the random slips have at most so large an error."""
    for (freedoms, mu), own in errors.items():
        colour = {3: "#8a97a8", 6: "#8b6fc0", 12: "#e08a2e"}[freedoms]
        stroke = "-" if mu == NOTED[1] else (0, (4, 2))
        share = np.linspace(0.0, 100.0, len(own))
        ax.plot(np.sort(own), share, color=colour, ls=stroke, lw=1.2, label=f"{freedoms}, mu {mu}")
    ax.set(xscale="log", xlim=(0.1, 1000.0))
    ax.set_title("(28) as printed, single slips", loc="left", fontsize=9.5)
    ax.set_xlabel("force error at most [%]", fontsize=9)
    ax.set_ylabel("slips [%]")
    ax.legend(fontsize=7, frameon=False, title="freedoms", title_fontsize=7)
