"""How far the servo's force is from that of the whole scene at 1 kHz, for each interface kind.

Each case is a scene, a mass of the tool and a speed of the hand. Its reference, `monolithic`, is computed
once and every kind is held against it, with the latency of one slow period of threads on a machine that
keeps up, and `krylov` also where every slow step is late (LATE). Errors are in per cent of the reference's
peak and of its RMS. "At rest" is where the hand's target has stood still for SETTLED seconds, and "moving"
where it has not; before the first motion there is nothing to measure.

The reference is discrete itself. Beside every row stands how far it is from the same scene with everything at
2 and 4 kHz, the force averaged over each of its ticks: an error far below that says that the two rates agree,
not that the force is known so well.
"""

from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from rich.console import Console

from palpo.studies.claims import Line
from palpo.studies.force_errors import IMPULSES, Floats, averaged, compare, impulses
from palpo.studies.multirate_cases import (
    FEWER,
    FINER,
    KINDS,
    LANDS,
    LATENESS,
    LOW_HZ,
    PUNCTUAL,
    MultirateCase,
    all_cases,
)
from palpo.studies.multirate_claims import LIMIT, claims_of
from palpo.studies.processes import processes
from palpo.studies.rows import Row
from palpo.studies.runs import Ledger, SceneDrive, drive
from palpo.studies.tables import COLOURS, save_figure, write_csv


@dataclass
class CaseOutcome:
    """Rows of one case, and the forces that its figure needs."""

    case: MultirateCase
    rows: list[Row]
    reference: Floats
    forces: dict[tuple[str, int], Floats]


def run(out: Path, quick: bool) -> list[Line]:
    """All cases on two processes; the longest first."""
    outcomes = _compute(all_cases(quick))
    rows = [row for outcome in outcomes for row in outcome.rows]
    write_csv(out / "accuracy.csv", rows)
    save_figure(out / "errors.png", 5.2, lambda figure: _draw_errors(figure, rows))
    for scene in LIMIT:
        for outcome in [o for o in outcomes if o.case.scene == scene and not o.case.path_of_its_own][:1]:
            save_figure(out / f"force-{scene}.png", 5.6, partial(_draw_forces, outcome=outcome))
    return claims_of(rows)


def _compute(cases: Sequence[MultirateCase]) -> list[CaseOutcome]:
    console = Console(stderr=True, highlight=False)
    done: dict[MultirateCase, CaseOutcome] = {}
    with processes(2) as pool:
        for future in as_completed([pool.submit(evaluate, case) for case in cases]):
            outcome = future.result()
            done[outcome.case] = outcome
            console.print(f"  {len(done)}/{len(cases)}  {outcome.case.name}", style="dim")
    return [done[case] for case in cases]


def evaluate(case: MultirateCase) -> CaseOutcome:
    """The reference and every kind at every slow rate, and krylov with late frames too."""
    path, overrides = case.path(), case.overrides()
    reference = drive(case.scene, path, overrides, "monolithic")
    exact, since = reference.trace["force"], round(LANDS / reference.dt) if case.landing else 0
    calm, words = case.calm
    until = round(min(calm, reference.dt * len(exact)) / reference.dt)
    own = _refinement(case, exact, since, until, reference.dt)
    rows, forces = [], {}
    runs = [
        (kind, hz, late, 0)
        for hz in case.low_hz
        for kind in case.kinds
        for late in LATENESS
        if late == PUNCTUAL or kind == "krylov"
    ]
    if case.slide:
        runs += [("krylov", max(case.low_hz), PUNCTUAL, columns) for columns in FEWER]
    for kind, low_hz, late, columns in runs:
        keys = [*overrides, f"rates.low_hz={low_hz}"]
        keys += [f"interface.max_columns={columns}"] * (columns > 0)
        with SceneDrive(case.scene, keys, kind, durations=LATENESS[late]) as other:
            ledger = Ledger(other)
            other.go(path)
        force = other.trace["force"]
        if late == PUNCTUAL and not columns:
            forces[kind, low_hz] = force
        row: Row = {
            "scene": case.scene, "landing": case.landing, "slide": case.slide, "tool_mass_factor": case.mass,
            "hand_speed_factor": case.speed, "mass_ratio": _mass_ratio(other), "kind": kind, "low_hz": low_hz,
            "late": late, "columns": other.spec.interface.max_columns, "fewer_columns": columns > 0,
        }  # fmt: skip
        row |= compare(exact, force, path, round(1000 / low_hz), other.dt, since, until)
        whole = compare(exact, force, path, round(1000 / low_hz), other.dt, since)["moving_rms_percent"]
        row["whole_rms_percent"] = whole
        row["judged"] = words if until < len(exact) else ""
        row |= own
        row["reference_diverged"] = reference.stopped
        # the ledger counts what the attachment passes on; after a landing the tool presses on the body too
        row |= impulses(force, other, ledger) if not case.landing else dict.fromkeys(IMPULSES, float("nan"))
        rows.append(row)
    return CaseOutcome(case, rows, exact, forces)


