"""The interior point of `interior_point` where W is sparse, and with sigma held, which makes it convex.

The same equations in whole arrays; Newton's matrix has W's pattern and is factored sparse (SuperLU). Its
diagonal blocks carry what every contact is for itself, so that fill is that of W. Without Gondzio's
correctors. With `shift`, s of each contact [m], in place of mu |u_t|, it solves

    u + s n in K*,   r in K,   r . (u + s n) = 0,   u = W r + b:

the problem of Acary, Cadoux, Lemarechal & Malick (ZAMM 91, 2011), the least of 1/2 r W r + r (b + s n) on K.
"""

import math
from time import perf_counter

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.contact.residual import judge, relative_residual, runaway
from palpo.physics.contact.solvers.interior_point import (
    BACK,
    CENTRES,
    FALL,
    LEAST_GAP,
    PATIENCE,
    SHORT,
    SMALLEST,
)
from palpo.physics.contact.solvers.relaxation import project_cones, starting_force
from palpo.physics.contact.solvers.scaling import unit_cones
from palpo.physics.contact.solvers.sparse_factor import SparseFactor, block_diagonal

Array = NDArray[np.float64]

ATTEMPTS = ((1.0, False), (0.1, True))
"""As `interior_point.ATTEMPTS`."""


def solve(problem: AnyProblem, stop: Stop) -> ContactResult:
    """Interior-point steps until the residual is at most `stop.tolerance`; an iteration is a factorisation.

    The warm start is given back where no step is better.
    """
    started, best = perf_counter(), starting_force(problem)
    least, done, reason = relative_residual(problem, best), 0, "stalled"
    bound = runaway(problem)
    for ridge, lags in ATTEMPTS:
        if least <= stop.tolerance:
            break
        interior = Interior(problem, ridge, lags)
        while True:
            r = interior.force()
            error = relative_residual(problem, r)
            if error < least and np.linalg.norm(r) <= bound:
                least, best = error, r
            if least <= stop.tolerance or interior.stalled(error):
                break
            if done >= stop.max_iterations:
                return judge(problem, stop, best, done, "iterations", started)
            if done and perf_counter() - started >= stop.seconds:
                return judge(problem, stop, best, done, "time", started)
            factors = interior.step()
            done += factors
            if not factors:
                break
    ended: Reason = reason  # type: ignore[assignment]
    return judge(problem, stop, best, done, ended, started)


def solve_convex(
    problem: AnyProblem, shift: Array, tolerance: float, most: int, until: float = np.inf
) -> tuple[Array, float, int]:
    """The force of the problem with mu |u_t| held at `shift`, its own relative natural map, and the steps.

    until: perf_counter() after which no step begins.
    """
    best, least, done = np.zeros(3 * problem.n_contacts), np.inf, 0
    for ridge, _ in ATTEMPTS:
        interior = Interior(problem, ridge, False, shift)
        while True:
            r = interior.force()
            error = convex_residual(problem, shift, r)
            if error < least:
                least, best = error, r
            if least <= tolerance or done >= most or perf_counter() > until:
                return best, least, done
            if interior.stalled(error):
                break
            factors = interior.step()
            done += factors
            if not factors:
                break
    return best, least, done


def convex_residual(problem: AnyProblem, shift: Array, r: Array) -> float:
    """|r - P_K(r - rho (u + s n))| / |r|, rho = 1 / mean(diag W); 0 where zero forces are right."""
    u = problem.w @ r + problem.b
    u[0::3] += shift
    mean = float(problem.w.diagonal().mean())
    image = r - u / (mean if mean > 0.0 else 1.0)
    project_cones(problem.mu, image)
    error, size = float(np.linalg.norm(r - image)), float(np.linalg.norm(r))
    if error > 0.0:
        return error / size if size > 0.0 else np.inf
    return 0.0


