"""How far the servo's force is from that of everything at 1 kHz, over the speed of the hand.

Taps, strokes, shakes, let-goes and a real hand's recording (`palpo.studies.hand_motions`) on the multi-rate
scenes, in lock-step, with slow steps as long as a slow period and shorter ones. Errors are in per cent of the
force's peak, from where a motion begins: RMS, and the greatest of what is left of it below 100 Hz.
"""

import os
from collections.abc import Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console

from palpo.studies.claims import Line, Reported, Skipped, at_most
from palpo.studies.force_errors import averaged, compare
from palpo.studies.hand_motions import MOTIONS, SPOTS, HandMotion, hand_motion
from palpo.studies.multirate_cases import COARSE
from palpo.studies.processes import processes
from palpo.studies.recording import data_folder
from palpo.studies.rows import Row
from palpo.studies.runs import SceneDrive, drive
from palpo.studies.tables import COLOURS, save_figure, write_csv

SPEEDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Highest speeds of the hand [m/s]."""
STEPS = {"a period": (1.0,), "half a period": (0.5,), "a quarter": (0.25,)}
"""How long a slow step takes. Where it takes less than a period, one may be asked for before it is due."""
ASKED = 1.0, 5.0
"""Largest RMS and greatest error [% of the peak] that are asked for at every speed."""
KEPT = {
    ("probe", "tap"): 0.1,
    ("probe", "let-go"): 0.5,
    ("probe", "stroke"): 0.2,
    ("needle", "tap"): 0.5,
    ("needle", "recorded"): 0.5,
    ("wire", "shake"): 0.2,
}
"""Speeds [m/s] up to which a scene keeps to that in a motion; faster, or in others, it stands as a figure."""
SEED = 1


@dataclass(frozen=True)
class SpeedCase:
    """A motion of the hand in a scene."""

    scene: str
    motion: str
    speed: float
    """Highest of the hand [m/s]."""
    mesh: tuple[str, ...] = ()
    """The scene's keys that make its mesh another one."""
    finer: int = 0
    """Rate of a finer reference over the servo's, 0 for none."""

    @property
    def name(self) -> str:
        """For figures and claims."""
        return f"{self.scene}, {self.motion} at {self.speed:g} m/s"

    def path(self, finer: int = 1) -> HandMotion:
        """The hand's target at the servo's rate, or at one `finer` times as high."""
        recording = data_folder() / "touch_reach_low.txt" if self.motion == "recorded" else None
        return hand_motion(self.motion, SPOTS[self.scene], self.speed, SEED, finer, recording)


def cases(quick: bool) -> list[SpeedCase]:
    """A recording is a reach for something to touch, which a tied wire is not led to."""
    if quick:
        return [
            SpeedCase("probe", "tap", 0.2),
            SpeedCase("probe", "let-go", 0.5),
            SpeedCase("probe", "stroke", 0.2),
            SpeedCase("probe", "stroke", 0.5),
            SpeedCase("needle", "tap", 0.5),
            SpeedCase("needle", "stroke", 0.5),
            SpeedCase("needle", "recorded", 0.5),
            SpeedCase("wire", "shake", 0.2, COARSE, 2),
            SpeedCase("wire", "shake", 0.5, COARSE, 2),
        ]
    return [
        SpeedCase(scene, motion, speed, (), 2 if scene == "wire" else 0)
        for scene in SPOTS
        for motion in MOTIONS
        for speed in SPEEDS
        if (scene, motion) != ("wire", "recorded")
    ]


def run(out: Path, quick: bool) -> list[Line]:
    """All cases on two processes."""
    wanted, lines = cases(quick), list[Line]()
    try:
        data_folder()
    except Skipped as reason:
        Console(stderr=True, highlight=False).print(f"recorded motions skipped: {reason}", soft_wrap=True)
        wanted = [case for case in wanted if case.motion != "recorded"]
    rows = [row for of_case in _compute(wanted) for row in of_case]
    write_csv(out / "speed.csv", rows)
    save_figure(out / "speed.png", 5.6, lambda figure: _draw(figure, rows))
    for row in rows:
        lines += _judged(row)
    return lines


def _compute(wanted: Sequence[SpeedCase]) -> list[list[Row]]:
    console = Console(stderr=True, highlight=False)
    done: dict[SpeedCase, list[Row]] = {}
    with processes(min(2, os.cpu_count() or 1)) as pool:
        started = {pool.submit(evaluate, case): case for case in wanted}
        for future in as_completed(started):
            done[started[future]] = future.result()
            console.print(f"  {len(done)}/{len(wanted)}  {started[future].name}", style="dim")
    return [done[case] for case in wanted]


