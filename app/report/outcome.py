"""What a run says of itself: the result as plain data, and the series that its report draws."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.app.report.album import Album
from palpo.app.runtime.rigs import Rig
from palpo.app.runtime.slow_thread import SlowThread
from palpo.config.schema.scene import BaseScene
from palpo.config.schema.view import View
from palpo.haptics.flags import STOPPING
from palpo.haptics.statistics import LATE, STEP
from palpo.haptics.summary import servo_summary
from palpo.physics.exchange.durations import bin_edges_us
from palpo.physics.exchange.snapshot import SceneGeometry, SceneState
from palpo.physics.numerics.compilations import COMPILATIONS

Columns = Mapping[str, NDArray[np.float64]]

FINISHED, FAILED = 0, 3
"""Exit statuses of a run that nothing ended from outside."""


@dataclass
class Outcome:
    """A run that has ended."""

    result: dict[str, Any]
    series: dict[str, Any]
    geometry: SceneGeometry
    states: list[tuple[str, SceneState]]
    """Moments for the pictures, with their titles."""
    film: list[SceneState]
    """Moments at an even pace for the animation."""
    view: View
    config_text: str

    @property
    def status(self) -> int:
        """Exit status of the command."""
        return int(self.result["exit_status"])

    def _repr_html_(self) -> str:
        from palpo.app.report.notebook import as_html, picture_of

        states = self.film or [state for _, state in self.states]
        rows = {
            "ended": self.result["exit_reason"], "duration": f"{self.result['duration_s']:.3g} s",
            "device": self.result["device"], "largest force": f"{self.result['force_N']['max_norm']:.3g} N",
            "deepest": f"{1e3 * self.result['penetration_m']['max']:.3g} mm",
        }  # fmt: skip
        picture = picture_of(self.geometry, states, self.view) if states else ""
        return as_html(str(self.result["scene"]), rows, picture)


def distribution(values: Sequence[float] | NDArray[np.float64], factor: float = 1.0) -> dict[str, float]:
    """p50, p99, p999 and max; empty without values."""
    if not len(values):
        return {}
    p50, p99, p999 = np.percentile(values, [50, 99, 99.9])
    named = {"p50": p50, "p99": p99, "p999": p999, "max": np.max(values)}
    return {name: float(factor * value) for name, value in named.items()}


def vectors(columns: Columns, *names: str) -> NDArray[np.float64]:
    """Columns side by side, (n, len(names))."""
    return np.stack([columns[name] for name in names], axis=1)


def measured(rig: Rig, slow: SlowThread, columns: Columns) -> dict[str, Any]:
    """What the run measured: servo, slow loop, forces, depth, masses, and what its system finds."""
    servo = servo_summary(rig.servo)
    # the forces of a stopping servo are those of its fade
    running = np.flatnonzero((columns["flags"].astype(np.int64) & STOPPING) == 0)
    live = running if len(running) else np.arange(len(columns["flags"]))
    force = vectors(columns, "force_x", "force_y", "force_z")[live]
    sent = vectors(columns, "sent_x", "sent_y", "sent_z")
    half_second = max(1, round(0.5 * rig.spec.rates.servo_hz))
    # without a clock there are the parts of the steps only
    whole = slow.seconds if slow.seconds.count else rig.low.times.whole()
    return {
        "servo": servo,
        "slow": {
            "rate_hz": rig.spec.rates.servo_hz if rig.kind == "monolithic" else 1.0 / slow.period,
            "wish_hz": rig.spec.rates.servo_hz / rig.ratio,
            "pace": slow.pacer.words() if slow.seconds.count else "",
            "rate_changes": slow.pacer.changes,
            "steps": whole.count or slow.steps,
            "overruns": int(slow.overruns),
            "contacts_max": int(columns["contacts"].max(initial=0)),
            "step_ms": whole.summary_ms(),
            "by_step_ms": rig.low.times.summary_ms(),
            "others": [_other(loop) for loop in slow.beside],
        },
        "compiled": COMPILATIONS.names[slow.compiled :],
        "force_N": {
            "final": force[-1].tolist() if len(force) else None,
            "mean_last_half_second": force[-half_second:].mean(axis=0).tolist() if len(force) else None,
            "max_norm": largest(force),
            "max_norm_sent": largest(sent),
        },
        "hands": [servo_summary(led) for led in rig.servo.led],
        "penetration_m": {"max": float(columns["depth"].max(initial=0.0))},
        "mass_kg": rig.masses(),
        "mesh": rig.mesh_errors,
        "system": rig.findings(columns),
    }


def _other(loop: SlowThread) -> dict[str, Any]:
    """Of a slower loop beside the first: its rate, and how its steps went."""
    whole = loop.seconds if loop.seconds.count else loop.low.times.whole()
    return {
        "rate_hz": 1.0 / loop.period,
        "wish_hz": loop.rig.spec.rates.servo_hz / loop.low.ratio,
        "pace": loop.pacer.words() if loop.seconds.count else "",
        "rate_changes": loop.pacer.changes,
        "steps": whole.count or loop.steps,
        "overruns": int(loop.overruns),
        "step_ms": whole.summary_ms(),
    }


def largest(force: NDArray[np.float64]) -> float:
    """Largest norm of forces (n, 3) [N]."""
    return float(np.linalg.norm(force, axis=1).max(initial=0.0))


def outcome_of(result: dict[str, Any], rig: Rig, spec: BaseScene, album: Album, columns: Columns) -> Outcome:
    """The outcome of a run or a replay, from its result and what was seen of it."""
    return Outcome(
        result, series_of(rig, album, columns), rig.visual.geometry, album.states(), album.film.states,
        spec.view, config_text(spec),
    )  # fmt: skip


def series_of(rig: Rig, album: Album, columns: Columns) -> dict[str, Any]:
    """What the report's figures are drawn from."""
    every = slice(None, None, rig.ratio)
    statistics = rig.servo.statistics
    filled = np.flatnonzero(statistics.histograms.sum(axis=0))
    used = slice(int(filled[0]), int(filled[-1]) + 1) if len(filled) else slice(0, 1)
    needles = rig.needles()
    pushed = -vectors(columns, "force_x", "force_y", "force_z")
    edges = _coarse(bin_edges_us()[used.start : used.stop + 1])
    return {
        "time_s": columns["time_s"],
        "force_commanded_N": vectors(columns, "force_x", "force_y", "force_z"),
        "force_sent_N": vectors(columns, "sent_x", "sent_y", "sent_z"),
        "position_m": vectors(columns, "px", "py", "pz"),
        "held_m": vectors(columns, "held_x", "held_y", "held_z"),
        "needles": [f"{needle.needle} in {needle.tissue}" for needle in needles],
        "needle_inside_m": album.depths(columns["time_s"]),
        "needle_along_N": pushed @ np.array([needle.ahead for needle in needles]).reshape(-1, 3).T,
        "low_time_s": columns["time_s"][every],
        "contacts": columns["contacts"][every],
        "late_edges_us": edges,
        "late_counts": _coarse_counts(statistics.histograms[LATE][used]),
        "step_edges_us": edges,
        "step_counts": _coarse_counts(statistics.histograms[STEP][used]),
    }


