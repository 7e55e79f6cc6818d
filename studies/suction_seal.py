"""Every lift of the thesis's figures 5.12 to 5.15 with the air under the rim computed, on equal surfaces.

No gap counts as airtight for long, no largest pressure is given and nothing differs from figure to figure but
what the thesis names: cup, partner, mass. The push is that of docs/suction.md, friction the scenes' own; the
roughness of all surfaces is varied together. What a cup holds then follows from how its rim bears, and for
how long from how the surfaces touch. Outcomes unlike the thesis's stay in the table, with the numbers that
decide them: the strongest suction, and how tight the rim was at best.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from palpo.physics.systems.suction import Suction
from palpo.studies.claims import Line, Reported, at_least
from palpo.studies.suction_curvature import FLATNESSES, half_cylinder
from palpo.studies.suction_mass import MASSES
from palpo.studies.suction_runs import (
    BLOCK,
    PUSH,
    THESIS,
    changes,
    lead,
    lifted,
    press_and_lift,
    rigid_cube,
    soft_cube,
    spread,
)
from palpo.studies.suction_tunnel import BESIDE, TUNNEL
from palpo.studies.suction_tunnel import MASS as BORED
from palpo.studies.tables import COLOURS, save_figure, write_csv

ROUGHNESSES = (1e-6, 2e-6, 5e-6, 10e-6)
"""Root mean square, cup and partner together [m]: of a polished, a milled and two blasted surfaces."""


class Lift(NamedTuple):
    """A cup on a partner, and what the thesis shows."""

    figure: str
    what: str
    lifts: bool
    cup: str
    partner: str  # as a TOML table
    x: float = 0.0  # [m] the cup beside the origin


class Outcome(NamedTuple):
    """How a lift went."""

    lifted: bool
    highest: float  # [m] of the partner
    suction: float  # [Pa] the strongest
    conductance: float  # [m3/(Pa s)] of the rim, the least while there was suction
    pushed: float  # [Pa] the highest over the atmosphere


def lifts() -> list[Lift]:
    """Those of the four figures."""
    flat = [
        Lift("5.12", f"half cylinder, flattened to {f:g}", f < 1.0, "small", half_cylinder(f))
        for f in FLATNESSES
    ]
    shapes = [
        Lift("5.13", f"{cup} cup on a soft cube", cup != "asymmetric", cup, soft_cube(BLOCK))
        for cup in ("round", "small", "asymmetric")
    ]
    masses = [
        Lift(
            "5.14", f"{cup} cup, {1e3 * mass:g} g", cup == "large" or mass < MASSES[2], cup, rigid_cube(mass)
        )
        for cup, mass in product(("small", "large"), MASSES)
    ]
    bored = {"rigid": rigid_cube(BORED, TUNNEL), "soft": soft_cube(TUNNEL)}
    tunnels = [
        Lift(
            "5.15",
            f"{name} cube, {'both holes' if over else 'one hole'}",
            over,
            "small",
            cube,
            0.0 if over else BESIDE,
        )
        for (name, cube), over in product(bored.items(), (True, False))
    ]
    return [*flat, *shapes, *masses, *tunnels]


def run(out: Path, quick: bool) -> list[Line]:
    """Outcomes as CSV and figure, and the verdict."""
    chosen = [
        lift for lift in lifts() if not quick or (lift.figure == "5.14" and lift.what.startswith("small"))
    ]
    cases = list(product((2e-6,) if quick else ROUGHNESSES, chosen))
    work = partial(tried, 76 if quick else 203, quick)
    found = dict(zip(cases, spread(work, cases, "lifts", quick), strict=True))
    write_csv(
        out / "lifts.csv",
        [
            {
                "rms_m": rms,
                "figure": lift.figure,
                "what": lift.what,
                "thesis": lift.lifts,
                **outcome._asdict(),
            }
            for (rms, lift), outcome in found.items()
        ],
    )
    save_figure(out / "lifts.png", 5.4, partial(_draw, found=found))
    return claims_of(found)


def tried(resolution: int, quick: bool, case: tuple[float, Lift]) -> Outcome:
    """Pressed by PUSH, lifted, and held for half a second."""
    rms, lift = case
    share = 0.5 if quick else 1.0
    path = press_and_lift(PUSH, down=0.4 * share, press=0.4 * share, lift=1.0 * share, after=0.5 * share)
    seal = f'gas={{kind="passive", seal={{rms={rms!r}}}}}'
    best = [0.0, np.inf]

    def watch(suction: Suction) -> bool:
        k = int(suction.pressure.argmin()) if suction.cavity_count else -1
        if k >= 0 and suction.pressure[k] < suction.air.atmosphere:
            best[0] = max(best[0], suction.air.atmosphere - float(suction.pressure[k]))
            best[1] = min(best[1], float(suction.seeping()[k].sum()) / suction.h)
        return False

    overrides = changes(lift.cup, resolution, path, lift.partner, x=lift.x, more=[seal])
    trace = lead(overrides, after=watch)
    high = float(np.nanmax(trace.pressure)) if np.isfinite(trace.pressure).any() else 0.0
    return Outcome(lifted(trace), float(trace.partner.max()), best[0], best[1], high)


def claims_of(found: dict[tuple[float, Lift], Outcome]) -> list[Line]:
    """Each lift: on how many of the surfaces it comes out as in the thesis, and what decides."""
    lines: list[Line] = []
    for lift in dict.fromkeys(lift for _, lift in found):
        own = {rms: outcome for (rms, other), outcome in found.items() if other == lift}
        agreed = sum(outcome.lifted == lift.lifts for outcome in own.values())
        smooth = own[min(own)]
        told = f"{1e3 * smooth.highest:.1f} mm high, suction up to {smooth.suction:.0f} Pa"
        lines.append(
            at_least(
                f"{lift.figure}, {lift.what}: as printed on so many of {len(own)}", agreed, 1.0, "",
                f"{THESIS}: {'lifted' if lift.lifts else 'not lifted'}; on the smoothest {told}, rim "
                f"{2e12 * smooth.conductance:.3g} mm3/s per kPa",
            )
        )  # fmt: skip
    for rms in dict.fromkeys(rms for rms, _ in found):
        both = [outcome.lifted == lift.lifts for (other, lift), outcome in found.items() if other == rms]
        lines.append(
            Reported(f"as in the thesis on {1e6 * rms:g} um rms", sum(both), "", f"of {len(both)} lifts")
        )
    return lines


def _draw(figure: Figure, found: dict[tuple[float, Lift], Outcome]) -> None:
    axes = figure.subplots()
    names = list(dict.fromkeys(lift for _, lift in found))
    roughnesses = list(dict.fromkeys(rms for rms, _ in found))
    for (rms, lift), outcome in found.items():
        agrees = outcome.lifted == lift.lifts
        axes.plot(
            roughnesses.index(rms), -names.index(lift), ls="", marker="o" if outcome.lifted else "x", ms=9,
            mew=2, color=COLOURS["low" if agrees else "paper"],
        )  # fmt: skip
    axes.set_xticks(range(len(roughnesses)), [f"{1e6 * rms:g}" for rms in roughnesses])
    axes.set_yticks(
        [-k for k in range(len(names))], [f"{lift.figure}: {lift.what}" for lift in names], fontsize=8
    )
    axes.set_xlabel("roughness of cup and partner, rms [um]")
    axes.set_title("o lifted and held, x not; green as in the thesis", loc="left", fontsize=9.5)
    axes.margins(x=0.2)