def evaluate(case: SpeedCase) -> list[Row]:
    """The reference, and the scene at its own rates with steps of each length of STEPS."""
    hand = case.path()
    reference = drive(case.scene, hand.path, case.mesh, "monolithic")
    exact, off = reference.trace["force"], float("nan")
    if case.finer:
        keys = [*case.mesh, f"rates.servo_hz={round(case.finer / reference.dt)}"]
        fine = drive(case.scene, case.path(case.finer).path, keys, "monolithic").trace["force"]
        row = compare(averaged(fine, case.finer), exact, hand.path, 1, reference.dt, hand.since)
        off = row["moving_rms_percent"]
    rows = []
    for takes, durations in STEPS.items():
        with SceneDrive(case.scene, case.mesh, durations=durations) as other:
            force = other.go(hand.path)["force"]
        row = {
            "scene": case.scene, "motion": case.motion,
            "asked_speed_m_s": case.speed, "speed_m_s": hand.speed,
            "step_takes": takes, "frames_hz": other.lock.low.frame_id / (other.dt * other.ticks),
        }  # fmt: skip
        row |= compare(exact, force, hand.path, other.lock.ratio, other.dt, hand.since)
        row["reference_off_percent"] = off
        rows.append(row)
    return rows


def _judged(row: Row) -> list[Line]:
    """Both errors of a run, whether they are what is asked, and how well the reference is known."""
    speed, unit, broke = row["asked_speed_m_s"], "% of peak", np.isfinite(row["diverged_at_s"])
    name = f"{row['scene']}, {row['motion']} at {speed:g} m/s, a step takes {row['step_takes']}"
    rms, greatest = (
        float("inf") if broke else row[key]
        for key in ("moving_rms_percent", "moving_max_below_100Hz_percent")
    )
    lines: list[Line] = []
    for what, value, limit in (("RMS", rms, ASKED[0]), ("greatest below 100 Hz", greatest, ASKED[1])):
        if speed <= KEPT.get((row["scene"], row["motion"]), 0.0):
            lines.append(at_most(f"{name}, {what}", value, limit, unit, "what two rates may cost"))
        else:
            lines.append(Reported(f"{name}, {what}", value, unit, f"asked: {limit:g}"))
    if np.isfinite(row["reference_off_percent"]):
        about = "everything at 1 kHz against everything at 2 kHz"
        lines.append(Reported(f"{name}, the reference", row["reference_off_percent"], unit, about))
    return lines


def _draw(figure: Figure, rows: list[Row]) -> None:
    """Both errors over the speed: a column a scene, a line a motion and length of a step."""
    scenes = [scene for scene in SPOTS if any(row["scene"] == scene for row in rows)]
    shown = figure.subplots(2, len(scenes), sharex=True, sharey="row", squeeze=False)
    keys = ("moving_rms_percent", "moving_max_below_100Hz_percent")
    colours = [COLOURS[name] for name in ("krylov", "paper", "low", "extrapolated", "monolithic")]
    for s, scene in enumerate(scenes):
        for ax, key, limit in zip(shown[:, s], keys, ASKED, strict=True):
            for m, motion in enumerate(MOTIONS):
                for takes, style in zip(STEPS, (":", "--", "-"), strict=True):
                    own = [
                        r
                        for r in rows
                        if (r["scene"], r["motion"], r["step_takes"]) == (scene, motion, takes)
                    ]
                    speeds, errors = [r["asked_speed_m_s"] for r in own], [r[key] for r in own]
                    label = motion if style == "-" else None
                    ax.plot(speeds, errors, style, marker="o", ms=3.5, lw=1.0, color=colours[m], label=label)
            ax.axhline(limit, color="0.4", lw=0.8, ls="-.")
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(SPEEDS, [f"{speed:g}" for speed in SPEEDS])
            ax.minorticks_off()
        shown[0, s].set_title(scene, loc="left", fontsize=10)
        shown[1, s].set_xlabel("speed of the hand [m/s]")
    shown[0, 0].set_ylabel("RMS error [% of peak]")
    shown[1, 0].set_ylabel("greatest, below 100 Hz [% of peak]")
    shown[0, 0].legend(frameon=False, fontsize=8)
    figure.supxlabel(
        "a slow step takes a quarter of a period (solid), half of it (dashed), all of it (dotted)",
        fontsize=8.5,
    )
