"""Steps per second of the paper's four models and of the scene: 002, section V-B, table I and figure 5.

Every model makes the same insertion, step by step under a clock, on one core, in turns. On a third mesh, on
which statics have converged, the scene's reduction stands beside the whole socket: balanced bases want all
vibration modes, which is hours there. The whole socket has a sparse factor, as nobody would give it less. The
runs repeat to the bit, so that the least time of a step over the runs is its own and the rest the machine's.
The paper counts on 8.5 to 9.5 times the frequency of its model 1, and 2.2 kHz, with a GPU.
"""

from collections.abc import Sequence
from dataclasses import replace
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
from palpo.physics.collision.distance_field import DistanceField
from palpo.physics.contract.stages import DONE
from palpo.physics.engine.equilibrium import equilibrium
from palpo.physics.engine.rows import free_motion
from palpo.physics.engine.tick import begin, end, feel, find, looks
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.systems.snap.connectors import two_prong
from palpo.physics.systems.snap.insertion import Insertion
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.step import book
from palpo.studies.claims import Claim, at_least, at_most
from palpo.studies.snap_models import (
    DISTANCES,
    MODELS,
    PAPER_DIMENSIONS,
    STEP,
    ModelCase,
    Row,
    SocketModel,
    build,
    case_of,
    columns,
    dimensions,
    path_of,
    shipped,
)
from palpo.studies.tables import save_figure, write_csv

KIND = "two-prong"
CONVERGED = "converged"
MESHES = ("coarse", "fine", CONVERGED)
CELLS = two_prong.TwoProngCells(5, 24, 6, 2, 4)
"""Of the converged mesh."""
SCENE = SocketModel("scene", "whole, static modes", "#b05fa0", reduced=True, distance="exact")
"""As `palpo run snap` computes it."""
STAGES = ("free motion", "collision", "contact forces", "update", "books")
COLOURS = ("#3f9b57", "#e08a2e", "#d64550", "#2f6fc0", "#8a97a8")
REPEATS = 5
WANTED = 15_000.0
"""[Hz]"""
TIMES = {"coarse": 5.0, "fine": 5.0, CONVERGED: 10.0}
"""The reduced model over model 1."""


def run(out: Path, quick: bool) -> list[Claim]:
    """Frequencies, dimensions and stages as CSV, one figure, a table and the claims."""
    progress = Progress()
    rows: list[Row] = []
    for mesh in MESHES[:1] if quick else MESHES:
        rows += frequencies(mesh, 1 if quick else REPEATS, progress)
    write_csv(out / "frequency.csv", rows)
    save_figure(out / "frequency.png", 6.4, partial(_draw, rows=rows))
    _print(rows)
    return claims_of(rows)


def models_at(mesh: str) -> tuple[SocketModel, ...]:
    """The models that are timed at a mesh."""
    return (MODELS[0], SCENE) if mesh == CONVERGED else (*MODELS, SCENE)


def case_at(mesh: str) -> ModelCase:
    """The connector at a mesh."""
    if mesh != CONVERGED:
        return case_of(KIND, mesh)
    case = case_of(KIND)
    return replace(
        case, mesh=mesh, connector=replace(case.connector, prongs=two_prong.TwoProng().build(CELLS).prongs)
    )


def made(case: ModelCase, model: SocketModel, field: DistanceField) -> SnapModel:
    """A model of the connector; the scene's as the scene has it."""
    if model is not SCENE:
        return build(case, model, field)
    return SnapModel(case.connector, replace(shipped(KIND).numerics, step=STEP), field)


