"""Signed distance of a snap connector's plug: learned against grid against exact (002, section IV-A).

Errors are those of fresh random points within half the band of the surface. Times are one core's, in one
compiled function as the servo calls it, of points that all lie near the surface, which is the worst a tick
can ask, and of points of the socket half way through an insertion, many of which lie beyond the band and
take one look-up.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time_ns
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.app.cli.train_distance import Training, train_distance
from palpo.config.words import Refusal
from palpo.physics.collision.distance_errors import distance_errors, shell_points
from palpo.physics.collision.distance_field import (
    DistanceField,
    evaluate,
    exact_field,
    grid_field,
    learned_field,
    make_scratch,
    signed_distance,
)
from palpo.physics.collision.io import write_network
from palpo.physics.numerics.kernels import kernel
from palpo.physics.systems.snap.connectors.connector import Connector
from palpo.physics.systems.snap.connectors.registry import KINDS, generate
from palpo.studies.claims import Claim, Skipped, at_least, at_most
from palpo.studies.tables import COLOURS, save_figure, write_csv

Row = dict[str, Any]

BAND = 2e-3
"""Up to which distances are computed [m]; a plug is 15 to 30 mm long."""
SPACINGS = (1e-3, 5e-4, 2.5e-4, 1.25e-4)
"""Of the grids [m]."""
WIDTHS = (32, 64, 128)
"""Units in a layer, on the first plug; on the others, and in the quick form, the training's own."""
QUICK_TRAINING = Training(points=200_000, steps=4000)
POINTS = (100, 300, 1000, 3000, 10_000)
FRESH = 50_000
"""Points on which errors are measured."""
TIMED_POINTS = 20_000
"""Of a measurement: smaller batches are repeated, in compiled code."""
REPEATS = 7
"""Measurements, of which the fastest counts."""
MOST_ERROR = 0.05
"""Of the interference that the distance may err by; a force is as wrong as the depth."""
STEP = 200.0
"""At 5 kHz [us]."""
SOURCE = "002, section IV-A"


class DistanceContender(NamedTuple):
    """A distance of a plug, by kind."""

    plug: str
    connector: Connector
    kind: str
    field: DistanceField
    exact: DistanceField
    seconds: float  # to build or train [s]

    @property
    def name(self) -> str:
        """As the tables and the figure call it."""
        if self.kind == "grid":
            return f"grid {1e3 * self.field.grid.spacing:g} mm"
        return f"learned {len(self.field.learned.w1)}" if self.kind == "learned" else self.kind


def run(out: Path, quick: bool) -> list[Claim]:
    """Errors and times of every distance on the connectors' plugs; PyTorch trains the networks anew."""
    plugs = list(KINDS)[:1] if quick else list(KINDS)
    try:
        fields = [c for plug in plugs for c in _contenders(out, plug, plug == plugs[0], quick)]
    except Refusal as reason:
        raise Skipped(str(reason)) from reason
    errors = [_errors(c) for c in fields]
    times = [row for c in fields if c.plug == plugs[0] for row in _times(c)]
    write_csv(out / "errors.csv", errors)
    write_csv(out / "times.csv", times)
    save_figure(out / "collision.png", 4.4, lambda figure: _draw(figure, plugs[0], errors, times))
    _print(errors, times)
    return [*_error_claims(errors), *_time_claims(times)]


# ---- the distances


