"""How far a force over time is from that of a reference: errors, impulses, and where each is measured."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

from palpo.studies.rows import Row
from palpo.studies.runs import Ledger, SceneDrive

Floats = NDArray[np.float64]
CUTOFF_HZ = 100.0
SETTLED = 0.4
"""Seconds after which a hand that stands still counts as being at rest."""
DIVERGED = 10.0
"""A force of this many times the reference's peak is a divergence, whatever comes after it."""
IMPULSES = ("impulse_Ns", "impulse_lost_Ns", "impulse_lost_percent")
"""What `impulses` measures."""


def averaged(force: Floats, n: int) -> Floats:
    """The mean force (k, 3) over each n ticks in a row, that is their impulse over their time."""
    whole = len(force) // n
    return force[: n * whole].reshape(whole, n, -1).mean(axis=1)


def compare(
    exact: Floats,
    force: Floats,
    path: Floats,
    ratio: int,
    dt: float,
    since: int = 0,
    until: int | None = None,
) -> Row:
    """Every measure of one run against its reference; forces (n, 3) [N], `ratio` ticks a slow period.

    Per cent of the reference's peak, or of its RMS over the same ticks; judged are since .. until - 1.
    """
    peak = float(np.linalg.norm(exact, axis=1).max())
    size = np.linalg.norm(force, axis=1)
    beyond = np.flatnonzero(~(size < DIVERGED * peak))
    broke = int(beyond[0]) if len(beyond) else (len(force) if len(force) < len(exact) else -1)
    n = min(len(exact), broke if broke >= 0 else len(force))
    exact, force = exact[:n], force[:n]
    judged = (np.arange(n) >= since) & (np.arange(n) < (n if until is None else until))
    rest, moving = (ticks & judged for ticks in rest_and_motion(path[:n], dt))
    error = np.linalg.norm(force - exact, axis=1)
    smooth = np.linalg.norm(below(force, CUTOFF_HZ, dt) - below(exact, CUTOFF_HZ, dt), axis=1)
    refresh = np.arange(2 * ratio, n, ratio)
    leap, own = (np.linalg.norm(f[refresh] - f[refresh - 1], axis=1) for f in (force, exact))
    per, whole = 100.0 / peak, np.linalg.norm(exact, axis=1)
    return {
        "peak_N": peak,
        "rms_N": _rms(whole),
        "moving_rms_percent": per * _rms(error[moving]),
        "moving_rms_percent_of_rms": _share(error[moving], whole[moving]),
        "moving_max_percent": per * _most(error[moving]),
        "moving_rms_below_100Hz_percent": per * _rms(smooth[moving]),
        "moving_max_below_100Hz_percent": per * _most(smooth[moving]),
        "rest_rms_percent": per * _rms(error[rest]),
        "rest_rms_percent_of_rms": _share(error[rest], whole[rest]),
        "rest_max_percent": per * _most(error[rest]),
        "jump_at_refresh_N": _most(leap),
        "reference_change_there_N": _most(own),
        "diverged_at_s": dt * broke if broke >= 0 else float("nan"),
    }


def rest_and_motion(path: Floats, dt: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Ticks at rest and ticks in motion, both (n,); what comes before the first motion is neither."""
    steps = np.linalg.norm(np.diff(path, axis=0, prepend=path[:1]), axis=1)
    moves = steps > 1e-9
    last = np.maximum.accumulate(np.where(moves, np.arange(len(path)), -1))
    started = last >= 0
    rest = started & (np.arange(len(path)) - last > SETTLED / dt)
    return rest, started & ~rest


def below(force: Floats, cutoff: float, dt: float) -> Floats:
    """The force without what lies above the cutoff [Hz], and without delay."""
    if len(force) < 30:
        return force
    return sosfiltfilt(butter(4, cutoff, fs=1.0 / dt, output="sos"), force, axis=0)


def _rms(values: Floats) -> float:
    return float(np.sqrt((values**2).mean())) if len(values) else float("nan")


def _share(error: Floats, whole: Floats) -> float:
    """RMS of the error in per cent of that of the whole; NaN where there is nothing."""
    return 100.0 * _rms(error) / _rms(whole) if whole.any() else float("nan")


def _most(values: Floats) -> float:
    return float(values.max()) if len(values) else float("nan")


def impulses(force: Floats, run: SceneDrive, ledger: Ledger) -> Row:
    """Impulse on the tool and on the slow-rate bodies; they must be opposite over ticks that both saw."""
    done = min(run.lock.low.tick, len(force))
    on_tool = run.dt * force[:done].sum(axis=0)
    passed = run.dt * float(np.linalg.norm(force[:done], axis=1).sum())
    lost = float(np.linalg.norm(on_tool + ledger.impulse))
    return dict(zip(IMPULSES, (passed, lost, 100.0 * lost / max(passed, 1e-12)), strict=True))


def deviation(r: Floats, reference: Floats) -> float:
    """100 |r - reference| / |reference|: equations (3.4) and (4.4) of the thesis on solvers."""
    return 100.0 * float(np.linalg.norm(r - reference) / np.linalg.norm(reference))
