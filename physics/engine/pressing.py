"""Contacts, friction and the pressures of cavities within what a step of the servo is lent.

The method is palpo.physics.gas.pressure, and where its first sweeps do not do, Newton's between them
(palpo.physics.gas.bordered_newton). A solve that diverges leaves the least residual met, but the air
as it was: its pressures mean nothing, and what they let out would be lost for good.
"""

from palpo.physics.contact.solvers.anderson import CONTINUE, DIVERGED
from palpo.physics.engine.solve import CHUNK, lent
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.gas.bordered_newton import solve_bordered
from palpo.physics.gas.pressure import advance, begin, finish, resume
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import kernel

FEW = 3
"""Sweeps before Newton's method: where little has changed they do."""

TURNS, STEPS = 2, 6
"""How often it is turned to, and its steps each time: the second finds the pressures where the first has
brought them, at their bounds or off them."""


@kernel
def press(w, b, mu, x, u, gas, start, s, accelerated=True, blocks=None):
    """Contacts and cavities within what a step is lent, as palpo.physics.gas.pressure has them.

    w (3 n + k, 3 n + k), b, x and u (3 n + k,), mu (n,); x[:3 n] is the force to start from, in the cones.
    start (2, k): scratch. accelerated: extrapolate from the last sweeps. blocks: JoinedBlocks where W is made
    of them. s.told says how it went.
    """
    a, told, settings = s.acceleration, s.told[0], s.settings[0]
    for j in range(gas.pressure.shape[0]):
        start[0, j], start[1, j] = gas.pressure[j], gas.amount[j]
    before, code = told.sweeps, CONTINUE
    chunk = CHUNK if settings.seconds > 0.0 else settings.sweeps
    bound = begin(w, b, mu, x, u, gas, accelerated, a, blocks)
    while code == CONTINUE:
        sweeps = lent(s, before + a.state[0].sweeps, chunk)
        if sweeps == 0:
            break
        code = advance(w, b, mu, x, u, gas, told.tolerance, bound, sweeps, a, blocks)
    _end(w, b, mu, x, u, gas, start, code, s, blocks)


@kernel
def press_firmly(w, b, mu, x, u, gas, start, s):
    """The same with Newton's method where the first sweeps do not end it; s.bordered has the room."""
    a, told, settings = s.acceleration, s.told[0], s.settings[0]
    for j in range(gas.pressure.shape[0]):
        start[0, j], start[1, j] = gas.pressure[j], gas.amount[j]
    before, turns = told.sweeps, 0
    bound = begin(w, b, mu, x, u, gas, True, a)
    code = CONTINUE
    while code == CONTINUE:
        chunk = FEW if turns < TURNS or settings.seconds > 0.0 else settings.sweeps
        sweeps = lent(s, before + a.state[0].sweeps, chunk)
        if sweeps == 0:
            break
        code = advance(w, b, mu, x, u, gas, told.tolerance, bound, sweeps, a)
        if code != CONTINUE or turns == TURNS:
            continue
        turns += 1
        copy(a.best[: x.shape[0]], x)
        resume(w, b, mu, x, u, gas, told.tolerance, bound, a)
        solve_bordered(w, mu, x, u, gas, told.tolerance, bound, STEPS, s.bordered)
        resume(w, b, mu, x, u, gas, told.tolerance, bound, a)
        if lent(s, before + a.state[0].sweeps, settings.sweeps) > 0:
            code = advance(w, b, mu, x, u, gas, told.tolerance, bound, 1, a)
    _end(w, b, mu, x, u, gas, start, code, s)


@kernel
def _end(w, b, mu, x, u, gas, start, code, s, blocks=None):
    """The best is given, and told."""
    a, told = s.acceleration, s.told[0]
    finish(w, b, mu, x, u, gas, a, blocks)
    told.sweeps += a.state[0].sweeps
    told.residual = a.state[0].residual
    if code == DIVERGED:
        told.flags |= SOLVE_DIVERGED
        told.divergences += 1
        for j in range(gas.pressure.shape[0]):
            gas.pressure[j], gas.amount[j] = start[0, j], start[1, j]
