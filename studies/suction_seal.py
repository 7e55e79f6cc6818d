"""Every lift of the thesis's figures 5.12 to 5.15 with the air under the rim computed, on equal surfaces.

No gap counts as airtight for long, no largest pressure is given and nothing differs from figure to figure but
what the thesis names: cup, partner, mass. Pushes are those of docs/suction.md; the roughness of all surfaces
is varied together, and on one of them friction. What a cup holds then follows from how its rim bears, and for
how long from how the surfaces touch. Outcomes unlike the thesis's stay in the table, with the numbers that
decide them: the strongest suction, and how tight the rim was at best.
"""

from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from palpo.physics.systems.suction.step import Suction
from palpo.studies.claims import Line, Reported, at_least
from palpo.studies.suction_curvature import FLATNESSES, half_cylinder
from palpo.studies.suction_mass import MASSES
from palpo.studies.suction_runs import (
    BLOCK,
    LIFTING,
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


MILLED, FRICTION = 2e-6, 0.6
"""The scenes' own roughness [m] and mu."""
FRICTIONS = (0.2, 2.0, 10.0)
"""Others, on the scenes' own roughness; the last holds all that presses."""
RESOLUTION = 576
"""Mesh of the cups: coarser ones have too few cells around to follow a curved partner."""


class RoughPair(NamedTuple):
    """What cup and partner are like: rms height [m], and mu."""

    rms: float
    mu: float = FRICTION


class Lift(NamedTuple):
    """A cup on a partner, and what the thesis shows."""

    figure: str
    what: str
    lifts: bool
    cup: str
    partner: str  # as a TOML table
    x: float = 0.0  # [m] the cup beside the origin

    @property
    def push(self) -> float:
        """[m]."""
        return PUSH if self.figure == "5.14" else LIFTING


class LiftOutcome(NamedTuple):
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
    columns = [RoughPair(rms) for rms in ROUGHNESSES] + [RoughPair(MILLED, mu) for mu in FRICTIONS]
    cases = list(product([RoughPair(MILLED)] if quick else columns, chosen))
    work = partial(tried, 76 if quick else RESOLUTION, quick)
    found = dict(zip(cases, spread(work, cases, "lifts", quick), strict=True))
    write_csv(
        out / "lifts.csv",
        [
            {
                "rms_m": surfaces.rms,
                "mu": surfaces.mu,
                "push_m": lift.push,
                "figure": lift.figure,
                "what": lift.what,
                "thesis": lift.lifts,
                **outcome._asdict(),
            }
            for (surfaces, lift), outcome in found.items()
        ],
    )
    save_figure(out / "lifts.png", 5.4, partial(_draw, found=found))
    return claims_of(found)


def tried(resolution: int, quick: bool, case: tuple[RoughPair, Lift]) -> LiftOutcome:
    """Pressed, lifted, and held for half a second."""
    surfaces, lift = case
    share = 0.5 if quick else 1.0
    path = press_and_lift(lift.push, down=0.4 * share, press=0.4 * share, lift=1.0 * share, after=0.5 * share)
    seal = f'gas={{kind="passive", seal={{rms={surfaces.rms!r}}}}}'
    best = [0.0, np.inf]

    def watch(suction: Suction) -> bool:
        k = int(suction.pressure.argmin()) if suction.cavity_count else -1
        if k >= 0 and suction.pressure[k] < suction.air.atmosphere:
            best[0] = max(best[0], suction.air.atmosphere - float(suction.pressure[k]))
            best[1] = min(best[1], float(suction.seeping()[k].sum()) / suction.h)
        return False

    overrides = changes(lift.cup, resolution, path, lift.partner, mu=surfaces.mu, x=lift.x, more=[seal])
    trace = lead(overrides, after=watch)
    high = float(np.nanmax(trace.pressure)) if np.isfinite(trace.pressure).any() else 0.0
    return LiftOutcome(lifted(trace), float(trace.partner.max()), best[0], best[1], high)


def claims_of(found: dict[tuple[RoughPair, Lift], LiftOutcome]) -> list[Line]:
    """Each lift: on how many of the surfaces it comes out as in the thesis, and what decides."""
    lines: list[Line] = []
    for lift in dict.fromkeys(lift for _, lift in found):
        own = {surfaces: outcome for (surfaces, other), outcome in found.items() if other == lift}
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
    for surfaces in dict.fromkeys(surfaces for surfaces, _ in found):
        both = [outcome.lifted == lift.lifts for (other, lift), outcome in found.items() if other == surfaces]
        lines.append(
            Reported(f"as in the thesis on {_named(surfaces)}", sum(both), "", f"of {len(both)} lifts")
        )
    return lines


def _named(surfaces: RoughPair) -> str:
    return f"{1e6 * surfaces.rms:g} um rms, mu {surfaces.mu:g}"


def _draw(figure: Figure, found: dict[tuple[RoughPair, Lift], LiftOutcome]) -> None:
    axes = figure.subplots()
    names = list(dict.fromkeys(lift for _, lift in found))
    columns = list(dict.fromkeys(surfaces for surfaces, _ in found))
    for (surfaces, lift), outcome in found.items():
        agrees = outcome.lifted == lift.lifts
        axes.plot(
            columns.index(surfaces), -names.index(lift), ls="", marker="o" if outcome.lifted else "x", ms=9,
            mew=2, color=COLOURS["low" if agrees else "paper"],
        )  # fmt: skip
    axes.set_xticks(range(len(columns)), [_named(c).replace(", ", "\n") for c in columns], fontsize=8)
    axes.set_yticks(
        [-k for k in range(len(names))], [f"{lift.figure}: {lift.what}" for lift in names], fontsize=8
    )
    axes.set_xlabel("roughness of cup and partner, friction")
    axes.set_title("o lifted and held, x not; green as in the thesis", loc="left", fontsize=9.5)
    axes.margins(x=0.2)
