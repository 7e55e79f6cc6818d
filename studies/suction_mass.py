"""The mass that a cup lifts: thesis 000, figure 5.14.

What a cup holds is set by the air that the push drove out, so the limit is a map: over push depth and
friction for both cups, over friction and how the rim seals, over the mesh and over the step. Each of its
points is one run: the cup is pressed on a cube, lifts it, and the cube's weight then grows by a share of
itself in each step until it falls. The last weight under which the cavity was shut is the limit, or 5 kg
where it never falls: beyond that the strains are far out of the linear law's range anyway. The force plots
take the thesis's masses and its times at the one push depth that docs/suction.md fixed beforehand for both
cups, 1 mm.
"""

from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from palpo.physics.systems.suction.step import Suction
from palpo.studies.claims import Claim, Line, Reported, at_least, at_most, close_to
from palpo.studies.suction_runs import (
    GRAVITY,
    PUSH,
    RESOLUTIONS,
    SIDE,
    THESIS,
    RunTrace,
    changes,
    lead,
    lifted,
    partner_height,
    press_and_lift,
    rigid_cube,
    spread,
)
from palpo.studies.tables import COLOURS, save_figure, write_csv

Row = dict[str, Any]

CUPS = ("small", "large")
MASSES = (0.05, 0.1, 0.2)
"""Of the thesis's cubes [kg]."""
MU = 0.6
RATE = 100.0
DEPTHS = (0.1e-3, 0.3e-3, 1e-3, 2e-3, 3e-3, 4e-3)
MUS = (0.0, 0.05, 0.2, 0.6, 2.0, 10.0)
"""The last holds all that presses: a rim that is bonded as long as it bears."""
SEALED_MUS = MUS[2:]
SEALING, LARGEST = 0.5e-3, 102e3
"""Gap [m] that counts as airtight and P_max [Pa] of the thesis's seal; docs/suction.md."""
SEALS = ((SEALING, LARGEST), (0.3e-3, LARGEST), (0.15e-3, LARGEST), (SEALING, 101.4e3), (SEALING, 110e3))
"""Both, one changed at a time."""
RATES = (50.0, 100.0, 200.0, 500.0)
MAP_RESOLUTION = 363
"""Mesh of the maps over depth, friction and seal: the coarsest whose cup is within 5% of its stiffness."""
MESHES = (76, 125, 203, 363, 576)
MESH_DEPTHS = (0.3e-3, 1e-3, 3e-3)
"""Depths at which mesh and step are varied."""
LIGHT = 0.05
"""Mass of the cube [kg] whose weight grows, from a fifth of its own."""
LEAST, MOST = 0.01, 40.0
"""Between which the load is looked for [kg]; what holds the most is a lower bound."""
CLEAR, OFF = 0.15, 1e-3
"""How high the cube is lifted and how far above the ground it still counts as held [m]: a cup stretches by
centimetres, and once the cube stands again the ground bears it."""
GROWTH = 1.5
"""Per second, as an exponent: 1.5% in a step of 10 ms."""


class Point(NamedTuple):
    """A point of the maps."""

    cup: str
    resolution: int
    depth: float
    mu: float
    hz: float
    sealing: float = SEALING  # [m]
    largest: float = LARGEST  # [Pa]

    @property
    def seal(self) -> tuple[float, float]:
        """Gap that counts as airtight [m] and P_max [Pa]."""
        return self.sealing, self.largest


def run(out: Path, quick: bool) -> list[Line]:
    """Limits as CSV and maps, the force plots, and the claims."""
    points = list(dict.fromkeys(_points(quick)))
    limits = dict(zip(points, spread(limit_mass, points, "limit masses", quick), strict=True))
    write_csv(out / "limits.csv", [{**point._asdict(), "limit_kg": kg} for point, kg in limits.items()])
    resolution = RESOLUTIONS[0] if quick else RESOLUTIONS[-1]
    cases = list(product(CUPS, MASSES))
    traces = dict(
        zip(cases, spread(partial(lift, resolution, quick), cases, "force over time", quick), strict=True)
    )
    write_csv(
        out / "forces.csv",
        [
            {"cup": cup, "mass_kg": mass, "time_s": float(t), "hold_N": float(f), "partner_m": float(y)}
            for (cup, mass), trace in traces.items()
            for t, f, y in zip(trace.time, trace.hold, trace.partner, strict=True)
        ],
    )
    save_figure(out / "map.png", 3.8, partial(_draw_map, limits=limits))
    save_figure(out / "mesh.png", 3.4, partial(_draw_mesh, limits=limits))
    if not quick:
        save_figure(out / "seal.png", 5.6, partial(_draw_seals, limits=limits))
    save_figure(out / "forces.png", 5.4, partial(_draw_forces, traces=traces))
    kept = off_a_wall(RESOLUTIONS[0] if quick else MAP_RESOLUTION, 0.0)
    off = Reported(
        f"small cup without friction at {1e3 * PUSH:g} mm, off a wall that stays", 1e3 * kept, "g",
        "a cube that hangs by it slides off sideways at a tenth of that",
    )  # fmt: skip
    return [*claims_of(limits, traces, resolution), off]


