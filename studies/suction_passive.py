"""Flattened cups on pipes: thesis 000, section 5.2.1, table 5.1, figure 5.11.

A robot presses cups of silicone on pipes of 40 to 101 mm at 10 mm/s until they are flattened, waits, and
pulls at the same speed. The thesis measured the forces and could not simulate them: flattened, its cavities
were lost. Here a flattened cavity keeps its residual volume and its air. The measured curves are in a figure
only, so what is held against them is the trend that the text reports: the stronger the curvature, the weaker
the suction; and that the big cup, wider than the narrowest pipe, cannot seal it.
"""

from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from palpo.physics.mesh.cups import CUPS
from palpo.physics.systems.suction.step import Suction
from palpo.studies.claims import Claim, at_least, at_most
from palpo.studies.suction_runs import CLEARANCE, THESIS, RunTrace, changes, largest, lead, spread
from palpo.studies.tables import COLOURS, save_figure, write_csv

MODELS = ("S10", "S20", "S30", "B20")
DIAMETERS = (0.040, 0.050, 0.063, 0.101)
SPEED = 10e-3
"""Down and up [m/s]."""
REST = 0.5
"""Pause when flattened [s]."""
OVER = 1e-3
"""Push [m] beyond the cavity's height, at which its roof would meet the pipe's crown."""
UP = 8e-3
"""Height [m] up to which it is pulled."""
LENGTH = 0.08
CELL = 2e-3
"""Longest edge of the pipe's triangles around it [m]."""
SEALED = 0.05
"""Share of the force on the widest pipe from which a cup counts as sealed."""


def run(out: Path, quick: bool) -> list[Claim]:
    """Forces over time as CSV and figures, and the claims."""
    models = ("S20", "B20") if quick else MODELS
    cases = list(product(models, DIAMETERS[::3] if quick else DIAMETERS))
    work = partial(pull, 203 if quick else 576)
    traces = dict(zip(cases, spread(work, cases, "cups on pipes", quick), strict=True))
    write_csv(
        out / "pulls.csv",
        [
            {
                "cup": model,
                "pipe_m": pipe,
                "force_N": detach_force(trace),
                "press_N": float(-trace.hold.min()),
                "flattened": bool(trace.flat.any()),
                "sealed_s": float(np.ptp(trace.time[trace.cavities > 0])) if trace.cavities.any() else 0.0,
                "strongest_suction_Pa": largest(-trace.pressure),
            }
            for (model, pipe), trace in traces.items()
        ],
    )
    write_csv(
        out / "series.csv",
        [
            {"cup": model, "pipe_m": pipe, **row}
            for (model, pipe), trace in traces.items()
            for row in trace.table()
        ],
    )
    save_figure(out / "forces.png", 5.6, partial(_draw, traces=traces))
    save_figure(out / "trend.png", 3.2, partial(_draw_trend, traces=traces))
    return claims_of(traces)


def pull(resolution: int, case: tuple[str, float]) -> RunTrace:
    """Down until the roof is pressed on the pipe's crown, a pause, and up until it has let go."""
    model, pipe = case
    low = -CLEARANCE - CUPS[model].shape.height - OVER
    down, up = -low / SPEED, (UP - low) / SPEED
    path = [(0.0, 0.0), (down, low), (down + REST, low), (down + REST + up, UP)]
    around = int(np.ceil(np.pi * pipe / CELL))
    partner = (
        f'{{name="partner", kind="mesh", placement={{position=[0, {-0.5 * pipe!r}, 0]}}, '
        f'geometry={{kind="cylinder", axis="z", radius={0.5 * pipe!r}, length={LENGTH!r}, '
        f"around={around}, along=24}}}}"
    )

    def let_go(suction: Suction) -> bool:
        return suction.time > down + REST + 0.2 and not len(suction.solved) and not suction.cavity_count

    return lead(changes(model, resolution, path, partner), after=let_go)


