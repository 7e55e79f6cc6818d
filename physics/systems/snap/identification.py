"""Young's modulus, friction and the base's compliance from the force over travel of one insertion.

A linear socket at rest on a base of compliance c is pushed along the model's curve f(y; mu), for the modulus
over the model's s:

    F = s f(y; mu),    x = y + c F + x0,

x the travel that was measured and x0 where it counts from. Fitted is what does not hang on single points of a
mesh, as what they catch on does: the ramp up to the click, its end, the force of hooks that slide on the
shoulder behind it, and of hooks that push the plug on once they are past it. Ramp and end hold s d(mu) and c;
sliding holds s mu, pushing s (tan a - mu) / (1 + mu tan a): without them modulus and friction cannot be told
apart, and without one of them not always, as both ramp and sliding grow with mu. Source: 002, section V-C,
figures 6 and 7.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.ndimage import median_filter
from scipy.optimize import least_squares

from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]
Curve = tuple[Floats, Floats]
"""Travel [m] and force against it [N], (n,) each."""

APART = 0.05
"""Between the coefficients of friction that are computed; what lies between is interpolated [-]."""
CLICK, HIGH = 0.5, 0.3
"""Share of the force so far below which it has clicked, if that was more than this share of the largest."""
ONSET, TOP = 0.05, 0.97
"""Shares of the peak between which a ramp is fitted."""
LEAST_KNOWN = 4
"""Coefficients for which a model has to be found."""
RAMP = 40
"""Points by which a ramp is known."""
SETTLED = 0.1
"""Of the travel up to the click, after it, before what slides is looked at."""
PUSHED, PUSHES = 0.02, 0.1
"""Shares of the peak, and of the largest pull, with which hooks that slide no longer push the plug on."""
EARLY = 0.3
"""Of a phase, which is left out: a base that gives way skips what comes right after a fall."""
LEAST = 20
"""Measurements on a ramp."""
PLACE = 3e-5
"""How exactly a model knows where an edge is passed [m]."""
NOISE = 2e-3
"""By how much contacts of a model chatter, as a share of the peak; the least noise of a force."""
SMALLEST, LARGEST = 0.05, 20.0
"""Moduli over the model's that are tried."""
SIGMAS = 2.0
TOLD = 0.5
"""Of its own size, or of what is possible: a constant whose `SIGMAS` standard errors are more is not told."""
MESHES = 3.0
"""Factor on what two meshes differ by (P. J. Roache, Perspective: a method for uniform reporting of grid
refinement studies, J. Fluids Eng. 116, 1994, for an error that halves from one to the other)."""


class Constant(NamedTuple):
    """What was found. told: whether the data hold it."""

    value: float
    error: float
    told: bool


class Constants(NamedTuple):
    """What an insertion tells of a connector and its base, with standard errors.

    stiffness: Young's modulus over that of the model [-]. friction [-]. compliance: of base and sensor in
    series [m/N]. offset: travel measured where the model's is 0 [m]. residual: root mean square of what the
    fit leaves on the ramp [N]. n: points on it. alike: correlation of what is left at neighbours. clicked,
    slid, pushed: which phases the measurement has beside the ramp.
    """

    stiffness: Constant
    friction: Constant
    compliance: Constant
    offset: Constant
    residual: float
    n: int
    alike: float
    clicked: bool
    slid: bool
    pushed: bool


class Phases(NamedTuple):
    """What is fitted of a curve; end and sliding are NaN where it has none."""

    x: Floats  # (n,) travel on the ramp [m]
    f: Floats  # (n,) force there [N]
    end: float  # travel at the click [m]
    sliding: float  # force in the middle of the way on the shoulder [N]
    slid: int  # points that say so
    pushing: float  # and of the way on which hooks push the plug on, once they are past it [N]
    pushed: int  # points that say so


