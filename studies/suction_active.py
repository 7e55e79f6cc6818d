"""Cups under a given pressure: thesis 000, section 5.1, figures 5.4 and 5.7.

Each cup stands on a plane, its cavity is brought to the pressure, and it is pulled at 5 mm/s until it lets
go. The largest force is set beside pressure x area of the opening. The thesis's curves jump, because its
cavities end at whole vertices; here both borders are run, on the sealing iso-line and at the vertices.
The jump of a curve is its largest change in a step beyond those of its neighbours, before it peaks.
"""

from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from palpo.physics.mesh.cups import CUPS
from palpo.physics.systems.suction.step import Suction
from palpo.studies.claims import Claim, at_least, at_most, close_to, greatest, smallest
from palpo.studies.suction_runs import CLEARANCE, THESIS, Floats, RunTrace, changes, lead, spread
from palpo.studies.tables import COLOURS, save_figure, write_csv

PRESSURES = (-5e3, -10e3, -15e3, -20e3)
MODELS = ("A20", "A30")
SPEED = 5e-3
"""Of the pull [m/s]."""
DEPTH = 0.3e-3
"""Push before the pump starts [m]: "without pushing it too much"."""
TOUCHED, DRAWN, PULLED = 0.4, 0.8, 1.2
"""When it touches, the pressure is reached, and the pull begins [s]."""
HEIGHT = 12e-3
"""Of the pull [m]."""
SHAPES = {"A20": -6e3, "A30": -11e3}
"""Pressures of the static shapes [Pa], figure 5.4."""


class ActivePull(NamedTuple):
    """One pull."""

    model: str
    pressure: float
    exact: bool


def run(out: Path, quick: bool) -> list[Claim]:
    """Forces over time and shapes as CSV and figures, and the claims."""
    resolution = 76 if quick else 576
    cases = [
        ActivePull(*case) for case in product(MODELS[:1] if quick else MODELS, PRESSURES, (True, False))
        if not quick or case[1] in PRESSURES[1::2]
    ]  # fmt: skip
    traces = dict(zip(cases, spread(partial(pull, resolution), cases, "pulls", quick), strict=True))
    shapes = dict(
        zip(
            SHAPES,
            spread(partial(shape, resolution), SHAPES.items(), "static shapes", quick),
            strict=True,
        )
    )
    write_csv(out / "pulls.csv", [_row(case, trace) for case, trace in traces.items()])
    write_csv(
        out / "forces.csv",
        [
            {**case._asdict(), "time_s": float(t), "hold_N": float(f)}
            for case, trace in traces.items()
            for t, f in zip(trace.time, trace.hold, strict=True)
        ],
    )
    save_figure(out / "forces.png", 3.4 if quick else 6.0, partial(_draw, traces=traces))
    save_figure(out / "shapes.png", 3.2, partial(_draw_shapes, shapes=shapes))
    return claims_of(traces, shapes)


def pull(resolution: int, case: ActivePull) -> RunTrace:
    """Down on the plane, pressure on, up until it has let go."""
    return lead(_changes(case, resolution, HEIGHT), after=_let_go)


def _changes(case: ActivePull, resolution: int, height: float) -> list[str]:
    low = -CLEARANCE - DEPTH
    path = [(0.0, 0.0), (TOUCHED, low), (PULLED, low), (PULLED + (height - low) / SPEED, height)]
    table = f"[[0, 0], [{TOUCHED!r}, 0], [{DRAWN!r}, {case.pressure!r}]]"
    return changes(
        case.model, resolution, path,
        more=[f'gas={{kind="active", table={table}}}', f"refine={str(case.exact).lower()}"],
    )  # fmt: skip


def _let_go(suction: Suction) -> bool:
    return suction.time > PULLED and suction.cavity_count == 0


def shape(resolution: int, item: tuple[str, float]) -> tuple[Floats, Floats]:
    """Nodes (n, 3) [m] at rest, set down, and under the pressure."""
    model, pressure = item
    seen: dict[str, Floats] = {}

    def look(suction: Suction) -> bool:
        body = suction.cups[0].body
        if suction.time <= TOUCHED + 1e-9:
            seen["before"] = body.x.copy()
        seen["after"] = body.x.copy()
        return suction.time > PULLED - suction.h

    lead(_changes(ActivePull(model, pressure, True), resolution, HEIGHT), after=look)
    return seen["before"], seen["after"]


def detach_force(trace: RunTrace) -> float:
    """Largest holding force of the pull [N], without the cup's weight."""
    return float(trace.hold[trace.time > PULLED].max() - trace.hold[0])


def jump(trace: RunTrace) -> float:
    """Largest second difference of the force before its peak, over the peak."""
    f = trace.hold[trace.time > PULLED + 0.05]
    f = f[: int(f.argmax()) - 1]
    return float(np.abs(np.diff(f, 2)).max() / f.max()) if f.size > 3 else np.nan


