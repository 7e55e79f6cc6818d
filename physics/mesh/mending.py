"""Surfaces as drawing programs leave them, made into surfaces that enclose a volume, where that is safe.

Safe is what moves nothing and leaves no choice: vertices in one place are one, triangles without area or
written twice go, triangles turn as their neighbours do and shells outward (inward around a hollow), a flat
hole is closed. What is left then is refused, in words, by `SurfaceMesh`.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from palpo.physics.mesh.surface import FLAT_TRIANGLE, SurfaceMesh
from palpo.physics.mesh.winding_numbers import winding_numbers
from palpo.physics.numerics.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SAME_PLACE = 1e-7
"""Vertices nearer than this share of the surface's extent are one: single precision keeps no more."""
FLAT_HOLE = 1e-3
"""A hole is flat where its vertices lie in one plane to this share of its extent."""


def mended(vertices: Floats, triangles: Ints, source: str) -> tuple[SurfaceMesh, list[str]]:
    """A surface of vertices (n, 3) and triangles (m, 3), and what was mended of it, in words.

    Raises InputError, naming `source`, for what cannot be mended and `SurfaceMesh.from_triangles` refuses.
    """
    said: list[str] = []
    triangles = _merged(vertices, np.asarray(triangles, np.int64), said)
    triangles = _with_area(vertices, triangles, said)
    if not len(triangles):
        raise InputError(f"{source}: none of its triangles has an area.")
    triangles = _turned_alike(triangles, source, said)
    vertices, triangles = _closed(vertices, triangles, said)
    surface = SurfaceMesh.from_triangles(vertices, triangles, source).compact()
    return (_turned_out(surface, said) if surface.closed else surface), said


def _merged(vertices: Floats, triangles: Ints, said: list[str]) -> Ints:
    """Triangles of which vertices in one place are the first of them."""
    used = np.unique(triangles)
    near = SAME_PLACE * np.ptp(vertices[used], axis=0).max()
    pairs = used[cKDTree(vertices[used]).query_pairs(near, output_type="ndarray")]
    if not len(pairs):
        return triangles
    place = _together(pairs, len(vertices))
    first = np.unique(place, return_index=True)[1]
    said.append(
        _count(len(used) - len(np.unique(place[used])), "vertex", "merged with one in the same place")
    )
    return first[place][triangles]


def _with_area(vertices: Floats, triangles: Ints, said: list[str]) -> Ints:
    """Triangles without those that have no area or are there already."""
    corners = vertices[triangles]
    sides = np.roll(corners, -1, axis=1) - corners
    longest = (sides**2).sum(axis=2).max(axis=1)
    has = np.linalg.norm(np.cross(sides[:, 0], sides[:, 1]), axis=1) > FLAT_TRIANGLE * longest
    if not has.all():
        said.append(_count(int((~has).sum()), "triangle", "without area left out"))
    triangles = triangles[has]
    once = np.unique(np.sort(triangles, axis=1), axis=0, return_index=True)[1]
    if len(once) < len(triangles):
        said.append(_count(len(triangles) - len(once), "triangle", "written twice left out"))
    return triangles[np.sort(once)]