MERGED = 4
"""Bins of the servo's histograms that make one bar, 16 to a decade."""


def _coarse(edges: NDArray[np.float64]) -> NDArray[np.float64]:
    n = len(edges) - 1
    return np.append(edges[:-1:MERGED], edges[-1]) if n else edges


def _coarse_counts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.add.reduceat(counts, np.arange(0, len(counts), MERGED))


def warnings_of(rig: Rig, slow: SlowThread, result: Mapping[str, Any]) -> list[str]:
    """Sentences on what went less than well."""
    servo = result["servo"]
    found = []
    if servo["rows_lost"]:
        found.append(f"{servo['rows_lost']} ticks were not recorded: the disk was too slow.")
    if servo["limits"]["watchdog_trips"]:
        found.append(f"The force faded {servo['limits']['watchdog_trips']} times because of stale frames.")
    if servo["limits"]["standstills"]:
        found.append(
            f"The servo was suspended {servo['limits']['standstills']} times, at most for "
            f"{1e-6 * servo['late_us']['max']:.2g} s. The force faded and came back."
        )
    if servo["limits"]["shapes_lost"]:
        found.append(
            f"A soft body was deformed too far (times: {servo['limits']['shapes_lost']}). "
            "The force faded until the hand had let go."
        )
    if rig.waited:
        found.append(
            f"The simulation paused for {1e3 * rig.waited * rig.dt:.0f} ms in all: "
            "this machine could not keep up."
        )
    if slow.lost_slots:
        found.append(f"In {slow.lost_slots} slow steps candidate points were dropped: the frame was full.")
    found += rig.warnings(result)
    if compiled := result["compiled"]:
        found.append(
            f"{len(compiled)} kernels were compiled during the run, which had to wait for them: "
            f"{', '.join(dict.fromkeys(compiled))}."
        )
    if slow.overruns:
        found.append(f"{slow.overruns} slow steps took longer than their period.")
    return found


def config_text(spec: BaseScene) -> str:
    """The scene as it was read, and what changed it on the command line."""
    changes = "".join(f"# --set {override}\n" for override in spec.origin.overrides)
    return changes + spec.origin.text


def process_age() -> float:
    """Seconds since this process began, where the system tells; else since its clock's start."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return time.process_time()


def peak_memory_mb() -> float:
    """Largest memory that this process has held [MB], NaN where the system does not tell."""
    try:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
    except ImportError:
        return math.nan


def write_json(path: Path | None, value: Any) -> None:
    """Write it as JSON knows it, where a path is given."""
    if path is not None:
        path.write_text(json.dumps(plain(value), indent=2) + "\n", "utf-8")


def plain(value: Any) -> Any:
    """The value as JSON knows it: arrays as lists, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
