"""What the thesis's cups hold, by a model of revolution that is independent of the program's cups.

Cups on a rigid wall (palpo.physics.suction.walled_cup). What a cup holds is decided by its rim: where it
sticks to the wall, the limit is set by the push; where it slides outward, it is not. The largest pressure
that a cup bears while it is pushed follows from its rim, each cup having its own.

Thesis 000, figure 5.14: pushed by 1 mm, the small cup lifts 50 and 100 g and not 200 g, the large one all.
"""

from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from palpo.physics.gas.roughness import RoughSurface, SealTable, seal_of
from palpo.physics.mesh.cups import CUPS, POISSON_RATIO
from palpo.physics.suction.pull_off import HIGHEST, PULL_STEP, Handling, pull_off
from palpo.physics.suction.walled_cup import AIRTIGHT, ATMOSPHERE, BONDED, CupEquilibrium, WalledCup
from palpo.studies.claims import Line, Reported, at_least, at_most, close_to
from palpo.studies.suction_runs import GRAVITY, PUSH, THESIS, spread
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]

SEALINGS = (AIRTIGHT, 1e-4, 5e-4)
"""Gaps of the rim [m] up to which no air passes: the contact's own give, and two that scenes have."""
SHALLOW, DEEP = 1e-4, 3e-3
"""Other push depths [m]."""
COARSE = 5e-4
"""Step of a pull for the map [m]."""
GIVEN = 102e3 - ATMOSPHERE
"""What the scenes' cups bear while they are pushed, all alike [Pa] over the atmosphere."""
FRICTIONS = (0.2, 0.6, 1.0, 2.0, BONDED)
"""Of the map; the last is a rim tied to the wall."""
SMOOTH, ROUGH = 1e-6, 5e-6
"""Root mean square roughness of walls [m]: of a polished plastic and of a cast one."""
WAVES = 50.0
"""Longest wavelength of a wall over its roughness, as of sandblasted plates."""


class RevolvedCase(NamedTuple):
    """What is pulled off the wall."""

    cup: str
    push: float  # [m]
    mu: float = BONDED
    sealing: float = AIRTIGHT  # [m]
    finer: int = 1
    largest: float = 0.0  # pressure over the atmosphere that the rim bears [Pa]: inf leaves it to the rim
    rms: float = 0.0  # roughness of the wall [m]; 0 for one where `sealing` says what is airtight
    pull_step: float = PULL_STEP  # [m]


class RevolvedPull(NamedTuple):
    """A cup pushed, sealed and pulled until it lets go: its states while it is pulled."""

    case: RevolvedCase
    states: list[CupEquilibrium]

    @property
    def limit(self) -> CupEquilibrium:
        """The state with the largest force."""
        return max(self.states, key=lambda state: state.force)

    @property
    def mass(self) -> float:
        """What the cup holds [kg]."""
        return self.limit.force / GRAVITY


@cache
def _seal(cup: str, rms: float) -> SealTable | None:
    modulus = CUPS[cup].youngs_modulus / (1 - POISSON_RATIO**2)
    return seal_of(RoughSurface(rms, WAVES * rms), modulus) if rms else None


def walled(case: RevolvedCase) -> WalledCup:
    """The case's cup, at rest over the wall."""
    design = CUPS[case.cup]
    return WalledCup(
        design.shape, design.youngs_modulus, case.mu, case.sealing, case.finer, _seal(case.cup, case.rms)
    )


def pull(case: RevolvedCase) -> RevolvedPull:
    """Push a cup, and pull it until there is no equilibrium."""
    return RevolvedPull(case, pull_off(walled(case), Handling(case.push, case.largest, case.pull_step)))


def linear_limit(case: RevolvedCase) -> float:
    """The bonded limit for small motions [kg]: with push s, stiffness k, alpha = dV/ds, c = -dV/dp, area A

        m g = A k s / (k (V0 / P0 + c) / alpha - (A - alpha)),

    where the wall no longer presses. It takes the rim to touch all along as it does when it is pushed.
    """
    design, small = CUPS[case.cup], 1e-4
    rest, lifted, sucked = (
        WalledCup(design.shape, design.youngs_modulus, BONDED).step(height, suction, 0.0)
        for height, suction in ((-2 * small, 0.0), (-small, 0.0), (-2 * small, 10.0))
    )
    stiffness = (lifted.force - rest.force) / small
    alpha = (lifted.volume - rest.volume) / small
    give = (rest.volume - sucked.volume) / 10.0
    area = np.pi * design.shape.inner**2
    air = stiffness * (rest.volume / ATMOSPHERE + give) / alpha
    return float(area * stiffness * case.push / (air - (area - alpha)) / GRAVITY)


def own_pressure(cup: str) -> tuple[float, CupEquilibrium]:
    """What a cup's rim bears over the atmosphere [Pa] after PUSH with its air free to go; its state then."""
    walled_cup = walled(RevolvedCase(cup, PUSH, 0.6))
    for k in range(1, 11):
        state = walled_cup.step(-PUSH * k / 10, 0.0, 0.0)
    return walled_cup.largest_pressure(-PUSH, HIGHEST), state


