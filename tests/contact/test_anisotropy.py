"""Friction that depends on the direction: on the ellipse, along its normal, at the most dissipation."""

import numpy as np
import pytest
import scipy.sparse as sp

from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.contact.solving import solve
from palpo.physics.numerics.errors import InputError

pytestmark = pytest.mark.portable


def drawn(seed, n=6):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3 * n + 6))
    b = 3.0 * rng.normal(size=3 * n)
    b[::3] -= 2.0
    return half @ half.T, b, rng.uniform(0.05, 0.5, (n, 2))


@pytest.mark.parametrize("seed", range(4))
def test_what_slides_does_so_on_the_ellipse_and_dissipates_the_most_that_it_can(seed):
    w, b, mu = drawn(seed)
    result = solve((w, b, mu), tolerance=1e-11)
    assert result.converged
    r, u = result.r.reshape(-1, 3), (w @ result.r + b).reshape(-1, 3)
    angles = np.linspace(0.0, 2.0 * np.pi, 721)
    slid = 0
    for k in range(len(mu)):
        if r[k, 0] <= 0.0:
            continue
        size = np.hypot(*(r[k, 1:] / mu[k]))
        assert size <= r[k, 0] * (1.0 + 1e-9)
        if np.hypot(*u[k, 1:]) > 1e-6:
            slid += 1
            assert size == pytest.approx(r[k, 0], rel=1e-9)
            ellipse = r[k, 0] * mu[k] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
            powers = -(ellipse @ u[k, 1:])
            # 721 points leave half a step of angle, at most 1e-5 of the power
            assert -(r[k, 1:] @ u[k, 1:]) >= powers.max() * (1.0 - 1e-9)
            assert -(r[k, 1:] @ u[k, 1:]) <= powers.max() * (1.0 + 2e-5)
    assert slid > 0


def test_equal_coefficients_are_plain_friction_bit_for_bit():
    w, b, mu = drawn(1)
    plain = mu[:, 0]
    both = solve((w, b, np.stack([plain, plain], axis=1)))
    np.testing.assert_array_equal(both.r, solve((w, b, plain)).r)


def test_a_tangent_without_friction_bears_nothing_and_sparse_matrices_are_the_same_problem():
    w, b, mu = drawn(2)
    mu[:, 1] = 0.0
    result = solve((w, b, mu), tolerance=1e-10)
    assert result.converged
    np.testing.assert_array_equal(result.r[2::3], 0.0)
    sparse = solve((sp.csr_array(w), b, mu), tolerance=1e-10, max_iterations=50_000)
    assert sparse.converged
    close = 1e-9 * np.linalg.cond(w) * np.abs(result.r).max()
    np.testing.assert_allclose(sparse.r, result.r, atol=close)
    again = solve((w, b, mu), tolerance=1e-9, guess=result.r)
    assert again.iterations == 0


def test_the_scaled_problem_is_judged_as_any_other():
    w, b, mu = drawn(3)
    s = np.ones((len(mu), 3))
    s[:, 1:] = mu / mu.max(axis=1, keepdims=True)
    s = s.ravel()
    result = solve((w, b, mu), tolerance=1e-10)
    held = ContactProblem(w * s * s[:, None], b * s, mu.max(axis=1))
    assert natural_map_residual(held.w, held.b, held.mu, result.r / s) <= 1.01e-10


@pytest.mark.parametrize("wrong", [np.full((6, 3), 0.3), np.full((6, 2), -0.1), np.full((6, 2), np.nan)])
def test_pairs_that_are_none_are_refused_in_a_sentence(wrong):
    w, b, _ = drawn(0)
    with pytest.raises(InputError) as caught:
        solve((w, b, wrong))
    assert "\n" not in str(caught.value)
