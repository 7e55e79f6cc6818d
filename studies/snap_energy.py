"""Energy of a snap connection without damping: 002, proposition 1 and sections II-B and III-A.

The whole scene's balance, of socket, couplings, plug, hold and the contacts' booked work, along an insertion
at coupling stiffnesses over ten decades; and one prong let go in its first mode, where passive midpoint keeps
what backward Euler loses.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import scipy.linalg as la
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import splu

from palpo.app.cli.progress import Progress
from palpo.physics.reduction.linear_model import LinearModel, linear_model
from palpo.physics.systems.snap.connectors.connector import Connector
from palpo.studies.claims import Claim, at_least, at_most, close_to, greatest
from palpo.studies.reference.passive_midpoint import LinearBody
from palpo.studies.snap_models import (
    MODELS,
    STEP,
    ModelCase,
    Row,
    build,
    case_of,
    columns,
    exact_distance,
    insert,
)
from palpo.studies.tables import COLOURS, save_figure, write_csv

KIND, MESH = "two-prong", "coarse"
STIFFNESSES = tuple(10.0**k for k in range(2, 13))
"""k_c [N/m]."""
UNDAMPED = {"alpha": 0.0, "beta": 0.0, "settling": 0.0, "coupling_damping": 0.0}
AFTER = 5e-3
"""When what is left of the first mode is looked at [s]."""
SHOWN = 12e-3
STEPS = (1e-3, 1e-4)
"""T of the released prong [s]."""
MIDPOINT, EULER = "passive midpoint", "backward Euler"


def run(out: Path, quick: bool) -> list[Claim]:
    """Balances and the release as CSV, one figure, two tables and the claims."""
    progress = Progress()
    case = case_of(KIND, MESH)
    chosen = STIFFNESSES[::5] if quick else STIFFNESSES
    rows = balances(case, chosen, progress)
    with progress.stage("one prong let go in its first mode"):
        release = Release(case.connector)
        traces = {(name, T): release.run(name, T) for T in STEPS for name in (MIDPOINT, EULER)}
    left = [release.left(name, T, traces[name, T]) for name, T in traces]
    write_csv(out / "balance.csv", rows)
    write_csv(out / "release.csv", left)
    save_figure(out / "energy.png", 3.9, partial(_draw, rows=rows, release=release, traces=traces))
    _print(rows, left)
    return claims_of(rows, left)


def balances(case: ModelCase, stiffnesses: Sequence[float], progress: Progress) -> list[Row]:
    """Largest change of the balance along an insertion, over the largest energy."""
    rows: list[Row] = []
    field = exact_distance(case.connector)
    whole = [(MODELS[0], 0.0)]
    for model, k in [*whole, *((m, k) for m in MODELS[2:] for k in stiffnesses)]:
        about = f"k_c = {k:.0e} N/m" if k else "no segments"
        with progress.stage(f"{model.what.removeprefix('+ ').split(',')[0]}, {about}"):
            changes = UNDAMPED | ({"coupling_stiffness": k} if k else {})
            made = build(case, model, field, **changes)
            series = insert(made)
        largest = float(series.energy.sum(axis=1).max())
        rows.append(
            {
                "body": {0: "whole", 2: "segments", 3: "reduced"}[MODELS.index(model)],
                "coupling_stiffness": k,
                "balance": float(np.abs(series.balance).max()) / largest,
                "largest_energy_J": largest,
                "peak_force_N": float((series.floor @ case.connector.push).max()),
                "normal_work_J": float(series.work[-1, 0]),
                "friction_work_J": float(series.work[-1, 1]),
                "target_work_J": float(series.work[-1, 3]),
                "hold_damping_J": float(series.lost[-1]),
            }
        )
    return rows


class Release:
    """A prong without damping, bent in its first mode by the interference at its tip and let go."""

    def __init__(self, connector: Connector) -> None:
        prong = connector.prongs[0]
        self.model: LinearModel = linear_model(prong.mesh, connector.material, prong.clamped)
        K, M = self.model.K.toarray(), self.model.M.toarray()
        values, vectors = la.eigh(K, M, subset_by_index=(0, 0))
        self.frequency = float(np.sqrt(values[0]))
        """w of the first mode [rad/s]."""
        mode = vectors[:, 0]
        self.tip = int(np.abs(mode).argmax())
        self.x = mode * connector.interference / mode[self.tip]
        self.mode = mode
        self.speed = self.frequency * connector.interference
        """Largest of the tip [m/s]."""

    def run(self, name: str, step: float) -> NDArray[np.float64]:
        """Time [s], tip speed [m/s] and share of the first mode's energy after each step, shape (n, 3)."""
        M, K = self.model.M, self.model.K
        body = LinearBody(M, 0.0 * M, K, step)
        body.x[:] = self.x
        euler = splu((M + step**2 * K).tocsc())
        rows = [(0.0, 0.0, 1.0)]
        start = self.energy(body)
        for k in range(1, round(SHOWN / step) + 1):
            if name == MIDPOINT:
                body.step()
            else:
                body.v = euler.solve(M @ body.v - step * (K @ body.x))
                body.x = body.x + step * body.v
            rows.append((k * step, float(body.v[self.tip]), self.energy(body) / start))
        return np.array(rows)

    def energy(self, body: LinearBody) -> float:
        """Of the first mode [J]."""
        share = self.mode @ self.model.M
        return 0.5 * float((share @ body.v) ** 2 + (self.frequency * (share @ body.x)) ** 2)

    def left(self, name: str, step: float, trace: NDArray) -> Row:
        """What is left at AFTER, beside the closed form of a rule: 1, or (1 + w^2 T^2)^-n."""
        n = round(AFTER / step)
        factor = 1.0 if name == MIDPOINT else 1.0 / (1.0 + (self.frequency * step) ** 2)
        return {
            "rule": name,
            "step_s": step,
            "energy_share": float(trace[n, 2]),
            "closed_form": factor**n,
            "tip_speed_mps": float(trace[n, 1]),
            "exact_tip_speed_mps": float(-self.speed * np.sin(self.frequency * AFTER)),
            # the largest tells what a hand feels, and knows no phase
            "largest_later_over_exact": float(np.abs(trace[n:, 1]).max()) / self.speed,
        }


