"""Penalties, stick first and slip first: how far they are from the laws, and where they are exact."""

import numpy as np
import pytest

from palpo.physics.contact.laws import SLIP, STICK
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.reference import penalty
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.contact.solvers.relaxation import stiffnesses
from tests.contact.stored import in_cones, offsets, stored


@pytest.mark.parametrize("name", ["easy.npz", "delassus_36.npz", "two_sided_squeeze.npz"])
def test_implicit_springs_come_to_the_laws_as_the_inverse_of_their_stiffness(name):
    problem = stored(name)
    right = find_solver("gauss-seidel").solve(problem, Stop(1e-11, 20000)).r
    errors = [
        np.linalg.norm(penalty.implicit(problem, Stop(1e-10, 20000), stiffness=s).r - right)
        for s in (1e3, 1e4, 1e5)
    ]
    # first order, where no contact is at the limit of two statuses; 20 % for the second
    assert errors[0] / errors[1] == pytest.approx(10.0, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(10.0, rel=0.2)


def test_implicit_springs_bear_the_force_of_their_own_compression():
    """r = Proj(-rho x) (2.19, 2.20), at every contact, with x the offset under the force."""
    problem = stored("easy.npz")
    r = penalty.implicit(problem, Stop(1e-12), stiffness=50.0).r.reshape(-1, 3)
    rho, x = stiffnesses(problem, "rho_alpha", 50.0), offsets(problem, r.reshape(-1))
    size = np.abs(r).max()
    np.testing.assert_allclose(r[:, 0], np.maximum(0.0, -rho[:, 0] * x[:, 0]), rtol=0, atol=1e-8 * size)
    spring = -rho[:, 1:] * x[:, 1:]
    length = np.hypot(*spring.T)
    scale = np.minimum(1.0, problem.mu * r[:, 0] / np.maximum(length, 1e-300))
    np.testing.assert_allclose(r[:, 1:], scale[:, None] * spring, rtol=0, atol=1e-8 * size)


def test_explicit_springs_bear_the_force_of_the_free_offset():
    w, b = np.diag([2e-3, 1e-3, 1e-3]), np.array([-1e-3, 3e-3, -4e-3])
    problem = ContactProblem(w, b, np.array([0.4]))
    result = penalty.explicit(problem, Stop(), stiffness=0.5)
    # rho_n = 250 N/m, rho_t = 500 N/m: 0.25 N, and friction cut to mu r_n against the offset
    np.testing.assert_allclose(result.r, 0.25 * np.array([1.0, -0.6 * 0.4, 0.8 * 0.4]), rtol=1e-12)
    assert result.iterations == 1
    assert not result.converged


def test_stick_first_is_exact_where_every_contact_sticks():
    problem = stored("two_sided_squeeze.npz")
    right = find_solver("gauss-seidel").solve(problem, Stop(1e-10))
    assert (right.status == STICK).all()
    result = find_solver("stick-first").solve(problem, Stop(1e-10))
    assert result.converged
    np.testing.assert_allclose(result.r, right.r, rtol=0, atol=1e-7 * np.abs(right.r).max())


def test_stick_first_is_wrong_where_contacts_slide():
    problem = stored("delassus_36.npz")
    result = find_solver("stick-first").solve(problem, Stop(1e-8))
    assert result.reason == "stalled"
    assert result.residual > 1e-2
    assert in_cones(problem, result.r)


def test_slip_first_is_exact_where_every_contact_slides_along_its_free_offset():
    """Isotropic and uncoupled compliances: the slip keeps the direction of the offset."""
    w = np.kron(np.array([[2.0, 0.5], [0.5, 2.0]]), np.diag([1.0, 0.0, 0.0])) + np.kron(
        np.eye(2), np.diag([0.0, 1, 1])
    )
    problem = ContactProblem(w * 1e-3, np.array([-1.0, 3.0, -4.0, -2.0, -5.0, 0.0]) * 1e-3, np.full(2, 0.5))
    result = find_solver("slip-first").solve(problem, Stop(1e-10))
    assert result.converged
    assert list(result.status) == [SLIP, SLIP]


def test_slip_first_never_sticks():
    """A contact that would stick is given friction on its cone all the same, one way or the other."""
    problem = ContactProblem(np.diag([1e-3] * 3), np.array([-1e-3, 1e-4, 0.0]), np.array([0.5]))
    result = find_solver("slip-first").solve(problem, Stop(1e-8))
    assert not result.converged
    assert np.hypot(*result.r[1:]) == pytest.approx(0.5 * result.r[0])
