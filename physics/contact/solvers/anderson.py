"""Anderson-accelerated block Gauss-Seidel: the solver for hard problems, and no slower on easy ones.

A sweep is a map r -> g(r) with the solutions as fixed points. It contracts slowly where W is nearly
singular: squeezed soft bodies, stacks, more contacts than freedoms. Anderson's method of type II (Anderson
1965; Walker & Ni, SIAM J. Numer. Anal. 2011) extrapolates from the differences d between the last sweeps:

    r+ = g - sum_j y_j dg_j,    y = argmin || f - sum_j y_j df_j ||,    f = g(r) - r

Once no contact changes between open, stick and slip any more, this is GMRES preconditioned by the sweep, so
that a singular W, whose forces are not unique, does no harm. u = W r + b is affine in r: the same y
extrapolates it, and no product with W is needed. The next sweep brings the force back into the cones.

*Safeguard.* An extrapolation from which the sweep moves GROWTH times farther than the least move so far is
taken back: r returns to the sweep before it and the differences are dropped. The second time without a lesser
move between, a pause of STAGE sweeps follows, and twice as many each time after that. Every other pause goes
with Nesterov's momentum, r+ = g + beta (g - g_last), restarted where it points back (O'Donoghue & Candes,
Found. Comput. Math. 2015): it crosses the many changes of a tall stack, on which Anderson's method loses its
footing. The others are plain, for strong couplings of normal and tangent, on which momentum loses its own.
"""

import math
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, relative_natural_map, runaway, scale_to_disc
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, SparseProblem, Stop
from palpo.physics.contact.solvers.operator import add_change, entries, operator, own_entries, set_offset
from palpo.physics.contact.solvers.products import least_squares
from palpo.physics.contact.solvers.relaxation import starting_force
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import inlined, kernel, reordering_kernel

DIFFERENCES = 40
"""Most differences m: 8 suffice for stacks of rigid bodies, squeezed soft bodies gain up to about 60."""

FEW = 12
"""The same over a sparse W: those of so many sweeps cost about as much as one over blocks of rigid bodies."""

PLAIN = 8
"""Plain sweeps at the start, while most contacts still change between open, stick and slip."""

GROWTH = 2.0
"""How much farther than the least so far a sweep may move after an extrapolation."""

STAGE = 64
"""Sweeps of the first long pause."""

NEAR, OFTEN = 10.0, 16
"""The residual is asked after a sweep that moves less than NEAR tolerances, and after every OFTEN sweeps."""

CHUNK = 2e5
"""Products between two looks at the clock, about 0.1 ms, where a solve is limited in time."""

CONTINUE, CONVERGED, STALLED, DIVERGED = range(4)
REASONS: dict[int, Reason] = {
    CONTINUE: "iterations", CONVERGED: "converged", STALLED: "stalled", DIVERGED: "diverged",
}  # fmt: skip

BACK, STOP, ASK, REST, ON = range(5)
"""What follows a sweep: the one before it is returned to; the forces have run away; the residual is asked, or
asked for the last time, as nothing moves; the next one."""

STILL = 1e-15
"""|g(r) - r| / |r| of a sweep that moves nothing but roundings."""

STATE = np.dtype(
    (np.record, [(name, np.int64) for name in ("sweeps", "columns", "known", "extrapolated", "wait", "pause",
                                               "taken_back")]
     + [(name, np.float64) for name in ("move", "residual", "momentum")])
)  # fmt: skip
"""Sweeps done; differences taken so far, whether there is a sweep to take the next from, whether r has been
extrapolated; sweeps yet to go without, those of the next pause, extrapolations taken back; the least squared
move of a sweep [N^2], the least relative residual, and the momentum's parameter, at least 1."""


class Acceleration(NamedTuple):
    """What a solve carries from sweep to sweep, for up to n contacts and m differences; N = 3 n."""

    state: NDArray[Any]  # (1,) of STATE
    step: NDArray[np.float64]  # (n, 2) 1 / W_nn and 1 / lmax(W_tt) [N/m]
    before: NDArray[np.float64]  # (N,) r before the sweep [N]
    f: NDArray[np.float64]  # (2, N) g(r) - r of this sweep and of the last
    g: NDArray[np.float64]  # (N,) r after the last sweep
    u: NDArray[np.float64]  # (N,) u after it [m]
    df: NDArray[np.float64]  # (m, N)
    dg: NDArray[np.float64]  # (m, N)
    du: NDArray[np.float64]  # (m, N)
    squares: NDArray[np.float64]  # (m, m) df df^T
    factor: NDArray[np.float64]  # (m, m) its Cholesky factor
    y: NDArray[np.float64]  # (m,)
    best: NDArray[np.float64]  # (N,) force of the least residual [N]
    scratch: NDArray[np.float64]  # (2, 3)


