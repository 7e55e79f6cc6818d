"""Insertion force of the shipped scenes and of the paper's four models: 002, V-C and V-D, figures 7 and 8.

The reference is `studies.snap_reference`'s: another mesh, other points and contacts, a tenth of the step. An
error budget switches what a scene approximates, one at a time. Beside it stand the balance of the floor's
force against the contacts and the prongs' inertia, and the identification of the material from noisy
measurements.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import splu

from palpo.app.cli.progress import Progress
from palpo.physics.reduction.linear_model import linear_model
from palpo.physics.systems.snap.click import Click, click
from palpo.physics.systems.snap.connectors.connector import Connector
from palpo.physics.systems.snap.insertion import Insertion
from palpo.physics.systems.snap.model import SnapModel
from palpo.physics.systems.snap.numerics import reduced_bases, segment_models
from palpo.studies.claims import Claim, Line, Reported, at_most, close_to
from palpo.studies.reference import identification
from palpo.studies.snap_models import (
    DISTANCES,
    MODELS,
    SCENES,
    SPEED,
    STEP,
    ModelCase,
    Row,
    SocketModel,
    build,
    case_of,
    columns,
    dimensions,
    exact_distance,
    grid_distance,
    insert,
    path_of,
    percent_rms,
    push_force,
    shipped,
)
from palpo.studies.snap_reference import reference
from palpo.studies.tables import save_figure, write_csv

CASES = (
    ("two-prong", "coarse"),
    ("two-prong", "fine"),
    ("lan", "coarse"),
    ("cap", "coarse"),
    ("buckle", "coarse"),
)
AS_SHIPPED = "as shipped"
WITHIN = 5.0
"""Of the peak force [%]: RMS before release, and the peak itself."""
CLICKED = 10.0
"""The drop, and the RMS after the release over the peak [%]."""
AFTER = 40
"""Milliseconds from the release on that are felt as what comes after the click: hooks that slide on the
shoulder, then fall behind it."""
NOISE = 0.1
"""Of the displacements and forces for identification, over their RMS [-]."""
EXACT = SocketModel(
    "model 4, exact distance", "reduction alone", "#9cc0ea", 2, reduced=True, distance="exact"
)
"""Tells the error of the reduction from that of the distance."""
LEARNED = SocketModel(
    "model 4, learned distance", "as in 002", "#b05fa0", 2, reduced=True, distance="learned"
)
"""As the paper has it."""


@dataclass(frozen=True)
class FeltForce:
    """One insertion as it was felt."""

    force: NDArray[np.float64]  # (n,) on the floor along the push, by milliseconds [N]
    click: Click
    dimensions: str
    distance: str


def run(out: Path, quick: bool) -> list[Line]:
    """Forces over time and their errors as CSV, one figure, two tables and the claims."""
    progress = Progress()
    felt: dict[str, dict[str, FeltForce]] = {}
    rows: list[Row] = []
    floors: list[Row] = []
    for kind, mesh in CASES[:1] if quick else CASES:
        case = case_of(kind, mesh)
        runs = felt[case.name] = insertions(case, progress)
        rows += [_row(case.name, name, f, runs["reference"]) for name, f in runs.items()]
        write_csv(out / f"{kind}-{mesh}.csv", _forces(runs))
        with progress.stage(f"{case.name}: balance of the floor's force"):
            floors += [floor_balance(case, model) for model in (MODELS[0], *MODELS[2:])]
    budgets: list[Row] = []
    for kind in list(SCENES)[:1] if quick else SCENES:
        runs = felt[f"{kind}, as shipped"] = budget(kind, progress)
        budgets += [_row(kind, name, f, runs["reference"]) for name, f in runs.items()]
        write_csv(out / f"{kind}-budget.csv", _forces(runs))
    write_csv(out / "budget.csv", budgets)
    with progress.stage("identification from noisy measurements"):
        found = identified(case_of("two-prong").connector)
    write_csv(out / "errors.csv", rows)
    write_csv(out / "floor.csv", floors)
    save_figure(out / "accuracy.png", 2.4 + 2.3 * ((len(felt) + 2) // 3), partial(_draw, felt=felt))
    save_figure(out / "click.png", 3.2 if quick else 5.6, partial(_draw_click, felt=felt))
    save_figure(out / "budget.png", 1.4 + 0.9 * len(SCENES), partial(_draw_budget, rows=budgets))
    _print(rows, floors)
    _print_budget(budgets)
    return [*shipped_claims(budgets), *claims_of(rows), *_floor_claims(floors), *found]


def insertions(case: ModelCase, progress: Progress) -> dict[str, FeltForce]:
    """The reference, the four models, and the last of them on the exact and on the learned distance."""
    felt = {"reference": _reference(case)}
    fields = {kind: make(case.connector) for kind, make in DISTANCES.items()}
    for model in (*MODELS, EXACT, LEARNED):
        with progress.stage(f"{case.name}: {model.name}"):
            felt[model.name] = _felt(build(case, model, fields[model.distance]), model.distance)
    return felt


def budget(kind: str, progress: Progress) -> dict[str, FeltForce]:
    """The reference, a scene as it is shipped, and with each of its approximations taken back alone."""
    case = shipped(kind)
    n, connector = case.numerics, case.connector
    exact = exact_distance(connector)
    felt = {"reference": _reference(case)}
    changes: dict[str, dict[str, Any]] = {
        AS_SHIPPED: {},
        "a quarter of the step": {"step": n.step / 4},
        "points twice as near": {"spacing": n.spacing / 2},
        "solved to 1e-8": {"tolerance": 1e-8, "sweeps": 2000},
        f"{'without' if n.edges else 'with'} the plug's edges": {"edges": not n.edges},
        "without settling": {"settling": 0.0},
    }
    if n.meridians is None:
        changes |= {"no clusters": {"clusters": 0, "capacity": 200}, "not reduced": {"static": None}}
    else:  # all of a ring's contacts, and its whole model, take a gigabyte
        assert n.static is not None
        changes |= {
            "twice the meridians": {"meridians": 2 * n.meridians, "capacity": 2 * n.capacity},
            "a tenth of the reduction's error": {"static": n.static / 10},
        }
    for name, change in changes.items():
        with progress.stage(f"{kind}: {name}"):
            felt[name] = _felt(SnapModel(connector, replace(n, **change), exact), "exact")
    with progress.stage(f"{kind}: the other mesh, the distance on a grid"):
        other = shipped(kind, "coarse" if case.mesh == "fine" else "fine")
        felt[f"the {other.mesh} mesh"] = _felt(SnapModel(other.connector, other.numerics, exact), "exact")
        felt["distance on a grid"] = _felt(SnapModel(connector, n, grid_distance(connector)), "grid")
    return felt


def _reference(case: ModelCase) -> FeltForce:
    curve = reference(case.kind, case.connector, case.numerics)
    found = click(curve.time, curve.force, curve.travel, case.connector.interference)
    return FeltForce(curve.force, found, str(curve.told["freedoms"]), "exact")


def _felt(made: SnapModel, distance: str) -> FeltForce:
    series, step = insert(made), made.numerics.step
    force, every = push_force(series, made.connector), round(STEP / step)
    time = STEP * np.arange(1, len(force) + 1)
    travel = series.travel[every - 1 :: every]
    return FeltForce(
        force, click(time, force, travel, made.connector.interference), dimensions(made), distance
    )


def _row(case: str, name: str, f: FeltForce, reference: FeltForce) -> Row:
    """Errors against the reference: before release is before the peak of either, when the release comes is a
    figure of its own; `rms_to_its_release_percent` has both in one, up to the reference's peak."""
    top = _peaks_at(reference)
    both = min(top, _peaks_at(f))
    error, peak = f.force - reference.force, reference.click.peak
    release = round(reference.click.release / STEP)
    return {
        "connector": case,
        "model": name,
        "distance": f.distance,
        "dimensions": f.dimensions,
        "rms_percent": percent_rms(error[:both], peak),
        "rms_to_its_release_percent": percent_rms(error[:top], peak),
        "rms_after_percent": percent_rms(error[release : release + AFTER], peak),
        "peak_N": f.click.peak,
        "drop_N": f.click.drop,
        "release_s": f.click.release,
        "late_steps": (f.click.release - reference.click.release) / STEP,
        "latched": f.click.latched,
        "peak_error_percent": 100.0 * (f.click.peak / peak - 1.0),
        "drop_error_percent": 100.0 * (f.click.drop / reference.click.drop - 1.0)
        if reference.click.drop
        else float("nan"),
    }


