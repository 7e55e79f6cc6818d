"""The k-th least of some numbers is what stands at k once they are sorted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from palpo.physics.collision.kept_pairs import kth_least

SOME = st.sampled_from([-np.inf, -1.0, -0.0, 0.5, 2.0, np.inf])
NUMBERS = st.lists(SOME | st.floats(allow_nan=False), min_size=1)


@given(NUMBERS)
def test_the_kth_least_stands_at_k_of_the_sorted_numbers(numbers):
    for k, expected in enumerate(sorted(numbers)):
        values = np.array(numbers)
        assert kth_least(values, k) == expected
        assert sorted(values) == sorted(numbers)
