"""The click in the hand: snap scenes in lock-step at 1 kHz, a simulated hand on a simulated Touch.

What the hand feels is the force that is sent to the device, over the scene's shown force scale. Beside it
stand two insertions of the same model off line: led along the way that the hand took, which tells what servo,
limits and device add; and along the way that it was told to take, as a hand would that does not yield.

The passivity observer keeps the account of the energy that the device hands out. It is kept at the reported
positions, and so is the force; a Touch rounds them to 55 um. So each scene runs with an ideal encoder, too.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from palpo.app.cli.progress import Progress
from palpo.app.devices.mock import scripted_path
from palpo.app.devices.protection import limits_of, workspace_of
from palpo.app.devices.table import choose
from palpo.app.report.outcome import vectors
from palpo.app.runtime.options import Options
from palpo.app.runtime.rigs import Start
from palpo.app.systems.snap.rig import SnapRig
from palpo.config.load import load_scene
from palpo.config.schema.snap import SnapScene
from palpo.haptics.device import VirtualDevice
from palpo.haptics.drain import drain_rows
from palpo.haptics.drivers import servo_run
from palpo.haptics.row import NAMES
from palpo.physics.systems.snap.click import Click, click
from palpo.physics.systems.snap.insertion import Insertion
from palpo.studies.claims import Claim, at_least, at_most, close_to
from palpo.studies.snap_models import SCENES, Row, columns
from palpo.studies.tables import COLOURS, save_figure, write_csv

Floats = NDArray[np.float64]

HAND = choose(Options("snap", device="mock"))
BATCH = 2000
"""Ticks between two looks into the ring of rows."""
ALONG, ALONE = "along the hand's way", "along the told way"


@dataclass(frozen=True)
class FeltClick:
    """A force along the push [N], how far the plug is in [m] and the energy handed out [J], once a tick."""

    time: Floats
    force: Floats
    travel: Floats
    energy: Floats

    def click(self, end: int, interference: float) -> Click:
        """Of the insertion, which ends at this tick."""
        return click(self.time[:end], self.force[:end], self.travel[:end], interference)


class SnapTrial:
    """A scene, run by its simulated hand, and its model off line."""

    def __init__(self, spec: SnapScene, progress: Progress) -> None:
        self.spec, self.progress = spec, progress
        self.way = scripted_path(spec).table()[0]
        model = self._rig(0.0).model
        self.push, self.start = model.connector.push, model.start
        told = (self.way - self.start) @ self.push
        deepest = int(told.argmax())
        self.end = deepest + int(np.argmax(told[deepest:] < told[deepest] - 1e-6))
        """Tick at which the hand is first led back."""
        self.felt, reached = self._in_the_hand(None)
        self.ideal, _ = self._in_the_hand(0.0)
        self.references = {ALONG: self._off_line(reached), ALONE: self._off_line(self.way)}
        self.clicks = [
            s.click(self.end, model.connector.interference) for s in (self.felt, *self.references.values())
        ]

    def _rig(self, resolution: float | None) -> SnapRig:
        def device_at(held: Floats) -> VirtualDevice:
            device, self._path = HAND.make(self.spec, held)
            return device if resolution is None else device._replace(resolution=resolution)

        workspace, limits = workspace_of(self.spec), limits_of(self.spec)
        return SnapRig(self.spec, Start(device_at, workspace, limits, progress=self.progress))

    def _in_the_hand(self, resolution: float | None) -> tuple[FeltClick, Floats]:
        """What it feels, and the positions (n, 3) [m] that its device reported, scene axes.

        resolution: of the encoder [m], None for the device's own.
        """
        rig, rows, space = self._rig(resolution), [], workspace_of(self.spec)
        for first in range(0, len(self.way), BATCH):
            self._path.keep(first)
            servo_run(rig.servo, min(BATCH, len(self.way) - first))
            rows.append(drain_rows(rig.servo))
        found = dict(zip(NAMES, np.concatenate(rows).T, strict=True))
        sent = vectors(found, "sent_x", "sent_y", "sent_z") @ space.rotation.T / space.force_scale
        travel = (vectors(found, "held_x", "held_y", "held_z") - self.start) @ self.push
        felt = FeltClick(found["time_s"], -sent @ self.push, travel, found["energy_J"])
        return felt, vectors(found, "px", "py", "pz")

    def _off_line(self, way: Floats) -> FeltClick:
        """The hold's force in the mean of a tick where its target is led along a way (n, 3) [m], by ticks."""
        steps = self.spec.integration.substeps
        before, shares = np.vstack([way[:1], way[:-1]]), np.arange(1, steps + 1) / steps
        targets = before[:, None] + shares[:, None] * (way - before)[:, None]
        s = Insertion(self._rig(None).model).follow(targets.reshape(-1, 3))
        ends = np.arange(steps - 1, len(s.time), steps)
        pull = (-s.hand[: len(ends) * steps, :3] @ self.push).reshape(-1, steps).mean(axis=1)
        return FeltClick(s.time[ends], pull, s.travel[ends], np.zeros(len(ends)))

    def row(self, name: str) -> Row:
        """What the trial comes to."""
        own, along, alone = self.clicks
        scale = self.spec.workspace.force_scale
        assert scale is not None
        return {
            "scene": name,
            "force_scale": scale,
            "peak_N": own.peak,
            "drop_N": own.drop,
            "release_s": own.release,
            "sent_peak_N": own.peak * scale,
            "along_peak_N": along.peak,
            "along_drop_N": along.drop,
            "alone_peak_N": alone.peak,
            "alone_drop_N": alone.drop,
            "latched": own.latched,
            "highest_energy_mJ": 1e3 * float(self.felt.energy.max()),
            "highest_energy_ideal_mJ": 1e3 * float(self.ideal.energy.max()),
            "click_costs_mJ": -1e3 * float(self.felt.energy[: self.end].min()),
        }


