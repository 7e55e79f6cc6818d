"""From inner surfaces of body A to cavities: their borders projected on body B, filled there, and closed.

Thesis 000, section 3.2.4. Each wall of A is tried alone: its border bounds a part of B, or the air escapes.
Walls from which it escapes may still hold it together, such as two cups over the two mouths of a tunnel: then
the part of B between their borders, the tunnel, is wall of one cavity. A single cup over both mouths needs no
such care, since the flood fill passes through the tunnel and back; over one mouth it finds its way outside.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import palpo.physics.gas.cavity as cavity
from palpo.physics.gas.cavity import CavitySurfaces, forget, make_cavities, place_cavity, signed_volume
from palpo.physics.gas.flood import Connectivity
from palpo.physics.gas.imprint import Imprint, imprint, make_imprint
from palpo.physics.gas.patch import Patch, clear, make_patch, place_points
from palpo.physics.gas.projection import (
    CLOSED,
    ProjectedLoops,
    WalkScratch,
    make_path,
    project_border,
    walk_scratch,
)
from palpo.physics.gas.winding import (
    AT_RIM,
    BOUNDED,
    ESCAPED,
    NONE,
    Winding,
    enter,
    flood,
    gain,
    make_winding,
    release,
)
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.records import counters

SEALED, NO_ROOM = BOUNDED, 3
"""Outcomes of a wall besides ESCAPED and AT_RIM: part of a cavity; lost to a capacity."""

PAIRING_SIZE = counters("walls", "lost", "detours", "forced")
"""Walls; those lost for room; walks that went astray; corners clipped that were no ears."""


class Pairing(NamedTuple):
    """The walls of body A in one patch, what becomes of them, and scratch for n vertices of body B."""

    size: NDArray[Any]  # (1,) of PAIRING_SIZE
    walls: Patch  # their k vertices and l loops
    span: NDArray[np.int64]  # (w + 1, 3) first vertex, triangle and loop of each wall
    outcome: NDArray[np.int64]  # (w,) SEALED, ESCAPED, AT_RIM or NO_ROOM
    cavity: NDArray[np.int64]  # (w,) cavity that a wall belongs to, NONE if it is not sealed
    group: NDArray[np.int64]  # (w,) walls that lead to each other hold the same air
    base: NDArray[np.int64]  # (w,) vertex of the cavities minus vertex of the walls
    of_loop: NDArray[np.int64]  # (l,) wall of each loop
    active: NDArray[np.bool_]  # (l,)
    points: NDArray[np.float64]  # (k, 3) [m]
    region: NDArray[np.int64]  # (n,) vertices of B that lead to each other are not parted by borders
    region_wall: NDArray[np.int64]  # (n,) a wall that holds the air of a region, or NONE
    path: ProjectedLoops
    walk: WalkScratch
    winding: Winding
    imprint: Imprint
    patch: Patch  # the present wall on B


def make_pairing(
    surface_a: Connectivity, surface_b: Connectivity, walls: int = 16
) -> tuple[Pairing, CavitySurfaces]:
    """Room for that many walls of A; paths may cross as many edges as both surfaces have."""
    n_a, n_b = len(surface_a.rim), len(surface_b.rim)
    m_a, m_b = len(surface_a.triangles), len(surface_b.triangles)
    edges, loops = len(surface_a.edges), 16 * walls
    points = edges + len(surface_b.edges)
    pairing = Pairing(
        size=np.zeros(1, PAIRING_SIZE),
        walls=make_patch(n_a + edges, 3 * m_a, 2 * edges, loops),
        span=np.zeros((walls + 1, 3), np.int64),
        outcome=np.zeros(walls, np.int64),
        cavity=np.full(walls, NONE, np.int64),
        group=np.zeros(walls, np.int64),
        base=np.zeros(walls, np.int64),
        of_loop=np.zeros(loops, np.int64),
        active=np.zeros(loops, np.bool_),
        points=np.zeros((n_a + edges, 3)),
        region=np.zeros(n_b, np.int64),
        region_wall=np.zeros(n_b, np.int64),
        path=make_path(points, loops),
        walk=walk_scratch(m_b),
        winding=make_winding(n_b, m_b, len(surface_b.edges), points),
        imprint=make_imprint(n_b, points, loops),
        patch=make_patch(n_b + points, m_b + 4 * points, points, loops),
    )
    vertices, triangles = n_a + edges + n_b + points, 3 * m_a + m_b + 8 * points
    return pairing, make_cavities(walls, vertices, triangles)


@kernel
def clear_walls(pairing):
    """Forget the walls of the last step."""
    size = pairing.size[0]
    size.walls = size.lost = size.detours = size.forced = 0
    clear(pairing.walls)
    pairing.span[0] = 0


@kernel
def add_wall(pairing, patch):
    """Add an inner surface of A, all of whose triangles hold the same air; its number, NONE if it is lost."""
    walls, w = pairing.walls, pairing.size[0].walls
    size, more = walls.size[0], patch.size[0]
    if (
        w == pairing.outcome.size
        or more.lost > 0
        or size.vertices + more.vertices > walls.parents.shape[0]
        or size.triangles + more.triangles > walls.triangles.shape[0]
        or size.border + more.border > walls.border.size
        or size.loops + more.loops >= walls.loops.size
    ):
        pairing.size[0].lost += 1
        return NONE
    v, t = size.vertices, size.triangles
    b, first = size.border, size.loops
    for k in range(more.vertices):
        walls.parents[v + k], walls.weights[v + k] = patch.parents[k], patch.weights[k]
    for k in range(more.triangles):
        for j in range(3):
            walls.triangles[t + k, j] = patch.triangles[k, j] + v
    for k in range(more.border):
        walls.border[b + k] = patch.border[k] + v
    for k in range(more.loops):
        walls.loops[first + k + 1] = patch.loops[k + 1] + b
        pairing.of_loop[first + k] = w
    size.vertices += more.vertices
    size.triangles += more.triangles
    size.border += more.border
    size.loops += more.loops
    pairing.size[0].walls = w + 1
    span = pairing.span[w + 1]
    span[0], span[1], span[2] = size.vertices, size.triangles, size.loops
    return w


@kernel
def pair_walls(pairing, surface, boxes, x_a, x_b, cavities):
    """Find the cavities between the walls that were added and the surface of body B.

    surface, boxes: connectivity of B and its boxes, fitted to x_b. x_a, x_b (n, 3): positions [m]. What
    became of each wall is in pairing.outcome and pairing.cavity.
    """
    n_walls, path = pairing.size[0].walls, pairing.path
    forget(cavities)
    place_points(pairing.walls, x_a, pairing.points)
    project_border(pairing.walls, pairing.points, surface, boxes, x_b, path, pairing.walk)
    pairing.size[0].detours = path.size[0].fallbacks
    for w in range(n_walls):
        pairing.group[w] = w
        pairing.cavity[w] = NONE
    escaped = 0
    for w in range(n_walls):
        pairing.outcome[w] = _try_loops(pairing, w)
        if pairing.outcome[w] == SEALED:
            pairing.outcome[w] = _try(pairing, surface, w, x_a, x_b, cavities)
        escaped += pairing.outcome[w] == ESCAPED
    if escaped > 1:
        _group_escaped(pairing, surface)
        for w in range(n_walls):
            if pairing.outcome[w] == ESCAPED and pairing.group[w] == w:
                _try(pairing, surface, w, x_a, x_b, cavities)


@kernel
def _try_loops(pairing, w):
    """Whether all borders of wall w are closed on B; a wall without borders holds nothing."""
    start, stop = pairing.span[w, 2], pairing.span[w + 1, 2]
    outcome = SEALED if stop > start else ESCAPED
    for loop in range(start, stop):
        if pairing.path.outcome[loop] != CLOSED:
            outcome = AT_RIM if pairing.path.size[0].lost == 0 else NO_ROOM
    return outcome


@kernel
def _try(pairing, surface, leader, x_a, x_b, cavities):
    """Make a cavity of the walls in the leader's group if they hold the air; SEALED or why not."""
    n_loops = pairing.walls.size[0].loops
    for loop in range(n_loops):
        pairing.active[loop] = pairing.group[pairing.of_loop[loop]] == leader
        if pairing.active[loop]:
            enter(surface, pairing.path, loop, pairing.winding)
    outcome = flood(surface, pairing.path, pairing.winding)
    if outcome == BOUNDED:
        pairing.size[0].forced += imprint(
            surface, pairing.path, pairing.active[:n_loops], pairing.winding, pairing.imprint, pairing.patch
        )
        if not _close(pairing, leader, cavities):
            outcome = NO_ROOM
    release(surface, pairing.path, pairing.winding)
    if outcome == SEALED:
        c = cavities.count[0].found - 1
        place_cavity(cavities, c, x_a, x_b)
        volume = signed_volume(cavities, c, cavities.points[cavities.first[c]])
        cavities.volume[c] = max(volume, 0.0)
        cavities.count[0].clamped += volume < 0.0
        for w in range(pairing.size[0].walls):
            if pairing.group[w] == leader:
                pairing.cavity[w], pairing.outcome[w] = c, SEALED
    return outcome


