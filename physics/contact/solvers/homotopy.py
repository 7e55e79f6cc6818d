"""The central path of the cones followed round its folds: slow, and goes on where descent ends in a dead end.

With x and u scaled as in `interior_point`, so that every cone is the unit one, the path is made of the (x, t)
with

    x = P_t(x - y),    y = u + sigma_t n + t d,    sigma_t = sqrt(|u_t|^2 + t^2)

P_t(v) = (v + sqrt(v^2 + 4 t^2)) / 2 of the cones' Jordan algebra smooths the projection (Fukushima, Luo &
Tseng, SIAM J. Optim. 12, 2002): x = P_t(x - y) says that x and y are in the cones with x o y = t^2. The
constant d makes a start lie on it at t = 1: x = c n and y = n / c of every contact, c = 1 for the middle of
the cones. At t = 0 the problem is solved. Where a walk from the middle is lost, one whose c are the normal
forces of the best force so far goes another way, with fewer folds. Friction is not
monotone: t falls and rises along the path, and at such a fold whatever only lets t fall (an interior point)
or the residual (Newton) stalls. So the path is followed by its arc length (Allgower & Georg, Introduction to
Numerical Continuation Methods, 2003): along the tangent, then by Newton across it. Lengths are in the metric
of the cones' barrier: every contact turns on its own scale. The sign of the bordered determinant, constant
along a path, tells a step that has jumped to another arm of it.

From time to time semi-smooth Newton is tried from where the path is.
"""

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lu_solve
from scipy.linalg.lapack import dgetrf

from palpo.physics.contact.laws import relative_residual
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.path_following import follow
from palpo.physics.contact.solvers.products import unit_cones
from palpo.physics.contact.solvers.relaxation import project_cones, starting_force

Array = NDArray[np.float64]

RELATIVE = 3.0
"""A contact's force that changes by all of itself is a length of 1 / RELATIVE; so is t by a factor e."""

FIRST, LONGEST, SHORTEST, JUMP = 0.3, 3.0, 1e-7, 1e-4
"""Lengths of steps; the last is one that is believed where the sign has changed."""

AIM, NEAR, SHRINK, TURNS = 0.1, 0.01, 0.7, 6
"""Length of a first correction that is aimed at; of one that is the last; of one over the one before, at
most; most corrections of a step."""

SHORT, PATIENT = 1e-2, 14
"""Steps shorter than that may take so many corrections, not each shorter than the one before: they are what
is left of the corrections of the step before, and no shorter step leaves less."""

APART = 1e-2
"""Least c of a start near a force, over the largest."""

FLOOR, COARSEST, COARSER = 1e-7, 1e-3, 10.0
"""Least force, over the largest, that is followed on its own scale: below it is what rounding in W x does. It
is raised by COARSER, up to COARSEST, where no step succeeds: rounding in a nearly singular W does more."""

FADED = 1e-6
"""Slope of a contact's P_t below which it is taken as open: its rows are not factored."""

STILL = 1e-13
"""t at which there is nothing more to follow."""


@dataclass
class _Point:
    """F = x - P_t(x - y) at a point, and its derivatives."""

    x: Array
    t: float
    f: Array
    slope: Array
    """P_t', shape (n, 3, 3)."""
    lean: Array
    """d sigma / d u_t, shape (n, 2)."""
    along: Array
    """t dF / dt, shape (3 n,)."""