def _peaks_at(f: FeltForce) -> int:
    """The millisecond of the click's peak: pressed home, a plug may press harder."""
    end = round(f.click.release / STEP) if f.click.drop else f.force.size
    return int(f.force[:end].argmax())


def _forces(felt: Mapping[str, FeltForce]) -> list[Row]:
    n = len(felt["reference"].force)
    return [
        {"time": STEP * (k + 1)} | {f"{name}_N": float(f.force[k]) for name, f in felt.items()}
        for k in range(n)
    ]


def floor_balance(case: ModelCase, model: SocketModel) -> Row:
    """Largest |floor - (contacts - M a - alpha M vh)| along an insertion, over the largest contact force.

    M a and M vh summed over the free nodes, axis by axis: what a balance on the prongs says of (29).
    """
    made = build(case, model, exact_distance(case.connector))
    weight, alpha = _momentum(made), made.numerics.alpha
    run = Insertion(made)
    before, worst, largest = np.zeros(3), 0.0, 0.0
    for target in run.origin + path_of(case.connector, STEP):
        series = run.follow(target[None])
        after = weight @ _velocities(made)
        contact = -series.wrench[0, :3]
        inertia = (after - before) / STEP + 0.5 * alpha * (after + before)
        worst = max(worst, float(np.abs(series.floor[0] - (contact - inertia)).max()))
        largest = max(largest, float(np.linalg.norm(contact)))
        before = after
    return {"connector": case.name, "model": model.name, "error_over_contact": worst / largest}


