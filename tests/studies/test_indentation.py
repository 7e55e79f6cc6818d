"""The force of a ball on a block by another program, and how far elements are off it."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from skfem import asm
from skfem.models.elasticity import lame_parameters, linear_elasticity

from palpo.studies import indentation
from palpo.studies.indentation import ASIDE
from palpo.studies.reference.indentation import (
    DEPTHS,
    RATIOS,
    YOUNG,
    IndentedBlock,
    elements_of,
    forces,
    inner_force,
    stored,
    turned_stiffness,
    without_pull,
)


def test_forces_of_nodes_that_do_not_pull_are_complementary_to_their_gaps():
    rng = np.random.default_rng(7)
    for _ in range(20):
        a = rng.normal(size=(12, 12))
        compliance, gap = a @ a.T + 0.1 * np.eye(12), rng.normal(size=12)
        p = without_pull(compliance, gap)
        left = gap + compliance @ p
        assert p.min() >= 0.0 and left.min() > -1e-9
        assert np.abs(p * left).max() < 1e-9


def test_the_stored_figures_are_those_of_the_script():
    """On a mesh so coarse that it is made in seconds, to what that leaves."""
    truth = stored()
    assert set(truth) == {(nu, depth) for nu in RATIOS for depth in DEPTHS}
    known = [truth[0.45, depth] for depth in DEPTHS]
    assert forces(0.45, (6, 4)) == pytest.approx(np.array(known), rel=0.03)


def test_the_stiffness_of_axes_that_have_not_turned_is_the_other_programs_own():
    """And one that turns with all axes alike leaves no force: a block that is turned as a whole."""
    mesh, lame = IndentedBlock((2, 2)), lame_parameters(YOUNG, 0.3)
    grads, weights, dofs = elements_of(mesh)
    still = np.broadcast_to(np.eye(3), (*weights.shape, 3, 3))
    known = asm(linear_elasticity(*lame), mesh.basis)
    found = turned_stiffness(still, grads, weights, dofs, *lame)
    assert abs(found - known).max() < 1e-12 * abs(known).max()
    turn = Rotation.from_rotvec([0.3, -0.5, 0.7]).as_matrix()
    places = np.zeros(mesh.basis.N)
    x, axis = mesh.basis.doflocs, mesh.axis
    for a in range(3):
        places[axis == a] = ((turn - np.eye(3)) @ x)[a, axis == a]
    turned, inner = inner_force(places[dofs], grads, weights, *lame)
    np.testing.assert_allclose(turned, np.broadcast_to(turn, turned.shape), atol=1e-9)
    assert np.abs(inner).max() < 1e-9 * abs(known).max()


@pytest.mark.parametrize("nu", RATIOS)
def test_elements_that_share_their_change_of_volume_are_off_by_little_at_any_ratio_wherever_the_ball_is(nu):
    """By what the shipped mesh leaves, as much over a node as over an edge or a cell; plain ones by more."""
    truth = np.array([stored()[nu, depth] for depth in DEPTHS])
    errors = {
        name: np.array([indentation.alone(name, (12, 3, 12), nu, at) / truth - 1.0 for at in ASIDE[:3]])
        for name in ("tet4-patch", "tet4")
    }
    shared, plain = errors["tet4-patch"], errors["tet4"]
    assert np.abs(shared).max() < 0.07 and np.abs(shared[:, 1:]).max() < 0.05
    assert np.ptp(shared, axis=0).max() < 0.1
    assert (plain > shared).all()
    assert plain.mean() > 0.2 or nu < 0.49


def test_finer_cells_are_off_by_as_little():
    """What facets give shrinks with them: a number of the element, and not of the mesh."""
    truth = np.array([stored()[0.45, depth] for depth in DEPTHS])
    errors = indentation.alone("tet4-patch", (18, 5, 18), 0.45, (0.0017, 0.0008)) / truth - 1.0
    assert np.abs(errors).max() < 0.07


@pytest.mark.parametrize("nu", RATIOS)
def test_cells_as_wide_as_the_radius_are_off_by_some_percent(nu):
    """Facets 1.4 radii long, met in quarters: with a point in each third the ball falls between them."""
    truth = np.array([stored()[nu, depth] for depth in DEPTHS])
    off = [(0.0, 0.0), (0.005, 0.0), (0.005, 0.005), (0.0025, -0.0008)]
    errors = np.array([indentation.alone("tet4-patch", (6, 3, 6), nu, at) / truth - 1.0 for at in off])
    assert np.abs(errors).mean() < 0.08 and np.abs(errors).max() < 0.2
