"""The replay device: a recorded or foreign trajectory, resampled to the servo's rate and placed in the scene.

Resampling is by the cubic spline through the samples. It is C2, so neither position nor velocity steps (a
staircase at 100 Hz would kick a stiff contact with ten ticks' motion at once); its frequency response is
flat to half the samples' Nyquist frequency and falls as 1/f^4 above it, close to the ideal band-limited
interpolator but local, free of ringing at the ends, and at home with jittered times. A hand moves below
20 Hz, far below the Nyquist frequency of any usable recording.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt

from palpo.haptics.device import RECORDED, VirtualDevice, make_virtual_device
from palpo.haptics.errors import HapticsError
from palpo.haptics.flags import CLUTCHED
from palpo.haptics.path import LONGEST, Table, TickPath, upright
from palpo.haptics.recording import Recording, read_recording
from palpo.haptics.workspace import Workspace, orientations_to_device, positions_to_device, quaternion_matrix

UNITS = {"m": 1.0, "mm": 1e-3}
POSITION = ("t", "x", "y", "z")
ORIENTATION = ("qw", "qx", "qy", "qz")


class Trajectory(NamedTuple):
    """Times (n,) [s], positions (n, 3) [m], unit quaternions (n, 4) or None."""

    times: NDArray[np.float64]
    positions: NDArray[np.float64]
    quaternions: NDArray[np.float64] | None


def read_trajectory(path: str | Path, unit: str = "m", columns: dict[str, int] | None = None) -> Trajectory:
    """Read a trajectory: our recording (.h5), a CSV with a header, or whitespace columns t x y z ...

    unit: of the positions in a foreign file, "m" or "mm"; a recording knows its own. columns: index of
    t, x, y, z and optionally qw, qx, qy, qz in a foreign file. Raises HapticsError in one sentence on a
    file that is not there or not a table, an unknown unit, fewer than 4 columns, fewer than 2 rows, a row
    that is not finite, a time that does not increase, and a zero quaternion.
    """
    if unit not in UNITS:
        raise HapticsError(f'{path}: unit "{unit}" must be "m" or "mm"')
    if not Path(path).is_file():
        raise HapticsError(
            f"{path}: no such file; a trajectory is an .h5 recording, a CSV or whitespace columns"
        )
    if h5py.is_hdf5(path):
        return _checked(path, *_from_recording(path))
    names, table = _read_table(path)
    wanted = _column_indices(path, names, table.shape[1], columns)
    positions = table[:, [wanted[name] for name in POSITION[1:]]] * UNITS[unit]
    turns = table[:, [wanted[name] for name in ORIENTATION]] if ORIENTATION[0] in wanted else None
    return _checked(path, table[:, wanted["t"]], positions, turns)


def _from_recording(path: str | Path) -> tuple[NDArray[np.float64], ...]:
    columns = read_recording(path).columns
    for name in ("time_s", "px", "py", "pz", *ORIENTATION):
        if name not in columns:
            raise HapticsError(f"{path}: the recording lacks column {name}, which a trajectory needs")
    pose = [
        np.stack([columns[name] for name in names], axis=1) for names in (("px", "py", "pz"), ORIENTATION)
    ]
    return columns["time_s"], *pose


def _read_table(path: str | Path) -> tuple[list[str] | None, NDArray[np.float64]]:
    """(column names or None, table)."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise HapticsError(f"{path}: neither an HDF5 recording nor a text table of t x y z") from None
    rows = [(k, line) for k, line in enumerate(lines, start=1) if line.strip() and not line.startswith("#")]
    if not rows:
        raise HapticsError(f"{path}: the file holds no rows; it needs columns t x y z")
    names = None
    first = _split(rows[0][1])
    if not _is_number(first[0]):
        names = [name.strip().lower() for name in first]
        rows = rows[1:]
    return names, _parse_rows(path, rows, len(first))


def _split(line: str) -> list[str]:
    return next(csv.reader([line])) if "," in line else line.split()


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _parse_rows(path: str | Path, rows: list[tuple[int, str]], width: int) -> NDArray[np.float64]:
    table = np.empty((len(rows), width))
    for k, (line_number, line) in enumerate(rows):
        words = _split(line)
        if len(words) != width:
            raise HapticsError(f"{path}: line {line_number} has {len(words)} columns and must have {width}")
        try:
            table[k] = [float(word) for word in words]
        except ValueError:
            raise HapticsError(f"{path}: line {line_number} must hold numbers only") from None
    return table