def frequencies(mesh: str, repeats: int, progress: Progress) -> list[Row]:
    """The models at a mesh."""
    case, models = case_at(mesh), models_at(mesh)
    connector = case.connector
    fields = {kind: DISTANCES[kind](connector) for kind in {model.distance for model in models}}
    path = path_of(connector, STEP)
    ns = np.zeros((len(models), repeats, len(path), len(STAGES)), np.int64)
    met = np.zeros((len(models), len(path), 3))
    built: dict[SocketModel, SnapModel] = {}
    capped = np.zeros(len(models))
    for k in range(repeats):
        with progress.stage(f"{mesh} mesh, run {k + 1} of {repeats}"):
            for m, model in enumerate(models):
                built[model] = made(case, model, fields[model.distance])
                timed(built[model], path, ns[m, k], met[m])
                capped[m] = built[model].state.engine.solver.told["sweep_caps"][0]
    whole = int(dimensions(built[models[0]]))
    least = ns.min(axis=1)
    steps = least.sum(axis=2)
    return [
        {
            "mesh": mesh,
            "model": model.name,
            "what": model.what,
            "freedoms": whole,
            "dimensions": dimensions(built[model]),
            "paper": _paper(mesh, model),
            "frequency_Hz": 1e9 / float(steps[m].mean()),
            "p50_us": 1e-3 * float(np.percentile(steps[m], 50)),
            "p99_us": 1e-3 * float(np.percentile(steps[m], 99)),
            "contacts": float(met[m, :, 0].mean()),
            "sweeps": float(met[m, :, 1].mean()),
            "rounds": float(met[m, :, 2].mean()),
            "capped": float(capped[m]),
            **{f"{s}_us": 1e-3 * float(t) for s, t in zip(STAGES, least[m].mean(axis=0), strict=True)},
        }
        for m, model in enumerate(models)
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
    """palpo.physics.systems.snap.step.step, with a clock after each stage, whose rounds are added up."""
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
        met[k, 0], met[k, 1], met[k, 2] = e.contacts.count[0].found, e.count[0].sweeps, e.count[0].rounds
    return positions.shape[0]


@inlined
def _add_lap(at, stage, before, scratch):
    now = now_ns(scratch)
    at[stage] += now - before
    return now


def _paper(mesh: str, model: SocketModel) -> str:
    if mesh not in PAPER_DIMENSIONS or model is SCENE:
        return ""
    whole, segments, reduced = PAPER_DIMENSIONS[mesh]
    if model.segments == 1:
        return str(whole)
    return " + ".join(map(str, reduced if model.reduced else segments))


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    """What the step is to reach, and what takes the time where it does not."""
    claims: list[Claim] = []
    for mesh in dict.fromkeys(row["mesh"] for row in rows):
        own = {row["model"]: row for row in rows if row["mesh"] == mesh}
        first, last = own[MODELS[0].name], own[SCENE.name if mesh == CONVERGED else MODELS[3].name]
        most = max(STAGES, key=lambda stage: last[f"{stage}_us"])
        share = 100.0 * last[f"{most}_us"] * 1e-6 * last["frequency_Hz"]
        claims.append(
            at_least(
                f"frequency of {_named(last)} over that of model 1, {mesh} mesh",
                last["frequency_Hz"] / first["frequency_Hz"], TIMES[mesh], "x",
                "002, V-B: 8.5 to 9.5 with a GPU",
            )
        )  # fmt: skip
        if mesh == MESHES[0]:
            claims.append(
                at_least(
                    f"frequency of model 4, {mesh} mesh ({most} takes {share:.0f}%)",
                    last["frequency_Hz"], WANTED, "Hz", "one core; 002, VI: 2.2 kHz with a GPU",
                )
            )  # fmt: skip
    capped = max(row["capped"] for row in rows if row["model"] == SCENE.name)
    claims.append(
        at_most("solves that end at their sweeps, most in an insertion of the scene", capped, 0.0, "", "none")
    )
    return claims


def _named(row: Row) -> str:
    return "the scene" if row["model"] == SCENE.name else str(row["model"])


def _print(rows: Sequence[Row]) -> None:
    heads = ("mesh", "model", "dimensions", "table I", "Hz", "p50 [us]", "p99 [us]", "sweeps", "capped")
    table = Table(*heads, title="one insertion on one core", title_justify="left")
    names = ("mesh", "model", "dimensions", "paper", "frequency_Hz", "p50_us", "p99_us", "sweeps", "capped")
    for cells in columns(rows, *names):
        table.add_row(*cells)
    console = Console(stderr=True, highlight=False)
    console.print(table)
    table = Table("mesh", "model", *STAGES, title="mean of a stage [us]", title_justify="left")
    for cells in columns(rows, "mesh", "model", *(f"{stage}_us" for stage in STAGES)):
        table.add_row(*cells)
    console.print(table)


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    grid = figure.add_gridspec(2, 2)
    left, right = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[0, 1])
    names = [model.name for model in (*MODELS, SCENE)]
    meshes = list(dict.fromkeys(row["mesh"] for row in rows))
    for m, mesh in enumerate(meshes):
        own = [row for row in rows if row["mesh"] == mesh]
        width = 0.8 / len(meshes)
        at = np.array([names.index(row["model"]) for row in own]) + width * (m - 0.5 * (len(meshes) - 1))
        bars = left.bar(at, [row["frequency_Hz"] for row in own], 0.95 * width, label=f"{mesh} mesh",
                        color=("#2f6fc0", "#9cc0ea", "#c9d2dc")[m])  # fmt: skip
        left.bar_label(bars, labels=[f"{1e-3 * row['frequency_Hz']:.1f}" for row in own], fontsize=6.5)
        _stack(right, at, 0.95 * width, own, labelled=m == 0)
    left.axhline(WANTED, color="#d64550", lw=1.0, ls=(0, (4, 3)), label=f"{1e-3 * WANTED:g} kHz")
    left.set(title="steps per second (002, figure 5) [Hz]; bars in kHz", ylim=(0.0, None))
    right.set(title=f"time of a step [us]; from left {', '.join(meshes)}", ylim=(0.0, None))
    for ax in (left, right):
        ax.set_xticks(range(len(names)), names)
        ax.title.set_fontsize(9.5)
        ax.tick_params(labelsize=8)
        ax.legend(fontsize=7, frameon=False)
    _draw_growth(figure.add_subplot(grid[1, :]), rows)


def _draw_growth(ax: Axes, rows: Sequence[Row]) -> None:
    """Mean time of a step over the freedoms of the socket."""
    for model in (*MODELS, SCENE):
        own = [row for row in rows if row["model"] == model.name]
        ax.plot(
            [row["freedoms"] for row in own], [1e6 / row["frequency_Hz"] for row in own],
            "o-", color=model.colour, lw=1.4, ms=4, label=f"{model.name}: {model.what}",
        )  # fmt: skip
    ax.set(xscale="log", yscale="log", xlabel="freedoms of the whole socket", ylabel="mean step [us]")
    ax.set_title("what a step takes as the mesh gets finer", fontsize=9.5)
    ax.legend(fontsize=7.5, frameon=False)


def _stack(ax: Axes, at: NDArray, width: float, rows: Sequence[Row], labelled: bool) -> None:
    bottom = np.zeros(len(rows))
    for stage, colour in zip(STAGES, COLOURS, strict=True):
        heights = np.array([row[f"{stage}_us"] for row in rows])
        ax.bar(at, heights, width, bottom=bottom, color=colour, label=stage if labelled else None)
        bottom += heights
