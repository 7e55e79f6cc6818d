"""Rigid bodies: exact angular momentum, energy that never grows, precession, static moments."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.chain_body import RigidBody
from palpo.physics.bodies.rigid import free_spin
from palpo.physics.numerics.errors import InputError

STILL = (0.0, 0.0, 0.0)


def step(body: RigidBody, h: float, wrench=None) -> None:
    body.linearise()
    body.advance(body.free_velocity(body.factor(h), h, wrench), h)


@given(
    moments=st.tuples(*[st.floats(1e-5, 1e-3)] * 3),
    spin=st.tuples(*[st.floats(-100.0, 100.0)] * 3),
    h=st.sampled_from([1e-3, 5e-3, 2e-2]),
)
@settings(max_examples=300, deadline=None)
def test_free_spin_never_gains_energy_whatever_the_spin_and_the_step(moments, spin, h):
    inertia = np.diag(moments)
    after = np.array(free_spin(inertia, spin, h))
    spin = np.array(spin)
    assert after @ inertia @ after <= spin @ inertia @ spin * (1.0 + 1e-12)


@pytest.mark.parametrize("axes", [Rotation.identity(), Rotation.from_rotvec([0.5, -0.9, 0.7])])
@pytest.mark.parametrize("h", [1e-3, 2e-2])
def test_a_tumbling_body_keeps_its_angular_momentum_to_rounding(h, axes):
    """Whatever the principal axes are in the body's own."""
    inertia = axes.as_matrix() @ np.diag([1e-5, 2e-5, 4e-5]) @ axes.as_matrix().T
    body = RigidBody("body", 0.1, 0.5 * (inertia + inertia.T), (0.1, 0.2, 0.0), gravity=STILL)
    body.v = np.array([0.3, -0.1, 0.2, 20.0, 15.0, -10.0])
    linear, angular = body.momentum()
    energy = body.energy()
    for _ in range(500):
        step(body, h)
        now = body.energy()
        assert now <= energy * (1.0 + 1e-12)
        energy = now
    assert np.abs(body.momentum()[0] - linear).max() < 1e-12 * np.abs(linear).max()
    # 500 quaternion products and solves of 1e-16 each
    assert np.abs(body.momentum()[1] - angular).max() < 1e-11 * np.abs(angular).max()


def test_a_body_spun_about_a_principal_axis_turns_uniformly_at_any_step():
    body = RigidBody("body", 0.1, np.diag([1e-5, 2e-5, 4e-5]), gravity=STILL)
    body.v = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 50.0])
    for _ in range(40):
        step(body, 2e-2)
    assert body.v[5] == pytest.approx(50.0, rel=1e-12)
    expected = Rotation.from_rotvec([0.0, 0.0, 50.0 * 0.8]).as_matrix()
    now = Rotation.from_quat(body.q[0], scalar_first=True).as_matrix()
    assert np.abs(now - expected).max() < 1e-11


def precession_error(h: float) -> float:
    """Error [rad] of the axis of a torque-free symmetric top after half a second."""
    transverse, axial = 2e-5, 3e-5
    body = RigidBody("top", 0.1, np.diag([transverse, transverse, axial]), gravity=STILL)
    spin = np.array([1.0, 0.0, 10.0])
    body.v = np.r_[STILL, spin]
    momentum = np.array([transverse * spin[0], 0.0, axial * spin[2]])
    rate = np.linalg.norm(momentum) / transverse
    n = round(0.5 / h)
    for _ in range(n):
        step(body, h)
    axis = Rotation.from_quat(body.q[0], scalar_first=True).apply([0.0, 0.0, 1.0])
    # closed form: the axis turns about L at |L| / I_transverse
    exact = Rotation.from_rotvec(rate * n * h * momentum / np.linalg.norm(momentum)).apply([0.0, 0.0, 1.0])
    return float(np.linalg.norm(axis - exact))


def test_precession_of_a_free_symmetric_top_is_first_order_in_the_step():
    errors = np.array([precession_error(h) for h in (2e-3, 1e-3, 5e-4, 2.5e-4)])
    orders = np.log2(errors[:-1] / errors[1:])
    # halving h halves the error; the second-order term is 10% at the coarsest
    assert np.all(np.abs(orders - 1.0) < 0.15)


def test_a_constant_moment_about_a_principal_axis_gives_the_exact_sum():
    body = RigidBody("body", 0.1, np.diag([1e-5, 2e-5, 4e-5]), gravity=STILL)
    wrench = np.array([0.0, 0.0, 0.0, 0.0, 1e-4, 0.0])
    for _ in range(20):
        step(body, 1e-3, wrench)
    # w_n = n h M / I, angle = h^2 M / I n (n + 1) / 2
    assert body.v[4] == pytest.approx(20e-3 * 5.0, rel=1e-12)
    angle = 1e-6 * 5.0 * 20 * 21 / 2
    assert 2.0 * np.arctan2(body.q[0, 2], body.q[0, 0]) == pytest.approx(angle, rel=1e-10)


@pytest.mark.parametrize(
    ("mass", "inertia", "words"),
    [(0.0, np.eye(3), "mass"), (1.0, np.diag([1.0, 1.0, 0.0]), "inertia"), (1.0, np.eye(2), "inertia")],
)
def test_a_rigid_body_without_mass_or_inertia_is_refused(mass, inertia, words):
    with pytest.raises(InputError, match=words):
        RigidBody("body", mass, inertia)