def _velocities(model: SnapModel) -> NDArray[np.float64]:
    """Of all prongs' coordinates."""
    return np.concatenate([prong.state.v for prong in model.prongs])


def _momentum(model: SnapModel) -> NDArray[np.float64]:
    """Matrix (3, n) from the velocities of all coordinates to the momentum of the free nodes [kg]."""
    blocks = []
    for prong in model.connector.prongs:
        parts = segment_models(prong, model.connector, model.numerics)
        for part, basis in zip(parts, reduced_bases(prong, parts, model.numerics), strict=True):
            mass = np.tile(np.eye(3), part.nodes.size) @ part.M
            blocks.append(mass if basis is None else mass @ basis.vectors)
    return np.hstack(blocks)


def identified(connector: Connector) -> list[Claim]:
    """E of a prong from displacements under known forces, and mu from forces at first slip, both noisy."""
    rng = np.random.default_rng(0)
    prong, material = connector.prongs[0], connector.material
    model = linear_model(prong.mesh, material, prong.clamped)
    n, samples = len(prong.mesh.nodes), 10
    forces = np.zeros((samples, n, 3))
    forces[:, prong.contact] = rng.normal(size=(samples, prong.contact.size, 3))
    dofs = (3 * model.nodes[:, None] + np.arange(3)).ravel()
    moved = np.zeros((samples, 3 * n))
    moved[:, dofs] = splu(model.K.tocsc()).solve(forces.reshape(samples, -1)[:, dofs].T).T
    moved += NOISE * float(np.sqrt(np.mean(moved**2))) * rng.normal(size=moved.shape)
    seen = np.full((samples, n, 3), np.nan)
    seen[:, prong.contact] = moved.reshape(samples, n, 3)[:, prong.contact]
    E = identification.youngs_modulus(prong.mesh, prong.clamped, material.poisson_ratio, forces, seen)
    weights = np.linspace(1.0, 10.0, 20)
    slips = connector.friction * weights * (1.0 + NOISE * rng.normal(size=weights.size))
    mu = identification.friction(slips, weights)
    return [
        close_to(
            f"E identified from displacements with {100 * NOISE:g}% noise", 1e-6 * E.value,
            1e-6 * material.youngs_modulus, 2.0, "MPa", "002, V-C1, synthetic",
        ),
        close_to(
            f"friction identified from slip forces with {100 * NOISE:g}% noise", mu.value, connector.friction,
            2.0 * 100.0 * mu.standard_error / connector.friction, "",
            "002, V-C1, synthetic; twice the standard error",
        ),
    ]  # fmt: skip


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    """Before release, and the click itself, model by model."""
    return _click_claims([row for row in rows if row["model"] not in ("reference", EXACT.name)])


def shipped_claims(rows: Sequence[Row]) -> list[Claim]:
    """The scenes themselves."""
    return _click_claims([row for row in rows if row["model"] == AS_SHIPPED])


def _click_claims(rows: Sequence[Row]) -> list[Claim]:
    claims: list[Claim] = []
    for row in rows:
        name, source = f"{row['connector']}, {row['model']}", "against the independent reference"
        claims.append(
            Claim(f"{name}: latches with a click", row["drop_N"], "N", f"yes, {source}", row["latched"])
        )
        if not np.isfinite(row["release_s"]):
            continue  # without a click there is no release to be early or late
        claims += [
            at_most(
                f"{name}: RMS error before release over the peak", row["rms_percent"], WITHIN, "%",
                "002, V-C2: 10% against a sensor",
            ),
            at_most(f"{name}: error of the peak", abs(row["peak_error_percent"]), WITHIN, "%", source),
            at_most(f"{name}: error of the drop", abs(row["drop_error_percent"]), CLICKED, "%", source),
            at_most(
                f"{name}: RMS error in {AFTER} ms after the release over the peak", row["rms_after_percent"],
                CLICKED, "%", source,
            ),
            at_most(
                f"{name}: release off by", abs(row["late_steps"]), 1.0 + 1e-9, "steps", "within one step"
            ),
        ]  # fmt: skip
    return claims


