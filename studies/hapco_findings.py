"""What the thesis found in chapter 3, held against the numbers of `palpo study hapco-solvers`.

Each finding is a claim with what the thesis says, what was found and, from the same numbers, why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from palpo.studies.claims import at_least, at_most, close_to, greatest
from palpo.studies.hapco_benches import MATERIALS
from palpo.studies.hapco_page import Finding
from palpo.studies.hapco_rho_findings import (
    factors_on_rho,
    rho_alpha_fails,
    rho_min_converges,
    star_is_the_reference,
)
from palpo.studies.hapco_rows import AGREE, Data, median_of, names_of, places_of, printed_cell
from palpo.studies.hapco_thesis import STIFFNESSES, SYMBOLS, TABLES
from palpo.studies.rows import Row, mean, pick


def findings(data: Data) -> list[Finding]:
    """All of them, the thesis's own first."""
    topics: Mapping[str, Callable[[Data], Iterator[Finding]]] = {
        "The bi-potential converges everywhere with rho_min": rho_min_converges,
        "rho^alpha fails on soft on soft, and on rubber from mu 0.5 on": rho_alpha_fails,
        "The pseudo-potential with Uzawa global fails with its printed sign, not with the right one":
            _pseudopotential,
        "Local is no faster than global": _local_or_global,
        "Doubling rho halves the time, up to a factor of 2.2 and, with *, of 1.5": factors_on_rho,
        "Which solver fails where is as in the tables, entry by entry": _cells_of_the_tables,
        "Newton is slower than Uzawa": _newton,
        "G*B is the fastest on tissue and fit to be the reference": star_is_the_reference,
        "Friction costs time and raises the force": _friction,
        "The bench behaves as the thesis's": _bench,
        "Consistent solvers agree, printed ones do not": _solution,
        "Our own solver is the fastest and never fails": _our_own,
    }  # fmt: skip
    return [replace(finding, topic=topic) for topic, part in topics.items() for finding in part(data)]


# ---- convergence


def _cells_of_the_tables(data: Data) -> Iterator[Finding]:
    for stop, words in (("printed", "visits from r = 0"), ("warm", "visits going on")):
        cells = [
            row for row in data["solvers"]
            if row["symbol"] in SYMBOLS
            and row["stop"] == ("printed" if row["symbol"].startswith("G") else stop)
        ]  # fmt: skip
        alike = [row for row in cells if (row["failed"] > 0) == printed_cell(row).diverges]
        ours = [row for row in cells if row["failed"] > 0 and not printed_cell(row).diverges]
        theirs = [row for row in cells if row["failed"] == 0 and printed_cell(row).diverges]
        yield Finding(
            at_least(f"tables 3.36 to 3.41, {words}: entries of {len(cells)} that converge as printed",
                     len(alike), len(cells), "", "001, (Div) or not"),
            "The tables mark with (Div) which solver hits its limit of sweeps on which path.",
            f"{len(alike)} of {len(cells)} entries agree. Only here fail: {names_of(ours)}. "
            f"Only there fail: {names_of(theirs)}.",
        )  # fmt: skip


def _pseudopotential(data: Data) -> Iterator[Finding]:
    for contacts, path, said in (
        (16, "penetration", "always reaches 10000 sweeps (3.4)"),
        (36, "sliding", "often does: 7264 sweeps in the mean (3.4)"),
    ):
        printed, right = (
            pick(data["formulations"], symbol=symbol, contacts=contacts) for symbol in ("G*P", "G*P'")
        )
        lost, kept = (sum(not row["met"] for row in rows) for rows in (printed, right))
        least = len(printed) if contacts == 16 else 1
        sweeps = [mean(rows, "iterations") for rows in (printed, right)]
        words = (
            f"With the sign of (2.44) {lost} of {len(printed)} steps do not converge ({sweeps[0]:.0f} sweeps "
            f"in the mean), with the right one {kept} ({sweeps[1]:.0f})."
        )
        yield Finding(
            at_least(f"{contacts} contacts, {path}: steps of {len(printed)} at which the pseudo-potential as "
                     "printed fails", lost, least, "", "001, 3.4"),
            f"The pseudo-potential with Uzawa global {said}.", words,
            _friction_turned(printed),
        )  # fmt: skip
        yield Finding(
            at_most(f"{contacts} contacts, {path}: steps at which the pseudo-potential fails with the right "
                    "sign", kept, 0, "", "EQUATIONS.md, 2: the verdict rests on a sign"),
            "It is less robust, for it does not couple Signorini and Coulomb (3.4).", words,
        )  # fmt: skip


def _friction_turned(rows: Sequence[Row]) -> str:
    stopped = [row["deviation_percent"] for row in rows if row["met"]]
    still = f" Where it stops, its force is {np.mean(stopped):.3g}% off." if stopped else ""
    return (
        "(2.44) prints a sliding force against its own prediction, so that friction turns around from sweep "
        "to sweep." + still
    )


