"""Scripted target paths: waypoints or an oscillation, one row a tick, evaluated where it is asked.

"smooth" joins waypoints by minimum-jerk segments, s(u) = 10 u^3 - 15 u^4 + 6 u^5 (Flash and Hogan 1985), the
way a hand moves between points: velocity and acceleration vanish at each waypoint, so the path is C2.
"linear" is the polyline, with the jumps of velocity that a ramp test wants.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.haptics.errors import HapticsError
from palpo.haptics.workspace import quaternion_from_axis_angle

Table = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Positions (n, 3) [m] and quaternions (n, 4) (w, x, y, z)."""

LONGEST = 1 << 53
"""Ticks that a path may last: as many as a double counts."""


@dataclass(frozen=True)
class TickPath:
    """A path over ticks, evaluated where it is asked."""

    ticks: int
    """Rows from the first tick to the last, which is held."""
    at: Callable[[NDArray[np.int64]], Table]
    """Rows of these ticks, none of them beyond the last."""

    def rows(self, first: int, stop: int) -> Table:
        """Rows of the ticks first to stop - 1."""
        return self.at(np.minimum(np.arange(first, stop), self.ticks - 1))

    def table(self) -> Table:
        """All rows, for paths that are known to be short."""
        return self.rows(0, self.ticks)

    def mapped(self, change: Callable[[NDArray[np.float64], NDArray[np.float64]], Table]) -> "TickPath":
        """The path with every row changed."""
        return TickPath(self.ticks, lambda ticks: change(*self.at(ticks)))


def waypoints(
    points: ArrayLike,
    kind: Literal["smooth", "linear"] = "smooth",
    turns: ArrayLike | None = None,
    rate_hz: float = 1000.0,
) -> TickPath:
    """The path from the first tick to the last waypoint.

    points: rows t [s], x, y, z [m]; before the first time the first point is held. turns: one row
    ax, ay, az, angle [rad] a waypoint, or None for upright. Raises HapticsError on rows that are not
    finite, times that do not increase or that no run can count, or an unknown kind.
    """
    rows = _checked_waypoints(points, rate_hz)
    if kind not in ("smooth", "linear"):
        raise HapticsError(f'path kind "{kind}" must be "smooth" or "linear"')
    times, places = rows[:, 0], rows[:, 1:]
    corners = _corner_quaternions(turns, len(rows))

    def at(ticks: NDArray[np.int64]) -> Table:
        seconds = ticks / rate_hz
        if len(rows) == 1:
            segment, share = np.zeros(len(ticks), dtype=int), np.zeros(len(ticks))
        else:
            segment = np.clip(np.searchsorted(times, seconds, side="right") - 1, 0, len(rows) - 2)
            share = np.clip((seconds - times[segment]) / np.diff(times)[segment], 0.0, 1.0)
        if kind == "smooth":
            share = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
        after = np.minimum(segment + 1, len(rows) - 1)
        positions = places[segment] + share[:, None] * (places[after] - places[segment])
        return positions, _slerp(corners[segment], corners[after], share)

    return TickPath(round(times[-1] * rate_hz) + 1, at)


def waypoint_path(
    points: ArrayLike,
    kind: Literal["smooth", "linear"] = "smooth",
    turns: ArrayLike | None = None,
    rate_hz: float = 1000.0,
) -> Table:
    """All rows of `waypoints`."""
    return waypoints(points, kind, turns, rate_hz).table()


def _checked_waypoints(points: ArrayLike, rate_hz: float) -> NDArray[np.float64]:
    rows = np.atleast_2d(np.array(points, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != 4 or len(rows) == 0:
        raise HapticsError(f"waypoints have shape {rows.shape} and must be rows of t, x, y, z")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise HapticsError(f"waypoint {bad[0]} must be finite, not {rows[bad[0]].tolist()}")
    back = np.flatnonzero(np.diff(rows[:, 0]) <= 0.0)
    if len(back):
        raise HapticsError(
            f"waypoint {back[0] + 1} at t = {rows[back[0] + 1, 0]} s must come after the one before it"
        )
    if rows[0, 0] < 0.0:
        raise HapticsError(f"waypoint 0 at t = {rows[0, 0]} s must not lie before the start")
    if not rows[-1, 0] * rate_hz < LONGEST:
        raise HapticsError(
            f"waypoint {len(rows) - 1} at t = {rows[-1, 0]} s must come before {LONGEST / rate_hz:.3g} s"
        )
    with np.errstate(over="ignore"):
        far = np.flatnonzero(~np.isfinite(np.diff(rows, axis=0)).all(axis=1))
    if len(far):
        raise HapticsError(f"waypoint {far[0] + 1} is farther from the one before it than a number can tell")
    return rows


def _corner_quaternions(turns: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if turns is None:
        return upright(n)
    rows = np.array(turns, dtype=np.float64)
    if rows.shape != (n, 4) or not np.isfinite(rows).all():
        raise HapticsError(f"turns have shape {rows.shape} and must be {n} finite rows of ax, ay, az, angle")
    return np.array([quaternion_from_axis_angle(row[:3], row[3]) for row in rows])


def _slerp(a: NDArray[np.float64], b: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Great-circle interpolation of unit quaternions, the short way round."""
    cosine = np.sum(a * b, axis=1)
    b = np.where(cosine[:, None] < 0.0, -b, b)
    angle = np.arccos(np.clip(np.abs(cosine), 0.0, 1.0))
    # sin(s a) / sin(a) tends to s as the angle vanishes
    sine = np.sin(angle)
    near = sine < 1e-9
    safe = np.where(near, 1.0, sine)
    left = np.where(near, 1.0 - share, np.sin((1.0 - share) * angle) / safe)
    right = np.where(near, share, np.sin(share * angle) / safe)
    out = left[:, None] * a + right[:, None] * b
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def oscillation(
    centre: ArrayLike,
    amplitude: ArrayLike,
    frequency_hz: float,
    duration: float = math.inf,
    ramp: float = 0.0,
    rate_hz: float = 1000.0,
) -> TickPath:
    """centre + amplitude sin(2 pi f t), both (3,) [m], for a duration [s]; upright.

    ramp [s]: the amplitude grows smoothly from zero over it, so that the hand starts at rest. Raises
    HapticsError on a frequency or duration that is not positive.
    """
    if not (np.isfinite(frequency_hz) and frequency_hz > 0.0):
        raise HapticsError(f"oscillation frequency_hz = {frequency_hz} must be positive")
    if not duration > 0.0:
        raise HapticsError(f"oscillation duration = {duration} must be positive")
    middle, reach = np.asarray(centre, dtype=np.float64), np.asarray(amplitude, dtype=np.float64)

    def at(ticks: NDArray[np.int64]) -> Table:
        t = ticks / rate_hz
        u = np.clip(t / ramp, 0.0, 1.0) if ramp > 0.0 else np.ones(len(t))
        wave = u**3 * (10.0 - 15.0 * u + 6.0 * u**2) * np.sin(2.0 * np.pi * frequency_hz * t)
        return middle + wave[:, None] * reach, upright(len(t))

    return TickPath(round(duration * rate_hz) + 1 if duration * rate_hz < LONGEST else LONGEST, at)


def upright(n: int) -> NDArray[np.float64]:
    """n quaternions that do not turn, shape (n, 4)."""
    return np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))


def standing(point: ArrayLike) -> TickPath:
    """The path that stays at a point (3,) [m], upright."""
    place = np.asarray(point, float)
    return TickPath(1, lambda ticks: (np.tile(place, (len(ticks), 1)), upright(len(ticks))))
