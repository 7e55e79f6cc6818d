"""What the one residual says of a force: that a near problem has it as its exact solution, in any units.

Forces that grow without bound, as where walls close on a rigid body or strong friction jams on a singular W,
are the ones that a residual over |r| alone would pass.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.contact.laws import judge, natural_map_residual, relative_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.contact.solvers.relaxation import project_cones
from tests.contact.stored import CONSISTENT

pytestmark = pytest.mark.portable


def drawn(n, seed, mu, rank):
    """A problem with W of that rank at most, and any force in the cones."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, rank))
    r = rng.normal(size=3 * n) * 10.0 ** rng.uniform(-3, 3)
    friction = np.full(n, mu)
    project_cones(friction, r)
    return ContactProblem(half @ half.T, rng.normal(size=3 * n) * 10.0 ** rng.uniform(-3, 3), friction), r


def closing(n, mu, seed=0):
    """A rigid body between n pairs of walls that close on it by 1: no force can part both of a pair."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3))
    rows = np.concatenate([half, -half])
    offset = rng.normal(size=(2 * n, 3))
    offset[:, 0] = -1.0
    if mu > 0.0:  # no slip that would lift them by De Saxce's shift either
        offset[:, 1:] = 0.0
    return ContactProblem(rows @ rows.T, offset.ravel(), np.full(2 * n, mu))


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(0.0, 10.0), st.integers(1, 20))
def test_any_force_is_near_to_the_exact_solution_of_a_problem_as_near_as_its_residual_says(n, seed, mu, rank):
    """z = Proj_K(r - rho v) solves that of b + db, |db| <= e (1 + mu + rho |W|) |b|; |z - r| <= e |r|."""
    problem, r = drawn(n, seed, mu, rank)
    w, b = problem.w, problem.b
    rho = len(w) / np.trace(w)
    u = w @ r + b
    v = u.reshape(-1, 3).copy()
    v[:, 0] += mu * np.hypot(v[:, 1], v[:, 2])
    z = r - rho * v.ravel()
    project_cones(problem.mu, z)
    e = relative_residual(problem, r)
    if not np.isfinite(e):
        assert not r.any()
        return
    # the offset that z has to have, from the natural map's own argument
    aim = v - (r - z).reshape(-1, 3) / rho
    aim[:, 0] -= mu * np.hypot(aim[:, 1], aim[:, 2])
    db = aim.ravel() - w @ z - b
    near = ContactProblem(w, b + db, problem.mu)
    size = np.linalg.norm(b) + np.linalg.norm(w, 2) * np.linalg.norm(r)
    assert (
        np.linalg.norm(db) <= e * (1.0 + mu + rho * np.linalg.norm(w, 2)) * np.linalg.norm(b) + 1e-13 * size
    )
    assert np.linalg.norm(z - r) <= e * np.linalg.norm(r) * (1.0 + 1e-12) + 1e-300
    if z.any():
        scale = min(np.linalg.norm(z), rho * np.linalg.norm(near.b))
        assert relative_residual(near, z) <= 1e-13 * (1.0 + mu) ** 2 * rho * size / scale


@pytest.mark.parametrize("mu", [0.0, 0.3, 10.0])
def test_where_walls_close_on_a_rigid_body_no_force_is_solved_however_large(mu):
    """A pair's offsets sum to -2 whatever the force: z's own cannot, unless b is changed by as much."""
    problem = closing(2, mu)
    push = np.tile([1.0, 0.0, 0.0], 4)
    for force in 10.0 ** np.arange(0.0, 14.0):
        result = judge(problem, Stop(1e-3), force * push, 1, "iterations", 0.0)
        assert not result.converged
        assert result.residual > 0.1


@pytest.mark.parametrize("mu", [0.0, 0.3, 10.0])
@pytest.mark.parametrize("name", [*CONSISTENT, "homotopy", "semi-smooth-newton", "acary-cadoux"])
def test_no_solver_counts_a_problem_without_a_solution_as_solved(name, mu):
    result = find_solver(name).solve(closing(2, mu), Stop(1e-4, 300))
    assert not result.converged
    assert np.isfinite(result.r).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(-40, 40), st.integers(-40, 40), st.floats(0.0, 100.0))
def test_units_change_no_verdict(seed, force, length, grown):
    """Powers of two are exact: r by `force`, u by `length`, W by one over the other; runaway forces, none."""
    problem, r = drawn(4, seed, 10.0, 5)
    f, s = 2.0**force, 2.0**length
    scaled = ContactProblem(problem.w * (s / f), problem.b * s, problem.mu)
    for one in (r, grown * 1e6 * r, 0.0 * r):
        assert relative_residual(scaled, f * one) == relative_residual(problem, one)


@pytest.mark.parametrize("name", CONSISTENT)
def test_small_forces_are_asked_for_as_much_as_large_ones(name):
    """In a world of 1e-12 N and m the same contacts bear; none of them is let go for being small."""
    half = np.random.default_rng(3).normal(size=(12, 15))
    w, b = half @ half.T, np.tile([-1.0, 0.1, 0.0], 4)
    mu = np.full(4, 0.2)
    large = find_solver(name).solve(ContactProblem(w, b, mu), Stop(1e-9, 20_000))
    small = find_solver(name).solve(ContactProblem(w, 1e-12 * b, mu), Stop(1e-9, 20_000))
    assert large.converged and small.converged
    assert natural_map_residual(w, 1e-12 * b, mu, np.zeros(12)) == np.inf
    np.testing.assert_allclose(1e12 * small.r, large.r, atol=1e-8 * np.linalg.cond(w) * np.abs(large.r).max())
