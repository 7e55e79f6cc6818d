"""The sparse interior point is the dense one's problem; the convex relaxation is what its law says."""

import numpy as np
import pytest
import scipy.sparse as sp

from palpo.benchmarks.contact_problems import brick_wall
from palpo.physics.contact.problem import ContactProblem, SparseProblem, Stop
from palpo.physics.contact.reference import cadoux
from palpo.physics.contact.reference.cadoux import convex_residual, solve_convex
from palpo.physics.contact.solvers import gauss_seidel, interior_point, portfolio
from tests.contact.stored import NAMED, in_cones, stored

pytestmark = pytest.mark.portable


def kept_sparse(problem):
    return SparseProblem(sp.csr_array(problem.w), problem.b, problem.mu)


@pytest.mark.parametrize("name", NAMED)
def test_every_stored_problem_is_solved_with_w_kept_sparse(name):
    held = stored(name)
    result = interior_point.solve(kept_sparse(held), Stop(1e-8, 200))
    assert result.converged
    assert in_cones(held, result.r)


def test_a_wall_of_bricks_is_solved_sparse_by_the_portfolio_and_by_the_interior_point():
    """Rigid bricks hang together through their neighbours alone: most of W is zero."""
    wall = brick_wall(5, 12, 0.3)
    kept = kept_sparse(wall)
    assert kept.w.nnz < 0.1 * wall.w.size
    assert not gauss_seidel.solve(kept, Stop(1e-8, 600)).converged
    for solve in (portfolio.solve, interior_point.solve):
        result = solve(kept, Stop(1e-8, 600))
        assert result.converged
        assert in_cones(wall, result.r)


@pytest.mark.parametrize("name", ["easy.npz", "wedge_paper.npz", "high_friction.npz"])
def test_the_fixed_point_of_the_convex_problems_is_coulombs_law(name):
    """s = mu |u_t| of a solution: the convex problem held there has it as its solution, and is found so."""
    held = stored(name)
    result = cadoux.fixed_point(held, Stop(1e-8, 100))
    assert result.converged
    u = (held.w @ result.r + held.b).reshape(-1, 3)
    shift = held.mu * np.hypot(u[:, 1], u[:, 2])
    assert convex_residual(held, shift, result.r) <= 2e-8


def test_a_fixed_point_whose_time_is_up_says_so():
    result = cadoux.fixed_point(stored("high_friction.npz"), Stop(1e-12, 100, 0.0))
    assert (result.reason, result.iterations) == ("time", 1)


def test_the_relaxation_is_the_least_of_its_energy_on_the_cones():
    """1/2 r W r + r b is convex: no other force in the cones, near or far, has less."""
    held, rng = stored("easy.npz"), np.random.default_rng(0)
    r, residual, _ = solve_convex(held, np.zeros(held.n_contacts), 1e-11, 100)
    assert residual <= 1e-11
    least = 0.5 * r @ held.w @ r + r @ held.b
    for size in np.geomspace(1e-4, 1e2, 60):
        other = r.reshape(-1, 3) + size * np.abs(r).max() * rng.normal(size=(held.n_contacts, 3))
        other[:, 0] = np.maximum(other[:, 0], 0.0)
        length = np.hypot(other[:, 1], other[:, 2])
        most = held.mu * other[:, 0]
        other[:, 1:] *= np.minimum(1.0, most / np.maximum(length, 1e-300))[:, None]
        other = other.ravel()
        assert 0.5 * other @ held.w @ other + other @ held.b >= least - 1e-12 * abs(least)


def test_what_slides_by_the_relaxation_lifts_off_at_mu_times_its_slip():
    """One contact, W = I, dragged by 1: r = (n, -mu n), and v = u normal to the cone: u_n = mu |u_t|."""
    mu = 0.5
    held = ContactProblem(np.eye(3), np.array([-0.1, 1.0, 0.0]), np.array([mu]))
    result = cadoux.relaxation(held, Stop(1e-11, 100))
    u = held.w @ result.r + held.b
    n = (0.1 + mu) / (1.0 + mu * mu)  # the least of |r + b|^2 / 2 along (1, -mu)
    np.testing.assert_allclose(result.r, [n, -mu * n, 0.0], atol=1e-9)
    assert u[0] == pytest.approx(mu * abs(u[1]), abs=1e-9)