def _contenders(out: Path, plug: str, first: bool, quick: bool) -> list[DistanceContender]:
    connector = generate(plug)
    surface, exact = connector.plug, exact_field(connector.plug)

    def contender(kind: str, make: Callable[[], DistanceField]) -> DistanceContender:
        began = perf_counter()
        field = make()
        seconds = perf_counter() - began
        return DistanceContender(plug, connector, kind, field, exact, seconds)

    def learn(training: Training) -> DistanceField:
        with Progress().stage(f"training {training.width} units on the plug of {plug}"):
            learned, errors = train_distance(surface, BAND, training, source=plug)
        write_network(out / f"{plug}-{training.width}.npz", surface, learned, errors)
        return learned_field(surface, learned)

    training = QUICK_TRAINING if quick else Training()
    widths = WIDTHS if first and not quick else (training.width,)
    return [
        contender("exact", lambda: exact_field(surface, BAND)),
        *(contender("grid", partial(grid_field, surface, BAND, spacing)) for spacing in SPACINGS),
        *(contender("learned", partial(learn, replace(training, width=width))) for width in widths),
    ]


def _errors(c: DistanceContender) -> Row:
    surface = c.connector.plug
    points = shell_points(surface, 0.5 * BAND, FRESH, np.random.default_rng(1))
    e = distance_errors(c.field, c.exact, points, 0.5 * BAND)
    numbers = c.field.grid.values.size + sum(np.size(w) for w in c.field.learned[4:])
    return {
        "plug": c.plug,
        "distance": c.name,
        "kind": c.kind,
        "triangles": len(surface.triangles),
        "numbers": numbers if c.kind != "exact" else 9 * len(surface.triangles),
        "build_s": c.seconds,
        "largest_um": 1e6 * e.largest,
        "percentile_99_um": 1e6 * e.percentile_99,
        "rms_um": 1e6 * e.rms,
        "normal_median_deg": e.normal_median,
        "normal_rms_deg": e.normal_rms,
        "interference_um": 1e6 * c.connector.interference,
    }


# ---- their times


@kernel
def _repeat(field, points, distance, normal, scratch, rounds):
    for _ in range(rounds):
        evaluate(field, points, points.shape[0], distance, normal, scratch)


def _times(c: DistanceContender) -> list[Row]:
    rng = np.random.default_rng(2)
    rows = []
    for n in POINTS:
        near, socket = shell_points(c.connector.plug, 0.5 * BAND, n, rng), socket_points(c.connector, n, rng)
        row = {"distance": c.name, "kind": c.kind, "points": n}
        for where, points in (("near", near), ("socket", socket)):
            row[f"{where}_us"] = _one_core(c.field, points)
        row["near_all_cores_us"] = _all_cores(c.field, near)
        rows.append(row)
    return rows


