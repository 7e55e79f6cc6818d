"""Passive midpoint integration: order, exact energy, passivity; of linear bodies and of the held plug."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.admittance import make_plug, plug_advance, plug_energy, plug_free
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.numerics.errors import InputError
from palpo.studies.reference.passive_midpoint import CorotationalMidpoint, LinearBody

NONE = np.zeros(6)
MASS = np.array([0.5, 0.5, 0.5, 1e-3, 2e-3, 3e-3])
DAMPING_GAIN = np.array([20.0, 20.0, 20.0, 0.02, 0.02, 0.02])
STIFFNESS = np.array([2e3, 1e3, 3e3, 2.0, 2.0, 2.0])


def matrices(n: int, seed: int = 0, damped: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    M, D, K = (a @ a.T for a in rng.standard_normal((3, n, n)))
    return M + np.eye(n), D * damped, 1e4 * K


def oscillator(step: float) -> LinearBody:
    """1 kg on 400 N/m: 20 rad/s."""
    return LinearBody(np.array([[1.0]]), np.array([[0.0]]), np.array([[400.0]]), step)


def test_the_rule_is_of_second_order():
    errors = []
    for n in (100, 200, 400):
        body = oscillator(1.0 / n)
        body.v[:] = 1.0
        for _ in range(n):
            body.step()
        errors.append(abs(body.x[0] - np.sin(20.0) / 20.0) + abs(body.v[0] - np.cos(20.0)))
    # the error of the phase is w^3 T^2 / 12, 5% of a radian at the coarsest
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx([2.0, 2.0], abs=0.1)


@pytest.mark.parametrize("step", [1e-3, 1.0, 1e3])
def test_an_oscillator_keeps_its_energy_at_any_step(step):
    body = oscillator(step)
    body.x[:], body.v[:] = 0.1, 3.0
    energy = body.energy()
    for _ in range(1000):
        body.step()
    # a thousand roundings of 1e-16; at w T = 2e4 the velocity is a difference of numbers w T times larger
    assert body.energy() == pytest.approx(energy, rel=1e-12 * max(1.0, 20.0 * step))


def test_an_oscillator_rings_at_the_frequency_of_the_cayley_transform():
    w, step = 20.0, 0.05
    body = oscillator(step)
    body.x[:] = 1.0
    warped = 2.0 / step * np.arctan(0.5 * w * step)
    for k in range(1, 200):
        body.step()
        assert body.x[0] == pytest.approx(np.cos(warped * k * step), abs=1e-11)


@given(
    seed=st.integers(0, 100),
    step=st.sampled_from([1e-5, 1e-3, 1e-1]),
    damped=st.booleans(),
    sparse=st.booleans(),
)
@settings(max_examples=20)
def test_work_is_the_energy_gained_plus_what_damping_took(seed, step, damped, sparse):
    n = 6
    M, D, K = (sp.csr_array(a) if sparse else a for a in matrices(n, seed, damped))
    body = LinearBody(M, D, K, step)
    rng = np.random.default_rng(seed)
    body.x[:], body.v[:] = rng.standard_normal((2, n))
    balance = start = largest = body.energy()
    for f in 100.0 * rng.standard_normal((50, n)):
        vh = body.step(f)
        work, lost = step * f @ vh, step * vh @ (D @ vh)
        assert lost >= 0.0
        assert damped or lost == 0.0
        balance += work - lost
        largest = max(largest, body.energy())
    # the condition of Mh is below 1e6, and (6) sums fifty steps
    assert balance == pytest.approx(body.energy(), abs=1e-10 * (start + largest))


def test_a_free_body_pushed_by_a_constant_force_moves_by_the_exact_parabola():
    body = LinearBody(np.array([[2.0]]), np.zeros((1, 1)), np.zeros((1, 1)), 0.1)
    for _ in range(30):
        body.step(np.array([4.0]))
    assert (body.x[0], body.v[0]) == pytest.approx((0.5 * 2.0 * 9.0, 6.0), rel=1e-13)


def clamped_bar(alpha: float = 0.0, beta: float = 0.0) -> SoftBody:
    mesh = generate.block((0.04, 0.006, 0.006), (6, 1, 1))
    clamped = np.flatnonzero(mesh.nodes[:, 0] < mesh.nodes[:, 0].min() + 1e-9)
    return SoftBody("bar", mesh, Material(164.76e6, 0.35, 1050.0, alpha, beta), clamped, (0.0, 0.0, 0.0))


def test_the_corotational_body_moves_as_its_linear_model_while_displacements_are_small():
    body = clamped_bar(beta=1e-5)
    linear = LinearBody(body.M, 1e-5 * body.K, body.K, 1e-3)
    moving = CorotationalMidpoint(body, 1e-3)
    f = np.zeros(body.n_dof)
    f[-2] = 1e-5
    for _ in range(20):
        moving.step(f)
        linear.step(f)
    moved = (body.x - body.mesh.nodes)[body.free].ravel()
    # displacements of 1e-9 m turn elements by 1e-7 rad, which is the relative error of the linear model
    assert np.abs(moved - linear.x).max() < 1e-5 * np.abs(linear.x).max()


def test_the_linearisation_feeds_energy_into_a_stiff_corotational_body_but_not_into_its_linear_model():
    body = clamped_bar()
    linear, moving = LinearBody(body.M, 0.0 * body.K, body.K, 1e-3), CorotationalMidpoint(body, 1e-3)
    body.v = np.tile([0.0, 10.0, 0.0], body.free.size)
    linear.v[:] = body.v
    start = most = body.energy()
    assert start == pytest.approx(linear.energy(), rel=1e-12)
    for _ in range(60):
        linear.step()
        moving.step()
        most = max(most, body.energy())
        assert linear.energy() == pytest.approx(start, rel=1e-10)
    # 10 mm a step in elements of 7 mm: the corotational energy more than doubles
    assert most > 2.0 * start


def test_a_body_that_has_diverged_is_reported():
    body = clamped_bar()
    body.x[-1] = np.nan
    with pytest.raises(FloatingPointError, match="diverged"):
        CorotationalMidpoint(body, 1e-3).step()


def run_plug(model, state, path, wrenches):
    """Largest error of the books (6) over a run, relative to the largest energy."""
    start, largest, worst = plug_energy(model, state), 0.0, 0.0
    for (p, q), wrench in zip(path, wrenches, strict=True):
        plug_free(model, state, p, q, NONE)
        plug_advance(model, state, wrench)
        energy = plug_energy(model, state)
        booked = start + state.work["forces"][0] + state.work["target"][0] - state.work["damping"][0]
        largest, worst = max(largest, energy), max(worst, abs(energy - booked))
    return worst / largest


@pytest.mark.parametrize("step", [1e-4, 1e-3, 1e-1])
def test_the_energy_of_a_plug_whose_target_moves_is_booked_exactly_in_translation(step):
    model, state = make_plug(MASS, DAMPING_GAIN, STIFFNESS, step)
    rng = np.random.default_rng(0)
    path = [
        (p, np.array([1.0, 0.0, 0.0, 0.0]))
        for p in np.cumsum(0.1 * step * rng.standard_normal((300, 3)), axis=0)
    ]
    wrenches = np.hstack([10.0 * rng.standard_normal((300, 3)), np.zeros((300, 3))])
    assert run_plug(model, state, path, wrenches) < 1e-12
    assert state.work["damping"][0] > 0.0


def test_turning_about_one_axis_is_booked_exactly_at_any_angle():
    model, state = make_plug(np.repeat([0.5, 2e-3], 3), DAMPING_GAIN, STIFFNESS, 1e-3)
    axis = np.array([0.6, 0.0, 0.8])
    angles = 2.0 * np.sin(np.arange(1, 1001) * 0.005)
    path = [(np.zeros(3), Rotation.from_rotvec(a * axis).as_quat(scalar_first=True)) for a in angles]
    wrenches = np.tile(np.r_[np.zeros(3), 0.1 * axis], (1000, 1))
    assert run_plug(model, state, path, wrenches) < 1e-11


def tumbling(n: int, seconds: float = 1.0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Poses of a target that turns about no fixed axis, at up to 9 rad/s for a second."""
    t = np.arange(1, n + 1) * seconds / n
    turns = np.stack([0.8 * np.sin(6 * t), 0.5 * np.sin(9 * t), 0.6 * t], axis=1)
    return [(np.zeros(3), Rotation.from_rotvec(a).as_quat(scalar_first=True)) for a in turns]