def _points(quick: bool) -> Iterable[Point]:
    if quick:
        return [Point(cup, 76, depth, MU, RATE) for cup in CUPS for depth in (PUSH,)]
    maps = [Point(cup, MAP_RESOLUTION, d, mu, RATE) for cup, d, mu in product(CUPS, DEPTHS, MUS)]
    meshes = [Point(cup, n, d, MU, RATE) for cup, d, n in product(CUPS, MESH_DEPTHS, MESHES)]
    steps = [Point(cup, MAP_RESOLUTION, d, MU, hz) for cup, d, hz in product(CUPS, MESH_DEPTHS, RATES)]
    seals = [
        Point(cup, MAP_RESOLUTION, PUSH, mu, RATE, *seal)
        for cup, mu, seal in product(CUPS, SEALED_MUS, SEALS)
    ]
    return [*maps, *seals, *meshes, *steps]


def limit_mass(point: Point) -> float:
    """Largest mass [kg] that the cup holds; 0 where it lifts not even the least."""
    path = press_and_lift(point.depth, down=0.3, press=0.3, rest=0.1, lift=1.0, after=0.1, height=CLEAR)
    start, end = path[-1][0], path[-1][0] + np.log(MOST / LEAST) / GROWTH
    load = [LEAST, 0.0]  # now, and the last that was held
    stands = -0.5 * SIDE  # where the cube's centre is at first

    def grow(suction: Suction) -> None:
        load[0] = LEAST * np.exp(GROWTH * max(0.0, suction.time - start))
        suction.partner.body.gravity[1] = -GRAVITY * load[0] / LIGHT  # type: ignore[attr-defined]

    def falls(suction: Suction) -> bool:
        if suction.time < start:
            return False
        if not suction.cavity_count or partner_height(suction) < stands + OFF:
            return True
        load[1] = load[0]
        return False

    overrides = changes(
        point.cup, point.resolution, [*path, (end, path[-1][1])], rigid_cube(LIGHT), hz=point.hz, mu=point.mu,
        more=[f"contact.sealing={point.sealing!r}", f"gas.max_pressure={point.largest!r}"],
    )  # fmt: skip
    lead(overrides, grow, falls)
    return float(load[1])


def off_a_wall(resolution: int, mu: float) -> float:
    """What the small cup holds [kg] when it is pulled off a wall that does not move."""
    path = press_and_lift(PUSH, lift=4.0, height=0.018)
    hold = lead(changes("small", resolution, path, mu=mu)).hold
    return float(hold.max() - hold[0]) / GRAVITY


def lift(resolution: int, quick: bool, case: tuple[str, float]) -> RunTrace:
    """A cup lifts a cube: 2 s down, 2 s pressed, 2 s up, as in the thesis; a third of that where quick."""
    cup, mass = case
    share = 0.2 if quick else 1.0
    path = press_and_lift(
        PUSH, down=2.0 * share, press=1.8 * share, rest=0.2 * share, lift=2.0 * share, after=0.5 * share
    )
    return lead(changes(cup, resolution, path, rigid_cube(mass), mu=MU))


