"""What the portfolio does with a run in turns: sweeps while they pay, Newton, interior points, the others."""

import math
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import relative_residual
from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers import (
    admm,
    anderson,
    homotopy,
    interior_point,
    lifting,
    semi_smooth_newton,
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
)
from palpo.physics.contact.solvers.interior_start import begin_near
from palpo.physics.contact.solvers.portfolio_run import Run
from palpo.physics.contact.solvers.products import mean_compliances

Array = NDArray[np.float64]

STEPS = 8
"""Factorisations of a usual interior-point solve."""

NIBBLE, BITE, BITES = 0.6, 0.1, 2
"""Newton is given up where its first step does not bring the residual to the first share, or each so many
steps to the second."""

NEARLY, MOST, TRIAL = 0.3, 1.2, 0.2
"""Sweeps that have cost the price go on while they promise to need this share of it, for MOST prices; those
that have passed the first look go on for the share TRIAL of it."""

FORLORN, HOPELESS, SPAN = 0.7, 1.5, 0.125
"""Sweeps are left where they promise to need so many times the price, at the first look and later; their rate
is that of this share of the price, of one look at least."""

AGAIN = 3.0
"""Prices for which sweeps are taken up again where the interior point has failed: tall stacks need that."""

INTERIOR, POLISH = 100, 12
"""Most steps of an interior-point solve, and of Newton after it."""

SETTLING, FURTHER = 1e-5, 0.01
"""Residual of an interior-point solve below which Newton is tried from where it is, and the share of the last
try's at which it is tried again: once the statuses are right, one or two of its steps end it."""

LIFTED = 40
"""Factorisations of a walk by `lifting` in the first round, per contact: twice what most need."""

ROUND, CHUNK = 400, 80
"""Sweeps, and alternations, of the first round; each further one has twice as many. Sweeps between looks."""


# ---- sweeps


def _price(run: Run, bearing: int) -> float:
    """What an interior-point solve of all contacts is worth, in sweeps, which pay for those that bear."""
    n = run.problem.n_contacts
    return STEPS * (OVERHEAD + 3 * n / FACTOR) * n / max(bearing, 1)


def sweep_first(run: Run) -> None:
    """The sweeps after the plain ones, and Newton from where they end if that pays."""
    if run.over:
        return
    had = run.sweeps.done
    code = run.sweeps.go_on_first(run.left)
    run.spend(run.sweeps.done - had, run.sweeps.least, run.sweeps.best)
    run.spent_out = run.spent_out or run.sweeps.done == had
    if code == TRY_NEWTON:
        newton(run, POLISH)


def sweep_while_it_pays(run: Run) -> float:
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
        code = sweeps.advance(run.units(LOOK, anderson.OFTEN))
        run.spend(sweeps.done - had, sweeps.least, sweeps.best)
        if code == anderson.CONTINUE and sweeps.done - had < LOOK:  # a larger budget would not choose here
            run.spent_out = True
        if run.over:
            break
        seen.append(sweeps.least)
        status = sweeps.statuses()
        changed, before = np.count_nonzero(status != before), status
        left = _sweeps_left(seen, run.stop.tolerance, max(1, int(SPAN * price / LOOK)))
        bearing = int(np.count_nonzero(status))
        step = step_price(n, bearing)
        yet = left or promised(sweeps.done, sweeps.least, sweeps.tolerance)
        if sweeps.done >= 2 * tried and newton_pays(changed, n, yet, step):
            tried = sweeps.done
            newton(run, POLISH)
        if left > HOPELESS * price and sweeps.done > TRIAL * price:
            break
    return price


def sweep_on(run: Run, most: int) -> None:
    """Sweeps from where they were left."""
    code, last = anderson.CONTINUE, run.sweeps.done + most
    while code == anderson.CONTINUE and not run.over and run.sweeps.done < last:
        had = run.sweeps.done
        code = run.sweeps.advance(run.units(LOOK, anderson.OFTEN))
        run.spend(run.sweeps.done - had, run.sweeps.least, run.sweeps.best)


def _sweeps_left(seen: list[float], tolerance: float, looks: int) -> float:
    """How many more sweeps the rate of the last looks promises; none where there are not as many."""
    if len(seen) <= looks or not math.isfinite(seen[-1 - looks]):
        return 0.0
    rate = math.log(seen[-1 - looks] / seen[-1]) / (looks * LOOK)
    return math.log(seen[-1] / tolerance) / rate if rate > 0.0 else math.inf


