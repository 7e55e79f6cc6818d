"""Corotational hexahedra with incompatible modes: the laws that their body shares with the tetrahedra's."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import rest_stiffness
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.numerics.errors import InputError

SOFT = Material(youngs_modulus=2e4, poisson_ratio=0.35, density=1000.0)
SIZE = (0.1, 0.08, 0.06)
STILL = (0.0, 0.0, 0.0)


def distorted() -> HexMesh:
    """A block whose inner nodes are shaken, so that no element is a parallelepiped; numbered at random."""
    rng = np.random.default_rng(0)
    mesh = hex_block(SIZE, (3, 3, 3))
    inner = np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)
    nodes = mesh.nodes.copy()
    nodes[inner] += rng.uniform(-5e-3, 5e-3, (inner.size, 3))
    number = rng.permutation(len(nodes))
    moved = np.empty_like(nodes)
    moved[number] = nodes
    return HexMesh(moved, number[mesh.hexes].astype(np.int32))


def floating(material=SOFT) -> SoftBody:
    return SoftBody("block", distorted(), material, gravity=STILL)


def inner_of(mesh: HexMesh) -> np.ndarray:
    return np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)


def bent(body: SoftBody, size: float, seed=3) -> np.ndarray:
    """Positions strained by about `size` in no simple way, and turned by a radian and more."""
    rng = np.random.default_rng(seed)
    x = body.mesh.nodes / SIZE[0]
    waves = np.sin(x @ rng.uniform(-3.0, 3.0, (3, 3)) + rng.uniform(0.0, 6.0, 3))
    return (body.mesh.nodes + size * SIZE[0] * waves) @ Rotation.random(random_state=seed).as_matrix().T


def test_patch_test_in_the_turned_frame_too():
    """A homogeneous strain, then a rotation: no force inside, and Hooke's energy of the stretch."""
    body = floating()
    lam, mu = SOFT.lame()
    strain = np.random.default_rng(1).uniform(-0.2, 0.2, (3, 3))
    strain = strain + strain.T
    body.x = body.mesh.nodes @ (np.eye(3) + strain) @ Rotation.random(random_state=4).as_matrix().T
    force = body.undamped_force().reshape(-1, 3)
    # rounding only: relative to the forces that hold the surface
    assert np.abs(force[inner_of(body.mesh)]).max() < 1e-11 * np.abs(force).max()
    exact = body.mesh.volume * (0.5 * lam * np.trace(strain) ** 2 + mu * np.sum(strain**2))
    assert body.energy() == pytest.approx(exact, rel=1e-11)


def test_a_turned_and_moved_body_has_no_force():
    body = floating()
    body.x = body.mesh.nodes @ Rotation.from_rotvec([2.0, -1.0, 1.5]).as_matrix().T + [3.0, -2.0, 1.0]
    # displacements of a rounding unit at 3 m, against the stiffness of an element
    rounding = 3.0 * 1e-15 * float(np.abs(body.K).max())
    assert np.abs(body.undamped_force()).max() < 1e3 * rounding


def test_turning_a_bent_body_turns_its_forces():
    body = floating()
    turn = Rotation.from_rotvec([0.4, 2.1, -0.8]).as_matrix()
    body.x = bent(body, 0.1)
    force = body.undamped_force().reshape(-1, 3)
    body.x = body.x @ turn.T
    assert np.abs(body.undamped_force().reshape(-1, 3) - force @ turn.T).max() < 1e-10 * np.abs(force).max()


def test_small_displacements_have_the_forces_of_linear_elasticity():
    """To second order: ten times smaller displacements leave a hundredth."""
    body = floating()
    k = rest_stiffness(body.mesh, SOFT)
    u = np.random.default_rng(5).uniform(-1.0, 1.0, body.x.shape)

    def error(size):
        body.x = body.mesh.nodes + size * u
        return np.abs(body.undamped_force() + k @ (size * u).ravel()).max()

    assert np.abs(body.K - k).max() < 1e-12 * np.abs(k).max()
    assert error(1e-6) / error(1e-5) == pytest.approx(0.01, rel=0.05)


def test_forces_are_the_slope_of_the_energy():
    """By central differences, whose error is of second order and whose rounding is 1e-16 E / step."""
    body = floating()
    body.x = bent(body, 0.15)
    force, at = body.undamped_force(), body.x.copy()
    way = np.random.default_rng(6).normal(size=at.shape)
    step = 1e-5 * SIZE[0]
    energies = []
    for sign in (1.0, -1.0):
        body.x = at + sign * step * way
        energies.append(body.energy())
    assert -force @ way.ravel() == pytest.approx((energies[0] - energies[1]) / (2.0 * step), rel=1e-6)


def test_inner_forces_have_neither_resultant_nor_moment():
    body = floating()
    body.x = bent(body, 0.15)
    force = body.undamped_force().reshape(-1, 3)
    size = np.abs(force).sum()
    assert np.abs(force.sum(axis=0)).max() < 1e-12 * size
    assert np.abs(np.cross(body.x, force).sum(axis=0)).max() < 1e-12 * size * SIZE[0]