def claims_of(rows: Sequence[Row], left: Sequence[Row]) -> list[Claim]:
    """Proposition 1, and what the other rule loses."""
    by = {(row["rule"], row["step_s"]): row for row in left}
    midpoint, euler = by[MIDPOINT, STEP], by[EULER, STEP]
    claims = [
        at_most(
            f"largest change of the energy balance over the largest energy, {body}",
            greatest(row["balance"] for row in rows if row["body"] == body), 1e-9, "",
            "002, proposition 1, for the whole scene",
        )
        for body in ("whole", "segments", "reduced")
    ]  # fmt: skip
    return [
        *claims,
        at_most(
            "change of the first mode's energy 5 ms after release, passive midpoint",
            abs(midpoint["energy_share"] - 1.0), 1e-9, "", "002, II-B: equality in (6) without damping",
        ),
        close_to(
            "share of the first mode's energy 5 ms after release, backward Euler",
            euler["energy_share"], euler["closed_form"], 0.1, "", "(1 + w^2 T^2)^-5 at T = 1 ms",
        ),
        at_least(
            "largest tip speed from 5 ms after release on over the exact one, passive midpoint",
            midpoint["largest_later_over_exact"], 0.9, "", "the click must be felt",
        ),
        at_most(
            "the same, backward Euler", euler["largest_later_over_exact"], 0.1, "",
            "002, II-B: its numerical damping takes the click",
        ),
    ]  # fmt: skip


def _print(rows: Sequence[Row], left: Sequence[Row]) -> None:
    console = Console(stderr=True, highlight=False)
    heads = ("body", "k_c [N/m]", "balance", "largest E [J]", "peak [N]")
    table = Table(*heads, title="balance of the scene over its largest energy", title_justify="left")
    for cells in columns(rows, "body", "coupling_stiffness", "balance", "largest_energy_J", "peak_force_N"):
        table.add_row(*cells)
    console.print(table)
    names = ("rule", "step_s", "energy_share", "closed_form", "tip_speed_mps", "exact_tip_speed_mps")
    table = Table(
        "rule",
        "T [s]",
        "energy left",
        "closed form",
        "tip [m/s]",
        "exact [m/s]",
        title="5 ms after release in the first mode",
        title_justify="left",
    )
    for cells in columns(left, *names):
        table.add_row(*cells)
    console.print(table)


def _draw(
    figure: Figure, rows: Sequence[Row], release: Release, traces: dict[tuple[str, float], NDArray]
) -> None:
    left, middle, right = figure.subplots(1, 3)
    for body, colour in (("segments", COLOURS["low"]), ("reduced", COLOURS["krylov"])):
        own = [row for row in rows if row["body"] == body]
        left.loglog(
            [row["coupling_stiffness"] for row in own], [row["balance"] for row in own],
            "o-", ms=3.5, lw=1.2, color=colour, label=body,
        )  # fmt: skip
    whole = next(row["balance"] for row in rows if row["body"] == "whole")
    left.axhline(whole, color=COLOURS["faint"], lw=1.2, label="whole")
    left.axhline(1e-9, color=COLOURS["paper"], lw=1.0, ls=(0, (4, 3)), label="limit")
    left.set(xlabel="coupling stiffness k_c [N/m]", title="balance over largest energy")
    left.legend(fontsize=7.5, frameon=False)
    exact = np.linspace(0.0, SHOWN, 600)
    speed = -release.speed * np.sin(release.frequency * exact)
    middle.plot(1e3 * exact, speed, color=COLOURS["faint"], lw=1.0, label="exact")
    for name, colour in ((MIDPOINT, COLOURS["krylov"]), (EULER, COLOURS["paper"])):
        trace = traces[name, STEP]
        middle.plot(1e3 * trace[:, 0], trace[:, 1], "o-", ms=3, lw=1.2, color=colour, label=name)
        for T, stroke in zip(STEPS, ("-", (0, (2, 1.5))), strict=True):
            trace = traces[name, T]
            label = f"{name}, T = {1e3 * T:g} ms"
            right.semilogy(1e3 * trace[:, 0], trace[:, 2], color=colour, ls=stroke, lw=1.3, label=label)
    middle.set(
        xlabel="after release [ms]",
        ylabel="tip speed [m/s]",
        title="let go in the first mode, T = 1 ms",
        ylim=(-13.0, 7.0),
    )
    right.set(xlabel="after release [ms]", title="its energy over the first", ylim=(1e-10, 3.0))
    for ax in (left, middle, right):
        ax.title.set_fontsize(9.5)
    middle.legend(fontsize=7.5, frameon=False, loc="lower left")
    right.legend(fontsize=7.5, frameon=False, loc="lower left")
