"""Uzawa local and global on the benches of 004: Talbi, Joli, Feng and Kheddar (GRAPP 2008), figures 6 to 9.

The fixed block is clamped at both ends, then at its left end only; the path is 5P 20P 7P 4P 1P. Both methods
take one bi-potential and one rho = min 1 / W_ii and get the same problems, from r = 0. A visit of the local
one starts from r = 0, as printed; "local, warm" goes on from its last force. Stops: "physical", |dr| / rho <=
error everywhere, in cm as the paper's lengths are; "relative", the sweeps stop at |dr| <= error |r|, the
visits as before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np

from palpo.studies.claims import Claim, at_least, at_most
from palpo.studies.hapco_2008_figures import draw_along, draw_one_clamp, draw_over_friction
from palpo.studies.hapco_2008_steps import (
    CLAMPS,
    KINDS,
    LIMIT,
    METHODS,
    PRINTED,
    QUICK,
    StepPlan,
    TimedStep,
    record,
    solve,
)
from palpo.studies.hapco_benches import BENCHES, LEGS_2008, P
from palpo.studies.hapco_limits import largest, scanned
from palpo.studies.hapco_page import Finding, verdicts
from palpo.studies.rows import Row, mean, pick
from palpo.studies.tables import save_figure, write_csv

PAPER = "004, 3.3.3"
HEAD = """# Uzawa local and global, as in 2008

The benches of the paper (004, section 3.3.3), the fixed block held at both ends and then at its left end
only. The picture of the path is lost: its legs are taken as down, along x, back, up, along x again. The
mobile block's size is that of the thesis. All methods got the same problems, from r = 0; forces are held
against the solution at a residual of 1e-12.
"""
PICTURES = """## Figures

![sweeps](figure-6-sweeps.png)
![friction](figure-7-friction.png)
![times](figure-8-times.png)
![one clamp](figure-9-one-clamp.png)
"""


def run(out: Path, quick: bool) -> list[Claim]:
    """All steps under each method, stop and error; then factors on rho."""
    plan = QUICK if quick else StepPlan()
    rows: list[Row] = []
    factors: list[Row] = []
    for clamp in CLAMPS:
        for mu in plan.mus:
            steps = list(record(clamp, mu))
            first = steps[0].rho
            for kind, error, method in product(KINDS, plan.errors, METHODS):
                rows += [
                    solve(step, method, kind, error) | {"rho_first_over_rho_min": first / step.rho}
                    for step in steps
                ]
            if mu == 0.3:
                for method in PRINTED:
                    factors += scanned(plan.factors, partial(_at_factor, steps, method))
    for name, table in {"steps": rows, "means": list(_means(rows)), "factors": factors}.items():
        write_csv(out / f"{name}.csv", table)
    for name, height, draw in (
        (
            "figure-6-sweeps",
            6.0,
            partial(draw_along, key="iterations", mu=0.3, label="sweeps at 1e-4, mu = 0.3"),
        ),
        ("figure-7-friction", 5.8, draw_over_friction),
        (
            "figure-8-times",
            6.0,
            partial(draw_along, key="time_ms", mu=0.6, label="time at 1e-4, mu = 0.6 [ms]"),
        ),
    ):
        save_figure(out / f"{name}.png", height, partial(draw, rows=rows))
    save_figure(out / "figure-9-one-clamp.png", 6.4, partial(draw_one_clamp, rows=rows, factors=factors))
    found = findings(rows, factors)
    (out / "verdict.md").write_text(f"{HEAD}\n{verdicts(found)}\n{PICTURES}", "utf-8")
    return [finding.claim for finding in found]


# ---- solves


def _means(rows: Sequence[Row]) -> Iterator[Row]:
    """Along the path, for each clamping, method, stop, error and friction."""
    keys = ("clamp", "method", "kind", "error", "mu")
    for values in dict.fromkeys(tuple(row[key] for key in keys) for row in rows):
        where = dict(zip(keys, values, strict=True))
        own = pick(rows, **where)
        yield {
            **where,
            "mean_iterations": mean(own, "iterations"),
            "mean_time_ms": mean(own, "time_ms"),
            "failed": sum(not row["met"] for row in own),
            "mean_force_error_percent": mean(own, "force_error_percent"),
            "worst_force_error_percent": max(row["force_error_percent"] for row in own),
        }


# ---- findings


def findings(rows: Sequence[Row], factors: Sequence[Row]) -> list[Finding]:
    """The paper's, under each clamping and stop."""
    kinds = {(clamp, kind): pick(rows, clamp=clamp, kind=kind) for clamp in CLAMPS for kind in KINDS}
    topics = {
        "Local takes fewer sweeps than global, and less time": [
            f for (clamp, kind), own in kinds.items() for f in _local_against_global(own, f"{clamp}, {kind}")
        ],
        "Precision costs time": [
            _precision(pick(kinds[clamp, "physical"], method=method))
            for clamp in CLAMPS
            for method in PRINTED
        ],
        "Global is unstable where one end is free, and local is not": [*_instabilities(rows, factors)],
    }
    return [replace(finding, topic=topic) for topic, own in topics.items() for finding in own]


