"""The accelerated sweeps of `anderson` on a W that is kept sparse: a sweep costs the blocks that there are.

A sweep and the steps of the contacts are the dense ones'; only the columns of W are walked through by blocks.
"""

import math
from time import perf_counter

import numpy as np

from palpo.physics.contact.laws import scale_to_disc
from palpo.physics.contact.problem import ContactResult, Reason, SparseProblem, Stop
from palpo.physics.contact.residual import asked_force, judge, natural_map_norm, relative_error, runaway
from palpo.physics.contact.solvers.anderson import (
    ASK,
    BACK,
    CONTINUE,
    CONVERGED,
    DIVERGED,
    REASONS,
    REST,
    STALLED,
    STOP,
    go_on,
    make_acceleration,
    prepare,
    weigh,
)
from palpo.physics.contact.solvers.block_rows import BlockRows, add_force, block_rows, set_offsets
from palpo.physics.contact.solvers.relaxation import starting_force
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel

DIFFERENCES = 12
"""Most differences: those of so many sweeps cost about as much as a sweep over the blocks of rigid bodies."""

CHUNK = 2e6
"""Products between two looks at the clock, about 2 ms."""


class Sweeps:
    """Accelerated sweeps on a sparse problem, from its warm start, which can be taken up again."""

    def __init__(self, problem: SparseProblem, tolerance: float, differences: int = DIFFERENCES) -> None:
        self.problem, self.tolerance, self.bound = problem, tolerance, runaway(problem)
        self.w: BlockRows = block_rows(problem.w)
        self.a = make_acceleration(problem.n_contacts, differences)
        self.r, self.u = starting_force(problem), np.zeros(3 * problem.n_contacts)
        self.asked = float(asked_force(self.w.own, problem.b, 0, problem.n_contacts))
        self.start(self.r)

    def start(self, r: np.ndarray) -> None:
        """Begin anew at the force r (3 n,) in the cones."""
        copy(r, self.r)
        begin(self.w, self.problem.b, self.problem.mu, self.asked, self.r, self.u, self.a)

    @property
    def done(self) -> int:
        """Sweeps since the start."""
        return self.a.state["sweeps"].item()

    @property
    def least(self) -> float:
        """The least residual that was met; its force is a.best."""
        return self.a.state["residual"].item()

    def advance(self, sweeps: int) -> int:
        """So many sweeps more; how they ended, as `anderson.advance` tells it."""
        p, limits = self.problem, (self.tolerance, self.bound, self.asked)
        return int(advance(self.w, p.b, p.mu, limits, sweeps, self.r, self.u, self.a))

    def run(self, most: int, seconds: float) -> Reason:
        """Up to `most` sweeps more, and about so much time [s]; why they ended."""
        started, last, chunk, code = perf_counter(), self.done + most, most, CONTINUE
        if math.isfinite(seconds):
            chunk = max(1, int(CHUNK / (9 * len(self.w.column) + 1)))
        while code == CONTINUE and self.done < last:
            code = self.advance(min(chunk, last - self.done))
            if code == CONTINUE and perf_counter() - started >= seconds:
                return "time"
        return REASONS[code]


def solve(problem: SparseProblem, stop: Stop, differences: int = DIFFERENCES) -> ContactResult:
    """Sweep and extrapolate until the residual is at most `stop.tolerance`; an iteration is a sweep.

    Gives back the force of the least residual, whatever ended it.
    """
    started = perf_counter()
    sweeps = Sweeps(problem, stop.tolerance, differences)
    reason = sweeps.run(stop.max_iterations, stop.seconds)
    return judge(problem, stop, sweeps.a.best.copy(), sweeps.done, reason, started)


@kernel
def begin(w, b, mu, asked, r, u, a):
    """Start the acceleration a at the force r (3 n,) in the cones; sets u = W r + b.

    asked: the force that b asks for [N].
    """
    prepare(w.own, mu, r, 0, a)
    copy(r, a.best)
    set_offsets(w, b, r, u)
    _residual(w, mu, asked, r, u, a)


@inlined
def _residual(w, mu, asked, r, u, a):
    error, size = natural_map_norm(w.own, mu, r, u, 0, mu.shape[0], a.scratch)
    error = relative_error(error, size, asked)
    if error < a.state[0].residual:
        a.state[0].residual = error
        copy(r, a.best)
    return error


@kernel
def sweep(w, mu, r, u, step, before):
    """One visit to each contact, as `anderson.sweep`; returns (|g - r|^2, |g|^2)."""
    move, size = 0.0, 0.0
    for k in range(mu.shape[0]):
        i = 3 * k
        n, t1, t2 = r[i], r[i + 1], r[i + 2]
        before[i], before[i + 1], before[i + 2] = n, t1, t2
        r_n = max(0.0, n - step[k, 0] * u[i])
        d_n = r_n - n
        p1 = t1 - step[k, 1] * (u[i + 1] + w.own[i + 1, i] * d_n)
        p2 = t2 - step[k, 1] * (u[i + 2] + w.own[i + 2, i] * d_n)
        scale = scale_to_disc(p1, p2, mu[k] * r_n)
        r[i], r[i + 1], r[i + 2] = r_n, scale * p1, scale * p2
        size += r_n * r_n + r[i + 1] ** 2 + r[i + 2] ** 2
        d1, d2 = r[i + 1] - t1, r[i + 2] - t2
        moved = d_n * d_n + d1 * d1 + d2 * d2
        if moved != 0.0:
            move += moved
            add_force(w, k, d_n, d1, d2, u)
    return move, size


@kernel
def advance(w, b, mu, limits, sweeps, r, u, a):
    """Up to `sweeps` sweeps more after `begin`, as `anderson.advance`.

    limits: tolerance, the largest |r| [N], and the force that b asks for [N].
    """
    tolerance, bound, asked = limits
    if a.state[0].residual <= tolerance:
        return CONVERGED
    for done in range(1, sweeps + 1):
        move, size = sweep(w, mu, r, u, a.step, a.before)
        then = weigh(move, size, tolerance, bound, done == sweeps, r, u, a)
        if then == STOP:
            return DIVERGED
        if then in (ASK, REST):
            if _residual(w, mu, asked, r, u, a) <= tolerance:
                # u has gathered roundings: judge by a fresh one
                set_offsets(w, b, r, u)
                a.state[0].residual = np.inf
                if _residual(w, mu, asked, r, u, a) <= tolerance:
                    return CONVERGED
            if then == REST:
                return STALLED
        if then != BACK:
            go_on(r, u, move, a)
    return CONTINUE
