"""Five solvers behind one name: whatever the problem, the one that suits it, and no clock in the choice.

Accelerated sweeps (`anderson`) cost next to nothing to try, and soon show which contacts bear. Once hardly
one changes its status any more, or a step costs next to nothing (`newton_pays`), semi-smooth Newton is tried
from where they are: mostly that is after the first sweeps, and a step or two end it. It is given up at once
where it does not bite. An interior-point solve costs about the same for every problem: that is its price. So
sweeps go on for as long as they have cost less than that and have prospects.

Then the interior point, first from near the best force, which leaves the end to Newton. What it leaves
unsolved, a singular W without a centred path or a coupling of normal and tangent that is not monotone, goes
round between alternating directions, sweeps on the problem scaled to equal diagonal blocks, and Newton, each
from the best force so far and for longer each time. Each round ends with what is slow and gets where no
descent does: the solution is followed from where nothing touches (`lifting`), which is sure where W is
regular, and the central path round its folds (`homotopy`), the first time from its middle too.

Every choice depends on residuals, statuses and counts alone, in work units: a unit is a product with W. So a
replay repeats it bit for bit, and a larger budget, from eight sweeps on, gives a result that is no worse.
"""

import math
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.problem import (
    AnyProblem,
    ContactProblem,
    ContactResult,
    Reason,
    SparseProblem,
    Stop,
)
from palpo.physics.contact.residual import contact_statuses, judge, relative_residual, runaway
from palpo.physics.contact.solvers import (
    admm,
    anderson,
    homotopy,
    interior_point,
    lifting,
    semi_smooth_newton,
    sparse_admm,
    sparse_anderson,
    sparse_interior_point,
)
from palpo.physics.contact.solvers.first_sweeps import (
    FACTOR,
    FIRST,
    LOOK,
    OVERHEAD,
    TRY_NEWTON,
    newton_pays,
    promised,
    step_price,
    sweep_first,
)
from palpo.physics.contact.solvers.interior_start import begin_near
from palpo.physics.contact.solvers.products import mean_compliances
from palpo.physics.contact.solvers.relaxation import starting_force

Array = NDArray[np.float64]

STEPS = 8
"""Factorisations of a usual interior-point solve."""

NIBBLE, BITE, BITES = 0.6, 0.1, 2
"""Newton is given up where its first step does not bring the residual to the first share, or each so many
steps to the second."""

NEARLY, MOST, TRIAL = 0.3, 2.0, 0.4
"""Sweeps that have cost the price go on while they promise to need this share of it, for MOST prices; those
that have passed the first look go on for the share TRIAL of it."""

FORLORN, HOPELESS, SPAN = 1.2, 3.0, 0.125
"""Sweeps are left where they promise to need so many times the price, at the first look and later; their rate
is that of this share of the price, of two looks at least."""

AGAIN = 3.0
"""Prices for which sweeps are taken up again where the interior point has failed: tall stacks need that."""

INTERIOR, POLISH = 100, 12
"""Most steps of an interior-point solve, and of Newton after it."""

SETTLING, FURTHER = 3e-5, 0.01
"""Residual of an interior-point solve below which Newton is tried from where it is, and the share of the last
try's at which it is tried again: once the statuses are right, one or two of its steps end it."""

SPARSE_SWEEPS, SPARSE_SHARE = 2000, 8
"""Sweeps over a sparse W before it is factored: about what an interior-point solve costs there. Each further
round has twice as many, and a share of one to so many in alternations."""

LIFTED = 40
"""Factorisations of a walk by `lifting` in the first round, per contact: twice what most need."""

ROUND, CHUNK = 400, 80
"""Sweeps, and alternations, of the first round; each further one has twice as many. Sweeps between looks."""