def claims_of(
    limits: dict[Point, float], traces: dict[tuple[str, float], RunTrace], resolution: int
) -> list[Claim]:
    """The verdict."""
    claims = []
    for (cup, mass), trace in traces.items():
        wanted = cup == "large" or mass < 0.2
        check = at_least if wanted else at_most
        claims.append(
            check(
                f"{cup} cup, {1e3 * mass:g} g at {1e3 * PUSH:g} mm, {resolution} nodes: the cube rose",
                1e3 * float(trace.partner[-1]), 10.0 if wanted else 1.0, "mm",
                f"{THESIS}, figure 5.14: {'lifted' if wanted else 'not lifted'}",
            )
        )  # fmt: skip
    plain = {point: kg for point, kg in limits.items() if point.seal == SEALS[0]}
    own = {point: kg for point, kg in plain.items() if (point.mu, point.hz) == (MU, RATE)}
    finest = max(point.resolution for point in own if point.depth == PUSH)
    for cup, words in (("small", "100 to 200 g"), ("large", "at least 200 g")):
        kg = own[Point(cup, finest, PUSH, MU, RATE)]
        claims.append(
            Claim(
                f"limit mass of the {cup} cup at {1e3 * PUSH:g} mm, mu {MU:g}, {finest} nodes", 1e3 * kg,
                "g", f"{words} ({THESIS}, figure 5.14)", _as_in_thesis(cup, kg),
            )
        )  # fmt: skip
    pairs = {
        point: kg
        for point, kg in limits.items()
        if point.cup == "small" and _as_in_thesis("small", kg)
        and _as_in_thesis("large", limits[point._replace(cup="large")])
    }  # fmt: skip
    claims.append(
        at_least(
            "share of the points of depth, mu, seal, mesh and step at which both cups do as in the thesis",
            200.0 * len(pairs) / len(limits), 1.0, "%", "one depth and one mu for both must be possible",
        )
    )  # fmt: skip
    by_depth = {cup: _over_depth(own, cup) for cup in CUPS}
    claims.append(
        at_least(
            "limit of the large cup over that of the small one, least over the depths",
            min(by_depth["large"][d] / max(kg, 1e-9) for d, kg in by_depth["small"].items()), 1.0, "",
            f"{THESIS}, 5.2.2: the larger cavity holds more",
        )
    )  # fmt: skip
    claims += _about_depth(by_depth["small"])
    return claims


def _as_in_thesis(cup: str, kg: float) -> bool:
    """Lifts 50 and 100 g but not 200 g; the large cup all of them."""
    return MASSES[1] <= kg < MASSES[2] if cup == "small" else kg >= MASSES[2]


def _about_depth(limits: dict[float, float]) -> list[Claim]:
    """The small cup against the axisymmetric estimate of EQUATIONS.md, section 4."""
    estimates = {0.3e-3: 0.07, 1e-3: 0.25, 3e-3: 0.78}
    return [
        close_to(
            f"limit of the small cup at {1e3 * depth:g} mm of push", 1e3 * limits[depth], 1e3 * estimate,
            50.0, "g", "axisymmetric estimate with a sticking rim, EQUATIONS.md, 4",
        )
        for depth, estimate in estimates.items()
        if depth in limits
    ]  # fmt: skip


def _over_depth(limits: dict[Point, float], cup: str) -> dict[float, float]:
    """Limits of a cup over the depths, on the mesh with the most of them."""
    own = [point for point in limits if point.cup == cup]
    counts = {n: sum(point.resolution == n for point in own) for n in {point.resolution for point in own}}
    mesh = max(counts, key=lambda n: counts[n])
    return {point.depth: limits[point] for point in own if point.resolution == mesh}


def _draw_map(figure: Figure, limits: dict[Point, float]) -> None:
    axes = figure.subplots(1, 2, sharey=True)
    mesh = max({point.resolution for point in limits if point.hz == RATE}, key=lambda n: sum(
        point.resolution == n for point in limits
    ))  # fmt: skip
    for ax, cup in zip(axes, CUPS, strict=True):
        own = {
            p: kg for p, kg in limits.items()
            if (p.cup, p.resolution, p.hz, p.seal) == (cup, mesh, RATE, SEALS[0])
        }  # fmt: skip
        mus = sorted({point.mu for point in own})
        for k, mu in enumerate(mus):
            line = sorted((p.depth, kg) for p, kg in own.items() if p.mu == mu)
            ax.plot(
                [1e3 * d for d, _ in line], [1e3 * max(kg, 1e-3) for _, kg in line], marker="o", ms=3,
                lw=2.0 if mu == MU else 1.1, color=_shade(k, len(mus)), label=f"mu {mu:g}",
            )  # fmt: skip
        for mass in MASSES:
            kept = cup == "large" or mass < 0.2
            ax.axhline(1e3 * mass, color=COLOURS["low" if kept else "paper"], lw=0.8, ls=":")
        ax.axvline(1e3 * PUSH, color=COLOURS["faint"], lw=0.8, ls=":")
        ax.set(xscale="log", yscale="log", xlabel="push depth [mm]")
        ax.set_title(
            f"{cup} cup, {mesh} nodes; green: lifted in the thesis", loc="left", fontsize=9
        )  # fmt: skip
    axes[0].set_ylabel("limit mass [g]")
    axes[0].set_ylim(10.0, 6000.0)
    axes[1].legend(fontsize=8)


