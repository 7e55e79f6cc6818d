"""Patches of a tetrahedral mesh: groups of some five elements that lie close together, each element in one.

Candidates are the elements around an inner edge, and an element with those across its four faces. The most
compact ones (least surface^3 / volume^2, 36 pi for a ball) of five to eight elements are taken first, as far
as they do not overlap; then smaller ones of what is left. An element that is left over joins the patch across
its largest face. Where a mesh lists the five or six elements of each cell of eight nodes together, as
generated ones do, its cells are the patches. No patch crosses the border of two materials.

Such patches are those of de Souza Neto, Pires & Owen, F-bar-based linear triangles and tetrahedra for finite
strain analysis of nearly incompressible solids (IJNME 2005), which leaves open how they are found.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.tet import OUTWARD_FACES, tet_volumes

LEAST, MOST = 5, 8
"""Elements of a patch that is taken first."""

CORNERS = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])


def patches_of(
    nodes: NDArray[np.float64], tets: NDArray[np.int32], kind: NDArray[np.float64] | None = None
) -> NDArray[np.int32]:
    """Number of each element's patch, shape (m,), of nodes (n, 3) [m] and elements (m, 4).

    kind (m,): what all elements of a patch have alike.
    """
    kind = np.zeros(len(tets)) if kind is None else kind
    across, areas = _across(tets), _areas(nodes, tets)
    across[kind[across] != kind[:, None]] = -1
    for size in (5, 6):
        if len(tets) % size == 0 and _are_cells(tets.reshape(-1, 4 * size)):
            return _of_cells(kind.reshape(-1, size), across, areas)
    volumes = tet_volumes(nodes, tets)
    groups = sorted(
        (
            (len(group) < LEAST, -min(len(group), LEAST), _roundness(group, volumes, areas, across), group)
            for group in _candidates(tets, across)
            if len(group) <= MOST and (kind[list(group)] == kind[group[0]]).all()
        ),
    )
    patch, count = np.full(len(tets), -1, np.int32), 0
    for *_, group in groups:
        if (patch[list(group)] < 0).all():
            patch[list(group)] = count
            count += 1
    return _with_rest(patch, count, across, areas)


def _of_cells(
    kind: NDArray[np.float64], across: NDArray[np.int64], areas: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Patches of cells of so many elements each (c, size); those of a cell of two kinds join others."""
    pure = (kind == kind[:, :1]).all(axis=1)
    patch = np.where(pure, np.cumsum(pure, dtype=np.int32) - 1, np.int32(-1))
    return _with_rest(np.repeat(patch, kind.shape[1]), int(pure.sum()), across, areas)


def _are_cells(corners: NDArray[np.int32]) -> bool:
    """Whether each row (c, k) names eight nodes."""
    ordered = np.sort(corners, axis=1)
    return bool(((np.diff(ordered, axis=1) > 0).sum(axis=1) == 7).all())


def _areas(nodes: NDArray[np.float64], tets: NDArray[np.int32]) -> NDArray[np.float64]:
    """Of the faces opposite to the corners (m, 4) [m2]."""
    a, b, c = np.moveaxis(nodes[tets[:, OUTWARD_FACES]], 2, 0)
    return np.asarray(0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=2))


def _across(tets: NDArray[np.int32]) -> NDArray[np.int64]:
    """Elements across the faces opposite to the corners (m, 4); -1 where the mesh ends."""
    faces = np.sort(tets[:, OUTWARD_FACES].reshape(-1, 3), axis=1)
    order = np.lexsort(faces.T)
    same = np.flatnonzero((faces[order[1:]] == faces[order[:-1]]).all(axis=1))
    one, other = order[same], order[same + 1]
    out = np.full(len(faces), -1)
    out[one], out[other] = other // 4, one // 4
    return out.reshape(-1, 4)


def _candidates(tets: NDArray[np.int32], across: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    edges = np.sort(tets[:, CORNERS].reshape(-1, 2), axis=1)
    order = np.lexsort(edges.T)
    starts = np.flatnonzero(np.r_[True, (np.diff(edges[order], axis=0) != 0).any(axis=1)])
    for ring in np.split(order // 6, starts[1:]):
        if len(ring) > 1:
            yield tuple(sorted(ring.tolist()))
    for e, beside in enumerate(across.tolist()):
        yield tuple(sorted({e, *(k for k in beside if k >= 0)}))


def _roundness(
    group: tuple[int, ...],
    volumes: NDArray[np.float64],
    areas: NDArray[np.float64],
    across: NDArray[np.int64],
) -> float:
    """Surface^3 / volume^2 of elements together."""
    own, inside = list(group), set(group)
    area = sum(
        a for e in own for a, k in zip(areas[e].tolist(), across[e].tolist(), strict=True) if k not in inside
    )
    return float(area**3 / volumes[own].sum() ** 2)


def _with_rest(
    patch: NDArray[np.int32], count: int, across: NDArray[np.int64], areas: NDArray[np.float64]
) -> NDArray[np.int32]:
    """Elements that are in none put to the patch across their largest face, until all are in one."""
    while (left := np.flatnonzero(patch < 0)).size:
        taken = (across[left] >= 0) & (patch[across[left]] >= 0)
        size = np.where(taken, areas[left], -1.0)
        best = size.argmax(axis=1)
        joins = taken.any(axis=1)
        if not joins.any():
            patch[left[0]], count = count, count + 1
            continue
        at = left[joins]
        patch[at] = patch[across[at, best[joins]]]
    return patch
