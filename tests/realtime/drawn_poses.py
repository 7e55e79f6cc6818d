"""Poses for hypothesis to draw."""

import numpy as np
from hypothesis import strategies as st

unit = st.floats(-1.0, 1.0, allow_subnormal=False)
"""A coordinate."""
quaternions = (
    st.tuples(unit, unit, unit, unit)
    .map(np.array)
    .filter(lambda q: np.linalg.norm(q) > 1e-3)
    .map(lambda q: q / np.linalg.norm(q))
)
"""Unit quaternions."""
