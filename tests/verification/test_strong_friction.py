"""Sweeps that swing about with strong friction give back no forces out of all proportion."""

import numpy as np

from palpo.physics.contact.laws import natural_map_norm
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.pressure import advance, begin, finish, make_gas, make_workspace

AIR = OutsideAir(largest=102e3)
ATMOSPHERE = AIR.atmosphere


def problem(seed):
    """Contacts that hang together tightly, all on one soft body, mu = 10, and a cavity that touches none."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 12))
    a = rng.standard_normal((3 * n, 3 * n // int(rng.integers(1, 4)) + 1))
    w = np.pad(1e-3 * a @ a.T, ((0, 1), (0, 1)))
    w[-1, -1] = 1e-12
    b = np.append(1e-4 * rng.standard_normal(3 * n), 3e-6)
    warm = np.zeros(3 * n)
    warm[::3] = 0.02 * rng.random(n)
    return w, b, np.full(n, 10.0), warm


def residual(w, b, mu, r):
    """Of the natural map, in newtons and relative to r."""
    rows = len(r)
    error, size = natural_map_norm(w, mu, r, w[:rows, :rows] @ r + b[:rows], 0, len(mu), np.zeros((2, 3)))
    return error, error / size if size > 0.0 else float(error > 0.0)


def test_what_unfinished_sweeps_leave_is_no_worse_in_newtons_than_the_start_is_to_what_is_asked():
    """The start's relative residual, times the forces that the problem asks for, bounds the result's."""
    swung = 0
    for seed in range(60):
        w, b, mu, warm = problem(seed)
        rows = len(warm)
        x, u = np.append(warm, 0.0), np.zeros(rows + 1)
        _, relative = residual(w, b, mu, warm)
        gas = make_gas(
            AIR, np.array([AIR.amount(ATMOSPHERE, 3e-6)]), np.array([ATMOSPHERE]), np.zeros(1, bool)
        )
        a = make_workspace(len(mu), 1)
        scaled, offset = w.copy(), b.copy()
        bound = begin(scaled, offset, mu, x, u, gas, True, a)
        code = advance(scaled, offset, mu, x, u, gas, 1e-6, bound, 200, a)
        asked = np.linalg.norm(b[:rows]) * rows / np.trace(w[:rows, :rows]) + np.linalg.norm(warm)
        swung += np.linalg.norm(x[:rows]) > 10.0 * asked
        finish(scaled, offset, mu, x, u, gas, a)
        newtons, own = residual(w, b, mu, x[:rows])
        if code != 1 or own > 1e-6:
            # the piston of a cavity at rest asks for a pascal on some square millimetres
            assert newtons <= relative * asked * 1.01, seed
    # the sweeps do stray: without that nothing was tried
    assert swung > 5
