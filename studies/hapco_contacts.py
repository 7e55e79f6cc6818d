"""Time of a contact solve over the number of contacts, and its exponent (N. Talbi, thesis, "001", 3.9).

Figures 3.43 to 3.46 fit time = a n^order through 16, 36 and 66 contacts. Here the same three benches are
followed by a family of one geometry whose two meshes are refined together, from 16 to 400 contacts: on it the
number of contacts is all that changes. Each solver gets the same problems, those of the steps of a path,
and starts from no force. Times are the thread's own CPU time, as in 001, the least of a few solves, averaged
over the path. A sweep costs n^2, which leaves the rest of an exponent to the number of sweeps.

001's solvers gather the offset of every contact at every visit; ours hand on changes only, so that contacts
that do not move cost nothing, less and less as a solve goes on. So 001's exponents are held against 001's
solvers with its dense visits; the same solvers with ours stand beside them as figures.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import thread_time
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from palpo.physics.bodies.quasistatic import QuasistaticBody
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers import anderson, gauss_seidel
from palpo.physics.contact.solvers.family import uzawa
from palpo.physics.systems.hapco.detection import Detection
from palpo.studies import dense_visits
from palpo.studies.claims import Claim, Line, Reported, at_most, greatest
from palpo.studies.hapco_benches import (
    CM,
    MATERIALS,
    PAIRS,
    Bench,
    BenchBlock,
    lead,
    make_interaction,
    penetration,
    side_nodes,
    sliding,
)
from palpo.studies.reference.interaction import Interaction
from palpo.studies.rows import Row
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]

TOLERANCE = 1e-4
"""eps_GS of 001, and for the solvers that stop by it the natural map's residual."""
DENSE_STOP = {"outer_error": TOLERANCE}
THESIS_STOP = {"outer": ("relative", TOLERANCE)}
MOST_SWEEPS = 5000
"""001, section 3.4."""
LEADING = Stop(1e-6, 20000)
"""To which the equilibria along a path are solved before any solver is timed."""

BENCH_NAMES = ("main-16", "main", "66")
SIDES, QUICK_SIDES = (4, 6, 8, 10, 14, 20), (4, 6, 8, 10)
"""Contacts along an edge of the tip of the refined family."""
TIMED, QUICK_TIMED = 8, 3
"""Steps of a path whose problems are timed, evenly spread."""
PATIENCE = 0.1
"""Time that repeating one solve may take [s]; it is solved at least once and at most REPEATS times."""
REPEATS = 5

NAMED, REFINED, LARGEST = "001's benches", "refined", "refined, three largest"
THESIS_ORDERS = (2.05, 2.83)
SOURCE = "001, section 3.9"


@dataclass(frozen=True)
class ContactContender:
    """A solver with the stop that it is compared at."""

    label: str
    method: Callable[..., ContactResult]
    colour: str
    options: dict[str, Any] = field(default_factory=dict)

    def solve(self, problem: ContactProblem) -> ContactResult:
        """From no force; `seconds` is the thread's CPU time."""
        began = thread_time()
        result = self.method(problem, Stop(TOLERANCE, MOST_SWEEPS), **self.options)
        return replace(result, seconds=thread_time() - began)


STAR = {"rho": "rho_alpha"}
CONTENDERS = (
    ContactContender("Uzawa global, dense visits, 001's stop", dense_visits.uzawa, "#8b6fc0", DENSE_STOP),
    ContactContender("Uzawa global* as printed, dense visits, 001's stop", dense_visits.uzawa, "#8a5a2b",
              DENSE_STOP | STAR | {"printed": True}),
    ContactContender("Uzawa global, 001's stop", uzawa, COLOURS["krylov"], THESIS_STOP),
    ContactContender("Uzawa global* as printed, 001's stop", uzawa, COLOURS["paper"],
              THESIS_STOP | STAR | {"printed": True}),
    ContactContender("Uzawa global", uzawa, COLOURS["monolithic"]),
    ContactContender("Uzawa global*, right metric", uzawa, COLOURS["extrapolated"], STAR),
    ContactContender("Gauss-Seidel, exact local law", gauss_seidel.solve, COLOURS["faint"]),
    ContactContender("ours (anderson)", anderson.solve, COLOURS["low"]),
)  # fmt: skip
"""001's stop bounds the last change of the force, that of the others the residual, which says more.

The first two are 001's solvers as it pays for them, the next two the same at the cost of what moves."""

