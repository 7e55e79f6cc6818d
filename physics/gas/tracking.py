"""Cavities from step to step, and the air that they carry through merges, splits and flattening.

Detection starts afresh at every step; what lasts is the air. A cavity is recognised by the surface's vertices
in it, which move with the material, so that speed does not matter where the cavity stays on its cup. (Thesis
000, 3.2.5, compares centroids, which can neither see a merge nor keep up with a fast dart.)

A cavity of the last step goes on in, in this order,

1. every cavity that now has vertices of its wall: one of several, several in one, or both;
2. a cavity not accounted for so far that comes up in its share of the sealed ring;
3. itself, *flattened*: its wall is sealed altogether. Its air stays in the pockets of what is left, its share
   of everything inside the outermost sealed ring, until a cavity opens there or the ring is peeled off;
4. the nearest cavity not accounted for so far whose centre is within both radii of the way that it would have
   gone at its last speed: a cup that crossed its own size in one step;
5. the atmosphere, with all its air.

A cavity that comes from none was open just before and holds air at atmospheric pressure, or came up in a
sealed contact and holds no more than its pockets did. One that goes on while part of its wall has opened
keeps the air of its present volume at its last pressure: what was in the open part is lost.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.exchange.handle import Handle
from palpo.physics.gas.flood import OUTSIDE, RING, Connectivity, Flood
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.records import counters

ABSENT, LIVING, FLAT = 0, 1, 2
"""States of a cavity."""

KNOWN, BORN_OPEN, BORN_SEALED = 0, 1, 2
"""Origins of a cavity: from cavities of the last step, from the open, or from a sealed contact."""

TRACKS_SIZE = counters("born", "merged", "split", "flattened", "swept", "opened", "lost", "next")
"""How many cavities did which in the last step; the next identity."""

MINOR = 4
"""An overlap below this part of the smaller set is a ring's jitter, unless either has no better one."""


class Tracks(NamedTuple):
    """The cavities after a step, at most c of them, on a surface of n vertices.

    A living cavity has the number of its inner surface in `Flood`; flattened ones have numbers beyond those.
    """

    size: NDArray[Any]  # (1,) of TRACKS_SIZE
    state: NDArray[np.int64]  # (c,) ABSENT, LIVING or FLAT
    identity: NDArray[np.int64]  # (c,) lasting number: that of the largest share in a merge or split
    air: NDArray[np.float64]  # (c,) [mol]
    volume: NDArray[np.float64]  # (c,) [m3] as given to `share_air`
    wall: NDArray[np.int64]  # (n,) cavity whose wall has the vertex; a flattened one's is its region; or -1
    region: NDArray[np.int64]  # (n,) the same with each cavity's share of the sealed ring around it
    open: NDArray[np.bool_]  # (n,) whether the vertex was outside
    centre: NDArray[np.float64]  # (c, 3) [m] mean of the wall's vertices
    stride: NDArray[np.float64]  # (c, 3) [m] way of the centre in the last step
    radius: NDArray[np.float64]  # (c,) [m] of the disc with the same mean square distance from its centre


class Links(NamedTuple):
    """What became of the c cavities of the last step, and scratch."""

    shared: NDArray[np.int64]  # (c, c) vertices that an old and a new cavity have in common, 0 if not linked
    origin: NDArray[np.int64]  # (c,) KNOWN, BORN_OPEN or BORN_SEALED, of each new one
    vented: NDArray[np.float64]  # (1,) [mol] lost to the atmosphere in this step
    old: NDArray[np.int64]  # (c, 3) vertices of the old walls: all, sealed now, outside now
    new: NDArray[np.int64]  # (c,) vertices of the new walls
    free: NDArray[np.bool_]  # (2, c) old and new cavities that no wall links
    queue: NDArray[np.int64]  # (n,)


