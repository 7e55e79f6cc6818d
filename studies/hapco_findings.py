"""What the thesis found in chapter 3, held against the numbers of `palpo study hapco-solvers`.

Each finding is a claim with what the thesis says, what was found and, from the same numbers, why.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from palpo.studies.claims import at_least, at_most, close_to
from palpo.studies.hapco_benches import MATERIALS
from palpo.studies.hapco_limits import largest
from palpo.studies.hapco_page import Finding
from palpo.studies.hapco_thesis import FACTORS, STIFFNESSES, SYMBOLS, TABLES, cell

Row = dict[str, Any]
Data = Mapping[str, Sequence[Row]]

AGREE = 0.01
"""Per cent by which the forces of two solvers at a residual of 1e-8 may differ: 1e-8 times the condition of
the softest pair, some 1e3, and room for ten times that."""


def findings(data: Data) -> list[Finding]:
    """All of them, the thesis's own first."""
    topics: Mapping[str, Callable[[Data], Iterator[Finding]]] = {
        "The bi-potential converges everywhere with rho_min": _rho_min_converges,
        "rho^alpha fails on soft on soft, and on rubber from mu 0.5 on": _rho_alpha_fails,
        "The pseudo-potential with Uzawa global fails with its printed sign, not with the right one":
            _pseudopotential,
        "Local is no faster than global": _local_or_global,
        "Doubling rho halves the time, up to a factor of 2.2 and, with *, of 1.5": _factors_on_rho,
        "Which solver fails where is as in the tables, entry by entry": _cells_of_the_tables,
        "Newton is slower than Uzawa": _newton,
        "G*B is the fastest on tissue and fit to be the reference": _star_is_the_reference,
        "Friction costs time and raises the force": _friction,
        "The bench behaves as the thesis's": _bench,
        "Consistent solvers agree, printed ones do not": _solution,
        "Our own solver is the fastest and never fails": _our_own,
    }  # fmt: skip
    return [replace(finding, topic=topic) for topic, part in topics.items() for finding in part(data)]


# ---- convergence


def _rho_min_converges(data: Data) -> Iterator[Finding]:
    said = "The bi-potential with rho_min converges for every pair of materials, path and friction (3.10)."
    for symbol, stop, words in (
        ("GB", "printed", "GB"),
        ("L", "printed", "L, visits from r = 0"), ("L", "warm", "L, visits going on"),
        ("LS", "printed", "LS, visits from r = 0"), ("LS", "warm", "LS, visits going on"),
    ):  # fmt: skip
        rows = _pick(data["steps"], symbol=symbol, stop=stop)
        lost = [row for row in rows if not row["met"]]
        tight = _pick(data["steps"], symbol=symbol, stop="tight")
        slow = sum(not row["met"] for row in tight)
        yield Finding(
            at_most(f"{words}: steps of {len(rows)} without convergence", len(lost), 0, "", "001, 3.10"),
            said, f"It failed in {len(lost)} of {len(rows)} steps{_where(lost)}; asked for a residual of "
            f"1e-8 in {slow} of {len(tight)}.",
            "" if symbol == "GB" else _exact_visits(data, lost),
        )  # fmt: skip


def _exact_visits(data: Data, lost: Sequence[Row]) -> str:
    """Why local methods fail: so does Gauss-Seidel with visits that are exact."""
    if not lost:
        return ""
    exact, once = (_at(data["steps"], name, lost) for name in ("gauss-seidel", SYMBOLS["GB"]))
    if not exact or not once:
        return ""
    apart, near = (float(np.median([row["residual"] for row in rows])) for rows in (exact, once))
    return (
        f"On those steps Gauss-Seidel with exact visits ends at a residual of {apart:.1g} (median), the "
        f"global method at {near:.1g}. A visit that satisfies its contact overshoots where contacts pull on "
        "each other; one step with rho_min is a damped visit."
        if apart > 10.0 * near
        else "Gauss-Seidel with exact visits does no worse there than the global method, so that the local "
        "stop and the start of each visit from r = 0 are to blame."
    )


