"""Inside and outside on one surface: the pieces into which its sealed vertices part the others (000, 3.2.2).

Air flows along the surface wherever the other body is farther than the sealing distance, so the unsealed
vertices fall into connected pieces. One of them is the outside, every other the wall of a cavity.

**Which one is outside** is told without a seed by the volume between a piece and the centre of its ring: the
wall of a cavity is a hollow, negative because its normals point into the air that it holds, or at most the
nose of a convex body in the other's hollow; the outer skin encloses the body. So the greatest volume of each
connected surface is outside. A seed of the user's settles the cases in which that is wrong, such as a plug
most of which is in its hole. Air also flows around the rim of an open surface: a piece that reaches it is
outside. A piece that no ring bounds is outside as well.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.records import counters

FAR, NEAR, SEALED, TOUCHING = 0, 1, 2, 3
"""Labels of a vertex; air passes where it is less than SEALED."""


class Thresholds(NamedTuple):
    """The three distances [m]; see `thresholds`."""

    contact: float
    sealing: float
    alarm: float


def thresholds(contact: float, sealing: float, alarm: float) -> Thresholds:
    """The gap that contact keeps, the one that lets no air through, and the one up to which contacts are
    looked for [m].

    Raises InputError unless 0 <= contact <= sealing <= alarm and sealing > 0, all finite.
    """
    for name, value in (("contact", contact), ("sealing", sealing), ("alarm", alarm)):
        if not 0.0 <= value < np.inf:
            raise InputError(f"The {name} distance is {value:g} m; it must be finite and not negative.")
    if sealing > alarm:
        raise InputError(
            f"The sealing distance, {sealing:g} m, is above the alarm distance, {alarm:g} m: vertices would "
            "have to seal that are never looked at; choose it at most equal."
        )
    if sealing <= 0.0 or sealing < contact:
        raise InputError(
            f"The sealing distance is {sealing:g} m; it must be positive and at least the contact distance, "
            f"{contact:g} m, or a pressed rim would not seal."
        )
    return Thresholds(float(contact), float(sealing), float(alarm))


@kernel
def label_vertices(distance, limits, label):
    """label (n,) = the label of each vertex at its signed distance (n,) [m] from the other body.

    A vertex whose distance is not known, inf or nan, is FAR.
    """
    for v in range(distance.size):
        d = distance[v]
        if d <= limits.contact:
            label[v] = TOUCHING
        elif d <= limits.sealing:
            label[v] = SEALED
        elif d <= limits.alarm:
            label[v] = NEAR
        else:
            label[v] = FAR


@kernel
def distances_wanted(connectivity, label, distance, out):
    """Vertices beside a sealed one that let air through and whose distance is not known; returns how many.

    The sealing iso-line is interpolated on the edges to them, though they may lie beyond the alarm distance:
    query their distances. out (n,).
    """
    count = 0
    for v in range(label.size):
        if label[v] >= SEALED or np.isfinite(distance[v]):
            continue
        for k in range(connectivity.around[v], connectivity.around[v + 1]):
            if label[connectivity.neighbours[k]] >= SEALED:
                out[count] = v
                count += 1
                break
    return count


class Connectivity(NamedTuple):
    """Connectivity of a manifold surface of n vertices, m triangles and k edges."""

    triangles: NDArray[np.int64]  # (m, 3) outward by the right-hand rule
    across: NDArray[np.int64]  # (m, 3) triangle beyond the edges ab, bc, ca, -1 at a rim
    triangle_edges: NDArray[np.int64]  # (m, 3) edges ab, bc, ca
    edges: NDArray[np.int64]  # (k, 2)
    around: NDArray[np.int64]  # (n + 1,) span of each vertex in `neighbours`
    neighbours: NDArray[np.int64]  # (2 k,) vertices at the other ends of each vertex's edges
    rim: NDArray[np.bool_]  # (n,) whether the surface ends there (an open surface)
    shell: NDArray[np.int64]  # (n,) number of the connected piece of surface


def connectivity(surface: SurfaceMesh) -> Connectivity:
    """The connectivity of a surface; vertices that no triangle uses are shells of their own."""
    n = len(surface.vertices)
    triangles = surface.triangles.astype(np.int64)
    edges = surface.edges.astype(np.int64)
    numbers = {edge: k for k, edge in enumerate(map(frozenset, edges.tolist()))}
    sides = triangles[:, [[0, 1], [1, 2], [2, 0]]]
    triangle_edges = np.array([[numbers[frozenset(s)] for s in t] for t in sides.tolist()], np.int64)
    left, right = surface.edge_triangles.astype(np.int64)[triangle_edges].transpose(2, 0, 1)
    across = np.where(left == np.arange(len(triangles))[:, None], right, left)

    ends = np.concatenate([edges, edges[:, ::-1]])
    order = np.argsort(ends[:, 0], kind="stable")
    rim = np.zeros(n, bool)
    rim[edges[surface.edge_triangles[:, 1] < 0]] = True
    graph = coo_array((np.ones(len(edges), np.int8), edges.T), shape=(n, n))
    return Connectivity(
        triangles=triangles,
        across=np.ascontiguousarray(across),
        triangle_edges=triangle_edges,
        edges=edges,
        around=np.searchsorted(ends[order, 0], np.arange(n + 1)).astype(np.int64),
        neighbours=np.ascontiguousarray(ends[order, 1]),
        rim=rim,
        shell=connected_components(graph, directed=False)[1].astype(np.int64),
    )


OUTSIDE, RING = -1, -2
"""Entries of `Flood.cavity` besides the numbers of cavities."""

FLOOD_SIZE = counters("cavities", "footprints", "lost", "seed_refused")
"""Cavities; footprints; cavities lost to the capacity; 1 if the seed was refused."""


class Flood(NamedTuple):
    """Inner surfaces and footprints of a surface of n vertices, and scratch.

    A *footprint* is everything inside an outermost sealed ring: connected vertices none of which is outside.
    A cavity is in one footprint, which may hold several, or none: a body that merely rests on another.
    """

    size: NDArray[Any]  # (1,) of FLOOD_SIZE
    cavity: NDArray[np.int64]  # (n,) number of the inner surface of each vertex, or OUTSIDE, or RING
    footprint: NDArray[np.int64]  # (n,) its number, OUTSIDE for vertices in none
    vertices: NDArray[np.int64]  # (capacity,) how many vertices each inner surface has
    piece: NDArray[np.int64]  # (n,) connected piece of unsealed surface, RING
    pieces: NDArray[np.int64]  # (n, 3) of each piece: vertices, the shell it is on, its cavity
    centre: NDArray[np.float64]  # (n, 4) sum of positions and number of the sealed neighbours of each piece
    volume: NDArray[np.float64]  # (n,) [m3] between each piece and that centre
    best: NDArray[np.int64]  # (n,) the outside piece of each shell
    stack: NDArray[np.int64]  # (n,)


def make_flood(n: int, capacity: int) -> Flood:
    """Room for a surface of n vertices and that many cavities; the smallest beyond it count as outside."""
    return Flood(
        size=np.zeros(1, FLOOD_SIZE),
        cavity=np.full(n, OUTSIDE, np.int64),
        footprint=np.full(n, OUTSIDE, np.int64),
        vertices=np.zeros(capacity, np.int64),
        piece=np.zeros(n, np.int64),
        pieces=np.zeros((n, 3), np.int64),
        centre=np.zeros((n, 4)),
        volume=np.zeros(n),
        best=np.zeros(n, np.int64),
        stack=np.zeros(n, np.int64),
    )


def require_outside(connectivity: Connectivity, x, label, seed: int, flood: Flood) -> None:
    """InputError unless the flood of the outside may start from the seed at positions x (n, 3) [m]."""
    if not 0 <= seed < len(x):
        raise InputError(f"The seed is vertex {seed}, but the vertices run from 0 to {len(x) - 1}.")
    find_cavities(connectivity, x, label, seed, flood)
    if not flood.size[0].seed_refused:
        return
    other = int(np.flatnonzero(flood.cavity == OUTSIDE)[0]) if (flood.cavity == OUTSIDE).any() else None
    advice = "" if other is None else f", such as {other}"
    where = "touches the other body" if label[seed] >= SEALED else "lies inside a cavity"
    raise InputError(f"The seed, vertex {seed}, {where}; choose one that stays outside{advice}.")


@kernel
def find_cavities(connectivity, x, label, seed, flood):
    """Number the inner surfaces and footprints of a surface at x (n, 3) [m]; label (n,): of its vertices.

    seed: a vertex that is outside, -1 to find it. A seed that is sealed, or in a hollow, is set aside.
    """
    n_pieces = _find_pieces(connectivity, x, label, flood)
    _measure_pieces(connectivity, x, n_pieces, flood)
    _choose_outside(connectivity, n_pieces, seed, flood)
    _number_cavities(n_pieces, flood)
    _find_footprints(connectivity, flood)


@kernel
def renumber(connectivity, flood, number):
    """Give inner surface k the number number[k], as the other body joins them or, OUTSIDE, opens them."""
    vertices, cavity = flood.vertices, flood.cavity
    vertices[:] = 0
    count = 0
    for v in range(cavity.size):
        if cavity[v] >= 0:
            cavity[v] = number[cavity[v]]
        if cavity[v] >= 0:
            vertices[cavity[v]] += 1
            count = max(count, cavity[v] + 1)
    flood.size[0].cavities = count
    _find_footprints(connectivity, flood)


@kernel
def _find_pieces(connectivity, x, label, flood):
    """Flood every piece of unsealed vertices; returns how many there are."""
    piece, pieces, centre, stack = flood.piece, flood.pieces, flood.centre, flood.stack
    around, neighbours = connectivity.around, connectivity.neighbours
    for v in range(label.size):
        piece[v] = RING if label[v] >= SEALED else OUTSIDE
    n_pieces = 0
    for first in range(label.size):
        if piece[first] != OUTSIDE:
            continue
        p = n_pieces
        n_pieces += 1
        pieces[p, 0], pieces[p, 1] = 0, connectivity.shell[first]
        centre[p, :] = 0.0
        reaches_rim = False
        stack[0], height, piece[first] = first, 1, p
        while height > 0:
            height -= 1
            v = stack[height]
            pieces[p, 0] += 1
            reaches_rim |= connectivity.rim[v]
            for k in range(around[v], around[v + 1]):
                w = neighbours[k]
                if piece[w] == OUTSIDE:
                    piece[w] = p
                    stack[height] = w
                    height += 1
                elif piece[w] == RING:
                    for i in range(3):
                        centre[p, i] += x[w, i]
                    centre[p, 3] += 1.0
        pieces[p, 2] = OUTSIDE if reaches_rim or centre[p, 3] == 0.0 else p
    return n_pieces


@kernel
def _measure_pieces(connectivity, x, n_pieces, flood):
    """Signed volume between each piece and the centre of its ring, by tetrahedra to that point."""
    centre, volume = flood.centre, flood.volume
    for p in range(n_pieces):
        volume[p] = 0.0
        if centre[p, 3] > 0.0:
            for i in range(3):
                centre[p, i] /= centre[p, 3]
    for t in range(connectivity.triangles.shape[0]):
        a, b, c = connectivity.triangles[t, 0], connectivity.triangles[t, 1], connectivity.triangles[t, 2]
        # the unsealed corners of a triangle are neighbours, hence of one piece
        p = max(flood.piece[a], flood.piece[b], flood.piece[c])
        if p < 0:
            continue
        o0, o1, o2 = centre[p, 0], centre[p, 1], centre[p, 2]
        ax, ay, az = x[a, 0] - o0, x[a, 1] - o1, x[a, 2] - o2
        bx, by, bz = x[b, 0] - o0, x[b, 1] - o1, x[b, 2] - o2
        cx, cy, cz = x[c, 0] - o0, x[c, 1] - o1, x[c, 2] - o2
        volume[p] += (ax * (by * cz - bz * cy) + ay * (bz * cx - bx * cz) + az * (bx * cy - by * cx)) / 6.0


@kernel
def _choose_outside(connectivity, n_pieces, seed, flood):
    """Mark the outside piece of every shell."""
    pieces, best = flood.pieces, flood.best
    best[:] = -1
    for v in range(connectivity.rim.size):
        # an open shell has no inside to enclose: only what reaches its rim is outside
        if connectivity.rim[v]:
            best[connectivity.shell[v]] = -2
    for p in range(n_pieces):
        shell = pieces[p, 1]
        if best[shell] == -1 or (best[shell] >= 0 and flood.volume[p] > flood.volume[best[shell]]):
            best[shell] = p
    flood.size[0].seed_refused = 0
    if seed >= 0:
        p = flood.piece[seed]
        if p >= 0 and (pieces[p, 2] == OUTSIDE or flood.volume[p] >= 0.0):
            best[pieces[p, 1]] = p
        else:
            flood.size[0].seed_refused = 1
    for p in range(n_pieces):
        if best[pieces[p, 1]] == p:
            pieces[p, 2] = OUTSIDE


@kernel
def _number_cavities(n_pieces, flood):
    """Number the pieces that are left, and give every vertex the number of its piece."""
    pieces, capacity = flood.pieces, flood.vertices.size
    count, lost = 0, 0
    for p in range(n_pieces):
        count += pieces[p, 2] >= 0
    while count > capacity:
        least = -1
        for p in range(n_pieces):
            if pieces[p, 2] >= 0 and (least < 0 or pieces[p, 0] < pieces[least, 0]):
                least = p
        pieces[least, 2] = OUTSIDE
        count, lost = count - 1, lost + 1
    number = 0
    for p in range(n_pieces):
        if pieces[p, 2] >= 0:
            pieces[p, 2] = number
            flood.vertices[number] = pieces[p, 0]
            number += 1
    for v in range(flood.cavity.size):
        flood.cavity[v] = RING if flood.piece[v] == RING else pieces[flood.piece[v], 2]
    flood.size[0].cavities, flood.size[0].lost = count, lost


@kernel
def _find_footprints(connectivity, flood):
    """Flood the connected sets of vertices none of which is outside."""
    cavity, footprint, stack = flood.cavity, flood.footprint, flood.stack
    around, neighbours = connectivity.around, connectivity.neighbours
    footprint[:] = OUTSIDE
    count = 0
    for first in range(cavity.size):
        if cavity[first] == OUTSIDE or footprint[first] != OUTSIDE:
            continue
        stack[0], height, footprint[first] = first, 1, count
        while height > 0:
            height -= 1
            v = stack[height]
            for k in range(around[v], around[v + 1]):
                w = neighbours[k]
                if cavity[w] != OUTSIDE and footprint[w] == OUTSIDE:
                    footprint[w] = count
                    stack[height] = w
                    height += 1
        count += 1
    flood.size[0].footprints = count