def detach_force(trace: RunTrace) -> float:
    """Largest pull [N], without the cup's weight."""
    return float(trace.hold.max() - trace.hold[0])


def claims_of(traces: dict[tuple[str, float], RunTrace]) -> list[Claim]:
    """The verdict."""
    claims = []
    widest = max(pipe for _, pipe in traces)
    narrowest = min(pipe for _, pipe in traces)
    for model in dict.fromkeys(model for model, _ in traces):
        forces = [detach_force(trace) for (name, _), trace in traces.items() if name == model]
        claims += [
            at_most(
                f"{model}: largest loss of detach force from one pipe to the next wider one, of the widest's",
                100.0 * float(-np.diff(forces).min() / forces[-1]), 1.0, "%",
                f"{THESIS}, 5.2.1: more curvature, less suction; a step of the pull changes it by about 1%",
            ),
            at_least(
                f"{model}: detach force on {1e3 * widest:g} mm over that on {1e3 * narrowest:g} mm",
                forces[-1] / forces[0], 1.0, "x", f"{THESIS}, 5.2.1",
            ),
        ]  # fmt: skip
        trace = traces[model, widest]
        pressed = trace.height <= trace.height.min() + 1e-9
        claims += [
            at_most(
                f"{model} on {1e3 * widest:g} mm: least share of its volume, flattened",
                100.0 * float(np.nanmin(trace.volume) / np.nanmax(trace.volume)), 25.0, "%",
                "its roof and wall lie on the pipe",
            ),
            at_most(
                f"{model} on {1e3 * widest:g} mm: flattened steps that lost the cavity or its air",
                int((pressed & ~(trace.amount > 0.0)).sum()), 0, "", "the thesis loses it there, 5.2.1",
            ),
        ]  # fmt: skip
    if ("B20", narrowest) in traces:
        claims.append(
            at_most(
                f"B20 on {1e3 * narrowest:g} mm: detach force over that on {1e3 * widest:g} mm",
                100.0 * detach_force(traces["B20", narrowest]) / detach_force(traces["B20", widest]),
                100.0 * SEALED, "%", "46 mm of rim cannot seal a pipe of 40 mm",
            )
        )  # fmt: skip
    return claims


def _draw(figure: Figure, traces: dict[tuple[str, float], RunTrace]) -> None:
    models = list(dict.fromkeys(model for model, _ in traces))
    axes = figure.subplots(-(-len(models) // 2), 2, sharex=True, squeeze=False).ravel()
    colours = [COLOURS[name] for name in ("paper", "extrapolated", "low", "krylov")]
    for (model, pipe), trace in traces.items():
        ax = axes[models.index(model)]
        ax.plot(
            trace.time, trace.hold, lw=1.2, color=colours[DIAMETERS.index(pipe)], label=f"{1e3 * pipe:g} mm"
        )
    for ax, model in zip(axes, models, strict=False):
        ax.set_title(f"{model}, {1e-3 * CUPS[model].youngs_modulus:g} kPa", loc="left", fontsize=9.5)
        ax.set(xlabel="time [s]", ylabel="force [N]")
        ax.axhline(0.0, color=COLOURS["faint"], lw=0.8)
    axes[0].legend(fontsize=8, title="pipe", title_fontsize=8)


def _draw_trend(figure: Figure, traces: dict[tuple[str, float], RunTrace]) -> None:
    ax = figure.subplots()
    for model in dict.fromkeys(model for model, _ in traces):
        own = [(2.0 / pipe, detach_force(trace)) for (name, pipe), trace in traces.items() if name == model]
        ax.plot(
            *zip(*own, strict=True), marker="o", ms=4, lw=1.3, ls="--" if model == "B20" else "-", label=model
        )
    ax.set(xlabel="curvature of the pipe [1/m]", ylabel="detach force [N]")
    ax.legend(fontsize=8)