def _column_indices(
    path: str | Path, names: list[str] | None, width: int, columns: dict[str, int] | None
) -> dict[str, int]:
    if width < 4:
        raise HapticsError(f"{path}: has {width} columns and must have at least 4, t x y z")
    if columns is None:
        wanted = dict(zip(POSITION, range(4), strict=True)) if names is None else _by_header(path, names)
    else:
        wanted = dict(columns)
    for name in POSITION:
        if name not in wanted or not 0 <= wanted[name] < width:
            raise HapticsError(f"{path}: column {name} must be one of the file's {width} columns")
    given = [name for name in ORIENTATION if name in wanted]
    if given and (len(given) < 4 or not all(0 <= wanted[name] < width for name in given)):
        raise HapticsError(f"{path}: an orientation needs all of qw, qx, qy, qz within {width} columns")
    return wanted


def _by_header(path: str | Path, names: list[str]) -> dict[str, int]:
    missing = [name for name in POSITION if name not in names]
    if missing:
        raise HapticsError(f"{path}: header lacks column {missing[0]}; it must name t, x, y and z")
    return {name: names.index(name) for name in (*POSITION, *ORIENTATION) if name in names}


def _checked(
    path: str | Path,
    times: NDArray[np.float64],
    positions: NDArray[np.float64],
    quaternions: NDArray[np.float64] | None,
) -> Trajectory:
    if len(times) < 2:
        raise HapticsError(f"{path}: has {len(times)} rows and must have at least 2")
    everything = np.column_stack([times, positions] + ([] if quaternions is None else [quaternions]))
    bad = np.flatnonzero(~np.isfinite(everything).all(axis=1))
    if len(bad):
        raise HapticsError(f"{path}: row {bad[0]} is not finite; every value must be a finite number")
    back = np.flatnonzero(np.diff(times) <= 0.0)
    if len(back):
        k = int(back[0]) + 1
        raise HapticsError(
            f"{path}: time at row {k}, {times[k]} s, must be later than {times[k - 1]} s before it"
        )
    with np.errstate(over="ignore"):
        fast = np.flatnonzero(~np.isfinite(np.diff(positions, axis=0) / np.diff(times)[:, None]).all(axis=1))
    if len(fast):
        raise HapticsError(
            f"{path}: from row {fast[0]}, at {positions[fast[0]].tolist()} m, to the next, "
            f"at {positions[fast[0] + 1].tolist()} m, the hand is faster than a number can say"
        )
    if quaternions is not None:
        norms = np.linalg.norm(quaternions, axis=1)
        if norms.min() < 1e-6:
            raise HapticsError(f"{path}: quaternion at row {int(norms.argmin())} must not be zero")
        quaternions = quaternions / norms[:, None]
    return Trajectory(times, positions, quaternions)


def spline_path(
    times: ArrayLike, positions: ArrayLike, quaternions: ArrayLike | None = None, rate_hz: float = 1000.0
) -> TickPath:
    """The spline through a trajectory, from its first time, which becomes 0, to its last.

    Quaternions are splined by component along the sign-continuous path and normalised; without any it is
    upright. Raises HapticsError for a trajectory that lasts longer than a run can count.
    """
    t = np.asarray(times, dtype=np.float64)
    lasts = (t[-1] - t[0]) * rate_hz
    if not lasts < LONGEST:
        raise HapticsError(
            f"a trajectory of {t[-1] - t[0]:g} s must be shorter than {LONGEST / rate_hz:.3g} s"
        )
    along = CubicSpline(t - t[0], np.asarray(positions, dtype=np.float64))
    turning = None
    if quaternions is not None:
        q = np.array(quaternions, dtype=np.float64)
        flips = np.cumprod(np.where(np.sum(q[1:] * q[:-1], axis=1) < 0.0, -1.0, 1.0))
        q[1:] *= flips[:, None]
        turning = CubicSpline(t - t[0], q)

    def at(ticks: NDArray[np.int64]) -> Table:
        seconds = ticks / rate_hz
        if turning is None:
            return along(seconds), upright(len(ticks))
        turned = turning(seconds)
        return along(seconds), turned / np.linalg.norm(turned, axis=1, keepdims=True)

    return TickPath(int(np.floor(lasts + 1e-9)) + 1, at)


