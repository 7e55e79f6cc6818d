"""What a needle can do to a soft body, however it is led: random insertions, bends and withdrawals.

Each is of a scene of its own, drawn from its seed: a block, a cylinder or an ellipsoid, its material and its
elements, the needle, its bevel and its tilt, the forces of the tissue, the slow loop's rate. The hand goes to
random depths and aside, at up to 0.3 m/s, draws the needle out and comes back to where it began. Whatever it
did, numbers are finite, the needle is free, no point is held, the body is where it was, and the hand has
given at least what cutting took.
"""

import os
from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console

from palpo.app.library.scene import load
from palpo.app.library.state import State
from palpo.studies.claims import Line, Reported, at_least, at_most, greatest, smallest
from palpo.studies.processes import processes
from palpo.studies.rows import Row
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]
SPEEDS = 0.03, 0.3
"""Of the hand on its ways from place to place [m/s], from which one is drawn for each."""
TOP, CLEAR, LENGTH = 0.05, 0.008, 0.11
"""Height of the surface, how far before it the tip begins, and the needle's length [m]."""
DEEPEST, ASIDE, PLACES = 0.045, 0.006, 7
"""How far on and aside the hand goes at most [m], and how often."""
PULLED = 0.04
"""How far behind its beginning the hand draws the needle [m]."""
REST = 1500
"""Ticks of rest before and after."""
LOOK = 20
"""Ticks between two looks at the needle."""
DAMPED = 20.0, 60.0
"""Bodies' damping by their mass, alpha [1/s]."""
AWAY = DEEPEST * float(np.exp(-0.5e-3 * DAMPED[0] * REST))
"""How far from where it was a node may be after the rest [m]: what is left of a swing by all of the way."""


def scene_of(rng: np.random.Generator) -> tuple[str, Floats]:
    """The text of a scene, and the direction (3,) in which its needle points."""
    a, b, c = (int(n) for n in rng.integers(3, 7, 3))
    geometry, elements = [
        (f'kind = "block", size = [0.06, {TOP}, 0.06], divisions = [{a}, {b}, {c}]', '"tet4"'),
        (f'kind = "block", size = [0.06, {TOP}, 0.06], divisions = [{a}, {b}, {c}]', '"tet10"'),
        (f'kind = "cylinder", radius = 0.03, length = {TOP}, axis = "y", around = {6 + 2 * a}, along = {b}',
         '"tet4-patch"'),
        (f'kind = "ellipsoid", radii = [0.04, {TOP / 2}, 0.035], divisions = {min(a, 4)}', '"tet4-patch"'),
    ][rng.integers(4)]  # fmt: skip
    law = ("linear", "neo-hookean")[rng.integers(2)]
    tilt = np.tan(rng.uniform(-0.35, 0.35, 2))
    ahead = np.array([tilt[0], -1.0, tilt[1]]) / np.linalg.norm([tilt[0], 1.0, tilt[1]])
    start = np.array([*rng.uniform(-ASIDE, ASIDE, 2), TOP])[[0, 2, 1]] - CLEAR * ahead
    puncture = rng.uniform(0.04, 0.6)
    return (
        f"""
title = "Random insertion"
[[bodies]]
name = "gel"
kind = "tets"
elements = {elements}
geometry = {{ {geometry} }}
placement = {{ position = [0, {TOP / 2}, 0] }}
fixed = [{{ box = [[-0.2, -0.2, -0.2], [0.2, 0.012, 0.2]] }}]
[bodies.material]
law = "{law}"
youngs_modulus = {10.0 ** rng.uniform(3.5, 4.8)}
poisson_ratio = {rng.uniform(0.2, 0.48)}
density = 1000
alpha = {rng.uniform(*DAMPED)}
[[bodies]]
name = "needle"
kind = "beam"
rate = "high"
material = "steel"
[bodies.geometry]
kind = "line"
start = {start.tolist()}
end = {(start - LENGTH * ahead).tolist()}
elements = {rng.integers(5, 14)}
radius = {rng.uniform(2e-4, 9e-4)}
[[needles]]
body = "needle"
tissue = "gel"
puncture = {puncture}
cutting = {puncture * rng.uniform(0.05, 0.9)}
friction = {rng.uniform(5.0, 86.0)}
bevel = {rng.choice([0.0, 0.0, 0.35, 0.8])}
spacing = {rng.uniform(8e-4, 4e-3)}
[rates]
low_hz = {rng.choice([20, 50, 100, 200])}
[tool]
body = "needle"
[tool.hold]
end = "last"
orientation = true
stiffness = "0.5 N/mm"
damping = "2 N s/m"
rotational_stiffness = "5 N m/rad"
rotational_damping = "0.005 N m s/rad"
""",
        ahead,
    )


def ways_of(rng: np.random.Generator, begin: Floats, ahead: Floats) -> list[tuple[Floats, int]]:
    """Where the hand goes (3,) [m], and in how many ticks; at the end out, and back to its beginning."""
    goals = [
        begin + rng.uniform(0.0, DEEPEST) * ahead + (k > 1) * rng.uniform(-ASIDE, ASIDE, 3)
        for k in range(PLACES)
    ]
    goals += [begin - PULLED * ahead, begin]
    lengths = np.linalg.norm(np.diff([begin, *goals], axis=0), axis=1)
    slowest, fastest = np.log(SPEEDS)
    speeds = np.exp(rng.uniform(slowest, fastest, len(goals)))
    return [(goal, LOOK + round(1e3 * n / v)) for goal, n, v in zip(goals, lengths, speeds, strict=True)]


