"""Lifting curved objects: thesis 000, figure 5.12.

Half cylinders of 120 mm, their height scaled by 0.2 to 1, lie on the ground; the small cup is pressed on
their top and lifts them. The thesis lifts all flattened ones, and the round one only for a moment. Its push
is not told: that of docs/suction.md is shown, and the outcome is mapped over others, since a deeper push
bends the rim further around. At that push the outcome is also mapped over friction, over the gap that counts
as airtight, and over the largest pressure that the rim bears, with the thesis's outcome marked.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from palpo.studies.claims import Claim, at_least, at_most
from palpo.studies.suction_runs import (
    PUSH,
    THESIS,
    RunTrace,
    changes,
    largest,
    lead,
    lifted,
    press_and_lift,
    spread,
)
from palpo.studies.tables import COLOURS, save_figure, write_csv

FLATNESSES = (0.2, 0.4, 0.6, 0.8, 1.0)
DEPTHS = (0.5e-3, 1e-3, 2e-3, 3e-3)
MASS = 0.05
RADIUS = 0.06
SEALINGS = (0.15e-3, 0.2e-3, 0.3e-3, 0.5e-3)
FRICTIONS = (0.2, 0.6, 2.0)
LARGEST = (101.4e3, 102e3, 110e3)
"""Of the map: gaps [m] that count as airtight, mu, P_max [Pa]. The scenes have 0.5 mm, 0.6 and 102 kPa."""
LEAST = 0.01
"""Height [m] that counts as lifted, a third of the hand's."""


class CurvatureSetting(NamedTuple):
    """What decides beside the push and the shape; the scenes' own by default."""

    mu: float = 0.6
    sealing: float = 0.5e-3  # [m]
    largest: float = 102e3  # [Pa]


OWN = CurvatureSetting()


def settings() -> list[CurvatureSetting]:
    """Of the map: one changed at a time."""
    changed = [
        *(OWN._replace(sealing=sealing) for sealing in SEALINGS),
        *(OWN._replace(mu=mu) for mu in FRICTIONS),
        *(OWN._replace(largest=largest) for largest in LARGEST),
    ]
    return list(dict.fromkeys(changed))


def run(out: Path, quick: bool) -> list[Claim]:
    """Heights over time and outcomes as CSV and figure, and the claims."""
    cases = list(product((PUSH,) if quick else DEPTHS, FLATNESSES[:: 4 if quick else 1]))
    work = partial(lift, 76 if quick else 576)
    traces = dict(zip(cases, spread(work, cases, "half cylinders", quick), strict=True))
    write_csv(
        out / "lifts.csv",
        [
            {
                "push_m": depth,
                "flatness": flatness,
                "end_m": float(trace.partner[-1]),
                "highest_m": float(trace.partner.max()),
                "shut_s": float(np.ptp(trace.time[trace.cavities > 0])) if trace.cavities.any() else 0.0,
                "strongest_suction_Pa": largest(-trace.pressure),
            }
            for (depth, flatness), trace in traces.items()
        ],
    )
    shown = {flatness: trace for (depth, flatness), trace in traces.items() if depth == PUSH}
    write_csv(
        out / "series.csv",
        [{"flatness": flatness, **row} for flatness, trace in shown.items() for row in trace.table()],
    )
    save_figure(out / "lifts.png", 5.4, partial(_draw, traces=traces, shown=shown))
    if not quick:
        _map(out)
    return claims_of(traces)


def _map(out: Path) -> None:
    """Outcomes at PUSH over the settings as CSV and figure."""
    cases = [(PUSH, flatness, setting) for setting in settings() for flatness in FLATNESSES]
    found = dict(
        zip(cases, spread(partial(lifted_under, 576), cases, "half cylinders, mapped", False), strict=True)
    )
    write_csv(
        out / "map.csv",
        [
            {"flatness": flatness, **setting._asdict(), "lifted": up}
            for (_, flatness, setting), up in found.items()
        ],
    )
    outcome = {(flatness, setting): up for (_, flatness, setting), up in found.items()}
    save_figure(out / "map.png", 3.6, partial(_draw_map, outcome=outcome))


def lifted_under(resolution: int, case: tuple[float, float, CurvatureSetting]) -> bool:
    """Whether the half cylinder ends lifted."""
    depth, flatness, setting = case
    return lifted(lift(resolution, (depth, flatness), setting), LEAST)


def lift(resolution: int, case: tuple[float, float], setting: CurvatureSetting = OWN) -> RunTrace:
    """The small cup presses a half cylinder by a depth [m], and lifts; the cylinder's flatness."""
    depth, flatness = case
    path = press_and_lift(depth, height=0.03)
    more = [f"contact.sealing={setting.sealing!r}", f"gas.max_pressure={setting.largest!r}"]
    return lead(changes("small", resolution, path, half_cylinder(flatness), mu=setting.mu, more=more))