def make_acceleration(n_contacts: int, differences: int = DIFFERENCES) -> Acceleration:
    """Room for a solve of up to n_contacts contacts."""
    n, m = 3 * n_contacts, differences
    return Acceleration(
        np.zeros(1, STATE), np.zeros((n_contacts, 2)),
        np.zeros(n), np.zeros((2, n)), np.zeros(n), np.zeros(n),
        np.zeros((m, n)), np.zeros((m, n)), np.zeros((m, n)),
        np.zeros((m, m)), np.zeros((m, m)), np.zeros(m), np.zeros(n), np.zeros((2, 3)),
    )  # fmt: skip


@kernel
def prepare(w, mu, r, first, a):
    """Steps of the contacts in the rows from `first` on, and an acceleration a that remembers no sweep."""
    for k in range(mu.shape[0]):
        i = first + 3 * k
        half = 0.5 * (w[i + 1, i + 1] + w[i + 2, i + 2])
        spread = (0.25 * (w[i + 1, i + 1] - w[i + 2, i + 2]) ** 2 + w[i + 1, i + 2] ** 2) ** 0.5
        if w[i, i] > 0.0:
            a.step[k, 0] = 1.0 / w[i, i]
            a.step[k, 1] = 1.0 / (half + spread) if half + spread > 0.0 else a.step[k, 0]
        else:  # nothing yields along the normal: no force could part it
            a.step[k] = 0.0
            r[i : i + 3] = 0.0
    state = a.state[0]
    state.sweeps = state.taken_back = 0
    state.residual, state.momentum = np.inf, 1.0
    forget(a)


@kernel
def forget(a):
    """Remember no sweep: plain ones come first."""
    state = a.state[0]
    state.columns = state.known = state.extrapolated = 0
    state.wait, state.pause = PLAIN, 1
    state.move = np.inf


@kernel
def begin(w, b, mu, r, u, first, a):
    """Start the acceleration a on the contacts in the rows from `first` on, at the force r in the cones.

    w (rows, rows) or, with first = 0, block rows; b, r and u (rows,), contiguous; mu (n,). Sets u = W r + b
    there.
    """
    prepare(own_entries(w), mu, r, first, a)
    last = first + 3 * mu.shape[0]
    copy(r[first:last], a.best[: last - first])
    set_offset(w, b, r, u, first, last)
    _residual(w, b, mu, r, u, first, a)


@kernel
def advance(w, b, mu, r, u, first, tolerance, bound, sweeps, a):
    """Up to `sweeps` sweeps more after `begin`; r and u go on from where they are.

    Returns CONVERGED where the natural map's relative residual is at most `tolerance`, STALLED where a sweep
    moves nothing and it is not, DIVERGED where |r| passes `bound` [N], else CONTINUE. a.best is the
    force of the least residual seen: in the cones, no worse than at the start and after the plain sweeps.
    """
    if a.state[0].residual <= tolerance:
        return CONVERGED
    rows = 3 * mu.shape[0]
    last = first + rows
    ahead, force = u[first:last], r[first:last]
    for done in range(1, sweeps + 1):
        move, size = sweep(w, mu, r, ahead, first, a.step, a.before)
        then = weigh(move, size, tolerance, bound, done == sweeps, force, ahead, a)
        if then == STOP:
            return DIVERGED
        if then in (ASK, REST):
            if _residual(w, b, mu, r, u, first, a) <= tolerance:
                # u has gathered roundings: judge by a fresh one
                set_offset(w, b, r, u, first, last)
                a.state[0].residual = np.inf
                if _residual(w, b, mu, r, u, first, a) <= tolerance:
                    return CONVERGED
            if then == REST:
                return STALLED
        if then != BACK:
            go_on(force, ahead, move, a)
    return CONTINUE


