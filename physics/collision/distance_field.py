"""The signed distance of a rigid solid in its own frame: exact, on a grid or learned, behind one kernel.

`evaluate` is one compiled function for all three, so that a scene's choice changes data and not the tick.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.collision.grid_distance import GridDistance, grid_block, grid_distance, no_grid_distance
from palpo.physics.collision.learned_distance import (
    BLOCK,
    LearnedDistance,
    learned_block,
    make_layers,
    no_learned_distance,
)
from palpo.physics.collision.near_band import NearBand, everywhere, least_distance
from palpo.physics.collision.nearest import Descent, make_descent
from palpo.physics.collision.signed_distance import (
    ExactDistance,
    exact_block,
    exact_distance,
    no_exact_distance,
    with_cell_lists,
)
from palpo.physics.collision.solid import require_solid
from palpo.physics.mesh.checks import as_points
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel

EXACT, GRID, LEARNED = 0, 1, 2
"""Kinds of a DistanceField."""

BAND_CELLS = 32
"""Cells of the near band along the longest side of its box."""
LIST_CELLS = 48
"""Cells with a list of triangles along the longest side of that box."""
SHARE = 4096
"""Points that one thread takes at a time off line."""

Kept = Callable[[int, Callable[[], NDArray[np.float64]]], NDArray[np.float64]]
"""Gives n samples [m], (n,), that were kept, or those of a function that computes them."""


class DistanceField(NamedTuple):
    """A solid's distance; of the three models only that of `kind` is filled."""

    kind: int
    near: NearBand
    exact: ExactDistance
    grid: GridDistance
    learned: LearnedDistance


class DistanceScratch(NamedTuple):
    """What `evaluate` writes beside its results; one for each thread."""

    block: NDArray[np.int64]  # (BLOCK,) points evaluated together
    descent: Descent
    layers: NDArray[np.float32]


def make_scratch() -> DistanceScratch:
    """Scratch of one thread, for every field."""
    return DistanceScratch(np.zeros(BLOCK, np.int64), make_descent(), make_layers())


@kernel
def _evaluate_block(field, points, count, distance, normal, scratch):
    if field.kind == EXACT:
        exact_block(field.exact, points, scratch.block, count, distance, normal, scratch.descent)
    elif field.kind == GRID:
        grid_block(field.grid, points, scratch.block, count, distance, normal)
    else:
        learned_block(field.learned, points, scratch.block, count, distance, normal, scratch.layers)


@kernel
def evaluate(field, points, n, distance, normal, scratch):
    """Signed distance [m] and unit normal of the first n points in the solid's frame, (n, 3) [m].

    distance (n,), normal (n, 3). Within the band (`field.near`) they are the model's. Beyond it, outside, the
    distance is a lower bound of the true one, itself above the band, and the normal is zero.
    """
    count = 0
    for i in range(n):
        bound = least_distance(field.near, (points[i, 0], points[i, 1], points[i, 2]))
        if bound > field.near.band:
            distance[i] = bound
            for j in range(3):
                normal[i, j] = 0.0
            continue
        scratch.block[count] = i
        count += 1
        if count == BLOCK:
            _evaluate_block(field, points, count, distance, normal, scratch)
            count = 0
    if count:
        _evaluate_block(field, points, count, distance, normal, scratch)


def exact_field(surface: SurfaceMesh, band: float = np.inf, source: str = "plug") -> DistanceField:
    """The reference: distance to the mesh itself, computed up to `band` [m].

    Raises InputError for a band that is not positive and, naming `source`, for a surface that is open, inside
    out or crosses itself.
    """
    field = _searched_field(surface, band, source)
    if band == np.inf:
        return field
    solid = field.near.solid
    return field._replace(
        exact=with_cell_lists(field.exact, solid[0] - band, solid[1] + band, LIST_CELLS, band)
    )


def _searched_field(surface: SurfaceMesh, band: float, source: str) -> DistanceField:
    """As `exact_field`, but every nearest triangle is searched for."""
    if not band > 0.0:
        raise InputError(f"{source}: the band around the solid is {band} m, expected a positive length.")
    require_solid(surface, source)
    near = everywhere(surface.vertices[surface.used_vertices])
    field = DistanceField(EXACT, near, exact_distance(surface), no_grid_distance(), no_learned_distance())
    return field if band == np.inf else field._replace(near=_near_band(field, band))


def _anew(_n: int, sample: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
    return sample()


def grid_field(
    surface: SurfaceMesh, band: float, spacing: float, source: str = "plug", kept: Kept = _anew
) -> DistanceField:
    """Samples every `spacing` [m] up to `band` [m]; raises as `exact_field` and `grid_distance` do."""
    field = _searched_field(surface, band, source)
    whole = field._replace(near=everywhere(field.near.solid))
    grid = grid_distance(
        lambda points: kept(len(points), lambda: signed_distance(whole, points)[0]),
        field.near.solid[0] - band, field.near.solid[1] + band, spacing,
    )  # fmt: skip
    return field._replace(kind=GRID, exact=no_exact_distance(), grid=grid)


def learned_field(surface: SurfaceMesh, learned: LearnedDistance, source: str = "plug") -> DistanceField:
    """A network that was trained on this surface, within its own band; raises as `exact_field` does."""
    field = _searched_field(surface, learned.band, source)
    return field._replace(kind=LEARNED, exact=no_exact_distance(), learned=learned)


def signed_distance(
    field: DistanceField, points: ArrayLike, threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distance [m] (n,) and normal (n, 3) of points (n, 3) [m], off line, on all cores or `threads`.

    As `evaluate`, which holds no interpreter lock: the points are shared out to threads, and the result does
    not depend on how many there are.
    """
    p = as_points(points, "points")
    distance, normal = np.empty(len(p)), np.empty(p.shape)

    def share(start: int) -> None:
        part = slice(start, start + SHARE)
        n = len(distance[part])
        evaluate(field, p[part], n, distance[part], normal[part], make_scratch())

    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        list(pool.map(share, range(0, len(p), SHARE)))
    return distance, normal


def _near_band(exact: DistanceField, band: float) -> NearBand:
    solid = exact.near.solid
    lower, size = solid[0] - band, np.ptp(solid, axis=0) + 2.0 * band
    cells = np.ceil(BAND_CELLS * size / size.max()).astype(int)
    cell = size / cells
    centres = lower + cell * (np.indices(cells).reshape(3, -1).T + 0.5)
    distance = signed_distance(exact, centres)[0].reshape(cells)
    # a distance changes no faster than the point moves
    return NearBand(band, solid, lower, 1.0 / cell, distance - 0.5 * float(np.linalg.norm(cell)))
