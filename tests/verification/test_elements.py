"""Elements by name: laws that every one of them keeps in the one soft body."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elements import ELEMENTS, element_of
from palpo.physics.fem.material import Material
from palpo.physics.mesh.generate import block, hex_block
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.quadratic import QuadraticTetMesh, with_middles
from palpo.physics.numerics.errors import InputError

SOFT = Material(youngs_modulus=2e4, poisson_ratio=0.4, density=1000.0)
SIZE = (0.06, 0.05, 0.04)
EVERY = pytest.mark.parametrize("name", ELEMENTS)


def mesh_of(name: str, cells=(2, 2, 2)):
    """Of elements that are no parallelepipeds, numbered at random."""
    kind = ELEMENTS[name].mesh
    mesh = hex_block(SIZE, cells) if kind is HexMesh else block(SIZE, cells)
    rng = np.random.default_rng(0)
    inner = np.setdiff1d(np.arange(len(mesh.nodes)), mesh.boundary_nodes)
    nodes = mesh.nodes.copy()
    nodes[inner] += rng.uniform(-3e-3, 3e-3, (inner.size, 3))
    mesh = mesh.with_nodes(nodes)
    if kind is QuadraticTetMesh:
        mesh = with_middles(mesh)[1]
    number = rng.permutation(len(mesh.nodes))
    moved = np.empty_like(mesh.nodes)
    moved[number] = mesh.nodes
    return kind(moved, number[mesh.cells].astype(np.int32))


def bent(body: SoftBody, size=0.15) -> SoftBody:
    """The body strained by about `size` in no simple way, and turned by a radian and more."""
    rng = np.random.default_rng(3)
    x = body.mesh.nodes / SIZE[0]
    waves = np.sin(x @ rng.uniform(-3.0, 3.0, (3, 3)) + rng.uniform(0.0, 6.0, 3))
    turn = Rotation.random(random_state=5).as_matrix()
    body.x = (body.mesh.nodes + size * SIZE[0] * waves) @ turn.T
    return body


@EVERY
def test_the_force_is_the_slope_of_the_energy_and_the_tangent_that_of_the_force(name):
    """By central differences: what they miss is of second order in the step, and rounding."""
    body = bent(SoftBody("block", mesh_of(name), SOFT, gravity=(0.0, 0.0, 0.0), elements=name))
    tangent, force, at = body.tangent(), body.undamped_force(), body.x.copy()
    way, step = np.random.default_rng(6).normal(size=at.shape), 1e-5 * SIZE[0]
    energies, forces = [], []
    for sign in (1.0, -1.0):
        body.x = at + sign * step * way
        energies.append(body.energy())
        forces.append(body.undamped_force())
    assert -force @ way.ravel() == pytest.approx((energies[0] - energies[1]) / (2.0 * step), rel=1e-6)
    change = (forces[1] - forces[0]) / (2.0 * step)
    assert np.abs(tangent @ way.ravel() - change).max() < 1e-6 * np.abs(change).max()
    assert abs(tangent - tangent.T).max() < 1e-12 * abs(tangent).max()
    # the geometric part is more than what the differences leave
    assert np.abs(body.K @ way.ravel() - change).max() > 1e-2 * np.abs(change).max()


@EVERY
def test_either_mass_is_that_of_the_solid_and_moves_as_one(name):
    """Of a translation, and the first moment; the consistent one also has the exact second moment."""
    mesh = mesh_of(name)
    lumped = SoftBody("block", mesh, SOFT, elements=name)
    full = SoftBody("block", mesh, SOFT, mass_matrix="consistent", elements=name)
    whole = SOFT.density * np.prod(SIZE)
    even, along = np.tile([1.0, 0.0, 0.0], len(mesh.nodes)), np.zeros((len(mesh.nodes), 3))
    along[:, 0] = mesh.nodes[:, 0] - mesh.nodes[:, 0].min()
    for body in (lumped, full):
        assert body.mass == pytest.approx(whole, rel=1e-12)
        assert even @ (body.M @ even) == pytest.approx(whole, rel=1e-12)
        assert even @ (body.M @ along.ravel()) == pytest.approx(0.5 * whole * SIZE[0], rel=1e-9)
    assert along.ravel() @ (full.M @ along.ravel()) == pytest.approx(whole * SIZE[0] ** 2 / 3.0, rel=1e-9)


@EVERY
def test_a_body_of_any_element_falls_sags_and_steps_as_one(name):
    """Its substeps are its single steps, and it comes to rest where force is none."""
    mesh = mesh_of(name)
    low = np.flatnonzero(mesh.nodes[:, 1] < mesh.nodes[:, 1].min() + 1e-9)
    damped = Material(2e4, 0.4, 1000.0, alpha=30.0)
    one, many = (SoftBody("block", mesh, damped, low, elements=name) for _ in range(2))
    h, free = 5e-3, one.free[:1]
    for body in (one, many):
        body.linearise()
    factor = one.factor(h)
    for _ in range(8):
        one.advance(one.free_velocity(factor, h), h)
    many.substeps(many.factor(h), h, np.zeros((8, 1, 3)), free)
    assert np.abs(one.x - many.x).max() < 1e-12
    for _ in range(200):
        one.linearise()
        one.advance(one.free_velocity(one.factor(h), h), h)
    assert np.abs(one.undamped_force()).max() < 1e-6 * one.mass * 9.81


def test_an_element_that_a_mesh_does_not_have_is_refused():
    mesh = block(SIZE, (1, 1, 1))
    assert element_of(mesh) is ELEMENTS["tet4"]
    with pytest.raises(InputError, match="elements are 'hex8', but a mesh of this kind can be made of: tet4"):
        SoftBody("block", mesh, SOFT, elements="hex8")
