"""Contacts and friction of walls that shut in air, by Newton's method, the air eliminated as a border.

Sweeps (palpo.physics.gas.pressure) are slow where contacts lie side by side on a thin rim: of the cup of
`mixed-cup`, pulled at, some 400 are needed. With the gas law of each cavity linearised at its present
pressure, in piston coordinates as there,

    u_p = W_pc r + W_pp x_p + b_p,    du_p / dx_p = -kappa,    kappa = (n R T / p^2 + sum s) / A^2

its row falls out of the contacts' problem, which changes by rank one a cavity:

    W' = W_cc - W_cp (W_pp + K)^-1 W_pc,    K = diag(kappa)

The linearisation errs by the square of a tick's change of pressure, a hundred-thousandth, and the sweeps that
follow solve the law itself. A pressure that is given, or at its largest, does not answer.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.solvers.semi_smooth_newton import (
    SemiSmooth,
    advance_freely,
    begin,
    make_semi_smooth,
)
from palpo.physics.exchange.atomics import view_square
from palpo.physics.gas.pressure import passing
from palpo.physics.numerics.kernels import kernel


class Bordered(NamedTuple):
    """Room for n contacts and k cavities."""

    way: SemiSmooth
    w: NDArray[np.float64]  # (9 n^2,) W' of the contacts in one piece [m/N]
    b: NDArray[np.float64]  # (3 n,) [m]
    best: NDArray[np.float64]  # (3 n,) [N]
    border: NDArray[np.float64]  # (k, 3 n) rows of L^-1 W_pc, where W_pp + K = L D L^T
    factor: NDArray[np.float64]  # (k, k) L below the diagonal, D on it


def make_bordered(n_contacts: int, n_cavities: int) -> Bordered:
    """Room for a solve of up to that many."""
    n = 3 * n_contacts
    return Bordered(
        make_semi_smooth(n_contacts), np.zeros(n * n), np.zeros(n), np.zeros(n), np.zeros((n_cavities, n)),
        np.zeros((n_cavities, n_cavities)),
    )  # fmt: skip


@kernel
def solve_bordered(w, mu, x, u, gas, tolerance, bound, steps, a):
    """x[:3 n] becomes the best contact force of up to `steps` steps; returns the code of `advance_freely`.

    Between `begin` and `finish` of palpo.physics.gas.pressure: u = W x + b, and the pressures solve their
    laws. bound: |r| that is too much [N].
    """
    rows = 3 * mu.shape[0]
    own, b, way = view_square(a.w, rows), a.b[:rows], a.way
    for i in range(rows):
        for j in range(rows):
            own[i, j] = w[i, j]
    _eliminate(w, x, gas, own, a)
    force = x[:rows]
    for i in range(rows):
        b[i] = u[i]
        for j in range(rows):
            b[i] -= own[i, j] * force[j]
    newton = SemiSmooth(
        way.matrix, way.words, way.step, way.bearing, way.status, way.right[:rows], way.change[:rows],
        way.r[:rows], way.u[:rows], way.trial[:rows], way.ahead[:rows], way.state, way.scratch,
    )  # fmt: skip
    begin(own, b, mu, force, newton)
    code = advance_freely(own, b, mu, tolerance, bound, steps, a.best[:rows], newton)
    for i in range(rows):
        force[i] = a.best[i]
    return code


@kernel
def _eliminate(w, x, gas, own, a):
    """own (3 n, 3 n) -= W_cp (W_pp + K)^-1 W_pc over the cavities whose pressure answers."""
    rows, k = own.shape[0], gas.area.shape[0]
    for j in range(k):
        if gas.active[j] or not 0.0 < gas.pressure[j] < gas.largest:
            a.factor[j, j] = 0.0
            continue
        i, p = rows + j, gas.pressure[j]
        through, come = passing(gas, j)
        pivot = w[i, i] + ((gas.amount[j] * gas.rt + come) / (p * p) + through) / gas.area[j] ** 2
        edge = a.border[j]
        for c in range(rows):
            edge[c] = w[i, c]
        for m in range(j):
            if a.factor[m, m] <= 0.0:
                continue
            left = w[i, rows + m]
            for q in range(m):
                if a.factor[q, q] > 0.0:
                    left -= a.factor[j, q] * a.factor[q, q] * a.factor[m, q]
            a.factor[j, m] = left / a.factor[m, m]
            pivot -= a.factor[j, m] ** 2 * a.factor[m, m]
            for c in range(rows):
                edge[c] -= a.factor[j, m] * a.border[m, c]
        a.factor[j, j] = pivot
        if pivot <= 0.0:
            continue
        for c in range(rows):
            share, row = edge[c] / pivot, own[c]
            for d in range(rows):
                row[d] -= share * edge[d]
