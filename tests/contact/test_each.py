"""Each contact judged by its own force: a light one is not hidden by heavy ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from palpo.benchmarks.contact_problems import pressed_block
from palpo.physics.contact.errors import own_errors, quoted_errors
from palpo.physics.contact.laws import relative_residual
from palpo.physics.contact.problem import ContactProblem, SparseProblem, Stop
from palpo.physics.contact.solvers.registry import find_solver

LIGHT = 1e-9
"""Offset, and so force, of the light contact over that of the heavy ones."""


def heavy_and_light():
    """Four contacts of the same compliance, of which the last bears hardly anything; and its solution."""
    w, b, mu = np.eye(12), np.zeros(12), np.full(4, 0.5)
    b[0::3] = [-1.0, -2.0, -1.5, -LIGHT]
    r = np.zeros(12)
    r[0::3] = -b[0::3]
    return ContactProblem(w, b, mu), r


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_light_contact_that_is_a_third_off_is_said_although_the_residual_is_small(kind):
    problem, r = heavy_and_light()
    if kind == "sparse":
        problem = SparseProblem(sp.csr_array(problem.w), problem.b, problem.mu)
    assert not own_errors(problem, r).any()
    r[9] *= 0.7
    assert relative_residual(problem, r) < 1e-8
    errors = quoted_errors(problem, r)
    assert errors.worst_contact == 3
    # r_k - P_K(r_k - rho v_k) is what is missing; the contact sees -LIGHT from the others
    np.testing.assert_allclose(errors.worst, 0.3, rtol=1e-6)


def test_the_error_of_a_contact_is_that_of_its_own_scale():
    """Units of one contact (W_kk, its offset) say nothing of how far it is off."""
    problem, r = heavy_and_light()
    r[9] *= 0.9
    scale = np.repeat([1.0, 1e3, 1.0, 1e-4], 3)
    other = ContactProblem(problem.w * scale**-2, problem.b, problem.mu)
    np.testing.assert_allclose(own_errors(other, r * scale**2), own_errors(problem, r), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["portfolio", "gauss-seidel", "admm"])
def test_each_goes_on_until_every_contact_is_within_the_tolerance(name):
    whole = pressed_block(5, 0.4)
    n = whole.n_contacts
    w = np.zeros((3 * n + 3, 3 * n + 3))
    w[:-3, :-3] = whole.w
    soft = whole.w.diagonal().mean()
    w[-3:, -3:] = soft * np.eye(3)
    b = np.r_[whole.b, -1e-11 * abs(whole.b).max(), 0.0, 0.0]
    problem = ContactProblem(w, b, np.r_[whole.mu, 0.4])
    held = find_solver(name).solve(problem, Stop(1e-6, 20_000, each=True))
    assert held.converged and held.reason == "converged"
    assert own_errors(problem, held.r).max() <= 1e-6
    np.testing.assert_allclose(held.r[-3], -b[-3] / soft, rtol=1e-5)


def test_each_ends_as_any_solve_where_its_iterations_do():
    problem = pressed_block(5, 0.4)
    cut = find_solver("gauss-seidel").solve(problem, Stop(1e-12, 7, each=True))
    assert (cut.iterations, cut.converged, cut.reason) == (7, False, "iterations")