@pytest.mark.parametrize("step", [1e-3, 1e-1])
@pytest.mark.parametrize("torque", [0.1, 10.0])
def test_the_energy_of_a_tumbling_plug_is_booked_exactly(step, torque):
    """At errors of milliradians, and of radians."""
    model, state = make_plug(MASS, DAMPING_GAIN, STIFFNESS, step)
    wrenches = np.hstack([np.zeros((300, 3)), torque * np.random.default_rng(0).standard_normal((300, 3))])
    assert run_plug(model, state, tumbling(300, 300 * step), wrenches) < 1e-12
    assert state.work["damping"][0] > 0.0


def test_a_target_that_jumps_moves_no_plug_that_is_free_of_it():
    """A hand that takes hold elsewhere: whatever the jump, the plug stays, and the error is the way back."""
    model, state = make_plug(MASS, NONE, NONE, 1e-3)
    for p, q in tumbling(7, 2.0):
        plug_free(model, state, p + 0.1, q, NONE)
        plug_advance(model, state, NONE)
        assert np.abs(state.position).max() < 1e-15
    # and unturned to rounding, where it jumps once from rest
    model, state = make_plug(MASS, NONE, NONE, 1e-3)
    plug_free(model, state, np.zeros(3), tumbling(7)[-1][1], NONE)
    plug_advance(model, state, NONE)
    assert state.orientation == pytest.approx([1.0, 0.0, 0.0, 0.0], abs=1e-15)


