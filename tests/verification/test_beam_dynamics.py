"""Beams in motion: Timoshenko's frequencies, block-tridiagonal algebra, holds and reactions, taut wires."""

import numpy as np
import pytest
import scipy.linalg as sl
from scipy.optimize import brentq

from palpo.physics.bodies.chain import (
    chain_advance,
    chain_assemble,
    chain_energy,
    chain_hold_direct,
    chain_reaction,
)
from palpo.physics.bodies.chain_body import BeamBody
from palpo.physics.bodies.chain_factor import chain_factor, chain_inverse, chain_solve
from palpo.physics.bodies.chain_models import beam_model, chain_work
from palpo.physics.fem.beam import circular_section
from palpo.physics.fem.material import Material
from palpo.physics.mesh.beam import BeamLine

LENGTH, RADIUS = 0.3, 0.01
NYLON = Material(youngs_modulus=2e9, poisson_ratio=0.3, density=1150.0)
STILL = (0.0, 0.0, 0.0)


def line(n_elements: int = 10) -> np.ndarray:
    return np.linspace(0.0, LENGTH, n_elements + 1)[:, None] * np.array([1.0, 0.0, 0.0])


def timoshenko_frequencies(count: int) -> np.ndarray:
    """Clamped-free angular frequencies [rad/s] as roots of the exact transfer matrix.

    w' = psi + Q/kGA,  psi' = M/EI,  M' = -Q - rho I om^2 psi,  Q' = -rho A om^2 w
    (M = EI psi', Q = kGA (w' - psi)); the state (w, psi, M, Q) starts at (0, 0, M0, Q0) and must end with M
    = Q = 0.
    """
    s = circular_section(RADIUS, NYLON.poisson_ratio)
    EI = NYLON.youngs_modulus * s.second_moment_z
    kGA = s.shear_y * NYLON.lame()[1] * s.area
    rho = NYLON.density

    def end(om: float) -> float:
        a = np.zeros((4, 4))
        a[0, 1], a[0, 3], a[1, 2] = 1.0, 1.0 / kGA, 1.0 / EI
        a[2, 3], a[2, 1], a[3, 0] = -1.0, -rho * s.second_moment_z * om**2, -rho * s.area * om**2
        return np.linalg.det(sl.expm(a * LENGTH)[2:, 2:])

    slender = np.array([1.8751, 4.6941, 7.8548])[:count] ** 2 / LENGTH**2 * np.sqrt(EI / (rho * s.area))
    return np.array([brentq(end, 0.85 * om, 1.02 * om) for om in slender])


def test_frequencies_one_to_three_are_timoshenkos_within_two_percent():
    exact = timoshenko_frequencies(3)
    body = BeamBody("beam", BeamLine(line(), RADIUS), NYLON, [0], STILL)
    om = np.sqrt(sl.eigh(body.K, body.M, eigvals_only=True))
    # bending comes in pairs (y and z); the first six are bending here
    assert om[0:6:2] == pytest.approx(exact, rel=0.02)
    assert om[1:6:2] == pytest.approx(exact, rel=0.02)


def measured_frequency(mode: int, h: float, periods: int = 8) -> float:
    """Angular frequency [rad/s] of the free vibration that starts in a mode of bending in the plane x, y."""
    body = BeamBody("beam", BeamLine(line(), RADIUS), NYLON, [0], STILL)
    plane = np.sort(np.concatenate([np.arange(1, body.n_dof, 6), np.arange(5, body.n_dof, 6)]))
    om2, shape = sl.eigh(body.K[np.ix_(plane, plane)], body.M[np.ix_(plane, plane)])
    v = np.zeros(body.n_dof)
    v[plane] = shape[:, mode] / np.abs(shape[:, mode]).max() * 1e-3
    body.v = v
    om = np.sqrt(om2[mode])
    v0, times, last = v / np.linalg.norm(v), [], 1.0
    for k in range(round(periods * 2.0 * np.pi / om / h)):
        body.substeps(None, h, np.zeros((1, 1, 6)), [0])
        now = body.v @ v0
        if now * last < 0.0:
            times.append((k + 1) * h - h * now / (now - last))
        last = now
    return np.pi / np.mean(np.diff(times))


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_free_vibration_rings_at_timoshenkos_frequencies(mode):
    exact = timoshenko_frequencies(3)[mode]
    # backward Euler lowers a frequency by (om h)^2 / 3: 0.03% at 200 steps a period
    assert measured_frequency(mode, 2.0 * np.pi / exact / 200.0) == pytest.approx(exact, rel=0.02)


def moving_chain(fixed=()):
    """Model, state and workspace of a damped beam in the middle of a motion."""
    model, state = beam_model(line(), 2e-3, Material(2e9, 0.3, 1150.0, 0.2, 1e-4), fixed)
    work = chain_work(11)
    rng = np.random.default_rng(0)
    free = ~model.fixed
    state.v[free] = 0.3 * rng.standard_normal((free.sum(), 3))
    state.w[free] = 3.0 * rng.standard_normal((free.sum(), 3))
    for _ in range(5):
        single_step(model, state, 1e-3, work)
    return model, state, work


def single_step(model, state, h, work) -> np.ndarray:
    chain_assemble(model, state, h, work)
    assert chain_factor(work) == 0
    dv = np.zeros((model.mass.size, 6))
    chain_solve(work, work.rhs, dv)
    chain_advance(model, state, dv + np.hstack([state.v, state.w]), h)
    return dv


