"""Which candidate pairs a low loop searches, and which of them its frames name.

Each pair of bodies belongs to one loop: that of the only one with a loop, or the quicker one's where both
have their own. Both choose points for their frames by it; the owner's frames name it, at the owner's rate,
and the servo passes over a pair while the other's frame lacks a point of it (palpo.physics.engine.pairs).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.proximity_contacts import PAIR_POINTS, pair_point, second_body
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.systems.multirate.scene import Loop, Scene

ANYONE, OWN, SLOWER, QUICKER = 0, 1, 2, 3
"""Whose a body is, as a loop sees it: of no loop, its own, of a slower loop or of a quicker one."""


def standing(scene: Scene, loop: Loop, others: Sequence[Loop]) -> NDArray[np.int32]:
    """Whose each body of the topology is, (bodies,)."""
    whose = np.full(len(scene.topology.body_role), ANYONE, np.int32)
    whose[list(loop.numbers)] = OWN
    for other in others:
        whose[list(other.numbers)] = QUICKER if other.number < loop.number else SLOWER
    return whose


def not_searched(scene: Scene, whose: NDArray[np.int32]) -> frozenset[tuple[int, int]]:
    """Pairs of bodies that a loop leaves alone: those that never touch, and those without one of its own."""
    bodies = range(len(whose))
    foreign = {(a, b) for a in bodies for b in bodies[a + 1 :] if OWN not in (whose[a], whose[b])}
    return scene.ignored | foreign if (whose > OWN).any() else scene.ignored


@kernel
def write_pairs(topology, pairs, due, slot_of, whose, room, room_due):
    """Pairs whose points of own bodies all have a slot, into a frame's room, but those of quicker loops.

    whose (bodies,): see `standing`. Returns how many, and the least reading due of those without slots.
    """
    kinds, firsts, seconds = pairs.kind, pairs.first, pairs.second
    out_kind, out_first, out_second = room.kind, room.first, room.second
    has = np.empty(slot_of.size, np.bool_)
    for p in range(slot_of.size):
        has[p] = slot_of[p] >= 0 or whose[topology.point_body[p]] != OWN
    n, left_out = 0, np.inf
    for k in range(due.size):
        kind, first, second = kinds[k], firsts[k], seconds[k]
        ok = True
        for i in range(PAIR_POINTS):
            p = pair_point(topology, kind, first, second, i)
            ok &= p < 0 or has[p]
        if not ok:
            left_out = min(left_out, due[k])
        elif not _is_anothers(topology, kind, first, second, whose):
            out_kind[n], out_first[n], out_second[n], room_due[n] = kind, first, second, due[k]
            n += 1
    return n, left_out


@inlined
def _is_anothers(topology, kind, first, second, whose):
    """Whether a quicker loop's frames name this pair."""
    one = topology.point_body[pair_point(topology, kind, first, second, 0)]
    return whose[one] == QUICKER or whose[second_body(topology, kind, second)] == QUICKER


def joined_points(scene: Scene) -> list[tuple[int, int]]:
    """(point, body joined to it) of every attachment; a surface's point under a line's end is free."""
    attachments, topology = scene.attachments, scene.topology
    has_faces = np.isin(np.arange(len(topology.body_role)), topology.point_body[topology.triangles[:, :1]])
    joints = []
    for sides in attachments.points[:, :, 0]:
        for own, other in (sides, sides[::-1]):
            if own < 0 or other < 0:
                continue
            body = int(topology.point_body[other])
            if has_faces[topology.point_body[own]] and not has_faces[body]:
                continue
            joints.append((int(own), body))
    return joints