# ---- speed


def _local_or_global(data: Data) -> Iterator[Finding]:
    readings = [(local, once, "printed") for local, once in LOCALS] + [
        (local, once, "warm") for local, once in LOCALS
    ]
    for local, once, stop in readings:
        pairs = [
            (row, other) for row, other in _couples(data["solvers"], local, stop, once)
            if not row["failed"] and not other["failed"]
        ]  # fmt: skip
        theirs = median_of(
            TABLES[key][local][k].ms / TABLES[key][once][k].ms
            for key in TABLES for k in range(4)
            if not (TABLES[key][local][k].diverges or TABLES[key][once][k].diverges)
        )  # fmt: skip
        times, sweeps = (
            median_of(row[key] / other[key] for row, other in pairs)
            for key in ("mean_time_ms", "mean_iterations")
        )
        off = _worst(row for row, _ in pairs), _worst(other for _, other in pairs)
        words = "visits from r = 0" if stop == "printed" else "visits going on"
        yield Finding(
            at_least(f"{local} over {once}, {words}: time, median of {len(pairs)} paths on which both "
                     "converge", times, 1.0, "", f"001, 3.10; median of its tables {theirs:.2f}"),
            f"Local is no faster than global (3.10); its tables give {theirs:.2f} for {local} over {once}. "
            "The paper of 2008 found the opposite.",
            f"{times:.2f} of the time, with {sweeps:.2f} of the sweeps; the mean force on a path is up to "
            f"{off[0]:.3g}% off, with {once} {off[1]:.3g}%.",
            "A visit takes several steps, and from r = 0 it stops anywhere within eps L, whatever is asked "
            "of the sweeps." if stop == "printed" else "",
        )  # fmt: skip


LOCALS = (("L", "GB"), ("LS", "GB"), ("L*", "G*B"), ("LS*", "G*B"))


def _worst(rows: Iterable[Row]) -> float:
    return max((row["mean_deviation_percent"] for row in rows), default=float("nan"))


def _couples(rows: Sequence[Row], one: str, stop: str, other: str) -> Iterator[tuple[Row, Row]]:
    """The rows of two solvers on the same paths, the second at the printed stop."""
    others = {(r["pair"], r["path"], r["mu"]): r for r in pick(rows, symbol=other, stop="printed")}
    for row in pick(rows, symbol=one, stop=stop):
        yield row, others[row["pair"], row["path"], row["mu"]]


def _newton(data: Data) -> Iterator[Finding]:
    newton, uzawa = (
        {(r["pair"], r["path"], r["mu"]): r for r in pick(data["solvers"], symbol=symbol, stop="tight")}
        for symbol in ("NB", "GB")
    )
    both = [key for key in newton if not newton[key]["failed"] and not uzawa[key]["failed"]]
    times, sweeps = (
        median_of(newton[key][name] / uzawa[key][name] for key in both)
        for name in ("mean_time_ms", "mean_iterations")
    )
    yield Finding(
        at_least(f"Newton over Uzawa global at 1e-8: time, median of {len(both)} paths", times, 1.0, "",
                 "001, 3.1, after Joli and Feng"),
        "Newton on the local equations takes fewer iterations but more time than Uzawa (3.1).",
        f"{times:.2f} of the time with {sweeps:.2f} of the sweeps.",
    )  # fmt: skip


# ---- the mechanics


def _friction(data: Data) -> Iterator[Finding]:
    first, last = (f(row["mu"] for row in data["paths"]) for f in (min, max))
    tables = []
    for pair, path in TABLES:
        rows = pick(data["solvers"], symbol="GB", stop="printed", pair=pair, path=path)
        low, high = (mean(pick(rows, mu=mu), "mean_iterations") for mu in (first, last))
        tables.append((high > low, f"{pair} {path} {high / low:.2f}"))
    yield Finding(
        at_least(f"GB: tables of 6 in which mu {last:g} takes more sweeps than {first:g}",
                 sum(more for more, _ in tables), 6, "", "001, 3.8"),
        "The times rise with friction (3.8).",
        "Sweeps over each other: " + ", ".join(words for _, words in tables) + ".",
    )  # fmt: skip
    for path in ("penetration", "sliding"):
        rows = pick(data["paths"], pair="aluminium-tissue", path=path)
        low, high = (mean(pick(rows, mu=mu), "force_norm_N") for mu in (first, last))
        yield Finding(
            at_least(f"aluminium on tissue, {path}: mean |r| at mu {last:g} over that at {first:g}",
                     high / low, 1.0, "", "001, figure 3.42"),
            "The norm of the contact force rises with friction (3.8).", f"{high / low:.3f} times.",
        )  # fmt: skip


