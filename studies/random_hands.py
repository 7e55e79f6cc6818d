"""What a hand can do to a soft body, whatever it does: random paths over five scenes.

A path leads through random places at up to 0.5 m/s, deep into the body and far away from it, turns the tool,
rests now and then, and ends where it began. The body must bear that: every number is finite, no element stays
turned inside out, the tool is free again, the body is where it was unless nothing holds it, and the hand gets
no more work than there was energy.
"""

import os
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft import SoftBody
from palpo.studies.claims import Line, Reported, at_most
from palpo.studies.processes import processes
from palpo.studies.rows import Row
from palpo.studies.runs import SceneDrive
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]
FASTEST = 0.03, 0.5
"""Highest speeds of a hand on its ways from place to place [m/s], from which one is drawn for each."""
TURNED = 0.7
"""Most of a turn about each axis [rad]."""
LASTS, AFTER = 2.0, 1.0
"""Seconds of random places, and of rest at the end."""
PERIODS = 20
"""Ticks between two looks at the bodies."""
STRAYS = 2.0
"""Per cent of its size by which a held body may be away from where it was."""


@dataclass(frozen=True)
class Room:
    """Where the hand of a scene goes."""

    begin: tuple[float, float, float]
    middle: tuple[float, float, float]
    reach: tuple[float, float, float]
    """[m] About the middle, along each axis."""
    held: bool = True
    """Whether something holds the body, so that it comes back."""


ROOMS = {
    "probe": Room((-0.010, 0.045, 0.0), (0.0, 0.032, 0.0), (0.025, 0.014, 0.025)),
    "grooves": Room((-0.025, 0.042, 0.0), (0.0, 0.028, 0.0), (0.035, 0.014, 0.015)),
    "needle": Room((0.072, 0.160, 0.0), (0.072, 0.140, 0.0), (0.030, 0.020, 0.030)),
    "biopsy": Room((0.040, 0.188, 0.0), (0.026, 0.150, 0.0), (0.016, 0.042, 0.016)),
    "wire": Room((0.120, 0.200, 0.0), (0.120, 0.200, 0.0), (0.100, 0.120, 0.100), held=False),
    "fold": Room((0.063, 0.0035, 0.0), (0.0, 0.035, 0.0), (0.060, 0.030, 0.020)),
}


