"""The first accelerated sweeps of a solve, in one call: whether they will do, or Newton is worth trying.

Easy problems end here, at no more than the sweeps themselves cost.
"""

import math

import numpy as np

from palpo.physics.contact.residual import contact_statuses
from palpo.physics.contact.solvers import anderson
from palpo.physics.kernels import kernel

FIRST, LAST, LOOK = 24, 8, 32
"""Sweeps before the first look at the residual, the plain ones among them; the last of them, in which
statuses are watched; and those between two more looks."""

EARLY = 0.1
"""Residual that the plain sweeps leave as a rule: what came after says how quick the others are."""

SETTLED = 0.03
"""Share of the contacts that may change status between two looks for Newton to be tried."""

WORTH, CHEAP = 1.5, 20.0
"""How many times the price of Newton's step the sweeps must promise to cost yet for it to be tried, and from
how many on it is tried whatever the statuses do."""

OVERHEAD, FACTOR = 2.0, 18.0
"""A step that factors N rows is worth OVERHEAD + N / FACTOR sweeps over contacts that all bear, extrapolation
included, as measured from 36 to 400 contacts with one thread; the choice between solvers depends on it."""

TRY_NEWTON = 10
"""Returned by `sweep_first` besides what `anderson.advance` returns."""


@kernel
def step_price(n, bearing):
    """What a step of Newton's on so many of n contacts is worth, in sweeps, which pay for these alone."""
    share = bearing / n
    return OVERHEAD * share + 3 * n / FACTOR * share * share


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
    return left > WORTH * price and (changed <= SETTLED * n or left > CHEAP * price)


@kernel
def sweep_first(w, b, mu, r, u, tolerance, bound, budget, status, a):
    """The first sweeps from no force, after `anderson.begin`; past the first look if they are nearly there.

    status: room for (2, n). Returns what `anderson.advance` does, or TRY_NEWTON where hardly a contact
    changes status any more and Newton is likely to be cheaper than what the sweeps promise.
    """
    n = mu.shape[0]
    if budget < FIRST:  # to the last of its looks, or to what there is
        looked = (budget - anderson.PLAIN) // anderson.OFTEN * anderson.OFTEN + anderson.PLAIN
        return anderson.advance(w, b, mu, r, u, 0, tolerance, bound, looked if looked > 0 else budget, a)
    code = anderson.advance(w, b, mu, r, u, 0, tolerance, bound, FIRST - LAST, a)
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
    left = promised(a.count[anderson.SWEEPS], a.least[anderson.RESIDUAL], tolerance)
    if newton_pays(changed, n, left, step_price(n, bearing)):
        return TRY_NEWTON
    if left <= LOOK and budget >= FIRST + LOOK:
        code = anderson.advance(w, b, mu, r, u, 0, tolerance, bound, LOOK, a)
    return code
