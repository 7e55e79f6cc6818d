"""Equivalent Green-Lagrange strain against its closed forms, and blind to how a body lies in space."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.fem.strain import NodalStrain
from palpo.physics.mesh import generate
from palpo.physics.mesh.tet import TetMesh

MESH = generate.block((0.10, 0.06, 0.04), (4, 3, 2))
GAUGE = NodalStrain(MESH)
EPS = np.finfo(float).eps
# An edge of 1.3 cm at 1 m from the origin is known to 1 m eps / 1.3 cm; a gradient sums three of them.
FAR = 3 * EPS / 0.013


def strain(x):
    out = np.full(len(MESH.nodes), np.nan)
    GAUGE.evaluate(np.ascontiguousarray(x), out)
    return out


def deformed(F):
    """Nodes under a uniform deformation gradient, which linear elements reproduce to rounding."""
    return MESH.nodes @ np.asarray(F, float).T


@pytest.mark.parametrize("seed", range(5))
def test_a_rigid_motion_is_no_strain(seed):
    rng = np.random.default_rng(seed)
    turned = MESH.nodes @ Rotation.random(random_state=rng).as_matrix().T
    moved = turned + rng.uniform(-0.5, 0.5, 3)
    assert strain(moved).max() < 10 * FAR


@pytest.mark.parametrize("stretch", [0.5, 0.9, 1.0001, 1.3, 2.0])
def test_a_uniaxial_stretch_has_two_thirds_of_its_green_strain(stretch):
    # E = diag((s^2 - 1) / 2, 0, 0), so sqrt(2/3 e : e) = 2/3 |E_11|
    expected = abs(stretch**2 - 1.0) / 3.0
    np.testing.assert_allclose(strain(deformed(np.diag([stretch, 1.0, 1.0]))), expected, rtol=1e-9)


@pytest.mark.parametrize("stretch", [0.7, 1.5])
def test_a_free_bar_pulled_has_two_thirds_of_the_difference_of_its_strains(stretch):
    aside = stretch**-0.35
    expected = abs(stretch**2 - aside**2) / 3.0
    np.testing.assert_allclose(strain(deformed(np.diag([aside, stretch, aside]))), expected, rtol=1e-9)


@pytest.mark.parametrize("gamma", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("plane", [(0, 1), (2, 1), (2, 0)])
def test_a_simple_shear_has_its_closed_form(gamma, plane):
    # E_12 = g / 2 and E_22 = g^2 / 2: e : e = g^2 / 2 + g^4 / 6
    F = np.eye(3)
    F[plane] = gamma
    np.testing.assert_allclose(strain(deformed(F)), np.sqrt(gamma**2 / 3 + gamma**4 / 9), rtol=1e-9)


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_swelling_alike_in_all_directions_is_no_distortion(size):
    # e : e is a difference of equal squares: its root keeps half the digits
    assert strain(deformed(size * np.eye(3))).max() < 10 * np.sqrt(EPS) * abs(size**2 - 1)


@pytest.mark.parametrize("seed", range(3))
def test_strain_is_the_same_from_any_point_of_view(seed):
    rng = np.random.default_rng(seed)
    bent = MESH.nodes + 0.01 * rng.standard_normal(MESH.nodes.shape)
    turned = bent @ Rotation.random(random_state=rng).as_matrix().T + rng.uniform(-0.5, 0.5, 3)
    np.testing.assert_allclose(strain(turned), strain(bent), rtol=100 * FAR)


def test_a_node_has_the_mean_of_its_elements_by_volume():
    """Two elements on one face, one of them stretched: shared nodes see both, the others their own."""
    nodes = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, -3]], float)
    gauge, out = NodalStrain(TetMesh(nodes, np.array([[0, 1, 2, 3], [0, 2, 1, 4]], np.int32))), np.empty(5)
    nodes[3, 2] = 1.2
    gauge.evaluate(nodes, out)
    own = (1.2**2 - 1.0) / 3.0
    # volumes 1 : 3
    np.testing.assert_allclose(out, own * np.array([0.25, 0.25, 0.25, 1.0, 0.0]), atol=1e-15)


def test_a_body_that_went_wrong_has_no_number():
    broken = MESH.nodes.copy()
    broken[0] = np.nan
    values = strain(broken)
    assert np.isnan(values[0])
    assert np.isfinite(values).any()