@inlined
def weigh(move, size, tolerance, bound, ends, force, ahead, a):
    """What is to follow a sweep of that move to a force of that size, both squared: BACK to ON.

    It is counted; where it shows its start to be extrapolated too far, `force` and its u, `ahead`, go back to
    the sweep before that. ends: no sweep comes after this one.
    """
    state = a.state[0]
    state.sweeps += 1
    bounded = size <= bound * bound  # and not NaN
    if state.extrapolated == 1 and not (bounded and move <= GROWTH * GROWTH * state.move):
        _take_back(force, ahead, a)
        return BACK
    if not bounded:
        return STOP
    if move <= STILL * STILL * size:
        return REST
    near = move <= (NEAR * tolerance) ** 2 * size
    return ASK if near or ends or state.sweeps % OFTEN == PLAIN else ON


@inlined
def go_on(force, ahead, move, a):
    """From `force`, where a sweep of squared length `move` has led: extrapolate, carry on or pause.

    a.before holds the force before the sweep; `ahead` is u = W r + b, and follows.
    """
    state = a.state[0]
    if move < state.move:
        state.move = move
        state.pause = 1
    state.extrapolated = 0
    if state.wait > 0:
        state.wait -= 1
        if state.wait > 0 and state.taken_back % 2 == 1:
            _carry_on(force, ahead, a)
    else:
        _extrapolate(force, ahead, a)


@kernel
def sweep(w, mu, r, ahead, first, step, before):
    """One visit to each contact: its normal law, then its tangential step, projected on the disc.

    ahead: u from `first` on, over the contacts' rows and any that follow. before: r before the sweep.
    Returns (|g - r|^2, |g|^2). One step, not the local solution: the next sweep finishes it for less.
    """
    last, held = first + ahead.shape[0], own_entries(w)
    move, size = 0.0, 0.0
    for k in range(mu.shape[0]):
        i, j = first + 3 * k, 3 * k
        n, t1, t2 = r[i], r[i + 1], r[i + 2]
        before[j], before[j + 1], before[j + 2] = n, t1, t2
        r_n = max(0.0, n - step[k, 0] * ahead[j])
        d_n = r_n - n
        p1 = t1 - step[k, 1] * (ahead[j + 1] + held[i + 1, i] * d_n)
        p2 = t2 - step[k, 1] * (ahead[j + 2] + held[i + 2, i] * d_n)
        scale = scale_to_disc(p1, p2, mu[k] * r_n)
        r[i], r[i + 1], r[i + 2] = r_n, scale * p1, scale * p2
        size += r_n * r_n + r[i + 1] ** 2 + r[i + 2] ** 2
        d1, d2 = r[i + 1] - t1, r[i + 2] - t2
        moved = d_n * d_n + d1 * d1 + d2 * d2
        if moved != 0.0:
            move += moved
            add_change(w, i, first, last, d_n, d1, d2, ahead)
    return move, size


@inlined
def _extrapolate(force, ahead, a):
    """Remember the sweep that led to `force`, and go on from there along the differences."""
    rows, now, then, state = force.shape[0], a.f[0], a.f[1], a.state[0]
    for i in range(rows):
        now[i] = force[i] - a.before[i]
    m = 0
    if state.known:
        newest = state.columns % a.df.shape[0]
        state.columns += 1
        m = min(state.columns, a.df.shape[0])
        df, dg, du = a.df[newest], a.dg[newest], a.du[newest]
        for i in range(rows):
            df[i] = now[i] - then[i]
            dg[i] = force[i] - a.g[i]
            du[i] = ahead[i] - a.u[i]
        for j in range(m):
            square, a.y[j] = _products(a.df[j, :rows], df, now)
            a.squares[j, newest] = square
            a.squares[newest, j] = square
        least_squares(a.squares, a.factor, a.y, m)
        state.extrapolated = 1
    state.known = 1
    for i in range(rows):
        then[i], a.g[i], a.u[i] = now[i], force[i], ahead[i]
    for j in range(m):
        y, dg, du = a.y[j], a.dg[j], a.du[j]
        for i in range(rows):
            force[i] -= y * dg[i]
            ahead[i] -= y * du[i]


