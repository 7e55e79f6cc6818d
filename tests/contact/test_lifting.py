"""The solution followed from where nothing touches: it stays one, goes round folds, and ends at s = 0.

Tolerances: Newton ends where its correction is NEAR of the greatest force, after which its error is that
squared; RIDGE adds to the residual what it is.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.contact.laws import relative_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers import lifting
from palpo.physics.contact.solvers.lifting import RIDGE, Walk, first_rise, lift_of
from tests.contact.stored import HARD, in_cones, stored

pytestmark = pytest.mark.portable

REGULAR = [*HARD, "soft_on_soft.npz", "high_friction.npz", "wedge_paper.npz", "two_sided_squeeze.npz"]


def bar(seed):
    """Two points joined by a stiff bar, friction 3."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(6, 6))
    return ContactProblem(half @ half.T + 1e-3 * np.eye(6), rng.normal(size=6), np.full(2, 3.0))


def walked(problem, number=0, most=1000):
    """A walk gone to its end, and s after each of its steps."""
    walk = Walk(problem, lift_of(problem.n_contacts, number))
    heights = [walk.s]
    while walk.s > 0.0 and len(heights) < most and walk.step():
        heights.append(walk.s)
    return walk, np.array(heights)


@pytest.mark.parametrize("name", REGULAR)
def test_every_point_of_a_walk_solves_the_lifted_problem(name):
    problem = stored(name)
    walk = Walk(problem, lift_of(problem.n_contacts, 0))
    while walk.s > 0.0:
        assert walk.step()
        lifted = ContactProblem(walk.w, problem.b + walk.s * walk.d, problem.mu)
        if walk.a.r.any():
            greatest = float(np.abs(walk.a.r).max())
            assert walk._wrong() <= lifting.HARDLY * greatest
            np.testing.assert_allclose(walk.force, walk.a.r, atol=1e-8 * greatest)
            if np.linalg.norm(walk.a.r) > 1e-3 * np.linalg.norm(lifted.b) / walk.w.diagonal().mean():
                assert relative_residual(lifted, walk.force) <= 1e-6
    assert relative_residual(replace(problem, w=walk.w), walk.force) <= 1e-10


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", REGULAR)
def test_a_walk_of_any_lift_ends_at_a_solution(name, number):
    problem = stored(name)
    walk, _ = walked(problem, number)
    assert walk.s == 0.0
    assert relative_residual(problem, walk.force) <= 10 * RIDGE
    assert in_cones(problem, walk.force)


def test_walks_go_round_folds():
    """Of two points joined by a stiff bar, 2 in 5 have one: there s rises on the way, and none is lost."""
    folds = 0
    for seed in range(60):
        walk, heights = walked(bar(seed))
        assert walk.s == 0.0, seed
        folds += bool((np.diff(heights) > 0.0).any())
    assert folds > 10


def test_the_tangent_is_the_derivative_of_the_solution():
    """A step that changes no status leaves the tangent by its square."""
    problem = stored("soft_on_soft.npz")
    walk = Walk(problem, lift_of(problem.n_contacts, 0))
    for _ in range(10):
        assert walk.step()
    assert walk._leave()
    r, s, errors = walk.a.r.copy(), walk.s, []
    for length in (0.2 * walk.length, 0.1 * walk.length):
        assert walk._land(r, s, length, -1, False)
        errors.append(float(np.abs(walk.a.r - r - (walk.s - s) * walk.ds * walk.tangent).max()))
        walk._place(r.copy(), s)
    assert errors[1] <= 0.3 * errors[0] + 1e-14 * float(np.abs(r).max())


@settings(max_examples=60, deadline=None)
@given(*(st.floats(-3.0, 3.0) for _ in range(3)))
def test_the_first_rise_is_where_the_parabola_gets_positive(a, b, c):
    x = float(first_rise(*(np.array([v]) for v in (a, b, c)))[0])
    value = np.poly1d([a, 2 * b, c])
    small = 1e-6 * (1.0 + abs(a) + abs(b) + abs(c))
    if abs(c) < small or abs(b * b - a * c) < small or 0.0 < abs(a) < 1e-3:
        return  # on the border to rounding
    if c < 0.0:
        if np.isfinite(x):
            assert abs(value(x)) <= small * (1.0 + x * x)
        before = np.linspace(0.0, min(x, 100.0), 50)[:-1]
        assert (value(before) <= small * (1.0 + before**2)).all()
    elif x == 0.0:
        assert b > 0.0 or (b == 0.0 and a > 0.0) or b * b < a * c
    elif np.isfinite(x):
        assert abs(value(x)) <= small * (1.0 + x * x)
        assert value(0.5 * x) < value(0.0)


def test_where_nothing_presses_no_force_is_the_solution():
    problem = stored("easy.npz")
    apart = replace(problem, b=np.abs(problem.b) + 1.0)
    result = lifting.solve(replace(apart, warm=np.ones_like(problem.b)), Stop(1e-8, 100))
    assert result.converged
    assert not result.r.any()


def test_a_budget_is_kept_to_a_step():
    problem = stored("hard/wedge_jamming.npz")
    result = lifting.solve(problem, Stop(1e-12, 20))
    assert not result.converged
    assert result.reason == "iterations"
    assert result.iterations <= 20 + lifting.TRIES * lifting.TURNS