def make_tracks(n: int, capacity: int) -> Tracks:
    """No cavities, on a surface of n vertices all of which are open."""
    return Tracks(
        size=np.zeros(1, TRACKS_SIZE),
        state=np.full(capacity, ABSENT, np.int64),
        identity=np.zeros(capacity, np.int64),
        air=np.zeros(capacity),
        volume=np.zeros(capacity),
        wall=np.full(n, -1, np.int64),
        region=np.full(n, -1, np.int64),
        open=np.ones(n, np.bool_),
        centre=np.zeros((capacity, 3)),
        stride=np.zeros((capacity, 3)),
        radius=np.zeros(capacity),
    )


def make_links(n: int, capacity: int) -> Links:
    """Room to link that many cavities on a surface of n vertices."""
    return Links(
        shared=np.zeros((capacity, capacity), np.int64),
        origin=np.zeros(capacity, np.int64),
        vented=np.zeros(1),
        old=np.zeros((capacity, 3), np.int64),
        new=np.zeros(capacity, np.int64),
        free=np.zeros((2, capacity), np.bool_),
        queue=np.zeros(n, np.int64),
    )


class CavityTracker:
    """Follows the cavities of one surface; the step's are `now`, up to twice as many as the flood numbers."""

    def __init__(self, connectivity: Connectivity, flood: Flood) -> None:
        n, capacity = len(connectivity.rim), 2 * flood.vertices.size
        self._connectivity, self._flood = connectivity, flood
        self._before, self._now = (Handle(make_tracks(n, capacity)) for _ in range(2))
        self.links = make_links(n, capacity)

    @property
    def now(self) -> Tracks:
        """The cavities of this step."""
        tracks: Tracks = self._now.state
        return tracks

    @property
    def handle(self) -> Handle:
        """Where `now` is, for kernels."""
        return self._now

    def turn_over(self) -> tuple[Handle, Handle]:
        """What was now is the last step's; where that is, and where those of this step are to be written."""
        self._before, self._now = self._now, self._before
        return self._before, self._now

    def follow(self, x: NDArray[np.float64]) -> None:
        """Recognise the cavities that the flood has now, at positions x (n, 3) [m]."""
        before, now = self.turn_over()
        follow_cavities(self._connectivity, x, self._flood, before, now, self.links)

    def share(self, volume: NDArray[np.float64], pockets: NDArray[np.float64], mol_per_volume: float) -> None:
        """Hand on the air; see `share_air`."""
        share_air(self._before, self._now, self.links, volume, pockets, mol_per_volume)


@kernel
def follow_cavities(connectivity, x, flood, before, now, links):
    """Recognise the cavities of `before` among those of the flood, at positions x (n, 3) [m].

    Writes `now`, all but its air, and `links`.
    """
    size = now.size[0]
    size.born = size.merged = size.split = size.flattened = 0
    size.swept = size.opened = size.lost = 0
    size.next = before.size[0].next
    _count_vertices(flood, before, now, links)
    _keep_major_links(links)
    _link_risen(flood, before, now, links)
    _measure(x, flood, now, links)
    for k in range(before.state.size):
        if before.state[k] == ABSENT or _heirs(links.shared, k) > 0:
            continue
        # an opened wall lets a living cavity's air out; a flattened one's pockets are shut while any is
        sealed, outside = links.old[k, 1], links.old[k, 2]
        if sealed > 0 and (outside == 0 or before.state[k] == FLAT):
            _flatten(k, flood, before, now, links)
        elif not _link_swept(k, before, now, links):
            now.size[0].opened += 1
    _grow_regions(connectivity, flood, before, now, links)
    _name(flood, before, now, links)


@kernel
def _heirs(shared, k):
    """How many new cavities the old one k is linked to."""
    count = 0
    for i in range(shared.shape[1]):
        count += shared[k, i] > 0
    return count


@kernel
def _parents(shared, i):
    """How many old cavities the new one i is linked to."""
    count = 0
    for k in range(shared.shape[0]):
        count += shared[k, i] > 0
    return count


