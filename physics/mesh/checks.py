"""What every mesh must satisfy before its shape is looked at: shape, finiteness, index range, use."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.numerics.errors import InputError

LARGEST_COORDINATE = 1e9
"""Beyond it, in any unit a file may use, a coordinate is a mistake, and volumes could overflow."""


def as_points(points: ArrayLike, source: str) -> NDArray[np.float64]:
    """Points as a contiguous float64 array, shape (n, 3); InputError names the first that is no position."""
    array = np.ascontiguousarray(points, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != 3 or len(array) == 0:
        raise InputError(f"{source}: nodes have shape {array.shape}, expected (n, 3) with n > 0.")
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST_COORDINATE).all(axis=1))
    if bad.size:
        raise InputError(
            f"{source}: node {bad[0]} (counted from 0) has coordinates {array[bad[0]].tolist()}, "
            f"which must be finite and at most {LARGEST_COORDINATE:g}."
        )
    return array


def as_cells(cells: ArrayLike, width: int, n_points: int, name: str, source: str) -> NDArray[np.int32]:
    """Connectivity as a contiguous int32 array, shape (m, width), every index in [0, n_points)."""
    array = np.asarray(cells)
    if array.ndim != 2 or array.shape[1] != width or len(array) == 0:
        raise InputError(f"{source}: {name}s have shape {array.shape}, expected (m, {width}) with m > 0.")
    if not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"{source}: {name}s index nodes with {array.dtype}, expected integers.")
    bad = np.flatnonzero(((array < 0) | (array >= n_points)).any(axis=1))
    if bad.size:
        raise InputError(
            f"{source}: {name} {bad[0]} (counted from 0) refers to nodes {array[bad[0]].tolist()}, "
            f"but nodes run from 0 to {n_points - 1}."
        )
    return np.ascontiguousarray(array, dtype=np.int32)


def require_referenced(n_points: int, cells: NDArray[np.int32], name: str, source: str) -> None:
    """InputError naming the first node that no cell uses: it would have no mass and no stiffness."""
    used = np.zeros(n_points, dtype=bool)
    used[cells] = True
    unused = np.flatnonzero(~used)
    if unused.size:
        raise InputError(
            f"{source}: node {unused[0]} (counted from 0) belongs to no {name} ({unused.size} such nodes); "
            "remove unreferenced nodes from the file."
        )


def drop_unreferenced(
    points: NDArray[np.float64], cells: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """The points that the cells use, in their old order, and the cells renumbered to them."""
    used, renumbered = np.unique(cells, return_inverse=True)
    return points[used], renumbered.reshape(cells.shape).astype(np.int32)
