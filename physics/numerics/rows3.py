"""Products of many 3-vectors at once, for Python; what compiled code calls is in `math3`."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import kernel
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