def resample(
    times: ArrayLike,
    positions: ArrayLike,
    rate_hz: float = 1000.0,
    quaternions: ArrayLike | None = None,
    cutoff_hz: float | None = None,
) -> Trajectory:
    """All rows of `spline_path` with their times.

    cutoff_hz: a zero-phase fourth-order Butterworth low-pass of the positions, for a trajectory with encoder
    noise.
    """
    whole = spline_path(times, positions, quaternions, rate_hz)
    smooth, turned = whole.table()
    if cutoff_hz is not None:
        if not 0.0 < cutoff_hz < rate_hz / 2:
            raise HapticsError(f"cutoff_hz = {cutoff_hz} must lie between 0 and {rate_hz / 2}")
        smooth = sosfiltfilt(butter(2, cutoff_hz, fs=rate_hz, output="sos"), smooth, axis=0)
    return Trajectory(np.arange(whole.ticks) / rate_hz, smooth, None if quaternions is None else turned)


def place(
    positions: ArrayLike,
    scale: float = 1.0,
    offset: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
    start_at: ArrayLike | None = None,
    centre_at: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """scale R x + offset, shape (n, 3) [m]; R from the quaternion `rotation`.

    start_at: the scene point [m] that the first sample lands on, plus the offset; centre_at: likewise for the
    centre of the bounding box. Raises HapticsError if both are given or the scale is not positive.
    """
    if start_at is not None and centre_at is not None:
        raise HapticsError("a trajectory is placed by start_at or by centre_at, not by both")
    if not (np.isfinite(scale) and scale > 0.0):
        raise HapticsError(f"trajectory scale {scale} must be a positive number")
    turned = scale * np.asarray(positions, dtype=np.float64) @ quaternion_matrix(rotation).T
    if start_at is not None:
        turned = turned - turned[0] + np.asarray(start_at, dtype=np.float64)
    if centre_at is not None:
        centre = 0.5 * (turned.min(axis=0) + turned.max(axis=0))
        turned = turned - centre + np.asarray(centre_at, dtype=np.float64)
    return turned + np.asarray(offset, dtype=np.float64)


DEVICE_COLUMNS = (
    ("device_px", "device_py", "device_pz"),
    ("device_qw", "device_qx", "device_qy", "device_qz"),
    ("device_vx", "device_vy", "device_vz"),
    ("device_wx", "device_wy", "device_wz"),
)
SCENE_COLUMNS = (("px", "py", "pz"), ORIENTATION, ("vx", "vy", "vz"), ("wx", "wy", "wz"))


def make_recorded(recording: Recording, workspace: Workspace | None = None, hand: int = 1) -> VirtualDevice:
    """A device that reports, tick by tick, the very inputs of a recording: pose, velocities and buttons.

    hand: which of several. workspace None: the device's own, so that the run's workspace, clutch and guards
    make of them what they made of them then. A workspace: the hand as it moved in the recorded scene, brought
    into the axes of the device of another one. Raises HapticsError for a recording that lacks the hand or the
    device's own columns.
    """
    columns: Mapping[str, NDArray] = recording.columns
    if hand > 1 and f"px_{hand}" not in columns:
        raise HapticsError(f"the recording has no hand {hand}, which the scene needs")
    if hand > 1:
        columns = {name: columns.get(f"{name}_{hand}", values) for name, values in columns.items()}
    wanted = DEVICE_COLUMNS if workspace is None else SCENE_COLUMNS
    position, orientation, velocity, spin = (
        np.stack([columns[name] for name in names], axis=1) for names in wanted
    )
    if workspace is not None:
        position = positions_to_device(workspace, position)
        orientation = orientations_to_device(workspace, orientation)
        velocity = velocity @ workspace.rotation / workspace.scale
        spin = spin @ workspace.rotation
    device = make_virtual_device(position, orientation, columns["buttons"], source=RECORDED)
    # as recorded: even a normalisation would change the last bit
    allowed = columns.get("allowance", np.ones(1)) if workspace is None else np.ones(1)
    return device._replace(
        orientations=orientation, velocities=np.hstack([velocity, spin]), allowances=np.array(allowed, float)
    )


def recorded_start(
    recording: Recording, hand: int = 1
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Scene point (3,) [m] and orientation (4,) that the first tick of a hand was mapped onto; None: none."""
    columns, which = recording.columns, "" if hand == 1 else f"_{hand}"
    if not int(columns[f"flags{which}"][0]) & CLUTCHED:
        return None
    point, turn = (np.array([columns[name + which][0] for name in names]) for names in SCENE_COLUMNS[:2])
    return point, turn
