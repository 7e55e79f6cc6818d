"""Steps per second of the paper's four models: 002, section V-B, table I and figure 5.

Every model makes the same insertion at both meshes, step by step under a clock, on one core, in turns. The
runs repeat to the bit, so that the least time of a step over the runs is its own and the rest the machine's.
The paper counts on 8.5 to 9.5 times the frequency of its model 1, and 2.2 kHz, with a GPU.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.haptics.clock import make_scratch, now_ns
from palpo.physics.arrays import copy
from palpo.physics.engine.contract import DONE
from palpo.physics.engine.equilibrium import equilibrium
from palpo.physics.engine.rows import free_motion
from palpo.physics.engine.tick import begin, end, feel, find, looks
from palpo.physics.kernels import inlined, kernel
from palpo.physics.systems.snap import book
from palpo.physics.systems.snap_insertion import Insertion
from palpo.physics.systems.snap_model import SnapModel
from palpo.studies.claims import Claim, at_least
from palpo.studies.snap_models import (
    DISTANCES,
    MODELS,
    PAPER_DIMENSIONS,
    Model,
    Row,
    build,
    case_of,
    columns,
    dimensions,
    path_of,
)
from palpo.studies.tables import save_figure, write_csv

KIND = "two-prong"
MESHES = ("coarse", "fine")
STAGES = ("free motion", "collision", "contact forces", "update", "books")
COLOURS = ("#3f9b57", "#e08a2e", "#d64550", "#2f6fc0", "#8a97a8")
REPEATS = 5
WANTED = 5000.0
"""[Hz]"""
TIMES = 10.0
"""Model 4 over model 1."""


def run(out: Path, quick: bool) -> list[Claim]:
    """Frequencies, dimensions and stages as CSV, one figure, a table and the claims."""
    progress = Progress()
    rows: list[Row] = []
    for mesh in MESHES[:1] if quick else MESHES:
        rows += frequencies(mesh, 1 if quick else REPEATS, progress)
    write_csv(out / "frequency.csv", rows)
    save_figure(out / "frequency.png", 3.8, partial(_draw, rows=rows))
    _print(rows)
    return claims_of(rows)


def frequencies(mesh: str, repeats: int, progress: Progress) -> list[Row]:
    """The four models at a mesh."""
    case = case_of(KIND, mesh)
    connector = case.connector
    fields = {kind: DISTANCES[kind](connector) for kind in {model.distance for model in MODELS}}
    path = path_of(connector, 1e-3)
    ns = np.zeros((len(MODELS), repeats, len(path), len(STAGES)), np.int64)
    met = np.zeros((len(MODELS), len(path), 3))
    built: dict[Model, SnapModel] = {}
    for k in range(repeats):
        with progress.stage(f"{mesh} mesh, run {k + 1} of {repeats}"):
            for m, model in enumerate(MODELS):
                built[model] = build(case, model, fields[model.distance])
                timed(built[model], path, ns[m, k], met[m])
    least = ns.min(axis=1)
    steps = least.sum(axis=2)
    return [
        {
            "mesh": mesh,
            "model": model.name,
            "what": model.what,
            "dimensions": dimensions(built[model]),
            "paper": _paper(mesh, model),
            "frequency_Hz": 1e9 / float(steps[m].mean()),
            "p50_us": 1e-3 * float(np.percentile(steps[m], 50)),
            "p99_us": 1e-3 * float(np.percentile(steps[m], 99)),
            "contacts": float(met[m, :, 0].mean()),
            "sweeps": float(met[m, :, 1].mean()),
            "rounds": float(met[m, :, 2].mean()),
            **{f"{s}_us": 1e-3 * float(t) for s, t in zip(STAGES, least[m].mean(axis=0), strict=True)},
        }
        for m, model in enumerate(MODELS)
    ]


def timed(model: SnapModel, path: NDArray, ns: NDArray[np.int64], met: NDArray[np.float64]) -> None:
    """An insertion along path (n, 3) [m] of travel; times of its stages into ns (n, STAGES) [ns], contacts,
    sweeps and rounds into met (n, 3)."""
    run = Insertion(model)
    done = time_steps(model.handle, run.origin + path, run.axes, ns, met, make_scratch())
    if done < len(path):
        raise RuntimeError(f"the insertion broke down after {done} of {len(path)} steps")


@kernel
def time_steps(s, positions, orientation, ns, met, scratch):
    """palpo.physics.systems.snap.step, with a clock after each stage, whose rounds are added up."""
    e = s.engine
    for k in range(positions.shape[0]):
        at, now = ns[k], now_ns(scratch)
        at[:] = 0
        copy(positions[k], s.aim.position)
        copy(orientation, s.aim.orientation)
        code = begin(e)
        now = _add_lap(at, 0, now, scratch)
        while code == DONE and looks(e):
            code = find(e)
            now = _add_lap(at, 1, now, scratch)
            if code == DONE and free_motion(e) == DONE:
                code = equilibrium(e)
            now = _add_lap(at, 2, now, scratch)
        now = _add_lap(at, 1, now, scratch)
        if code != DONE or end(e) != DONE or feel(e) != DONE:
            return k
        now = _add_lap(at, 3, now, scratch)
        book(s)
        _add_lap(at, 4, now, scratch)
        met[k, 0], met[k, 1], met[k, 2] = e.contacts.count[0], e.count[0].sweeps, e.count[0].rounds
    return positions.shape[0]


@inlined
def _add_lap(at, stage, before, scratch):
    now = now_ns(scratch)
    at[stage] += now - before
    return now


def _paper(mesh: str, model: Model) -> str:
    whole, segments, reduced = PAPER_DIMENSIONS[mesh]
    if model.segments == 1:
        return str(whole)
    return " + ".join(map(str, reduced if model.reduced else segments))


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    """What the step is to reach, and what takes the time where it does not."""
    claims: list[Claim] = []
    for mesh in dict.fromkeys(row["mesh"] for row in rows):
        first, *_, last = [row for row in rows if row["mesh"] == mesh]
        most = max(STAGES, key=lambda stage: last[f"{stage}_us"])
        share = 100.0 * last[f"{most}_us"] * 1e-6 * last["frequency_Hz"]
        claims += [
            at_least(
                f"frequency of model 4 over that of model 1, {mesh} mesh",
                last["frequency_Hz"] / first["frequency_Hz"], TIMES, "x", "002, V-B: 8.5 to 9.5 with a GPU",
            ),
            at_least(
                f"frequency of model 4, {mesh} mesh ({most} takes {share:.0f}%)",
                last["frequency_Hz"], WANTED, "Hz", "one core; 002, VI: 2.2 kHz with a GPU",
            ),
        ]  # fmt: skip
    return claims


def _print(rows: Sequence[Row]) -> None:
    heads = ("mesh", "model", "dimensions", "table I", "Hz", "p50 [us]", "p99 [us]", "sweeps", "rounds")
    table = Table(*heads, title="one insertion on one core", title_justify="left")
    names = ("mesh", "model", "dimensions", "paper", "frequency_Hz", "p50_us", "p99_us", "sweeps", "rounds")
    for cells in columns(rows, *names):
        table.add_row(*cells)
    console = Console(stderr=True, highlight=False)
    console.print(table)
    table = Table("mesh", "model", *STAGES, title="mean of a stage [us]", title_justify="left")
    for cells in columns(rows, "mesh", "model", *(f"{stage}_us" for stage in STAGES)):
        table.add_row(*cells)
    console.print(table)


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    left, right = figure.subplots(1, 2)
    meshes = list(dict.fromkeys(row["mesh"] for row in rows))
    for m, mesh in enumerate(meshes):
        own = [row for row in rows if row["mesh"] == mesh]
        at = np.arange(len(own)) + 0.4 * (m - 0.5 * (len(meshes) - 1))
        bars = left.bar(at, [row["frequency_Hz"] for row in own], 0.38, label=f"{mesh} mesh",
                        color=("#2f6fc0", "#9cc0ea")[m])  # fmt: skip
        left.bar_label(bars, fmt="%.0f", fontsize=7.5)
        _stack(right, at, own, labelled=m == 0)
    left.axhline(WANTED, color="#d64550", lw=1.0, ls=(0, (4, 3)), label="5 kHz")
    left.set(title="steps per second (002, figure 5)", ylim=(0.0, None))
    right.set(title="time of a step [us]; left coarse, right fine", ylim=(0.0, None))
    for ax in (left, right):
        ax.set_xticks(range(len(MODELS)), [model.name for model in MODELS])
        ax.title.set_fontsize(9.5)
        ax.legend(fontsize=7.5, frameon=False)


def _stack(ax: Axes, at: NDArray, rows: Sequence[Row], labelled: bool) -> None:
    bottom = np.zeros(len(rows))
    for stage, colour in zip(STAGES, COLOURS, strict=True):
        heights = np.array([row[f"{stage}_us"] for row in rows])
        ax.bar(at, heights, 0.38, bottom=bottom, color=colour, label=stage if labelled else None)
        bottom += heights