@kernel
def _count_vertices(flood, before, now, links):
    """Sizes and overlaps of old and new walls; what lives now."""
    links.shared[:] = 0
    links.old[:] = 0
    links.new[:] = 0
    now.state[:] = ABSENT
    for v in range(flood.cavity.size):
        k, i = before.wall[v], flood.cavity[v]
        if k >= 0:
            links.old[k, 0] += 1
            links.old[k, 1] += i == RING
            links.old[k, 2] += i == OUTSIDE
        if i >= 0:
            links.new[i] += 1
            now.state[i] = LIVING
            if k >= 0:
                links.shared[k, i] += 1


@kernel
def _main_heir(shared, k):
    """The new cavity that shares most with the old one k."""
    best = 0
    for i in range(shared.shape[1]):
        if shared[k, i] > shared[k, best]:
            best = i
    return best


@kernel
def _main_parent(shared, i):
    """The old cavity that shares most with the new one i."""
    best = 0
    for k in range(shared.shape[0]):
        if shared[k, i] > shared[best, i]:
            best = k
    return best


@kernel
def _keep_major_links(links):
    """Drop the minor overlaps: a ring that is one vertex wide and moves by one swaps some of its sides'."""
    shared = links.shared
    for k in range(links.new.size):
        for i in range(links.new.size):
            if MINOR * shared[k, i] < min(links.old[k, 0], links.new[i]) and (
                _main_heir(shared, k) != i and _main_parent(shared, i) != k
            ):
                shared[k, i] = 0


@kernel
def _link_risen(flood, before, now, links):
    """Rule 2: link new cavities that no wall leads to with old ones whose wall leads nowhere, by region."""
    free = links.free
    # settled before the first is linked
    for k in range(links.new.size):
        free[0, k] = _heirs(links.shared, k) == 0
        free[1, k] = _parents(links.shared, k) == 0
    for v in range(flood.cavity.size):
        k, i = before.region[v], flood.cavity[v]
        if k >= 0 and i >= 0 and free[0, k] and free[1, i]:
            links.shared[k, i] += 1


@kernel
def _measure(x, flood, now, links):
    """Centres and radii of the living."""
    for i in range(links.new.size):
        now.radius[i] = 0.0
        for a in range(3):
            now.centre[i, a] = now.stride[i, a] = 0.0
    for v in range(flood.cavity.size):
        i = flood.cavity[v]
        if i >= 0:
            for a in range(3):
                now.centre[i, a] += x[v, a] / links.new[i]
    for v in range(flood.cavity.size):
        i = flood.cavity[v]
        if i >= 0:
            for a in range(3):
                now.radius[i] += 2.0 * (x[v, a] - now.centre[i, a]) ** 2 / links.new[i]
    for i in range(links.new.size):
        now.radius[i] = now.radius[i] ** 0.5


@kernel
def _flatten(k, flood, before, now, links):
    """Rule 3: cavity k goes on flattened, under a number that no inner surface has."""
    slot = flood.size[0].cavities
    while slot < now.state.size and now.state[slot] != ABSENT:
        slot += 1
    if slot == now.state.size:
        now.size[0].lost += 1
        return
    now.state[slot] = FLAT
    now.size[0].flattened += before.state[k] == LIVING
    links.shared[k, slot] = links.old[k, 1]
    now.radius[slot] = before.radius[k]
    for a in range(3):
        now.centre[slot, a] = before.centre[k, a]