THESIS, SPARING, OURS = CONTENDERS[:2], CONTENDERS[2:4], CONTENDERS[-1]
AT_ONE_RESIDUAL = CONTENDERS[4:]


def run(out: Path, quick: bool) -> list[Line]:
    """Times on the benches and on the refined family, fitted orders, and how they compare with 001's."""
    sides, timed = (QUICK_SIDES, QUICK_TIMED) if quick else (SIDES, TIMED)
    rows = [
        row
        for pair in PAIRS
        for row in [*_bench_rows(pair, timed), *_family_rows(pair, sides, timed)]
    ]  # fmt: skip
    orders = fitted_orders(rows)
    write_csv(out / "contacts.csv", rows)
    write_csv(out / "orders.csv", orders)
    save_figure(out / "contacts.png", 6.4, lambda figure: _draw(figure, rows, orders))
    return _claims(rows, orders)


# ---- problems


def refined(side: int) -> Bench:
    """A tip of side x side contacts on a block clamped below; both meshes are as fine at every `side`.

    The tip is that of 001's main bench. The block is 4 x 2.5 x 2 cm, as small as ten steps of sliding allow,
    and has 1.5 cells for each of the tip's along x and z.
    """
    across = round(1.5 * (side - 1))
    return Bench(
        BenchBlock((4 * CM, 2.5 * CM, 2 * CM), (across, 5, across), ("bottom",)),
        BenchBlock((1 * CM, 4 * CM, 1 * CM), (side - 1, 8, side - 1), ("top",)),
    )


def build(bench: Bench, mobile: str, fixed: str) -> Interaction:
    """The two blocks of a bench that has no name, as `make_interaction` lays those that have one."""
    height = 0.5 * (bench.fixed.size[1] + bench.mobile.size[1])
    upper, lower = _body(bench.mobile, height, mobile), _body(bench.fixed, 0.0, fixed)
    feet = side_nodes(bench.mobile.mesh(), "bottom")
    return Interaction(upper, lower, Detection(vertices=feet, tolerance=np.inf, edges=False))


def _body(block: BenchBlock, height: float, material: str) -> QuasistaticBody:
    mesh = block.mesh(height)
    clamped = np.concatenate([side_nodes(mesh, side) for side in block.clamped])
    return QuasistaticBody(material, mesh, MATERIALS[material], clamped, gravity=np.zeros(3))


def problems_along(
    interaction: Interaction, path: Floats, timed: int
) -> tuple[list[ContactProblem], list[float]]:
    """`timed` problems of a path's steps, without their warm start, and the time of W of every step [s]."""
    interaction.reset()
    interaction.stop = LEADING
    steps = [lead(interaction, displacement) for displacement in path]
    chosen = np.linspace(0, len(steps) - 1, timed).round().astype(int)
    return [replace(steps[k].problem, warm=None) for k in chosen], [step.times.delassus for step in steps]


def _bench_rows(pair: str, timed: int) -> list[Row]:
    rows = []
    for bench in BENCH_NAMES:
        interaction = make_interaction(bench, *PAIRS[pair])
        for path, positions in {"penetration": penetration(), "sliding": sliding()}.items():
            problems, gathering = problems_along(interaction, positions, timed)
            rows += _timed({"pair": pair, "bench": bench, "path": path}, problems, gathering)
    return rows


def _family_rows(pair: str, sides: Sequence[int], timed: int) -> list[Row]:
    rows = []
    for side in sides:
        problems, gathering = problems_along(build(refined(side), *PAIRS[pair]), sliding(10), timed)
        rows += _timed({"pair": pair, "bench": "refined", "path": "sliding"}, problems, gathering)
    return rows