def evaluate(seed: int) -> Row:
    """One insertion; what it was, and what is left of it."""
    rng = np.random.default_rng([seed, 36])
    text, ahead = scene_of(rng)
    scene = load(text)
    body, spec = scene.spec.bodies[0], scene.spec.needles[0]  # type: ignore[attr-defined]
    row: dict[str, Any] = {
        "seed": seed, "shape": body.geometry.kind, "elements": body.elements, "law": body.material.law,
        "low_hz": scene.spec.rates.low_hz, "bevel_rad": spec.bevel,
        "why": "", "peak_N": np.nan, "deepest_m": np.nan, "given_J": np.nan, "cut_J": 0.0,
        "left_m": np.nan, "held": -1, "away_m": np.nan,
    }  # fmt: skip
    state = scene.build().start()
    try:
        row |= _insert(state, rng, ahead, spec.cutting)
    except (FloatingPointError, RuntimeError) as why:
        row["why"] = str(why)
    finally:
        state.close()
    return row


def _insert(state: State, rng: np.random.Generator, ahead: Floats, cutting: float) -> dict[str, Any]:
    begin = np.array(state.model.held)
    state.step(hand=begin, ticks=REST)
    before = state.positions["gel"].copy()
    deepest = taken = given = peak = most = 0.0
    here = begin
    for goal, ticks in [*ways_of(rng, begin, ahead), (begin, REST)]:
        for k in range(0, ticks, LOOK):
            n, last = min(LOOK, ticks - k), state.hand.position
            part = state.step(hand=here + (k + n) / ticks * (goal - here), ticks=n)
            given -= float(np.sum(part.force * np.diff(part.hand, axis=0, prepend=[last])))
            peak = max(peak, float(np.linalg.norm(part.force, axis=1).max()))
            deep = state.needles[0].depth
            most = max(most, deep)
            # of each stay inside, the longest channel
            deepest, taken = (max(deepest, deep), taken) if deep > 0.0 else (0.0, taken + cutting * deepest)
        here = goal
    away = np.linalg.norm(state.positions["gel"] - before, axis=1).max()
    return {
        "peak_N": peak, "deepest_m": most, "given_J": given, "cut_J": taken, "left_m": state.needles[0].depth,
        "held": len(state.contacts.points), "away_m": float(away),
    }  # fmt: skip


def run(out: Path, quick: bool) -> list[Line]:
    """Two hundred insertions, a dozen in the quick form, on two processes."""
    console, rows, many = Console(stderr=True, highlight=False), list[Row](), 12 if quick else 200
    with processes(min(2, os.cpu_count() or 1)) as pool:
        for future in as_completed([pool.submit(evaluate, seed) for seed in range(many)]):
            rows.append(future.result())
            console.print(f"  {len(rows)}/{many}", style="dim")
    rows.sort(key=lambda row: row["seed"])
    write_csv(out / "insertions.csv", rows)
    save_figure(out / "insertions.png", 4.0, lambda figure: _draw(figure, rows))
    return judged(rows)


def judged(rows: Sequence[Row]) -> list[Line]:
    """What no insertion may do, and how hard they were."""
    name = f"{len(rows)} insertions"
    broken = sum(bool(row["why"]) or not np.isfinite([row["peak_N"], row["away_m"]]).all() for row in rows)
    inside = sum(row["left_m"] != 0.0 for row in rows)
    spent = smallest(row["given_J"] - row["cut_J"] for row in rows)
    in_any = sum(row["cut_J"] > 0.0 for row in rows)
    return [
        at_most(f"{name}: ended early, or with a number that is none", broken, 0, "", "none may"),
        at_most(f"{name}: needles that are not free at the end", inside, 0, "", "all were drawn out"),
        at_most(f"{name}: contacts left", greatest(row["held"] for row in rows), 0, "", "nothing is held"),
        at_most(
            f"{name}: a node from where it was",
            greatest(row["away_m"] for row in rows),
            AWAY,
            "m",
            "exp(-alpha t / 2)",
        ),
        at_least(
            f"{name}: work of the hand beyond that of cutting", spent, 0.0, "J", "the rest is friction's"
        ),
        at_least(f"{name}: needles that went in", in_any, len(rows) / 2, "", "else nothing is shown"),
        Reported(
            f"{name}: deepest channel", 1e3 * greatest(row["deepest_m"] for row in rows), "mm", "of all"
        ),
        Reported(
            f"{name}: largest force", greatest(row["peak_N"] for row in rows), "N", "no limit of the hand"
        ),
    ]


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.subplots(1, 2)
    for colour, shape in zip(COLOURS.values(), sorted({row["shape"] for row in rows}), strict=False):
        own = [row for row in rows if row["shape"] == shape]
        cut, given = (np.array([1e3 * row[key] for row in own]) for key in ("cut_J", "given_J"))
        axes[0].plot(cut, given, ".", color=colour, label=shape)
        away = [1e6 * row["away_m"] for row in own]
        axes[1].semilogy([row["peak_N"] for row in own], away, ".", color=colour)
    most = max(1e3 * row["cut_J"] for row in rows)
    axes[0].plot([0.0, most], [0.0, most], lw=0.8, color=COLOURS["faint"])
    axes[0].set(xlabel="work of cutting [mJ]", ylabel="work of the hand [mJ]")
    axes[1].axhline(1e6 * AWAY, lw=0.8, color=COLOURS["faint"])
    axes[1].set(xlabel="largest force [N]", ylabel="a node from where it was, at most [µm]")
    axes[0].legend(frameon=False, fontsize=8)