def _bench(data: Data) -> Iterator[Finding]:
    rows = pick(data["paths"], pair="aluminium-tissue", path="penetration", mu=0.3)
    depth, force = (np.array([row[key] for row in rows], float) for key in ("step", "force_norm_N"))
    line = float(np.corrcoef(depth, force)[0, 1] ** 2)
    yield Finding(
        at_least("aluminium on tissue, penetration: R^2 of |r| over depth as a line", line, 0.99, "",
                 "001, figure 3.6"),
        "|r| grows almost in proportion to the depth (3.4).", f"R^2 is {line:.4f}.",
    )  # fmt: skip
    stuck, moving = (sum(row[key] for row in rows) for key in ("stick", "slip"))
    yield Finding(
        at_most(f"aluminium on tissue, penetration: sticking contacts of {stuck + moving} that bear", stuck,
                0, "", "001, 3.5"),
        "No contact sticks there at mu 0.3 (3.5).", f"{stuck} stick and {moving} slip, all steps together.",
        "x_t is measured here from an anchor kept since the last equilibrium; 001 sets it to zero where a "
        "contact is detected (2.18), and does not keep what stuck." if stuck else "",
    )  # fmt: skip
    for printed in STIFFNESSES:
        rows = pick(data["paths"], pair=printed.pair, path=printed.path, mu=0.3)
        values = [row["rho_min_N_per_m"] for row in rows]
        value = {"mean": float(np.mean(values)), "first": values[0], "last": values[-1]}[printed.which]
        yield Finding(
            close_to(f"{printed.pair}, {printed.path}: {printed.which} rho_min", value, printed.printed, 15.0,
                     "N/m", f"001, {printed.section}, read as MN/m"),
            f"{printed.printed / 1e6:.3g} (N/cm), {printed.section}; as MN/m, moduli in MPa by lengths in m.",
            f"{value / 1e6:.3g} MN/m.",
            _tip_alone(data) if printed.pair == "aluminium-rubber" else "",
        )  # fmt: skip


def _tip_alone(data: Data) -> str:
    soft = mean(pick(data["paths"], pair="tissue-tissue", path="penetration", mu=0.3), "rho_min_N_per_m")
    tip = soft * MATERIALS["aluminium"].youngs_modulus / MATERIALS["tissue"].youngs_modulus
    return (
        f"Soft on soft it is the upper block that yields, and scaled to aluminium its rho is {tip / 1e6:.3g} "
        "MN/m: what is printed for rubber is near that of the upper block alone."
    )


def _solution(data: Data) -> Iterator[Finding]:
    worst = greatest(row["reference_residual"] for row in data["paths"])
    yield Finding(
        at_most("reference: largest common residual", worst, 1e-12, "", "EQUATIONS.md, 2"),
        "", f"{worst:.1e} at the worst step.",
    )  # fmt: skip
    rows = [r for r in pick(data["steps"], stop="tight", consistent=True) if r["residual"] <= 1e-8]
    off = max(rows, key=lambda row: row["deviation_percent"])
    yield Finding(
        at_most(f"consistent solvers at 1e-8: worst deviation of {len(rows)} solves",
                off["deviation_percent"], AGREE, "%", "one problem, one solution"),
        "", f"{off['solver']} is {off['deviation_percent']:.1e}% off at the worst.",
    )  # fmt: skip
    for symbol in ("G*B", "L*", "G*P"):
        rows = pick(data["steps"], symbol=symbol, stop="tight")
        most = max(row["deviation_percent"] for row in rows)
        yield Finding(
            at_least(f"{symbol} as printed: largest deviation", most, 1.0, "%",
                     "EQUATIONS.md, 2: not a solution"),
            "", f"Up to {most:.3g}% off.",
        )  # fmt: skip


def _our_own(data: Data) -> Iterator[Finding]:
    ours = pick(data["steps"], solver="anderson", stop="tight")
    lost = [row for row in ours if not row["met"]]
    yield Finding(
        at_most(f"anderson: steps of {len(ours)} without convergence at 1e-8", len(lost), 0, "",
                "our solver"),
        "", f"It failed in {len(lost)} of {len(ours)}{places_of(lost)}.",
    )  # fmt: skip
    paths = {(row["pair"], row["path"], row["mu"]) for row in data["solvers"]}
    ahead = []
    for pair, path, mu in paths:
        rows = pick(data["solvers"], stop="tight", consistent=True, pair=pair, path=path, mu=mu)
        kept = [row for row in rows if not row["failed"]]
        best = (
            min(row["mean_time_ms"] for row in kept if row["solver"] != "anderson")
            if len(kept) > 1
            else np.inf
        )
        own = next(row for row in rows if row["solver"] == "anderson")
        ahead.append(best / own["mean_time_ms"])
    yield Finding(
        at_least(f"paths of {len(ahead)} on which anderson is the fastest that converges at 1e-8",
                 sum(a > 1.0 for a in ahead), len(ahead), "", "our solver"),
        "",
        f"The next consistent solver that converges on the whole path takes {min(ahead):.2f} to "
        f"{max(a for a in ahead if np.isfinite(a)):.0f} times its time.",
    )  # fmt: skip
