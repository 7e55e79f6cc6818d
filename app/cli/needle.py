"""`palpo needle`: a needle pushed straight into its tissue and drawn out, force over depth on both ways."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.app.library.scene import Scene
from palpo.app.library.state import State
from palpo.app.report.figures import draw_ways
from palpo.config.load import load_scene
from palpo.config.words import Refusal

Floats = NDArray[np.float64]

PIECE = 20
"""Ticks between two looks at the needle."""
RESTS = 0.3
"""Seconds for which the needle rests at its deepest."""


class Ways(NamedTuple):
    """What the hand felt, a row for each PIECE of ticks."""

    way: Floats
    """(n,) of the hand along the needle [m]."""
    depth: Floats
    """(n,) length of shaft that is in the channel [m]."""
    along: Floats
    """(n,) force that pushes the needle, in the direction of its tip [N]."""
    across: Floats
    """(n,) force across it [N]."""
    aside: Floats
    """(n,) how far the end of the channel lies aside of the needle's line at rest [m]."""
    turned: int
    """Row at which it begins to be drawn out."""


def insert(
    scene: str, overrides: Sequence[str], depth: float, speed: float, progress: Progress
) -> tuple[str, Ways]:
    """The scene's first needle to a depth [m] at a speed [m/s], and out; its name and that of its tissue, in
    words, and what was felt.

    Raises Refusal for a scene without needles, and for a needle that comes no deeper than it is pushed.
    """
    loaded = Scene.of(load_scene(scene, overrides), scene)
    if not getattr(loaded.spec, "needles", ()):
        raise Refusal(f"{scene}: a scene with a table `needles` is needed here, such as `biopsy`")
    with progress.stage("building the scene"):
        model = loaded.build()
        state = model.start()
    [needle, *_] = state.needles
    ahead, begin = needle.ahead, np.array(model.held)
    rows: list[tuple[float, ...]] = []
    most = depth + _size(state)

    def go(way: float) -> None:
        force = state.step(hand=begin + way * ahead, ticks=PIECE).force.mean(axis=0)
        along = float(-force @ ahead)
        now = state.needles[0]
        off = now.path[-1] - begin if len(now.path) else np.zeros(3)
        aside = float(np.linalg.norm(off - (off @ ahead) * ahead)) if len(now.path) else 0.0
        rows.append((way, now.inside, along, float(np.linalg.norm(force + along * ahead)), aside))

    way, step = 0.0, 1e-3 * PIECE * speed * (loaded.dt / 1e-3)
    with progress.stage("pushing it in"):
        while state.needles[0].inside < depth:
            way += step
            if way > most:
                raise Refusal(
                    f"{scene}: pushed by {1e3 * way:.0f} mm the needle is {1e3 * rows[-1][1]:.1f} mm deep, "
                    f"and {1e3 * depth:.0f} were asked for; give a lesser depth"
                )
            go(way)
        for _ in range(round(RESTS / (PIECE * loaded.dt))):
            go(way)
    turned = len(rows)
    with progress.stage("drawing it out"):
        while way > 0.0:
            way -= step
            go(way)
    state.close()
    ways, inside, along, across, aside = np.array(rows).T
    return f"{needle.needle} in {needle.tissue}", Ways(ways, inside, along, across, aside, turned)


def _size(state: State) -> float:
    """Length of a diagonal of the box around the tissue [m], after which a needle has been stopped."""
    x = state.rig.scene.needles[0].body.x  # type: ignore[attr-defined]
    return float(np.linalg.norm(x.max(axis=0) - x.min(axis=0)))


def peak_and_drop(ways: Ways) -> tuple[float, float, float]:
    """Largest force before the tip is in [N], the way of the hand there [m], and the least force after it,
    before as much friction has grown [N]."""
    inside = np.flatnonzero(ways.depth[: ways.turned] > 0.0)
    first = int(inside[0]) if len(inside) else ways.turned
    top = int(np.argmax(ways.along[: first + 1]))
    after = ways.along[first : ways.turned]
    return float(ways.along[top]), float(ways.way[top]), float(after.min(initial=ways.along[top]))


def print_ways(name: str, ways: Ways, steps: int = 6) -> None:
    """A line for each of some depths, with the force on either way."""
    table, into = Table("depth", "force in", "force out", "aside"), slice(0, ways.turned)
    deepest = float(ways.depth[into].max())
    for depth in deepest * np.arange(1, steps + 1) / steps:
        i = int(np.argmin(np.abs(ways.depth[into] - 0.999 * depth)))
        o = ways.turned + int(np.argmin(np.abs(ways.depth[ways.turned :] - 0.98 * depth)))
        told = f"{ways.along[i]:.3f} N", f"{ways.along[o]:.3f} N", f"{1e3 * ways.aside[i]:.1f} mm"
        table.add_row(f"{1e3 * depth:.1f} mm", *told)
    Console(highlight=False).print(table)
    peak, at, least = peak_and_drop(ways)
    print(f"{name}: the surface gives way at {peak:.3f} N, {1e3 * at:.1f} mm on; then {least:.3f} N")


def write_ways(folder: Path, ways: Ways) -> list[Path]:
    """Numbers and picture of both ways."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers, picture = folder / "needle.csv", folder / "needle.png"
    with numbers.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["way_m", "depth_m", "force_along_N", "force_across_N", "aside_m"])
        out.writerows(np.column_stack(ways[:5]).tolist())
    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    into = np.arange(len(ways.way)) < ways.turned
    peak = np.flatnonzero(into & (ways.way == peak_and_drop(ways)[1]))[:1]
    draw_ways(axes, 1e3 * ways.way, ways.along, into, peak)
    axes.set_xlabel("way of the hand along the needle [mm]")
    figure.savefig(picture, dpi=150)
    return [numbers, picture]
