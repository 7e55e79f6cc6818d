"""Laws of materials by name: what every one of them keeps, and what the neo-Hookean one says."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.fem.laws import LAWS, LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import rest_stiffness
from palpo.physics.mesh.generate import block
from palpo.physics.numerics.errors import InputError
from tests.verification.test_elements import SIZE, bent, mesh_of

LAM, MU = 3e4, 1e4
EVERY = pytest.mark.parametrize("law", LAWS)
POINTS = [name for name, element in ELEMENTS.items() if element.points is not None]
STILL = (0.0, 0.0, 0.0)


def deformations(k: int = 30) -> np.ndarray:
    """Among them sheared, crushed, flat and inverted ones."""
    f = np.eye(3) + np.random.default_rng(1).uniform(-0.8, 0.8, (k, 3, 3))
    f[0], f[1], f[2] = np.eye(3), np.diag([1.0, 1.0, 0.0]), np.diag([1.2, 0.9, -0.7])
    return f


@EVERY
def test_stress_is_the_slope_of_energy_and_the_tangent_that_of_stress(law):
    """By central differences, whose error is of second order in a step of 1e-5."""
    made, f, step = LAWS[law](LAM, MU), deformations(), 1e-5
    way = np.random.default_rng(2).normal(size=f.shape)
    slope = (made.energy(f + step * way) - made.energy(f - step * way)) / (2.0 * step)
    stress = made.stress(f)
    size = np.abs(stress).max()
    assert np.abs(np.einsum("eij,eij->e", stress, way) - slope).max() < 1e-6 * size
    change = (made.stress(f + step * way) - made.stress(f - step * way)) / (2.0 * step)
    tangent = made.tangent(f)
    found = (tangent @ way.reshape(-1, 9, 1)).reshape(-1, 3, 3)
    assert np.abs(found - change).max() < 1e-6 * np.abs(change).max()
    assert np.abs(tangent - tangent.transpose(0, 2, 1)).max() < 1e-12 * np.abs(tangent).max()


@EVERY
def test_a_turn_costs_nothing_and_turns_the_stress(law):
    made, f = LAWS[law](LAM, MU), deformations()
    turn = Rotation.random(random_state=4).as_matrix()
    assert made.energy(turn @ f) == pytest.approx(made.energy(f), rel=1e-12)
    assert np.abs(made.stress(turn @ f) - turn @ made.stress(f)).max() < 1e-11 * np.abs(made.stress(f)).max()


@EVERY
@pytest.mark.parametrize("elements", POINTS)
def test_at_rest_a_body_is_without_force_and_as_stiff_as_hookes(law, elements):
    mesh = mesh_of(elements)
    material = Material(2e4, 0.4, 1000.0, law=law)
    body = SoftBody("block", mesh, material, gravity=STILL, elements=elements)
    hooke = rest_stiffness(mesh, material, elements)
    assert np.abs(body.tangent() - hooke).max() < 1e-9 * np.abs(hooke).max()
    assert body.energy() == pytest.approx(0.0, abs=1e-12 * 2e4 * np.prod(SIZE))
    assert np.abs(body.undamped_force()).max() < 1e-9 * 2e4 * SIZE[0] ** 2


@EVERY
@pytest.mark.parametrize("elements", POINTS)
def test_the_force_of_a_body_is_the_slope_of_its_energy_and_its_tangent_that_of_the_force(law, elements):
    material = Material(2e4, 0.4, 1000.0, law=law)
    body = bent(SoftBody("block", mesh_of(elements), material, gravity=STILL, elements=elements))
    tangent, force, at = body.tangent(), body.undamped_force(), body.x.copy()
    # what steps are made with is never negative
    eigenvalues = np.linalg.eigvalsh(body.K.toarray())
    assert eigenvalues[0] > -1e-11 * eigenvalues[-1]
    way, step = np.random.default_rng(6).normal(size=at.shape), 1e-5 * SIZE[0]
    energies, forces = [], []
    for sign in (1.0, -1.0):
        body.x = at + sign * step * way
        energies.append(body.energy())
        forces.append(body.undamped_force())
    assert -force @ way.ravel() == pytest.approx((energies[0] - energies[1]) / (2.0 * step), rel=1e-6)
    change = (forces[1] - forces[0]) / (2.0 * step)
    assert np.abs(tangent @ way.ravel() - change).max() < 1e-6 * np.abs(change).max()


def test_a_stretched_bar_pulls_as_the_neo_hookean_law_says():
    """F = diag(a, b, b) with no stress across: by the law's constants, by hand, and by a body's end face."""
    made = LAWS["neo-hookean"](LAM, MU)
    stretch, lateral = 1.5, 1.0
    for _ in range(60):
        f = np.diag([stretch, lateral, lateral])[None]
        d = made.tangent(f)[0].reshape(3, 3, 3, 3)
        lateral -= made.stress(f)[0, 1, 1] / (d[1, 1, 1, 1] + d[1, 1, 2, 2])
    f = np.diag([stretch, lateral, lateral])
    pull = made.stress(f[None])[0]
    assert abs(pull[1, 1]) < 1e-9 * pull[0, 0]
    # with Smith's constants, by hand: mu' (1 - 1 / (I + 1)) (a - b^2 / a) along, what J pulls eliminated
    square = stretch**2 + 2.0 * lateral**2
    by_hand = 4.0 / 3.0 * MU * (1.0 - 1.0 / (square + 1.0)) * (stretch - lateral**2 / stretch)
    assert pull[0, 0] == pytest.approx(by_hand, rel=1e-12)
    mesh = block(SIZE, (2, 2, 2))
    young = MU * (3.0 * LAM + 2.0 * MU) / (LAM + MU)
    material = Material(young, 0.5 * LAM / (LAM + MU), 1000.0, law="neo-hookean")
    body = SoftBody("bar", mesh, material, gravity=STILL)
    body.x = mesh.nodes @ f.T
    force = body.undamped_force().reshape(-1, 3)
    end = mesh.nodes[:, 0] > mesh.nodes[:, 0].max() - 1e-9
    # the material is made by E and nu, whose rounding is all that differs
    assert -force[end, 0].sum() == pytest.approx(by_hand * SIZE[1] * SIZE[2], rel=1e-9)
    assert np.abs(force[:, 1:]).max() < 1e-9 * np.abs(force).max()


def test_a_body_that_is_turned_inside_out_comes_back():
    """A law that is not defined there would end the first step; to what its steps settle."""
    mesh = block(SIZE, (2, 2, 2))
    body = SoftBody(
        "block", mesh, Material(2e4, 0.4, 1000.0, alpha=20.0, law="neo-hookean"),
        np.flatnonzero(mesh.nodes[:, 1] < -0.0249), STILL,
    )  # fmt: skip
    top = mesh.nodes[:, 1] > 0.0249
    body.x[top, 1] = -0.04
    h = 5e-3
    for _ in range(300):
        body.linearise()
        body.advance(body.free_velocity(body.factor(h), h), h)
    assert np.abs(body.x - mesh.nodes).max() < 1e-3 * SIZE[1]


def test_a_law_that_is_not_known_or_that_elements_cannot_follow_is_refused():
    with pytest.raises(InputError, match=r"material.law is 'rubber' but must be one of linear, neo-hookean"):
        Material(2e4, 0.4, 1000.0, law="rubber")
    assert Material(2e4, 0.4, 1000.0).law == LINEAR
    with pytest.raises(InputError, match="these elements do not follow: choose tet4, tet10, hex8-full"):
        SoftBody("block", mesh_of("hex8"), Material(2e4, 0.4, 1000.0, law="neo-hookean"))