def test_the_stiffness_of_a_bent_body_is_never_negative():
    body = floating()
    body.x = bent(body, 0.2)
    body.linearise()
    eigenvalues = np.linalg.eigvalsh(body.K.toarray())
    # each element's matrix is semidefinite, so is their sum
    assert eigenvalues[0] > -1e-12 * eigenvalues[-1]


def test_elements_by_themselves_make_of_velocities_what_their_assembled_stiffness_does():
    """scale K v, and scale (K - K at other rotations) v, of two shapes of a bent body."""
    body = floating()
    elements, v = body._elements, np.random.default_rng(8).standard_normal(body.x.shape)
    whole, turns = [], []
    for seed in (3, 4):
        body.x = bent(body, 0.2, seed)
        body.linearise()
        whole.append((body.K @ v.ravel()).reshape(-1, 3))
        turns.append(body._quats.copy())
    stiff, turned = np.zeros((2, *v.shape))
    elements.add_stiff(v, turns[0], -2.0, stiff)
    elements.add_turned(v, turns[1], turns[0], 3.0, turned)
    size = 1e-12 * np.abs(whole).max()
    np.testing.assert_allclose(stiff, -2.0 * whole[0], atol=size)
    np.testing.assert_allclose(turned, 3.0 * (whole[1] - whole[0]), atol=size)


def test_mass_and_centre_are_those_of_the_solid():
    mesh = distorted()
    mesh = HexMesh(mesh.nodes @ np.array([[1.0, 0.3, 0.0], [0.0, 1.0, 0.2], [0.1, 0.0, 1.0]]).T, mesh.hexes)
    body = SoftBody("block", mesh, SOFT)
    volume, centre, _ = mesh.surface().mass_properties(1.0)
    assert body.mass == pytest.approx(SOFT.density * volume, rel=1e-12)
    assert body.node_mass @ body.x / body.mass == pytest.approx(centre, abs=1e-12 * SIZE[0])


def test_a_free_body_keeps_its_momentum_and_loses_energy_only_to_the_steps():
    """Bent, thrown and spinning: backward Euler keeps both momenta to O(h) and its loss vanishes with h."""
    lost, turned = [], []
    for h in (1e-3, 5e-4):
        body = floating()
        body.x = bent(body, 0.1)
        body.v = np.cross([0.0, 0.0, 4.0], body.x).ravel()
        before, (thrown, spin) = body.energy(), body.momentum()
        for _ in range(round(0.02 / h)):
            body.linearise()
            body.advance(body.free_velocity(body.factor(h), h), h)
        push, after = body.momentum()
        assert np.abs(push - thrown).max() < 1e-10 * body.mass * 4.0 * SIZE[0]
        assert body.energy() < before
        lost.append(before - body.energy())
        turned.append(np.linalg.norm(after - spin) / np.linalg.norm(spin))
    assert lost[1] < lost[0] and turned[1] < 0.7 * turned[0]


def frequency(mesh) -> float:
    """Of the first bending of a cantilever [Hz], by the body's own mass and stiffness."""
    body = SoftBody("beam", mesh, Material(1e5, 0.0, 1000.0), np.flatnonzero(mesh.nodes[:, 0] < -0.0999))
    squares = np.linalg.eigvalsh(
        np.linalg.solve(np.diag(np.sqrt(body.M.diagonal())), body.K.toarray()) / np.sqrt(body.M.diagonal())
    )
    return float(np.sqrt(squares[0]) / (2.0 * np.pi))


def test_a_cantilever_swings_as_beam_theory_says_at_second_order():
    """20 x 1 x 1 cm without cross contraction: 1.875^2 / (2 pi) sqrt(E I / (rho A L^4)), of which shear and
    the sections' turning take some 0.2% (Timoshenko). One hexahedron through the thickness."""
    exact = 1.87510**2 / (2.0 * np.pi) * np.sqrt(1e5 * 0.01**2 / 12.0 / 1000.0) / 0.2**2
    errors = [frequency(hex_block((0.2, 0.01, 0.01), (n, 1, 1))) / exact - 1.0 for n in (6, 12, 24)]
    assert abs(errors[-1]) < 0.004
    assert np.log2((errors[0] - errors[1]) / (errors[1] - errors[2])) == pytest.approx(2.0, abs=0.1)
    # four-node tetrahedra of as many cells lock
    assert frequency(block((0.2, 0.01, 0.01), (24, 1, 1))) / exact - 1.0 > 0.5


def test_a_folded_element_is_refused_and_a_flattened_one_pushes_back():
    mesh = hex_block(SIZE, (1, 1, 1))
    with pytest.raises(InputError, match="hexahedron 0 has the Jacobian"):
        SoftBody("box", mesh.with_nodes(mesh.nodes * [1.0, 1.0, -1.0]), SOFT)
    body = SoftBody("box", mesh, SOFT, gravity=STILL)
    top = mesh.nodes[:, 2] > 0.0
    for height in (0.3, 0.0, -0.2):
        body.x[top, 2] = -0.5 * SIZE[2] + height * SIZE[2]
        force = body.undamped_force().reshape(-1, 3)
        assert np.isfinite(force).all() and (force[top, 2] > 0.0).all()
        assert np.abs(force.sum(axis=0)).max() < 1e-12 * np.abs(force).max()
