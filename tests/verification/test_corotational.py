"""Corotational elements: the rotation is the polar one, and a turned body is the linear one turned."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.element_rotations import LANES, ROTATION, ROWS, extract_rotation, find_rotations
from palpo.physics.fem.material import Material
from palpo.physics.mesh import generate
from palpo.physics.mesh.tet import TetMesh

SOFT = Material(youngs_modulus=2e4, poisson_ratio=0.35, density=1000.0)
IDENTITY = (1.0, 0.0, 0.0, 0.0)


def matrix(q) -> np.ndarray:
    return Rotation.from_quat([*q[1:], q[0]]).as_matrix()


def proper_polar(F: np.ndarray) -> np.ndarray:
    """The rotation that maximises tr(R^T F), by singular values."""
    U, _, Vt = np.linalg.svd(F)
    return U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt


def gradient(seed: int, smallest: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    stretches = np.diag([rng.uniform(0.6, 2.0), rng.uniform(0.6, 2.0), smallest])
    turns = Rotation.random(2, random_state=rng).as_matrix()
    return turns[0] @ turns[1] @ stretches @ turns[1].T


@given(seed=st.integers(0, 2**32 - 1), smallest=st.floats(-0.5, 2.0), start=st.integers(0, 3))
@settings(max_examples=300, deadline=None)
def test_rotation_is_the_proper_polar_one_from_any_start(seed, smallest, start):
    F = gradient(seed, smallest)
    q = extract_rotation(tuple(F.ravel()), tuple(np.eye(4)[start]))
    R = matrix(q)
    # the smallest gap s2 + s3 of the stretches is 0.1, so rounding grows by 10 at most
    assert np.abs(R - proper_polar(F)).max() < 1e-12


@pytest.mark.parametrize(
    "F",
    [
        np.zeros((3, 3)),
        np.diag([1.0, 1.0, 0.0]),
        np.diag([1.0, 0.0, 0.0]),
        np.diag([1.0, -1.0, -1.0]),
        np.diag([1.0, 1.0, -1.0]),
        -np.eye(3),
        np.diag([2.0, 0.5, -0.5]),
    ],
    ids=["point", "plane", "line", "half turn", "mirror", "reversed", "degenerate mirror"],
)
def test_a_flat_or_inverted_gradient_has_a_proper_rotation_of_largest_trace(F):
    R = matrix(extract_rotation(tuple(F.ravel()), IDENTITY))
    assert np.abs(R @ R.T - np.eye(3)).max() < 1e-12
    assert np.linalg.det(R) == pytest.approx(1.0, abs=1e-12)
    assert np.trace(R.T @ F) >= np.trace(proper_polar(F).T @ F) - 1e-12


def test_an_already_maximal_rotation_of_a_degenerate_element_does_not_jump():
    q = (np.cos(0.2), np.sin(0.2), 0.0, 0.0)
    F = matrix(q) @ np.diag([1.0, 0.0, 0.0])
    assert extract_rotation(tuple(F.ravel()), q) == q


@pytest.mark.parametrize("count", [1, LANES - 1, LANES, 2 * LANES + 3])
def test_a_group_of_elements_has_the_rotations_of_one_element_at_a_time(count):
    """Stretched, flat and inverted ones side by side, one step from their rotations or far away."""
    rng = np.random.default_rng(count)
    F = np.array([gradient(seed, (1.0, 0.0, -0.3)[seed % 3]) for seed in range(count)])
    # the edges of an element are the columns of F where its gradients are the unit vectors
    x = np.concatenate([np.vstack([np.zeros(3), f.T]) for f in F])
    tets = np.arange(4 * count, dtype=np.int32).reshape(-1, 4)
    gradients = np.tile(np.vstack([-np.ones(3), np.eye(3)]), (count, 1, 1))
    starts = rng.normal(size=(count, 4))
    starts /= np.linalg.norm(starts, axis=1)[:, None]
    quats, a = starts.copy(), np.empty(ROWS * LANES)
    for first in range(0, count, LANES):
        find_rotations(x, tets, gradients, quats, first, a)
        for k in range(min(LANES, count - first)):
            shown = a.reshape(ROWS, LANES)[ROTATION:, k].reshape(3, 3)
            np.testing.assert_allclose(shown, proper_polar(F[first + k]), atol=1e-12)
    alone = [extract_rotation(tuple(f.ravel()), tuple(q)) for f, q in zip(F, starts, strict=True)]
    np.testing.assert_allclose(quats, alone, atol=1e-14)


def one_element() -> TetMesh:
    nodes = 0.05 * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return TetMesh(nodes, np.array([[0, 1, 2, 3]], dtype=np.int32))


@pytest.mark.parametrize("height", [0.5, 0.0, -0.3])
def test_a_flattened_or_inverted_element_pushes_its_apex_back(height):
    body = SoftBody("tet", one_element(), SOFT, gravity=(0.0, 0.0, 0.0))
    body.x[3, 2] = 0.05 * height
    body.linearise()
    force = body.force().reshape(-1, 3)
    assert np.isfinite(force).all()
    assert force[3, 2] > 0.0
    # action equals reaction inside an element, to rounding
    assert np.abs(force.sum(axis=0)).max() < 1e-12 * np.abs(force).max()


@pytest.mark.parametrize("height", [0.0, -0.5, -1.5])
def test_a_crushed_element_recovers_its_shape(height):
    # alpha stops the tumbling that is left when an inverted element has turned inside out
    body = SoftBody("tet", one_element(), Material(2e4, 0.35, 1000.0, 10.0, 1e-3), gravity=(0.0, 0.0, 0.0))
    body.x[3, 2] = 0.05 * height
    h = 0.02
    for _ in range(200):
        body.linearise()
        body.advance(body.free_velocity(body.factor(h), h), h)
    # the rest energy is zero and the crushed one about E V / 2 = 0.2 J
    assert body.energy() < 1e-9
    assert np.linalg.det(body.x[1:] - body.x[0]) > 0.0


def turned_block(angle: float = 2.0) -> tuple[SoftBody, SoftBody, np.ndarray]:
    mesh = generate.block((0.1, 0.06, 0.06), (4, 2, 2))
    R = Rotation.from_rotvec(angle * np.array([0.6, 0.0, 0.8])).as_matrix()
    return SoftBody("a", mesh, SOFT, gravity=(0, 0, 0)), SoftBody("b", mesh, SOFT, gravity=(0, 0, 0)), R


def test_a_rigid_motion_makes_no_force():
    body, _, R = turned_block(3.0)
    stiffness = np.abs(body.K).max()
    body.x = body.x @ R.T + np.array([0.3, -0.2, 0.1])
    # rounding of positions of 0.4 m, times the stiffness
    assert np.abs(body.force()).max() < 1e-15 * stiffness


def test_a_turned_body_has_the_turned_forces_and_stiffness_of_the_linear_one():
    straight, turned, R = turned_block()
    u = 1e-7 * np.random.default_rng(0).standard_normal(straight.x.shape)
    linear = -(straight.K @ u.ravel()).reshape(-1, 3)
    block = np.kron(np.eye(len(u)), R)
    rest = straight.K.toarray()
    turned.x = (straight.x + u) @ R.T
    turned.linearise()
    # u over the edge of 0.025 m turns elements by about 1e-5, the relative size of what linearity leaves out
    assert np.abs(turned.force().reshape(-1, 3) - linear @ R.T).max() < 1e-4 * np.abs(linear).max()
    assert np.abs(turned.K.toarray() - block @ rest @ block.T).max() < 1e-4 * np.abs(rest).max()


def test_force_and_energy_are_those_of_the_same_deformation_in_any_frame():
    straight, turned, R = turned_block()
    shape = straight.x + 0.01 * np.random.default_rng(1).standard_normal(straight.x.shape)
    straight.x, turned.x = shape, shape @ R.T
    assert turned.energy() == pytest.approx(straight.energy(), rel=1e-12)
    f = straight.force().reshape(-1, 3) @ R.T
    assert np.abs(turned.force().reshape(-1, 3) - f).max() < 1e-11 * np.abs(f).max()


def test_internal_force_is_minus_the_gradient_of_the_energy_under_large_deformation():
    body, _, _ = turned_block()
    body.x = body.x + 0.008 * np.random.default_rng(2).standard_normal(body.x.shape)
    force, x = body.force(), body.x.copy()
    direction = np.random.default_rng(3).standard_normal(x.shape)
    step = 1e-6
    energies = []
    for sign in (1.0, -1.0):
        body.x = x + sign * step * direction
        energies.append(body.energy())
    slope = (energies[0] - energies[1]) / (2.0 * step)
    # central differences: second order in a step of 1e-4 of the shape
    assert -force @ direction.ravel() == pytest.approx(slope, rel=1e-6)


def test_warped_stiffness_is_positive_semidefinite_under_any_deformation():
    body, _, _ = turned_block()
    body.x = body.x + 0.05 * np.random.default_rng(4).standard_normal(body.x.shape)
    body.linearise()
    eigenvalues = np.linalg.eigvalsh(body.K.toarray())
    assert eigenvalues[0] > -1e-12 * eigenvalues[-1]
