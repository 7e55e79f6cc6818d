"""Narrow phase: from candidate pairs and present positions to contacts, at every tick of every rate.

Candidates change at the low rate only (`broadphase`); their geometry (gap, normal, weights) is evaluated
here from the present positions of their points, so that a tool may slide over many triangles between
two low steps. Two kinds of pair cover triangle meshes, lines (beams) and points (round tips): point
against triangle, and edge against edge; a third is point against plane. A ball or a capsule that is not
much smaller than the facets of a soft body meets them by their areas instead (`round_facets`).

A closest point on an edge or a vertex is a contact only where it is a *local minimum* of the distance,
that is, where no adjacent face comes closer: otherwise a point that slides over a flat mesh would catch
on every inner edge. A point is inside a closed surface when its nearest candidate triangle says so.

Seen from a point, the distance has the same minima on the front of a surface and on the back of one. Only
the front touches, and its normal leads out of the body: a face that is seen from behind makes no contact
with a point outside, nor does the bottom of a valley, which an edge can come near from within only.
"""

from palpo.physics.collision.edge_groups import edge_group
from palpo.physics.collision.point_groups import point_group
from palpo.physics.collision.proximity_contacts import (
    EDGE_EDGE,
    EDGE_FACET,
    POINT_PLANE,
    POINT_TRIANGLE,
    add_contact,
    identity,
    plane_number,
    second_body,
)
from palpo.physics.collision.round_facets import round_group
from palpo.physics.collision.topology import TOOL
from palpo.physics.numerics.kernels import inlined, kernel


@kernel
def _point_plane(topology, x, p, k, plane, odometer, reach, skin, mu, work, contacts):
    """Contact of point p with a half space."""
    o, n = topology.planes[plane, 0:3], topology.planes[plane, 3:6]
    body_1, body_2 = topology.point_body[p], topology.plane_body[plane]
    distance = (x[p, 0] - o[0]) * n[0] + (x[p, 1] - o[1]) * n[1] + (x[p, 2] - o[2]) * n[2]
    gap = distance - topology.body_radius[body_1] - skin
    work.due[k] = odometer + gap
    if gap > reach:
        return
    name = identity(topology, POINT_PLANE, p, plane_number(topology, plane))
    slot = add_contact(contacts, topology, name, body_1, body_2, n, distance, skin, mu)
    if slot >= 0:
        contacts.slots[slot, 0, 0], contacts.weights[slot, 0, 0] = p, 1.0


@kernel
def group_pairs(topology, pairs, n_pairs, work):
    """Find the runs of pairs that belong together, whose due are known: those of one feature with one body.

    Pairs are sorted by kind, first and second, so that they stand together. Whether a point is inside is
    asked of each body by itself.
    """
    g, start = 0, 0
    while start < n_pairs:
        kind, first = pairs.kind[start], pairs.first[start]
        body = second_body(topology, kind, pairs.second[start])
        soonest, stop = work.due[start], start + 1
        while (
            stop < n_pairs
            and pairs.kind[stop] == kind
            and pairs.first[stop] == first
            and second_body(topology, kind, pairs.second[stop]) == body
        ):
            soonest = min(soonest, work.due[stop])
            stop += 1
        work.start[g], work.soonest[g] = start, soonest
        start, g = stop, g + 1
    work.start[g], work.groups[0] = n_pairs, g


@inlined
def _is_of_tool(topology, pairs, k):
    """Whether a hand holds one of the bodies of pair k."""
    kind, first = pairs.kind[k], pairs.first[k]
    point = first if kind in (POINT_TRIANGLE, POINT_PLANE) else topology.edges[first, 0]
    one, two = topology.point_body[point], second_body(topology, kind, pairs.second[k])
    return topology.body_role[one] == TOOL or topology.body_role[two] == TOOL


@kernel
def _find_group(topology, pairs, g, x, odometer, reach, skin, mu, work, contacts):
    """The contacts of one run of pairs, if one of them may be in reach."""
    limit = odometer + reach
    if work.soonest[g] > limit:
        return
    start, stop = work.start[g], work.start[g + 1]
    kind, first = pairs.kind[start], pairs.first[start]
    if kind == POINT_TRIANGLE:
        point_group(topology, x, first, pairs.second, start, stop, odometer, reach, skin, mu, work, contacts)
    elif kind == EDGE_EDGE:
        edge_group(topology, x, first, pairs.second, start, stop, odometer, reach, skin, mu, work, contacts)
    elif kind == EDGE_FACET:
        round_group(topology, x, first, pairs.second, start, stop, odometer, reach, mu, work, contacts)
    else:
        for k in range(start, stop):
            if work.due[k] <= limit:
                _point_plane(
                    topology, x, first, k, pairs.second[k], odometer, reach, skin, mu, work, contacts
                )
    soonest = work.due[start]
    for k in range(start + 1, stop):
        soonest = min(soonest, work.due[k])
    work.soonest[g] = soonest


@kernel
def find_contacts(topology, pairs, x, odometer, reach, skin, mu, work, contacts):
    """Contacts of all pairs that are within `reach` [m] of touching; the pairs have been grouped.

    `x` (n_points, 3) holds the present position of every point of a pair that is looked at. `odometer` [m] is
    a bound on the relative travel of any two points so far: a pair found at a gap is not looked at again
    before the odometer has advanced by as much but for the reach. So a group costs nothing until one of its
    pairs may be in reach, however many there are. Where there is no room for all, those of tools come first.
    """
    contacts.count[0].found = contacts.count[0].lost = 0
    for g in range(work.groups[0]):
        _find_group(topology, pairs, g, x, odometer, reach, skin, mu, work, contacts)
    if contacts.count[0].lost > 0:
        contacts.count[0].found = contacts.count[0].lost = 0
        for of_tools in (True, False):
            for g in range(work.groups[0]):
                if _is_of_tool(topology, pairs, work.start[g]) == of_tools:
                    _find_group(topology, pairs, g, x, odometer, reach, skin, mu, work, contacts)