@reordering_kernel
def _products(x, y, z):
    """(x.y, x.z), summed in an order of the compiler's, so that several terms go at once."""
    xy, xz = 0.0, 0.0
    for i in range(x.shape[0]):
        xy += x[i] * y[i]
        xz += x[i] * z[i]
    return xy, xz


@inlined
def _carry_on(force, ahead, a):
    """Go on from the sweep that led to `force` with the momentum of the last one."""
    back = 0.0
    for i in range(force.shape[0]):
        back += (a.before[i] - force[i]) * (force[i] - a.g[i])
    old = 1.0 if back > 0.0 else a.state[0].momentum
    new = 0.5 * (1.0 + (1.0 + 4.0 * old * old) ** 0.5)
    beta = (old - 1.0) / new
    a.state[0].momentum = new
    for i in range(force.shape[0]):
        g, u = force[i], ahead[i]
        force[i] += beta * (g - a.g[i])
        ahead[i] += beta * (u - a.u[i])
        a.g[i], a.u[i] = g, u


@inlined
def _take_back(force, ahead, a):
    """Return to the sweep before the extrapolation, drop the differences, pause longer than the last time."""
    state = a.state[0]
    for i in range(force.shape[0]):
        force[i], ahead[i] = a.g[i], a.u[i]
    state.columns = state.known = state.extrapolated = 0
    state.taken_back += 1
    state.wait = state.pause
    state.pause = max(2 * state.pause, STAGE)
    state.momentum = 1.0


@inlined
def _residual(w, b, mu, r, u, first, a):
    """Relative residual of r, infinite for zero forces that are wrong; the least makes r the best."""
    error, _ = relative_natural_map(own_entries(w), b, mu, r, u, first, mu.shape[0], a.scratch)
    if error < a.state[0].residual:
        a.state[0].residual = error
        for i in range(3 * mu.shape[0]):
            a.best[i] = r[first + i]
    return error


class Sweeps:
    """Accelerated sweeps on a problem, dense or sparse, from its warm start, which can be taken up again."""

    def __init__(self, problem: AnyProblem, tolerance: float, differences: int) -> None:
        self.problem, self.tolerance, self.bound = problem, tolerance, runaway(problem)
        self.w, self.a = operator(problem), make_acceleration(problem.n_contacts, differences)
        self.r, self.u = np.zeros(3 * problem.n_contacts), np.zeros(3 * problem.n_contacts)
        self.start(starting_force(problem))

    def start(self, r: NDArray[np.float64]) -> None:
        """Begin anew at the force r (3 n,) in the cones."""
        copy(r, self.r)
        begin(self.w, self.problem.b, self.problem.mu, self.r, self.u, 0, self.a)

    @property
    def done(self) -> int:
        """Sweeps since the start."""
        return self.a.state["sweeps"].item()

    @property
    def least(self) -> float:
        """The least residual that was met; its force is a.best."""
        return self.a.state["residual"].item()

    def run(self, most: int, seconds: float) -> Reason:
        """Up to `most` sweeps more, and about so much time [s]; why they ended."""
        started, last, chunk, code, p = perf_counter(), self.done + most, most, CONTINUE, self.problem
        if math.isfinite(seconds):
            chunk = max(1, int(CHUNK / (entries(p) + 1)))
        while code == CONTINUE and self.done < last:
            had = min(chunk, last - self.done)
            code = advance(self.w, p.b, p.mu, self.r, self.u, 0, self.tolerance, self.bound, had, self.a)
            if code == CONTINUE and perf_counter() - started >= seconds:
                return "time"
        return REASONS[code]


def solve(problem: AnyProblem, stop: Stop, *, differences: int | None = None) -> ContactResult:
    """Sweep and extrapolate until the residual is at most `stop.tolerance`; an iteration is a sweep.

    Gives back the force of the least residual, whatever ended it. differences: m; by how W is kept if not
    given. Raises InputError for m below 1.
    """
    if differences is None:
        differences = FEW if isinstance(problem, SparseProblem) else DIFFERENCES
    if differences < 1:
        raise InputError(f"differences = {differences}: at least one must be remembered")
    started = perf_counter()
    sweeps = Sweeps(problem, stop.tolerance, differences)
    reason = sweeps.run(stop.max_iterations, stop.seconds)
    return judge(problem, stop, sweeps.a.best, sweeps.done, reason, started)
