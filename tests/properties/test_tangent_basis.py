"""Tangents complete any unit normal to a right-handed orthonormal frame."""

import numpy as np
import pytest
from numba import njit

from palpo.physics.numerics.math3 import tangent_basis

STALE = 7.0
"""What stands where tangents are written: nothing of it may remain."""


@njit
def _frame(n, out):
    out[0] = n
    tangent_basis(n, out[1], out[2])


@pytest.mark.parametrize("largest", [1.0, 1e-9], ids=["any", "nearly along an axis"])
def test_a_normal_and_its_tangents_are_a_rotation(largest):
    rng = np.random.default_rng(0)
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    normals = rng.standard_normal((300, 3)) if largest == 1.0 else np.repeat(axes, 50, 0)
    normals = np.concatenate([axes, normals + largest * rng.uniform(-1.0, 1.0, normals.shape)])
    for n in normals / np.linalg.norm(normals, axis=1)[:, None]:
        frame = np.full((3, 3), STALE)
        _frame(n, frame)
        # a few rounded operations on numbers of size 1: 1 / (sign + n_z) has a divisor of 1 to 2
        assert np.abs(frame @ frame.T - np.eye(3)).max() < 1e-14
        assert np.linalg.det(frame) == pytest.approx(1.0, abs=1e-14)
