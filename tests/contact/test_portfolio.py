"""The portfolio and its members: what they solve, that they agree, and what changes nothing.

Tolerances: forces of two solvers at 1e-11 agree to that times W's condition, where W is regular.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.benchmarks.contact_problems import brick_wall
from palpo.physics.contact.laws import natural_map_residual, relative_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers import admm, interior_point, portfolio, semi_smooth_newton
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.numerics.errors import InputError
from tests.contact.stored import HARD, NAMED, in_cones, stored

pytestmark = pytest.mark.portable

MEMBERS = ("portfolio", "interior-point", "admm")
ENOUGH = Stop(1e-8, 5000)


def made(n, seed, mu, rank=None):
    """A problem made from its solution, with W of that rank, and the solution r, shape (n, 3)."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, rank or 3 * n + 6))
    r, u = np.zeros((n, 3)), np.zeros((n, 3))
    for k, kind in enumerate(rng.integers(0, 3, n)):
        angle = rng.uniform(0, 2 * np.pi)
        along = np.array([0.0, np.cos(angle), np.sin(angle)])
        if kind == 0:
            u[k] = [rng.exponential() + 0.1, *rng.normal(size=2)]
        else:
            r[k, 0] = rng.exponential() + 0.1
            r[k] += mu * r[k, 0] * along * (0.5 if kind == 1 else 1.0)
            u[k] = 0.0 if kind == 1 else -(rng.exponential() + 0.1) * along
    w = half @ half.T
    w = 0.5 * (w + w.T)
    return ContactProblem(w, u.ravel() - w @ r.ravel(), np.full(n, mu)), r


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("solver", ["portfolio", "interior-point"])
def test_every_stored_problem_is_solved_within_the_default_budget(solver, name):
    problem = stored(name)
    result = find_solver(solver).solve(problem, ENOUGH)
    assert result.converged
    assert natural_map_residual(problem.w, problem.b, problem.mu, result.r) <= 1e-8
    assert in_cones(problem, result.r)


@pytest.mark.parametrize("name", HARD)
def test_an_interior_point_needs_few_steps_where_sweeps_need_thousands(name):
    """Interior points take some tens of steps whatever the condition; sweeps at these took 754 and 9217."""
    assert interior_point.solve(stored(name), Stop(1e-8, 40)).converged


@pytest.mark.parametrize(("courses", "bricks", "mu"), [(16, 1, 0.7), (6, 4, 0.6)])
@pytest.mark.parametrize("solver", MEMBERS)
def test_walls_of_bricks_whose_forces_are_not_unique_are_solved(solver, courses, bricks, mu):
    wall = brick_wall(courses, bricks, mu)
    assert np.linalg.matrix_rank(wall.w) < 0.6 * len(wall.w)
    assert find_solver(solver).solve(wall, ENOUGH).converged


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0.0, 0.4), st.booleans())
def test_a_problem_made_from_its_solution_is_solved_by_all(n, seed, mu, singular):
    problem, _ = made(n, seed, mu, (3 * n + 1) // 2 if singular else None)
    result = portfolio.solve(problem, ENOUGH)
    assert result.converged
    assert in_cones(problem, result.r)


@pytest.mark.parametrize("seed", range(6))
def test_solvers_of_different_kinds_find_the_one_solution_that_there_is(seed):
    """mu small against W's coupling makes it unique (Klarbring 1990)."""
    problem, r = made(8, seed, 0.1)
    tight = Stop(1e-11, 20_000)
    for name in (*MEMBERS, "gauss-seidel"):
        result = find_solver(name).solve(problem, tight)
        assert result.converged, name
        np.testing.assert_allclose(
            result.r, r.ravel(), atol=1e-11 * np.linalg.cond(problem.w) * np.abs(r).max()
        )
    near = replace(problem, warm=r.ravel() * (1.0 + 1e-3))
    assert semi_smooth_newton.solve(near, Stop(1e-11, 10)).converged


@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize(("force", "length"), [(1e6, 1.0), (1.0, 1e-9), (1e-4, 1e3)])
def test_units_change_nothing_but_the_numbers(name, force, length):
    """r in units of `force`, u in units of `length`: W scales by length / force."""
    problem, r = made(6, 3, 0.3)
    scaled = ContactProblem(problem.w * length / force, problem.b * length, problem.mu)
    result = find_solver(name).solve(scaled, Stop(1e-10, 5000))
    assert result.converged
    close = 1e-10 * np.linalg.cond(problem.w) * np.abs(r).max()
    np.testing.assert_allclose(result.r / force, r.ravel(), atol=close)


@pytest.mark.parametrize("name", MEMBERS)
def test_turning_every_contacts_tangents_turns_the_force(name):
    problem, r = made(6, 4, 0.3)
    rng = np.random.default_rng(1)
    turns = np.zeros((18, 18))
    for k, angle in enumerate(rng.uniform(0, 2 * np.pi, 6)):
        c, s = np.cos(angle), np.sin(angle)
        turns[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = [[1, 0, 0], [0, c, -s], [0, s, c]]
    w = turns @ problem.w @ turns.T
    turned = ContactProblem(0.5 * (w + w.T), turns @ problem.b, problem.mu)
    result = find_solver(name).solve(turned, Stop(1e-10, 5000))
    close = 1e-10 * np.linalg.cond(problem.w) * np.abs(r).max()
    np.testing.assert_allclose(result.r, turns @ r.ravel(), atol=close)


@pytest.mark.parametrize("name", [*MEMBERS, "semi-smooth-newton"])
@pytest.mark.parametrize("seed", range(3))
def test_without_friction_it_is_the_complementarity_problem_of_the_normals(name, seed):
    """mu = 0: 0 <= W_nn r_n + b_n perp r_n >= 0, of which enumeration finds the only solution."""
    n, rng = 5, np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3 * n))
    problem = ContactProblem(half @ half.T + np.eye(3 * n), rng.normal(size=3 * n), np.zeros(n))
    w, b = problem.w[::3, ::3], problem.b[::3]
    for closed in itertools.product((False, True), repeat=n):
        r_n, at = np.zeros(n), np.flatnonzero(closed)
        if len(at):
            r_n[at] = np.linalg.solve(w[np.ix_(at, at)], -b[at])
        if r_n.min() >= 0.0 and (w @ r_n + b).min() >= -1e-12:
            break
    result = find_solver(name).solve(problem, Stop(1e-11, 5000))
    assert result.converged
    np.testing.assert_allclose(result.r[::3], r_n, atol=1e-9 * np.abs(r_n).max(initial=1e-3))
    # projecting on a cone of no width leaves roundings
    assert np.abs(result.r.reshape(-1, 3)[:, 1:]).max() <= 1e-14 * max(np.abs(r_n).max(), 1e-3)


