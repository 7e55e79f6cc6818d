"""Laws of materials by name: what every one of them keeps, and what each says in tension and in shear."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elements import ELEMENTS
from palpo.physics.fem.laws import LAWS, LINEAR
from palpo.physics.fem.material import Material
from palpo.physics.fem.principal import decompose
from palpo.physics.mesh.generate import block
from palpo.physics.numerics.errors import InputError
from tests.verification.test_elements import SIZE, bent, mesh_of

LAM, MU = 3e4, 1e4
SHAPES = {
    "neo-hookean": (),
    "mooney-rivlin": (0.3,),
    "ogden": (0.6, 5.0, 0.4, -3.0),
    "fung": (0.6,),
}
EVERY = pytest.mark.parametrize("law", LAWS)
POINTS = [name for name, element in ELEMENTS.items() if element.points is not None]
STILL = (0.0, 0.0, 0.0)


def deformations(k: int = 30) -> np.ndarray:
    """Among them sheared, crushed, flat and inverted ones."""
    f = np.eye(3) + np.random.default_rng(1).uniform(-0.8, 0.8, (k, 3, 3))
    f[0], f[1], f[2] = np.eye(3), np.diag([1.0, 1.0, 0.0]), np.diag([1.2, 0.9, -0.7])
    # so that powers and exponentials go on as polynomials in some of them
    f[3], f[4] = np.diag([4.0, 0.02, 3.0]), np.diag([5.0, 5.0, 0.0])
    f[5], f[6] = np.diag([0.3, 0.6, 0.5]), np.diag([1.6, 1.4, 1.3])
    return f


@EVERY
def test_stress_is_the_slope_of_energy_and_the_tangent_that_of_stress(law):
    """By central differences, whose error is of second order in a step of 1e-5."""
    made, f, step = LAWS[law](LAM, MU, SHAPES[law]), deformations(), 1e-5
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
    made, f = LAWS[law](LAM, MU, SHAPES[law]), deformations()
    turn = Rotation.random(random_state=4).as_matrix()
    assert made.energy(turn @ f) == pytest.approx(made.energy(f), rel=1e-12)
    assert np.abs(made.stress(turn @ f) - turn @ made.stress(f)).max() < 1e-11 * np.abs(made.stress(f)).max()


@EVERY
@pytest.mark.parametrize("elements", POINTS)
def test_at_rest_a_body_is_without_force_and_as_stiff_as_hookes(law, elements):
    mesh = mesh_of(elements)
    material = Material(2e4, 0.4, 1000.0, law=law, shape=SHAPES[law])
    body = SoftBody("block", mesh, material, gravity=STILL, elements=elements)
    linear = Material(2e4, 0.4, 1000.0)
    hooke = SoftBody("block", mesh, linear, gravity=STILL, elements=elements).K
    assert np.abs(body.tangent() - hooke).max() < 1e-9 * np.abs(hooke).max()
    assert body.energy() == pytest.approx(0.0, abs=1e-12 * 2e4 * np.prod(SIZE))
    assert np.abs(body.undamped_force()).max() < 1e-9 * 2e4 * SIZE[0] ** 2


@EVERY
@pytest.mark.parametrize("elements", POINTS)
def test_the_force_of_a_body_is_the_slope_of_its_energy_and_its_tangent_that_of_the_force(law, elements):
    material = Material(2e4, 0.4, 1000.0, law=law, shape=SHAPES[law])
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
    made = LAWS["neo-hookean"](LAM, MU, ())
    stretch, lateral = 1.5, 1.0
    for _ in range(60):
        f = np.diag([stretch, lateral, lateral])[None]
        d = made.tangent(f)[0].reshape(3, 3, 3, 3)
        lateral -= made.stress(f)[0, 1, 1] / (d[1, 1, 1, 1] + d[1, 1, 2, 2])
    f = np.diag([stretch, lateral, lateral])
    pull = made.stress(f[None])[0]
    assert abs(pull[1, 1]) < 1e-9 * pull[0, 0]
    # by hand: mu (a - b^2 / a) along, what J pulls eliminated, where b is of mu (b^2 - 1) + lam ln(a b^2) = 0
    assert MU * (lateral**2 - 1.0) + LAM * np.log(stretch * lateral**2) == pytest.approx(0.0, abs=1e-9 * LAM)
    by_hand = MU * (stretch - lateral**2 / stretch)
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


@EVERY
def test_a_body_that_is_half_inside_out_comes_back(law):
    """A law that is not defined there would end the first step; to what its steps settle."""
    mesh = block(SIZE, (2, 2, 2))
    body = SoftBody(
        "block", mesh, Material(2e4, 0.4, 1000.0, 20.0, law=law, shape=SHAPES[law]),
        np.flatnonzero(mesh.nodes[:, 1] < -0.0249), STILL,
    )  # fmt: skip
    top = mesh.nodes[:, 1] > 0.0249
    body.x[top, 1] = -0.025
    h = 5e-3
    for _ in range(300):
        body.linearise()
        body.advance(body.free_velocity(body.factor(h), h), h)
    assert np.abs(body.x - mesh.nodes).max() < 1e-3 * SIZE[1]


def slopes(law: str, s: np.ndarray) -> np.ndarray:
    """dPsi/ds_i [Pa] of principal stretches s (3,) whose volume stays, as the textbooks have them."""
    square = s @ s
    if law == "neo-hookean":
        return MU * s
    if law == "mooney-rivlin":
        return MU * (0.7 * s + 0.3 * s * (square - s * s))
    if law == "fung":
        return MU * np.exp(0.6 * (square - 3.0)) * s
    return 2.0 * MU * (0.6 / 5.0 * s**4.0 - 0.4 / 3.0 * s**-4.0)


@EVERY
@pytest.mark.parametrize("axes", [1, 2], ids=["uniaxial", "equibiaxial"])
@pytest.mark.parametrize("stretch", [0.6, 0.9, 1.3, 1.7])
def test_a_bar_that_keeps_its_volume_pulls_as_the_textbook_says(law, axes, stretch):
    """P_1 = Psi_1 - s_3 Psi_3 / s_1; what differs is of the order of the stress over lam."""
    lam = 1e8 * MU
    made = LAWS[law](lam, MU, SHAPES[law])
    free = stretch**-0.5 if axes == 1 else stretch**-2.0
    s = np.array([stretch, free, free] if axes == 1 else [stretch, stretch, free])
    for _ in range(20):
        f = np.diag(s)[None]
        d = made.tangent(f)[0].reshape(3, 3, 3, 3)
        both = d[2, 2, 2, 2] + (d[2, 2, 1, 1] if axes == 1 else 0.0)
        s[3 - (3 - axes) :] -= made.stress(f)[0, 2, 2] / both
    pull = made.stress(np.diag(s)[None])[0]
    ideal = np.array([stretch, free, free] if axes == 1 else [stretch, stretch, free])
    by_hand = slopes(law, ideal)
    assert pull[0, 0] == pytest.approx(by_hand[0] - free * by_hand[2] / stretch, rel=1e-4)


@EVERY
@pytest.mark.parametrize("shear", [0.1, 0.7, 1.5])
def test_a_shear_has_the_textbooks_stress_and_poyntings_normal_ones(law, shear):
    """sigma_12 of the principal stretches, and sigma_11 - sigma_22 = gamma sigma_12, which every isotropic
    law keeps (Rivlin 1948); its volume stays, so that all is exact."""
    f = np.eye(3)
    f[0, 1] = shear
    stress = LAWS[law](LAM, MU, SHAPES[law]).stress(f[None])[0] @ f.T
    assert stress[0, 0] - stress[1, 1] == pytest.approx(shear * stress[0, 1], rel=1e-10)
    s = 0.5 * (shear + np.hypot(shear, 2.0))
    first, second, _ = slopes(law, np.array([s, 1.0 / s, 1.0]))
    # s along an axis of tan = s, from there to the shear's
    assert stress[0, 1] == pytest.approx((first * s - second / s) * s / (1.0 + s * s), rel=1e-10)


def test_stretches_and_rotations_give_back_the_gradient():
    """Of regular, flat, line-like and vanishing gradients, down to rounding."""
    f = deformations()
    f[5], f[6], f[7] = 0.0, np.outer([1.0, 2.0, 3.0], [0.3, 0.1, -2.0]), 1e-9 * f[8]
    u, v, s = np.empty_like(f), np.empty_like(f), np.empty((len(f), 3))
    decompose(f, u, v, s)
    size = np.abs(f).max(axis=(1, 2))[:, None, None]
    assert (np.abs((u * s[:, None]) @ v.transpose(0, 2, 1) - f) <= 1e-14 * size).all()
    for r in (u, v):
        assert np.abs(r @ r.transpose(0, 2, 1) - np.eye(3)).max() < 1e-14
        assert np.linalg.det(r) == pytest.approx(1.0)
    assert (s[:, 0] >= s[:, 1]).all() and (s[:, 1] >= np.abs(s[:, 2]) - 1e-14).all()


@pytest.mark.parametrize("law", ["ogden", "fung"])
def test_a_law_that_stiffens_without_end_stays_a_number(law):
    """At ten times the length a power of 50 is beyond all numbers that can be squared."""
    shape = (0.5, 50.0, 0.5, -50.0) if law == "ogden" else (1000.0,)
    made, f = LAWS[law](LAM, MU, shape), np.stack([np.diag([10.0, 0.0, 3.0]), np.diag([-9.0, 8.0, 1e-3])])
    assert np.isfinite(made.energy(f)).all() and np.isfinite(made.tangent(f)).all()
    assert np.abs(made.tangent(f)).max() < 1e16


@pytest.mark.parametrize(
    "law, shape, said",
    [
        ("neo-hookean", (1.0,), r"shape is \[1.0\] but the law 'neo-hookean' needs none"),
        ("linear", (1.0,), "the law 'linear' needs none"),
        ("mooney-rivlin", (), "needs c01's share"),
        ("mooney-rivlin", (1.5,), "needs c01's share"),
        ("ogden", (1.0,), "needs pairs of a positive share"),
        ("ogden", (0.5, 4.0, 0.4, -2.0), "1 together"),
        ("ogden", (1.0, 0.0), "not 0"),
        ("ogden", (1.0, float("nan")), "not 0"),
        ("ogden", (1.0, -50.0), "poisson_ratio is too small for its law"),
        ("fung", (0.0,), "above 0 and at most 1000"),
    ],
)
def test_constants_that_are_not_a_laws_are_refused(law, shape, said):
    with pytest.raises(InputError, match=said):
        Material(2e4, 0.3, 1000.0, law=law, shape=shape)


def test_a_law_that_is_not_known_or_that_elements_cannot_follow_is_refused():
    with pytest.raises(
        InputError, match=r"law is 'rubber' but must be one of linear, neo-hookean, mooney-rivlin"
    ):
        Material(2e4, 0.4, 1000.0, law="rubber")
    assert Material(2e4, 0.4, 1000.0).law == LINEAR
    with pytest.raises(InputError, match="these elements do not follow: choose tet4, tet4-patch, tet10"):
        SoftBody("block", mesh_of("hex8"), Material(2e4, 0.4, 1000.0, law="neo-hookean"))