def random_hand(room: Room, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Places (n, 3) [m] and orientations (n, 4) of a hand at 1 kHz."""
    here, turn = np.array(room.begin), np.zeros(3)
    places, turns = [np.tile(here, (100, 1))], [np.zeros((100, 3))]

    def go(to: Floats, turned: Floats, speed: float) -> None:
        nonlocal here, turn
        n = max(20, round(1875.0 * float(np.linalg.norm(to - here)) / speed))
        share = np.arange(1, n + 1)[:, None] / n
        share = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
        places.append(here + share * (to - here))
        turns.append(turn + share * (turned - turn))
        here, turn = to, turned

    while sum(map(len, places)) < 1000 * LASTS:
        to = np.array(room.middle) + rng.uniform(-1.0, 1.0, 3) * room.reach
        turned = rng.uniform(-TURNED, TURNED, 3) * (rng.random() < 0.5)
        go(to, turned, float(np.exp(rng.uniform(*np.log(FASTEST)))))
        if rng.random() < 0.3:
            go(here.copy(), turn.copy(), float(rng.uniform(*FASTEST)))
    go(np.array([here[0], max(here[1], room.begin[1]) + 0.02, here[2]]), np.zeros(3), 0.2)
    go(np.array(room.begin), np.zeros(3), 0.2)
    go(here.copy(), np.zeros(3), 1.0)
    places.append(np.tile(here, (round(1000 * AFTER), 1)))
    turns.append(np.zeros((round(1000 * AFTER), 3)))
    return np.vstack(places), Rotation.from_rotvec(np.vstack(turns)).as_quat(scalar_first=True)


def evaluate(scene: str, seed: int) -> Row:
    """One path; from when the scene has come to rest with the hand where it begins."""
    room = ROOMS[scene]
    places, turns = random_hand(room, np.random.default_rng([seed, *scene.encode()]))
    led = np.diff(places, axis=0, prepend=places[:1])
    rotations = Rotation.from_quat(turns, scalar_first=True)
    turned = np.vstack([np.zeros((1, 3)), (rotations[1:] * rotations[:-1].inv()).as_rotvec()])
    with SceneDrive(scene) as drive:
        run, begin = drive.lock, np.tile(places[0], (round(1000 * AFTER), 1))
        run.high.port.position[:] = places[0]
        run.run(begin, np.tile(turns[0], (len(begin), 1)))
        bodies = [
            member.body for low in run.lows for member in low.members if isinstance(member.body, SoftBody)
        ]
        before, energy = [body.x.copy() for body in bodies], sum(body.energy() for body in bodies)
        force, least, most, first = np.zeros((0, 3)), np.inf, 0, 0
        given = 0.0
        while first < len(places):
            part = slice(first, first + PERIODS)
            trace = run.run(places[part], turns[part])
            force = np.vstack([force, trace["force"]])
            first += len(trace["force"])
            given += float(np.sum(trace["reaction"] * led[part][: len(trace["force"])]))
            given += float(np.sum(trace["moment"] * turned[part][: len(trace["force"])]))
            ratios = np.concatenate([body.volume_ratios() for body in bodies])
            least, most = min(least, float(ratios.min())), max(most, int((ratios <= 0.0).sum()))
            if len(trace["force"]) < len(places[part]):
                break
        away = [
            float(np.linalg.norm(body.x - x, axis=1).max() / np.ptp(x, axis=0).max())
            for body, x in zip(bodies, before, strict=True)
        ]
        return {
            "scene": scene, "seed": seed, "ticks": len(places), "done": first, "why": run.broken,
            "peak_N": float(np.linalg.norm(force, axis=1).max()), "finite": bool(np.isfinite(force).all()),
            "inside_out_pressed": most, "least_volume": least,
            "inside_out_left": int((ratios <= 0.0).sum()), "contacts_left": int(trace["contacts"][-1]),
            "given_J": given, "lost_J": energy - sum(body.energy() for body in bodies),
            "away_percent": 100.0 * max(away),
        }  # fmt: skip


def run(out: Path, quick: bool) -> list[Line]:
    """A hundred paths in each scene, three in the quick form, on two processes."""
    console, rows = Console(stderr=True, highlight=False), list[Row]()
    wanted = [(scene, seed) for seed in range(3 if quick else 100) for scene in ROOMS]
    with processes(min(2, os.cpu_count() or 1)) as pool:
        started = [pool.submit(evaluate, *one) for one in wanted]
        for future in as_completed(started):
            rows.append(future.result())
            console.print(f"  {len(rows)}/{len(wanted)}  {rows[-1]['scene']} {rows[-1]['seed']}", style="dim")
    rows.sort(key=lambda row: (list(ROOMS).index(row["scene"]), row["seed"]))
    write_csv(out / "random.csv", rows)
    save_figure(out / "random.png", 4.6, lambda figure: _draw(figure, rows))
    return [line for scene in ROOMS for line in judged(scene, [row for row in rows if row["scene"] == scene])]


def judged(scene: str, rows: Sequence[Row]) -> list[Line]:
    """What no path of a scene may do, and how hard they were."""
    name, source = f"{scene}, {len(rows)} paths", "none may"
    broken = sum(row["done"] < row["ticks"] or not row["finite"] for row in rows)
    left = sum(row["inside_out_left"] for row in rows)
    given = max(row["given_J"] - row["lost_J"] for row in rows)
    inside_out = sum(row["inside_out_pressed"] > 0 for row in rows)
    lines: list[Line] = [
        at_most(f"{name}: ended early, or with a number that is none", broken, 0, "", source),
        at_most(f"{name}: elements left inside out", left, 0, "", source),
        at_most(f"{name}: work that the hand got beyond what bodies lost", given, 0.0, "J", "it came back"),
        Reported(f"{name}: largest force", max(row["peak_N"] for row in rows), "N", "the hand has no limit"),
        Reported(
            f"{name}: some element inside out while pressed", inside_out, "paths", "Hooke's law lets it"
        ),
    ]
    if ROOMS[scene].held:
        away = max(row["away_percent"] for row in rows)
        lines.append(
            at_most(f"{name}: a node from where it was", away, STRAYS, "% of the size", "it comes back")
        )
    return lines


def _draw(figure: Figure, rows: Sequence[Row]) -> None:
    axes = figure.subplots(1, 2)
    for k, scene in enumerate(ROOMS):
        own = [row for row in rows if row["scene"] == scene]
        colour = list(COLOURS.values())[k]
        axes[0].plot(
            [row["peak_N"] for row in own],
            [row["least_volume"] for row in own],
            ".",
            color=colour,
            label=scene,
        )
        axes[1].plot(
            [row["peak_N"] for row in own], [-1e3 * row["given_J"] for row in own], ".", color=colour
        )
    axes[0].axhline(0.0, color=COLOURS["faint"], lw=0.8)
    axes[0].set(xlabel="largest force of a path [N]", ylabel="least volume of an element, over that at rest")
    axes[1].axhline(0.0, color=COLOURS["faint"], lw=0.8)
    axes[1].set(xlabel="largest force of a path [N]", ylabel="work that the hand lost [mJ]")
    axes[0].legend(frameon=False, fontsize=8)
