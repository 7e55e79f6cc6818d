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
def solve_pressures(p, s):
    """Sweeps over the rows of contacts and cavities."""
    first, a, told, gas = p.rows[0], s.acceleration, s.told[0], p.gas
    k = gas.count[0]
    rows = p.rows[1] - first - 3 * k
    size = rows + k
    w, b, x, u = view_square(gas.w, size), gas.b[:size], gas.x[:size], gas.u[:size]
    _take_rows(p, first, rows, w, b, x)
    for j in range(k):
        gas.start[0, j], gas.start[1, j] = gas.pressure[j], gas.amount[j]
    mu = p.mu[: rows // 3]
    air = Gas(
        gas.active[:k], gas.pressure[:k], gas.amount[:k], gas.volume[:k], gas.area[:k], gas.air[0],
        gas.air[1], gas.air[2],
    )  # fmt: skip
    before, code = told.sweeps, CONTINUE
    bound = begin(w, b, mu, x, u, air, True, a)
    while code == CONTINUE:
        sweeps = lent(s, before + a.count[SWEEPS], CHUNK)
        if sweeps == 0:
            break
        code = advance(w, b, mu, x, u, air, told.tolerance, bound, sweeps, a)
    finish(w, b, mu, x, u, air, a)
    told.sweeps += a.count[SWEEPS]
    told.residual = a.least[RESIDUAL]
    if code == DIVERGED:
        told.flags |= SOLVE_DIVERGED
        told.divergences += 1
        for j in range(k):
            gas.pressure[j], gas.amount[j] = gas.start[0, j], gas.start[1, j]
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