def dense(work) -> np.ndarray:
    n = len(work.D)
    A = np.zeros((6 * n, 6 * n))
    for i in range(n):
        A[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = work.D[i]
    for i in range(n - 1):
        A[6 * i : 6 * i + 6, 6 * i + 6 : 6 * i + 12] = work.U[i]
        A[6 * i + 6 : 6 * i + 12, 6 * i : 6 * i + 6] = work.U[i].T
    return A


@pytest.mark.parametrize("h", [1e-3, 2e-2])
@pytest.mark.parametrize("fixed", [(), (0,), (0, 5)], ids=["free", "clamped", "clamped twice"])
def test_block_tridiagonal_solve_and_inverse_equal_dense_ones(fixed, h):
    model, state, work = moving_chain(fixed)
    chain_assemble(model, state, h, work)
    A, b = dense(work), work.rhs.copy()
    assert np.abs(A - A.T).max() <= 1e-15 * np.abs(A).max()
    assert chain_factor(work) == 0
    x, inverse = np.zeros((11, 6)), np.zeros((66, 66))
    chain_solve(work, b, x)
    chain_inverse(work, inverse)
    exact = np.linalg.inv(A)
    # stretching against bending: the condition number reaches 1e7
    assert np.abs(inverse - exact).max() < 1e-8 * np.abs(exact).max()
    assert np.abs(x.ravel() - exact @ b.ravel()).max() < 1e-8 * np.abs(x).max()
    again = b.copy()
    chain_solve(work, again, again)
    assert np.array_equal(again, x)


def test_a_non_finite_state_is_a_status_and_not_a_crash():
    model, state, work = moving_chain()
    state.x[4, 0] = np.nan
    chain_assemble(model, state, 1e-3, work)
    assert chain_factor(work) > 0


@pytest.mark.parametrize("frame", [0, 4, 10])
@pytest.mark.parametrize("mask", [[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1], [0, 1, 0, 0, 0, 1]])
def test_a_direct_hold_imposes_its_freedoms_exactly_and_its_reaction_closes_the_balance(frame, mask):
    mask = np.array(mask, dtype=bool)
    model, state, work = moving_chain()
    h, wanted = 1e-3, np.array([0.1, -0.2, 0.05, 1.0, -0.5, 0.3])
    chain_assemble(model, state, h, work)
    A, b = dense(work), work.rhs.ravel().copy()
    chain_hold_direct(work, state, frame, mask, wanted)
    held = dense(work)
    assert np.abs(held - held.T).max() <= 1e-15 * np.abs(A).max()
    assert chain_factor(work) == 0
    dv, reaction = np.zeros((11, 6)), np.zeros(6)
    chain_solve(work, work.rhs, dv)
    v_new = np.hstack([state.v, state.w]) + dv
    assert np.abs(v_new[frame, mask] - wanted[mask]).max() < 1e-12
    chain_reaction(work, dv, h, reaction)
    assert np.all(reaction[~mask] == 0.0)
    force = np.zeros((11, 6))
    force[frame] = reaction
    residual = A @ dv.ravel() - b - h * force.ravel()
    assert np.abs(residual).max() < 1e-9 * np.abs(h * reaction).max()


def test_the_reaction_at_the_held_end_of_a_hanging_wire_is_its_weight():
    nodes = line() @ np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    model, state = beam_model(nodes, 1e-3, Material(2e9, 0.3, 1150.0, 20.0, 1e-3))
    work, hold, reaction = chain_work(11), np.ones(6, dtype=bool), np.zeros(6)
    for _ in range(2000):
        chain_assemble(model, state, 1e-3, work)
        chain_hold_direct(work, state, 0, hold, np.zeros(6))
        assert chain_factor(work) == 0
        dv = np.zeros((11, 6))
        chain_solve(work, work.rhs, dv)
        chain_reaction(work, dv, 1e-3, reaction)
        chain_advance(model, state, dv + np.hstack([state.v, state.w]), 1e-3)
    weight = 1150.0 * np.pi * 1e-6 * LENGTH * 9.81
    # what the decay exp(-10 t) of the stretch has left after two seconds, and rounding of a stiffness of 2e5
    # N/m
    assert reaction[1] == pytest.approx(weight, rel=1e-6)
    assert np.abs(reaction[[0, 2, 3, 4, 5]]).max() < 1e-6 * weight


@pytest.mark.parametrize("h", [1e-3, 2e-3, 5e-3, 1e-2, 2e-2])
@pytest.mark.parametrize("load", [0.01, 0.1, 0.3])
def test_a_wire_that_carries_a_weight_swings_out_at_any_step(h, load):
    nodes = np.arange(11)[:, None] * np.array([0.0, -0.02, 0.0])
    model, state = beam_model(nodes, 5e-4, Material(2e9, 0.3, 1150.0, 0.0, 1e-3), [0])
    end = np.r_[np.zeros(10), load]
    model = model._replace(mass=model.mass + end, weight=model.weight + end)
    state.v[1:] = 0.1 * np.random.default_rng(0).standard_normal((10, 3))
    work = chain_work(11)
    start = chain_energy(model, state)
    top = start
    for _ in range(round(2.0 / h)):
        single_step(model, state, h, work)
        top = max(top, chain_energy(model, state))
    # explicit string tension diverges at 5 ms and more; 1e-3 of the weight's m g L is the stretch that
    # the first, violent step (nodes at 0.1 m/s across elements of 20 mm) costs at the longest h
    assert top <= start + 1e-3 * load * 9.81 * 0.2
    # what is left is a pendulum of the initial speed or less
    assert np.abs(state.v).max() < 0.25