def _local_against_global(rows: Sequence[Row], where: str) -> list[Finding]:
    local, once, warm = (pick(rows, method=method) for method in ("local", "global", "local, warm"))
    legs = [
        tuple(mean(pick(part, leg=leg, mu=0.3), "iterations") for part in (local, once))
        for leg in range(len(LEGS_2008))
    ]
    fewer, fewer_warm = (
        100.0 * float(np.mean([a["iterations"] < b["iterations"] for a, b in zip(part, once, strict=True)]))
        for part in (local, warm)
    )
    times = float(np.median([a["time_ms"] / b["time_ms"] for a, b in zip(local, once, strict=True)]))
    off, exact, going = (mean(part, "force_error_percent") for part in (local, once, warm))
    why = (
        f"A visit from r = 0 ends anywhere within the error: the hand's force is {off:.2g}% off in the mean, "
        f"{exact:.2g}% with global and {going:.2g}% with visits that go on from their last force; those take "
        f"fewer sweeps than global in {fewer_warm:.0f}% of the steps."
    )
    sweeps = ", ".join(f"{a:.0f} against {b:.0f}" for a, b in legs)
    return [
        Finding(
            at_least(f"{where}: legs of 5 in which local takes fewer sweeps, mu 0.3",
                     sum(a < b for a, b in legs), 5, "", "004, figure 6"),
            "Local takes fewer sweeps in all five legs (figure 6).", f"Means of the legs: {sweeps}.", why,
        ),
        Finding(
            at_least(f"{where}: steps of all mu and errors in which local takes fewer sweeps", fewer, 90.0,
                     "%", "004, figure 7"),
            "So it is for mu from 0 to 0.6 and other errors (figure 7).", f"In {fewer:.0f}% of them.",
        ),
        Finding(
            at_most(f"{where}: time of local over that of global, median", times, 1.0, "", PAPER),
            "Local tends to be faster (figure 8).", f"It takes {times:.2f} times as long.",
            "A sweep of local takes several steps at each contact.",
        ),
    ]  # fmt: skip


def _precision(rows: Sequence[Row]) -> Finding:
    errors = sorted({row["error"] for row in rows}, reverse=True)
    sweeps = [mean(pick(rows, error=error), "iterations") for error in errors]
    least = min(b / a for a, b in pairwise(sweeps))
    return Finding(
        at_least(f"{rows[0]['clamp']}, {rows[0]['method']}: sweeps at a tenth of the error over those before",
                 least, 1.0, "", PAPER),
        "Precision costs time (figure 8).",
        "; ".join(f"{n:.0f} sweeps at {e:.0e}" for n, e in zip(sweeps, errors, strict=True)) + ".",
    )  # fmt: skip


