"""What a blade can do to a soft body, however it is led: random stabs, draws and withdrawals.

Each is of a scene of its own, drawn from its seed: a block, a cylinder or an ellipsoid without weight, its
material and its elements, the blade, how it is turned, the forces of the tissue, the slow loop's rate. The
hand goes to random places in and about the body, at up to 0.3 m/s, and out. Whatever it did, numbers are
finite, the blade is free, no element is left inside out, the surface is closed, and the hand has given at
least what cutting took.
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
from scipy.spatial.transform import Rotation

from palpo.app.library.scene import load
from palpo.app.library.state import State
from palpo.physics.bodies.cut_body import CutBody
from palpo.studies.claims import Line, Reported, at_least, at_most, greatest, smallest
from palpo.studies.processes import processes
from palpo.studies.rows import Row
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]
SPEEDS = 0.03, 0.3
"""Of the hand on its ways from place to place [m/s], from which one is drawn for each."""
TOP, CLEAR = 0.02, 0.006
"""Height of the surface, and how far above it the blade begins [m]."""
DEEPEST, ASIDE, PLACES = 0.018, 0.01, 7
"""How far down and aside the hand goes at most [m], and how often."""
REST, LOOK = 1000, 20
"""Ticks of rest at the end, and between two looks at the blade."""


def scene_of(rng: np.random.Generator) -> str:
    """The text of a scene."""
    a, b, c = (int(n) for n in rng.integers(4, 8, 3))
    geometry = [
        f'kind = "block", size = [0.05, {TOP}, 0.05], divisions = [{a}, {min(b, 4)}, {c}]',
        f'kind = "cylinder", radius = 0.025, length = {TOP}, axis = "y", around = {6 + 2 * a}, along = 4',
        f'kind = "ellipsoid", radii = [0.03, {TOP / 2}, 0.025], divisions = {min(a, 5)}',
    ][rng.integers(3)]
    length, reach = rng.uniform(6e-3, 0.02), rng.uniform(4e-3, 8e-3)
    turn = Rotation.from_euler("YXZ", rng.uniform([-3.0, -0.7, -0.2], [3.0, 0.7, 0.2]))
    along, towards = turn.apply([0.0, 0.0, 1.0]), turn.apply([0.0, -1.0, 0.0])
    low = max(0.5 * length * abs(along[1]), 1e-3)
    middle = np.array([0.0, TOP + CLEAR + low, 0.0])
    axis = turn.as_rotvec()
    angle = float(np.linalg.norm(axis))
    turned = [*(axis / angle).tolist(), angle]
    return f"""
title = "Random cut"
gravity = [0, 0, 0]
[[bodies]]
name = "gel"
kind = "tets"
elements = "{rng.choice(["tet4", "tet4-patch"])}"
geometry = {{ {geometry} }}
placement = {{ position = [0, {TOP / 2}, 0] }}
fixed = [{{ box = [[-0.2, -0.2, -0.2], [0.2, 0.005, 0.2]] }}]
[bodies.material]
youngs_modulus = {10.0 ** rng.uniform(3.7, 4.8)}
poisson_ratio = {rng.uniform(0.2, 0.48)}
density = 1000
alpha = {rng.uniform(20.0, 60.0)}
[[bodies]]
name = "blade"
kind = "rigid"
rate = "high"
geometry = {{ kind = "block", size = [0.0004, {reach}, {length}], divisions = [1, 1, 1] }}
placement = {{ position = {(middle - 0.5 * reach * towards).tolist()}, rotation = {turned} }}
mass = 0.02
[[blades]]
body = "blade"
tissue = "gel"
edge = {[(middle + s * 0.5 * length * along).tolist() for s in (-1.0, 1.0)]}
towards = {towards.tolist()}
depth = {reach}
puncture = {rng.uniform(0.04, 0.4)}
toughness = {rng.uniform(2.0, 40.0)}
spacing = {max(2.5e-3, length / rng.integers(3, 8))}
[rates]
low_hz = {rng.choice([20, 50, 100])}
[tool]
body = "blade"
[tool.hold]
orientation = true
stiffness = "0.5 N/mm"
damping = "2 N s/m"
rotational_stiffness = "5 N m/rad"
rotational_damping = "0.005 N m s/rad"
"""


def ways_of(rng: np.random.Generator, begin: Floats) -> list[tuple[Floats, int]]:
    """Where the hand goes (3,) [m], and in how many ticks; at the end out."""
    low, high = [-ASIDE, -CLEAR - DEEPEST, -ASIDE], [ASIDE, -CLEAR, ASIDE]
    goals = [begin + rng.uniform(low, high) for _ in range(PLACES)]
    goals += [goals[-1] + [0.0, begin[1] - goals[-1][1], 0.0], begin]
    lengths = np.linalg.norm(np.diff([begin, *goals], axis=0), axis=1)
    slowest, fastest = np.log(SPEEDS)
    speeds = np.exp(rng.uniform(slowest, fastest, len(goals)))
    return [(goal, LOOK + round(1e3 * n / v)) for goal, n, v in zip(goals, lengths, speeds, strict=True)]


def evaluate(seed: int) -> Row:
    """One blade's ways; what they were, and what is left of them."""
    rng = np.random.default_rng([seed, 49])
    scene = load(scene_of(rng))
    body = scene.spec.bodies[0]  # type: ignore[attr-defined]
    row: dict[str, Any] = {
        "seed": seed, "shape": body.geometry.kind, "elements": body.elements,
        "low_hz": scene.spec.rates.low_hz, "why": "", "peak_N": np.nan, "given_J": np.nan, "cut_J": np.nan,
        "parted": -1, "inside": -1, "held": -1, "inverted": -1, "open": -1,
    }  # fmt: skip
    state = scene.build().start()
    try:
        row |= _cut(state, rng)
    except (FloatingPointError, RuntimeError) as why:
        row["why"] = str(why)
    finally:
        state.close()
    return row


