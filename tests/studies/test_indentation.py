"""The force of a ball on a block by another program, and how far elements are off it."""

import numpy as np
import pytest

from palpo.studies import indentation
from palpo.studies.reference.indentation import DEPTHS, RATIOS, forces, stored, without_pull


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


@pytest.mark.parametrize("nu", RATIOS)
def test_elements_that_share_their_change_of_volume_are_off_as_far_at_any_ratio(nu):
    """By what the shipped mesh leaves; plain ones by more and more."""
    truth = np.array([stored()[nu, depth] for depth in DEPTHS])
    shared, plain = (
        indentation.alone(name, (12, 3, 12), nu) / truth - 1.0 for name in ("tet4-patch", "tet4")
    )
    assert np.abs(shared).mean() < 0.1
    assert (plain > shared).all()
    assert np.abs(plain).mean() > 0.4 or nu < 0.49