def _turned_alike(triangles: Ints, source: str, said: list[str]) -> Ints:
    """Triangles turned so that two of one edge run it in opposite directions.

    Each triangle stands in a graph as it is and turned; what must turn alike is joined. Raises InputError for
    a surface of one side.
    """
    m = len(triangles)
    half = _halves(triangles)
    low, high = half.min(axis=1), half.max(axis=1)
    order = np.lexsort((high, low))
    begins = np.append(True, (np.diff(low[order]) != 0) | (np.diff(high[order]) != 0))
    start = np.flatnonzero(begins)
    start = start[np.diff(np.append(start, len(order))) == 2]
    one, other = order[start], order[start + 1]
    beside = other // 3 + np.where(half[one, 0] == half[other, 1], 0, m)
    pairs = np.stack([one // 3, beside], axis=1)
    group = _together(np.concatenate([pairs, (pairs + m) % (2 * m)]), 2 * m)
    is_so, turned = group[:m], group[m:]
    if (is_so == turned).any():
        raise InputError(
            f"{source}: the surface has one side only, as a Moebius strip has; it encloses nothing."
        )
    # each part has two ways to lie: the one that most of its triangles have, or else the first
    size = np.bincount(is_so, minlength=group.max() + 1)
    flip = (size[turned] > size[is_so]) | ((size[turned] == size[is_so]) & (turned < is_so))
    if flip.any():
        said.append(_count(int(flip.sum()), "triangle", "turned as the neighbours are"))
    return np.where(flip[:, None], triangles[:, ::-1], triangles)


def _closed(vertices: Floats, triangles: Ints, said: list[str]) -> tuple[Floats, Ints]:
    """With flat holes that are seen whole from their middle closed, by a fan around it."""
    middles: list[Floats] = []
    fans: list[Ints] = []
    for loop in _holes(triangles):
        middle = vertices[loop].mean(axis=0)
        spokes = vertices[loop] - middle
        areas = np.cross(spokes, np.roll(spokes, -1, axis=0))
        normal = areas.sum(axis=0)
        length, extent = np.linalg.norm(normal), np.linalg.norm(np.ptp(spokes, axis=0))
        flat = np.abs(spokes @ normal).max() <= FLAT_HOLE * extent * length
        if flat and (areas @ normal > FLAT_TRIANGLE * length * extent**2).all():
            tip = np.full(len(loop), len(vertices) + len(middles))
            fans.append(np.stack([loop, np.roll(loop, -1), tip], axis=1))
            middles.append(middle)
    if not fans:
        return vertices, triangles
    said.append(_count(len(fans), "flat hole", "closed"))
    return np.concatenate([vertices, middles]), np.concatenate([triangles, *fans])


def _holes(triangles: Ints) -> Iterator[Ints]:
    """Vertices around each hole, as triangles that close it run them; of holes that meet none."""
    half = _halves(triangles).tolist()
    there = set(map(tuple, half))
    border = [(b, a) for a, b in half if (b, a) not in there]
    begins, times = np.unique([a for a, _ in border], return_counts=True)
    crowded = set(begins[times > 1].tolist())
    after = {a: b for a, b in border if a not in crowded}
    while after:
        begin, at = after.popitem()
        loop = [begin]
        while at in after:
            loop.append(at)
            at = after.pop(at)
        if at == begin:
            yield np.array(loop)


def _turned_out(surface: SurfaceMesh, said: list[str]) -> SurfaceMesh:
    """A closed surface whose shells face outward, and inward where they bound a hollow of another."""
    shell = _together(surface.edges, len(surface.vertices))[surface.triangles[:, 0]]
    parts = [SurfaceMesh.patch(surface.vertices, surface.triangles[shell == k]) for k in np.unique(shell)]
    flip = np.zeros(len(shell), bool)
    for k, part in enumerate(parts):
        point = surface.vertices[part.triangles[0, :1]]
        around = sum(
            abs(float(winding_numbers(point, other)[0])) > 0.5 for other in parts if other is not part
        )
        if (part.signed_volume > 0.0) != (around % 2 == 0):
            flip[shell == np.unique(shell)[k]] = True
    if not flip.any():
        return surface
    said.append(_count(len(np.unique(shell[flip])), "shell", "turned inside out"))
    return SurfaceMesh.from_triangles(
        surface.vertices, np.where(flip[:, None], surface.triangles[:, ::-1], surface.triangles)
    )


def _halves(triangles: Ints) -> Ints:
    """The edges of triangles, each as its triangle runs it (3 m, 2)."""
    return triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)


def _together(pairs: NDArray[np.integer], n: int) -> Ints:
    """Numbers (n,) of the parts that pairs (k, 2) join."""
    graph = coo_array((np.ones(len(pairs), np.int8), pairs.T), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _count(n: int, what: str, done: str) -> str:
    return f"{n} {what if n == 1 else {'vertex': 'vertices'}.get(what, f'{what}s')} {done}"
