"""Tetrahedra inside a smooth closed surface that is given as a function: isosurface stuffing.

A body-centred cubic lattice is cut along the surface. Lattice nodes that a cut comes too near to are moved
onto it first, so that no cut leaves a sliver, and the inside of every tetrahedron that is still cut is filled
by one to three. Source: Labelle & Shewchuk, Isosurface stuffing: fast tetrahedral meshes with good dihedral
angles (SIGGRAPH 2007), whose thresholds these are; quadrilaterals are halved by the order of their nodes.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.generate import THREE_TETS
from palpo.physics.mesh.tet import TetMesh, orient_tets

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONG, SHORT = 0.24999, 0.41189
"""Share of an edge, between centres and from centre to corner, below which a cut moves the node to itself."""

BISECTIONS = 40
"""Halvings of an edge that find a cut: to rounding."""


def stuffed(inside: Callable[[Floats], Floats], corners: Floats, spacing: float) -> TetMesh:
    """Tetrahedra of where `inside` (n, 3) -> (n,) is positive, on a lattice of cubes of edge `spacing` [m].

    corners (2, 3): a box around it.  The lattice is symmetric about the origin.
    """
    nodes, tets = _lattice(corners, spacing)
    value = inside(nodes)
    tets = tets[(value[tets] > 0.0).any(axis=1)]
    edges = distinct_sides(tets[:, np.array(np.triu_indices(4, 1)).T].reshape(-1, 2)).rows
    cut = edges[value[edges[:, 0]] * value[edges[:, 1]] < 0.0]
    places, share = _cuts(inside, nodes, cut, value)
    nodes, value = _moved(nodes, value, cut, places, share, spacing)
    kept = value[cut[:, 0]] * value[cut[:, 1]] < 0.0
    cut, places = cut[kept], places[kept]
    number = dict(zip(map(tuple, cut.tolist()), range(len(nodes), len(nodes) + len(cut)), strict=True))
    filled = np.concatenate(_fill(tets, np.sign(value), number))
    nodes = np.concatenate([nodes, places])
    used, numbers = np.unique(filled, return_inverse=True)
    nodes = np.ascontiguousarray(nodes[used])
    # neighbours in space are neighbours in memory
    order = np.lexsort(np.round(nodes / (0.5 * spacing)).T)
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    nodes, cells = np.ascontiguousarray(nodes[order]), place[numbers.reshape(-1, 4)]
    return TetMesh(nodes, orient_tets(nodes, cells))


def _lattice(corners: Floats, spacing: float) -> tuple[Floats, Ints]:
    """Nodes and tetrahedra of a lattice that covers a box: four around each face that two cubes share."""
    low, high = np.floor(corners[0] / spacing).astype(int) - 1, np.ceil(corners[1] / spacing).astype(int) + 1
    n = high - low
    corner = np.indices(n + 1).reshape(3, -1).T
    centre = np.indices(n).reshape(3, -1).T
    nodes = spacing * (np.concatenate([corner, centre + 0.5]) + low)

    def at_corner(i: Ints) -> Ints:
        return (i[:, 0] * (n[1] + 1) + i[:, 1]) * (n[2] + 1) + i[:, 2]

    def at_centre(i: Ints) -> Ints:
        return len(corner) + (i[:, 0] * n[1] + i[:, 1]) * n[2] + i[:, 2]

    tets = []
    for axis in range(3):
        step, one, two = np.roll(np.eye(3, dtype=int), axis, axis=0)
        second = centre[centre[:, axis] >= 1]
        ring = [second, second + one, second + one + two, second + two]
        pair = at_centre(second - step), at_centre(second)
        for k in range(4):
            tets.append(np.stack([*pair, at_corner(ring[k]), at_corner(ring[(k + 1) % 4])], axis=1))
    return nodes, np.concatenate(tets)


def _cuts(
    inside: Callable[[Floats], Floats], nodes: Floats, edges: Ints, value: Floats
) -> tuple[Floats, Floats]:
    """Where the surface crosses edges (k, 2): places (k, 3), and shares from the first end (k,)."""
    first, way = nodes[edges[:, 0]], nodes[edges[:, 1]] - nodes[edges[:, 0]]
    low, high = np.zeros(len(edges)), np.ones(len(edges))
    start = value[edges[:, 0]] > 0.0
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        same = (inside(first + middle[:, None] * way) > 0.0) == start
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    share = 0.5 * (low + high)
    return first + share[:, None] * way, share


def _moved(
    nodes: Floats, value: Floats, cut: Ints, places: Floats, share: Floats, spacing: float
) -> tuple[Floats, Floats]:
    """The nodes, those too near to a cut moved onto the nearest of their cuts, where they are zero."""
    length = np.linalg.norm(nodes[cut[:, 1]] - nodes[cut[:, 0]], axis=1)
    near = np.where(length > 0.95 * spacing, LONG, SHORT)
    ends = np.concatenate([cut[:, 0], cut[:, 1]])
    off = np.concatenate([share, 1.0 - share])
    close = np.flatnonzero(off < np.tile(near, 2))
    close = close[np.argsort(-(off * np.tile(length, 2))[close], kind="stable")]
    nodes, value = nodes.copy(), value.copy()
    # the last one written is the nearest
    nodes[ends[close]] = np.tile(places, (2, 1))[close]
    value[ends[close]] = 0.0
    return nodes, value


def _fill(tets: Ints, sign: Floats, number: dict[tuple[int, int], int]) -> list[Ints]:
    """The insides of tetrahedra (m, 4) by the signs of their nodes; number: node of each cut edge."""
    of = sign[tets]
    plus, minus = (of > 0).sum(axis=1), (of < 0).sum(axis=1)
    whole = tets[(plus > 0) & (minus == 0)]
    out: list[tuple[int, ...]] = []

    def at(a: int, b: int) -> int:
        return number[min(a, b), max(a, b)]

    for tet, s in zip(
        tets[(plus > 0) & (minus > 0)].tolist(), of[(plus > 0) & (minus > 0)].tolist(), strict=True
    ):
        p = sorted(n for n, k in zip(tet, s, strict=True) if k > 0)
        z = [n for n, k in zip(tet, s, strict=True) if k == 0]
        m = [n for n, k in zip(tet, s, strict=True) if k < 0]
        # a quadrilateral between two inner nodes is halved from the first of them, on either side of its face
        if len(p) == 1:
            out.append((p[0], *z, *(at(p[0], n) for n in m)))
        elif len(p) == 2 and len(m) == 1:
            far = at(p[1], m[0])
            out += [(z[0], p[0], p[1], far), (z[0], p[0], far, at(p[0], m[0]))]
        else:
            if len(p) == 3:
                prism = [*p, *(at(n, m[0]) for n in p)]
            else:
                prism = [p[0], at(p[0], m[0]), at(p[0], m[1]), p[1], at(p[1], m[0]), at(p[1], m[1])]
            out += [tuple(prism[i] for i in corners) for corners in THREE_TETS.tolist()]
    return [whole, np.array(out, np.int64).reshape(-1, 4)]