def run(out: Path, quick: bool) -> list[Line]:
    """Limits as CSV, hold curves and maps, and the verdict."""
    bonded = [RevolvedCase(cup, PUSH) for cup in ("small", "large")]
    depths = [RevolvedCase("small", push) for push in (SHALLOW, DEEP)]
    finer = [RevolvedCase("small", PUSH, finer=2)]
    mus = (0.6,) if quick else (0.0, 0.3, 0.6, 1.0, 2.0)
    sliding = [RevolvedCase("small", PUSH, mu, sealing) for mu, sealing in product(mus, SEALINGS)]
    pushed = (
        [] if quick else [RevolvedCase("small", push, 0.6, SEALINGS[-1]) for push in (SHALLOW, 3e-4, DEEP)]
    )
    rough = [RevolvedCase("small", PUSH, rms=rms, largest=np.inf) for rms in (SMOOTH, ROUGH)]
    squares = [square for square in map_cases() if not quick or square.mu == BONDED]
    cases = list(dict.fromkeys([*bonded, *depths, *finer, *sliding, *pushed, *rough, *squares]))
    pulls = dict(zip(cases, spread(pull, cases, "pulled off the wall", quick), strict=True))
    estimates = {case: linear_limit(case) for case in bonded}
    borne = {cup: own_pressure(cup) for cup in ("small", "large", "round")}
    write_csv(out / "limits.csv", [_row(p) for p in pulls.values()])
    write_csv(
        out / "curves.csv",
        [p.case._asdict() | state._asdict() for p in pulls.values() for state in p.states],
    )
    save_figure(out / "hold.png", 3.6, partial(_draw_hold, pulls=pulls))
    if not quick:
        save_figure(out / "map.png", 6.4, partial(_draw_map, pulls=pulls))
    return [
        *_bonded_claims(pulls, bonded, finer[0], estimates), *_sliding_lines(pulls, sliding),
        *_borne_lines(borne), *_rough_lines(pulls, rough),
    ]  # fmt: skip


def map_cases() -> list[RevolvedCase]:
    """Both cups of figure 5.14 over mu, by what is airtight and by what their rims bear while pushed."""
    columns = [(sealing, 0.0, 0.0) for sealing in SEALINGS]
    columns += [(AIRTIGHT, GIVEN, 0.0), (AIRTIGHT, np.inf, 0.0), (AIRTIGHT, np.inf, ROUGH)]
    return [
        RevolvedCase(cup, PUSH, mu, sealing, 1, largest, rms, COARSE)
        for cup, mu, (sealing, largest, rms) in product(("small", "large"), FRICTIONS, columns)
    ]


def _borne_lines(borne: dict[str, tuple[float, CupEquilibrium]]) -> list[Line]:
    return [
        Reported(
            f"largest pressure that the {cup} cup's rim bears at {1e3 * PUSH:g} mm", pressure, "Pa",
            f"over the atmosphere; scenes have {GIVEN:g}. Open, its rim bears {state.pressed:.2g} N",
        )
        for cup, (pressure, state) in borne.items()
    ]  # fmt: skip


def _rough_lines(pulls: dict[RevolvedCase, RevolvedPull], rough: list[RevolvedCase]) -> list[Line]:
    return [
        Reported(
            f"small cup bonded on a wall of {1e6 * case.rms:g} um rms, sealed by flow",
            1e3 * pulls[case].mass, "g",
            f"leaks {2e12 * pulls[case].states[0].conductance:.3g} mm3/s per kPa when pushed",
        )
        for case in rough
    ]  # fmt: skip


def _row(p: RevolvedPull) -> dict[str, float | str | bool]:
    at = p.limit
    return p.case._asdict() | {
        "limit_kg": p.mass, "height_m": at.height, "suction_Pa": at.suction, "rim_N": at.pressed,
        "border": at.border, "slides": at.slides,
    }  # fmt: skip


def _bonded_claims(
    pulls: dict[RevolvedCase, RevolvedPull],
    bonded: list[RevolvedCase],
    finer: RevolvedCase,
    estimates: dict[RevolvedCase, float],
) -> list[Line]:
    small, large = (pulls[case].mass for case in bonded)
    shown = f"{THESIS}, figure 5.14, {1e3 * PUSH:g} mm"
    lines: list[Line] = [
        at_least("bonded rim: the small cup holds", 1e3 * small, 100.0, "g", f"{shown}: lifts 100 g"),
        at_most("bonded rim: the small cup holds", 1e3 * small, 200.0, "g", f"{shown}: does not lift 200 g"),
        at_least("bonded rim: the large cup holds", 1e3 * large, 200.0, "g", f"{shown}: lifts 200 g"),
        close_to(
            "bonded limit, elements half as long over these", pulls[finer].mass / small, 1.0, 3.0, "",
            "the mesh does not decide it",
        ),
    ]  # fmt: skip
    shallow = RevolvedCase("small", SHALLOW)
    per_mm = {
        case: pulls[case].mass / case.push for case in (shallow, bonded[0], RevolvedCase("small", DEEP))
    }
    lines += [
        Reported(
            f"bonded limit of the {case.cup} cup for small motions at {1e3 * case.push:g} mm",
            1e3 * estimates[case], "g", f"computed, with a rim that may roll: {1e3 * pulls[case].mass:.0f} g",
        )
        for case in estimates
    ]  # fmt: skip
    lines += [
        Reported(f"bonded limit per mm of push at {1e3 * case.push:g} mm", value, "g/mm", "not proportional")
        for case, value in per_mm.items()
    ]
    return lines


