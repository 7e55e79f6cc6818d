"""Three shapes of cup on a soft cube: thesis 000, figure 5.13.

The round cup (red in the thesis) and the straight one (blue) lift a deformable cube of 10 kPa and 30 g; the
asymmetric one (green), whose borders rise when it is pressed, does not. The push of docs/suction.md is shown
and the outcome mapped over others.
"""

from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from app.studies.claims import Claim, at_least, at_most
from app.studies.suction_runs import (
    BLOCK,
    PUSH,
    THESIS,
    Trace,
    changes,
    largest,
    lead,
    lifted,
    press_and_lift,
    soft_cube,
    spread,
)
from app.studies.tables import COLOURS, save_figure, write_csv

SHAPES = {"round": "paper", "small": "krylov", "asymmetric": "low"}
"""The thesis's cups and their colours."""
DEPTHS = (1e-3, 2e-3, 4e-3, 8e-3)
LEAST = 0.01
"""Height [m] that counts as lifted, a third of the hand's."""


def run(out: Path, quick: bool) -> list[Claim]:
    """Heights over time and outcomes as CSV and figure, and the claims."""
    cases = list(product(SHAPES, (PUSH,) if quick else DEPTHS))
    work = partial(lift, 76 if quick else 576, quick)
    traces = dict(zip(cases, spread(work, cases, "cups on a soft cube", quick), strict=True))
    write_csv(
        out / "lifts.csv",
        [
            {
                "cup": cup,
                "push_m": depth,
                "end_m": float(trace.partner[-1]),
                "highest_m": float(trace.partner.max()),
                "largest_cavity_m3": largest(trace.volume),
                "strongest_suction_Pa": largest(-trace.pressure),
            }
            for (cup, depth), trace in traces.items()
        ],
    )
    shown = {cup: trace for (cup, depth), trace in traces.items() if depth == PUSH}
    write_csv(
        out / "series.csv", [{"cup": cup, **row} for cup, trace in shown.items() for row in trace.table()]
    )
    save_figure(out / "shapes.png", 5.4, partial(_draw, traces=traces, shown=shown))
    return claims_of(traces)


def lift(resolution: int, quick: bool, case: tuple[str, float]) -> Trace:
    """A cup presses a soft cube by a depth [m], and lifts."""
    cup, depth = case
    share = 0.5 if quick else 1.0
    path = press_and_lift(
        depth, down=0.4 * share, press=0.6 * share, lift=1.2 * share, height=0.03, after=0.8 * share
    )
    return lead(changes(cup, resolution, path, soft_cube(BLOCK)))


def claims_of(traces: dict[tuple[str, float], Trace]) -> list[Claim]:
    """The verdict."""
    claims = []
    for cup in SHAPES:
        wanted = cup != "asymmetric"
        check = at_least if wanted else at_most
        claims.append(
            check(
                f"{cup} cup at {1e3 * PUSH:g} mm of push: height of the cube at the end",
                1e3 * float(traces[cup, PUSH].partner[-1]), 1e3 * LEAST, "mm",
                f"{THESIS}, figure 5.13: {'lifts' if wanted else 'no large sealed cavity'}",
            )
        )  # fmt: skip
    depths = list(dict.fromkeys(depth for _, depth in traces))
    up = {case: lifted(trace, LEAST) for case, trace in traces.items()}
    claims.append(
        at_least(
            "push depths at which round and straight lift and asymmetric does not",
            sum(up["round", d] and up["small", d] and not up["asymmetric", d] for d in depths), 1, "",
            f"{THESIS}, figure 5.13",
        )
    )  # fmt: skip
    return claims


def _draw(figure: Figure, traces: dict[tuple[str, float], Trace], shown: dict[str, Trace]) -> None:
    axes = figure.subplot_mosaic([["height", "map"], ["pressure", "map"]], width_ratios=(1.6, 1.0))
    for cup, trace in shown.items():
        axes["height"].plot(trace.time, 1e3 * trace.partner, lw=1.3, color=COLOURS[SHAPES[cup]], label=cup)
        axes["pressure"].plot(trace.time, 1e-3 * trace.pressure, lw=1.3, color=COLOURS[SHAPES[cup]])
    axes["height"].set_title(f"pushed by {1e3 * PUSH:g} mm", loc="left", fontsize=9.5)
    axes["height"].set_ylabel("height of the cube's middle [mm]")
    axes["height"].legend(fontsize=8)
    axes["pressure"].set(xlabel="time [s]", ylabel="p - P_atm [kPa]")
    axes["pressure"].axhline(0.0, color=COLOURS["faint"], lw=0.8)
    names = list(SHAPES)
    for (cup, depth), trace in traces.items():
        up = lifted(trace, LEAST)
        axes["map"].plot(
            1e3 * depth, names.index(cup), ls="", marker="o" if up else "x", ms=9, mew=2,
            color=COLOURS["low" if up else "paper"],
        )  # fmt: skip
    axes["map"].set_yticks(np.arange(len(names)), names)
    axes["map"].set(xlabel="push depth [mm]", ylim=(-0.6, len(names) - 0.4))
    axes["map"].set_title("o lifted   x not", loc="left", fontsize=9.5)
    axes["map"].margins(x=0.15)
