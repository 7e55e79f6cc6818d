"""A symmetric matrix summed in its lower triangle: the sum that it stands for, block by block."""

from itertools import pairwise

import numpy as np
import pytest

from palpo.physics.contact.lower_triangle import TILE, add_lower_products, clear_lower, fill_upper

pytestmark = pytest.mark.portable


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 8])
def test_products_in_lower_triangles_are_those_of_each_block_whole_and_symmetric_to_the_bit(rows):
    """Blocks below, at and above a tile, an empty one among them; what lies between and after them stays."""
    rng = np.random.default_rng(rows)
    span = np.cumsum([0, 5, 0, TILE, 2 * TILE + 7])
    n = int(span[-1]) + 3
    y = np.ascontiguousarray(rng.standard_normal((rows, n)))
    w = rng.standard_normal((n, n))
    before, wanted = w.copy(), w.copy()
    for first, past in pairwise(span):
        wanted[first:past, first:past] = -2.0 * y[:, first:past].T @ y[:, first:past]
    clear_lower(w, span)
    add_lower_products(w, span, y, -2.0)
    fill_upper(w, span)
    np.testing.assert_allclose(w, wanted, atol=1e-14 * rows * np.abs(wanted).max())
    inside = np.zeros((n, n), bool)
    for first, past in pairwise(span):
        inside[first:past, first:past] = True
        block = w[first:past, first:past]
        np.testing.assert_array_equal(block, block.T)
    np.testing.assert_array_equal(w[~inside], before[~inside])
