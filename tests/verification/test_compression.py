"""A cube pressed flat between plates: another program with its own law, and the closed form."""

import numpy as np
import pytest

from palpo.physics.fem.laws import LAWS
from palpo.physics.fem.material import Material
from palpo.physics.fem.principal import LEAST, MOST
from palpo.studies.compression import MESHES, converged, eighth, sliding
from palpo.studies.reference.compression import (
    RATIOS,
    SHARES,
    YOUNG,
    Hexahedra,
    press,
    stored,
)


@pytest.mark.parametrize("elements", ["tet4-patch", "tet10"])
@pytest.mark.parametrize("nu", [0.30, 0.45])
def test_a_bonded_cube_pushes_back_as_another_programs(elements, nu):
    """Within 3%, of which the reference's meshes differ by 2 at most, where these have converged."""
    known = {share: stored()[nu, share] for share in SHARES}
    told = tuple(share for share, two in known.items() if converged(*two))
    assert told
    force = list(press(eighth(elements, nu, MESHES[elements]), True, told))
    assert force == pytest.approx([known[share][1] for share in told], rel=0.03)


@pytest.mark.parametrize("nu", RATIOS)
def test_a_cube_that_slides_is_pressed_evenly(nu):
    """On any mesh the force is that of a bar which is free across, to what is left at rest at some nine
    nodes of a plate."""
    exact = [sliding(nu, share) for share in SHARES]
    assert list(press(eighth("tet4-patch", nu, (2, 1.0)), False)) == pytest.approx(exact, rel=1e-5)


def test_the_law_is_that_of_the_other_program():
    """Stress and tangent, wherever the logarithms are ours too."""
    felupe = pytest.importorskip("felupe")
    f = np.eye(3) + np.random.default_rng(4).uniform(-0.5, 0.5, (200, 3, 3))
    volumes = np.linalg.det(f)
    f = f[(volumes > LEAST) & (volumes < MOST)]
    assert len(f) > 50
    lam, mu = Material(YOUNG, 0.4, 1e3).lame()
    ours, theirs = LAWS["neo-hookean"](lam, mu, ()), felupe.NeoHookeCompressible(mu, lam)
    last = np.moveaxis(f, 0, 2)
    stress = np.moveaxis(theirs.gradient([last, None])[0], 2, 0)
    np.testing.assert_allclose(ours.stress(f), stress, atol=1e-12 * np.abs(stress).max())
    tangent = np.moveaxis(theirs.hessian([last, None])[0], 4, 0).reshape(-1, 9, 9)
    np.testing.assert_allclose(ours.tangent(f), tangent, atol=1e-12 * np.abs(tangent).max())


def test_the_reference_is_that_of_the_script():
    """Its law has our closed form; its figures, on a mesh so coarse that they are made in seconds, are those
    stored to what that leaves."""
    pytest.importorskip("felupe")
    (slides,) = press(Hexahedra(0.3, (2, 1.0)), False, (0.2,))
    assert slides == pytest.approx(sliding(0.3, 0.2), rel=1e-5)
    (force,) = press(Hexahedra(0.45, (3, 2.0)), True, (0.2,))
    assert force == pytest.approx(stored()[0.45, 0.2][1], rel=0.03)
