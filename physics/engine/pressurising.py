"""Contacts, friction and the pressures of cavities at the servo, by palpo.physics.suction.pressure.

A solve that diverges leaves the least residual met, but the air as it was: its pressures mean nothing, and
what they let out would be lost for good.
"""

from palpo.physics.contact.solvers.anderson import CONTINUE, DIVERGED, RESIDUAL, SWEEPS
from palpo.physics.engine.contract import DONE
from palpo.physics.engine.solve import CHUNK, lent, solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.exchange.port import SOLVE_DIVERGED
from palpo.physics.kernels import kernel
from palpo.physics.suction.pressure import Gas, advance, begin, finish


@kernel
def press(w, b, mu, x, u, gas, start, s):
    """Contacts and cavities within what a step is lent, as palpo.physics.suction.pressure has them.

    w (3 n + k, 3 n + k), b, x and u (3 n + k,), mu (n,); x[:3 n] is the force to start from, in the cones.
    start (2, k): scratch. s.told says how it went.
    """
    a, told, settings = s.acceleration, s.told[0], s.settings[0]
    for j in range(gas.pressure.shape[0]):
        start[0, j], start[1, j] = gas.pressure[j], gas.amount[j]
    before, code = told.sweeps, CONTINUE
    chunk = CHUNK if settings.seconds > 0.0 else settings.sweeps
    bound = begin(w, b, mu, x, u, gas, True, a)
    while code == CONTINUE:
        sweeps = lent(s, before + a.count[SWEEPS], chunk)
        if sweeps == 0:
            break
        code = advance(w, b, mu, x, u, gas, told.tolerance, bound, sweeps, a)
    finish(w, b, mu, x, u, gas, a)
    told.sweeps += a.count[SWEEPS]
    told.residual = a.least[RESIDUAL]
    if code == DIVERGED:
        told.flags |= SOLVE_DIVERGED
        told.divergences += 1
        for j in range(gas.pressure.shape[0]):
            gas.pressure[j], gas.amount[j] = start[0, j], start[1, j]


@kernel
def solve_pressures(p, s):
    """Sweeps over the rows of contacts and cavities of a step of the engine."""
    first, gas = p.rows[0], p.gas
    k = gas.count[0]
    rows = p.rows[1] - first - 3 * k
    size = rows + k
    w, b, x, u = view_square(gas.w, size), gas.b[:size], gas.x[:size], gas.u[:size]
    _take_rows(p, first, rows, w, b, x)
    air = Gas(
        gas.active[:k], gas.pressure[:k], gas.amount[:k], gas.volume[:k], gas.area[:k], gas.air[0],
        gas.air[1], gas.air[2],
    )  # fmt: skip
    press(w, b, p.mu[: rows // 3], x, u, air, gas.start, s)
    for i in range(rows):
        p.r[first + i], p.u[first + i] = x[i], u[i]
    for j in range(k):
        for i in range(3):
            row = first + rows + 3 * j + i
            p.r[row] = gas.pressure[j] - gas.air[0] if i == 0 else 0.0
            p.u[row] = u[rows + j] if i == 0 else 0.0


@kernel
def _take_rows(p, first, rows, w, b, x):
    """The problem without its joints, which are eliminated, and with one row for a cavity's block."""
    whole = view_square(p.w, p.rows[1])
    for i in range(w.shape[0]):
        row = first + (i if i < rows else rows + 3 * (i - rows))
        b[i], x[i] = p.b[row], p.r[row]
        for j in range(rows):
            w[i, j] = whole[row, first + j]
        for j in range(rows, w.shape[0]):
            w[i, j] = whole[row, first + rows + 3 * (j - rows)]


@solver
def pressure_unit(p, s):
    """Block Gauss-Seidel over contacts and cavities, extrapolated."""
    solve_pressures(p, s)
    return DONE