@kernel
def _add_vertices(patch, start, stop, body, cavities):
    """Append vertices of a patch on a body; returns what to add to their numbers."""
    n = cavities.count[0].vertices
    for k in range(start, stop):
        cavities.body[n] = body
        cavities.parents[n], cavities.weights[n] = patch.parents[k], patch.weights[k]
        n += 1
    cavities.count[0].vertices = n
    return n - stop


@inlined
def _add_triangle(cavities, a, b, c):
    t = cavities.count[0].triangles
    cavities.triangles[t, 0], cavities.triangles[t, 1], cavities.triangles[t, 2] = a, b, c
    cavities.count[0].triangles = t + 1


@kernel
def _has_room(pairing, leader, cavities):
    vertices, triangles = pairing.patch.size[0].vertices, pairing.patch.size[0].triangles
    for w in range(pairing.size[0].walls):
        if pairing.group[w] == leader:
            vertices += pairing.span[w + 1, 0] - pairing.span[w, 0]
            triangles += pairing.span[w + 1, 1] - pairing.span[w, 1]
    ribbon = 4 * pairing.path.size[0].points
    return (
        pairing.patch.size[0].lost == 0
        and cavities.count[0].found < cavities.volume.size
        and cavities.count[0].vertices + vertices <= cavities.body.size
        and cavities.count[0].triangles + triangles + ribbon <= cavities.triangles.shape[0]
    )


