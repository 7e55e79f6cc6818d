"""A cube pressed flat between plates: another program with the same energy, and the closed form."""

import numpy as np
import pytest

from palpo.physics.fem.laws import LAWS
from palpo.physics.fem.material import Material
from palpo.physics.fem.uniaxial import nominal_stress
from palpo.studies.compression import MESHES, PressedBody, converged
from palpo.studies.reference.compression import (
    HALF,
    RATIOS,
    SHARES,
    YOUNG,
    Hexahedra,
    SmithsEnergy,
    stored,
)


@pytest.mark.parametrize("elements", ["tet4-patch", "tet10"])
@pytest.mark.parametrize("nu", [0.30, 0.45])
def test_a_bonded_cube_pushes_back_as_another_programs(elements, nu):
    """Within 3%, of which the reference's meshes differ by 2 at most, where these have converged."""
    known = {share: stored()[True, nu, share] for share in SHARES[:2]}
    told = tuple(share for share, three in known.items() if converged(*three))
    assert told
    force = list(PressedBody(elements, nu, True, MESHES[elements]).press(told))
    assert force == pytest.approx([known[share][1] for share in told], rel=0.03)


@pytest.mark.parametrize("nu", RATIOS)
def test_a_cube_that_slides_is_pressed_evenly(nu):
    """On any mesh the force is that of a bar which is free across; so is the other program's."""
    bar = nominal_stress(Material(YOUNG, nu, 1e3, law="neo-hookean"), 1.0 - np.array(SHARES))
    exact = -bar * (2.0 * HALF) ** 2
    assert [stored()[False, nu, share][1] for share in SHARES] == pytest.approx(exact, rel=1e-5)
    assert list(PressedBody("tet4-patch", nu, False, (2, 1.0)).press()) == pytest.approx(exact, rel=1e-6)


def test_the_references_material_has_our_energy_and_its_slopes():
    f = np.eye(3) + np.random.default_rng(4).uniform(-0.4, 0.4, (20, 3, 3))
    theirs, ours = SmithsEnergy(0.4), LAWS["neo-hookean"](*Material(YOUNG, 0.4, 1e3).lame(), ())
    last = np.moveaxis(f, 0, 2)[..., None]
    assert theirs.energy(last)[:, 0] == pytest.approx(ours.energy(f), rel=1e-9)
    np.testing.assert_allclose(np.moveaxis(theirs.stress([last])[0][..., 0], 2, 0), ours.stress(f), rtol=1e-8)
    tangent = np.moveaxis(theirs.tangent([last])[0][..., 0], 4, 0).reshape(-1, 9, 9)
    np.testing.assert_allclose(tangent, ours.tangent(f), atol=1e-9 * np.abs(tangent).max())


def test_the_stored_figures_are_those_of_the_script():
    """On a mesh so coarse that it is made in seconds, to what that leaves."""
    pytest.importorskip("felupe")
    (force,) = Hexahedra(0.45, (3, 2.0), True).press((0.2,))
    assert force == pytest.approx(stored()[True, 0.45, 0.2][1], rel=0.03)
    (slides,) = Hexahedra(0.3, (2, 1.0), False).press((0.2,))
    assert slides == pytest.approx(stored()[False, 0.3, 0.2][1], rel=1e-4)