def _timed(where: Row, problems: list[ContactProblem], gathering: list[float]) -> list[Row]:
    rows = []
    for contender in CONTENDERS:
        contender.solve(problems[0])  # loads what is compiled
        results = [_least(contender, problem) for problem in problems]
        seconds = np.array([result.seconds for result in results])
        sweeps = np.array([result.iterations for result in results])
        rows.append(
            {
                **where,
                "contacts": problems[0].n_contacts,
                "solver": contender.label,
                "mean_ms": 1e3 * float(seconds.mean()),
                "most_ms": 1e3 * float(seconds.max()),
                "mean_sweeps": float(sweeps.mean()),
                "us_a_sweep": 1e6 * float(seconds.sum() / sweeps.sum()),
                "worst_residual": greatest(result.residual for result in results),
                "ended_early": sum(result.reason == "iterations" for result in results),
                "solves": len(results),
                "w_ms": 1e3 * min(gathering),
            }
        )
    return rows


def _least(contender: ContactContender, problem: ContactProblem) -> ContactResult:
    """The fastest of a few equal solves."""
    best = contender.solve(problem)
    for _ in range(min(REPEATS, int(PATIENCE / best.seconds))):
        again = contender.solve(problem)
        best = min(best, again, key=lambda result: result.seconds)
    return best


# ---- orders


def fit_order(contacts: Sequence[float], times: Sequence[float]) -> float:
    """The order of time = a n^order by least squares of the logarithms."""
    return float(np.polyfit(np.log(contacts), np.log(times), 1)[0])


FITTED = {"time": "mean_ms", "sweep": "us_a_sweep", "sweeps": "mean_sweeps", "w": "w_ms"}
"""What an order is fitted to: the time of a solve, of a sweep, the number of sweeps, the time of W."""


def fitted_orders(rows: list[Row]) -> list[Row]:
    """Orders of a solver on one pair and path, over 001's benches or the refined family.

    The refined family's three largest numbers of contacts are fitted once more on their own.
    """
    found = []
    groups = [
        (pair, path, c.label) for pair in PAIRS for path in ("penetration", "sliding") for c in CONTENDERS
    ]
    for pair, path, solver in groups:
        own = [r for r in rows if (r["pair"], r["path"], r["solver"]) == (pair, path, solver)]
        family = sorted((r for r in own if r["bench"] == "refined"), key=lambda r: r["contacts"])
        named = [r for r in own if r["bench"] != "refined"]
        for benches, chosen in ((NAMED, named), (REFINED, family), (LARGEST, family[-3:])):
            if chosen:
                contacts = [r["contacts"] for r in chosen]
                found.append(
                    {"benches": benches, "pair": pair, "path": path, "solver": solver}
                    | {name: fit_order(contacts, [r[key] for r in chosen]) for name, key in FITTED.items()}
                )
    return found


def _claims(rows: list[Row], orders: list[Row]) -> list[Line]:
    least, most = THESIS_ORDERS
    claims: list[Line] = [
        Claim(f"{benches}: order of {solver.label}, median of pairs and paths",
              order := _median(orders, benches, solver, "time"), "", f"{least} to {most} ({SOURCE})",
              least <= order <= most)
        for benches in (NAMED, REFINED)
        for solver in THESIS
    ]  # fmt: skip
    claims += [
        Reported(f"{benches}: order of {solver.label}, median of pairs and paths",
                 _median(orders, benches, solver, "time"), "", "contacts that do not move cost nothing")
        for benches in (NAMED, REFINED)
        for solver in SPARING
    ]  # fmt: skip
    claims += [
        at_most(f"{benches}: order of {OURS.label}, median", _median(orders, benches, OURS, "time"), most, "",
                SOURCE)
        for benches in (NAMED, REFINED)
    ]  # fmt: skip
    for benches in (REFINED, LARGEST):
        sweep, sweeps, w = (_median(orders, benches, None, what) for what in ("sweep", "sweeps", "w"))
        dense = _median(orders, benches, THESIS[0], "sweep")
        claims += [
            at_most(f"{benches}: order of a sweep, median", sweep, 2.0, "",
                    "n^2 products; below 100 contacts a visit costs more than its rows of W"),
            Reported(f"{benches}: order of a sweep of dense visits, {THESIS[0].label}", dense, "",
                     "n^2 products at every sweep; 2 where they outweigh the local law"),
            Reported(f"{benches}: order of the number of sweeps, median", sweeps, "",
                     "more contacts hang together"),
            at_most(f"{benches}: order of gathering W", w, 2.0, "", "n^2 blocks of the boundary's inverse"),
        ]  # fmt: skip
    return claims + _race(rows) + _residuals(rows)