class _Sweeps:
    """Accelerated sweeps from the warm start, which can be taken up again."""

    def __init__(self, problem: ContactProblem, stop: Stop) -> None:
        n = problem.n_contacts
        self.problem, self.tolerance, self.bound = problem, stop.tolerance, runaway(problem)
        self.w, self.r, self.u = np.ascontiguousarray(problem.w), starting_force(problem), np.zeros(3 * n)
        self.a = anderson.make_acceleration(n)
        anderson.begin(self.w, problem.b, problem.mu, self.r, self.u, 0, self.a)

    @property
    def done(self) -> int:
        return int(self.a.count[anderson.SWEEPS])

    @property
    def least(self) -> float:
        return float(self.a.least[anderson.RESIDUAL])

    def first(self, budget: int) -> int:
        """The first sweeps from no force; TRY_NEWTON is one of what they may end with."""
        p, status = self.problem, np.empty((2, self.problem.n_contacts), np.int32)
        code: int = sweep_first(
            self.w, p.b, p.mu, self.r, self.u, self.tolerance, self.bound, budget, status, self.a
        )
        return code

    def advance(self, sweeps: int) -> int:
        p = self.problem
        return anderson.advance(
            self.w, p.b, p.mu, self.r, self.u, 0, self.tolerance, self.bound, sweeps, self.a
        )

    def statuses(self) -> NDArray[np.int32]:
        """OPEN, STICK or SLIP of each contact, shape (n,)."""
        status = np.empty(self.problem.n_contacts, np.int32)
        contact_statuses(self.w, self.problem.mu, self.r, self.u, status)
        return status


class _Run:
    """One solve: the best force so far, what was spent, and when to end."""

    def __init__(self, problem: ContactProblem, stop: Stop, started: float, sweeps: _Sweeps) -> None:
        self.problem, self.stop, self.started, self.sweeps, self.w = problem, stop, started, sweeps, sweeps.w
        self.bound = sweeps.bound
        self.best, self.least = sweeps.a.best.copy(), sweeps.least
        self.done = sweeps.done
        """Sweeps, factorisations and alternations."""
        self.point = interior_point.make_interior(problem.n_contacts)
        self.spent_out = False
        """Whether what is left of the budget holds no unit of what comes next."""
        self.newton: semi_smooth_newton.SemiSmooth | None = None
        self.alternation: admm.Alternation | None = None

    @property
    def over(self) -> bool:
        """Whether it is converged or nothing may be spent any more."""
        return self.least <= self.stop.tolerance or self.spent_out or self.left <= 0 or self.late

    @property
    def left(self) -> int:
        return self.stop.max_iterations - self.done

    def whole(self, chunk: int, unit: int = 1) -> int:
        """As many units as chunk and budget hold. What is cut short at no other place looks nowhere else.

        Were the residual looked at where a budget happens to end, a larger one could miss that force.
        """
        allowed = min(chunk, self.left) // unit * unit
        self.spent_out = self.spent_out or allowed <= 0
        return max(allowed, 0)

    @property
    def late(self) -> bool:
        return self.done > 0 and perf_counter() - self.started >= self.stop.seconds

    def spend(self, done: int, residual: float, r: Array) -> None:
        """Account for what a solver did, and keep its force if it is the best."""
        self.done += done
        if residual < self.least:
            self.least = residual
            self.best[:] = r


def solve(problem: AnyProblem, stop: Stop) -> ContactResult:
    """Whichever of four solvers gets the residual to `stop.tolerance` first; of three where W is sparse.

    Iterations are sweeps, factorisations and alternations together. Gives back the force of the least
    residual, whatever ended it: never worse than the warm start, or than no force.
    """
    started = perf_counter()
    if isinstance(problem, SparseProblem):
        return _solve_sparse(problem, stop, started)
    sweeps, code = _Sweeps(problem, stop), TRY_NEWTON
    if problem.warm is None or not problem.warm.any():
        code = sweeps.first(stop.max_iterations)
        if code == anderson.CONVERGED:
            return judge(problem, stop, sweeps.a.best, sweeps.done, "converged", started)
    run = _Run(problem, stop, started, sweeps)
    if code == TRY_NEWTON:
        _newton(run, POLISH)
    if not run.over:
        _try_all(run)
    reason: Reason = "stalled"
    if run.left <= 0 or run.spent_out:
        reason = "iterations"
    elif run.late:
        reason = "time"
    return judge(problem, stop, run.best, run.done, reason, started)