def _instabilities(rows: Sequence[Row], factors: Sequence[Row]) -> Iterator[Finding]:
    """Figure 9: failures, sweeps that go up and down along the path, and how large a rho is borne."""
    limits = {(clamp, method): _largest(factors, clamp, method) for clamp in CLAMPS for method in PRINTED}
    for clamp in CLAMPS:
        for method in PRINTED:
            own = pick(rows, clamp=clamp, method=method)
            lost = sum(not row["met"] for row in own)
            name = f"{clamp}, {method}: steps of {len(own)} that do not converge"
            shaky = clamp == "left end" and method == "global"
            yield Finding(
                at_least(name, lost, 1, "", "004, figure 9") if shaky else at_most(name, lost, 0, "", PAPER),
                "Global is unstable with the left end held only (figure 9)." if shaky
                else "It converges (figures 6 to 9).",
                f"{lost} steps of {len(own)} miss their stop within {LIMIT.max_iterations} sweeps.",
                _why_no_failure(rows, limits) if shaky and not lost else "",
            )  # fmt: skip
    shares = {(clamp, method): _variation(rows, clamp, method) for clamp in CLAMPS for method in PRINTED}
    yield Finding(
        at_least("left end: variation of the sweeps along the path, global over local",
                 shares["left end", "global"] / shares["left end", "local"], 1.0, "", "004, figure 9"),
        "With one clamp global's curve is the restless one (figure 9).",
        "Their change from step to step, over their mean: "
        + "; ".join(f"{', '.join(where)} {100 * share:.0f}%" for where, share in shares.items()) + ".",
        f"The upper block's edges pass nodes of the lower one every {_steps_between_nodes():g} steps; visits "
        "that satisfy their contact feel less of that.",
    )  # fmt: skip
    one, other = (limits["left end", method] for method in PRINTED)
    yield Finding(
        at_most("left end: largest stable factor on rho, global over local", one / other, 1.0, "",
                "004, 4: local is more stable"),
        "Local is more stable (4).", f"Global bears {one:.3g} rho_min, local {other:.3g}.",
    )  # fmt: skip


def _steps_between_nodes() -> float:
    fixed = BENCHES[CLAMPS["left end"]].fixed
    return fixed.size[0] / fixed.cells[0] / P


def _variation(rows: Sequence[Row], clamp: str, method: str) -> float:
    """Mean |change of the sweeps from a step to the next| over their mean, of all mu, within the legs."""
    shares = []
    for mu in dict.fromkeys(row["mu"] for row in rows):
        own = pick(rows, clamp=clamp, method=method, kind="physical", error=1e-4, mu=mu)
        changes = [abs(b["iterations"] - a["iterations"]) for a, b in pairwise(own) if a["leg"] == b["leg"]]
        shares.append(float(np.mean(changes)) / mean(own, "iterations"))
    return float(np.mean(shares))


def _why_no_failure(rows: Sequence[Row], limits: Mapping[tuple[str, str], float]) -> str:
    """How far rho_min of each step is from failing, and a rho that is not renewed."""
    borne = limits["left end", "global"]
    most = max(row["rho_first_over_rho_min"] for row in rows if row["clamp"] == "left end")
    return (
        f"Every step bears {borne:.3g} rho_min. A rho kept from the first contact would grow to "
        f"{most:.2f} rho_min on the way to the free end, which softens: "
        + ("that fails, and does not with both ends held." if most > borne else "still below it.")
    )


def _at_factor(steps: Sequence[TimedStep], method: str, factor: float) -> list[Row]:
    return [solve(step, method, "physical", 1e-4, factor) for step in steps]


def _largest(rows: Sequence[Row], clamp: str, method: str) -> float:
    """The largest factor at which no step fails, to the bisection's width."""
    return largest(pick(rows, clamp=clamp, method=method))[0]