def run(out: Path, quick: bool) -> list[Claim]:
    """Every scene, in the hand and off line; quick: the two-prong connector at its coarse mesh."""
    progress = Progress()
    trials: dict[str, SnapTrial] = {}
    for name in ["snap"] if quick else SCENES.values():
        spec = load_scene(name, ["connector.mesh=coarse"] if quick else [])
        assert isinstance(spec, SnapScene)
        with progress.stage(name):
            trials[name] = SnapTrial(spec, progress)
    rows = [trial.row(name) for name, trial in trials.items()]
    write_csv(out / "haptic.csv", rows)
    save_figure(out / "haptic.png", 1.0 + 2.2 * len(trials), partial(_draw, trials=trials))
    _print(rows)
    return [claim for row in rows for claim in claims_of(row)]


def claims_of(row: Row) -> list[Claim]:
    """The click survives, and the coupling is passive."""
    name = row["scene"]
    return [
        close_to(f"{name}: peak in the hand over the force scale", row["peak_N"], row["along_peak_N"], 2.0,
                 "N", "off line along the hand's way"),
        close_to(f"{name}: the same, beside a hand that does not yield", row["peak_N"], row["alone_peak_N"],
                 10.0, "N", "off line along the told way"),
        at_least(f"{name}: drop over that of a hand that does not yield",
                 row["drop_N"] / row["alone_drop_N"], 0.8, "", "the click must be felt"),
        at_most(f"{name}: highest energy that the device handed out, ideal encoder",
                row["highest_energy_ideal_mJ"], 1e-3, "mJ", "the coupling is passive"),
        at_most(f"{name}: the same with the Touch's encoder, over what the click costs the hand",
                row["highest_energy_mJ"] / row["click_costs_mJ"], 0.1, "", "rounding of free motion"),
    ]  # fmt: skip


def _print(rows: list[Row]) -> None:
    heads = ("scene", "peak [N]", "hand's way", "told way", "drop [N]", "hand's way", "told way")
    table = Table(
        *heads, title="the click in the hand over the force scale, and off line", title_justify="left"
    )
    names = ("scene", "peak_N", "along_peak_N", "alone_peak_N", "drop_N", "along_drop_N", "alone_drop_N")
    for cells in columns(rows, *names):
        table.add_row(*cells)
    Console(stderr=True, highlight=False).print(table)


def _draw(figure: Figure, trials: dict[str, SnapTrial]) -> None:
    axes = figure.subplots(len(trials), 3, squeeze=False, width_ratios=[2, 1.4, 1.4])
    for (name, trial), (left, middle, right) in zip(trials.items(), axes, strict=True):
        lines = {"in the hand": trial.felt} | trial.references
        colours = (COLOURS["krylov"], COLOURS["faint"], COLOURS["paper"])
        shown = slice(trial.end // 4, trial.end)
        for (label, felt), colour, width in zip(lines.items(), colours, (1.1, 2.6, 1.0), strict=True):
            order = 1 if label == ALONG else 2
            left.plot(felt.time[shown], felt.force[shown], color=colour, lw=width, zorder=order, label=label)
            middle.plot(
                1e3 * felt.travel[shown], felt.force[shown], color=colour, lw=0.7 * width, zorder=order
            )
        left.set(ylabel="force [N]")
        left.set_title(name, loc="left", fontsize=9.5)
        for felt, colour, label in ((trial.felt, COLOURS["krylov"], "Touch's encoder"),
                                    (trial.ideal, COLOURS["paper"], "ideal encoder")):  # fmt: skip
            right.plot(felt.time, 1e3 * felt.energy, color=colour, lw=1.1, label=label)
        right.axhline(0.0, color=COLOURS["faint"], lw=0.8)
        right.set(ylabel="energy handed out [mJ]")
    axes[-1, 0].set(xlabel="time [s]")
    axes[-1, 1].set(xlabel="travel of the plug [mm]")
    axes[-1, 2].set(xlabel="time [s]")
    for column in (0, 2):
        axes[0, column].margins(y=0.35)
    axes[0, 0].legend(fontsize=7.5, frameon=False, loc="upper left")
    axes[0, 2].legend(fontsize=7.5, frameon=False, loc="upper right")
