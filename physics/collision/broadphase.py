"""Broad phase: candidate pairs that may touch before the next candidates arrive.

Each body has a bounding-volume tree (`box_tree`), refitted to the present positions. A pair of features is a
candidate when its distance now is less than what its points can travel towards each other until the
candidates are next renewed:

    distance <= thickness + alarm + horizon |v_1 - v_2| + acceleration horizon^2 / 2

so that no contact is lost between two low steps, whatever the hand does within that acceleration. Or, with
one distance for all pairs (`within`), when its gap is below that: then the list holds until any two points
may have come closer by as much, however long that takes.

Of edges only those meet each other that stand out of their faces, so that those of a rigid body that never do
are left out: half of a plug's, with the flat faces that its mesh divides.

The room for candidates is limited. When it is full the last ones go, and with `within` nothing beyond them is
looked at any more: nearer boxes come first, so that the search costs what is near, however far it may reach.

Two edges touch where each leads out of both of its faces (palpo.physics.collision.edge_groups). An edge
inside a flat face, which the mesh has since faces are triangles, does so nowhere, nor does the bottom of a
valley; on a body that never changes its shape that is so for ever.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.collision.box_tree import Primitives, Tree, body_primitives, build_tree, refit_nodes
from palpo.physics.collision.edge_groups import CONVEX
from palpo.physics.collision.facing import make_normals
from palpo.physics.collision.flipped import make_flipped
from palpo.physics.collision.kept_pairs import COUNT, SETTINGS, Search
from palpo.physics.collision.pair_search import search
from palpo.physics.collision.proximity_contacts import Pairs
from palpo.physics.collision.topology import LOW, STATIC, Topology
from palpo.physics.exchange.handle import Handle


def blunt_edges(topology: Topology, x: NDArray[np.float64], rigid: Sequence[int]) -> NDArray[np.bool_]:
    """Which edges of the bodies `rigid` do not stand out of their two faces by CONVEX, (edges,).

    x (n_points, 3) [m]: where the points are, in any pose of the bodies.
    """
    edges, opposite = topology.edges, topology.edge_opposite
    out = np.isin(topology.point_body[edges[:, 0]], rigid) & (opposite >= 0).all(axis=1)
    along = x[edges[out, 1]] - x[edges[out, 0]]
    squares = np.maximum((along * along).sum(axis=1, keepdims=True), 1e-300)
    across = []
    for side in range(2):
        arm = x[opposite[out, side]] - x[edges[out, 0]]
        arm -= (arm * along).sum(axis=1, keepdims=True) / squares * along
        across.append(arm / np.maximum(np.linalg.norm(arm, axis=1, keepdims=True), 1e-300))
    one, two = across
    # in the plane across the edge two arms that go straight on make a flat face; two that are one, a fin
    flat = np.linalg.norm(one + two, axis=1) <= CONVEX
    out[out] = flat | ((np.cross(along, one) * two).sum(axis=1) > CONVEX * squares[:, 0] ** 0.5)
    return out


GUESS = 1.2
"""Where the room was full the last time, a search looks this many times as far as it then got, and farther
only if the room is not full again. It would find out by itself how far it gets, but late, with up to twice as
many pairs to measure."""


def _joined_trees(trees: list[Tree], primitives: list[Primitives]) -> tuple[Tree, Primitives, NDArray]:
    """Trees and primitives of all bodies one after another, and the first node of each tree."""
    root = np.cumsum([0] + [len(tree.span) for tree in trees])
    first = np.cumsum([0] + [len(part.points) for part in primitives])
    tree = Tree(
        np.concatenate([tree.order + np.int32(k) for tree, k in zip(trees, first, strict=False)]),
        np.concatenate([tree.span + np.int32(k) for tree, k in zip(trees, first, strict=False)]),
        np.concatenate(
            [
                np.where(tree.children < 0, -1, tree.children + k).astype(np.int32)
                for tree, k in zip(trees, root, strict=False)
            ]
        ),
        np.zeros((root[-1], 6)),
    )
    whole = Primitives(*(np.concatenate(parts) for parts in zip(*primitives, strict=True)))
    return tree, whole, root.astype(np.int32)


class BroadPhase:
    """Candidate pairs of a scene. Trees are built from the positions at rest, given at construction.

    `ignored` holds pairs of body numbers that never touch, `joints` (j, 2) points and bodies that are joined:
    the features of such a point meet nothing of that body. `rigid` holds bodies that never change shape,
    `folding` those with faces that may touch themselves; `held` holds points that nothing moves, of
    which two do not meet; `parted` triangles that are no surface any more (growing_surface).
    `capacity` bounds the pairs; when it is exceeded the pairs that can touch last are dropped and counted in
    `dropped`, with `within` the farthest, of which those that were not looked at do not count.
    `complete`: gap [m] below which the last `find` with `within` left no pair of two bodies out. `looked_at`:
    pairs whose distance it computed.
    """

    def __init__(
        self,
        topology: Topology,
        x: NDArray[np.float64],
        capacity: int,
        alarm: float,
        acceleration: float,
        ignored: frozenset[tuple[int, int]] = frozenset(),
        joints: ArrayLike = (),
        rigid: Sequence[int] = (),
        folding: Sequence[int] = (),
        held: ArrayLike = (),
        parted: ArrayLike = (),
    ) -> None:
        self.alarm = alarm
        self.dropped = self.looked_at = 0
        self.complete = self._full_at = np.inf
        bodies = range(len(topology.body_role))
        parted = np.asarray(parted, np.int64)
        primitives = [body_primitives(topology, b, parted) for b in bodies]
        trees = [build_tree(x[p.points].mean(axis=1)) for p in primitives]
        tree, whole, root = _joined_trees(trees, primitives)
        used = np.zeros(len(topology.point_body), bool)
        used[whole.points] = True
        moves = topology.body_role[topology.point_body] != STATIC
        moves[np.asarray(held, np.intp)] = False
        meeting = [
            (a, b)
            for a in bodies
            for b in range(a + 1, len(bodies))
            if len(primitives[a].points)
            and len(primitives[b].points)
            and not (topology.body_role[a] == STATIC and topology.body_role[b] == STATIC)
            and (a, b) not in ignored
        ]
        own = [b for b in folding if (primitives[b].triangle >= 0).any() and (b, b) not in ignored]
        landing = [
            (b, k)
            for b in bodies
            for k, plane in enumerate(topology.plane_body)
            if topology.body_role[b] != STATIC and (min(b, plane), max(b, plane)) not in ignored
        ]
        soft = topology.body_role == LOW
        soft[list(rigid)] = False
        room = 2 * capacity
        self._search = Search(
            x=x.copy(),
            u=np.zeros_like(x),
            topology=topology,
            tree=tree,
            primitives=whole,
            root=root,
            first=np.searchsorted(topology.point_body, np.arange(len(bodies) + 1)).astype(np.int64),
            used=used,
            moves=moves,
            bodies=np.array(meeting, np.int32).reshape(-1, 2),
            planes=np.array(landing, np.int32).reshape(-1, 2),
            folding=np.array(own, np.int32),
            rest=x.copy() if own else np.zeros((0, 3)),
            normals=make_normals(len(topology.triangles), len(tree.span)) if own else make_normals(0, 0),
            flipped=make_flipped(topology, x, soft, parted),
            joints=np.array(joints, np.int32).reshape(-1, 2),
            blunt=blunt_edges(topology, x, rigid),
            settings=np.zeros(1, SETTINGS),
            speed=np.zeros(len(bodies)),
            limit=np.zeros(1),
            stack=np.zeros((4096, 2), np.int32),
            scratch=np.zeros((2, 3)),
            count=np.zeros(1, COUNT),
            pairs=Pairs(*(np.zeros(room, np.int32) for _ in range(3))),
            arrival=np.zeros(room),
            gap=np.zeros(room),
        )
        self._search.settings["acceleration"] = acceleration
        self._handle = Handle(self._search, renewable=True)
        refit_nodes(tree, whole.points, x, 0, len(tree.span))

    def find(
        self,
        x: NDArray[np.float64],
        u: NDArray[np.float64],
        horizon: float,
        skin: float,
        within: float | None = None,
        own: float = np.inf,
    ) -> tuple[Pairs, NDArray[np.float64], NDArray[np.float64]]:
        """Candidates for the next `horizon` seconds, or of gaps up to `within` [m]; sorted by kind and first.

        own: gap [m] up to which those of a body with itself are, in place of `within` if that is more.

        x, u: positions [m] and velocities [m/s] of all points, (n_points, 3). Also returns the earliest time
        [s] at which each pair can touch, (n,), 0 or less for those that do; and the gap [m] of each, (n,).
        """
        s = self._search
        settings = s.settings[0]
        settings["skin"], settings["alarm"] = skin, self.alarm if within is None else within
        settings["own"] = min(own, settings["alarm"])
        settings["horizon"], settings["by_gap"] = (horizon, 0) if within is None else (0.0, 1)
        s.x[:], s.u[:] = x, u
        if within is not None and GUESS * self._full_at < within:
            settings["alarm"] = GUESS * self._full_at
            search(self._handle)
            if not s.limit[0] < settings["alarm"]:
                settings["alarm"] = within
                search(self._handle)
        else:
            search(self._handle)
        self._full_at = float(s.limit[0]) if within is not None else np.inf
        n, self.dropped, self.looked_at = (
            int(s.count[0][name]) for name in ("found", "dropped", "looked_at")
        )
        self.complete = np.inf if within is None else min(within, float(s.limit[0]))
        kind, first, second = (part[:n] for part in s.pairs)
        name = (kind.astype(np.int64) << 60) | (first.astype(np.int64) << 30) | second
        order = np.argsort(name) if not len(s.folding) else np.unique(name, return_index=True)[1]
        return Pairs(kind[order], first[order], second[order]), s.arrival[order], s.gap[order]
