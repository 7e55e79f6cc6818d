"""Copies and checks of arrays for the servo's kernels: what cannot raise.

Where one slice is assigned to another numba compares their shapes, and raises where they differ. A tick must
not be able to raise, so that its copies say how many entries they copy.

Products of many 3-vectors at once, for Python; what compiled code calls is in `math3`.
"""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import cross3


@kernel
def _cross_rows(a, b, out):
    step = 1 if a.shape[0] > 1 else 0
    for k in range(out.shape[0]):
        cross3(a[step * k], b[k], out[k])


def cross_rows(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """a x b for a (3,) or (n, 3) and b (n, 3): bit for bit np.cross, without what a call of that costs."""
    out = np.empty(b.shape)
    _cross_rows(np.ascontiguousarray(np.atleast_2d(a)), np.ascontiguousarray(b), out)
    return out


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