def _at(rows: Sequence[Row], name: str, lost: Sequence[Row]) -> list[Row]:
    """Tight solves of one solver at the steps of others."""
    places = {(row["pair"], row["path"], row["mu"], row["step"]) for row in lost}
    own = _pick(rows, solver=name, stop="tight")
    return [row for row in own if (row["pair"], row["path"], row["mu"], row["step"]) in places]


def _rho_alpha_fails(data: Data) -> Iterator[Finding]:
    cases = (
        ("tissue-tissue", 0.3, "rho^alpha fails on soft on soft (3.7.3, 3.40, 3.41)"),
        ("aluminium-rubber", 0.5, "rho^alpha fails on rubber at mu of 0.5 and more (3.38, 3.39)"),
    )
    for pair, least, said in cases:
        rows = [row for row in _pick(data["solvers"], pair=pair) if row["mu"] >= least]
        for symbol in STARS:
            own = _pick(rows, stop="printed", symbol=symbol)
            printed = sum(_cell(row).diverges for row in own)
            failed = sum(row["failed"] > 0 for row in own)
            yield Finding(
                at_least(f"{pair}, mu >= {least:g}: paths of {len(own)} on which {symbol} fails", failed,
                         printed, "", f"001 marks {printed} with (Div)"),
                f"{said}; {printed} of these {len(own)} entries of {symbol} are marked (Div).",
                f"{failed} of {len(own)} paths have a step that does not converge.",
                _projection(rows) if symbol == STARS[0] else "",
            )  # fmt: skip


STARS = ("G*B", "L*", "LS*")


def _projection(rows: Sequence[Row]) -> str:
    """How much of it is the projection, which does not fit two rhos, and how much the start of a visit."""
    words = []
    for name, reaches in (
        ("global", ("G*B",)),
        ("local from r = 0", STARS[1:]),
        ("local going on", STARS[1:]),
    ):
        stop = "warm" if name.endswith("on") else "printed"
        own = [[row for row in _pick(rows, stop=stop) if row["symbol"] in symbols]
               for symbols in (reaches, tuple(f"{symbol}'" for symbol in reaches))]  # fmt: skip
        printed, right = (sum(row["failed"] > 0 for row in some) for some in own)
        words.append(f"{name} {printed} and {right} of {len(own[0])}")
    return (
        "Failures with the printed projection and with the one that fits rho_n != rho_t: "
        + "; ".join(words)
        + "."
    )


def _cells_of_the_tables(data: Data) -> Iterator[Finding]:
    for stop, words in (("printed", "visits from r = 0"), ("warm", "visits going on")):
        cells = [
            row for row in data["solvers"]
            if row["symbol"] in SYMBOLS
            and row["stop"] == ("printed" if row["symbol"].startswith("G") else stop)
        ]  # fmt: skip
        alike = [row for row in cells if (row["failed"] > 0) == _cell(row).diverges]
        ours = [row for row in cells if row["failed"] > 0 and not _cell(row).diverges]
        theirs = [row for row in cells if row["failed"] == 0 and _cell(row).diverges]
        yield Finding(
            at_least(f"tables 3.36 to 3.41, {words}: entries of {len(cells)} that converge as printed",
                     len(alike), len(cells), "", "001, (Div) or not"),
            "The tables mark with (Div) which solver hits its limit of sweeps on which path.",
            f"{len(alike)} of {len(cells)} entries agree. Only here fail: {_names(ours)}. "
            f"Only there fail: {_names(theirs)}.",
        )  # fmt: skip


def _names(rows: Sequence[Row]) -> str:
    return "; ".join(f"{r['symbol']} {r['pair']} {r['path']} {r['mu']:g}" for r in rows) or "none"


