"""A basis whose columns stay: what is carried along is what would be computed anew."""

import numpy as np
import pytest

from palpo.physics.bodies.soft_points import rigid_motions
from palpo.physics.reduction.rational_krylov import HEALED, RecycledBasis


def test_the_gram_matrix_carried_along_is_the_basis_own_while_columns_come_and_go():
    """Rigid motions about a shape that moves by a thousandth a frame; 100 frames of roundings."""
    rng = np.random.default_rng(0)
    x, mass = rng.standard_normal((30, 3)), np.repeat(rng.uniform(1.0, 2.0, 30), 3)
    basis, most, used = RecycledBasis(mass, 24), 24, 18
    basis.put(np.arange(used), rng.standard_normal((90, used)))
    for frame in range(100):
        if frame % 7 == 0:
            basis.put(np.array([2, 11]), rng.standard_normal((90, 2)))
        if frame == 50:
            basis.cut(12)
        if frame == 60:
            basis.put(np.arange(12, most), rng.standard_normal((90, most - 12)))
        x += 1e-3 * rng.standard_normal((30, 3))
        rigid = rigid_motions(x)
        basis.settle(rigid)
        b = basis.whole[:, : basis.count]
        assert basis.count == (used if frame < 50 else 12 if frame < 60 else most)
        np.testing.assert_allclose(basis.gram, b.T @ (mass[:, None] * b), atol=1e-11)
        np.testing.assert_allclose(b.T @ (mass[:, None] * rigid), 0.0, atol=1e-11)
        assert not basis.whole[:, basis.count :].any()


@pytest.mark.parametrize("wrong", [(3, 5), (7, 9), (0, 0), (9, 9)])
def test_a_gram_matrix_that_has_gone_wrong_is_right_again_once_every_column_had_its_turn(wrong):
    rng = np.random.default_rng(1)
    basis = RecycledBasis(np.ones(40), 64)
    basis.put(np.arange(10), rng.standard_normal((40, 10)))
    basis.settle(None)
    basis.gram[wrong] += 1.0
    for _ in range(-(-10 // HEALED)):
        basis.settle(None)
    b = basis.whole[:, :10]
    np.testing.assert_allclose(basis.gram, b.T @ b, atol=1e-13)


def test_a_frame_computes_anew_only_what_has_changed_and_a_few_in_turn():
    """Of 30 columns one is new; of a Gram matrix that is wrong throughout the rest stays wrong."""
    rng = np.random.default_rng(2)
    basis = RecycledBasis(np.ones(40), 30)
    basis.put(np.arange(30), rng.standard_normal((40, 30)))
    basis.settle(None)
    basis.gram[:] += 1.0
    basis.put(np.array([17]), rng.standard_normal((40, 1)))
    basis.settle(None)
    b = basis.whole
    right = np.isclose(basis.gram, b.T @ b, atol=1e-12).all(axis=0)
    assert right[17] and right.sum() == 1 + HEALED


def test_columns_are_as_many_as_the_last_that_was_put_and_no_cut_adds_any():
    basis = RecycledBasis(np.ones(6), 8)
    basis.put(np.zeros(0, np.intp), np.zeros((6, 0)))
    assert basis.count == 0
    basis.settle(None)
    basis.put(np.array([4]), np.ones((6, 1)))
    basis.put(np.array([1]), np.ones((6, 1)))
    assert basis.count == 5
    basis.cut(7)
    assert basis.count == 5
    basis.cut(2)
    assert basis.count == 2
    assert not basis.whole[:, 2:].any()