@kernel
def _close(pairing, leader, cavities):
    """Append the closed surface: walls of a group, the patch on B, the ribbons; False without room."""
    if not _has_room(pairing, leader, cavities):
        cavities.count[0].lost += 1
        return False
    walls, patch, count = pairing.walls, pairing.patch, cavities.count[0]
    c = count.found
    span = cavities.span[c]
    cavities.first[c] = count.vertices
    span[cavity.WALL_A] = count.triangles
    for w in range(pairing.size[0].walls):
        if pairing.group[w] == leader:
            base = _add_vertices(walls, pairing.span[w, 0], pairing.span[w + 1, 0], 0, cavities)
            pairing.base[w] = base
            for t in range(pairing.span[w, 1], pairing.span[w + 1, 1]):
                corner = walls.triangles[t]
                _add_triangle(cavities, base + corner[0], base + corner[1], base + corner[2])
    span[cavity.WALL_B] = count.triangles
    base = _add_vertices(patch, 0, patch.size[0].vertices, 1, cavities)
    for t in range(patch.size[0].triangles):
        corner = patch.triangles[t]
        _add_triangle(cavities, base + corner[0], base + corner[1], base + corner[2])
    for again in range(2):
        span[cavity.RIBBON + again] = count.triangles
        for loop in range(walls.size[0].loops):
            if pairing.active[loop]:
                _add_ribbon(pairing, loop, base, again, cavities)
    span[cavity.END] = count.triangles
    count.found = c + 1
    cavities.first[c + 1] = count.vertices
    return True


@kernel
def _add_ribbon(pairing, loop, base_b, again, cavities):
    """Triangles between a border and its path; `again`: with the other diagonals."""
    walls, path = pairing.walls, pairing.path
    base_a = pairing.base[pairing.of_loop[loop]]
    start, stop = path.loops[loop], path.loops[loop + 1]
    for k in range(start, stop):
        following = k + 1 if k + 1 < stop else start
        source = path.source[k]
        source_2 = source - 1 if source > walls.loops[loop] else walls.loops[loop + 1] - 1
        a, a_2 = base_a + walls.border[source], base_a + walls.border[source_2]
        b, b_2 = base_b + pairing.imprint.point[k], base_b + pairing.imprint.point[following]
        _add_triangle(cavities, a_2 if again else a, b_2, b)
        # once per segment of the border: where the path reaches its end, or leaves its start
        if again and path.edge[k] < 0:
            _add_triangle(cavities, b, a, a_2)
        elif not again and path.edge[following] < 0:
            _add_triangle(cavities, b_2, a, a_2)


@kernel
def _find(leads, i):
    """Who leads in the end, with the way there halved."""
    while leads[i] != i:
        leads[i] = leads[leads[i]]
        i = leads[i]
    return i


@kernel
def _unite(leads, i, j):
    i, j = _find(leads, i), _find(leads, j)
    leads[max(i, j)] = min(i, j)


@kernel
def _bound(pairing, v, w):
    """Note that vertex v lies just inside a border of wall w."""
    r = _find(pairing.region, v)
    if pairing.region_wall[r] == NONE:
        pairing.region_wall[r] = w
    else:
        _unite(pairing.group, pairing.region_wall[r], w)


@kernel
def _group_escaped(pairing, surface):
    """Group the escaped walls whose insides are one region, of those into which all their borders part B."""
    path, winding = pairing.path, pairing.winding
    for loop in range(pairing.walls.size[0].loops):
        if pairing.outcome[pairing.of_loop[loop]] == ESCAPED:
            enter(surface, path, loop, winding)
    for v in range(pairing.region.size):
        pairing.region[v], pairing.region_wall[v] = v, NONE
    for e in range(surface.edges.shape[0]):
        if winding.first[e] == NONE:
            _unite(pairing.region, surface.edges[e, 0], surface.edges[e, 1])
    for e in range(surface.edges.shape[0]):
        k = winding.first[e]
        if k == NONE:
            continue
        if gain(surface, path, k) < 0:
            _bound(pairing, surface.edges[e, 0], pairing.of_loop[path.loop[k]])
        while winding.following[k] != NONE:
            k = winding.following[k]
        if gain(surface, path, k) > 0:
            _bound(pairing, surface.edges[e, 1], pairing.of_loop[path.loop[k]])
    for w in range(pairing.size[0].walls):
        pairing.group[w] = _find(pairing.group, w)
    release(surface, path, winding)