def _median(orders: list[Row], benches: str, solver: ContactContender | None, what: str) -> float:
    labels = [c.label for c in CONTENDERS] if solver is None else [solver.label]
    return float(np.median([o[what] for o in orders if o["benches"] == benches and o["solver"] in labels]))


def _race(rows: list[Row]) -> list[Claim]:
    """Ours against the fastest of the others that solve all of the problems to the same residual."""
    claims = []
    largest = max(r["contacts"] for r in rows)
    for pair in PAIRS:
        at = {r["solver"]: r for r in rows if (r["pair"], r["contacts"]) == (pair, largest)}
        rivals = [at[c.label] for c in AT_ONE_RESIDUAL if c != OURS and not at[c.label]["ended_early"]]
        who = f"{pair}, {largest} contacts: time of ours over the fastest other's at one residual"
        if rivals:
            fastest = min(rivals, key=lambda row: row["mean_ms"])
            ratio = at[OURS.label]["mean_ms"] / fastest["mean_ms"]
            claims.append(at_most(f"{who} ({fastest['solver']})", ratio, 1.0, "", "ours is to beat all"))
        else:
            left = at[OURS.label]["ended_early"]
            claims.append(
                Claim(who, float("nan"), "", f"no other solves them all, ours leaves {left}", left == 0)
            )
    return claims


def _residuals(rows: list[Row]) -> list[Line]:
    tolerant = [r for r in rows if r["solver"] == THESIS[0].label]
    worst = greatest(r["worst_residual"] for r in tolerant)
    ours = [r for r in rows if r["solver"] == OURS.label]
    given_up = sum(r["ended_early"] for r in ours)
    return [
        Reported(f"{THESIS[0].label}: worst residual over eps_GS", worst / TOLERANCE, "",
                 "a small last change is no small error"),
        at_most(f"{OURS.label}: solves given up at {MOST_SWEEPS} sweeps, of {sum(r['solves'] for r in ours)}",
                given_up, 0, "", "every solve ends at its residual"),
    ]  # fmt: skip


# ---- the picture


def _draw(figure: Figure, rows: list[Row], orders: list[Row]) -> None:
    """Times above, sweeps below, a column for each pair of materials."""
    axes = figure.subplots(2, len(PAIRS), sharex=True, sharey="row")
    for column, pair in enumerate(PAIRS):
        for contender in CONTENDERS:
            own = [r for r in rows if (r["pair"], r["solver"]) == (pair, contender.label)]
            order = next(
                o["time"] for o in orders
                if (o["benches"], o["pair"], o["solver"]) == (REFINED, pair, contender.label)
            )  # fmt: skip
            _curves(axes[0, column], own, "mean_ms", contender, f"{contender.label}: {order:.2f}")
            _curves(axes[1, column], own, "mean_sweeps", contender, None)
        axes[0, column].set_title(pair.replace("-", " on "), loc="left", fontsize=10)
        axes[0, column].legend(frameon=False, fontsize=7, loc="upper left", title="refined blocks, order",
                               title_fontsize=7)  # fmt: skip
        axes[1, column].set_xlabel("contacts")
    axes[0, 0].set_ylabel("time of a solve [ms]")
    axes[1, 0].set_ylabel("sweeps")
    counts = sorted({r["contacts"] for r in rows if r["bench"] == "refined"})
    for ax in axes.flat:
        ax.set(xscale="log", yscale="log")
        ax.set_xticks(counts, [str(n) for n in counts])
        ax.minorticks_off()
    axes[0, 0].set_ylim(top=200.0 * axes[0, 0].get_ylim()[1])  # room for the legends


def _curves(ax: Axes, own: list[Row], key: str, contender: ContactContender, label: str | None) -> None:
    """The refined family as a line, 001's benches as open marks."""
    family = [r for r in own if r["bench"] == "refined"]
    benches = [r for r in own if r["bench"] != "refined"]
    ax.plot([r["contacts"] for r in family], [r[key] for r in family], color=contender.colour, marker=".",
            ms=5, lw=1.2, label=label)  # fmt: skip
    ax.plot([r["contacts"] for r in benches], [r[key] for r in benches], color=contender.colour, ls="",
            marker="o", ms=4, mfc="none", mew=0.9)  # fmt: skip
