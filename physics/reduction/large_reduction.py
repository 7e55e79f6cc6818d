"""The reduced models of a large soft body: no factor, nothing kept between frames but a place to begin.

Every column is solved on the present tangent by a few multigrid steps, since a model's error is the square of
its columns'. Points have columns of their own at the servo's step only, where what they do does not reach
their neighbours; at longer steps a few smooth loads over all of them say the rest (`patch_loads`). The former
are solved, and multiplied, on a window of nodes around the points alone.

Smooth loads over a patch of contact points: what acts between them at a distance.

A load on one point and the same load spread over its neighbours deform a body alike, but for the layer under
the patch, which the response at a short step has. So columns at longer steps are needed for few loads only:
polynomials of the points' places.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.assembly import multiply
from palpo.physics.fem.multigrid.hierarchy import NodeWindow, window_around
from palpo.physics.fem.multigrid.solver import MultigridFactor, WindowSystem, groups
from palpo.physics.reduction.interface_model import InterfaceState
from palpo.physics.reduction.past import Past
from palpo.physics.reduction.rational_krylov import best_rotation, symmetric_product, turned
from palpo.physics.reduction.reduced_frame import Page
from palpo.physics.reduction.soft_reduction import SoftReduction
from palpo.physics.reduction.tangent_ahead import AHEAD_OF_MEMORY

DEPENDENT = 1e-3
"""Share of the largest singular value below which a polynomial says no more than the others."""


def patch_loads(x: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Orthonormal loads (k, m) over points x (k, 3): polynomials up to a degree, in the plane of the points.

    For degree 2 there are six, fewer where the points are too few or on a line.
    """
    if not len(x):
        return np.zeros((0, 0))
    off = x - x.mean(axis=0)
    _, _, axes = np.linalg.svd(off, full_matrices=False)
    plane = off @ axes[:2].T
    plane /= max(float(np.abs(plane).max()), 1e-300)
    a, b = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1]))).T
    powers = [a ** (total - j) * b**j for total in range(degree + 1) for j in range(total + 1)]
    loads, sizes, _ = np.linalg.svd(np.column_stack(powers), full_matrices=False)
    return loads[:, sizes > DEPENDENT * sizes[0]]


DEGREE = 2
"""Of the polynomial loads over a patch."""

PATCHES = 3 * (DEGREE + 1) * (DEGREE + 2) // 2
"""Columns of those loads at one step size."""

ROUGH = 0.1
"""Residual of a column: the model's error is the square of its error."""

RINGS = 3
"""Edges from a point within which its column at the servo's step is solved: its energy misses a hundredth of
what it is, as much as by ROUGH."""

STEPS = 6
"""Steps of conjugate gradients that a column may take in one low step; it goes on in the next."""

SETTLED = 3e-2
"""Residual of the free accelerations: what they miss stays in the body until the next frame."""

Floats = NDArray[np.float64]


class Job(NamedTuple):
    """Columns that are to be solved together."""

    system: MultigridFactor | WindowSystem
    load: NDArray[Any]
    """(n_dof, k), or the freedoms (k,) of unit loads."""
    last: NDArray[np.float32]
    """Columns of the last frame (n_dof, m)."""
    start: NDArray[Any]
    """Which of those to begin at: a number for each load (k,), -1 for none; or shares (m, k)."""


