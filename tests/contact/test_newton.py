"""Newton's method on the equations of one contact: its tangent, its pace, and what it falls back on."""

from itertools import pairwise

import numpy as np
import pytest
from numba import njit

from palpo.physics.contact.laws import BIPOTENTIAL, PSEUDOPOTENTIAL, correction_slope, natural_map_residual
from palpo.physics.contact.solvers.newton import _tangent, newton_contact, residual3, solve3

both_formulations = pytest.mark.parametrize("formulation", [BIPOTENTIAL, PSEUDOPOTENTIAL])


@njit
def _map(formulation, w, free, mu, rho_n, rho_t, r):
    work = np.zeros((4, 3))
    residual3(formulation, w, free, mu, rho_n, rho_t, r, work[0], work[1], work[2], work[3])
    return work


@njit
def _jacobian(formulation, w, free, mu, rho_n, rho_t, r):
    work, slope, out = _map(formulation, w, free, mu, rho_n, rho_t, r), np.zeros((3, 3)), np.zeros((3, 3))
    correction_slope(formulation, work[1], mu, slope)
    _tangent(formulation, w, mu, rho_n, rho_t, work[0], slope, out, work[2])
    return out


@njit
def _solve3(a, b):
    out = np.zeros(3)
    return solve3(a, b, out), out


def contacts(count, formulation):
    """Random contacts (w, free, mu, rho_n, rho_t) under their free offset, mu below Klarbring's limit."""
    rng = np.random.default_rng(7)
    while count:
        half = rng.normal(size=(3, 3))
        w, free, mu = half @ half.T + 0.3 * np.eye(3), rng.normal(size=3), rng.uniform(0.05, 1.0)
        free[0] = -abs(free[0]) - 0.05
        if mu * np.hypot(w[0, 1], w[0, 2]) < 0.7 * w[0, 0]:
            count -= 1
            low, high = np.linalg.eigvalsh(w[1:, 1:])
            one = 1.0 / w.diagonal().max()
            yield w, free, mu, *((one, one) if formulation == BIPOTENTIAL else (1 / w[0, 0], low / high**2))


@both_formulations
def test_the_tangent_is_the_derivative_of_the_contact_s_equations(formulation):
    step, checked = 1e-6, 0
    rng = np.random.default_rng(3)
    for w, free, mu, rho_n, rho_t in contacts(100, formulation):
        r = rng.normal(size=3) + np.array([2.0, 0.0, 0.0])
        values = [
            [_map(formulation, w, free, mu, rho_n, rho_t, r + s * d)[3] for s in (-step, 0.0, step)]
            for d in np.eye(3)
        ]
        second = max(np.abs(low - 2 * here + high).max() for low, here, high in values)
        if second > 1e-9:
            continue  # a kink lies between the points of the difference
        central = np.stack([(high - low) / (2 * step) for low, _, high in values], axis=1)
        found = _jacobian(formulation, w, free, mu, rho_n, rho_t, r)
        # the difference's own error: rounding 1e-16 / 1e-6 and the second differences let through above
        np.testing.assert_allclose(found, central, rtol=0, atol=1e-3)
        checked += 1
    assert checked >= 80


@both_formulations
def test_newton_solves_499_of_500_contacts_within_ten_steps(formulation):
    """From r = 0, as printed; the line search needs a few more steps now and then."""
    solved = 0
    for w, free, mu, rho_n, rho_t in contacts(500, formulation):
        r = np.zeros(3)
        newton_contact(formulation, 10, w, free, mu, rho_n, rho_t, r, np.zeros((13, 3)))
        solved += natural_map_residual(w, free, np.array([mu]), r) <= 1e-10
    assert solved >= 499


@both_formulations
def test_the_pace_near_a_solution_is_quadratic(formulation):
    """A sliding contact, coupled: each error is at most the square of the one before, times a constant."""
    w = np.array([[2.0, 0.8, -0.2], [0.8, 1.0, 0.2], [-0.2, 0.2, 1.4]])
    free, mu, rho = np.array([-1.0, 5.0, 2.0]), 0.5, 0.5
    right = np.zeros(3)
    newton_contact(formulation, 50, w, free, mu, rho, rho, right, np.zeros((13, 3)))
    errors = []
    for steps in range(1, 8):
        r = right + np.array([0.02, -0.03, 0.02])
        newton_contact(formulation, steps, w, free, mu, rho, rho, r, np.zeros((13, 3)))
        errors.append(np.linalg.norm(r - right))
    assert errors[0] < 1e-2
    assert all(later <= 10.0 * earlier**2 + 1e-15 for earlier, later in pairwise(errors))
    assert errors[3] <= 1e-14


def test_a_singular_matrix_is_told_and_nothing_is_written():
    good, x = _solve3(
        np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]]), np.array([1.0, 2.0, 3.0])
    )
    assert good
    np.testing.assert_allclose(np.array([[2.0, 1, 0], [1, 3, 1], [0, 1, 4]]) @ x, [1.0, 2.0, 3.0], rtol=1e-14)
    bad, untouched = _solve3(np.ones((3, 3)), np.ones(3))
    assert not bad
    assert not untouched.any()
