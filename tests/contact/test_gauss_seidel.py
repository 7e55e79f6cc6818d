"""Block Gauss-Seidel on stored problems and on random ones, judged by the natural map."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.benchmarks.contact_problems import brick_wall
from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.gauss_seidel import solve, sweep_contacts
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.numerics.errors import InputError
from tests.contact.stored import PERIO_BOX, stored


@pytest.mark.parametrize("name", ["delassus_36.npz", "delassus_66.npz"])
def test_a_dragged_block_is_solved_to_a_natural_map_of_1e_8(name):
    result = solve(stored(name), Stop(1e-8))
    assert result.converged
    assert result.reason == "converged"
    assert result.residual <= 1e-8


@pytest.mark.parametrize("name", ["delassus_36.npz", "delassus_66.npz"])
def test_the_servo_s_kernel_ends_where_its_force_rests_and_its_offset_is_that_of_the_force(name):
    problem = stored(name)
    n = problem.n_contacts
    r, u, status = np.zeros(3 * n), np.zeros(3 * n), np.zeros(n, np.int32)
    sweeps = sweep_contacts(
        problem.w, problem.b, problem.mu, np.zeros((0, 2)), r, u, status, 0, 1e-10, 5000, np.zeros((2, 3))
    )
    assert 0 < sweeps < 100
    found = solve(problem, Stop(1e-10))
    # two stops of the same iteration: they end within their tolerances of one another
    np.testing.assert_allclose(r, found.r, rtol=0, atol=1e-8 * np.abs(r).max())
    np.testing.assert_array_equal(status, found.status)
    np.testing.assert_allclose(u, problem.w @ r + problem.b, rtol=0, atol=1e-12 * np.abs(problem.b).max())


def test_a_rank_deficient_packing_is_solved_as_well():
    """60 contacts, W of rank 72 of 180: forces are not unique, the residual is."""
    assert solve(stored(PERIO_BOX), Stop(1e-8, 50000)).residual <= 1e-8


EARLY = ["gauss-seidel", "uzawa-global-bipotential-rho_min", "uzawa-local-bipotential-rho_alpha",
         "uzawa-signorini-pseudopotential-rho_alpha", "newton-bipotential"]  # fmt: skip


@pytest.mark.parametrize("name", EARLY)
@pytest.mark.parametrize("sweeps", [3, 10, 27])
def test_what_ends_a_solve_early_gives_back_what_so_many_sweeps_have_found(name, sweeps):
    """72 contacts: a sweep costs more than the products between two looks at the clock."""
    problem = brick_wall(4, 5, 0.6)
    assert problem.n_contacts > 48
    cut = find_solver(name).solve(problem, Stop(1e-12, sweeps))
    assert cut.iterations == sweeps
    assert cut.residual < 1.0  # that of no force is infinite
    timed = find_solver(name).solve(problem, Stop(1e-12, 10**6, seconds=0.0))
    assert timed.reason == "time" and timed.iterations > 0
    same = find_solver(name).solve(problem, Stop(1e-12, timed.iterations))
    np.testing.assert_array_equal(timed.r, same.r)
    assert timed.r.any()


def test_a_warm_start_at_the_solution_is_left_within_a_sweep():
    problem = stored("delassus_36.npz")
    first = solve(problem, Stop(1e-12))
    again = solve(ContactProblem(problem.w, problem.b, problem.mu, first.r), Stop(1e-9))
    assert again.iterations == 1
    np.testing.assert_allclose(again.r, first.r, rtol=0, atol=1e-9 * np.abs(first.r).max())


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0.0, 0.8))
def test_random_problems_end_in_the_cone_with_signorini_and_the_slip_opposed(n, seed, mu):
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3 * n))
    # well conditioned, so that the coupling cannot defeat uniqueness
    w = half @ half.T / (3 * n) + 2.0 * np.eye(3 * n)
    problem = ContactProblem(w, rng.normal(size=3 * n), np.full(n, mu))
    result = solve(problem, Stop(1e-10))
    assert result.residual <= 1e-8
    r, u = result.r.reshape(n, 3), (w @ result.r + problem.b).reshape(n, 3)
    size = max(np.abs(r).max(), 1e-9)
    assert (r[:, 0] >= 0.0).all()
    assert (np.hypot(r[:, 1], r[:, 2]) <= mu * r[:, 0] + 1e-12 * size).all()
    assert u[:, 0].min() > -1e-7
    assert np.abs(u[:, 0] * r[:, 0]).max() < 1e-6 * size
    # the slip never gains from friction
    assert (r[:, 1:] * u[:, 1:]).sum(axis=1).max() < 1e-6 * size


def test_the_residual_of_a_wrong_force_is_not_small():
    problem = stored("delassus_36.npz")
    right = solve(problem, Stop(1e-12)).r
    assert natural_map_residual(problem.w, problem.b, problem.mu, 1.1 * right) > 1e-3


@pytest.mark.parametrize(
    ("w", "b", "mu", "said"),
    [
        (np.eye(3), np.zeros(2), np.zeros(1), "shape"),
        (np.eye(3), np.full(3, np.nan), np.zeros(1), "finite"),
        (np.eye(3), np.zeros(3), np.array([-0.1]), "negative"),
    ],
)
def test_a_problem_that_is_none_is_refused(w, b, mu, said):
    with pytest.raises(InputError, match=said):
        ContactProblem(w, b, mu)