def test_a_plug_turns_with_its_velocity_to_second_order_in_the_angle_of_its_error():
    """They differ by -e x (e x (V - W)) / 12, but for a share of |e| / 2 of it, and half a step's turn."""
    step, most = 1e-5, 0.0
    model, state = make_plug(MASS, DAMPING_GAIN, STIFFNESS, step)
    for k, (p, q) in enumerate(tumbling(4000, 0.04)):
        before = Rotation.from_quat(state.orientation, scalar_first=True)
        e = state.error[3:].copy()
        plug_free(model, state, p, q, NONE)
        plug_advance(model, state, np.array([0.0, 0.0, 0.0, 0.5, 0.5 * np.cos(400.0 * step * k), 0.0]))
        e = 0.5 * (e + state.error[3:])
        turned = Rotation.from_quat(state.orientation, scalar_first=True) * before.inv()
        slip = np.cross(e, np.cross(e, state.middle[3:] - state.target_velocity[3:])) / -12.0
        most = max(most, np.linalg.norm(slip))
        rest = np.linalg.norm(turned.as_rotvec() / step - state.middle[3:] - slip)
        assert rest < 0.7 * np.linalg.norm(e) * np.linalg.norm(slip) + 3e-4
    assert most > 5e-3


def test_a_held_plug_settles_where_the_hold_balances_the_load():
    model, state = make_plug(MASS, 4.0 * DAMPING_GAIN, STIFFNESS, 1e-3, orientation=(0.8, 0.6, 0.0, 0.0))
    load = np.array([1.0, -2.0, 3.0, 0.2, 0.0, -0.4])
    p, q = np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.0])
    for _ in range(4000):
        plug_free(model, state, p, q, load)
        plug_advance(model, state, NONE)
    assert state.error == pytest.approx(load / STIFFNESS, abs=1e-12)
    assert state.position - p == pytest.approx((load / STIFFNESS)[:3], abs=1e-12)


def test_a_target_of_constant_velocity_is_followed_without_lag():
    model, state = make_plug(MASS, DAMPING_GAIN, STIFFNESS, 1e-3)
    for k in range(1, 4001):
        plug_free(model, state, np.array([0.01e-3 * k, 0.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]), NONE)
        plug_advance(model, state, NONE)
    assert state.error == pytest.approx(np.zeros(6), abs=1e-13)
    assert state.velocity[0] == pytest.approx(0.01, rel=1e-10)


@pytest.mark.parametrize(
    ("gains", "words"),
    [
        ((np.zeros(6), NONE, NONE), "mass has the eigenvalue 0 but must be positive definite"),
        ((MASS, -DAMPING_GAIN, NONE), "damping has the eigenvalue -20 but must be positive semidefinite"),
        ((MASS, NONE, np.ones(5)), "stiffness must be six numbers"),
        ((MASS, NONE, np.arange(6.0)), "expected the same about all axes"),
    ],
)
def test_a_hold_that_is_not_passive_is_refused(gains, words):
    with pytest.raises(InputError, match=words):
        make_plug(*gains, 1e-3)


@pytest.mark.parametrize("step", [0.0, -1e-3, np.inf])
def test_a_step_that_is_not_positive_is_refused(step):
    with pytest.raises(InputError, match="expected a positive number"):
        oscillator(step)