def ideal(model: str, pressure: float) -> float:
    """Pressure times the area of the cavity's opening [N]."""
    return abs(pressure) * np.pi * CUPS[model].shape.inner ** 2


def _row(case: ActivePull, trace: RunTrace) -> dict[str, object]:
    return {
        **case._asdict(),
        "force_N": detach_force(trace),
        "pressure_area_N": ideal(case.model, case.pressure),
        "jump": jump(trace),
        "let_go_s": float(trace.time[-1] - PULLED),
    }


def claims_of(
    traces: Mapping[ActivePull, RunTrace], shapes: Mapping[str, tuple[Floats, Floats]]
) -> list[Claim]:
    """The verdict."""
    claims = []
    for model in dict.fromkeys(case.model for case in traces):
        own = {case.pressure: trace for case, trace in traces.items() if case.model == model and case.exact}
        rough = {c.pressure: t for c, t in traces.items() if c.model == model and not c.exact}
        forces = [detach_force(own[p]) for p in sorted(own, reverse=True)]
        claims.append(
            at_least(
                f"{model}: least growth of the detach force from one pressure to the next",
                float(np.diff(forces).min()), 0.0, "N", f"{THESIS}, figure 5.7: stronger suction holds more",
            )
        )  # fmt: skip
        claims += [
            close_to(
                f"{model} at {1e-3 * p:g} kPa: detach force against pressure x area",
                detach_force(trace), ideal(model, p), 50.0, "N", "area of the opening",
            )
            for p, trace in own.items()
        ]  # fmt: skip
        claims.append(
            at_most(
                f"{model}: largest jump with borders on the iso-line, of the peak",
                100.0 * greatest(jump(trace) for trace in own.values()), 5.0, "%",
                "no jumps with exact borders",
            )
        )  # fmt: skip
        claims.append(
            at_least(
                f"{model}: jumps at the vertices over those on the iso-line, least of the pressures",
                smallest(jump(rough[p]) / jump(own[p]) for p in own), 1.0, "x",
                f"{THESIS}, 5.1.2: jumps without exact borders",
            )
        )  # fmt: skip
    for model, (before, after) in shapes.items():
        claims.append(
            at_most(
                f"{model} at {1e-3 * SHAPES[model]:g} kPa: mean rise of its wall",
                1e3 * float((after - before)[:, 1].mean()), 0.0, "mm",
                f"{THESIS}, figure 5.4: the wall is drawn in",
            )
        )  # fmt: skip
    return claims


def _draw(figure: Figure, traces: Mapping[ActivePull, RunTrace]) -> None:
    models = list(dict.fromkeys(case.model for case in traces))
    axes = figure.subplots(len(models), 2, sharex=True, sharey="row", squeeze=False)
    colours = [COLOURS[name] for name in ("low", "krylov", "extrapolated", "paper")]
    for case, trace in traces.items():
        ax = axes[models.index(case.model), 0 if case.exact else 1]
        colour = colours[PRESSURES.index(case.pressure)]
        ax.plot(trace.time - PULLED, trace.hold, lw=1.2, color=colour, label=f"{1e-3 * case.pressure:g} kPa")
        ax.axhline(ideal(case.model, case.pressure), color=colour, lw=0.7, ls=":")
    for model, (left, right) in zip(models, axes, strict=True):
        left.set_ylabel("holding force [N]")
        left.set_title(
            f"{model}, {1e-3 * CUPS[model].youngs_modulus:g} kPa: borders on the iso-line",
            loc="left",
            fontsize=9,
        )
        right.set_title("at the vertices; dotted, pressure x area", loc="left", fontsize=9)
        right.legend(fontsize=8)
    for ax in axes[-1]:
        ax.set_xlabel("time since the pull began [s]")


def _draw_shapes(figure: Figure, shapes: Mapping[str, tuple[Floats, Floats]]) -> None:
    axes = figure.subplots(1, len(shapes), sharey=True)
    for ax, (model, (before, after)) in zip(axes, shapes.items(), strict=True):
        for x, colour, label in (
            (before, COLOURS["faint"], "set down"),
            (after, COLOURS["paper"], f"{1e-3 * SHAPES[model]:g} kPa"),
        ):
            radius = 1e3 * np.hypot(x[:, 0], x[:, 2])
            ax.plot(radius, 1e3 * x[:, 1], ls="", marker="o", ms=2.5, color=colour, label=label)
            ax.plot(-radius, 1e3 * x[:, 1], ls="", marker="o", ms=2.5, color=colour)
        ax.set(xlabel="distance from the axis [mm]", aspect="equal")
        ax.set_title(f"{model}: all nodes in the plane of the axis", loc="left", fontsize=9)
        ax.legend(fontsize=8)
    axes[0].set_ylabel("height [mm]")
