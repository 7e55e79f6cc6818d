"""Contacts of walls that shut in air: Newton's method, the air eliminated as a border."""

import numpy as np
import pytest
from numpy.typing import NDArray

from palpo.physics.contact.laws import natural_map_residual
from palpo.physics.contact.problem import Stop
from palpo.physics.contract.stages import make_problem
from palpo.physics.engine.pressurising import solve_pressures
from palpo.physics.engine.solve import make_solver
from palpo.physics.exchange.handle import Handle
from palpo.physics.gas.bordered_newton import _eliminate, make_bordered
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.pressure import SOLVED, make_gas
from tests.contact.pressure_problem import PressureProblem, solve
from tests.contact.test_pressure_rows import random_problem

Floats = NDArray[np.float64]


@pytest.mark.parametrize(
    ("active", "at_most"), [((), ()), ((1,), ()), ((), (2,))], ids=["passive", "one given", "one at P_max"]
)
def test_the_border_is_the_schur_complement_of_the_linearised_gas_laws(active, at_most):
    """W' = W_cc - W_cp (W_pp + K)^-1 W_pc, K = n R T / p^2, over the cavities whose pressure answers."""
    problem = random_problem(5, 3, 7)
    rows, k = 15, 3
    given = np.isin(np.arange(k), active)
    pressure = np.array([0.9e5, 1.0e5, 0.95e5])
    pressure[list(at_most)] = problem.air.largest
    gas = make_gas(problem.air, problem.amount, pressure, given)
    a, own = make_bordered(5, k), problem.w[:rows, :rows].copy()
    _eliminate(problem.w, np.zeros(rows + k), gas, own, a)
    answers = np.flatnonzero(~given & (pressure < problem.air.largest))
    edge = problem.w[rows + answers, :rows]
    kept = np.diag(problem.amount[answers] * problem.air.rt / pressure[answers] ** 2)
    inner = problem.w[np.ix_(rows + answers, rows + answers)] + kept
    expected = problem.w[:rows, :rows] - edge.T @ np.linalg.solve(inner, edge)
    np.testing.assert_allclose(own, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def rim(pairs: int, beside: float, seed: int = 3) -> PressureProblem:
    """The rim of a cup that is pulled at: so many contacts beside others, that share of the way to the next.

    Each place yields by itself, and all of them with the cup: six rigid motions. The offsets of contacts side
    by side disagree by micrometres, as those of two meshes do. The air has a little more room than it fills.
    """
    m, rng = 12, np.random.default_rng(seed)
    angle = 2.0 * np.pi * np.arange(m) / m
    places = 0.011 * np.column_stack([np.zeros(m), np.cos(angle), np.sin(angle)])  # rows (n, t1, t2)
    share = np.vstack([np.eye(m), ((1.0 - beside) * np.eye(m) + beside * np.roll(np.eye(m), 1, 1))[:pairs]])
    points = share @ places
    rigid = np.zeros((3 * len(points), 6))
    for k, x in enumerate(points):
        rigid[3 * k : 3 * k + 3, :3] = np.eye(3) * 25e-3
        rigid[3 * k : 3 * k + 3, 3:] = np.cross(np.eye(3), x) * 3.0
    half = np.hstack([rigid, 0.03 * np.kron(share, np.eye(3))])
    area = np.zeros(half.shape[1])
    area[0], area[6::3] = 3.8e-4 * 25e-3, 1e-6
    half = np.vstack([half, area])
    w = half @ half.T
    rows = 3 * len(points)
    w[:rows, :rows] += 1e-6 * np.eye(rows)
    b = np.append(2e-6 * rng.standard_normal(rows), 1.15e-6)
    b[:rows:3] += 6e-5
    air = OutsideAir(102e3)
    amount = air.amount(air.atmosphere, 1.083e-6)
    return PressureProblem(
        w, b, np.full(len(points), 0.5), np.array([amount]), np.array([96.5e3]), np.zeros(1, bool), air
    )


def in_the_servo(problem: PressureProblem, tolerance: float, sweeps: int) -> tuple[Floats, Floats, float]:
    """Forces and pressures that the engine's solver of steps with cavities finds, and its residual."""
    n, k = problem.n_contacts, problem.n_cavities
    p, solver = make_problem(n + k, k), make_solver(n + 1, tolerance, sweeps, walls=(n, k))
    p.rows[:] = 0, 3 * (n + k)
    numbers = np.append(np.arange(3 * n), 3 * n + 3 * np.arange(k))
    p.w.reshape(3 * (n + k), -1)[np.ix_(numbers, numbers)] = problem.w
    p.b[numbers], p.mu[:n] = problem.b, problem.mu
    gas, air = p.gas, problem.air
    gas.count[0], gas.air[:] = k, (air.atmosphere, air.largest, air.rt)
    gas.active[:], gas.pressure[:], gas.amount[:] = problem.active, problem.pressure, problem.amount
    solver.told["tolerance"] = tolerance
    solve_pressures(Handle(p), Handle(solver))
    return p.r[: 3 * n].copy(), gas.pressure.copy(), float(solver.told[0]["residual"])


@pytest.mark.portable
@pytest.mark.parametrize("seed", range(3))
def test_contacts_side_by_side_on_a_rim_are_solved_where_sweeps_alone_are_not(seed):
    problem = rim(8, 0.02, seed)
    rows = 3 * problem.n_contacts
    swept = solve(problem, Stop(1e-4, 30))
    assert swept.residual > 1e-3, "or this rim is no trial"
    r, pressure, residual = in_the_servo(problem, 1e-4, 30)
    assert residual <= 1e-4
    b = problem.b[:rows] + problem.w[:rows, rows:] @ (pressure - problem.air.atmosphere)
    assert natural_map_residual(problem.w[:rows, :rows], b, problem.mu, r) <= 2e-4
    volume = problem.b[rows] + problem.w[rows, :rows] @ r
    volume += problem.w[rows, rows] * (pressure[0] - problem.air.atmosphere)
    assert pressure[0] * volume == pytest.approx(problem.amount[0] * problem.air.rt, rel=10.0 * SOLVED)


@pytest.mark.parametrize("seed", range(4))
def test_it_finds_the_pressures_that_sweeps_find_without_limit(seed):
    problem = random_problem(8, 2, seed)
    exact = solve(problem, Stop(1e-10, 20000))
    assert exact.converged
    r, pressure, residual = in_the_servo(problem, 1e-8, 2000)
    assert residual <= 1e-8
    np.testing.assert_allclose(pressure, exact.pressure, rtol=1e-6)
    rows = 3 * problem.n_contacts
    given = problem.w[:rows, rows:] @ (pressure - problem.air.atmosphere)
    asked = problem.w[:rows, rows:] @ (exact.pressure - problem.air.atmosphere)
    np.testing.assert_allclose(
        problem.w[:rows, :rows] @ r + given, problem.w[:rows, :rows] @ exact.r + asked,
        rtol=0, atol=1e-6 * np.abs(problem.b[:rows]).max(),
    )  # fmt: skip