@pytest.mark.parametrize("name", ["portfolio", "interior-point"])
@pytest.mark.parametrize("problem_name", ["wedge_jamming", "wedge_reduced"])
def test_more_budget_is_never_worse_and_any_is_no_worse_than_no_force(name, problem_name):
    problem, least = stored(f"hard/{problem_name}.npz"), np.inf
    for budget in (8, 13, 24, 31, 40, 50, 60, 75, 90, 120, 200):
        result = find_solver(name).solve(problem, Stop(1e-8, budget))
        assert in_cones(problem, result.r)
        # a lagging step factors twice
        assert result.iterations <= budget + 1
        found = relative_residual(problem, result.r)
        # the residual of a result is that of a fresh u, its budget's of one with roundings
        assert found <= least * (1.0 + 1e-6)
        least = found


@pytest.mark.parametrize("name", ["wedge_reduced", "wedge_jamming"])
def test_the_same_problem_takes_the_same_way_bit_for_bit(name):
    problem = stored(f"hard/{name}.npz")
    one, other = portfolio.solve(problem, ENOUGH), portfolio.solve(problem, ENOUGH)
    assert one.iterations == other.iterations
    assert one.r.tobytes() == other.r.tobytes()
    # the clock, looked at or not, decides nothing as long as there is time
    timed = portfolio.solve(problem, replace(ENOUGH, seconds=1e6))
    assert timed.r.tobytes() == one.r.tobytes()


@pytest.mark.parametrize("name", [*MEMBERS, "semi-smooth-newton"])
def test_a_solution_is_kept(name):
    problem = stored("easy.npz")
    first = portfolio.solve(problem, Stop(1e-10, 5000))
    again = find_solver(name).solve(replace(problem, warm=first.r), Stop(1e-9, 5000))
    assert again.iterations == 0
    np.testing.assert_allclose(again.r, first.r, rtol=1e-12, atol=1e-12 * np.abs(first.r).max())


def test_newton_finishes_from_a_rough_force_in_a_few_steps():
    """Quadratic convergence once no status changes: from 1e-3 to 1e-12 in at most a handful of steps."""
    for name in ("easy.npz", "soft_on_soft.npz", "high_friction.npz", "delassus_36.npz"):
        problem = stored(name)
        rough = find_solver("anderson").solve(problem, Stop(1e-3, 1000))
        result = semi_smooth_newton.solve(replace(problem, warm=rough.r), Stop(1e-12, 8))
        assert result.converged, name


@pytest.mark.parametrize(
    ("solver", "option"), [(interior_point.solve, {"ridge": 0.0}), (admm.solve, {"relaxation": 2.0})]
)
def test_options_that_make_no_sense_are_refused(solver, option):
    with pytest.raises(InputError, match=next(iter(option))):
        solver(stored("easy.npz"), Stop(), **option)


def test_the_steps_of_the_natural_map_are_the_greatest_compliances_of_a_contact():
    """rho_n = 1 / W_nn and rho_t = 1 / the greatest eigenvalue of the tangential block."""
    problem, _ = made(6, 3, 0.4)
    n = len(problem.mu)
    room = semi_smooth_newton.make_semi_smooth(n)
    semi_smooth_newton.begin(problem.w, problem.b, problem.mu, np.zeros(3 * n), room)
    for k in range(n):
        block = problem.w[3 * k : 3 * k + 3, 3 * k : 3 * k + 3]
        greatest = np.linalg.eigvalsh(block[1:, 1:])[-1]
        np.testing.assert_allclose(room.step[k], [1.0 / block[0, 0], 1.0 / greatest], rtol=1e-12)
