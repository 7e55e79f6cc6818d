"""The quaternion kernels against SciPy's rotations, for any angle and for none."""

import numpy as np
import pytest
from numba import njit
from scipy.spatial.transform import Rotation

from palpo.physics.numerics.math3 import (
    cross3,
    matvec3,
    matvec3_transposed,
    quat_difference,
    quat_from_rotvec,
    quat_multiply,
    quat_normalise,
    quat_rotate,
    quat_to_matrix,
    rotate_by,
    turn_vector,
)

ROUNDING = 1e-14
"""Of a few operations on numbers of size 1."""

_in_place = {name: njit(lambda r, x, f=f: f(r, x)) for name, f in (("q", rotate_by), ("a", turn_vector))}
_of_two = {
    f: njit(lambda p, q, out, f=f: f(p, q, out))
    for f in (quat_multiply, quat_difference, quat_rotate, cross3, matvec3, matvec3_transposed)
}
_of_one = {f: njit(lambda p, out, f=f: f(p, out)) for f in (quat_from_rotvec, quat_to_matrix)}
_normalise = njit(lambda q: quat_normalise(q))


def result(f, *given, shape=3):
    out = np.full(shape, np.nan)
    (_of_two if len(given) == 2 else _of_one)[f](*given, out)
    return out


def quaternion(turn):
    return turn.as_quat(scalar_first=True)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-5, 1.0, 3.1])
def test_products_differences_matrices_and_turned_vectors_are_those_of_the_rotations(seed, angle):
    rng = np.random.default_rng(seed)
    way = rng.standard_normal(3)
    r, a = angle * way / np.linalg.norm(way), rng.standard_normal(3)
    turn, other = Rotation.from_rotvec(r), Rotation.random(random_state=seed)
    q, p, m = quaternion(turn), quaternion(other), other.as_matrix()

    def same(ours, theirs):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=ROUNDING)

    same(result(quat_from_rotvec, r, shape=4), q)
    same(result(quat_to_matrix, p, shape=(3, 3)), m)
    same(result(quat_rotate, p, a), other.apply(a))
    same(result(matvec3, m, a), other.apply(a))
    same(result(matvec3_transposed, m, a), other.inv().apply(a))
    same(result(cross3, way, a), np.cross(way, a))
    both = result(quat_multiply, q, p, shape=4)
    np.testing.assert_allclose(
        Rotation.from_quat(both, scalar_first=True).as_matrix(), (turn * other).as_matrix(), atol=ROUNDING
    )
    same(result(quat_difference, both, p), r)
    same(result(quat_difference, -both, p), r)
    turned, vector, size = p.copy(), a.copy(), 3.0 * p
    _in_place["q"](r, turned)
    _in_place["a"](r, vector)
    _normalise(size)
    same(turned, both)
    same(vector, turn.apply(a))
    same(size, p)
