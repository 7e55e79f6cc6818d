"""Nodes chosen by where they lie, for fixed regions and attachments."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.numerics.errors import InputError

EDGE_TOLERANCE = 1e-9
"""How far outside a region's edge a node still counts, over the largest coordinate: placing a body rounds."""


def nodes_in_box(nodes: NDArray[np.float64], lo: ArrayLike, hi: ArrayLike) -> NDArray[np.int32]:
    """Indices of the nodes with lo <= x <= hi, border included, possibly none.

    nodes: [m], shape (n, 3). lo, hi: opposite corners [m], shape (3,); infinite entries leave a side open.
    Raises InputError when lo exceeds hi along an axis.
    """
    lo, hi = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
    if not (lo <= hi).all():
        raise InputError(f"box region: lo {lo.tolist()} must not exceed hi {hi.tolist()} along any axis.")
    slack = EDGE_TOLERANCE * np.abs(nodes).max(initial=0.0)
    inside = ((nodes >= lo - slack) & (nodes <= hi + slack)).all(axis=1)
    return np.flatnonzero(inside).astype(np.int32)


def nodes_in_sphere(nodes: NDArray[np.float64], centre: ArrayLike, radius: float) -> NDArray[np.int32]:
    """Indices of the nodes within `radius` [m] of `centre` [m], shape (3,), border included, possibly none.

    nodes: [m], shape (n, 3). Raises InputError when the radius is not positive.
    """
    if not radius > 0.0:
        raise InputError(f"sphere region: the radius is {radius} m, expected a positive number.")
    slack = EDGE_TOLERANCE * np.abs(nodes).max(initial=0.0)
    distance = np.linalg.norm(nodes - np.asarray(centre, dtype=np.float64), axis=1)
    return np.flatnonzero(distance <= radius + slack).astype(np.int32)
