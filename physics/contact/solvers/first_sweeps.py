"""The first accelerated sweeps of a solve, in one call: whether they will do, or Newton is worth trying.

After the plain ones the contacts that bear go on alone, if they are few enough (`bearing_part`), until no
other is called for. Easy problems end here, at no more than the sweeps themselves cost.
"""

import math

import numpy as np

from palpo.physics.contact.laws import contact_statuses
from palpo.physics.contact.solvers import anderson
from palpo.physics.contact.solvers.bearing_part import WORTH, choose, put_back, take_out, tighter
from palpo.physics.numerics.kernels import kernel

FIRST, LAST, LOOK = 24, 8, 32
"""Sweeps before the first look at the residual, the plain ones among them; the last of them, in which
statuses are watched; and those between two more looks."""

EARLY = 0.1
"""Residual that the plain sweeps leave as a rule: what came after says how quick the others are."""

SETTLED = 0.03
"""Share of the contacts that may change status between two looks for Newton to be tried."""

PROFIT, CHEAP = 1.5, 20.0
"""How many times the price of Newton's step the sweeps must promise to cost yet for it to be tried, and from
how many on it is tried whatever the statuses do."""

OVERHEAD, FACTOR = 4.0, 9.0
"""A step that factors N rows is worth OVERHEAD + N / FACTOR sweeps over contacts that all bear, extrapolation
included, as measured from 36 to 400 contacts with one thread; the choice between solvers depends on it."""

CALLS, FEW = 60.0, 16.0
"""What setting up Newton is worth besides, in sweeps over next to no contact, and from about how many that
bear on sweeps cost more."""

TRY_NEWTON = 10
"""Returned by `sweep_first` besides what `anderson.advance` returns."""

PARTS = 4
"""Times that contacts are taken along that a part's force calls for, before all are solved together."""


@kernel
def step_price(n, bearing):
    """What a step of Newton's on so many of n contacts is worth, in sweeps, which pay for these alone."""
    share = bearing / n
    return CALLS / (1.0 + (bearing / FEW) ** 2) + OVERHEAD * share + 3 * n / FACTOR * share * share


@kernel
def promised(sweeps, least, tolerance):
    """How many more sweeps those since the plain ones promise, which have brought the residual to `least`."""
    gained = math.log(EARLY / least) if 0.0 < least < EARLY else 0.0
    if gained <= 0.0:
        return np.inf
    return (sweeps - anderson.PLAIN) * math.log(least / tolerance) / gained


@kernel
def newton_pays(changed, n, left, price):
    """Whether to try Newton's step of that price where so many statuses changed and sweeps promise `left`."""
    return left > PROFIT * price and (changed <= SETTLED * n or left > CHEAP * price)


@kernel
def sweep_on_first(w, b, mu, r, u, tolerance, bound, budget, status, a):
    """The sweeps after the plain ones; past the first look if they are nearly there.

    status: room for (2, n). Returns what `anderson.advance` does, or TRY_NEWTON where hardly a contact
    changes status any more and Newton is likely to be cheaper than what the sweeps promise.
    """
    n = mu.shape[0]
    if budget < FIRST - anderson.PLAIN:  # a larger one would not look where this one ends
        return anderson.CONTINUE
    code = anderson.advance(w, b, mu, r, u, 0, tolerance, bound, FIRST - LAST - anderson.PLAIN, a)
    if code != anderson.CONTINUE:
        return code
    contact_statuses(w, mu, r, u, status[0])
    code = anderson.advance(w, b, mu, r, u, 0, tolerance, bound, LAST, a)
    if code != anderson.CONTINUE:
        return code
    contact_statuses(w, mu, r, u, status[1])
    changed, bearing = 0, 0
    for k in range(n):
        changed += status[0, k] != status[1, k]
        bearing += status[1, k] != 0
    left = promised(a.state[0].sweeps, a.state[0].residual, tolerance)
    price = step_price(n, bearing)
    nearly = left <= LOOK or 3 * bearing <= LOOK
    if not nearly and newton_pays(changed, n, left, price):
        return TRY_NEWTON
    if nearly and budget >= FIRST - anderson.PLAIN + LOOK:
        code = anderson.advance(w, b, mu, r, u, 0, tolerance, bound, LOOK, a)
    return code


@kernel
def begin_again(w, b, mu, r, u, a):
    """As `anderson.begin`, from a force to which plain sweeps have led."""
    anderson.begin(w, b, mu, r, u, 0, a)
    a.state[0].sweeps, a.state[0].wait = anderson.PLAIN, 0


@kernel
def sweep_first(w, b, mu, r, u, tolerance, bound, budget, chosen, status, a):
    """The plain sweeps and those of `sweep_on_first`, of the contacts that bear alone if that saves much.

    After `anderson.begin` at no force. chosen (n,): zeros, then 1 for each contact of the part that it ends
    with, if any. Returns the code, the sweeps, and that part: w, b, mu, r, u and tolerance, of no rows where
    all contacts were swept or it has converged. r and u (3 n,) are of the best force of all contacts; `a` is
    the part's if there is one.
    """
    n, nothing = mu.shape[0], np.empty((0, 0))
    code = anderson.advance(w, b, mu, r, u, 0, tolerance, bound, min(anderson.PLAIN, budget), a)
    spent, before, rows = a.state[0].sweeps, 0, np.empty(0)
    if code != anderson.CONTINUE or budget < FIRST:
        return code, spent, nothing, rows, rows, rows, rows, tolerance
    for turn in range(PARTS + 1):
        m = choose(b, r, u, chosen)
        if turn == PARTS or m > WORTH * n or m == before:
            break
        before = m
        part_w, part_b, part_mu = np.empty((3 * m, 3 * m)), np.empty(3 * m), np.empty(m)
        part_r, part_u = np.empty(3 * m), np.empty(3 * m)
        take_out(w, b, mu, r, chosen, part_w, part_b, part_mu, part_r)
        own = tolerance * tighter(w, b, part_w, part_b)
        begin_again(part_w, part_b, part_mu, part_r, part_u, a)
        code = sweep_on_first(part_w, part_b, part_mu, part_r, part_u, own, bound, budget - spent, status, a)
        spent += a.state[0].sweeps - anderson.PLAIN
        if code != anderson.CONVERGED:
            return code, spent, part_w, part_b, part_mu, part_r, part_u, own
        least = put_back(w, b, mu, chosen, a.best, r, u, a.scratch)
        if least <= tolerance:
            a.state[0].residual = least
            for i in range(3 * n):
                a.best[i] = r[i]
            return code, spent, nothing, rows, rows, rows, rows, tolerance
    if before > 0:
        begin_again(w, b, mu, r, u, a)
    code = sweep_on_first(w, b, mu, r, u, tolerance, bound, budget - spent, status, a)
    spent += a.state[0].sweeps - anderson.PLAIN
    return code, spent, nothing, rows, rows, rows, rows, tolerance
