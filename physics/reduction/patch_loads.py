"""Smooth loads over a patch of contact points: what acts between them at a distance.

A load on one point and the same load spread over its neighbours deform a body alike, but for the layer under
the patch, which the response at a short step has. So columns at longer steps are needed for few loads only:
polynomials of the points' places.
"""

import numpy as np
from numpy.typing import NDArray

DEPENDENT = 1e-3
"""Share of the largest singular value below which a polynomial says no more than the others."""


def patch_loads(x: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Orthonormal loads (k, m) over points x (k, 3): polynomials up to a degree, in the plane of the points.

    For degree 2 there are six, fewer where the points are too few or on a line.
    """
    if not len(x):
        return np.zeros((0, 0))
    off = x - x.mean(axis=0)
    _, _, axes = np.linalg.svd(off, full_matrices=False)
    plane = off @ axes[:2].T
    plane /= max(float(np.abs(plane).max()), 1e-300)
    a, b = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1]))).T
    powers = [a ** (total - j) * b**j for total in range(degree + 1) for j in range(total + 1)]
    loads, sizes, _ = np.linalg.svd(np.column_stack(powers), full_matrices=False)
    return loads[:, sizes > DEPENDENT * sizes[0]]
