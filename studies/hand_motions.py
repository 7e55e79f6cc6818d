"""What a quick hand does with a tool, at a given speed: paths of the hand's target.

Each motion begins where the tool does not touch, or hangs at rest, and has a highest speed [m/s]:

    tap      up and down, by a sinusoid whose lowest point lies `depth` below the touch
    stroke   pressed in, then to and fro along the surface
    shake    pressed half as deep, then to and fro in any direction, eight times a second
    let-go   pressed in and drawn away
    recorded a real hand's reach, as fast as said, its deepest point at `depth`

A seed varies place, direction and depth. A tap and a stroke are as long as a hand makes them, and longer
where they would be more frequent than a hand can (OFTEN).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from palpo.haptics.backends.replay import place, read_trajectory, resample

Floats = NDArray[np.float64]
MOTIONS = ("tap", "stroke", "shake", "let-go", "recorded")
OFTEN = 8.0
"""Times a second that a hand can do something over again."""
TAP, STROKE = 4e-3, 10e-3
"""Amplitudes [m] of what is not that frequent."""
LASTS, STANDS = 0.35, 0.1
"""Seconds for which a motion goes on at least, or one period of it, and for which the hand stands before a
let-go and after it."""
LEAD_IN = 0.1
"""Speed [m/s] of the way to where a motion begins; what comes before that is not judged."""
RECORDED = 1.2
"""Most seconds of a recording, about its deepest point."""


@dataclass(frozen=True)
class Spot:
    """Where a tool meets what it is for. Places are those of the hand."""

    begin: tuple[float, float, float]
    """At tick 0 [m]."""
    touch: tuple[float, float, float]
    """Where the tool just touches [m]: `begin` where it is tied."""
    depth: float
    """How deep it goes below that [m]."""
    aside: float
    """By how much a seed may shift a path along the surface [m]."""


SPOTS = {
    "probe": Spot((-0.010, 0.045, 0.0), (-0.010, 0.0405, 0.0), 5e-3, 4e-3),
    "needle": Spot((0.072, 0.160, 0.0), (0.072, 0.1555, 0.0), 10e-3, 5e-3),
    "wire": Spot((0.120, 0.200, 0.0), (0.120, 0.200, 0.0), 4e-3, 0.0),
}


@dataclass(frozen=True)
class HandMotion:
    """A path (n, 3) [m] of the hand at the servo's rate, and from which tick on it is judged."""

    path: Floats
    since: int

    @property
    def speed(self) -> float:
        """Highest [m/s] from there on, at 1 kHz."""
        return float(np.linalg.norm(np.diff(self.path[self.since :], axis=0), axis=1).max() * 1e3)


def hand_motion(
    name: str, spot: Spot, speed: float, seed: int = 0, finer: int = 1, recording: Path | None = None
) -> HandMotion:
    """One of MOTIONS, at `finer` kHz; a recording needs its file. KeyError for another name."""
    rng = np.random.default_rng(seed)
    varied = rng.uniform(-1.0, 1.0, 4) if seed else np.zeros(4)
    touch = np.array(spot.touch) + spot.aside * np.array([varied[0], 0.0, varied[1]])
    depth, turn = spot.depth * (1.0 + 0.3 * varied[2]), np.pi * (1.0 + varied[3])
    if name == "recorded":
        if recording is None:
            raise KeyError("a recorded motion needs its file")
        lasts, at = _recorded(recording, touch, depth, speed)
    else:
        lasts, at = _MADE[name](touch, depth, speed, turn)
    begin, first = np.array(spot.begin), at(np.zeros(1))[0]
    away = float(np.linalg.norm(first - begin))
    arrives = _smooth_time(away, LEAD_IN) + STANDS if away > 1e-9 else 0.0
    t = np.arange(round(1000 * finer * (arrives + lasts))) / (1000 * finer)
    lead_in = begin + _smooth(t / max(arrives - STANDS, 1e-9))[:, None] * (first - begin)
    path = np.where((t < arrives)[:, None], lead_in, at(np.maximum(t - arrives, 0.0)))
    return HandMotion(path, round(1000 * arrives))


Made = tuple[float, Callable[[Floats], Floats]]
"""Seconds that it lasts, and places (n, 3) [m] at times (n,) [s]."""


def _smooth(share: Floats) -> Floats:
    """Minimum jerk from 0 to 1."""
    u = np.clip(share, 0.0, 1.0)
    return np.asarray(u**3 * (10.0 - 15.0 * u + 6.0 * u**2))


def _smooth_time(way: float, speed: float) -> float:
    """Seconds of a minimum-jerk motion over that way [m] with that highest speed [m/s]."""
    return 1.875 * way / speed


def _to_and_fro(middle: Floats, axis: Floats, amplitude: float, speed: float) -> Made:
    """From one end: middle + amplitude cos(w t) axis, for whole periods; the hand starts and ends at rest."""
    amplitude = max(amplitude, speed / (2.0 * np.pi * OFTEN))
    often = speed / (2.0 * np.pi * amplitude)
    lasts = np.ceil(LASTS * often) / often
    return lasts, lambda t: middle + np.cos(2.0 * np.pi * often * t)[:, None] * (amplitude * axis)


def _tap(touch: Floats, depth: float, speed: float, turn: float) -> Made:
    up = np.array([0.0, 1.0, 0.0])
    amplitude = max(TAP, speed / (2.0 * np.pi * OFTEN))
    return _to_and_fro(touch + (amplitude - depth) * up, up, amplitude, speed)


def _stroke(touch: Floats, depth: float, speed: float, turn: float) -> Made:
    return _to_and_fro(touch - [0.0, depth, 0.0], np.array([np.cos(turn), 0.0, np.sin(turn)]), STROKE, speed)


def _shake(touch: Floats, depth: float, speed: float, turn: float) -> Made:
    axis = np.array([np.cos(turn), 0.3, np.sin(turn)])
    return _to_and_fro(touch - [0.0, 0.5 * depth, 0.0], axis / np.linalg.norm(axis), 0.0, speed)


def _let_go(touch: Floats, depth: float, speed: float, turn: float) -> Made:
    axis = np.array([0.5 * np.cos(turn), 1.0, 0.5 * np.sin(turn)])
    way = depth + max(5e-3, 0.15 * speed)
    takes = _smooth_time(way, speed)
    aside, deep = way * axis / np.linalg.norm(axis), touch - [0.0, depth, 0.0]
    return takes + STANDS, lambda t: deep + _smooth(t / takes)[:, None] * aside


def _recorded(recording: Path, touch: Floats, depth: float, speed: float) -> Made:
    raw = read_trajectory(recording)
    hand = resample(raw.times, raw.positions).positions
    deepest = int(np.argmin(hand[:, 1]))
    scale = depth / float(hand[0, 1] - hand[deepest, 1])
    hand = place(hand, scale, offset=touch - [0.0, depth, 0.0] - scale * hand[deepest])
    faster = speed / (1e3 * float(np.linalg.norm(np.diff(hand, axis=0), axis=1).max()))
    times = np.arange(len(hand)) / (1e3 * faster)
    first = max(0.0, times[deepest] - 0.6 * RECORDED)
    spline = CubicSpline(times, hand)

    def at(t: Floats) -> Floats:
        # what is cut out of a motion begins evenly
        if first > 0.0:
            t = np.where(t < STANDS, 0.5 * t**2 / STANDS, t - 0.5 * STANDS)
        return np.asarray(spline(np.minimum(first + t, times[-1])))

    return min(RECORDED, float(times[-1] - first)), at


_MADE = {"tap": _tap, "stroke": _stroke, "shake": _shake, "let-go": _let_go}