def _refinement(case: MultirateCase, exact: Floats, since: int, until: int, dt: float) -> Row:
    """How far the reference, and that at twice its rate, are from the finest, while moving."""
    forces = {1: exact}
    for finer in case.finer:
        hz = round(finer / dt)
        run = drive(case.scene, case.path(finer), [*case.overrides(), f"rates.servo_hz={hz}"], "monolithic")
        forces[finer] = averaged(run.trace["force"], finer)
    finest = max(forces)
    row: Row = {"finest_reference_kHz": 1e-3 * finest / dt}
    for finer in (1, *FINER[:-1]):
        off: Row = {}
        if finer < finest:
            off = compare(forces[finest], forces[finer], case.path(), 1, dt, since, until)
        for of in ("", "_of_rms"):
            row[f"reference_{1e-3 * finer / dt:g}kHz_off_percent{of}"] = off.get(
                f"moving_rms_percent{of}", float("nan")
            )
    return row


def _mass_ratio(run: SceneDrive) -> float:
    """Mass of the slow-rate bodies over the tool's."""
    scene = run.lock.scene
    return sum(float(m.body.mass) for m in scene.members) / float(scene.model.weight.sum())


def _draw_errors(figure: Figure, rows: list[Row]) -> None:
    """RMS error while moving: a bar a kind, a point a case."""
    rows = [r for r in rows if r["late"] == PUNCTUAL and not r["landing"] and not r["slide"]]
    rates = [hz for hz in LOW_HZ if any(r["low_hz"] == hz for r in rows)]
    axes = np.atleast_1d(figure.subplots(1, len(rates), sharey=True))
    scenes = [scene for scene in LIMIT if any(r["scene"] == scene for r in rows)]
    for ax, low_hz in zip(axes, rates, strict=True):
        for k, kind in enumerate(KINDS):
            for s, scene in enumerate(scenes):
                values = [
                    r["moving_rms_percent"] for r in rows
                    if (r["scene"], r["kind"], r["low_hz"]) == (scene, kind, low_hz)
                ]  # fmt: skip
                if not values:
                    continue
                x = s + 0.26 * (k - 1)
                ax.bar(x, np.median(values), 0.24, color=COLOURS[kind], alpha=0.85)
                ax.plot(
                    [x] * len(values),
                    values,
                    ls="",
                    marker="o",
                    ms=3.5,
                    color=COLOURS["monolithic"],
                    alpha=0.8,
                )
        for s, scene in enumerate(scenes):
            ax.plot(
                [s - 0.4, s + 0.4], [LIMIT[scene]] * 2, color=COLOURS["monolithic"], lw=1.0, ls=(0, (4, 3))
            )
        ax.set_yscale("log")
        ax.set_xticks(range(len(scenes)), scenes)
        ax.set_title(f"slow rate {low_hz} Hz", loc="left", fontsize=10)
        ax.grid(visible=False, axis="x")
    axes[0].set_ylabel("RMS error while moving [% of peak]")
    shown = [kind for kind in KINDS if any(r["kind"] == kind for r in rows)]
    patches = [Patch(color=COLOURS[kind], alpha=0.85, label=kind) for kind in shown]
    axes[0].legend(handles=patches, frameon=False, fontsize=8.5, loc="upper left", ncols=len(shown))
    axes[0].set_ylim(top=8.0 * axes[0].get_ylim()[1])
    figure.supxlabel(
        "bar: median over masses and speeds; points: each case; dashed: what krylov must keep", fontsize=8.5
    )


def _draw_forces(figure: Figure, outcome: CaseOutcome) -> None:
    """Force of each kind on the reference's, and their errors, at the higher slow rate."""
    top, bottom = figure.subplots(2, 1, sharex=True)
    low_hz = max(hz for _, hz in outcome.forces)
    exact = outcome.reference
    peak = float(np.linalg.norm(exact, axis=1).max())
    t = 1e-3 * np.arange(len(exact))
    for kind in reversed(KINDS):
        force = outcome.forces.get((kind, low_hz))
        if force is None:
            continue
        n = min(len(force), len(exact))
        top.plot(t[:n], np.linalg.norm(force[:n], axis=1), color=COLOURS[kind], lw=0.9, label=kind)
        error = 100.0 / peak * np.linalg.norm(force[:n] - exact[:n], axis=1)
        bottom.plot(t[:n], np.maximum(error, 1e-4), color=COLOURS[kind], lw=0.8, label=kind)
    top.plot(
        t,
        np.linalg.norm(exact, axis=1),
        color=COLOURS["monolithic"],
        lw=1.2,
        ls=(0, (4, 2)),
        label="all at 1 kHz",
    )
    top.set_ylim(0, 1.6 * peak)
    top.set_ylabel("constraint sum [N]")
    top.set_title(f"{outcome.case.name}, slow rate {low_hz} Hz", loc="left", fontsize=10)
    top.legend(frameon=False, fontsize=8.5)
    bottom.set_yscale("log")
    bottom.set_ylim(1e-3, 300)
    bottom.set_ylabel("error [% of peak]")
    bottom.set_xlabel("time [s]")
