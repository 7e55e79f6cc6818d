"""A tetrahedral mesh along a cut: elements are duplicated, not split, so that their quality stays.

A cut crosses edges. Within an element the corners that uncut edges still join are a *piece* of it; an element
of several pieces is there once for each, and every copy has all four corners: its own ones, which lie on its
side of the cut, and virtual ones beyond it, where there is no material of it. Copies that share a piece of a
face share the three nodes of it, so the material hangs together as it did, and at the cut's front, where an
element has not come apart, both sides do. A copy counts by the share of the volume that its piece has.

The surface of the pieces is made of the crossings: on each face they are joined in pairs (three of one face
by the face's centre), and from these lines facets go to the element's centre. Each point of it rides on the
copy that it belongs to, by its weights on the corners; where both sides hang together they are one point, so
the surface stays closed.
Source: Molino, Bao & Fedkiw, A virtual node algorithm for changing mesh topology during simulation (SIGGRAPH
2004), with one crossing an edge.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from palpo.physics.mesh.crossings import EDGES, mesh_edges
from palpo.physics.mesh.distinct import distinct_sides
from palpo.physics.mesh.tet import OUTWARD_FACES, TetMesh, tet_volumes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class _Facets(NamedTuple):
    """How an element with some edges crossed is divided: triangles of points, and the corner whose piece has
    each. A point is a row (4,) of EDGES' numbers or corners: see `_point`."""

    owners: list[int]
    points: list[tuple[int, int, int]]


CENTRE = 14
"""Of points of an element: corners are 0 to 3, crossings of edges 4 to 9, centres of faces 10 to 13."""


class _Pattern(NamedTuple):
    """An element of which some edges are crossed.

    piece (4,): the least corner of the piece that each corner is in. faces: of each face its facets, outward.
    inside: facets between its pieces, each seen from the piece that has it.
    """

    piece: NDArray[np.int64]
    faces: list[_Facets]
    inside: _Facets


def _pattern(crossed: int) -> _Pattern:
    number = {frozenset(pair): i for i, pair in enumerate(EDGES.tolist())}
    piece = np.arange(4)
    for _ in range(3):
        for i, (a, b) in enumerate(EDGES):
            if not crossed >> i & 1:
                piece[[a, b]] = min(piece[a], piece[b])
    faces, inside = [], _Facets([], [])

    def part(lines: list[tuple[int, int, int, int]]) -> None:
        """Facets to the centre from lines (p, q) between corners one and other; one has p to q on a face."""
        for p, q, one, other in lines:
            if piece[one] != piece[other]:
                inside.owners.extend([one, other])
                inside.points.extend([(q, p, CENTRE), (p, q, CENTRE)])

    for f, face in enumerate(OUTWARD_FACES.tolist()):
        cut = [number[frozenset((face[i], face[(i + 1) % 3]))] for i in range(3)]
        on = [bool(crossed >> e & 1) for e in cut]
        if sum(on) == 3:
            middle, own = 10 + f, _Facets([], [])
            for i, a in enumerate(face):
                p, q = 4 + cut[i], 4 + cut[i - 1]
                own.owners.extend([a, a])
                own.points.extend([(a, p, middle), (a, middle, q)])
                part([(p, middle, a, face[(i + 1) % 3])])
        elif sum(on) == 0:
            own = _Facets([face[0]], [tuple(face)])
        else:
            # from corner a: both of its edges are crossed, or only the one to b
            i = on.index(True) if sum(on) == 1 else (on.index(False) + 2) % 3
            a, b, c = face[i], face[(i + 1) % 3], face[(i + 2) % 3]
            p, q = 4 + cut[i], 4 + cut[i - 1]
            if sum(on) == 1:
                own = _Facets([a, b], [(a, p, c), (p, b, c)])
            else:
                own = _Facets([a, b, b], [(a, p, q), (p, b, c), (p, c, q)])
                part([(p, q, a, b)])
        faces.append(own)
    return _Pattern(piece, faces, inside)


PATTERNS = [_pattern(crossed) for crossed in range(64)]
"""By the crossed edges of an element, as bits in the order of EDGES."""


