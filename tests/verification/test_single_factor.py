"""A factor in single precision: its answers are those of the matrix, turned node by node or not."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from palpo.physics.bodies.held_motion import turned_part
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.elimination import analyse
from palpo.physics.fem.material import Material
from palpo.physics.fem.single import SingleFactor
from palpo.physics.mesh import generate

pytestmark = pytest.mark.portable

H = 1e-2
MATERIAL = Material(2e4, 0.42, 1100.0, 0.2, 1e-3)


@pytest.fixture(scope="module")
def made():
    """A factor of a block's matrix, and that matrix."""
    body = SoftBody("block", generate.hex_block((0.06, 0.03, 0.03), (6, 3, 3)), MATERIAL, [0, 1, 2])
    pattern, m = body._pattern, body.material
    factor = SingleFactor(analyse(body.free.size, pattern.rows, pattern.cols))
    weights = H * (m.beta + H), 1.0 + H * m.alpha
    factor.refactor(body.warped_blocks, body._mass, *weights)
    return factor, (weights[0] * body.K + weights[1] * body.M).toarray()


def in_norm(error, matrix):
    return np.sqrt(np.einsum("ki,ij,kj->k", error, matrix, error))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("size", [1.0, 2.0**-140], ids=["", "below what single precision has"])
def test_an_answer_is_off_by_what_single_precision_leaves(made, turned, size):
    factor, a = made
    n = len(a) // 3
    turns = Rotation.random(n, random_state=1).as_matrix() if turned else np.tile(np.eye(3), (n, 1, 1))
    factor.turns[:] = turns
    r = np.zeros_like(a)
    for k in range(n):
        r[3 * k : 3 * k + 3, 3 * k : 3 * k + 3] = turns[k]
    matrix = r @ a @ r.T
    b = np.random.default_rng(0).standard_normal((3, len(a)))
    b[2, 30:] = 0.0
    wanted = np.linalg.solve(matrix, b.T).T
    found = factor.solve_few(size * b) / size
    # unit roundoff times the root of the condition number, which scales the norm of a residual
    bound = 4.0 * np.finfo(np.float32).eps * np.sqrt(np.linalg.cond(a))
    assert (in_norm(found - wanted, matrix) < bound * in_norm(wanted, matrix)).all()
    np.testing.assert_array_equal(factor.solve(size * b[1]), size * found[1])
    np.testing.assert_array_equal(factor.solve_many(size * b.T), size * found.T)
    factor.turns[:] = np.eye(3)


def test_no_load_has_no_answer(made):
    assert not made[0].solve(np.zeros(len(made[1]))).any()


def test_a_part_of_a_turned_matrix_is_that_of_its_turned_blocks():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((15, 15))
    a += a.T
    places, turns = np.array([1, 2, 4]), Rotation.random(3, random_state=2).as_matrix()
    out = np.empty((9, 9))
    turned_part(a, places, turns, out)
    for i in range(3):
        for j in range(3):
            block = a[3 * places[i] : 3 * places[i] + 3, 3 * places[j] : 3 * places[j] + 3]
            wanted = turns[i] @ block @ turns[j].T
            np.testing.assert_allclose(out[3 * i : 3 * i + 3, 3 * j : 3 * j + 3], wanted, atol=1e-13)
    np.testing.assert_array_equal(out, out.T)
