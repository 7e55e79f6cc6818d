"""The air between two surfaces in one compiled piece: labels, flood, walls, pairing, tracks, volumes, flow.

In the order of 000, sections 3.2.2 to 3.2.6. A step of many cups asks for it once for each: called one by one
from Python, the parts took as long to be called as to run, and of two threads one waited.

How a cavity's border moves within a step: the wall's area grows as its rim lifts.

The wall ends where the gap is the sealing distance, so that the volume above that gap, the integral of
(gap - sealing) over the wall, has no border term in its gradient, and as its second derivative

    sum over the border's crossings c of  a_c dgap_c^2,    a_c = length of border / slope of the gap,

with dgap_c by how much the two surfaces part there. The wall's area A grows by sum a_c dgap_c.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.gas.border import BorderWork, cut_patch
from palpo.physics.gas.cavity import CavitySurfaces, area_of_wall, kept_volume, volume_gradient
from palpo.physics.gas.flood import (
    OUTSIDE,
    SEALED,
    Connectivity,
    Flood,
    Thresholds,
    distances_wanted,
    find_cavities,
    label_vertices,
    renumber,
)
from palpo.physics.gas.gaps import Gaps, measure
from palpo.physics.gas.pairing import Pairing, add_wall, clear_walls, pair_walls
from palpo.physics.gas.patch import Patch
from palpo.physics.gas.pockets import Pockets, add_pockets, find_pockets
from palpo.physics.gas.rim_flow import contact_pressures, rim_conductances, sheets_of
from palpo.physics.gas.tracking import (
    ABSENT,
    BORN_SEALED,
    FLAT,
    LIVING,
    Links,
    follow_cavities,
    share_air,
)
from palpo.physics.gas.wall_regions import find_kinds, find_seeping, through_wall
from palpo.physics.gas.winding import NONE
from palpo.physics.numerics.kernels import inlined, kernel

LEVEL = 0.1
"""Least fall of the gap along an edge, over the sealing distance: a level rim does not open without end."""


@inlined
def _crosses(member, number, label, a, b):
    """Is a in the cavity, and b in the sealed ring?"""
    return member[a] == number and label[a] < SEALED and label[b] >= SEALED


@kernel
def border_growth(connectivity, member, number, label, gaps, limits, x, triangles, x_b, growth, growth_b):
    """growth (n, 3), growth_b (m, 3) [m] = dA/dx of a cavity's wall by its border; returns sum a_c [m].

    member, label (n,), gaps: of the surface's vertices x (n, 3) [m], as in `border.cut_patch`. triangles,
    x_b (m, 3): of the surface that the gaps are measured from. As forces on the pair they have no resultant
    and no moment.
    """
    growth[:] = 0.0
    growth_b[:] = 0.0
    lift = 0.0
    ends = np.zeros((2, 2), np.int64)
    part, crossing = np.zeros(2), np.zeros((2, 3))
    apart, swept = np.zeros(3), np.zeros(3)
    for t in range(connectivity.triangles.shape[0]):
        count = 0
        for j in range(3):
            a, b = connectivity.triangles[t, j], connectivity.triangles[t, (j + 1) % 3]
            if _crosses(member, number, label, b, a):
                a, b = b, a
            if count < 2 and _crosses(member, number, label, a, b) and gaps.distance[a] < np.inf:
                ends[count, 0], ends[count, 1] = a, b
                fall = gaps.distance[a] - gaps.distance[b]
                part[count] = (gaps.distance[a] - limits.sealing) / fall
                for i in range(3):
                    crossing[count, i] = x[a, i] + part[count] * (x[b, i] - x[a, i])
                count += 1
        if count < 2:
            continue
        for c in range(2):
            a, b = ends[c, 0], ends[c, 1]
            for i in range(3):
                k, m = (i + 1) % 3, (i + 2) % 3
                swept[i] = (crossing[1, k] - crossing[0, k]) * (x[b, m] - x[a, m]) - (
                    crossing[1, m] - crossing[0, m]
                ) * (x[b, k] - x[a, k])
            fall = max(gaps.distance[a] - gaps.distance[b], LEVEL * limits.sealing)
            first, second = (a, 1.0 - part[c]), (b, part[c])
            if not _foot_to(first, second, crossing[c], gaps, triangles, x_b, apart):
                continue
            grows = 0.5 * abs(swept[0] * apart[0] + swept[1] * apart[1] + swept[2] * apart[2]) / fall
            lift += grows
            for v, share in (first, second):
                for i in range(3):
                    pull = grows * share * apart[i]
                    growth[v, i] += pull
                    for j in range(3):
                        growth_b[triangles[gaps.triangle[v], j], i] -= gaps.weights[v, j] * pull
    return lift


@inlined
def _foot_to(first, second, crossing, gaps, triangles, x_b, out):
    """out (3,) = unit way to a crossing from its foot, shared by its two vertices; False where they meet."""
    for i in range(3):
        out[i] = crossing[i]
    for v, share in (first, second):
        for j in range(3):
            f, w = triangles[gaps.triangle[v], j], share * gaps.weights[v, j]
            for i in range(3):
                out[i] -= w * x_b[f, i]
    size = (out[0] ** 2 + out[1] ** 2 + out[2] ** 2) ** 0.5
    for i in range(3):
        out[i] /= size if size > 0.0 else 1.0
    return size > 0.0


class EnclosedCavities(NamedTuple):
    """What is known of up to c cavities between a surface of n vertices and one of m, and scratch."""

    surface: Connectivity
    other: Connectivity
    limits: Thresholds
    seed: int  # a vertex that is outside, -1 to find it
    exact: int  # 1 for borders on the sealing iso-line, 0 for borders through vertices
    gaps: Gaps
    label: NDArray[np.int64]  # (n,)
    wanted: NDArray[np.int64]  # (n,) scratch
    flood: Flood
    patch: Patch  # scratch, as is the next
    work: BorderWork
    pairing: Pairing
    wall: NDArray[np.int64]  # (k,) in `pairing`, of each inner surface of the flood; NONE for a lost one
    number: NDArray[np.int64]  # (k,) of the cavity that it becomes
    cavities: CavitySurfaces
    links: Links
    pockets: Pockets
    volume: NDArray[np.float64]  # (c,) [m3]
    gradient: NDArray[np.float64]  # (c, n, 3) [m2]
    partner_gradient: NDArray[np.float64]  # (c, m, 3) [m2]
    lift: NDArray[np.float64]  # (c,) Q of palpo.physics.suction.border_springs [m]
    growth: NDArray[np.float64]  # (c, n, 3) q [m]
    partner_growth: NDArray[np.float64]  # (c, m, 3) q [m]
    room: NDArray[np.float64]  # (c,) [m3] of a sealed contact, in place of a cavity that came up in it
    flow: NDArray[np.float64]  # ((n + c + 1)^2,) scratch of `rim_conductances`, as is the next
    joints: NDArray[np.int64]  # (3, n + c + 1)
    holder: NDArray[np.int64]  # (n,) the cavity whose air is at the vertex
    pressing: NDArray[np.float64]  # (n,) [Pa]
    sheet: NDArray[np.float64]  # (n,) [m3/(Pa s)], as is the next
    seeping: NDArray[np.float64]  # (n,) through the wall
    kind: NDArray[np.int64]  # (n,) of the wall below the vertex, in Walls


@kernel
def find_air(e, before, now, target, x, x_b, odometer, roughness, density):
    """Find the cavities at positions x (n, 3) and x_b (m, 3) [m], follow those of `before`, measure them.

    e: Enclosed, whose gaps hold the vertices within the alarm distance. before, now: Tracks of the last and
    of this step. target: of the other surface, which has moved by `odometer` [m]. roughness [m]; density
    [mol/m3]: of air at the atmosphere's pressure.
    """
    gaps, flood = e.gaps, e.flood
    label_vertices(gaps.distance, e.limits, e.label)
    count = distances_wanted(e.surface, e.label, gaps.distance, e.wanted)
    measure(target, x_b, x, e.wanted[:count], odometer, gaps)
    label_vertices(gaps.distance, e.limits, e.label)
    find_cavities(e.surface, x, e.label, e.seed, flood)
    clear_walls(e.pairing)
    count = flood.size[0].cavities
    for k in range(count):
        cut_patch(
            e.surface, flood.cavity, k, e.label, gaps.distance, e.limits, e.exact == 1, e.patch, e.work
        )  # fmt: skip
        e.wall[k] = add_wall(e.pairing, e.patch)
    pair_walls(e.pairing, e.other, target.boxes, x, x_b, e.cavities)
    if count > 0:
        for k in range(e.number.size):
            known = k < count and e.wall[k] != NONE and e.pairing.cavity[e.wall[k]] != NONE
            e.number[k] = e.pairing.cavity[e.wall[k]] if known else OUTSIDE
        renumber(e.surface, flood, e.number)
    follow_cavities(e.surface, x, flood, before, now, e.links)
    _measure(e, now, target, x, x_b, odometer, roughness)
    share_air(before, now, e.links, e.volume, e.room, density)


@kernel
def _measure(e, now, target, x, x_b, odometer, roughness):
    """Volumes, gradients and growth of the cavities, with their pockets."""
    cavities, limits, pockets = e.cavities, e.limits, e.pockets
    triangles = target.surface.triangles
    for i in range(e.volume.size):
        e.volume[i] = e.lift[i] = e.room[i] = 0.0
        if now.state[i] == LIVING:
            volume_gradient(cavities, i, e.gradient[i], e.partner_gradient[i])
            # surfaces that touch are the contact distance apart, and hold the air of their valleys
            kept = kept_volume(cavities, i, limits.contact - roughness, e.partner_gradient[i])
            e.volume[i] = max(cavities.volume[i] - kept, 0.0)
            if e.exact == 1:
                e.lift[i] = border_growth(
                    e.surface, e.flood.cavity, i, e.label, e.gaps, limits, x, triangles, x_b, e.growth[i],
                    e.partner_growth[i],
                )  # fmt: skip
        elif now.state[i] != ABSENT:
            e.gradient[i] = 0.0
            e.partner_gradient[i] = 0.0
        if e.links.origin[i] == BORN_SEALED:
            e.room[i] = roughness * area_of_wall(cavities, i)
    find_pockets(pockets, e.flood.cavity, now.region)
    air = (e.label, (e.gaps.distance, e.gaps.triangle), limits, roughness)
    for i in range(e.volume.size):
        if pockets.has[i]:
            e.volume[i] += add_pockets(
                pockets, i, e.surface, target, x, x_b, odometer, air, e.gradient[i], e.partner_gradient[i]
            )


@kernel
def find_rim_flow(e, now, target, x, force, walls, thin, rt, out):
    """out (c + 1, c + 1): G [m3/(Pa s)] under rims on which vertices at x press with forces (n,) [N].

    After `find_air`, with its tracks `now`; the outside is last. Whatever is pressed beside a living cavity
    is under its rim, its pockets too; a flattened one has its air in them. walls: Walls, of the other
    surface. thin [Pa]: how thin the air is.
    """
    for v in range(e.holder.size):
        pocket = e.pockets.of[v]
        flattened = pocket >= 0 and now.state[pocket] == FLAT
        e.holder[v] = pocket if flattened else e.flood.cavity[v]
    triangles, kind = e.surface.triangles, e.kind
    find_kinds(walls, e.gaps, target.surface.triangles, kind)
    contact_pressures(triangles, x, force, e.pressing)
    sheets_of(e.gaps.distance, e.limits.contact, e.pressing, walls, kind, thin, rt, e.sheet)
    find_seeping(triangles, x, kind, walls.permeance, e.flood.cavity, e.seeping)
    rim_conductances(triangles, x, e.holder, e.sheet, e.seeping, (e.flow, e.joints), out)
    for i in range(e.volume.size):
        if now.state[i] == LIVING:
            through = through_wall(e.cavities, i, walls)
            out[i, -1] += through
            out[-1, i] += through