@dataclass(frozen=True, eq=False)
class CutMesh:
    """Elements of a mesh of n nodes and m elements after a cut, and the surface of its material.

    copies (c,): the node that each further node n, n + 1, ... is a copy of. tets (m + d, 4): nodes of the
    elements, whose first m are those of the mesh, in its order; element (m + d,): of the mesh, that each is
    or is a copy of; volumes (m + d,): of its material [m3]. corners, weights (p, 4): what points of the
    surface ride on. triangles (t, 3): of the surface, outward; numbers below n + c are nodes, others points;
    between (t,): the mesh's element in which the cut made it, -1 for a part of its own surface.
    numbers (s, 4, 4): of split elements `split` (s,), the node that stands for corner j in the copy of which
    corner i is an own one; it makes the next cut of the same mesh keep these nodes.
    """

    mesh: TetMesh
    copies: NDArray[np.int64]
    tets: NDArray[np.int32]
    element: NDArray[np.int64]
    volumes: Floats
    corners: NDArray[np.int32]
    weights: Floats
    triangles: NDArray[np.int32]
    between: NDArray[np.int64]
    split: NDArray[np.int64]
    numbers: NDArray[np.int64]

    @cached_property
    def nodes(self) -> Floats:
        """Where all nodes are at rest [m], shape (n + c, 3)."""
        return np.vstack([self.mesh.nodes, self.mesh.nodes[self.copies]])

    @cached_property
    def elements(self) -> TetMesh:
        """The copies as a mesh."""
        volumes = tet_volumes(self.nodes, self.tets)
        return TetMesh(self.nodes, self.tets, self.volumes / volumes)

    def vertices(self, x: Floats) -> Floats:
        """Nodes at x (n + c, 3) [m] and the surface's points with them, in the numbers of `triangles`."""
        return np.vstack([x, np.einsum("pw,pwi->pi", self.weights, x[self.corners])])


def cut_mesh(mesh: TetMesh, shares: Floats, before: CutMesh | None = None) -> CutMesh:
    """The mesh cut where its edges (`mesh_edges`) are crossed at `shares` (k,) of their length.

    before: an earlier cut of it, of which this one is a continuation: its nodes keep their numbers, and a
    further node that parts from one of them is a copy of that.
    """
    edges, of = mesh_edges(mesh.tets)
    crossed = ~np.isnan(shares)
    code = crossed[of] @ (1 << np.arange(6))
    piece = np.array([p.piece for p in PATTERNS])[code]
    split = np.flatnonzero((piece != piece[:, :1]).any(axis=1))
    numbers, copies = _number_nodes(mesh, piece, split, before)

    every = np.tile(mesh.tets[:, None].astype(np.int64), (1, 4, 1))
    every[split] = numbers
    own = piece == np.arange(4)  # one corner for each piece
    further = [(e, i) for e in split for i in np.flatnonzero(own[e])[1:]]
    copy = np.array(further, np.int64).reshape(-1, 2)
    tets = np.vstack([every[:, 0], every[copy[:, 0], copy[:, 1]]]).astype(np.int32)
    element = np.concatenate([np.arange(len(mesh.tets)), copy[:, 0]])

    # shares along each element's edges, from the first corner of EDGES
    forward = mesh.tets[:, EDGES[:, 0]] == edges[of, 0]
    along = np.where(forward, shares[of], 1.0 - shares[of])
    outer = _outer_faces(mesh.tets)
    pieces = _PieceSurface(every, along, code, piece)
    portion = np.zeros((len(mesh.tets), 4))
    for pattern in np.unique(code):
        pieces.add(pattern, np.flatnonzero(code == pattern), outer, portion)
    portion *= mesh.volumes[:, None]
    volumes = np.concatenate([portion[:, 0], portion[copy[:, 0], copy[:, 1]]])
    surface = pieces.joined(len(mesh.nodes) + len(copies))
    return CutMesh(mesh, copies, tets, element, volumes, *surface, split, numbers)