@kernel
def _link_swept(k, before, now, links):
    """Rule 4; returns whether a cavity was found."""
    best, nearest = -1, np.inf
    length2 = 0.0
    for a in range(3):
        length2 += before.stride[k, a] ** 2
    for i in range(now.state.size):
        if now.state[i] != LIVING or _parents(links.shared, i) > 0:
            continue
        along, d2 = 0.0, 0.0
        for a in range(3):
            along += before.stride[k, a] * (now.centre[i, a] - before.centre[k, a])
        along = min(max(along / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
        for a in range(3):
            d2 += (now.centre[i, a] - before.centre[k, a] - along * before.stride[k, a]) ** 2
        if d2 < nearest and d2 <= (before.radius[k] + now.radius[i]) ** 2:
            best, nearest = i, d2
    if best >= 0:
        links.shared[k, best] = 1
        now.size[0].swept += 1
    return best >= 0


@kernel
def _grow_regions(connectivity, flood, before, now, links):
    """Walls, and the regions grown from them over sealed vertices, each to the cavity nearest by edges."""
    wall, region, queue = now.wall, now.region, links.queue
    last = 0
    for v in range(wall.size):
        i, k = flood.cavity[v], before.wall[v]
        now.open[v] = i == OUTSIDE
        wall[v] = region[v] = i if i >= 0 else -1
        if i == RING and k >= 0:
            for slot in range(flood.size[0].cavities, now.state.size):
                if links.shared[k, slot] > 0:
                    region[v] = slot
        if region[v] >= 0:
            queue[last] = v
            last += 1
    first = 0
    while first < last:
        v = queue[first]
        first += 1
        for e in range(connectivity.around[v], connectivity.around[v + 1]):
            w = connectivity.neighbours[e]
            if flood.cavity[w] == RING and region[w] < 0:
                region[w] = region[v]
                queue[last] = w
                last += 1
    for v in range(wall.size):
        if region[v] >= 0 and now.state[region[v]] == FLAT:
            wall[v] = region[v]


@kernel
def _name(flood, before, now, links):
    """Origins, identities and strides of the new cavities."""
    shared, c = links.shared, links.new.size
    for i in range(c):
        links.origin[i] = KNOWN
        if now.state[i] == LIVING and _parents(shared, i) == 0:
            links.origin[i] = BORN_SEALED
    for v in range(flood.cavity.size):
        i = flood.cavity[v]
        if i >= 0 and links.origin[i] != KNOWN and before.open[v]:
            links.origin[i] = BORN_OPEN
    for k in range(c):
        now.size[0].split += _heirs(shared, k) > 1
    for i in range(c):
        if now.state[i] == ABSENT:
            continue
        now.size[0].merged += _parents(shared, i) > 1
        now.size[0].born += links.origin[i] != KNOWN
        k = _main_parent(shared, i)
        if links.origin[i] == KNOWN and _main_heir(shared, k) == i:
            now.identity[i] = before.identity[k]
        else:
            now.identity[i] = now.size[0].next
            now.size[0].next += 1
        if links.origin[i] == KNOWN and now.state[i] == LIVING:
            for a in range(3):
                now.stride[i, a] = now.centre[i, a] - before.centre[k, a]


@kernel
def share_air(before, now, links, volume, pockets, mol_per_volume):
    """Hand on the air of `before` to `now`: sums of merging cavities, parts by volume of a splitting one.

    volume (c,) [m3]: of the cavities now. pockets (c,) [m3]: what a sealed contact holds in the place of
    each, its area times the roughness depth. mol_per_volume: P_atm / R T [mol/m3]. The parts of a cavity, at
    one pressure while they come apart, get air by their volumes; without positive volumes, by the vertices
    in common. The last takes what is left, so nothing is lost to rounding.
    """
    shared, c = links.shared, links.new.size
    links.vented[0] = 0.0
    for i in range(c):
        now.air[i] = 0.0
        now.volume[i] = max(volume[i], 0.0) if now.state[i] != ABSENT else 0.0
        if links.origin[i] == BORN_OPEN:
            now.air[i] = mol_per_volume * now.volume[i]
        elif links.origin[i] == BORN_SEALED:
            now.air[i] = mol_per_volume * max(pockets[i], 0.0)
    for k in range(c):
        if before.state[k] == ABSENT:
            continue
        total, vertices, last = 0.0, 0, -1
        for i in range(c):
            if shared[k, i] > 0:
                total += now.volume[i]
                vertices += shared[k, i]
                last = i
        left = before.air[k]
        # a flattened cavity's rim comes and goes, which must not pump its air away
        opened = before.state[k] == LIVING and links.old[k, 2] > 0 and total < before.volume[k]
        if opened:
            total = before.volume[k]
        for i in range(last + 1):
            if shared[k, i] == 0:
                continue
            part = now.volume[i] / total if total > 0.0 else shared[k, i] / vertices
            air = left if i == last and not opened else part * before.air[k]
            now.air[i] += air
            left -= air
        links.vented[0] += left
