"""The contacts that bear as a problem of their own: what it leaves of all, and that nothing is lost by it."""

import numpy as np
import pytest

from palpo.physics.contact.laws import relative_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers import anderson, interior_point, portfolio
from palpo.physics.contact.solvers.bearing_part import MARGIN, BearingPart
from palpo.physics.contact.solvers.portfolio_run import Sweeps
from tests.contact.stored import in_cones
from tests.contact.test_portfolio import made

pytestmark = pytest.mark.portable


def pressed(seed, n=30, bearing=8, mu=0.4, stiff=1.0):
    """A problem made from its solution, in which so many of n contacts bear and the rest are well apart."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(3 * n, 3 * n + 6)) * np.repeat(stiff ** rng.uniform(-0.5, 0.5, n), 3)[:, None]
    w = half @ half.T / (3 * n)
    r, u = np.zeros((n, 3)), np.zeros((n, 3))
    u[:, 0] = np.abs(w).sum(axis=1)[::3] * rng.uniform(0.5, 2.0, n)
    at = rng.permutation(n)[:bearing]
    u[at, 0] = 0.0
    r[at, 0] = rng.uniform(0.5, 2.0, bearing)
    slides = at[: bearing // 2]
    angle = rng.uniform(0, 2 * np.pi, len(slides))
    along = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    r[slides, 1:] = mu * r[slides, :1] * along
    u[slides, 1:] = -along * rng.uniform(0.1, 1.0, (len(slides), 1))
    w = 0.5 * (w + w.T)
    return ContactProblem(w, u.ravel() - w @ r.ravel(), np.full(n, mu)), r.ravel()


def part_of(problem, r):
    part = BearingPart(problem, problem.w)
    part.chosen[:] = r[::3] > 0.0
    part.count = int(part.chosen.sum())
    part.r[:] = r
    return part


@pytest.mark.parametrize("stiff", [1.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_part_solved_to_its_own_tolerance_solves_all_where_the_others_stay_open(seed, stiff):
    """The natural map grows with rho, and more slowly than it; stiff: how unlike the contacts yield."""
    problem, r = pressed(seed, stiff=stiff)
    part = part_of(problem, r)
    for tolerance in (1e-3, 1e-5, 1e-7):
        alone, own = part.taken_out(tolerance)
        assert own <= tolerance
        found = interior_point.solve(alone, Stop(own, 100))
        assert found.converged
        assert part.put_back(found.r) <= tolerance
        assert part.put_back(found.r) == pytest.approx(relative_residual(problem, part.r), rel=1e-6)


def test_a_part_holds_the_rows_of_its_contacts_in_their_order():
    problem, r = pressed(0)
    part = part_of(problem, r)
    alone, _ = part.taken_out(1e-8)
    at = np.flatnonzero(part.chosen)
    rows = (3 * at[:, None] + np.arange(3)).ravel()
    np.testing.assert_array_equal(alone.w, problem.w[np.ix_(rows, rows)])
    np.testing.assert_array_equal(alone.b, problem.b[rows])
    np.testing.assert_array_equal(alone.mu, problem.mu[at])
    np.testing.assert_array_equal(alone.warm, r[rows])
    # what was in the force of the others is none of it
    part.r[:] = 7.0
    part.put_back(r[rows])
    np.testing.assert_array_equal(part.r, r)
    np.testing.assert_allclose(part.u, problem.w @ r + problem.b, atol=1e-12 * np.abs(problem.b).max())


def test_what_is_called_for_joins_and_nothing_leaves():
    problem, r = pressed(1)
    part = part_of(problem, r)
    before, greatest = part.chosen.copy(), np.abs(problem.b[::3]).max()
    near, far = np.flatnonzero(part.chosen == 0)[:2]
    part.u[::3] = greatest
    assert not part.grow()
    part.u[3 * near], part.u[3 * far] = 0.5 * MARGIN * greatest, 2.0 * MARGIN * greatest
    assert part.grow()
    assert part.chosen[near] == 1 and part.chosen[far] == 0
    assert part.chosen.sum() == before.sum() + 1
    part.u[::3] = -greatest
    assert not part.grow()  # it is no part any more


@pytest.mark.parametrize("seed", range(6))
def test_few_contacts_among_many_are_found_and_solved_alone(seed):
    problem, r = pressed(seed)
    sweeps = Sweeps(problem, 1e-10, np.inf)
    sweeps.begin()
    _, _, part, _ = sweeps.first(10_000)
    assert 0 < part.chosen.sum() <= 0.8 * problem.n_contacts
    assert part.chosen[r[::3] > 0.0].all()
    result = portfolio.solve(problem, Stop(1e-10, 5000))
    assert result.converged
    assert in_cones(problem, result.r)
    np.testing.assert_allclose(result.r, r, atol=1e-10 * np.linalg.cond(problem.w) * np.abs(r).max())


def test_a_contact_that_the_first_sweeps_leave_out_is_taken_along_when_it_is_called_for():
    """Strong friction and a W near singular: what is open after the plain sweeps may bear in the end."""
    missed = 0
    for seed in range(300):
        problem, _ = made(12, seed, 1.5, 37)
        sweeps = Sweeps(problem, 1e-8, np.inf)
        sweeps.begin()
        sweeps.advance(anderson.PLAIN)
        part = BearingPart(problem, problem.w)
        part.r[:], part.u[:] = sweeps.r, sweeps.u
        if part.grow():
            result = portfolio.solve(problem, Stop(1e-8, 5000))
            assert result.converged
            missed += bool((result.r[::3][part.chosen == 0] > 0.0).any())
    assert missed > 0, "no problem in which it matters"
