"""What a device's answers to known forces say of it: encoder, friction, moving mass, delay, rest.

All from positions (n,) [m] and forces (n,) [N] along one axis, one a tick of dt [s]. A force that is sent at
a tick acts from then on for a tick, later by the delay.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from palpo.haptics.errors import HapticsError

Floats = NDArray[np.float64]
EVEN = 0.1
"""Share of a count by which steps may miss whole counts and still be counts of one encoder along the axis."""
FINEST = 1e-8
"""Steps below this are rounding [m]."""
LONGEST, FINE = 0.03, 1e-4
"""Longest delay that is looked for, and how finely [s]."""
CLEARLY = 0.5
"""Share of the misfit to which viscosity must bring it, to be believed."""
REST = 2
"""Counts within which a stylus that rests stays: one on either side of where it is."""
DRIFT = 50
"""Ticks over which a hand's own motion is averaged away."""


class Answer(NamedTuple):
    """How a stylus answers a push: m x'' + b x' = f(t - delay) - breakaway."""

    mass: float
    """[kg]"""
    viscosity: float
    """[N s/m]"""
    delay: float
    """[s]"""
    fitted: Floats
    """Positions of the first push by these figures [m], shape (n,)."""


def encoder_count(positions: Floats) -> float:
    """One count [m] of what is read: the step whose multiples all others are.

    Where the steps have no common measure, as those of several joints together, a tenth of them is smaller.
    NaN where nothing moved.
    """
    steps = np.abs(np.diff(positions))
    steps = np.sort(steps[steps > FINEST])
    if not len(steps):
        return math.nan
    least = steps[: max(1, len(steps) // 10)].mean()
    counts = np.round(steps / least)
    # a count found by whole multiples gets finer by those of many counts
    if np.abs(steps / least - counts).max() < EVEN:
        return float((steps @ counts) / (counts @ counts))
    return float(np.quantile(steps, 0.1))


def noise_of(positions: Floats) -> float:
    """Standard deviation [m] of positions at rest, a hand's own motion taken out."""
    return float(np.std(_without_drift(positions)))


def breakaway(forces: Floats, positions: Floats, count: float) -> float:
    """Force [N] at which a stylus under a slowly rising one has moved by a count; HapticsError if never.

    It moves before a count shows: a force that rises by r a second has risen by (6 m r^2 count)^(1/3) more by
    then, 2% of a Touch's friction at 0.1 N/s.
    """
    moved = np.flatnonzero(np.abs(positions - positions[0]) > 0.5 * count)
    # one count to and fro is an edge of the encoder, and no motion
    far = np.flatnonzero(np.abs(positions - positions[0]) > 1.5 * count)
    if not len(far):
        raise HapticsError("the stylus did not move under the force: let it go, where it stays by itself")
    return float(forces[moved[moved <= far[0]][0]] if len(moved) else forces[far[0]])


def friction_and_bias(up: float, down: float) -> tuple[float, float]:
    """Dry friction, and what pulls the stylus to the other side by itself, from breakaways both ways [N]."""
    return 0.5 * (up - down), 0.5 * (up + down)


class Push(NamedTuple):
    """One push of a stylus from rest, one way."""

    forces: Floats
    """Sent, shape (n,) [N]."""
    positions: Floats
    """Read, shape (n,) [m]."""
    breaks: float
    """What it breaks away at, that way [N]."""

    @property
    def side(self) -> float:
        """Which way, 1 or -1."""
        return math.copysign(1.0, self.forces[np.abs(self.forces).argmax()])


def answer_to(pushes: Sequence[Push], dt: float) -> Answer:
    """Mass, viscosity and delay of a stylus that answers these pushes.

    Integrated twice, m (x - x0) + b int x = int int (f(t - delay) - breaks), which is linear in m and b, both
    0 at least: no position is differentiated. The delay is that of the least misfit. A row that repeats the
    one before tells nothing where a device is asked more often than it answers, so only changes count.
    HapticsError where nothing moved as a mass does.
    """
    if any((p.side * (p.positions - p.positions[0])).max() <= 0.0 for p in pushes):
        raise HapticsError("the stylus did not move under the push: let it go, where it stays by itself")
    ways = [push.positions - push.positions[0] for push in pushes]
    swept = [np.concatenate([[0.0], np.cumsum(0.5 * (way[1:] + way[:-1]))]) * dt for way in ways]
    fresh = np.concatenate([np.diff(way, prepend=0.0) != 0.0 for way in ways])
    lengths = np.stack([np.concatenate(ways), np.concatenate(swept)], axis=1)[fresh]

    def fit(delay: float, viscous: bool) -> tuple[float, Floats, Floats]:
        path = np.concatenate([_pushed(push, delay, dt) for push in pushes])
        told = path[fresh]
        found, _ = nnls(lengths * [1.0, float(viscous)], told)
        there = float(told @ told)
        misfit = float(np.sum((lengths @ found - told) ** 2))
        return misfit / there if there > 0.0 else math.inf, found, path

    tried = [(fit(delay, viscous)[0], float(delay), viscous)
             for viscous in (False, True) for delay in np.arange(0.0, LONGEST, FINE)]  # fmt: skip
    dry, wet = (min(one for one in tried if one[2] == viscous) for viscous in (False, True))
    # viscosity and delay make up for each other: there is one only where the way cannot do without
    _, best, viscous = wet if wet[0] < CLEARLY * dry[0] else dry
    _, (mass, viscosity), path = fit(best, viscous)
    if not mass > 0.0:
        raise HapticsError("the stylus did not answer the push as a mass does: keep your hands off")
    n = len(ways[0])
    fitted = (path[:n] - viscosity * swept[0]) / mass
    return Answer(float(mass), float(viscosity), best, pushes[0].positions[0] + fitted)


def _pushed(push: Push, delay: float, dt: float) -> Floats:
    """The double integral (n,) [N s^2] of what a push leaves over the breakaway, once it has exceeded it."""
    side = push.side
    fine = max(1, round(dt / FINE))
    h, lag, n = dt / fine, round(delay / dt * fine), fine * len(push.forces)
    held = side * np.concatenate([np.zeros(lag), np.repeat(push.forces, fine)])[:n]
    over = np.flatnonzero(held > side * push.breaks)
    net = np.where(np.arange(n) >= (over[0] if len(over) else n), held - side * push.breaks, 0.0)
    speed = np.concatenate([[0.0], np.cumsum(net)[:-1]]) * h
    path = np.concatenate([[0.0], np.cumsum(speed * h + 0.5 * net * h * h)])
    return side * path[:-1:fine]


def rests(positions: Floats, count: float) -> bool:
    """Whether the last quarter stays within REST counts, the hand's own slow motion taken out."""
    last = _without_drift(positions)[-(len(positions) // 4) :]
    return bool(np.ptp(last) <= REST * count * (1.0 + EVEN))


def _without_drift(positions: Floats) -> Floats:
    window = min(DRIFT, len(positions))
    padded = np.pad(positions, (window // 2, window - 1 - window // 2), mode="edge")
    return positions - np.convolve(padded, np.full(window, 1.0 / window), mode="valid")
