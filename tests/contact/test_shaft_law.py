"""The law of a shaft in its channel, alone and among contacts with friction."""

import numpy as np
import pytest

from palpo.physics.contact.laws import SLIP, STICK, natural_map_norm
from palpo.physics.contact.shaft_law import shaft_map_norm, solve_shaft
from palpo.physics.contact.solvers.gauss_seidel import sweep_contacts
from palpo.physics.numerics.kernels import kernel


@kernel
def solved(w, b, least, most, r):
    return solve_shaft(w, b, least, most, r)


def compliance(rng, rows):
    """A random positive definite W [m/N]."""
    a = rng.normal(size=(rows, rows))
    return np.ascontiguousarray(a @ a.T + 0.1 * np.eye(rows))


@pytest.mark.parametrize("seed", range(20))
def test_nothing_moves_across_and_along_only_what_the_limit_lets(seed):
    rng = np.random.default_rng(seed)
    w, b, r = compliance(rng, 3), rng.normal(size=3), np.zeros(3)
    least, most = np.sort(rng.normal(size=2))
    status = solved(w, b, least, most, r)
    u = w @ r + b
    assert np.abs(u[1:]).max() < 1e-12 * np.abs(b).max() * np.linalg.cond(w)
    if status == STICK:
        assert least <= r[0] <= most
        assert abs(u[0]) < 1e-12 * np.abs(b).max() * np.linalg.cond(w)
    else:
        assert status == SLIP
        assert r[0] in (least, most)
        assert u[0] > 0.0 if r[0] == least else u[0] < 0.0


@pytest.mark.parametrize("seed", range(5))
def test_contacts_and_shafts_are_solved_together(seed):
    rng = np.random.default_rng(seed)
    contacts, shafts = 4, 6
    n = 3 * (contacts + shafts)
    w, b = compliance(rng, n), rng.normal(size=n)
    w += 5.0 * np.eye(n)
    mu, limits = rng.uniform(0.1, 0.8, contacts), np.sort(rng.normal(size=(shafts, 2)), axis=1)
    r, u, status = np.zeros(n), np.zeros(n), np.zeros(contacts + shafts, np.int32)
    sweeps = sweep_contacts(w, b, mu, limits, r, u, status, 0, 1e-13, 5000, np.zeros((2, 3)))
    assert sweeps < 5000
    u = w @ r + b
    error, size = natural_map_norm(w, mu, r, u, 0, contacts, np.zeros((2, 3)))
    assert error <= 1e-10 * size
    error, size = shaft_map_norm(w, limits, r, u, 3 * contacts, shafts)
    assert error <= 1e-10 * size


def test_the_map_tells_a_force_that_is_wrong():
    w, b, limits = np.eye(3), np.array([-1.0, 0.5, 0.0]), np.array([[-0.3, 0.3]])
    r = np.array([0.3, -0.5, 0.0])
    assert shaft_map_norm(w, limits, r, w @ r + b, 0, 1)[0] < 1e-15
    for i in range(3):
        wrong = r.copy()
        wrong[i] -= 0.1
        assert shaft_map_norm(w, limits, wrong, w @ wrong + b, 0, 1)[0] > 0.05