class Path:
    """The curve of a problem; x, shape (3 n,), in the unit cones. near: a force that gives c [N]."""

    def __init__(self, problem: ContactProblem, near: Array | None = None) -> None:
        self.problem, self.n = problem, problem.n_contacts
        self.scale, self.rubs = np.zeros(3 * self.n), problem.mu > 0.0
        unit = unit_cones(problem.w, problem.b, problem.mu, np.zeros(self.n), self.scale)
        self.w = problem.w * self.scale * (self.scale / unit)[:, None]
        self.b = problem.b * self.scale / unit
        middle = np.ones(self.n)
        if near is not None and near.any():
            middle = np.maximum(near[0::3] / self.scale[0::3], 0.0)
            middle = np.maximum(middle, APART * middle.max())
        self.start, y = np.zeros(3 * self.n), np.zeros(3 * self.n)
        self.start[0::3], y[0::3] = middle, 1.0 / middle
        self.bend = np.zeros(3 * self.n)
        self.bend = y - self._displacement(self.start, 1.0)[0]

    def _displacement(self, x: Array, t: float) -> tuple[Array, Array, Array]:
        """y, and u_t and sigma of every contact."""
        y = self.w @ x + self.b
        tangential = y.reshape(-1, 3)[:, 1:].copy()
        sigma = np.where(self.rubs, np.sqrt((tangential**2).sum(axis=1) + t * t), 0.0)
        y[0::3] += sigma
        return y + t * self.bend, tangential, sigma

    def at(self, x: Array, t: float) -> _Point:
        """What the path's equations and their slopes are at (x, t)."""
        n, rubs = self.n, self.rubs
        y, tangential, sigma = self._displacement(x, t)
        v = (x - y).reshape(n, 3)
        length = np.where(rubs, np.hypot(v[:, 1], v[:, 2]), 0.0)
        e = np.where(length[:, None] > 0.0, v[:, 1:] / np.maximum(length, 1e-300)[:, None], [1.0, 0.0])
        low, high = v[:, 0] - length, v[:, 0] + length
        p_low, g_low, t_low = _smoothed(low, t)
        p_high, g_high, t_high = _smoothed(high, t)
        apart = high - low
        close = apart <= 1e-12 * (np.abs(low) + np.abs(high) + t)
        across = np.where(close, 0.5 * (g_low + g_high), (p_high - p_low) / np.where(close, 1.0, apart))
        slope = _spectral(g_low, g_high, e, across)
        image, moved = (
            np.concatenate([0.5 * (p + q)[:, None], 0.5 * (q - p)[:, None] * e], axis=1)
            for p, q in ((p_low, p_high), (t_low, t_high))
        )
        for held in (image[:, 1:], moved[:, 1:], slope[:, 1:, :]):
            held[~rubs] = 0.0
        y_t = self.bend.reshape(n, 3).copy()
        y_t[:, 0] += np.where(rubs, t / np.where(rubs, sigma, 1.0), 0.0)
        lean = np.where(rubs[:, None], tangential / np.where(rubs, sigma, 1.0)[:, None], 0.0)
        along_t = t * (np.einsum("kij,kj->ki", slope, y_t) - moved)
        return _Point(x, t, x - image.ravel(), slope, lean, along_t.ravel())

    def force(self, x: Array) -> Array:
        """r, shape (3 n,), in the cones [N]."""
        r = self.scale * x
        project_cones(self.problem.mu, r)
        return r


def _smoothed(value: Array, t: float) -> tuple[Array, Array, Array]:
    """(v + sqrt(v^2 + 4 t^2)) / 2, its derivative by v and by t, without cancellation."""
    root = np.sqrt(value * value + 4.0 * t * t)
    out = np.where(value > 0.0, 0.5 * (value + root), 2.0 * t * t / (root - np.minimum(value, 0.0)))
    return out, out / root, 2.0 * t / root


class _Metric:
    """What changes of x are measured by, near some x and t: the cones' own, of their barrier at x.

    A change of an eigenvalue of a contact's x counts by its share of it, one across by the geometric mean;
    eigenvalues below t, at which P_t turns, count as t.
    """

    def __init__(self, x: Array, t: float, floor: float = FLOOR) -> None:
        x = x.reshape(-1, 3)
        length = np.hypot(x[:, 1], x[:, 2])
        e = np.where(length[:, None] > 0.0, x[:, 1:] / np.maximum(length, 1e-300)[:, None], [1.0, 0.0])
        least = max(t, floor * float(np.abs(x[:, 0]).max()))
        low, high = (RELATIVE * np.maximum(x[:, 0] + s * length, least) for s in (-1.0, 1.0))
        root = np.sqrt(low * high)
        self.there = _spectral(low, high, e, root)
        self.back = _spectral(1.0 / low, 1.0 / high, e, 1.0 / root)

    def meant(self, lengths: Array) -> Array:
        """The change of x, shape (3 n,), of such lengths."""
        return np.matmul(self.there, lengths.reshape(-1, 3, 1)).ravel()

    def measured(self, change: Array) -> Array:
        """The lengths of a change of x, shape (3 n,)."""
        return np.matmul(self.back, change.reshape(-1, 3, 1)).ravel()