class Scaled:
    """Sweeps on the problem whose contacts all yield 1: r = scale x, W scaled on both sides."""

    def __init__(self, run: Run) -> None:
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
            sweeps = run.units(CHUNK, CHUNK)
            had = a.state["sweeps"].item()
            code = anderson.advance(
                self.w, self.b, p.mu, self.r, self.u, 0, self.tolerance, self.bound, sweeps, a
            )
            done = a.state["sweeps"].item() - had
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


def newton(run: Run, most: int) -> None:
    """Newton's steps from the best force, for as long as they bite."""
    if run.over:
        return
    p, s = run.problem, semi_smooth_newton
    if run.newton is None:
        run.newton = s.make_semi_smooth(p.n_contacts)
    a = run.newton
    s.begin(run.w, p.b, p.mu, run.best, a)
    mark, code = run.least, s.CONTINUE
    for step in range(1, most + 1):
        code = s.advance(run.w, p.b, p.mu, run.stop.tolerance, run.bound, 1, a)
        run.spend(1, a.state["residual"].item(), a.r)
        if code != s.CONTINUE or run.over or (step == 1 and a.state["residual"].item() > NIBBLE * mark):
            return
        if step % BITES == 0:
            if a.state["residual"].item() > BITE * mark:
                return
            mark = a.state["residual"].item()


def interior(run: Run, ridge: float, lags: bool, near: bool = False) -> None:
    """An interior-point solve from the middle of the cones, or from near the best force."""
    if run.over:
        return
    p, s, a = run.problem, interior_point, run.point
    if near:
        begin_near(run.w, p.b, p.mu, run.best, run.least, ridge, lags, a)
    else:
        s.begin(run.w, p.b, p.mu, ridge, lags, a)
    code, aim = s.CONTINUE, SETTLING
    while code == s.CONTINUE and not run.over and a.state["steps"].item() < INTERIOR:
        had, until = a.state["steps"].item(), max(aim, run.stop.tolerance)
        steps = 1 if math.isfinite(run.stop.seconds) else min(INTERIOR - had, run.left)
        code = s.advance(run.w, p.b, p.mu, until, run.bound, steps, a)
        least = a.state["residual"].item()
        run.spend(a.state["steps"].item() - had, least, a.best)
        if code == s.CONVERGED and not run.over:
            aim, code = FURTHER * least, s.CONTINUE
            if run.least == least:
                newton(run, POLISH)


def lift(run: Run, turn: int) -> None:
    """The solution followed from where nothing touches, by another lift in each round."""
    if run.over:
        return
    most = min(LIFTED * turn * run.problem.n_contacts, run.left)
    found = lifting.solve(replace(run.problem, warm=run.best), _rest(run, most), first=turn - 1, walks=1)
    run.spend(found.iterations, found.residual, found.r)


def walk(run: Run, middle: bool) -> None:
    """The central path followed round its folds, from its middle or not, then from near the best force."""
    if run.over:
        return
    found = homotopy.solve(replace(run.problem, warm=run.best), _rest(run, run.left), middle=middle)
    run.spend(found.iterations, found.residual, found.r)


def _rest(run: Run, most: int) -> Stop:
    """So many units at most, in the time that is left."""
    return replace(run.stop, max_iterations=most, seconds=run.stop.seconds - (perf_counter() - run.started))


def alternate(run: Run, length: int) -> None:
    """Alternating directions from the best force."""
    if run.over:
        return
    p, s = run.problem, admm
    if run.alternation is None:
        run.alternation = s.make_alternation(run.w, p.n_contacts)
    a = run.alternation
    code = s.CONTINUE if s.begin(run.w, p.b, p.mu, run.best, a) else s.STALLED
    while code == s.CONTINUE and not run.over and a.state["iterations"].item() < length:
        had = a.state["iterations"].item()
        chunk = run.units(10 * s.OFTEN, s.OFTEN)
        code = s.advance(run.w, p.b, p.mu, s.RELAXATION, run.stop.tolerance, run.bound, chunk, a)
        run.spend(a.state["iterations"].item() - had, a.state["residual"].item(), a.best)
