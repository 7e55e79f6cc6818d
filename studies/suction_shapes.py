"""Three shapes of cup on a soft cube: thesis 000, figure 5.13.

The round cup (red in the thesis) and the straight one (blue) lift a deformable cube of 10 kPa and 30 g; the
asymmetric one (green), whose borders rise when it is pressed, does not. The push and the largest pressure of
docs/suction.md are shown, and the outcome is mapped over others: a cup that yields before its air reaches the
largest pressure keeps all of it, and has no suction when it is pulled.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from palpo.studies.claims import Claim, at_least, at_most
from palpo.studies.suction_runs import (
    BLOCK,
    PUSH,
    THESIS,
    RunTrace,
    changes,
    largest,
    lead,
    lifted,
    press_and_lift,
    soft_cube,
    spread,
)
from palpo.studies.tables import COLOURS, save_figure, write_csv

SHAPES = {"round": "paper", "small": "krylov", "asymmetric": "low"}
"""The thesis's cups and their colours."""
DEPTHS = (1e-3, 2e-3, 4e-3)
ATMOSPHERE = 101_325.0
EXCESS = 675.0
"""P_max over the atmosphere [Pa]; docs/suction.md."""
EXCESSES = (48.0, 100.0, EXCESS)
"""Others of the map; the first is what the round cup's own rim bears (palpo study suction-axisymmetric)."""
LEAST = 0.01
"""Height [m] that counts as lifted, a third of the hand's."""


class ShapeCase(NamedTuple):
    """A cup, its push [m] and the largest pressure of its air [Pa] over the atmosphere."""

    cup: str
    depth: float
    excess: float


def run(out: Path, quick: bool) -> list[Claim]:
    """Heights over time and outcomes as CSV and figure, and the claims."""
    cases = [
        ShapeCase(*case)
        for case in product(SHAPES, (PUSH,) if quick else DEPTHS, (EXCESS,) if quick else EXCESSES)
    ]
    work = partial(lift, 76 if quick else 576, quick)
    traces = dict(zip(cases, spread(work, cases, "cups on a soft cube", quick), strict=True))
    write_csv(
        out / "lifts.csv",
        [
            {
                **case._asdict(),
                "end_m": float(trace.partner[-1]),
                "highest_m": float(trace.partner.max()),
                "largest_cavity_m3": largest(trace.volume),
                "strongest_suction_Pa": largest(-trace.pressure),
            }
            for case, trace in traces.items()
        ],
    )
    shown = {cup: traces[ShapeCase(cup, PUSH, EXCESS)] for cup in SHAPES}
    write_csv(
        out / "series.csv", [{"cup": cup, **row} for cup, trace in shown.items() for row in trace.table()]
    )
    save_figure(out / "shapes.png", 5.4, partial(_draw, traces=traces, shown=shown))
    return claims_of(traces)


def lift(resolution: int, quick: bool, case: ShapeCase) -> RunTrace:
    """A cup presses a soft cube, and lifts."""
    share = 0.5 if quick else 1.0
    path = press_and_lift(
        case.depth, down=0.4 * share, press=0.6 * share, lift=1.2 * share, height=0.03, after=0.8 * share
    )
    gas = f'gas={{kind="airtight", max_pressure={ATMOSPHERE + case.excess!r}}}'
    return lead(changes(case.cup, resolution, path, soft_cube(BLOCK), more=[gas]))


def claims_of(traces: dict[ShapeCase, RunTrace]) -> list[Claim]:
    """The verdict."""
    claims = []
    for cup in SHAPES:
        wanted = cup != "asymmetric"
        check = at_least if wanted else at_most
        claims.append(
            check(
                f"{cup} cup at {1e3 * PUSH:g} mm of push: height of the cube at the end",
                1e3 * float(traces[ShapeCase(cup, PUSH, EXCESS)].partner[-1]), 1e3 * LEAST, "mm",
                f"{THESIS}, figure 5.13: {'lifts' if wanted else 'no large sealed cavity'}",
            )
        )  # fmt: skip
    for cup in SHAPES:
        own = [lifted(trace, LEAST) for case, trace in traces.items() if case.cup == cup]
        wanted = cup != "asymmetric"
        check = at_least if wanted else at_most
        claims.append(
            check(
                f"{cup} cup: share of push depths and largest pressures that lift",
                100.0 * sum(own) / len(own), 50.0 if wanted else 0.0, "%", f"{THESIS}, figure 5.13",
            )
        )  # fmt: skip
    return claims


def _draw(figure: Figure, traces: dict[ShapeCase, RunTrace], shown: dict[str, RunTrace]) -> None:
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
    excesses = sorted({case.excess for case in traces})
    for case, trace in traces.items():
        up = lifted(trace, LEAST)
        axes["map"].plot(
            1e3 * case.depth, names.index(case.cup) + 0.3 * excesses.index(case.excess), ls="",
            marker="o" if up else "x", ms=9, mew=2, color=COLOURS["low" if up else "paper"],
        )  # fmt: skip
    places = [k + 0.3 * j for k in range(len(names)) for j in range(len(excesses))]
    axes["map"].set_yticks(places, [f"{name}, {excess:g} Pa" for name in names for excess in excesses])
    axes["map"].set(xlabel="push depth [mm]", ylim=(-0.4, len(names) - 0.3))
    axes["map"].set_title("P_max - P_atm; o lifted, x not", loc="left", fontsize=9.5)
    axes["map"].margins(x=0.15)