def _spectral(low: Array, high: Array, e: Array, across: Array) -> Array:
    """Matrices (n, 3, 3) that scale (1, -e) by low, (1, e) by high, what is perpendicular by across."""
    out = np.zeros((len(low), 3, 3))
    mean, skew = 0.5 * (low + high), 0.5 * (high - low)
    out[:, 0, 0] = mean
    out[:, 0, 1:] = out[:, 1:, 0] = skew[:, None] * e
    out[:, 1:, 1:] = across[:, None, None] * np.eye(2)
    out[:, 1:, 1:] += (mean - across)[:, None, None] * e[:, :, None] * e[:, None, :]
    return out


class _Factor:
    """dF bordered by a row, factored over the contacts that are not faded.

    Unknowns: the change of x over the metric, and that of log t. A faded contact's own change is what its F
    says, as its slope is nearly 0.
    """

    def __init__(self, path: Path, point: _Point, metric: "_Metric", border: Array) -> None:
        n, slope = path.n, point.slope
        bears = slope[:, 0, 0] + np.abs(slope[:, 0, 1:]).sum(axis=1) > FADED
        rows = np.flatnonzero(np.repeat(bears, 3))
        own, kept = slope[bears], len(rows)
        self.path, self.point, self.metric, self.border = path, point, metric, border
        self.rows, self.own, self.bears = rows, own, bears
        self.faded = np.flatnonzero(~np.repeat(bears, 3))
        lean = np.tile(np.eye(3), (n, 1, 1))[bears]
        lean[:, 0, 1:] = point.lean[bears]
        self.left = own @ lean
        lines = path.w[np.ix_(rows, rows)].reshape(kept // 3, 3, kept)
        matrix = np.empty((kept + 1, kept + 1))
        body = matrix[:kept, :kept]
        body[:] = np.matmul(self.left, lines).reshape(kept, kept)
        blocks = body.reshape(kept // 3, 3, kept // 3, 3)
        k = np.arange(kept // 3)
        blocks[k, :, k, :] += np.eye(3) - own
        columns = body.reshape(kept, kept // 3, 3).swapaxes(0, 1)
        columns[:] = columns @ metric.there[bears]
        self.through = self._through(point.along)
        matrix[:kept, kept] = point.along[rows] - self.through
        matrix[kept, :kept] = border[rows]
        matrix[kept, kept] = border[-1] - border[self.faded] @ metric.measured(point.along)[self.faded]
        self.matrix, self.swaps = dgetrf(matrix, overwrite_a=True)[:2]
        diagonal = self.matrix.diagonal()
        self.regular = bool(np.isfinite(diagonal).all() and (diagonal != 0.0).all())
        crossed = np.count_nonzero(self.swaps != np.arange(kept + 1)) + np.count_nonzero(diagonal < 0.0)
        self.sign = 1 - 2 * (crossed % 2)

    def _through(self, change: Array) -> Array:
        """What a change of the faded contacts' x does to F of the others."""
        v = np.zeros_like(change)
        v[self.faded] = change[self.faded]
        lines = (self.path.w @ v).reshape(self.path.n, 3)[self.bears]
        return np.einsum("kij,kj->ki", self.left, lines).ravel()

    def solve(self, f: Array | None, ahead: float) -> Array:
        """(change of x over the metric, change of log t) that makes -f of F, `ahead` along the border."""
        p, rows, faded = self.point, self.rows, self.faded
        right = np.zeros(len(rows) + 1)
        right[-1] = ahead
        if f is not None:
            right[:-1] = -f[rows] + self._through(f)
            right[-1] += self.border[faded] @ self.metric.measured(f)[faded]
        found = lu_solve((self.matrix, self.swaps), right, check_finite=False)
        out = np.empty(len(p.x) + 1)
        out[-1] = found[-1]
        out[rows] = found[:-1]
        own = -p.along * found[-1] - (0.0 if f is None else f)
        out[faded] = self.metric.measured(own)[faded]
        return out


class Walk:
    """A walk along a path: where it is, and which way it goes."""

    def __init__(self, problem: ContactProblem, near: Array | None = None) -> None:
        self.path = Path(problem, near)
        self.x, self.log_t, self.length, self.floor = self.path.start, 0.0, FIRST, FLOOR
        border = np.zeros(len(self.x) + 1)
        border[-1] = -1.0
        metric = _Metric(self.x, 1.0)
        self.factor = _Factor(self.path, self.path.at(self.x, 1.0), metric, border)
        self.sign, self.factors, self.tried = self.factor.sign, 1, 1.0

    @property
    def left(self) -> float:
        return self.t

    @property
    def ended(self) -> bool:
        return self.t <= STILL

    @property
    def force(self) -> Array:
        """r, shape (3 n,), in the cones [N]."""
        return self.path.force(self.x)

    @property
    def t(self) -> float:
        return math.exp(self.log_t)

    def step(self) -> bool:
        """One step along the path; whether there was any."""
        while True:
            metric, tangent = _Metric(self.x, self.t, self.floor), self.factor.solve(None, 1.0)
            tangent[:-1] = metric.measured(self.factor.metric.meant(tangent[:-1]))
            tangent /= float(np.linalg.norm(tangent))
            while self.length > SHORTEST:
                first = self._advance(metric, tangent)
                if first is not None:
                    self.length *= min(2.0, max(0.4, math.sqrt(AIM / max(first, 1e-12))))
                    self.length = min(self.length, LONGEST)
                    return True
                self.length *= 0.3
            if self.floor >= COARSEST:
                return False
            self.floor, self.length = self.floor * COARSER, FIRST

    def _advance(self, metric: "_Metric", tangent: Array) -> float | None:
        """Goes where Newton across the tangent leads from a step along it.

        Returns the length of its first correction; None, and stays, where it finds nothing, or another arm.
        """
        x = self.x + self.length * metric.meant(tangent[:-1])
        log_t = self.log_t + self.length * tangent[-1]
        first, last, short = 0.0, math.inf, self.length < SHORT
        for _ in range(PATIENT if short else TURNS):
            point = self.path.at(x, math.exp(log_t))
            factor = _Factor(self.path, point, metric, tangent)
            self.factors += 1
            if not factor.regular:
                return None
            change = factor.solve(point.f, 0.0)
            size = float(np.linalg.norm(change))
            if not size <= (1.0 if short else min(1.0, SHRINK * last)):
                return None
            first = first or size
            x, log_t, last = x + metric.meant(change[:-1]), log_t + change[-1], size
            if size <= NEAR:
                if factor.sign != self.sign and self.length > JUMP:
                    return None
                self.x, self.log_t, self.factor = x, log_t, factor
                return first
        return None


def solve(problem: ContactProblem, stop: Stop, *, middle: bool = True) -> ContactResult:
    """Follow the path until the residual is at most `stop.tolerance`; an iteration is a factorisation.

    From the middle of the cones and, where that way is lost, from near the best force, the warm start's or
    one met on the way. middle: whether that way is taken at all.
    """
    started, best = perf_counter(), starting_force(problem)
    least = relative_residual(problem, best)
    walks = [lambda _: Walk(problem), lambda force: Walk(problem, force)]
    return follow(problem, stop, started, best, least, walks if middle else walks[1:])