def _sliding_lines(pulls: dict[RevolvedCase, RevolvedPull], sliding: list[RevolvedCase]) -> list[Line]:
    return [
        Reported(
            f"small cup, {1e3 * case.push:g} mm, mu {case.mu:g}, airtight to {1e3 * case.sealing:g} mm",
            1e3 * pulls[case].mass, "g",
            f"rim {'slides' if pulls[case].limit.slides else 'sticks'}, "
            f"{1e-3 * pulls[case].limit.suction:.1f} kPa",
        )
        for case in sliding
    ]  # fmt: skip


def _draw_hold(figure: Figure, pulls: dict[RevolvedCase, RevolvedPull]) -> None:
    left, right = figure.subplots(1, 2)
    for case in (RevolvedCase("small", PUSH), RevolvedCase("large", PUSH)):
        _curve(left, pulls[case], case.cup)
    for mass in (50, 100, 200):
        left.axhline(mass, color=COLOURS["faint"], lw=0.8, ls=":")
    for width, sealing in zip((3.4, 2.2, 1.2), SEALINGS[::-1], strict=True):
        p = pulls[RevolvedCase("small", PUSH, 0.6, sealing)]
        _curve(right, p, f"mu 0.6, airtight to {1e3 * sealing:g} mm", lw=width)
    _curve(right, pulls[RevolvedCase("small", PUSH)], "bonded", color=COLOURS["monolithic"])
    for axes, title in ((left, "Rim bonded"), (right, "Small cup, rim free to slide")):
        axes.set(
            title=f"{title}, {1e3 * PUSH:g} mm of push", xlabel="stem over the wall [mm]", ylabel="holds [g]"
        )
        axes.legend(fontsize=8)


def _curve(axes: Axes, p: RevolvedPull, label: str, **look: Any) -> None:
    height, held = [1e3 * s.height for s in p.states], [1e3 * s.force / GRAVITY for s in p.states]
    axes.plot(height, held, label=label, marker="o", markevery=[-1], ms=5, **look)


def _draw_map(figure: Figure, pulls: dict[RevolvedCase, RevolvedPull]) -> None:
    """The limit over mu and the two ways to seal; the thesis's points beside each."""
    grid = figure.subplots(2, 2, sharex="col")
    flow = f"{1e6 * ROUGH:g} um wall,\nflow"
    columns = [
        (
            [f"airtight to\n{1e3 * sealing:g} mm" for sealing in SEALINGS],
            "by what is airtight, air free to go",
        ),
        (["air free", f"bears\n{GIVEN:.0f} Pa", "what its\nrim bears", flow], "by what its rim bears"),
    ]
    for row, cup in enumerate(("small", "large")):
        squares = [case for case in map_cases() if case.cup == cup]
        limits = np.array([1e3 * pulls[case].mass for case in squares]).reshape(len(FRICTIONS), -1)
        for column, (picked, (labels, title)) in enumerate(
            zip(([0, 1, 2], [0, 3, 4, 5]), columns, strict=True)
        ):
            axes, shown = grid[row, column], limits[:, picked]
            axes.imshow(np.log10(shown), cmap="viridis", aspect="auto", vmin=1.7, vmax=3.6)
            for (i, j), mass in np.ndenumerate(shown):
                lifts = ", ".join(f"{m}" for m in (50, 100, 200) if m <= mass) or "none"
                axes.text(j, i, f"{mass:.0f} g\nlifts {lifts}", ha="center", va="center", fontsize=7,
                          color="white" if mass < 700 else "black")  # fmt: skip
            wanted = (100.0, 200.0) if cup == "small" else (200.0, np.inf)
            for i, j in zip(*np.nonzero((shown >= wanted[0]) & (shown < wanted[1])), strict=True):
                axes.add_patch(Rectangle((j - 0.48, i - 0.47), 0.96, 0.94, fill=False, ec="#d64550", lw=2))
            axes.set_xticks(range(len(labels)), labels, fontsize=8)
            axes.set_yticks(
                range(len(FRICTIONS)), ["bonded" if np.isinf(mu) else f"mu {mu:g}" for mu in FRICTIONS]
            )
            axes.set_title(f"{cup} cup, {1e3 * PUSH:g} mm: {title}", loc="left", fontsize=9)
            axes.grid(False)
    figure.suptitle(
        "Framed in red: as figure 5.14 (small lifts 50 and 100, not 200 g; large all)", fontsize=9
    )
