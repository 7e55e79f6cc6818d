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
"""How often a tick turns to it, and its steps each time: the second finds the pressures where the first has
brought them, at their bounds or off them."""


@kernel
def press(w, b, mu, x, u, gas, start, s, turns, accelerated, blocks):
    """Contacts and cavities within what a step is lent, as palpo.physics.gas.pressure has them.

    w (3 n + k, 3 n + k), b, x and u (3 n + k,), mu (n,); x[:3 n] is the force to start from, in the cones.
    start (2, k): scratch. turns: how often Newton's method is turned to where the first sweeps do not end it;
    s.bordered has the room. accelerated: extrapolate from the last sweeps. blocks: JoinedBlocks where W is
    made of them, without turns. s.told says how it went.
    """
    a, told, settings = s.acceleration, s.told[0], s.settings[0]
    for j in range(gas.pressure.shape[0]):
        start[0, j], start[1, j] = gas.pressure[j], gas.amount[j]
    before, left, code = told.sweeps, turns, CONTINUE
    bound = begin(w, b, mu, x, u, gas, accelerated, a, blocks)
    few = FEW if turns > 0 else CHUNK
    while code == CONTINUE:
        chunk = few if left > 0 or settings.seconds > 0.0 else settings.sweeps
        sweeps = lent(s, before + a.state[0].sweeps, chunk)
        if sweeps == 0:
            break
        code = advance(w, b, mu, x, u, gas, told.tolerance, bound, sweeps, a, blocks)
        if code != CONTINUE or left == 0:
            continue
        left -= 1
        copy(a.best[: x.shape[0]], x)
        resume(w, b, mu, x, u, gas, told.tolerance, bound, a)
        solve_bordered(w, mu, x, u, gas, told.tolerance, bound, STEPS, s.bordered)
        resume(w, b, mu, x, u, gas, told.tolerance, bound, a)
        if lent(s, before + a.state[0].sweeps, settings.sweeps) > 0:
            code = advance(w, b, mu, x, u, gas, told.tolerance, bound, 1, a, blocks)
    _end(w, b, mu, x, u, gas, start, code, s, blocks)


@kernel
def _end(w, b, mu, x, u, gas, start, code, s, blocks):
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
