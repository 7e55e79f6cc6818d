"""What the thesis says of rho, held against what was computed."""

from collections.abc import Iterator, Sequence

import numpy as np

from palpo.studies.claims import at_least, at_most, close_to, greatest
from palpo.studies.hapco_limits import largest
from palpo.studies.hapco_page import Finding
from palpo.studies.hapco_rows import AGREE, Data, places_of, printed_cell
from palpo.studies.hapco_thesis import FACTORS, SYMBOLS
from palpo.studies.rows import Row, mean, pick


def rho_min_converges(data: Data) -> Iterator[Finding]:
    """Whether rho_min converges in each step, as the thesis says."""
    said = "The bi-potential with rho_min converges for every pair of materials, path and friction (3.10)."
    for symbol, stop, words in (
        ("GB", "printed", "GB"),
        ("L", "printed", "L, visits from r = 0"), ("L", "warm", "L, visits going on"),
        ("LS", "printed", "LS, visits from r = 0"), ("LS", "warm", "LS, visits going on"),
    ):  # fmt: skip
        rows = pick(data["steps"], symbol=symbol, stop=stop)
        lost = [row for row in rows if not row["met"]]
        tight = pick(data["steps"], symbol=symbol, stop="tight")
        slow = sum(not row["met"] for row in tight)
        yield Finding(
            at_most(f"{words}: steps of {len(rows)} without convergence", len(lost), 0, "", "001, 3.10"),
            said, f"It failed in {len(lost)} of {len(rows)} steps{places_of(lost)}; asked for a residual of "
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
    own = pick(rows, solver=name, stop="tight")
    return [row for row in own if (row["pair"], row["path"], row["mu"], row["step"]) in places]


def rho_alpha_fails(data: Data) -> Iterator[Finding]:
    """Whether rho_alpha fails where the thesis says."""
    cases = (
        ("tissue-tissue", 0.3, "rho^alpha fails on soft on soft (3.7.3, 3.40, 3.41)"),
        ("aluminium-rubber", 0.5, "rho^alpha fails on rubber at mu of 0.5 and more (3.38, 3.39)"),
    )
    for pair, least, said in cases:
        rows = [row for row in pick(data["solvers"], pair=pair) if row["mu"] >= least]
        for symbol in STARS:
            own = pick(rows, stop="printed", symbol=symbol)
            printed = sum(printed_cell(row).diverges for row in own)
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
        own = [[row for row in pick(rows, stop=stop) if row["symbol"] in symbols]
               for symbols in (reaches, tuple(f"{symbol}'" for symbol in reaches))]  # fmt: skip
        printed, right = (sum(row["failed"] > 0 for row in some) for some in own)
        words.append(f"{name} {printed} and {right} of {len(own[0])}")
    return (
        "Failures with the printed projection and with the one that fits rho_n != rho_t: "
        + "; ".join(words)
        + "."
    )


def factors_on_rho(data: Data) -> Iterator[Finding]:
    """What factors on rho cost or save in sweeps, and which is the largest that converges."""
    soft = pick(data["factors"], pair="aluminium-tissue")
    base = pick(soft, symbol="GB")
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
            rows = pick(soft, symbol=symbol, path=path)
            ours = _sweeps_at(rows, factor) / _sweeps_at(rows, 1.0)
            yield Finding(
                close_to(f"aluminium on tissue, {path}: sweeps of {symbol} at {factor:g} rho over those at "
                         "rho", ours, theirs, 25.0, "", "001, 3.19, times"),
                f"The time falls to {theirs:.2f} (3.19).", f"The sweeps fall to {ours:.2f}.",
            )  # fmt: skip
    for symbol, limit in (("GB", 2.2), ("G*B", 1.5)):
        for pair in dict.fromkeys(row["pair"] for row in data["factors"]):
            most, lost = _largest(pick(data["factors"], symbol=symbol, pair=pair))
            source = "001, 3.5" + (", for aluminium on tissue" if pair != "aluminium-tissue" else "")
            yield Finding(
                close_to(f"{pair}, {symbol}: largest factor on rho at which every step converges", most,
                         limit, 5.0, "", source),
                f"Beyond {limit:g} rho it is unstable on aluminium and tissue; elsewhere the factor is "
                "another (3.5, 3.10).",
                f"Every step converges up to {most:.3g}; {lost}.", _why_that_limit(data, pair, symbol, most),
            )  # fmt: skip


def _sweeps_at(rows: Sequence[Row], factor: float) -> float:
    return mean(pick(rows, factor=factor), "iterations")


def _largest(rows: Sequence[Row]) -> tuple[float, str]:
    """The largest factor borne, to the bisection's width, and what comes at the next."""
    most, beyond = largest(rows)
    if not beyond:
        return most, "none of those tried fails"
    failed = sum(not row["met"] for row in beyond)
    return most, f"at {beyond[0]['factor']:.3g} fail {failed} of {len(beyond)}"


def _why_that_limit(data: Data, pair: str, symbol: str, most: float) -> str:
    if symbol == "GB":
        least = min(row["largest_factor"] for row in pick(data["paths"], pair=pair, mu=0.3))
        words = (
            "One step at each contact is over-relaxation by omega = rho lmax(W_aa), which converges below 2 "
            f"where contacts stick: on these paths up to {least:.2f} rho_min."
        )
        if most > least:
            return words + " Sliding contacts bear more, for the projection damps them."
        return words + " Less is borne here: friction follows normal forces that still change."
    right, _ = _largest(pick(data["factors"], symbol="G*B'", pair=pair))
    once = pick(data["factors"], symbol=symbol, pair=pair, factor=1.0)
    off = max(row["deviation_percent"] for row in once)
    return (
        f"With the fitting projection the limit is {right:.3g}. What the printed one ends at with factor 1 "
        f"is up to {off:.3g}% off."
    )


def star_is_the_reference(data: Data) -> Iterator[Finding]:
    """How many sweeps G*B takes beside GB, and whether its forces are the solution."""
    star, once = (
        {(r["path"], r["mu"]): r
         for r in pick(data["solvers"], symbol=symbol, stop="printed", pair="aluminium-tissue")}
        for symbol in ("G*B", "GB")
    )  # fmt: skip
    worst = greatest(star[key]["mean_iterations"] / once[key]["mean_iterations"] for key in star)
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
        rows = [r for r in pick(data["solvers"], symbol=symbol, stop="tight") if not r["failed"]]
        off = max((row["worst_deviation_percent"] for row in rows), default=np.inf)
        yield Finding(
            at_most(f"{symbol} at 1e-8: worst deviation from the solution where it converges", off, limit,
                    "%", source),
            said, f"Where it converges it is up to {off:.3g}% off.", why,
        )  # fmt: skip
