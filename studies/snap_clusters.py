"""Contact points with and without k-means: 002, section IV-A.

One insertion of the two-prong connector in its reduced model, every touching point a contact or the deepest
of a set number of clusters: sweeps and residual of the solver, and the noise of the force that is felt. The
distance is exact, so that nothing else rounds the hooks.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.studies.claims import Claim, at_most
from palpo.studies.snap_models import (
    MODELS,
    STEP,
    Row,
    build,
    case_of,
    columns,
    exact_distance,
    insert,
    percent_rms,
    push_force,
)
from palpo.studies.tables import save_figure, write_csv

KIND, MESH = "two-prong", "coarse"
CLUSTERS = (0, 2, 4, 8, 16)
"""Most contacts of a prong; 0: all touching points."""
USUAL = 4
SWEEPS, TOLERANCE = 1000, 1e-6
"""So that a solve ends where it gets no further."""
SAME = 1e-3
"""What solves to `TOLERANCE` leave of a noise of a thousandth of the force, as a share of it."""
EVERY = 64
"""Room for contacts of a prong without clusters."""


def run(out: Path, quick: bool) -> list[Claim]:
    """Solves and forces as CSV, one figure, a table and the claims."""
    progress = Progress()
    case = case_of(KIND, MESH)
    connector = case.connector
    field = exact_distance(connector)
    rows, forces = [], {}
    for clusters in (0, USUAL) if quick else CLUSTERS:
        with progress.stage(f"{clusters} clusters" if clusters else "all points"):
            changes = {"clusters": clusters, "capacity": EVERY, "sweeps": SWEEPS, "tolerance": TOLERANCE}
            series = insert(build(case, MODELS[3], field, **changes))
        force = push_force(series, connector)
        forces[clusters] = force
        touching = series.contacts > 0
        top = int(force.argmax())
        first = int(np.argmax(touching))
        rows.append(
            {
                "clusters": clusters,
                "contacts_mean": float(series.contacts[touching].mean()),
                "contacts_most": int(series.contacts.max()),
                "sweeps_mean": float(series.sweeps[touching].mean()),
                "sweeps_p95": float(np.percentile(series.sweeps[touching], 95)),
                "unconverged_percent": 100.0 * float((series.residual[touching] > TOLERANCE).mean()),
                "noise_percent": noise(force[first + 5 : top - 2], force[top]),
                "peak_N": float(force[top]),
                "peak_s": STEP * (top + 1),
                "deepest_um": 1e6 * float(series.depth.max()),
            }
        )
    write_csv(out / "clusters.csv", rows)
    save_figure(out / "clusters.png", 3.4, partial(_draw, rows=rows, forces=forces))
    _print(rows)
    return claims_of(rows)


def noise(force: NDArray[np.float64], peak: float) -> float:
    """RMS of the third difference over the peak [%], scaled so that white noise counts as its own RMS.

    Third differences take out what the insertion itself does within some milliseconds.
    """
    return percent_rms(np.diff(force, 3) / np.sqrt(20.0), peak)


def claims_of(rows: Sequence[Row]) -> list[Claim]:
    """What clusters are for."""
    by = {row["clusters"]: row for row in rows}
    every, usual = by[0], by[USUAL]
    name = f"{USUAL} clusters over all points"
    return [
        at_most(
            f"sweeps of the solver, {name}", usual["sweeps_mean"] / every["sweeps_mean"], 1.0, "",
            "002, IV-A: fewer contacts",
        ),
        at_most(
            f"noise of the force before release, {name}", usual["noise_percent"] / every["noise_percent"],
            1.0 + SAME, "", "002, IV-A: clusters keep the contacts' number and place steady",
        ),
        at_most(
            f"difference of the peak force, {name}",
            100.0 * abs(usual["peak_N"] / every["peak_N"] - 1.0), 5.0, "%",
            "the deepest points stand for their clusters",
        ),
    ]  # fmt: skip


def _print(rows: Sequence[Row]) -> None:
    heads = (
        "clusters",
        "contacts",
        "most",
        "sweeps",
        "p95",
        "short [%]",
        "noise [%]",
        "peak [N]",
        "depth [um]",
    )
    names = ("clusters", "contacts_mean", "contacts_most", "sweeps_mean", "sweeps_p95", "unconverged_percent")
    table = Table(
        *heads, title="contacts of one insertion; short: solves that end above 1e-6", title_justify="left"
    )
    for cells in columns(rows, *names, "noise_percent", "peak_N", "deepest_um"):
        table.add_row(*cells)
    Console(stderr=True, highlight=False).print(table)


def _draw(figure: Figure, rows: Sequence[Row], forces: dict[int, NDArray]) -> None:
    left, right = figure.subplots(1, 2)
    colours = {0: "#d64550", 2: "#9cc0ea", 4: "#6b9fdb", 8: "#2f6fc0", 16: "#173d70"}
    for row in rows:
        n = row["clusters"]
        label = f"{n} clusters" if n else "all points"
        time = 1e3 * STEP * np.arange(1, len(forces[n]) + 1)
        left.plot(time, forces[n], color=colours[n], lw=1.1, label=label)
        right.plot(row["sweeps_mean"], row["noise_percent"], "o", color=colours[n])
    left.set(xlabel="time [ms]", ylabel="force on the floor [N]", title="one insertion")
    left.legend(fontsize=7.5, frameon=False)
    right.set(xlabel="sweeps of a solve, mean", ylabel="noise before release [% of the peak]")
    right.set(title="what clusters are for", ylim=(0.0, None))
    right.margins(0.25)
    for ax in (left, right):
        ax.title.set_fontsize(9.5)