def half_cylinder(flatness: float) -> str:
    """One on the ground, its top at y = 0 and that part of its radius high, as a TOML table."""
    top = flatness * RADIUS
    return (
        f'{{name="partner", kind="rigid", mass={MASS!r}, ground={-top - 1e-4!r}, '
        f"placement={{position=[0, {-top!r}, 0]}}, "
        f'geometry={{kind="half-cylinder", flatness={flatness!r}}}}}'
    )


def claims_of(traces: dict[tuple[float, float], RunTrace]) -> list[Claim]:
    """The verdict."""
    claims = []
    for (depth, flatness), trace in traces.items():
        if depth != PUSH:
            continue
        wanted = flatness < 1.0
        check = at_least if wanted else at_most
        claims.append(
            check(
                f"scale {flatness:g} at {1e3 * depth:g} mm of push: height at the end",
                1e3 * float(trace.partner[-1]), 1e3 * LEAST, "mm",
                f"{THESIS}, figure 5.12: {'lifted' if wanted else 'only briefly lifted'}",
            )
        )  # fmt: skip
    round_one = {depth: trace for (depth, flatness), trace in traces.items() if flatness == 1.0}
    flat = {depth: trace for (depth, flatness), trace in traces.items() if flatness == FLATNESSES[0]}
    claims.append(
        at_least(
            "push depths at which the flattest is lifted and the round one is not",
            sum(lifted(flat[d], LEAST) and not lifted(round_one[d], LEAST) for d in round_one), 1, "",
            f"{THESIS}, figure 5.12",
        )
    )  # fmt: skip
    claims.append(
        at_most(
            "push depths that lift the round one",
            sum(lifted(trace, LEAST) for trace in round_one.values()), 0, "", f"{THESIS}, figure 5.12",
        )
    )  # fmt: skip
    return claims


def _draw(figure: Figure, traces: dict[tuple[float, float], RunTrace], shown: dict[float, RunTrace]) -> None:
    axes = figure.subplot_mosaic([["height", "map"], ["pressure", "map"]], width_ratios=(1.6, 1.0))
    for k, (flatness, trace) in enumerate(shown.items()):
        share = k / max(1, len(shown) - 1)
        colour = (0.2 + 0.65 * share, 0.45 - 0.1 * share, 0.75 - 0.45 * share)
        axes["height"].plot(
            trace.time, 1e3 * trace.partner, lw=1.3, color=colour, label=f"scale {flatness:g}"
        )
        axes["pressure"].plot(trace.time, 1e-3 * trace.pressure, lw=1.3, color=colour)
    axes["height"].set_title(f"pushed by {1e3 * PUSH:g} mm", loc="left", fontsize=9.5)
    axes["height"].set_ylabel("height of the object [mm]")
    axes["height"].legend(fontsize=8)
    axes["pressure"].set(xlabel="time [s]", ylabel="p - P_atm [kPa]")
    axes["pressure"].axhline(0.0, color=COLOURS["faint"], lw=0.8)
    for (depth, flatness), trace in traces.items():
        up = lifted(trace, LEAST)
        axes["map"].plot(
            1e3 * depth, flatness, ls="", marker="o" if up else "x", ms=9, mew=2,
            color=COLOURS["low" if up else "paper"],
        )  # fmt: skip
    axes["map"].set(xlabel="push depth [mm]", ylabel="scale of the height")
    axes["map"].set_title("o lifted   x not", loc="left", fontsize=9.5)
    axes["map"].margins(0.15)


def _draw_map(figure: Figure, outcome: dict[tuple[float, CurvatureSetting], bool]) -> None:
    """Each setting's axis; filled circles lifted, crosses not; the thesis's outcome as rings around those."""
    panels = (
        ("sealing", "gap that counts as airtight [mm]", SEALINGS, 1e3),
        ("mu", "mu", FRICTIONS, 1.0),
        ("largest", "P_max over the atmosphere [Pa]", LARGEST, 1.0),
    )
    for axes, (name, label, values, scale) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
        for k, value in enumerate(values):
            for flatness in FLATNESSES:
                up = outcome[flatness, OWN._replace(**{name: value})]
                as_printed = up == (flatness < 1.0)
                axes.plot(k, flatness, ls="", marker="o" if up else "x", ms=8, mew=2,
                          color=COLOURS["low" if up else "paper"])  # fmt: skip
                if as_printed:
                    axes.plot(k, flatness, ls="", marker="o", ms=15, mfc="none", color=COLOURS["faint"])
        shown = [value - 101325.0 if name == "largest" else scale * value for value in values]
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in shown])
        axes.set(xlabel=label)
        axes.margins(0.2)
    figure.axes[0].set_ylabel("scale of the height")
    figure.suptitle(
        "filled: lifted, x: not; ringed where the thesis's figure 5.12 has the same", fontsize=9.5
    )
