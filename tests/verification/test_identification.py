"""Young's modulus and friction from synthetic measurements (002, section V-C1)."""

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve

from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import rest_stiffness
from palpo.physics.numerics.errors import InputError
from palpo.physics.systems.snap.connectors.registry import generate
from palpo.studies.reference.identification import friction, youngs_modulus

E = 164.76e6
NOISE = 0.1e-3
"""Of one coordinate of a displacement [m]: about what image correlation of a hand-sized scene leaves."""


@pytest.fixture(scope="module")
def prong():
    return generate("two-prong").prongs[1]


@pytest.fixture(scope="module")
def experiment(prong):
    """Forces (6, n, 3), 5 to 10 N outward over the contact nodes, and the displacements they cause."""
    forces = np.zeros((6, len(prong.mesh.nodes), 3))
    forces[:, prong.contact, 0] = np.linspace(5.0, 10.0, 6)[:, None] / prong.contact.size
    dofs = (3 * prong.free[:, None] + np.arange(3)).ravel()
    K = rest_stiffness(prong.mesh, Material(E, 0.35, 1040.0))[dofs][:, dofs]
    displacements = np.zeros_like(forces)
    displacements.reshape(6, -1)[:, dofs] = spsolve(K.tocsc(), forces.reshape(6, -1)[:, dofs].T).T
    return forces, displacements


def identify(prong, forces, displacements):
    return youngs_modulus(prong.mesh, prong.clamped, 0.35, forces, displacements)


def test_exact_displacements_return_the_modulus_to_rounding(prong, experiment):
    found = identify(prong, *experiment)
    # rounding of a static solve: condition 1e5 of the stiffness times 1e-16, with room
    assert found.value == pytest.approx(E, rel=1e-9)
    assert found.standard_error < 1e-9 * E


def test_noise_leaves_the_modulus_within_two_percent_and_within_three_standard_errors(prong, experiment):
    forces, displacements = experiment
    noise = np.random.default_rng(0).normal(0.0, NOISE, displacements.shape)
    found = identify(prong, forces, displacements + noise)
    assert found.value == pytest.approx(E, rel=0.02)
    assert abs(found.value - E) < 3.0 * found.standard_error
    # 2,000 residuals estimate their own spread to 1.6%; three times that
    assert found.residual == pytest.approx(NOISE, rel=0.05)


def test_error_is_as_large_as_reported_and_shrinks_with_the_root_of_the_samples(prong, experiment):
    forces, displacements = experiment
    rng = np.random.default_rng(1)
    spread, reported = {}, {}
    for samples in (1, 16):
        f, x = (np.repeat(a[3:4], samples, axis=0) for a in (forces, displacements))
        found = [identify(prong, f, x + rng.normal(0.0, NOISE, x.shape)) for _ in range(60)]
        spread[samples] = np.std([one.value for one in found])
        reported[samples] = np.mean([one.standard_error for one in found])
        # the spread of 60 draws is known to 1 / sqrt(120) = 9%; three times that
        assert spread[samples] == pytest.approx(reported[samples], rel=0.28)
    # means of 60 standard errors of at least 333 residuals each are known to better than 1%
    assert reported[1] / reported[16] == pytest.approx(4.0, rel=0.02)


def test_nodes_that_the_camera_does_not_see_are_left_out(prong, experiment):
    forces, displacements = experiment
    seen = np.where(prong.mesh.nodes[:, 2:] > 0.0, displacements, np.nan)
    found = identify(prong, forces, seen)
    assert found.value == pytest.approx(E, rel=1e-9)
    assert found.n == 18 * np.count_nonzero(prong.mesh.nodes[prong.free, 2] > 0.0)


def test_friction_is_the_slope_of_slip_force_over_weight():
    weights = np.array([1.0, 2.0, 4.0])
    assert friction(0.163 * weights, weights).value == pytest.approx(0.163, rel=1e-14)
    # at one weight the slope is the mean ratio, its error the mean's
    slips = np.array([0.31, 0.33, 0.34, 0.32])
    found = friction(slips, 2.0)
    assert found.value == pytest.approx(slips.mean() / 2.0)
    assert found.standard_error == pytest.approx(slips.std(ddof=1) / 2.0 / 2.0)


def test_measurements_that_say_nothing_are_refused(prong, experiment):
    forces, displacements = experiment
    with pytest.raises(InputError, match=r"displacements have shape \(2, 141, 3\), expected \(6, 141, 3\)"):
        identify(prong, forces, displacements[:2])
    with pytest.raises(InputError, match="forces have no effect"):
        identify(prong, 0.0 * forces, displacements)
    with pytest.raises(InputError, match="run against the forces"):
        identify(prong, forces, -displacements)
    with pytest.raises(InputError, match="0 displacements were measured"):
        identify(prong, forces, np.nan * displacements)
    with pytest.raises(InputError, match="forces hold a value that is not finite"):
        identify(prong, np.nan * forces, displacements)
