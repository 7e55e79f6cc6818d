"""Copies and checks of arrays for the servo's kernels: what cannot raise.

Where one slice is assigned to another numba compares their shapes, and raises where they differ. A tick must
not be able to raise, so that its copies say how many entries they copy.
"""

import numpy as np

from palpo.physics.numerics.kernels import inlined, kernel


@inlined
def copy(source, out):
    """out (n,) = the first n entries of source."""
    for i in range(out.shape[0]):
        out[i] = source[i]


@inlined
def copy_rows(source, out):
    """out (m, n) = the first n entries of the first m rows of source."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = source[i, j]


@kernel
def all_finite(values):
    """Whether no entry of values (n,) is NaN or infinite."""
    bad = 0
    for i in range(values.shape[0]):
        bad += 0 if abs(values[i]) < np.inf else 1
    return bad == 0