def _cut(state: State, rng: np.random.Generator) -> dict[str, Any]:
    here = np.array(state.model.held)
    begin, given, peak = here, 0.0, 0.0
    for goal, ticks in [*ways_of(rng, begin), (begin, REST)]:
        for k in range(0, ticks, LOOK):
            n, last = min(LOOK, ticks - k), state.hand.position
            part = state.step(hand=here + (k + n) / ticks * (goal - here), ticks=n)
            given -= float(np.sum(part.force * np.diff(part.hand, axis=0, prepend=[last])))
            peak = max(peak, float(np.linalg.norm(part.force, axis=1).max()))
        here = goal
    rig: Any = state.rig
    told, body = rig.high.incised[0], rig.scene.members[0].body
    assert isinstance(body, CutBody)
    t = body.surface.triangles
    half = np.sort(np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]]), axis=1)
    return {
        "peak_N": peak, "given_J": given, "cut_J": float(told["work"]), "parted": len(body.cut.copies),
        "inside": int(told["inside"]), "held": int(state.contacts.forces.any(axis=1).sum()),
        "inverted": int(np.count_nonzero(body.volume_ratios() <= 0.0)),
        "open": int(np.count_nonzero(np.unique(half, axis=0, return_counts=True)[1] % 2)),
    }  # fmt: skip


def run(out: Path, quick: bool) -> list[Line]:
    """Two hundred blades, a dozen in the quick form, on two processes."""
    console, rows, many = Console(stderr=True, highlight=False), list[Row](), 12 if quick else 200
    with processes(min(2, os.cpu_count() or 1)) as pool:
        for future in as_completed([pool.submit(evaluate, seed) for seed in range(many)]):
            rows.append(future.result())
            console.print(f"  {len(rows)}/{many}", style="dim")
    rows.sort(key=lambda row: row["seed"])
    write_csv(out / "cuts.csv", rows)
    save_figure(out / "cuts.png", 4.0, lambda figure: _draw(figure, rows))
    return judged(rows)


def judged(rows: Sequence[Row]) -> list[Line]:
    """What no blade may do, and how hard they were."""
    name = f"{len(rows)} blades"
    broken = sum(bool(row["why"]) or not np.isfinite([row["peak_N"], row["cut_J"]]).all() for row in rows)
    spent = smallest(row["given_J"] - row["cut_J"] for row in rows)
    held, peak = (greatest(row[key] for row in rows) for key in ("held", "peak_N"))
    inside, inverted, opened, cut = (
        sum(row[key] > 0 for row in rows) for key in ("inside", "inverted", "open", "parted")
    )
    return [
        at_most(f"{name}: ended early, or with a number that is none", broken, 0, "", "none may"),
        at_most(f"{name}: not free at the end", inside, 0, "", "all are out"),
        at_most(f"{name}: contacts left that bear", held, 0, "", "a piece may drift by"),
        at_most(f"{name}: bodies with an element left inside out", inverted, 0, "", "none may"),
        at_most(f"{name}: bodies whose surface is open", opened, 0, "", "none may"),
        at_least(f"{name}: work of the hand beyond that of cutting", spent, 0.0, "J", "the rest is damped"),
        at_least(f"{name}: bodies cut", cut, len(rows) / 2, "", "else nothing is shown"),
        Reported(f"{name}: largest force", peak, "N", "no limit of the hand"),
    ]


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    ax = figure.subplots()
    for colour, shape in zip(COLOURS.values(), sorted({row["shape"] for row in rows}), strict=False):
        own = [row for row in rows if row["shape"] == shape]
        cut, given = (np.array([1e3 * row[key] for row in own]) for key in ("cut_J", "given_J"))
        ax.plot(cut, given, ".", color=colour, label=shape)
    most = max(1e3 * row["cut_J"] for row in rows)
    ax.plot([0.0, most], [0.0, most], lw=0.8, color=COLOURS["faint"])
    ax.set(xlabel="work of cutting [mJ]", ylabel="work of the hand [mJ]")
    ax.legend(frameon=False, fontsize=8)
