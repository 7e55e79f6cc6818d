"""The engine's solver of steps that have cavities (palpo.physics.engine.pressing)."""

from palpo.physics.contract.stages import DONE
from palpo.physics.engine.pressing import TURNS, press
from palpo.physics.engine.solve import solver
from palpo.physics.exchange.atomics import view_square
from palpo.physics.gas.pressure import Gas
from palpo.physics.numerics.kernels import kernel


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
        gas.active[:k], gas.pressure[:k], gas.amount[:k], gas.volume[:k], gas.area[:k],
        view_square(gas.seeping, k + 1), gas.air[0], gas.air[1], gas.air[2],
    )  # fmt: skip
    press(w, b, p.mu[: rows // 3], x, u, air, gas.start, s, TURNS, True, None)
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
    """Block Gauss-Seidel over contacts and cavities, extrapolated, and Newton's method between."""
    solve_pressures(p, s)
    return DONE
