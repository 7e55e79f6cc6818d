"""Coulomb's cone and the law of a single contact."""

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from palpo.physics.contact.laws import (
    OPEN,
    SLIP,
    STICK,
    natural_map_residual,
    project_cone,
    scale_to_disc,
    solve_contact,
)

forces = arrays(float, 3, elements=st.floats(-50.0, 50.0, allow_subnormal=False))
coefficients = st.floats(0.0, 3.0)
FEW_ROUNDINGS = 1e-12  # a dozen operations on numbers below 200


@njit
def _project(r, mu):
    out = np.empty(3)
    project_cone(r, mu, out)
    return out


@njit
def _solve(w, b, mu, r):
    return solve_contact(w, b, mu, r)


@njit
def _scale(t1, t2, radius):
    return scale_to_disc(t1, t2, radius)


def solved(w, b, mu, start=(0.0, 0.0, 0.0)):
    r = np.array(start, float)
    return r, _solve(np.array(w, float), np.array(b, float), mu, r)


@given(forces, coefficients)
def test_the_projection_lies_in_the_cone_and_stays_there(r, mu):
    p = _project(r, mu)
    assert p[0] >= 0.0
    assert np.hypot(p[1], p[2]) <= mu * p[0] + FEW_ROUNDINGS * 200.0
    assert np.abs(_project(p, mu) - p).max() <= FEW_ROUNDINGS * 200.0


@given(forces, forces, coefficients)
def test_the_projection_never_moves_two_forces_apart(a, b, mu):
    moved = np.linalg.norm(_project(a, mu) - _project(b, mu))
    assert moved <= np.linalg.norm(a - b) * (1.0 + 1e-9) + FEW_ROUNDINGS * 200.0


@given(forces, forces, coefficients)
def test_what_the_projection_removes_is_orthogonal_to_it_and_in_the_polar_cone(r, other, mu):
    """Moreau: r = p + n with p in K, n in the polar cone of K and p orthogonal to n."""
    p = _project(r, mu)
    n = r - p
    assert abs(p @ n) <= FEW_ROUNDINGS * 200.0**2
    assert n @ _project(other, mu) <= FEW_ROUNDINGS * 200.0**2


@given(*[st.floats(-9.0, 9.0).map(lambda t: round(t, 9))] * 2, st.floats(0.0, 9.0))
def test_the_disc_shortens_a_tangential_force_to_its_radius_and_no_further(t1, t2, radius):
    scale = _scale(t1, t2, radius)
    length = np.hypot(t1, t2)
    assert 0.0 <= scale <= 1.0
    assert abs(scale * length - min(length, radius)) <= 1e-14 * max(length, radius)
    assert scale == 1.0 or length > radius


def test_an_open_contact_bears_nothing():
    r, status = solved(np.eye(3), [1e-6, -0.1, 0.2], 0.5, start=(3.0, 1.0, 0.0))
    assert status == OPEN
    assert not r.any()


def test_a_sticking_contact_is_the_linear_solution():
    w = np.array([[2.0, 0.3, -0.1], [0.3, 1.0, 0.2], [-0.1, 0.2, 1.5]]) * 1e-3
    b = np.array([-1e-3, 1e-4, -5e-5])
    r, status = solved(w, b, 0.9)
    assert status == STICK
    np.testing.assert_allclose(r, -np.linalg.solve(w, b), rtol=1e-12)


def test_a_sliding_contact_without_coupling_bears_mu_times_its_normal_force_against_the_slip():
    w, mu = np.diag([2e-3, 1e-3, 1e-3]), 0.4
    b = np.array([-1e-3, 3e-3, -4e-3])
    r, status = solved(w, b, mu)
    normal = 1e-3 / 2e-3
    assert status == SLIP
    # slip along (0.6, -0.8): isotropic tangential compliance keeps the direction of the free offset
    np.testing.assert_allclose(r, normal * np.array([1.0, -0.6 * mu, 0.8 * mu]), rtol=1e-9)


def test_tangential_coupling_changes_the_normal_force_of_a_sliding_contact_as_worked_by_hand():
    """0 = w_nn r_n + w_nt r_t + b_n and, slipping along +t1, r_t = -mu r_n: r_n = -b_n / (w_nn - mu w_nt)."""
    w_nn, w_nt, mu, b_n = 2e-3, 8e-4, 0.5, -1e-3
    w = np.array([[w_nn, w_nt, 0.0], [w_nt, 1e-3, 0.0], [0.0, 0.0, 1e-3]])
    r, status = solved(w, [b_n, 5e-3, 0.0], mu)
    r_n = -b_n / (w_nn - mu * w_nt)
    assert status == SLIP
    np.testing.assert_allclose(r, [r_n, -mu * r_n, 0.0], rtol=1e-11, atol=1e-12)


def test_without_friction_only_the_normal_force_remains():
    w = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.0], [0.1, 0.0, 1.0]]) * 1e-3
    r, _ = solved(w, [-1e-3, 2e-3, 0.0], 0.0, start=(0.0, 7.0, -7.0))
    np.testing.assert_allclose(r, [0.5, 0.0, 0.0], rtol=1e-12)


@settings(max_examples=200, deadline=None)
@given(
    arrays(float, (3, 3), elements=st.floats(-1.0, 1.0)),
    arrays(float, 3, elements=st.floats(-1.0, 1.0)),
    st.floats(0.0, 1.0),
)
def test_every_answer_annihilates_the_natural_map(half, b, mu):
    w = half @ half.T + 0.3 * np.eye(3)
    assume(b[0] < -1e-3)
    # beyond mu |W_nt| / W_nn = 1 the normal law loses its unique answer (Klarbring's limit)
    assume(mu * np.hypot(w[0, 1], w[0, 2]) < 0.7 * w[0, 0])
    r, status = solved(w, b, mu)
    assert natural_map_residual(w, b, np.array([mu]), r) < 1e-10
    assert status in (STICK, SLIP)
