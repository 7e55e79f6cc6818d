"""Scripted target paths: waypoints or an oscillation, sampled once a tick.

"smooth" joins waypoints by minimum-jerk segments, s(u) = 10 u^3 - 15 u^4 + 6 u^5 (Flash and Hogan 1985), the
way a hand moves between points: velocity and acceleration vanish at each waypoint, so the path is C2.
"linear" is the polyline, with the jumps of velocity that a ramp test wants.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from haptics.errors import HapticsError
from haptics.workspace import quaternion_from_axis_angle

Table = tuple[NDArray[np.float64], NDArray[np.float64]]


def waypoint_path(
    waypoints: ArrayLike,
    kind: Literal["smooth", "linear"] = "smooth",
    turns: ArrayLike | None = None,
    rate_hz: float = 1000.0,
) -> Table:
    """Positions (n, 3) [m] and quaternions (n, 4) at the rate, from the first tick to the last waypoint.

    waypoints: rows t [s], x, y, z [m]; before the first time the first point is held. turns: one row
    ax, ay, az, angle [rad] a waypoint, or None for upright. Raises HapticsError on rows that are not
    finite, times that do not increase, or an unknown kind.
    """
    rows = _checked_waypoints(waypoints)
    if kind not in ("smooth", "linear"):
        raise HapticsError(f'path kind "{kind}" must be "smooth" or "linear"')
    times = rows[:, 0]
    ticks = np.arange(round(times[-1] * rate_hz) + 1) / rate_hz
    if len(rows) == 1:
        segment, share = np.zeros(len(ticks), dtype=int), np.zeros(len(ticks))
    else:
        segment = np.clip(np.searchsorted(times, ticks, side="right") - 1, 0, len(rows) - 2)
        share = np.clip((ticks - times[segment]) / np.diff(times)[segment], 0.0, 1.0)
    if kind == "smooth":
        share = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    after = np.minimum(segment + 1, len(rows) - 1)
    points = rows[:, 1:]
    positions = points[segment] + share[:, None] * (points[after] - points[segment])
    corners = _corner_quaternions(turns, len(rows))
    return positions, _slerp(corners[segment], corners[after], share)


def _checked_waypoints(waypoints: ArrayLike) -> NDArray[np.float64]:
    rows = np.atleast_2d(np.array(waypoints, dtype=np.float64))
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
    return rows


def _corner_quaternions(turns: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if turns is None:
        return np.tile([1.0, 0.0, 0.0, 0.0], (n, 1))
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


def oscillation_path(
    centre: ArrayLike,
    amplitude: ArrayLike,
    frequency_hz: float,
    duration: float,
    ramp: float = 0.0,
    rate_hz: float = 1000.0,
) -> Table:
    """centre + amplitude sin(2 pi f t), both (3,) [m], for a duration [s]; upright.

    ramp [s]: the amplitude grows smoothly from zero over it, so that the hand starts at rest. Raises
    HapticsError on a frequency or duration that is not positive.
    """
    for name, value in (("frequency_hz", frequency_hz), ("duration", duration)):
        if not (np.isfinite(value) and value > 0.0):
            raise HapticsError(f"oscillation {name} = {value} must be positive")
    t = np.arange(round(duration * rate_hz) + 1) / rate_hz
    u = np.clip(t / ramp, 0.0, 1.0) if ramp > 0.0 else np.ones(len(t))
    wave = u**3 * (10.0 - 15.0 * u + 6.0 * u**2) * np.sin(2.0 * np.pi * frequency_hz * t)
    positions = np.asarray(centre, dtype=np.float64) + wave[:, None] * np.asarray(amplitude, dtype=np.float64)
    return positions, np.tile([1.0, 0.0, 0.0, 0.0], (len(t), 1))
