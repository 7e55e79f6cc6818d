"""The faceted cone by Lemke's pivots: an exact answer of its polygon, which the disc's law bounds."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.reference.lemke import solve
from palpo.physics.contact.solvers.registry import find_solver
from palpo.physics.numerics.errors import InputError
from tests.contact.stored import NAMED, PERIO_BOX, in_cones, offsets, stored

ROUNDING = 1e-9
"""Of a dense tableau after some hundred pivots, relative to the largest force."""


def pressed_and_dragged(angle, drag, mu, facets):
    """One contact of 1 N and W = 1e-3 m/N, dragged by `drag` newtons' worth of offset."""
    b = 1e-3 * np.array([-1.0, drag * np.cos(angle), drag * np.sin(angle)])
    problem = ContactProblem(1e-3 * np.eye(3), b, np.array([mu]))
    return problem, solve(problem, Stop(1e-8), facets=facets)


def polygon_share(problem, r, facets):
    """Largest d . r_t / (mu r_n cos(pi / h)) over the polygon's h sides: at most 1 inside of it."""
    angle = 2 * np.pi * (np.arange(facets) + 0.5) / facets
    r = r.reshape(-1, 3)
    reach = (r[:, 1:] @ np.stack([np.cos(angle), np.sin(angle)])).max(axis=1)
    return reach - problem.mu * r[:, 0] * np.cos(np.pi / facets)


@pytest.mark.parametrize("facets", [4, 8, 16, 32])
def test_across_a_facet_a_contact_slides_at_cos_pi_over_h_of_coulomb_s_limit(facets):
    """The polygon's inner radius: its strength converges to the disc's as 1 - O(1 / h^2)."""
    mu, strength = 0.5, np.cos(np.pi / facets)
    across, corner = np.pi / facets, 0.0
    for angle, limit in ((across, mu * strength), (corner, mu)):
        problem, below = pressed_and_dragged(angle, 0.999 * limit, mu, facets)
        assert below.converged
        assert np.abs(offsets(problem, below.r)[0, 1:]).max() <= ROUNDING * 1e-3
        problem, above = pressed_and_dragged(angle, 1.001 * limit, mu, facets)
        assert np.hypot(*offsets(problem, above.r)[0, 1:]) >= 0.9 * 0.001 * limit * 1e-3
        assert np.hypot(*above.r[1:]) == pytest.approx(limit, rel=1e-3)


@pytest.mark.parametrize("facets", [4, 8, 16, 32])
@settings(max_examples=40, deadline=None)
@given(angle=st.floats(0.0, 6.28), drag=st.floats(0.6, 20.0))
def test_a_sliding_contact_loses_the_work_of_the_disc_to_cos_pi_over_h(facets, angle, drag):
    """The force is the polygon's that takes the most from the slip: a share 1 - O(1 / h^2) of mu r_n |x_t|.

    It may point up to pi / h beside the slip, so the force itself converges to first order only.
    """
    mu = 0.5
    problem, result = pressed_and_dragged(angle, drag, mu, facets)
    (u,) = offsets(problem, result.r)
    slip = np.hypot(u[1], u[2])
    work = -(result.r[1:] @ u[1:])
    assert mu * np.cos(np.pi / facets) * slip - ROUNDING * 1e-3 <= work <= mu * slip + ROUNDING * 1e-3
    beside = abs(result.r[1] * u[2] - result.r[2] * u[1])
    assert beside <= np.sin(np.pi / facets) * mu * slip + ROUNDING * 1e-3


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("facets", [4, 8])
def test_lemke_s_answer_obeys_signorini_and_the_polygon_on_every_stored_problem(name, facets):
    """Rank-deficient W too: lexicographic pivots neither cycle nor end in a ray."""
    problem = stored(name)
    result = solve(problem, Stop(1e-8), facets=facets)
    assert result.reason in ("converged", "stalled")
    assert in_cones(problem, result.r)
    size, length = np.abs(result.r).max(), np.abs(problem.b).max()
    u, r_n = offsets(problem, result.r)[:, 0], result.r[0::3]
    assert u.min() >= -ROUNDING * 10 * length
    assert np.abs(u * r_n).max() <= ROUNDING * 10 * length * size
    assert polygon_share(problem, result.r, facets).max() <= ROUNDING * size


def test_a_larger_count_of_facets_comes_nearer_to_the_smooth_cone():
    problem = stored("soft_on_soft.npz")
    right = find_solver("gauss-seidel").solve(problem, Stop(1e-10)).r
    errors = [np.linalg.norm(solve(problem, Stop(), facets=h).r - right) for h in (4, 8, 16)]
    assert all(finer < 0.75 * coarser for coarser, finer in pairwise(errors))
    # the force's own order, one, over two halvings, as a bound
    assert errors[-1] < errors[0] / 4


def test_pivots_are_counted_against_the_cap_and_the_clock():
    problem = stored("soft_on_soft.npz")
    few = solve(problem, Stop(1e-8, 10))
    assert (few.reason, few.iterations) == ("iterations", 10)
    hasty = solve(problem, Stop(1e-8, 5000, 0.0))
    assert hasty.reason == "time"
    assert in_cones(problem, few.r)
    assert in_cones(problem, hasty.r)


def test_what_is_too_large_or_has_too_few_facets_is_refused_in_words():
    with pytest.raises(InputError, match="3 facets at least"):
        solve(stored("easy.npz"), Stop(), facets=2)
    with pytest.raises(InputError, match="12000 unknowns"):
        solve(stored(PERIO_BOX), Stop(), facets=198)
