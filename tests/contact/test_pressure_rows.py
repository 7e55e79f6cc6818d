"""Contact, friction and the pressures of cavities solved together, judged by their laws."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import root

from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import ContactProblem, Stop
from palpo.physics.contact.solvers.gauss_seidel import solve as solve_contacts
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.pressure import (
    SOLVED,
    advance,
    begin,
    finish,
    make_gas,
    make_workspace,
    resume,
)
from palpo.physics.numerics.errors import InputError
from tests.contact.pressure_problem import FIXED_SWEEPS, PressureProblem, solve

AIR = OutsideAir(largest=1.08e5)
VOLUME = 5e-6


def random_problem(n: int, k: int, seed: int, mu: float = 0.5, loss: float = 0.0) -> PressureProblem:
    """Contacts that yield 0.3 mm/N and cavities of 5 ml with walls of 10 cm2, all coupled.

    loss: share of the air that fills the cavities at rest which is gone.
    """
    rng = np.random.default_rng(seed)
    rows = 3 * n + k
    half = rng.normal(size=(rows, rows))
    # so well conditioned that plain sweeps converge whatever the friction
    w = 1e-4 * (half @ half.T / rows + 2.0 * np.eye(rows))
    area = np.concatenate([np.ones(3 * n), np.full(k, 1e-3)])
    w *= area[:, None] * area
    b = np.concatenate([2e-3 * rng.normal(size=3 * n), VOLUME * rng.uniform(0.9, 1.2, size=k)])
    amount = np.full(k, (1.0 - loss) * AIR.amount(AIR.atmosphere, VOLUME))
    return PressureProblem(
        w, b, np.full(n, mu), amount, np.full(k, AIR.atmosphere), np.zeros(k, bool), AIR
    )  # fmt: skip


def offsets(problem: PressureProblem, r: np.ndarray, pressure: np.ndarray) -> np.ndarray:
    return problem.w @ np.concatenate([r, pressure - problem.air.atmosphere]) + problem.b


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 6), st.integers(0, 3), st.integers(0, 2**32 - 1), st.floats(0.0, 0.8), st.floats(-0.3, 0.5)
)
def test_contacts_keep_signorini_and_coulomb_and_cavities_the_gas_law(n, k, seed, mu, loss):
    problem = random_problem(n, k, seed, mu, loss)
    result = solve(problem, Stop(1e-10))
    assert result.converged
    assert result.gas_residual <= 1e-10
    u = offsets(problem, result.r, result.pressure)
    free = problem.b + problem.w[:, 3 * n :] @ (result.pressure - AIR.atmosphere)
    assert natural_map_residual(problem.w[: 3 * n, : 3 * n], free[: 3 * n], problem.mu, result.r) <= 1e-9
    # volumes of 5e-6 m3 to a few roundings
    np.testing.assert_allclose(result.volume, u[3 * n :], rtol=0, atol=1e-20)
    assert (result.pressure <= AIR.largest).all()
    shut = result.pressure < AIR.largest
    np.testing.assert_array_equal(result.amount[shut], problem.amount[shut])
    assert (result.amount <= problem.amount).all()
    held = np.maximum(result.volume, 0.0) * result.pressure / AIR.rt
    np.testing.assert_allclose(result.amount, held, rtol=1e-10)


@pytest.mark.parametrize("accelerated", [True, False])
@pytest.mark.parametrize(("n", "k", "mu"), [(8, 1, 0.0), (8, 1, 0.6), (10, 2, 0.3)])
def test_the_answer_is_that_of_contacts_alone_under_the_pressures_that_the_gas_law_asks_for(
    n, k, mu, accelerated
):
    """Pressures by a general root finder, the contacts solved to the end for each of its trials."""
    problem = random_problem(n, k, 11, mu, loss=0.2)

    def contacts(p):
        b = problem.b[: 3 * n] + problem.w[: 3 * n, 3 * n :] @ (p - AIR.atmosphere)
        return solve_contacts(ContactProblem(problem.w[: 3 * n, : 3 * n], b, problem.mu), Stop(1e-13)).r

    def excess(log_p):
        p = np.exp(log_p)
        return p * offsets(problem, contacts(p), p)[3 * n :] / (problem.amount * AIR.rt) - 1.0

    found = root(excess, np.full(k, math.log(0.9 * AIR.atmosphere)), tol=1e-13)
    p = np.exp(found.x)
    assert np.abs(found.fun).max() < 1e-9
    assert (p < AIR.largest).all()
    result = solve(problem, Stop(1e-11), accelerated=accelerated)
    assert result.converged
    assert (result.r > 0.0).any()
    np.testing.assert_allclose(result.pressure, p, rtol=1e-9)
    np.testing.assert_allclose(result.r, contacts(p), atol=1e-7 * np.abs(result.r).max())


def test_cavities_that_share_their_walls_solve_their_laws_in_every_sweep():
    """Five cavities whose W_pp is nearly of rank one; one has lost air, another has too much."""
    problem = random_problem(6, 5, 3)
    w = problem.w.copy()
    w[-5:, -5:] += 3e-10 * np.ones((5, 5))
    problem = replace(problem, w=w, amount=problem.amount * [1.0, 0.4, 1.0, 1.3, 0.9])
    for sweeps in (1, 2, 3):
        assert solve(problem, Stop(0.0, sweeps)).gas_residual <= 1e-10
    assert solve(problem, Stop(1e-10)).converged


def test_a_transient_past_the_largest_pressure_leaks_nothing():
    """The walls have passed each other before the contacts push them apart: a first pressure is P_max."""
    area, yields = 1e-3, 1e-4
    # one contact in the middle of a wall that yields as a whole
    w = yields * np.outer([1.0, 0.0, 0.0, area], [1.0, 0.0, 0.0, area])
    w[1, 1] = w[2, 2] = yields
    w[3, 3] *= 1.01
    b = np.array([-4e-3, 0.0, 0.0, VOLUME - 4e-3 * area])
    n = np.array([AIR.amount(0.95 * AIR.atmosphere, VOLUME)])
    passive, start = np.array([False]), np.array([AIR.atmosphere])
    alone = PressureProblem(w[3:, 3:], b[3:], np.zeros(0), n, start, passive, AIR)
    assert solve(alone, Stop()).amount[0] < 0.9 * n[0]
    together = PressureProblem(w, b, np.zeros(1), n, start, passive, AIR)
    for stop in (Stop(1e-10), FIXED_SWEEPS):
        result = solve(together, stop)
        assert result.pressure[0] < AIR.largest
        assert result.amount[0] == n[0]


def test_a_given_pressure_is_kept_and_the_air_follows_the_volume():
    problem = random_problem(8, 2, 5)
    given_p = np.array([0.85e5, 0.93e5])
    active = replace(problem, pressure=given_p, active=np.array([True, True]))
    result = solve(active, Stop(1e-11))
    np.testing.assert_array_equal(result.pressure, given_p)
    assert result.volume.max() > 0.0
    np.testing.assert_allclose(result.amount, given_p * np.maximum(result.volume, 0.0) / AIR.rt, rtol=1e-14)
    b = problem.b[:24] + problem.w[:24, 24:] @ (given_p - AIR.atmosphere)
    alone = solve_contacts(ContactProblem(problem.w[:24, :24], b, problem.mu), Stop(1e-12))
    np.testing.assert_allclose(result.r, alone.r, atol=1e-8 * np.abs(alone.r).max())


def test_fifty_sweeps_are_the_thesis_s_stop_and_the_status_says_how_far_they_came():
    problem = random_problem(12, 1, 2)
    # what each row yields by itself is taken away, and sweeps converge slowly
    alone = np.append(np.full(36, 1.99e-4), 1.99e-4 * 1e-3**2)
    problem = replace(problem, w=problem.w - np.diag(alone))
    result = solve(problem, FIXED_SWEEPS, accelerated=False)
    assert result.iterations == 50
    assert not result.converged
    assert result.reason == "iterations"
    assert result.residual == pytest.approx(
        natural_map_residual(
            problem.w[:36, :36],
            problem.b[:36] + problem.w[:36, 36:] @ (result.pressure - AIR.atmosphere),
            problem.mu,
            result.r,
        ),
        rel=0.1,  # its own counts what the cavity asks for beside b, not with it
    )


def test_a_warm_start_at_the_solution_is_left_within_a_sweep():
    problem = random_problem(8, 2, 7)
    first = solve(problem, Stop(1e-12))
    again = solve(replace(problem, warm=first.r, pressure=first.pressure), Stop(1e-9))
    assert again.iterations == 1
    np.testing.assert_allclose(again.pressure, first.pressure, rtol=1e-10)


def test_the_servo_s_kernels_leave_w_and_b_as_they_were_to_the_bit():
    problem = random_problem(9, 2, 1)
    w, b = problem.w.copy(), problem.b.copy()
    x, u = np.zeros(29), np.zeros(29)
    gas, a = make_gas(AIR, problem.amount, problem.pressure, problem.active), make_workspace(9, 2)
    bound = begin(w, b, problem.mu, x, u, gas, True, a)
    advance(w, b, problem.mu, x, u, gas, 1e-8, bound, 500, a)
    assert finish(w, b, problem.mu, x, u, gas, a) <= 1e-10
    np.testing.assert_array_equal(w, problem.w)
    np.testing.assert_array_equal(b, problem.b)
    np.testing.assert_allclose(x[27:], gas.pressure - AIR.atmosphere)
    np.testing.assert_allclose(u, w @ x + b, rtol=0, atol=1e-12 * np.abs(u).max())


def test_the_air_follows_other_contact_forces_by_the_gas_law():
    """After `resume` p V = n R T of each cavity at W x + b of the forces that it was given."""
    problem, rng = random_problem(6, 2, 4), np.random.default_rng(0)
    x, u = np.zeros(20), np.zeros(20)
    gas, a = make_gas(AIR, problem.amount, problem.pressure, problem.active), make_workspace(6, 2)
    w, b = problem.w.copy(), problem.b.copy()
    bound = begin(w, b, problem.mu, x, u, gas, True, a)
    advance(w, b, problem.mu, x, u, gas, 1e-8, bound, 3, a)
    before, force = gas.pressure.copy(), rng.exponential(1.0, 6)
    x[:18:3], x[1:18:3], x[2:18:3] = force, 0.3 * force, 0.0
    resume(w, b, problem.mu, x, u, gas, 1e-8, bound, a)
    np.testing.assert_allclose(u, w @ x + b, rtol=0, atol=1e-12 * np.abs(u).max())
    np.testing.assert_allclose(gas.pressure * gas.area * u[18:], problem.amount * AIR.rt, rtol=SOLVED)
    np.testing.assert_allclose(x[18:], gas.area * (gas.pressure - AIR.atmosphere), rtol=1e-12)
    assert (np.abs(gas.pressure - before) > 1e-3 * before).all()
    # what is given in the end is of the best forces, the pressures too, although those were no solution
    assert finish(w, b, problem.mu, x, u, gas, a) <= SOLVED
    assert (np.abs(x[:18:3] - force) > 1e-3 * force).all()
    np.testing.assert_allclose(u, problem.w @ x + problem.b, rtol=0, atol=1e-12 * np.abs(u).max())
    np.testing.assert_allclose(gas.pressure * u[18:], problem.amount * AIR.rt, rtol=SOLVED)
    np.testing.assert_array_equal(x[18:], gas.pressure - AIR.atmosphere)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"b": np.zeros(6)}, "rows"),
        ({"w": np.full((7, 7), np.nan)}, "finite"),
        ({"w": np.eye(7) + 0.1 * np.eye(7, k=-6)}, "W_pc"),
        ({"w": np.diag(np.append(np.ones(6), -1e-9))}, "W_pp"),
        ({"mu": np.array([0.1, -0.1])}, "negative"),
        ({"amount": np.array([-1e-6])}, "amount|holds"),
        ({"pressure": np.array([0.0])}, "positive"),
        ({"w": np.zeros((7, 7)), "b": -np.ones(7)}, "yield"),
    ],
)
def test_a_problem_that_is_none_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        replace(random_problem(2, 1, 0), **change)