class LargeReduction(SoftReduction):
    """Columns and model of one large body.

    shifts [s]: the servo's step and the low step; columns: so many of A_h^-1 J^T at the first of them, beside
    those of the smooth loads at two others.
    """

    def __init__(self, body: SoftBody, shifts: list[float], columns: int) -> None:
        assert body.hierarchy is not None
        self.large, self.systems = body, list[MultigridFactor]()
        super().__init__(body, shifts, [0], 0)
        self._widest = columns
        self.afford(shifts, columns)
        self._rooms = np.zeros((4, body.n_dof * (self._first + self.width + 2 * PATCHES)))
        self.window: NodeWindow = window_around(self.large.neighbours, np.zeros(0, np.intp), 0)
        """Where the columns at the servo's step are."""
        self._points = np.zeros((0, 0), np.float32)
        """Those columns on the window's freedoms."""
        self._spread = np.zeros((body.n_dof, 0), np.float32)
        self._patches = [self._spread, self._spread]
        self._wide, self._local = np.zeros((2, 0, 0))
        self._inside = np.zeros(0, np.int64)
        self._turned_slow = self.slow
        self._jobs: list[Job] = []
        self._pool: Executor | None = None

    def afford(self, shifts: list[float], columns: int) -> None:
        """Other steps, and fewer columns or as many as at first, from the next low step on."""
        short, long = shifts[:2]
        self.shifts = [short, long, between(short, long, *self.body.damping)]
        self.width = 3 * (min(columns, self._widest) // 3)
        self.large.keep_factors(self.shifts)
        self.large.look_ahead(AHEAD_OF_MEMORY * long)

    def need(self, points: int) -> int:
        """Those of the smooth loads beside what others need."""
        return super().need(points) + 2 * PATCHES

    def prepare(self, near: NDArray[np.intp], pool: Executor) -> None:
        """The systems of the last model's tangent, and which columns are to be solved."""
        body, self._pool = self.large, pool
        steps = list(dict.fromkeys(self.shifts))  # two that are equal have one system
        made = dict(zip(steps, pool.map(body.factor, steps), strict=True))
        self.systems = [made[step] for step in self.shifts]
        self.factors = self.systems  # type: ignore[assignment]
        self.origin = self._centred()
        if body.rides:
            axes = best_rotation(self.rest, self.origin, body.mass_free)
            self._turned_slow = turned(self.slow, axes)
        dofs = body.dofs_of(body.nodes_at(near)[: self.width // 3])
        dofs = dofs[(dofs >= 0).all(axis=1)]
        wanted = dofs.reshape(-1).astype(np.int64)
        stays = np.isin(wanted, self.known)
        # those that begin at nothing take longer: they go together
        wanted = np.concatenate([wanted[~stays], wanted[stays]])
        column = {int(dof): i for i, dof in enumerate(self.known)}
        last = np.array([column.get(int(dof), -1) for dof in wanted], np.int64)
        self._look_through(window_around(body.neighbours, dofs[:, 0].astype(np.intp) // 3, RINGS))
        place = 3 * np.searchsorted(self.window.nodes, wanted // 3) + wanted % 3
        local = self.systems[0].within(self.window)
        smooth = patch_loads(self.origin[dofs[:, 0] // 3], DEGREE)
        spread = np.zeros((body.n_dof, 3 * smooth.shape[1]), np.float32)
        spread[dofs.reshape(-1)] = np.kron(smooth, np.eye(3))
        # the loads of the last frame that come nearest to these tell where to begin
        nearest = self._spread.T @ spread
        self._jobs = [
            Job(system, spread, patches, nearest)
            for system, patches in zip(self.systems[1:], self._patches, strict=True)
        ]
        self._jobs += [Job(local, place[part], self._points, last[part]) for part in groups(len(wanted))]
        self._spread, self.known = spread, wanted

    def _look_through(self, window: NodeWindow) -> None:
        """Another window from now on: what columns have outside of it is forgotten."""
        _, new, old = np.intersect1d(window.nodes, self.window.nodes, assume_unique=True, return_indices=True)
        points = np.zeros((len(window.nodes), 3, self._points.shape[1]), np.float32)
        points[new] = self._points.reshape(len(self.window.nodes), 3, points.shape[2])[old]
        self.window, self._points = window, points.reshape(3 * len(window.nodes), points.shape[2])

    def follow(self, model: InterfaceState, low: int, past: Past) -> None:
        """As that of any body, while another thread solves the columns, whose tangent is that before."""
        assert self._pool is not None
        self._solve_beside(self._pool, lambda: super(LargeReduction, self).follow(model, low, past))

    def solve(self, pool: Executor) -> None:
        """The columns that were chosen last, unless they are there; those that stay begin where they were."""
        self._solve_beside(pool, lambda: None)

    def write(self, page: Page, pool: Executor) -> None:
        """See SoftReduction."""
        self.solve(pool)
        super().write(page, pool)

    def _solve_beside(self, pool: Executor, work: Callable[[], object]) -> None:
        """The columns on one other thread while this one does its work, then on both: a servo needs room."""
        jobs, self._jobs = self._jobs, []
        left = deque(range(len(jobs)))
        solved = [self._points] * len(jobs)

        def solve() -> None:
            while left:
                with suppress(IndexError):  # the other thread may have taken the last one
                    i = left.popleft()
                    solved[i] = _approach(jobs[i])

        beside = pool.submit(solve)
        work()
        solve()
        beside.result()
        if jobs:
            self._patches = solved[:2]
            self._points = np.hstack([self._points[:, :0], *solved[2:]])

    def _alone(self, most: int, axes: Floats) -> tuple[NDArray[np.int64], Floats]:
        """None: what a point does by itself is in its column at the servo's step."""
        return np.zeros(0, np.int64), np.zeros((0, 3))

    def _accelerations(self, residual: Floats, pool: Executor) -> list[Floats]:
        jobs = [(system, residual[:, None].astype(np.float32)) for system in self.systems[:2]]
        return [x[:, 0].astype(np.float64) for x in pool.map(_settle, jobs)]

    def _settled(self, load: Floats) -> Floats:
        return _settle((self.systems[1], load[:, None].astype(np.float32)))[:, 0].astype(np.float64)

    def _present_basis(self, tail: Floats, rigid: Floats | None, most: int) -> tuple[Floats, Floats]:
        inside, points = self.window.freedoms, self._points.astype(np.float64)
        if rigid is not None:
            # without their rigid part they reach everywhere
            whole = np.zeros((len(tail), points.shape[1]))
            whole[inside] = points
            inside, points = np.arange(len(tail)), whole
        parts: list[NDArray[Any]] = [self._turned_slow, tail, *self._patches]
        wide = self._rooms[3, : len(tail) * sum(part.shape[1] for part in parts)].reshape(len(tail), -1)
        np.concatenate(parts, axis=1, out=wide)
        if rigid is not None:
            heavy = self.mass[:, None] * rigid
            for part in (wide, points):
                part -= rigid @ np.linalg.solve(rigid.T @ heavy, heavy.T @ part)
        k = wide.shape[1]
        most = k + points.shape[1]
        basis = self._basis_room(most)
        root = np.sqrt(self.mass)[:, None]

        def fill(rows: slice) -> Floats:
            basis[rows, :k] = wide[rows]
            basis[rows, k:] = 0.0
            rooted = root[rows] * wide[rows]
            return symmetric_product(rooted, rooted)

        upper, lower = self._both(fill)
        basis[inside, k:] = points
        self._independent = self._chosen = np.arange(most)
        self._wide, self._inside, self._local = wide, inside, points
        heavy = self.mass[inside, None] * points
        return basis, whole_gram(upper + lower, heavy.T @ wide[inside], symmetric_product(points, heavy))

    def _pulled(self, blocks: Floats, basis: Floats) -> tuple[Floats, Floats]:
        """None of K B: no freedoms of single points are added to the basis."""
        wide, local = self._wide, self._local
        pulled = self._times(blocks, wide, self._rooms[2, : wide.size].reshape(wide.shape))
        upper, lower = self._both(lambda rows: symmetric_product(wide[rows], pulled[rows]))
        if len(local) < len(wide):
            own = np.empty_like(local)
            multiply(self.window.neighbours, blocks, local, own, 0, local.shape[1])
        else:
            own = self._times(blocks, local, np.empty_like(local))
        mixed = local.T @ pulled[self._inside]
        return basis[:, :0], whole_gram(upper + lower, mixed, symmetric_product(local, own))

    def _both(self, work: Callable[[slice], Any]) -> list[Any]:
        """work(rows) for either half of the freedoms, on both threads."""
        assert self._pool is not None
        n = self.large.n_dof
        return list(self._pool.map(work, (slice(0, n // 2), slice(n // 2, n))))

    def _times(self, blocks: Floats, b: Floats, out: Floats) -> Floats:
        """Columns are shared out among threads; a single one, which only says where to solve, takes the
        systems' own stiffness."""
        if b.shape[1] == 1:
            out[:, 0] = self.systems[0].stiffness_product(b[:, 0])
            return out
        assert self._pool is not None
        rows, half, total = self.large.neighbours, b.shape[1] // 2, b.shape[1]
        halves = (0, half), (half, total)
        list(self._pool.map(lambda part: multiply(rows, blocks, b, out, *part), halves))
        return out

    def _worst_residual(self, warped: Floats) -> float:
        """Of no use here: all columns are of the present tangent."""
        return 0.0


def whole_gram(first: Floats, mixed: Floats, second: Floats) -> Floats:
    """A symmetric product of two groups of columns, by its blocks."""
    return np.block([[first, mixed.T], [mixed, second]])


def between(short: float, long: float, alpha: float, beta: float) -> float:
    """The step size [s] where stiffness outweighs mass by the geometric mean of what it does at two others.

    A_h is a multiple of M + s K with s = h (beta + h) / (1 + alpha h), and what a step size of the basis is
    good for is a range of log s around its own.
    """
    s = np.sqrt(np.prod([h * (beta + h) / (1.0 + alpha * h) for h in (short, long)]))
    linear = beta - alpha * s
    return float(0.5 * (np.sqrt(linear * linear + 4.0 * s) - linear))


def _approach(job: Job) -> NDArray[np.float32]:
    load, start = job.load, job.start
    if load.ndim == 1:
        load = np.zeros((len(job.last), len(load)), np.float32)
        load[job.load, np.arange(len(job.load))] = 1.0
        start = np.zeros_like(load)
        stays = np.flatnonzero(job.start >= 0)
        start[:, stays] = job.last[:, job.start[stays]]
    else:
        start = job.last @ start
    return job.system.approach(load, ROUGH, STEPS, start)[0]


def _settle(job: tuple[MultigridFactor, NDArray[np.float32]]) -> NDArray[np.float32]:
    factor, load = job
    return factor.approach(load, SETTLED, 3 * STEPS)[0]
