"""Bilateral rows eliminated before the contacts are solved."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.contact.bilateral import REGULARISATION, eliminate, recover


def random_problem(m: int, n: int, seed: int):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(m + n, m + n))
    w = half @ half.T / (m + n) + 0.5 * np.eye(m + n)
    return w, rng.normal(size=m + n), rng.normal(size=n)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_elimination_is_the_solution_of_the_dense_saddle_problem(blocks, contacts, seed):
    """For any contact force: bilateral offsets vanish, and the condensed rows say what the full ones do."""
    m, n = 3 * blocks, 3 * contacts
    w, b, r_contact = random_problem(m, n, seed)
    full, offset = w.copy(), b.copy()
    factor, r = np.zeros((m, m)), np.concatenate([np.zeros(m), r_contact])
    assert eliminate(w, b, m, m + n, factor) == 0
    recover(w, b, m, m + n, factor, r)
    expected = -np.linalg.solve(full[:m, :m], offset[:m] + full[:m, m:] @ r_contact)
    # the regularisation is felt in proportion to the condition of W_bb, here below 100
    tolerance = 100 * REGULARISATION * (1 + np.abs(expected).max())
    np.testing.assert_allclose(r[:m], expected, rtol=0, atol=tolerance)
    u_full = full @ r + offset
    u_condensed = w[m:, m:] @ r_contact + b[m:]
    np.testing.assert_allclose(u_condensed, u_full[m:], rtol=0, atol=1e-7)
    np.testing.assert_allclose(w[m:, m:], w[m:, m:].T, atol=1e-12)


def test_two_attachments_of_one_point_share_the_force():
    w = np.kron(np.ones((2, 2)), np.eye(3)) * 1e-3
    b = np.tile([1e-3, 0.0, -2e-3], 2)
    factor, r = np.zeros((6, 6)), np.zeros(6)
    assert eliminate(w, b, 6, 6, factor) == 0
    recover(w, b, 6, 6, factor, r)
    # cancellation against the regularisation of 1e-10 leaves half of the sixteen digits
    np.testing.assert_allclose(r, np.tile([-0.5, 0.0, 1.0], 2), atol=1e-5)


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_what_is_not_positive_definite_is_told_by_the_status(bad):
    w = np.diag([1.0, bad, 1.0])
    assert eliminate(w, np.zeros(3), 3, 3, np.zeros((3, 3))) == 1


def test_a_contact_whose_normal_the_attachments_already_hold_bears_nothing():
    """The contact point is the attached point: no force can open or close it."""
    w = np.kron(np.ones((2, 2)), np.eye(3)) * 1e-3
    b = np.array([0.0, 0.0, 0.0, -2e-3, 0.0, 0.0])
    assert eliminate(w, b, 3, 6, np.zeros((3, 3))) == 0
    assert b[3] >= 0.0
