"""Which triangles can be nearest to a point, by the cell that it lies in: exact distance without a search.

A cell of centre c and half diagonal R lists each triangle t with d(c, t) <= min_s d(c, s) + 2 R: by the
triangle inequality no other can be nearest to any of its points. The list is in the order of d(c, t), and a
point p is done with at the first t with d(c, t) - |p - c| above the least distance found so far. So the
answer is that of the search through all triangles, with a handful of them looked at.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import inlined

NONE = -1
"""Cell of a point that has no list."""


class CellLists(NamedTuple):
    """Box cells with lists of triangles; a cell beyond the band has none."""

    lower: NDArray[np.float64]  # (3,) of the cells [m]
    per: NDArray[np.float64]  # (3,) cells per metre
    shape: NDArray[np.int64]  # (3,) cells along each axis
    start: NDArray[np.int32]  # (cells + 1,) where the list of each begins, by rows
    triangle: NDArray[np.int32]  # (m,) the lists, one after the other
    reach: NDArray[np.float64]  # (m,) distance [m] of that triangle from the cell's centre


def no_cell_lists() -> CellLists:
    """No cells: every point has to search."""
    none = np.zeros(0, np.int32)
    return CellLists(np.zeros(3), np.zeros(3), np.zeros(3, np.int64), none, none, np.zeros(0))


@inlined
def cell_of(lists, p):
    """Number of the cell that holds p, (3,) [m], or NONE; squared distance [m2] of p from its centre."""
    lower, per, shape = lists.lower, lists.per, lists.shape
    number, far = 0, 0.0
    for a in range(3):
        along = (p[a] - lower[a]) * per[a]
        if not (along >= 0.0 and along < shape[a]):
            return NONE, 0.0
        k = int(along)
        off = (along - (k + 0.5)) / per[a]
        far += off * off
        number = number * shape[a] + k
    return number, far
