"""Distinct rows and sides of tables of indices."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from palpo.physics.mesh.distinct import distinct_rows, distinct_sides

TABLES = st.integers(2, 4).flatmap(
    lambda c: arrays(np.int32, st.tuples(st.integers(1, 40), st.just(c)), elements=st.integers(0, 5))
)


@given(TABLES)
def test_they_ascend_make_the_table_again_and_are_counted(table):
    rows, first, of, times = distinct_rows(table)
    assert all(tuple(a) < tuple(b) for a, b in pairwise(rows))
    assert np.array_equal(rows[of], table)
    assert np.array_equal(table[first], rows)
    assert all((table[:n] != row).any(axis=1).all() for n, row in zip(first, rows, strict=True))
    assert np.array_equal(times, np.bincount(of))


@pytest.mark.parametrize("corners", [3, 4])
def test_a_side_is_the_same_from_whichever_corner_it_is_told(corners):
    side = 7 * np.arange(corners)[::-1]
    turned = np.stack([np.roll(side, k) for k in range(corners)] + [side[::-1]])
    met = distinct_sides(np.concatenate([turned, turned + 1]).astype(np.int32))
    assert np.array_equal(met.rows, [side[::-1], side[::-1] + 1])
    assert np.array_equal(met.of, [0] * (corners + 1) + [1] * (corners + 1))
