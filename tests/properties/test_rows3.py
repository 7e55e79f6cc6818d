"""Products of many 3-vectors: those of NumPy, to the bit, whatever lies how in memory."""

import numpy as np
import pytest

from palpo.physics.numerics.arrays import cross_rows


@pytest.mark.parametrize("n", [0, 1, 2, 141])
@pytest.mark.parametrize("one_for_all", [False, True])
def test_cross_products_are_numpys(n: int, one_for_all: bool) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal(3) if one_for_all else rng.standard_normal((n, 3)), rng.standard_normal((n, 3))
    np.testing.assert_array_equal(cross_rows(a, b), np.cross(a, b))
    whole = rng.standard_normal((3, 2 * n))
    np.testing.assert_array_equal(cross_rows(a, whole[:, ::2].T), np.cross(a, whole[:, ::2].T))