def _shade(k: int, n: int) -> tuple[float, float, float]:
    """From pale to dark blue."""
    share = (k + 1) / n
    return (0.75 - 0.65 * share, 0.85 - 0.6 * share, 0.95 - 0.4 * share)


def _draw_mesh(figure: Figure, limits: dict[Point, float]) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    for cup, stroke in zip(CUPS, ("-", "--"), strict=True):
        for k, depth in enumerate(MESH_DEPTHS):
            own = {
                p: kg for p, kg in limits.items()
                if (p.cup, p.depth, p.mu, p.seal) == (cup, depth, MU, SEALS[0])
            }  # fmt: skip
            meshes = sorted((p.resolution, kg) for p, kg in own.items() if p.hz == RATE)
            steps = sorted((1e3 / p.hz, kg) for p, kg in own.items() if p.resolution == MAP_RESOLUTION)
            for ax, line in ((left, meshes), (right, steps)):
                ax.plot(
                    [x for x, _ in line], [1e3 * max(kg, 1e-3) for _, kg in line], color=_shade(k, 3),
                    ls=stroke, marker="o", ms=3, lw=1.3, label=f"{cup}, {1e3 * depth:g} mm",
                )  # fmt: skip
    left.set(yscale="log", xlabel="nodes of the mesh", ylabel="limit mass [g]", ylim=(10.0, 6000.0))
    right.set(xscale="log", xlabel=f"step [ms], {MAP_RESOLUTION} nodes")
    right.minorticks_off()
    right.set_xticks([2, 5, 10, 20], ["2", "5", "10", "20"])
    right.legend(fontsize=7.5, ncols=2)


def _draw_seals(figure: Figure, limits: dict[Point, float]) -> None:
    """Limits at PUSH over mu and how the rim seals; framed where they are as in the thesis."""
    labels = [f"airtight to\n{1e3 * gap:g} mm,\nbears {most - 101_325.0:.0f} Pa" for gap, most in SEALS]
    for axes, cup in zip(figure.subplots(2, 1, sharex=True), CUPS, strict=True):
        shown = np.array(
            [
                [1e3 * limits[Point(cup, MAP_RESOLUTION, PUSH, mu, RATE, *seal)] for seal in SEALS]
                for mu in SEALED_MUS
            ]
        )
        axes.imshow(np.log10(np.maximum(shown, 1.0)), cmap="viridis", aspect="auto", vmin=1.7, vmax=3.6)
        for (i, j), mass in np.ndenumerate(shown):
            axes.text(j, i, f"{mass:.0f} g", ha="center", va="center", fontsize=8,
                      color="white" if mass < 700 else "black")  # fmt: skip
            if _as_in_thesis(cup, 1e-3 * mass):
                axes.add_patch(Rectangle((j - 0.48, i - 0.47), 0.96, 0.94, fill=False, ec="#d64550", lw=2))
        axes.set_xticks(range(len(SEALS)), labels, fontsize=8)
        axes.set_yticks(range(len(SEALED_MUS)), [f"mu {mu:g}" for mu in SEALED_MUS])
        axes.set_title(
            f"{cup} cup, {1e3 * PUSH:g} mm of push: limit mass; framed as figure 5.14", loc="left", fontsize=9
        )
        axes.grid(False)


def _draw_forces(figure: Figure, traces: dict[tuple[str, float], RunTrace]) -> None:
    axes = figure.subplots(2, 1, sharex=True)
    for ax, cup in zip(axes, CUPS, strict=True):
        for k, mass in enumerate(MASSES):
            trace = traces[cup, mass]
            end = "lifted" if lifted(trace) else "not lifted"
            ax.plot(trace.time, trace.hold, lw=1.3, color=_shade(k, 3), label=f"{1e3 * mass:g} g, {end}")
        ax.set_ylabel(f"{cup} cup: force [N]")
        ax.legend(fontsize=8, loc="upper left")
    axes[0].set_title(f"pressed by {1e3 * PUSH:g} mm", loc="left", fontsize=9.5)
    axes[1].set_xlabel("time [s]")
