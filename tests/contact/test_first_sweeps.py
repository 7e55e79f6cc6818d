"""The first sweeps of the portfolio: looking changes nothing, and easy problems cost no more than sweeps."""

import numpy as np
import pytest

from palpo.physics.contact.problem import Stop
from palpo.physics.contact.solvers import anderson, portfolio
from palpo.physics.contact.solvers.first_sweeps import (
    EARLY,
    FIRST,
    LOOK,
    TRY_NEWTON,
    newton_pays,
    promised,
    step_price,
    sweep_on_first,
)
from tests.contact.stored import NAMED, stored

TOLERANCE = 1e-8


def begun(problem):
    r, u, a = (
        np.zeros_like(problem.b),
        np.zeros_like(problem.b),
        anderson.make_acceleration(problem.n_contacts),
    )
    anderson.begin(problem.w, problem.b, problem.mu, r, u, 0, a)
    return r, u, a


def plainly(problem):
    """The state after the plain sweeps."""
    r, u, a = begun(problem)
    code = anderson.advance(problem.w, problem.b, problem.mu, r, u, 0, TOLERANCE, np.inf, anderson.PLAIN, a)
    return code, r, u, a


def first(problem, budget=1000):
    """Code, sweeps, force and the two statuses of all contacts together."""
    code, r, u, a = plainly(problem)
    status = np.empty((2, problem.n_contacts), np.int32)
    if code == anderson.CONTINUE:
        code = sweep_on_first(
            problem.w, problem.b, problem.mu, r, u, TOLERANCE, np.inf, budget - anderson.PLAIN, status, a
        )
    return code, a.state["sweeps"].item(), r, status


@pytest.mark.parametrize("name", NAMED)
def test_the_first_sweeps_are_those_of_accelerated_sweeps_bit_for_bit(name):
    problem = stored(name)
    code, done, r, _ = first(problem)
    assert done <= FIRST + LOOK
    other, u, a = begun(problem)
    told = anderson.advance(problem.w, problem.b, problem.mu, other, u, 0, TOLERANCE, np.inf, done, a)
    assert r.tobytes() == other.tobytes()
    assert (code == anderson.CONVERGED) == (told == anderson.CONVERGED)


def test_newton_is_tried_where_hardly_a_status_changes_or_its_step_costs_next_to_nothing():
    assert newton_pays(0, 100, 20.0, 10.0)
    assert not newton_pays(0, 100, 10.0, 10.0)  # sweeps are about to end
    assert not newton_pays(10, 100, 100.0, 10.0)  # they still change
    assert newton_pays(10, 100, 100.0, 1.0)


@pytest.mark.parametrize("name", NAMED)
def test_the_first_sweeps_end_with_newton_where_that_pays(name):
    problem = stored(name)
    code, done, _, status = first(problem)
    if done != FIRST or code == anderson.CONVERGED:
        return
    r, u, a = begun(problem)
    anderson.advance(problem.w, problem.b, problem.mu, r, u, 0, TOLERANCE, np.inf, FIRST, a)
    left, n = promised(FIRST, a.state["residual"].item(), TOLERANCE), problem.n_contacts
    changed, bearing = np.count_nonzero(status[0] != status[1]), np.count_nonzero(status[1])
    assert (code == TRY_NEWTON) == newton_pays(changed, n, left, step_price(n, bearing))


def test_a_rate_that_lasts_keeps_its_promise():
    """A residual that falls by q a sweep from EARLY on needs log(EARLY / tolerance) / log(1 / q) in all."""
    q = 0.8
    done = FIRST - anderson.PLAIN
    least = EARLY * q**done
    whole = np.log(TOLERANCE / EARLY) / np.log(q)
    assert promised(FIRST, least, TOLERANCE) == pytest.approx(whole - done, rel=1e-12)
    assert promised(FIRST, EARLY, TOLERANCE) == np.inf


def test_a_step_is_worth_more_sweeps_the_more_contacts_there_are_and_most_where_sweeps_are_for_nothing():
    prices = [step_price(n, n) for n in (50, 100, 200, 400)]
    assert prices == sorted(prices)
    # as many rows for each: a factorisation is worth the third power of them, a sweep the second
    assert prices[-1] / prices[-2] == pytest.approx(2.0, rel=0.1)
    assert step_price(10, 10) > step_price(30, 30)


@pytest.mark.parametrize("name", NAMED)
def test_an_easy_problem_takes_no_more_units_than_sweeps_alone(name):
    """What the portfolio may cost where there is nothing to choose: nothing, but Newton's one bite."""
    problem = stored(name)
    alone = anderson.solve(problem, Stop(TOLERANCE, 5000))
    if alone.converged and alone.iterations <= 100:
        assert portfolio.solve(problem, Stop(TOLERANCE, 5000)).iterations <= alone.iterations + 2