class Interior:
    """Where an interior-point solve is: x and y, shape (n, 3), in the unit cones."""

    def __init__(self, problem: AnyProblem, ridge: float, lags: bool, shift: Array | None = None) -> None:
        n, mu = problem.n_contacts, problem.mu
        self.problem, self.ridge, self.lags, self.n = problem, ridge, lags, n
        scale, self.unit = unit_cones(problem)
        rubs, unit = mu > 0.0, math.sqrt(self.unit)
        self.scale = scale
        spread = sp.diags_array(scale.ravel() / unit)
        self.w = sp.csr_array(spread @ sp.csr_array(problem.w) @ spread)
        self.factor = SparseFactor(self.w)
        self.rubs, self.b = rubs, problem.b.reshape(n, 3) * scale / self.unit
        self.held = None if shift is None else shift * scale[:, 0] / self.unit
        self.x, self.y = np.zeros((n, 3)), np.zeros((n, 3))
        self.x[:, 0] = self.y[:, 0] = 1.0
        self.least, self.idle = np.inf, 0

    def force(self) -> Array:
        """r, shape (3 n,), in the cones [N]."""
        r = (self.scale * self.x).ravel()
        project_cones(self.problem.mu, r)
        return r

    def stalled(self, error: float) -> bool:
        """Whether steps have stopped to bring the residual down."""
        self.idle = 0 if error < FALL * self.least else self.idle + 1
        self.least = min(self.least, error)
        return not np.isfinite(self.x).all() or self.idle > PATIENCE

    def step(self) -> int:
        """One step; the factorisations that it took, 0 where it leads nowhere."""
        gap = float((self.x * self.y).sum()) / self.n
        if not gap > 0.0:
            return 0
        u = (self.w @ self.x.ravel()).reshape(self.n, 3) + self.b
        slope = np.zeros((self.n, 2))
        if self.held is None:
            sigma = np.where(self.rubs, np.sqrt((u[:, 1:] ** 2).sum(axis=1) + gap * gap), 0.0)
            slope[self.rubs] = u[self.rubs, 1:] / sigma[self.rubs, None]
        else:
            sigma = self.held
        lack = u - self.y
        lack[:, 0] += sigma
        chosen = self._direct(slope, lack, gap)
        factors = 1
        if chosen is not None and chosen[0] < SHORT and self.lags and self.held is None:
            other = self._direct(0.0 * slope, lack, gap)
            factors = 2
            if other is not None and other[0] > chosen[0]:
                chosen = other
        if chosen is None or not chosen[0] > SMALLEST:
            return 0
        length, dx, dy = chosen
        self.x, self.y = self.x + length * dx, self.y + length * dy
        return factors

    def _direct(self, slope: Array, lack: Array, gap: float) -> tuple[float, Array, Array] | None:
        """The longest of Mehrotra's step and the centred ones: length, dx, dy; None where M is singular."""
        n, ridge = self.n, self.ridge * max(gap, LEAST_GAP) ** 0.5
        lean = np.tile(np.eye(3), (n, 1, 1))
        lean[:, 0, 1:] += slope
        g = block_diagonal(lean) @ self.w
        arrow = _arrow(self.x)
        matrix = block_diagonal(arrow) @ g + block_diagonal(ridge * arrow + _arrow(self.y))
        try:
            self.factor.take(matrix)
        except RuntimeError:
            return None

        def direction(target: float, corrected: Array | None) -> tuple[float, Array, Array]:
            right = -_product(self.x, self.y + lack)
            right[:, 0] += target
            if corrected is not None:
                right -= corrected
            dx = self.factor.solve(right.ravel())
            dy = (g @ dx).reshape(n, 3) + lack
            dx = dx.reshape(n, 3)
            dy += ridge * dx
            return min(_reach(self.x, dx, self.rubs), _reach(self.y, dy, self.rubs)), dx, dy

        length, dx, dy = direction(0.0, None)
        after = float(((self.x + length * dx) * (self.y + length * dy)).sum()) / n
        centre = min(1.0, max(1e-6, after / gap)) ** 3
        best = direction(centre * gap, _product(dx, dy))
        for share in CENTRES:
            if best[0] < SHORT:
                best = max(best, direction(share * gap, None), key=lambda found: found[0])
        return best


def _arrow(x: Array) -> Array:
    """Matrices of z -> x o z, shape (n, 3, 3)."""
    out = x[:, :1, None] * np.eye(3)
    out[:, 0, 1:] = x[:, 1:]
    out[:, 1:, 0] = x[:, 1:]
    return out


def _product(x: Array, y: Array) -> Array:
    """x o y of the cones' Jordan algebra, shape (n, 3)."""
    return np.concatenate([(x * y).sum(axis=1)[:, None], x[:, :1] * y[:, 1:] + y[:, :1] * x[:, 1:]], axis=1)


def _reach(x: Array, d: Array, rubs: NDArray[np.bool_]) -> float:
    """BACK times the longest step along d that stays in all cones, at most 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.where(d[:, 0] < 0.0, -x[:, 0] / d[:, 0], np.inf)
        square, half, inside = (
            a[:, 0] * c[:, 0] - (a[:, 1:] * c[:, 1:]).sum(axis=1) for a, c in ((d, d), (x, d), (x, x))
        )
        root = np.sqrt(half * half - square * inside)  # NaN where the line meets no boundary
        for q in (-half - root, root - half):
            length = inside / q
            out = np.where(rubs & (length > 0.0), np.minimum(out, length), out)
    return BACK * min(1.0 / BACK, float(out.min(initial=np.inf)))