def _solve_sparse(problem: SparseProblem, stop: Stop, started: float) -> ContactResult:
    """Sweeps and an interior point; then a small problem goes on dense, a large one with sweeps and
    alternations in turns, each from the best force so far."""
    sweeps = sparse_anderson.Sweeps(problem, stop.tolerance)
    best, least, done, reason = sweeps.a.best.copy(), sweeps.least, 0, "iterations"
    turns, length = iter((_sparse_sweeps, _sparse_interior)), SPARSE_SWEEPS
    before = math.inf
    while least > stop.tolerance and done < stop.max_iterations:
        if done and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        turn = next(turns, None)
        if turn is None and problem.small:
            seconds = stop.seconds - (perf_counter() - started)
            part = replace(stop, max_iterations=stop.max_iterations - done, seconds=seconds)
            found = solve(replace(problem, warm=best).dense(), part)
            return judge(problem, stop, found.r, done + found.iterations, found.reason, started)
        if turn is None:
            if least == before:  # a whole round has led nowhere
                reason = "stalled"
                break
            before, length = least, 2 * length
            turns = iter((_sparse_sweeps, _sparse_alternations))
            continue
        seconds = stop.seconds - (perf_counter() - started)
        part = replace(stop, max_iterations=stop.max_iterations - done, seconds=seconds)
        spent, r = turn(replace(problem, warm=best), part, sweeps, length)
        done += spent
        error = relative_residual(problem, r)
        if error < least:
            least, best = error, r
    ended: Reason = reason  # type: ignore[assignment]
    return judge(problem, stop, best, done, ended, started)


def _sparse_sweeps(
    problem: SparseProblem, part: Stop, sweeps: sparse_anderson.Sweeps, length: int
) -> tuple[int, Array]:
    """Sweeps on from where they were left, or from a better force that another solver has found since."""
    if problem.warm is not None and relative_residual(problem, problem.warm) < sweeps.least:
        sweeps.start(starting_force(problem))
    had = sweeps.done
    sweeps.run(min(length, part.max_iterations), part.seconds)
    return max(sweeps.done - had, 1), sweeps.a.best.copy()


def _sparse_interior(
    problem: SparseProblem, part: Stop, sweeps: sparse_anderson.Sweeps, length: int
) -> tuple[int, Array]:
    found = sparse_interior_point.solve(
        problem, replace(part, max_iterations=min(INTERIOR, part.max_iterations))
    )
    return max(found.iterations, 1), found.r


