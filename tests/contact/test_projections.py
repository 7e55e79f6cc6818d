"""The corrections of the augmented force: nearest points in their metric, and their slopes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from palpo.physics.contact.laws import (
    BIPOTENTIAL,
    BIPOTENTIAL_PRINTED,
    OPEN,
    PSEUDOPOTENTIAL,
    PSEUDOPOTENTIAL_PRINTED,
    SLIP,
    STICK,
    augment,
    contact_status,
    correct,
    correction_slope,
)

forces = arrays(float, 3, elements=st.floats(-50.0, 50.0, allow_subnormal=False))
coefficients = st.floats(0.0, 3.0)
stiffness = st.floats(0.1, 10.0)
ROUNDING = 1e-12  # of a dozen operations, relative to their largest number


@njit
def _correct(formulation, star, mu, rho_n, rho_t):
    out = np.empty(3)
    correct(formulation, star, mu, rho_n, rho_t, out)
    return out


@njit
def _augment(formulation, r, x, mu, rho_n, rho_t):
    out = np.empty(3)
    augment(formulation, r, x, mu, rho_n, rho_t, out)
    return out


@njit
def _slope(formulation, star, mu):
    out = np.empty((3, 3))
    correction_slope(formulation, star, mu, out)
    return out


@njit
def _status(r_n, star, mu):
    return contact_status(r_n, star, mu)


def metric(rho_n, rho_t):
    return 1.0 / np.array([rho_n, rho_t, rho_t])


@pytest.mark.parametrize("formulation", [BIPOTENTIAL, PSEUDOPOTENTIAL])
@given(star=forces, mu=coefficients, rho_n=stiffness, rho_t=stiffness)
def test_a_corrected_force_lies_in_the_cone_and_stays_there(formulation, star, mu, rho_n, rho_t):
    p = _correct(formulation, star, mu, rho_n, rho_t)
    # one step over the edge and the stretch of at most 10 amplify the roundings of numbers below 200
    assert p[0] >= 0.0
    assert np.hypot(p[1], p[2]) <= mu * p[0] + ROUNDING * 2000.0
    assert np.abs(_correct(formulation, p, mu, rho_n, rho_t) - p).max() <= ROUNDING * 2000.0


@given(forces, forces, coefficients, stiffness, stiffness)
def test_the_metric_correction_never_moves_two_forces_apart_in_its_metric(a, b, mu, rho_n, rho_t):
    m = metric(rho_n, rho_t)
    moved = _correct(BIPOTENTIAL, a, mu, rho_n, rho_t) - _correct(BIPOTENTIAL, b, mu, rho_n, rho_t)
    assert moved @ (m * moved) <= (a - b) @ (m * (a - b)) * (1 + 1e-9) + ROUNDING * 1e5


@given(forces, forces, coefficients, stiffness, stiffness)
def test_moreau_s_decomposition_holds_in_the_metric_of_rho(star, other, mu, rho_n, rho_t):
    """star = p + q: p in K, q orthogonal to it and in K's polar cone, in the inner product 1 / rho."""
    m = metric(rho_n, rho_t)
    p = _correct(BIPOTENTIAL, star, mu, rho_n, rho_t)
    q = star - p
    assert abs(p @ (m * q)) <= ROUNDING * 1e6
    assert q @ (m * _correct(BIPOTENTIAL, other, mu, rho_n, rho_t)) <= ROUNDING * 1e6


@given(forces, coefficients, stiffness)
def test_with_one_rho_the_metric_correction_is_the_printed_one(star, mu, rho):
    right, printed = (
        _correct(BIPOTENTIAL, star, mu, rho, rho),
        _correct(BIPOTENTIAL_PRINTED, star, mu, rho, rho),
    )
    np.testing.assert_allclose(right, printed, rtol=0, atol=ROUNDING * 200.0)


@pytest.mark.parametrize("formulation", [BIPOTENTIAL, PSEUDOPOTENTIAL])
@pytest.mark.parametrize("state", [OPEN, STICK, SLIP])
@given(
    angle=st.floats(0.0, 6.28),
    mu=st.floats(0.05, 2.0),
    rho_n=stiffness,
    rho_t=stiffness,
    size=st.floats(0.1, 9.0),
)
def test_coulomb_s_three_states_are_the_fixed_points(formulation, state, angle, mu, rho_n, rho_t, size):
    """r = Proj(r - rho (x + mu |x_t| n)) at an open, a sticking and a sliding contact, whatever rho."""
    e = np.array([0.0, np.cos(angle), np.sin(angle)])
    n = np.array([1.0, 0.0, 0.0])
    r, x = {
        OPEN: (0.0 * n, size * n + 3.0 * e),
        STICK: (size * n + 0.7 * mu * size * e, 0.0 * n),
        SLIP: (size * n + mu * size * e, -2.0 * e),
    }[state]
    star = _augment(formulation, r, x, mu, rho_n, rho_t)
    np.testing.assert_allclose(
        _correct(formulation, star, mu, rho_n, rho_t), r, rtol=0, atol=1e-11 * (size + 60.0)
    )
    assert _status(r[0], _augment(BIPOTENTIAL, r, x, mu, rho_n, rho_n), mu) == state


@given(st.floats(0.05, 2.0), stiffness, stiffness)
def test_the_printed_correction_with_two_rhos_holds_a_sliding_contact_at_a_penetration(mu, rho_n, rho_t):
    """Fixed at x_n = mu |x_t| (rho_t / rho_n - 1) instead of 0."""
    x_t = 2.0
    r, x = np.array([1.0, -mu, 0.0]), np.array([mu * x_t * (rho_t / rho_n - 1.0), x_t, 0.0])
    star = _augment(BIPOTENTIAL_PRINTED, r, x, mu, rho_n, rho_t)
    np.testing.assert_allclose(_correct(BIPOTENTIAL_PRINTED, star, mu, rho_n, rho_t), r, atol=1e-11)


@given(forces, coefficients)
def test_the_printed_sign_turns_the_friction_of_a_sliding_contact_around(star, mu):
    excess = np.hypot(star[1], star[2]) - mu * max(star[0], 0.0)
    assume(abs(excess) > 1e-6)
    right, printed = (_correct(f, star, mu, 1.0, 1.0) for f in (PSEUDOPOTENTIAL, PSEUDOPOTENTIAL_PRINTED))
    np.testing.assert_array_equal(printed, right * [1.0, -1.0, -1.0] if excess > 0.0 else right)


@pytest.mark.parametrize("formulation", [BIPOTENTIAL, PSEUDOPOTENTIAL])
@given(star=forces, mu=st.floats(0.05, 2.0))
def test_the_slope_is_the_derivative_of_the_correction(formulation, star, mu):
    rt, step = np.hypot(star[1], star[2]), 1e-5
    # away from the edges of the three branches, and from the axis, by more than the difference's step
    kinks = (
        (rt - mu * star[0], star[0])
        if formulation == PSEUDOPOTENTIAL
        else (rt - mu * star[0], mu * rt + star[0])
    )
    assume(min(abs(k) for k in kinks) > 1e-3 and rt > 0.1)
    central = np.stack(
        [
            (_correct(formulation, star + d, mu, 1.0, 1.0) - _correct(formulation, star - d, mu, 1.0, 1.0))
            / (2 * step)
            for d in step * np.eye(3)
        ],
        axis=1,
    )
    # central differences: step^2 times the third derivative, at most mu |star| / rt^3
    np.testing.assert_allclose(_slope(formulation, star, mu), central, rtol=0, atol=1e-4)