def phases_of(travel: Floats, force: Floats) -> Phases:
    """The phases of a curve. Raises InputError where it has no ramp, or holds what is no number."""
    x, f = (np.asarray(a, np.float64) for a in (travel, force))
    if x.ndim != 1 or x.shape != f.shape or not (np.isfinite(x).all() and np.isfinite(f).all()):
        raise InputError("an insertion needs finite pairs of travel and force.")
    forward = x >= np.maximum.accumulate(x) if x.size else np.zeros(0, bool)
    x, f = x[forward], f[forward]
    peak = float(f.max()) if x.size else 0.0
    if not peak > 0.0:
        raise InputError("the measured force is nowhere positive; it is the force against the plug's travel.")
    so_far = np.maximum.accumulate(f)
    gone = np.flatnonzero((f < CLICK * so_far) & (so_far > HIGH * peak))
    k = int(gone[0]) if gone.size else x.size
    peak = float(f[:k].max())
    first = k - int(np.argmax(f[:k][::-1] < ONSET * peak)) if (f[:k] < ONSET * peak).any() else 0
    top = first + int(np.argmax(f[first:k] >= TOP * peak))
    if top - first < LEAST:
        raise InputError(
            f"the insertion has {top - first} points between {100 * ONSET:.0f} and {100 * TOP:.0f}% of "
            f"its peak; give {LEAST} or more."
        )
    end, sliding, slid, pushing, pushed = np.nan, np.nan, 0, np.nan, 0
    if gone.size:
        end = float(x[k - 1 - int(np.argmax(f[:k][::-1] >= TOP * peak))])
        behind = int(np.searchsorted(x, end + SETTLED * (end - x[first])))
        place, after = x[behind:], f[behind:]
        slow = median_filter(after, LEAST) if len(after) else after
        on = slow < -max(PUSHED * peak, -PUSHES * float(slow.min(initial=0.0)))
        k = int(np.argmax(on)) if on.any() else len(after)
        if k >= LEAST:
            late = slice(round(EARLY * k), k)
            sliding, slid = max(float(np.median(after[late])), 0.0), late.stop - late.start
        if on.sum() >= LEAST:
            pushed = int(on.sum()) - round(EARLY * on.sum())
            pushing = _middle(place[on][-pushed:], after[on][-pushed:])
    return Phases(x[first:top], f[first:top], end, sliding, slid, pushing, pushed)


def _middle(x: Floats, f: Floats) -> float:
    """Force in the middle of a phase along which it changes evenly [N]; narrow peaks hardly count."""
    half = len(x) // 2
    way = max(x[half:].mean() - x[:half].mean(), 1e-12)
    steep = float(np.median(f[half:]) - np.median(f[:half])) / way
    return float(np.median(f - steep * (x - x.mean())))


def insertion_constants(
    measured: Curve, model: Callable[[float], Curve], most_friction: float = 0.5
) -> Constants:
    """Constants with which a model's insertion is the one measured.

    model: travel and force for a coefficient of friction, at rest and at the model's own modulus; it is asked
    for coefficients from 0 to `most_friction` [-], or to where it locks. Least squares
    by Gauss and Newton; of neighbours whose errors are alike by a, n (1 - a) / (1 + a) count (G. V. Bayley,
    J. M. Hammersley, The effective number of independent observations in an autocorrelated time series,
    1946). Raises InputError as `phases_of`, and what the model raises.
    """
    return _Fit(phases_of(*measured), model, most_friction).constants()


def beside(fine: Constants, coarse: Constants) -> Constants:
    """The first; `MESHES` times what another mesh finds otherwise are two of its standard errors, too."""

    def wider(one: Constant, other: Constant) -> Constant:
        error = float(np.hypot(one.error, MESHES / SIGMAS * (one.value - other.value)))
        return Constant(one.value, error, one.told and other.told)

    return fine._replace(
        stiffness=wider(fine.stiffness, coarse.stiffness),
        friction=wider(fine.friction, coarse.friction),
        compliance=wider(fine.compliance, coarse.compliance),
        offset=wider(fine.offset, coarse.offset),
    )