def socket_points(connector: Connector, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Random points of the prongs' contact surfaces at rest, half way through the insertion, as the plug sees
    them [m], (n, 3)."""
    corners = np.concatenate([prong.mesh.nodes[prong.contact_triangles] for prong in connector.prongs])
    areas = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    chosen = corners[rng.choice(len(areas), n, p=areas / areas.sum())]
    on = np.einsum("nc,nci->ni", rng.dirichlet((1.0, 1.0, 1.0), n), chosen)
    return on - connector.rest_position - 0.5 * connector.stroke * connector.push


def _one_core(field: DistanceField, points: NDArray[np.float64]) -> float:
    """CPU time of one batch [us]."""
    n = len(points)
    rounds = max(1, TIMED_POINTS // n)
    distance, normal, scratch = np.empty(n), np.empty((n, 3)), make_scratch()
    _repeat(field, points, distance, normal, scratch, 1)
    least = np.inf
    for _ in range(REPEATS):
        began = thread_time_ns()
        _repeat(field, points, distance, normal, scratch, rounds)
        least = min(least, (thread_time_ns() - began) / rounds)
    return 1e-3 * least


def _all_cores(field: DistanceField, points: NDArray[np.float64]) -> float:
    """Time by the clock of one batch off line, threads and Python included [us]."""
    least = np.inf
    for _ in range(REPEATS):
        began = perf_counter()
        signed_distance(field, points)
        least = min(least, perf_counter() - began)
    return 1e6 * least


# ---- the verdict


def _error_claims(errors: Sequence[Row]) -> list[Claim]:
    claims = []
    for plug in dict.fromkeys(row["plug"] for row in errors):
        rows = [row for row in errors if row["plug"] == plug and row["kind"] == "learned"]
        best = min(rows, key=lambda row: row["percentile_99_um"])
        claims.append(
            at_most(
                f"{plug}: error of {best['distance']}, 99th percentile",
                best["percentile_99_um"], 100.0 * MOST_ERROR * 0.01 * best["interference_um"], "um",
                f"{100 * MOST_ERROR:g}% of the interference",
            )
        )  # fmt: skip
    return claims


def _time_claims(times: Sequence[Row]) -> list[Claim]:
    def of(name: str) -> Row:
        return next(row for row in times if row["distance"] == name and row["points"] == 1000)

    learned, exact = of(f"learned {Training().width}"), of("exact")
    return [
        at_most("one point near the surface, learned", learned["near_us"] / 1000, 1.0, "us",
                "one core; 1000 of them in a tick at 1 kHz"),
        at_most("1000 points of the socket half way, learned", learned["socket_us"], 0.5 * STEP, "us",
                "half a step at 5 kHz"),
        at_least("exact over learned, near the surface", exact["near_us"] / learned["near_us"], 1.0, "x",
                 f"{SOURCE}: simple calculations instead of a search"),
    ]  # fmt: skip


def _print(errors: Sequence[Row], times: Sequence[Row]) -> None:
    title = "distance near the plug: errors in um and deg, built in s, 1000 points in us"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    columns = ("plug", "distance", "p99", "max", "RMS", "normal", "built", "time")
    for k, name in enumerate(columns):
        table.add_column(name, justify="left" if k < 2 else "right", no_wrap=True)
    keys = ("percentile_99_um", "largest_um", "rms_um", "normal_rms_deg", "build_s")
    for row in errors:
        time = [t["near_us"] for t in times if t["distance"] == row["distance"] and t["points"] == 1000]
        shown = f"{time[0]:.0f}" if row["plug"] == errors[0]["plug"] else ""
        table.add_row(row["plug"], row["distance"], *(f"{row[key]:.3g}" for key in keys), shown)
    Console().print(table)


def _draw(figure: Figure, plug: str, errors: Sequence[Row], times: Sequence[Row]) -> None:
    left, right = figure.subplots(1, 2)
    names = list(dict.fromkeys(row["distance"] for row in times))
    colours = {"exact": COLOURS["monolithic"], "grid": COLOURS["low"], "learned": COLOURS["paper"]}
    for name in names:
        rows = [row for row in times if row["distance"] == name]
        kind, last = rows[0]["kind"], name == [n for n in names if n.startswith(rows[0]["kind"])][-1]
        weight = 1.8 if last else 0.8
        left.plot([r["points"] for r in rows], [r["near_us"] for r in rows], color=colours[kind], lw=weight,
                  marker="o", ms=3, label=name)  # fmt: skip
        left.plot([r["points"] for r in rows], [r["socket_us"] for r in rows], color=colours[kind], lw=weight,
                  ls=":")  # fmt: skip
        if kind == "exact":
            continue
        off = next(row for row in errors if row["plug"] == plug and row["distance"] == name)
        each = 1e3 * rows[-1]["near_us"] / rows[-1]["points"]
        right.plot(each, off["percentile_99_um"], color=colours[kind], marker="o", ls="")
        right.annotate(
            name, (each, off["percentile_99_um"]), xytext=(5, 4), textcoords="offset points", fontsize=8
        )
    left.set(xscale="log", yscale="log", xlabel="points", ylabel="one batch on one core [us]")
    left.set_title(f"{plug}: near the surface; dotted, the socket half way", loc="left", fontsize=9.5)
    left.legend(fontsize=7.5)
    right.set(yscale="log", xlabel="a point near the surface [ns]", ylabel="error, 99th percentile [um]")
    right.set_title("what the time buys", loc="left", fontsize=9.5)
    right.margins(0.25)
