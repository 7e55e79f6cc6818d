"""A tunnel in a cube: thesis 000, figure 5.15.

Two holes in the cube's top are joined inside. A cup over both holds its air and lifts the cube, the tunnel
being a part of the cavity; over one of them air comes in by the other, and no cavity forms. On a rigid cube
the tunnel's own volume is told by the cavity's beside that on a cube without holes.
"""

from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from palpo.studies.claims import Claim, at_least, at_most, close_to
from palpo.studies.suction_runs import (
    BLOCK,
    PUSH,
    THESIS,
    RunTrace,
    changes,
    lead,
    press_and_lift,
    rigid_cube,
    soft_cube,
    spread,
)
from palpo.studies.tables import COLOURS, save_figure, write_csv

SPACING, WIDTH, DEPTH = 16e-3, 6e-3, 20e-3
"""Of the holes [m]; docs/suction.md."""
TUNNEL = f'{{kind="tunnel", holes=2, spacing={SPACING!r}, width={WIDTH!r}, depth={DEPTH!r}}}'
BESIDE = -0.5 * SPACING - 10e-3
"""Where the cup stands over one hole [m]: that is 10 mm from its middle, the other 26 mm."""
MASS = 0.05
LEAST = 0.01
"""Height [m] that counts as lifted, half of the hand's."""
NO_TUNNEL, ONE, BOTH = "no hole", "one hole", "two holes"


SOFT_PUSH = 3e-3
"""Push [m] of the shipped scene `suction-softcube`, whose cube gives way."""


class TunnelCase(NamedTuple):
    """Where a cup stands, on what, and its push [m]."""

    where: str
    soft: bool
    depth: float = PUSH


def run(out: Path, quick: bool) -> list[Claim]:
    """Heights, pressures and volumes as CSV and figure, and the claims."""
    cases = [TunnelCase(where, False) for where in (NO_TUNNEL, ONE, BOTH)]
    if not quick:
        cases += [TunnelCase(where, True, depth) for depth in (PUSH, SOFT_PUSH) for where in (ONE, BOTH)]
    work = partial(lift, 76 if quick else 576)
    traces = dict(zip(cases, spread(work, cases, "cups over a tunnel", quick), strict=True))
    write_csv(
        out / "series.csv",
        [{**case._asdict(), **row} for case, trace in traces.items() for row in trace.table()],
    )
    save_figure(out / "tunnel.png", 5.4, partial(_draw, traces=traces))
    return claims_of(traces)


def lift(resolution: int, case: TunnelCase) -> RunTrace:
    """The small cup presses on the cube and lifts it, or does not."""
    geometry = BLOCK if case.where == NO_TUNNEL else TUNNEL
    partner = soft_cube(geometry) if case.soft else rigid_cube(MASS, geometry)
    x = BESIDE if case.where == ONE else 0.0
    return lead(changes("small", resolution, press_and_lift(case.depth), partner, x=x))


def claims_of(traces: dict[TunnelCase, RunTrace]) -> list[Claim]:
    """The verdict."""
    claims = []
    for case, trace in traces.items():
        kind = f"{'soft' if case.soft else 'rigid'} cube, {1e3 * case.depth:g} mm of push, {case.where}"
        most = float(trace.cavities.max())
        if case.where == BOTH:
            claims.append(at_least(f"{kind}: cavities", most, 1, "", f"{THESIS}, figure 5.15: one"))
        if case.where == ONE:
            claims.append(at_most(f"{kind}: cavities", most, 0, "", f"{THESIS}, figure 5.15: none"))
        if case.where != NO_TUNNEL:
            check = at_least if case.where == BOTH else at_most
            claims.append(
                check(
                    f"{kind}: its height at the end", 1e3 * float(trace.partner[-1]),
                    1e3 * LEAST, "mm", f"{THESIS}, figure 5.15: {'' if case.where == BOTH else 'not '}lifted",
                )
            )  # fmt: skip
    pressed = {case.where: trace.volume[trace.height <= trace.height.min() + 1e-9][-1]
               for case, trace in traces.items() if not case.soft and case.where != ONE}  # fmt: skip
    tunnel = 2.0 * WIDTH**2 * DEPTH + (SPACING - WIDTH) * WIDTH**2
    claims.append(
        close_to(
            "rigid cube: volume that the tunnel adds to the pressed cavity",
            1e9 * float(pressed[BOTH] - pressed[NO_TUNNEL]), 1e9 * tunnel, 10.0, "mm³", "its dimensions",
        )
    )  # fmt: skip
    return claims


def _draw(figure: Figure, traces: dict[TunnelCase, RunTrace]) -> None:
    axes = figure.subplots(3, 1, sharex=True)
    colours = {NO_TUNNEL: COLOURS["faint"], ONE: COLOURS["paper"], BOTH: COLOURS["krylov"]}
    for case, trace in traces.items():
        stroke = ("--" if case.depth == PUSH else ":") if case.soft else "-"
        look = {"color": colours[case.where], "ls": stroke, "lw": 1.4}
        kind = f"soft, {1e3 * case.depth:g} mm of push" if case.soft else "rigid"
        label = f"{case.where}, {kind}"
        axes[0].plot(trace.time, 1e3 * trace.partner, label=label, **look)
        axes[1].plot(trace.time, 1e-3 * trace.pressure, **look)
        axes[2].plot(trace.time, 1e9 * trace.volume, **look)
    axes[0].legend(fontsize=8)
    for ax, label in zip(axes, ("height of the cube [mm]", "p - P_atm [kPa]", "V [mm³]"), strict=True):
        ax.set_ylabel(label)
    axes[2].set_xlabel("time [s]")