def _sparse_alternations(
    problem: SparseProblem, part: Stop, sweeps: sparse_anderson.Sweeps, length: int
) -> tuple[int, Array]:
    most = min(length // SPARSE_SHARE, part.max_iterations)
    found = sparse_admm.solve(problem, replace(part, max_iterations=most))
    return max(found.iterations, 1), found.r


def _try_all(run: _Run) -> None:
    price = _sweep_while_it_pays(run)
    attempts = iter(interior_point.ATTEMPTS)
    first = next(attempts)
    _interior(run, *first, near=True)
    _newton(run, POLISH)
    _interior(run, *first)
    _newton(run, POLISH)
    _sweep_on(run, int(AGAIN * price))
    _newton(run, POLISH)
    _alternate(run, ROUND)
    _newton(run, POLISH)
    for attempt in attempts:
        _interior(run, *attempt)
        _newton(run, POLISH)
    scaled, length, before = _Scaled(run), ROUND, math.inf
    while not run.over and not (scaled.still and run.least == before):
        before = run.least
        scaled.sweep(length)
        _newton(run, POLISH)
        _alternate(run, length)
        _newton(run, POLISH)
        _interior(run, *first, near=True)
        _newton(run, POLISH)
        _lift(run, length // ROUND)
        _walk(run, length == ROUND)
        length *= 2


def _price(run: _Run, bearing: int) -> float:
    """What an interior-point solve of all contacts is worth, in sweeps, which pay for those that bear."""
    n = run.problem.n_contacts
    return STEPS * (OVERHEAD + 3 * n / FACTOR) * n / max(bearing, 1)


# ---- sweeps


def _sweep_while_it_pays(run: _Run) -> float:
    """Sweeps until they converge, have cost the price of an interior point, or look forlorn; the price."""
    n, sweeps = run.problem.n_contacts, run.sweeps
    before = sweeps.statuses()
    bearing = int(np.count_nonzero(before))
    price = _price(run, bearing)
    share = bearing / n  # the fewer bear, the less the first rate says: statuses still change
    if sweeps.done == FIRST and promised(FIRST, sweeps.least, sweeps.tolerance) * share > FORLORN * price:
        return price
    code, seen, tried, left = anderson.CONTINUE, [sweeps.least], 0, 0.0
    while code == anderson.CONTINUE and not run.over:
        if sweeps.done > price and (left > NEARLY * price or sweeps.done > MOST * price):
            break
        had = sweeps.done
        code = sweeps.advance(run.whole(LOOK, anderson.OFTEN))
        run.spend(sweeps.done - had, sweeps.least, sweeps.a.best)
        if run.over:
            break
        seen.append(sweeps.least)
        status = sweeps.statuses()
        changed, before = np.count_nonzero(status != before), status
        left = _sweeps_left(seen, run.stop.tolerance, max(2, int(SPAN * price / LOOK)))
        bearing = int(np.count_nonzero(status))
        step = step_price(n, bearing)
        yet = left or promised(sweeps.done, sweeps.least, sweeps.tolerance)
        if sweeps.done >= 2 * tried and newton_pays(changed, n, yet, step):
            tried = sweeps.done
            _newton(run, POLISH)
        if left > HOPELESS * price and sweeps.done > TRIAL * price:
            break
    return price


def _sweep_on(run: _Run, most: int) -> None:
    """Sweeps from where they were left."""
    code, last = anderson.CONTINUE, run.sweeps.done + most
    while code == anderson.CONTINUE and not run.over and run.sweeps.done < last:
        had = run.sweeps.done
        code = run.sweeps.advance(run.whole(LOOK, anderson.OFTEN))
        run.spend(run.sweeps.done - had, run.sweeps.least, run.sweeps.a.best)


def _sweeps_left(seen: list[float], tolerance: float, looks: int) -> float:
    """How many more sweeps the rate of the last looks promises; none where there are not as many."""
    if len(seen) <= looks or not math.isfinite(seen[-1 - looks]):
        return 0.0
    rate = math.log(seen[-1 - looks] / seen[-1]) / (looks * LOOK)
    return math.log(seen[-1] / tolerance) / rate if rate > 0.0 else math.inf


class _Scaled:
    """Sweeps on the problem whose contacts all yield 1: r = scale x, W scaled on both sides."""

    def __init__(self, run: _Run) -> None:
        self.run, self.still = run, False
        self.a: anderson.Acceleration | None = None

    def _start(self) -> anderson.Acceleration:
        p, n = self.run.problem, self.run.problem.n_contacts
        own = np.zeros(n)
        mean_compliances(self.run.w, own)
        self.scale = np.repeat(1.0 / np.sqrt(own), 3)
        self.w = self.run.w * self.scale[:, None] * self.scale
        self.b = p.b * self.scale
        self.tolerance, self.had = self.run.stop.tolerance, math.inf
        self.bound = self.run.bound / float(self.scale.max())
        return anderson.make_acceleration(n)

    def sweep(self, length: int) -> None:
        """So many sweeps more, from the best force if another solver has found a better one since."""
        run = self.run
        if run.over:
            return
        p = run.problem
        if self.a is None:
            self.a = self._start()
        a = self.a
        if run.least < self.had:
            self.r, self.u = run.best / self.scale, np.zeros_like(p.b)
            anderson.begin(self.w, self.b, p.mu, self.r, self.u, 0, a)
        while length > 0 and not run.over:
            sweeps = run.whole(CHUNK, CHUNK)
            had = int(a.count[anderson.SWEEPS])
            code = anderson.advance(
                self.w, self.b, p.mu, self.r, self.u, 0, self.tolerance, self.bound, sweeps, a
            )
            done = int(a.count[anderson.SWEEPS]) - had
            length -= CHUNK
            r = self.scale * a.best
            run.spend(done, relative_residual(run.problem, r), r)
            if code == anderson.CONVERGED:  # in its own measure
                self.tolerance *= 0.1
            self.still = code in (anderson.STALLED, anderson.DIVERGED) or self.tolerance < 1e-15
            if self.still:
                break
        self.had = run.least


# ---- the others


def _newton(run: _Run, most: int) -> None:
    """Newton's steps from the best force, for as long as they bite."""
    if run.over:
        return
    p, s = run.problem, semi_smooth_newton
    if run.newton is None:
        run.newton = s.make_semi_smooth(p.n_contacts, run.point.matrix)
    a = run.newton
    s.begin(run.w, p.b, p.mu, run.best, a)
    mark, code = run.least, s.CONTINUE
    for step in range(1, most + 1):
        code = s.advance(run.w, p.b, p.mu, run.stop.tolerance, run.bound, 1, a)
        run.spend(1, float(a.state[s.LEAST]), a.r)
        if code != s.CONTINUE or run.over or (step == 1 and a.state[s.LEAST] > NIBBLE * mark):
            return
        if step % BITES == 0:
            if a.state[s.LEAST] > BITE * mark:
                return
            mark = float(a.state[s.LEAST])


def _interior(run: _Run, ridge: float, lags: bool, near: bool = False) -> None:
    """An interior-point solve from the middle of the cones, or from near the best force."""
    if run.over:
        return
    p, s, a = run.problem, interior_point, run.point
    if near:
        begin_near(run.w, p.b, p.mu, run.best, run.least, ridge, lags, a)
    else:
        s.begin(run.w, p.b, p.mu, ridge, lags, a)
    code, aim = s.CONTINUE, SETTLING
    while code == s.CONTINUE and not run.over and a.count[s.STEPS] < INTERIOR:
        had, until = int(a.count[s.STEPS]), max(aim, run.stop.tolerance)
        steps = 1 if math.isfinite(run.stop.seconds) else min(INTERIOR - had, run.left)
        code = s.advance(run.w, p.b, p.mu, until, run.bound, steps, a)
        least = float(a.state[s.LEAST])
        run.spend(int(a.count[s.STEPS]) - had, least, a.best)
        if code == s.CONVERGED and not run.over:
            aim, code = FURTHER * least, s.CONTINUE
            if run.least == least:
                _newton(run, POLISH)


def _lift(run: _Run, turn: int) -> None:
    """The solution followed from where nothing touches, by another lift in each round."""
    if run.over:
        return
    seconds = run.stop.seconds - (perf_counter() - run.started)
    most = min(LIFTED * turn * run.problem.n_contacts, run.left)
    part = replace(run.stop, max_iterations=most, seconds=seconds)
    found = lifting.solve(replace(run.problem, warm=run.best), part, first=turn - 1, walks=1)
    run.spend(found.iterations, found.residual, found.r)


def _walk(run: _Run, middle: bool) -> None:
    """The central path followed round its folds, from its middle or not, then from near the best force."""
    if run.over:
        return
    seconds = run.stop.seconds - (perf_counter() - run.started)
    part = replace(run.stop, max_iterations=run.left, seconds=seconds)
    found = homotopy.solve(replace(run.problem, warm=run.best), part, middle=middle)
    run.spend(found.iterations, found.residual, found.r)


def _alternate(run: _Run, length: int) -> None:
    """Alternating directions from the best force."""
    if run.over:
        return
    p, s = run.problem, admm
    if run.alternation is None:
        run.alternation = s.make_alternation(p.n_contacts)
    a = run.alternation
    code = s.CONTINUE if s.begin(run.w, p.b, p.mu, run.best, a) else s.STALLED
    while code == s.CONTINUE and not run.over and a.count[s.ITERATIONS] < length:
        had = int(a.count[s.ITERATIONS])
        chunk = run.whole(10 * s.OFTEN, s.OFTEN)
        code = s.advance(run.w, p.b, p.mu, s.RELAXATION, run.stop.tolerance, run.bound, chunk, a)
        run.spend(int(a.count[s.ITERATIONS]) - had, float(a.state[s.LEAST]), a.best)