def _pseudopotential(data: Data) -> Iterator[Finding]:
    for contacts, path, said in (
        (16, "penetration", "always reaches 10000 sweeps (3.4)"),
        (36, "sliding", "often does: 7264 sweeps in the mean (3.4)"),
    ):
        printed, right = (
            _pick(data["formulations"], symbol=symbol, contacts=contacts) for symbol in ("G*P", "G*P'")
        )
        lost, kept = (sum(not row["met"] for row in rows) for rows in (printed, right))
        least = len(printed) if contacts == 16 else 1
        sweeps = [_mean(rows, "iterations") for rows in (printed, right)]
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
        theirs = _median(
            TABLES[key][local][k].ms / TABLES[key][once][k].ms
            for key in TABLES for k in range(4)
            if not (TABLES[key][local][k].diverges or TABLES[key][once][k].diverges)
        )  # fmt: skip
        times, sweeps = (
            _median(row[key] / other[key] for row, other in pairs)
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
    others = {(r["pair"], r["path"], r["mu"]): r for r in _pick(rows, symbol=other, stop="printed")}
    for row in _pick(rows, symbol=one, stop=stop):
        yield row, others[row["pair"], row["path"], row["mu"]]


def _newton(data: Data) -> Iterator[Finding]:
    newton, uzawa = (
        {(r["pair"], r["path"], r["mu"]): r for r in _pick(data["solvers"], symbol=symbol, stop="tight")}
        for symbol in ("NB", "GB")
    )
    both = [key for key in newton if not newton[key]["failed"] and not uzawa[key]["failed"]]
    times, sweeps = (
        _median(newton[key][name] / uzawa[key][name] for key in both)
        for name in ("mean_time_ms", "mean_iterations")
    )
    yield Finding(
        at_least(f"Newton over Uzawa global at 1e-8: time, median of {len(both)} paths", times, 1.0, "",
                 "001, 3.1, after Joli and Feng"),
        "Newton on the local equations takes fewer iterations but more time than Uzawa (3.1).",
        f"{times:.2f} of the time with {sweeps:.2f} of the sweeps.",
    )  # fmt: skip


def _factors_on_rho(data: Data) -> Iterator[Finding]:
    soft = _pick(data["factors"], pair="aluminium-tissue")
    base = _pick(soft, symbol="GB")
    said = "Half of rho_min doubles the sweeps and its double halves them (3.5)."
    slower, faster = (_sweeps_at(base, f) / _sweeps_at(base, 1.0) for f in (0.5, 2.0))
    words = f"Half takes {slower:.2f} of the sweeps, the double {faster:.2f}."
    yield Finding(
        close_to("sweeps at rho_min / 2 over those at rho_min, aluminium on tissue", slower, 2.0, 15.0, "",
                 "001, 3.5"),
        said, words,
    )  # fmt: skip
    yield Finding(
        at_most("sweeps at 2 rho_min over those at rho_min, aluminium on tissue", faster, 0.5, "",
                "001, 3.5: half"),
        said, words,
    )  # fmt: skip
    for symbol, factor, ratios in FACTORS:
        for path, theirs in ratios.items():
            rows = _pick(soft, symbol=symbol, path=path)
            ours = _sweeps_at(rows, factor) / _sweeps_at(rows, 1.0)
            yield Finding(
                close_to(f"aluminium on tissue, {path}: sweeps of {symbol} at {factor:g} rho over those at "
                         "rho", ours, theirs, 25.0, "", "001, 3.19, times"),
                f"The time falls to {theirs:.2f} (3.19).", f"The sweeps fall to {ours:.2f}.",
            )  # fmt: skip
    for symbol, limit in (("GB", 2.2), ("G*B", 1.5)):
        for pair in dict.fromkeys(row["pair"] for row in data["factors"]):
            most, lost = _largest(_pick(data["factors"], symbol=symbol, pair=pair))
            source = "001, 3.5" + (", for aluminium on tissue" if pair != "aluminium-tissue" else "")
            yield Finding(
                close_to(f"{pair}, {symbol}: largest factor on rho at which every step converges", most,
                         limit, 5.0, "", source),
                f"Beyond {limit:g} rho it is unstable on aluminium and tissue; elsewhere the factor is "
                "another (3.5, 3.10).",
                f"Every step converges up to {most:.3g}; {lost}.", _why_that_limit(data, pair, symbol, most),
            )  # fmt: skip


def _sweeps_at(rows: Sequence[Row], factor: float) -> float:
    return _mean(_pick(rows, factor=factor), "iterations")


def _largest(rows: Sequence[Row]) -> tuple[float, str]:
    """The largest factor borne, to the bisection's width, and what comes at the next."""
    most, beyond = largest(rows)
    if not beyond:
        return most, "none of those tried fails"
    failed = sum(not row["met"] for row in beyond)
    return most, f"at {beyond[0]['factor']:.3g} fail {failed} of {len(beyond)}"


def _why_that_limit(data: Data, pair: str, symbol: str, most: float) -> str:
    if symbol == "GB":
        least = min(row["largest_factor"] for row in _pick(data["paths"], pair=pair, mu=0.3))
        words = (
            "One step at each contact is over-relaxation by omega = rho lmax(W_aa), which converges below 2 "
            f"where contacts stick: on these paths up to {least:.2f} rho_min."
        )
        if most > least:
            return words + " Sliding contacts bear more, for the projection damps them."
        return words + " Less is borne here: friction follows normal forces that still change."
    right, _ = _largest(_pick(data["factors"], symbol="G*B'", pair=pair))
    once = _pick(data["factors"], symbol=symbol, pair=pair, factor=1.0)
    off = max(row["deviation_percent"] for row in once)
    return (
        f"With the fitting projection the limit is {right:.3g}. What the printed one ends at with factor 1 "
        f"is up to {off:.3g}% off."
    )


def _star_is_the_reference(data: Data) -> Iterator[Finding]:
    star, once = (
        {(r["path"], r["mu"]): r
         for r in _pick(data["solvers"], symbol=symbol, stop="printed", pair="aluminium-tissue")}
        for symbol in ("G*B", "GB")
    )  # fmt: skip
    worst = max(star[key]["mean_iterations"] / once[key]["mean_iterations"] for key in star)
    yield Finding(
        at_most("aluminium on tissue: sweeps of G*B over those of GB, worst path", worst, 1.0, "",
                "001, 3.8"),
        "On aluminium and tissue G*B is the fastest (3.4, 3.7.1, 3.8).",
        f"It takes {worst:.2f} of GB's sweeps where it gains least.",
        "rho^alpha is the stiffness of each contact, rho_min that of the softest row.",
    )  # fmt: skip
    for symbol, limit, source, said, why in (
        ("G*B", 1.0, "001, 3.4", "G*B at 1e-8 is the solution of reference (3.4).",
         "With rho_n != rho_t the printed projection ends at x_n = mu |x_t| (rho_t / rho_n - 1)."),
        ("G*B'", AGREE, "EQUATIONS.md, 2", "", ""),
    ):  # fmt: skip
        rows = [r for r in _pick(data["solvers"], symbol=symbol, stop="tight") if not r["failed"]]
        off = max((row["worst_deviation_percent"] for row in rows), default=np.inf)
        yield Finding(
            at_most(f"{symbol} at 1e-8: worst deviation from the solution where it converges", off, limit,
                    "%", source),
            said, f"Where it converges it is up to {off:.3g}% off.", why,
        )  # fmt: skip


# ---- the mechanics


def _friction(data: Data) -> Iterator[Finding]:
    first, last = (f(row["mu"] for row in data["paths"]) for f in (min, max))
    tables = []
    for pair, path in TABLES:
        rows = _pick(data["solvers"], symbol="GB", stop="printed", pair=pair, path=path)
        low, high = (_mean(_pick(rows, mu=mu), "mean_iterations") for mu in (first, last))
        tables.append((high > low, f"{pair} {path} {high / low:.2f}"))
    yield Finding(
        at_least(f"GB: tables of 6 in which mu {last:g} takes more sweeps than {first:g}",
                 sum(more for more, _ in tables), 6, "", "001, 3.8"),
        "The times rise with friction (3.8).",
        "Sweeps over each other: " + ", ".join(words for _, words in tables) + ".",
    )  # fmt: skip
    for path in ("penetration", "sliding"):
        rows = _pick(data["paths"], pair="aluminium-tissue", path=path)
        low, high = (_mean(_pick(rows, mu=mu), "force_norm_N") for mu in (first, last))
        yield Finding(
            at_least(f"aluminium on tissue, {path}: mean |r| at mu {last:g} over that at {first:g}",
                     high / low, 1.0, "", "001, figure 3.42"),
            "The norm of the contact force rises with friction (3.8).", f"{high / low:.3f} times.",
        )  # fmt: skip


def _bench(data: Data) -> Iterator[Finding]:
    rows = _pick(data["paths"], pair="aluminium-tissue", path="penetration", mu=0.3)
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
        rows = _pick(data["paths"], pair=printed.pair, path=printed.path, mu=0.3)
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
    soft = _mean(_pick(data["paths"], pair="tissue-tissue", path="penetration", mu=0.3), "rho_min_N_per_m")
    tip = soft * MATERIALS["aluminium"].youngs_modulus / MATERIALS["tissue"].youngs_modulus
    return (
        f"Soft on soft it is the upper block that yields, and scaled to aluminium its rho is {tip / 1e6:.3g} "
        "MN/m: what is printed for rubber is near that of the upper block alone."
    )


def _solution(data: Data) -> Iterator[Finding]:
    worst = max(row["reference_residual"] for row in data["paths"])
    yield Finding(
        at_most("reference: largest common residual", worst, 1e-12, "", "EQUATIONS.md, 2"),
        "", f"{worst:.1e} at the worst step.",
    )  # fmt: skip
    rows = [r for r in _pick(data["steps"], stop="tight", consistent=True) if r["residual"] <= 1e-8]
    off = max(rows, key=lambda row: row["deviation_percent"])
    yield Finding(
        at_most(f"consistent solvers at 1e-8: worst deviation of {len(rows)} solves",
                off["deviation_percent"], AGREE, "%", "one problem, one solution"),
        "", f"{off['solver']} is {off['deviation_percent']:.1e}% off at the worst.",
    )  # fmt: skip
    for symbol in ("G*B", "L*", "G*P"):
        rows = _pick(data["steps"], symbol=symbol, stop="tight")
        most = max(row["deviation_percent"] for row in rows)
        yield Finding(
            at_least(f"{symbol} as printed: largest deviation", most, 1.0, "%",
                     "EQUATIONS.md, 2: not a solution"),
            "", f"Up to {most:.3g}% off.",
        )  # fmt: skip


def _our_own(data: Data) -> Iterator[Finding]:
    ours = _pick(data["steps"], solver="anderson", stop="tight")
    lost = [row for row in ours if not row["met"]]
    yield Finding(
        at_most(f"anderson: steps of {len(ours)} without convergence at 1e-8", len(lost), 0, "",
                "our solver"),
        "", f"It failed in {len(lost)} of {len(ours)}{_where(lost)}.",
    )  # fmt: skip
    paths = {(row["pair"], row["path"], row["mu"]) for row in data["solvers"]}
    ahead = []
    for pair, path, mu in paths:
        rows = _pick(data["solvers"], stop="tight", consistent=True, pair=pair, path=path, mu=mu)
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


# ---- rows


def _pick(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _mean(rows: Sequence[Row], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _median(values: Iterable[float]) -> float:
    known = list(values)
    return float(np.median(known)) if known else float("nan")


def _cell(row: Row) -> Any:
    return cell(row["pair"], row["path"], row["symbol"], row["mu"])


def _where(rows: Sequence[Row]) -> str:
    """The paths of failures, with how many steps."""
    counts: dict[str, int] = {}
    for row in rows:
        place = f"{row['pair']} {row['path']} mu {row['mu']:g}"
        counts[place] = counts.get(place, 0) + 1
    return f" ({'; '.join(f'{place}: {n}' for place, n in counts.items())})" if counts else ""