def of_copies(cut: CutMesh, edges: Ints, values: Floats) -> Floats:
    """Of each copy the greatest of values (k,) of the crossed edges (k, 2) that it is an end of, (c,)."""
    n = len(cut.mesh.nodes)
    ends = (cut.weights > 0.0).sum(axis=1) == 2
    order = np.argsort(-cut.weights[ends], axis=1)[:, :2]
    numbers = np.take_along_axis(cut.corners[ends], order, axis=1).astype(np.int64)
    parents = np.sort(np.where(numbers < n, numbers, cut.copies[np.maximum(numbers - n, 0)]), axis=1)
    at = np.searchsorted(edges[:, 0] * n + edges[:, 1], parents[:, 0] * n + parents[:, 1])
    out = np.zeros(len(cut.copies))
    for number in numbers.T:
        copy = number >= n
        np.maximum.at(out, number[copy] - n, values[at[copy]])
    return out


def _outer_faces(tets: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which faces (m, 4) of elements, in the order of OUTWARD_FACES, are of one element only."""
    met = distinct_sides(tets[:, OUTWARD_FACES].reshape(-1, 3))
    return np.asarray(met.times[met.of] == 1).reshape(-1, 4)


def _number_nodes(
    mesh: TetMesh, piece: NDArray[np.int64], split: NDArray[np.int64], before: CutMesh | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """CutMesh.numbers and its copies.

    Items are all nodes, then of each split element corner j in the copy of corner i; those that are one node
    are linked.
    """
    n, s = len(mesh.nodes), len(split)
    place = np.full(len(mesh.tets), -1)
    place[split] = np.arange(s)
    tets = mesh.tets.astype(np.int64)

    def item(element: NDArray[np.int64], i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.int64]:
        at = n + 16 * place[element] + 4 * i + j
        return np.where(place[element] < 0, tets[element, j], at)

    links = []
    for i in range(4):
        for j in range(4):
            at = np.full(s, i)
            here = item(split, at, np.full(s, j))
            links.append((here, item(split, piece[split, i], np.full(s, j))))
            joined = piece[split, i] == piece[split, j]
            links.append((here[joined], tets[split[joined], j]))
    one, other = _shared_faces(mesh.tets, place >= 0)
    for real in range(3):
        for corner in range(3):
            links.append(
                (item(one[0], one[1][:, real], one[1][:, corner]),
                 item(other[0], other[1][:, real], other[1][:, corner]))
            )  # fmt: skip
    rows, columns = (np.concatenate(side) for side in zip(*links, strict=True))
    size = n + 16 * s
    graph = coo_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(size, size))
    of = connected_components(graph, directed=False)[1]
    node_of = np.full(of.max() + 1, -1)
    node_of[of[:n]] = np.arange(n)
    parents = np.broadcast_to(tets[split][:, None], (s, 4, 4)).reshape(-1)
    groups = of[n:]
    copies = [] if before is None else before.copies.tolist()
    earlier = parents.copy()
    if before is not None:
        known = np.flatnonzero(np.isin(split, before.split))
        at = np.searchsorted(before.split, split[known])
        earlier.reshape(s, 16)[known] = before.numbers[at].reshape(-1, 16)
        taken = np.zeros(n + len(copies), bool)
        for k in np.flatnonzero((node_of[groups] < 0) & (earlier >= n)):
            if node_of[groups[k]] < 0 and not taken[earlier[k]]:
                node_of[groups[k]], taken[earlier[k]] = earlier[k], True
    for k in np.flatnonzero(node_of[groups] < 0):
        if node_of[groups[k]] < 0:
            node_of[groups[k]] = n + len(copies)
            copies.append(int(parents[k]))
    return node_of[groups].reshape(s, 4, 4), np.array(copies, np.int64)


def _shared_faces(
    tets: NDArray[np.int32], split: NDArray[np.bool_]
) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """Faces that a split element shares with another: of both sides the elements (k,) and the places (k, 3)
    of the face's nodes among their corners, in one order of the nodes."""
    faces = tets[:, OUTWARD_FACES].reshape(-1, 3)
    met = distinct_sides(faces)
    order = np.argsort(met.of, kind="stable")
    first = np.flatnonzero(np.diff(met.of[order]) == 0)
    pair = np.column_stack([order[first], order[first + 1]])
    pair = pair[split[pair // 4].any(axis=1)]
    sides = []
    for k in range(2):
        corners = OUTWARD_FACES[pair[:, k] % 4]
        element = pair[:, k] // 4
        ascending = np.argsort(tets[element[:, None], corners], axis=1)
        sides.append((element, np.take_along_axis(corners, ascending, axis=1)))
    return sides[0], sides[1]


class _PieceSurface:
    """Facets of the pieces, while they are gathered.

    every (m, 4, 4): node for corner j in the copy of corner i. along (m, 6): crossings of an element's edges.
    """

    def __init__(self, every: Ints, along: Floats, code: Ints, piece: Ints) -> None:
        self.every, self.piece = every, piece
        self._weights = self._weigh(along, code)
        self._nodes: list[NDArray[np.int64]] = []
        self._shares: list[Floats] = []
        self._between: list[NDArray[np.int64]] = []

    def _weigh(self, along: Floats, code: Ints) -> Floats:
        """Weights (m, 15, 4) on the corners of all points that an element may have."""
        out = np.zeros((len(along), 15, 4))
        out[:, range(4), range(4)] = 1.0
        for e, (a, b) in enumerate(EDGES):
            out[:, 4 + e, a], out[:, 4 + e, b] = 1.0 - along[:, e], along[:, e]
        crossed = (code[:, None] >> np.arange(6) & 1).astype(bool)
        for f, face in enumerate(OUTWARD_FACES):
            mine = [4 + e for e, pair in enumerate(EDGES) if set(pair) <= set(face)]
            out[:, 10 + f] = out[:, mine].mean(axis=1)
        parting = crossed & (self.piece[:, EDGES[:, 0]] != self.piece[:, EDGES[:, 1]])
        count = parting.sum(axis=1)
        total = np.where(parting[:, :, None], out[:, 4:10], 0.0).sum(axis=1)
        out[:, CENTRE] = np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], 0.25)
        return out

    def add(self, code: int, which: Ints, outer: NDArray[np.bool_], portion: Floats) -> None:
        """Elements `which` of one pattern: their facets, and in `portion` (m, 4) what each corner's piece has
        of the volume."""
        pattern = PATTERNS[code]
        for f, facets in enumerate(pattern.faces):
            for owner, points in zip(facets.owners, facets.points, strict=True):
                share = np.abs(np.linalg.det(self._weights[which][:, [*points, CENTRE]]))
                same = np.flatnonzero(pattern.piece == pattern.piece[owner])
                portion[which[:, None], same] += share[:, None]
                self._facet(which[outer[which, f]], owner, points, False)
        for owner, points in zip(pattern.inside.owners, pattern.inside.points, strict=True):
            self._facet(which, owner, points, True)

    def _facet(self, which: Ints, owner: int, points: tuple[int, int, int], between: bool) -> None:
        self._between.append(which if between else np.full(len(which), -1))
        weights = self._weights[which][:, list(points)]
        nodes = np.broadcast_to(self.every[which, owner][:, None], weights.shape)
        self._nodes.append(np.where(weights > 0.0, nodes, -1))
        self._shares.append(weights)

    def joined(self, first: int) -> tuple[NDArray[np.int32], Floats, NDArray[np.int32], Ints]:
        """CutMesh's corners, weights, triangles and between; points are numbered from `first`."""
        nodes = np.concatenate(self._nodes).reshape(-1, 4)
        weights = np.concatenate(self._shares).reshape(-1, 4)
        order = np.argsort(-nodes, axis=1, kind="stable")
        nodes, weights = np.take_along_axis(nodes, order, 1), np.take_along_axis(weights, order, 1)
        rows, at, of = np.unique(nodes, axis=0, return_index=True, return_inverse=True)
        of = of.reshape(-1)
        single = rows[:, 1] < 0
        number = np.where(single, rows[:, 0], first + np.cumsum(~single) - 1)
        kept = at[~single]
        triangles = number[of].reshape(-1, 3)
        kept_facets = ~_facing(triangles)
        return (
            np.maximum(nodes[kept], 0).astype(np.int32), weights[kept],
            triangles[kept_facets].astype(np.int32), np.concatenate(self._between)[kept_facets],
        )  # fmt: skip


def _facing(triangles: Ints) -> NDArray[np.bool_]:
    """Which triangles (t, 3) have another of the same points: both sides of a cut that did not part there."""
    met = distinct_sides(triangles)
    return np.asarray(met.times[met.of] > 1)