class _Fit:
    """A measurement's phases, and the model's as splines over friction.

    Constants p are (s, mu, c, x0), all but mu in units that make them comparable to 1.
    """

    def __init__(self, told: Phases, model: Callable[[float], Curve], most_friction: float) -> None:
        self.told = told
        cells = max(3, round(most_friction / APART))
        self.known = np.linspace(0.0, most_friction, cells + 1)
        found: list[Phases] = []
        for mu in self.known:
            try:
                found.append(phases_of(*model(float(mu))))
            except (InputError, RuntimeError):
                if len(found) < LEAST_KNOWN:
                    raise
                break  # so much friction locks it
        self.known = self.known[: len(found)]
        share = np.linspace(0.0, 1.0, RAMP)
        ramps = [
            np.stack([np.interp(share, np.linspace(0.0, 1.0, len(p.x)), a) for a in (p.x, p.f)])
            for p in found
        ]
        self.ramp = make_interp_spline(self.known, np.array(ramps))
        self.end = self._along(np.array([p.end for p in found]), 3)
        self.sliding = self._along(np.array([p.sliding for p in found]), 1)
        self.pushing = self._along(np.array([p.pushing for p in found]), 1)
        peak, length = float(told.f.max()), float(np.ptp(told.x))
        self.unit = np.array([1.0, 1.0, length / peak, length])
        self.low = np.array([SMALLEST, 0.0, 0.0, -5.0])
        self.high = np.array([LARGEST, self.known[-1], 5.0, 5.0])
        step, jumps = float(np.median(np.diff(told.x))), np.diff(told.f, 2)
        self.chatter = NOISE * peak
        self.noise = max(float(np.median(np.abs(jumps))) / (0.6745 * np.sqrt(6.0)), self.chatter)
        self.place = float(np.hypot(PLACE, step))

    def _along(self, values: Floats, order: int) -> Callable[[float], Floats]:
        """Values over friction, where there are some."""
        some = np.isfinite(values)
        if some.sum() <= order:
            return lambda mu: np.array(np.nan)
        spline: Callable[[float], Floats] = make_interp_spline(self.known[some], values[some], order)
        return spline

    def scaled(self, p: Floats) -> Floats:
        """What is left, over its standard deviation: the ramp's points, then its end and what slides."""
        s, mu, c, x0 = p * self.unit
        y, f = self.ramp(mu)
        told, shift = self.told, c * s * f + x0
        ramp = (told.f - _line(told.x, y + shift, s * f)) / self.noise
        rest = np.array([
            (told.end - self.end(mu) - c * s * f[-1] - x0) / self.place,
            (told.sliding - s * self.sliding(mu)) / self._median(told.slid),
            (told.pushing - s * self.pushing(mu)) / self._median(told.pushed),
        ])  # fmt: skip
        return np.concatenate([ramp, np.nan_to_num(rest)])

    def _median(self, n: int) -> float:
        """Standard deviation of a median of n measurements, and of a model's [N]."""
        return float(np.hypot(self.noise * np.sqrt(0.5 * np.pi / max(n, 1)), self.chatter))

    def slopes(self, p: Floats) -> Floats:
        columns = []
        for j in range(p.size):
            one, two = p.copy(), p.copy()
            one[j], two[j] = min(p[j] + 1e-3, self.high[j]), max(p[j] - 1e-3, self.low[j])
            columns.append((self.scaled(one) - self.scaled(two)) / (one[j] - two[j]))
        return np.stack(columns, axis=1)

    def constants(self) -> Constants:
        found = []
        for mu in self.known[1:-1]:
            s = self.told.f.max() / self.ramp(mu)[1].max()
            start = np.array([np.clip(s, SMALLEST, LARGEST), mu, 0.05, 0.0])
            found.append(least_squares(self.scaled, start, self.slopes, (self.low, self.high), x_scale=0.1))
        best = min(found, key=lambda one: one.cost)
        p, left = best.x, self.scaled(best.x)
        ramp = left[: self.told.x.size]
        alike = float(np.clip(ramp[1:] @ ramp[:-1] / max(float(ramp @ ramp), 1e-300), 0.0, 0.95))
        count = ramp.size * (1.0 - alike) / (1.0 + alike)
        spread = max(1.0, float(ramp @ ramp) / ramp.size) * ramp.size / max(count - p.size, 1.0)
        sizes: Floats
        _, sizes, across = np.linalg.svd(self.slopes(p), full_matrices=False)
        variance = ((across.T / np.maximum(sizes, 1e-9 * sizes[0])) ** 2).sum(axis=1) * spread
        error = np.sqrt(variance) * self.unit
        value = p * self.unit
        full = np.array([value[0], self.high[1], self.unit[2], self.unit[3]])
        told = SIGMAS * error < TOLD * full
        s, mu, c, x0 = (
            Constant(float(v), float(e), bool(t)) for v, e, t in zip(value, error, told, strict=True)
        )
        rms = self.noise * float(np.sqrt(np.mean(ramp**2)))
        clicked, slid, pushed = (
            bool(np.isfinite(x)) for x in (self.told.end, self.told.sliding, self.told.pushing)
        )
        return Constants(s, mu, c, x0, rms, ramp.size, alike, clicked, slid, pushed)


def _line(at: Floats, x: Floats, f: Floats) -> Floats:
    """np.interp that goes on beyond both ends as it was."""
    k = np.clip(np.searchsorted(x, at) - 1, 0, len(x) - 2)
    return f[k] + (at - x[k]) * (f[k + 1] - f[k]) / np.maximum(x[k + 1] - x[k], 1e-12)
