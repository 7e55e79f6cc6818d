"""A long run in threads: what grows with it, and whether it keeps its time."""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import linregress

from palpo.app.devices.mock import scripted_path
from palpo.app.runtime.options import Options
from palpo.app.runtime.session import Session
from palpo.benchmarks.timing import Figures, bare_loop_us
from palpo.haptics.control import tick_count
from palpo.haptics.device import send_target
from palpo.haptics.statistics import LATE
from palpo.haptics.workspace import orientations_to_device, positions_to_device
from palpo.physics.exchange.durations import percentile_us
from palpo.physics.exchange.snapshot import SceneState

SCENE = "needle"
SAMPLES = 24
"""Rows of the table."""
WARM = SAMPLES // 2
"""Rows before the slopes: caches and kept rows fill up, and the allocator's room comes to its full size, with
no more of it in use, within some twenty minutes."""
KEPT = 20_000
"""Rows of the servo kept in memory; a run keeps 20 minutes of them, which would hide what else grows."""
PAUSE = 2e-3
"""Seconds between two moves of the hand."""

COLUMNS = (
    "s", "memory MB", "file MB", "descriptors", "threads", "servo Hz", "late p99 us", "slow step p50 ms",
)  # fmt: skip


def soak(duration: float = 60.0) -> Figures:
    """Scene `needle` recorded in threads, its path led there and back: what grows with it, what drifts.

    duration [s]. Slopes are of the second half, in an hour, beside their standard errors: what is flat
    differs from zero by few of these. The file alone has to grow.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.h5"
        session = Session(
            Options(SCENE, device="mouse", window=True, duration=duration, record=path, baseline=False)
        )
        session.prepare()
        session.trace.kept = KEPT
        watcher = _Watcher(session, path, duration)
        result = session.run(watcher.watch).result
    rows = np.array(watcher.rows)
    return {
        "exit": f"{result['exit_status']}: {result['exit_reason']}",
        **{name: result["servo"][name] for name in ("steps", "missed", "skipped", "rows_lost")},
        "standstills": result["servo"]["limits"]["standstills"],
        "over time": {"columns": COLUMNS[1:], **{f"{row[0]:8.1f} s": tuple(row[1:]) for row in watcher.rows}},
        "change an hour": {
            "columns": ("slope", "standard error", "now"),
            **{
                name: (*slope_an_hour(rows[WARM:, 0], rows[WARM:, k]), float(rows[-1, k]))
                for k, name in enumerate(COLUMNS)
                if k
            },
        },
        "bare loop us": bare_loop_us(),
    }


class _Watcher:
    """Moves the hand and takes down a row from time to time, in the session's main thread."""

    def __init__(self, session: Session, path: Path, duration: float) -> None:
        self.session, self.path, self.every = session, path, duration / (SAMPLES + 1)
        self.rows: list[tuple[float, ...]] = []
        positions, turns = scripted_path(session.spec).table()
        servo = session.rig.servo
        self._positions = positions_to_device(servo.workspace, positions)
        self._turns = orientations_to_device(servo.workspace, turns)
        self._start = self._seen = time.perf_counter()
        self._ticks, self._late = 0, np.zeros_like(servo.statistics.histograms[LATE])

    def watch(self, _state: SceneState, _fresh: bool) -> None:
        """Lead the hand along the path and back again."""
        now, n = time.perf_counter(), len(self._positions)
        k = int((now - self._start) * self.session.spec.rates.servo_hz) % (2 * n)
        k = min(k, 2 * n - 1 - k)
        send_target(self.session.rig.servo.device, self._positions[k], self._turns[k], 0)
        if now - self._seen >= self.every:
            self._look(now)
        time.sleep(PAUSE)

    def _look(self, now: float) -> None:
        servo = self.session.rig.servo
        ticks, late = int(tick_count(servo)), servo.statistics.histograms[LATE].copy()
        recent = self.session.slow.seconds.recent()
        self.rows.append(
            (
                now - self._start,
                memory_mb(),
                self.path.stat().st_size / 1e6,
                _entries("/proc/self/fd"),
                _entries("/proc/self/task"),
                (ticks - self._ticks) / (now - self._seen),
                percentile_us(late - self._late, 0.99),
                1e3 * float(np.median(recent)) if recent else np.nan,
            )
        )
        self._ticks, self._late, self._seen = ticks, late, now


def memory_mb() -> float:
    """What this process holds now [MB], NaN where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return np.nan


def _entries(folder: str) -> float:
    """Open descriptors or threads of this process, NaN where the system does not tell."""
    try:
        return len(list(Path(folder).iterdir()))
    except OSError:
        return np.nan


def slope_an_hour(seconds: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[float, float]:
    """Least-squares slope in an hour and its standard error, NaN for fewer than three values."""
    if len(seconds) < 3 or not np.isfinite(values).all():
        return np.nan, np.nan
    fit = linregress(seconds, values)
    # of what never changes it is no number
    return 3600.0 * float(fit.slope), 3600.0 * float(np.nan_to_num(fit.stderr))