def _floor_claims(floors: Sequence[Row]) -> list[Line]:
    """Exact where nothing is reduced; the reduced model's is a figure without a limit."""
    claims: list[Line] = []
    for row in floors:
        reduced = row["model"] == MODELS[3].name
        name = f"{row['connector']}, {row['model']}: floor's force against contact and inertia"
        value = row["error_over_contact"]
        claims.append(
            Reported(name, value, "", "rigid motion is not in a reduced clamped segment")
            if reduced
            else at_most(name, value, 1e-9, "", "(29) with the rows that it means; exact unreduced")
        )
    return claims


def _print(rows: Sequence[Row], floors: Sequence[Row]) -> None:
    console = Console(stderr=True, highlight=False)
    heads = ("connector", "model", "dimensions", "RMS [%]", "peak [N]", "drop [N]", "late [steps]")
    names = ("connector", "model", "dimensions", "rms_percent", "peak_N", "drop_N", "late_steps")
    table = Table(*heads, title=f"force on the floor, {1e3 * SPEED:g} mm/s", title_justify="left")
    for cells in columns(rows, *names):
        table.add_row(*cells)
    console.print(table)
    table = Table("connector", "model", "floor's balance", title="over the largest contact force")
    for cells in columns(floors, "connector", "model", "error_over_contact"):
        table.add_row(*cells)
    console.print(table)


def _print_budget(rows: Sequence[Row]) -> None:
    heads = (
        "connector",
        "what",
        "dimensions",
        "RMS [%]",
        "peak [%]",
        "drop [%]",
        "after [%]",
        "late [steps]",
    )
    names = (
        "connector", "model", "dimensions", "rms_percent", "peak_error_percent", "drop_error_percent",
        "rms_after_percent", "late_steps",
    )  # fmt: skip
    table = Table(*heads, title="error budget: one thing at a time", title_justify="left")
    for cells in columns(rows, *names):
        table.add_row(*cells)
    Console(stderr=True, highlight=False).print(table)


def _draw_budget(figure: Figure, rows: Sequence[Row]) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    rows = [row for row in rows if row["model"] != "reference"][::-1]
    names = [f"{row['connector']}: {row['model']}" for row in rows]
    colours = ["#2f6fc0" if row["model"] == AS_SHIPPED else "#9cc0ea" for row in rows]
    for ax, key, title, most in (
        (left, "late_steps", "release after the reference's [steps]", 1.0),
        (right, "peak_error_percent", "error of the peak [%]", WITHIN),
    ):
        ax.barh(names, [row[key] for row in rows], color=colours)
        ax.axvspan(-most, most, color="#3f9b57", alpha=0.15, lw=0.0)
        ax.set_title(title, fontsize=9.5, loc="left")
        ax.tick_params(labelsize=6.5)


def _draw_click(figure: Figure, felt: Mapping[str, Mapping[str, FeltForce]]) -> None:
    """Scenes as shipped, and without the damping of what a step cannot follow, on the reference."""
    shown = {case: runs for case, runs in felt.items() if AS_SHIPPED in runs}
    axes = figure.subplots((len(shown) + 1) // 2, min(2, len(shown)), squeeze=False).ravel()
    lines = (
        ("reference", "#263242", 2.4),
        ("without settling", "#c9d2dc", 1.0),
        (AS_SHIPPED, "#2f6fc0", 1.2),
    )
    for ax, (case, runs) in zip(axes, shown.items(), strict=True):
        release = round(runs["reference"].click.release / STEP)
        span = slice(release - AFTER // 4, release + AFTER)
        for name, colour, width in lines:
            time = np.arange(1, len(runs[name].force) + 1)
            ax.plot(time[span], runs[name].force[span], color=colour, lw=width, label=name)
        ax.set_title(case, loc="left", fontsize=9.5)
        ax.set_xlabel("time [ms]", fontsize=9)
    axes[0].set_ylabel("force on the floor [N]")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False,
                  fontsize=8)  # fmt: skip


def _draw(figure: Figure, felt: Mapping[str, Mapping[str, FeltForce]]) -> None:
    axes = figure.subplots((len(felt) + 2) // 3, min(3, len(felt)), squeeze=False).ravel()
    colours = {"reference": "#263242"} | {m.name: m.colour for m in (*MODELS, EXACT, LEARNED)}
    for ax, (case, runs) in zip(axes, felt.items(), strict=False):
        for name, f in runs.items():
            time = STEP * np.arange(1, len(f.force) + 1)
            width = 2.2 if name == "reference" else 1.0
            colour = colours.get(name, colours[MODELS[3].name] if name == AS_SHIPPED else "#c9d2dc")
            ax.plot(1e3 * time, f.force, color=colour, lw=width, label=name)
        ax.set_title(case, loc="left", fontsize=9.5)
        ax.set_xlabel("time [ms]", fontsize=9)
    axes[0].set_ylabel("force on the floor [N]")
    for ax in axes[len(felt) :]:
        ax.set_axis_off()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False,
                  fontsize=8)  # fmt: skip
