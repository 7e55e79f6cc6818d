"""Contacts of points with a rigid solid, from its signed distance (002, IV-A): what may touch in this step.

Points are interpolated on the surfaces of other bodies, the *probes*, in the solid's frame. Distance and
normal are asked at the step's start and once in a step, of those points alone that could come near: a
distance changes no faster than its point moves, so that where it was asked last bounds it now. No point moves
further than a corner of its facet, so that facets are dismissed as a whole. Points of the solid's edges may
be candidates too, against the probes' facets (`collision.edge_search`).

Without contact forces a bent body would leap millimetres in the step, and all of its points with it. So a
point becomes a contact where the motion that is *foreseen*, under the newest forces, would bring it nearer
than the margin: these are the points that touch. Of each probe either the deepest of each k-means cluster
becomes a contact, or every one. Where the forces found then differ so much that something moves on by more
than the margin, points may have been missed, and detection is repeated with these forces.

It is a detector of `physics.engine.contacts`: body 1 of its contacts is a probe, body 2 the solid.
"""

import numpy as np

from palpo.physics.collision.clusters import Clusters, update_clusters
from palpo.physics.collision.distance_field import evaluate
from palpo.physics.collision.edge_search import look_at_edges
from palpo.physics.collision.field_search import smallest_field_contacts
from palpo.physics.collision.surface_points import CONE
from palpo.physics.contract.contacts import AGAIN, FIND, KEEP, MISSED, append, detector
from palpo.physics.contract.stages import (
    DONE,
    FREE,
    MOVED,
    NOT_FINITE,
    NOT_OFFERED,
    PLACE,
    SHAPE,
    address_of,
    call_unit,
)
from palpo.physics.exchange.atomics import view_flat
from palpo.physics.exchange.handle import handle_like
from palpo.physics.numerics.arrays import all_finite
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import dot3, matvec3, quat_to_matrix, tangent_basis

LLOYD_SWEEPS = 4
"""Of k-means in one step; it goes on in the next."""


@inlined
def _ask(who, batch, stage, h):
    """A stage of a probe's nodes or of the solid's pose; none of these touches the problem."""
    return call_unit(who.address[0], stage, who.address[1], address_of(batch), 0, h)


@inlined
def _probe(s, k):
    """Handle of probe k."""
    return handle_like(s.probe, s.probes[k])


@kernel
def _locate(s, h):
    """Where all are as the step starts, and how fast; NOT_FINITE for who is nowhere, and touches nothing."""
    solid = s.solid
    if _ask(solid, solid.pose, PLACE, h) != DONE or _ask(solid, solid.pose, FREE, h) != DONE:
        return NOT_FINITE
    quat_to_matrix(solid.pose.q[1], solid.axes)
    well = all_finite(solid.pose.x[0]) and all_finite(solid.pose.q[1])
    for k in range(s.probes.size):
        probe = _probe(s, k)
        if _ask(probe, probe.nodes, SHAPE, h) != DONE or _ask(probe, probe.nodes, FREE, h) != DONE:
            return NOT_FINITE
        well = well and all_finite(view_flat(probe.nodes.x))
    s.candidates.ahead[:] = np.inf
    return DONE if well else NOT_FINITE


@kernel
def _foresee(s, h):
    """T (v+ + eps v) of nodes and pose under the forces pushed becomes their drift; its largest change."""
    eps, way = h * s.settings[0].restitution, 0.0
    _ask(s.solid, s.solid.pose, MOVED, h)
    for k in range(2):
        own = _drift(s.solid.pose, k, eps, s.solid.drift[k])
        way = max(way, own if k == 0 else 0.0)
    for p in range(s.probes.size):
        probe = _probe(s, p)
        _ask(probe, probe.nodes, MOVED, h)
        for k in range(probe.drift.shape[0]):
            way = max(way, _drift(probe.nodes, k, eps, probe.drift[k]))
    return way**0.5


@inlined
def _drift(batch, k, eps, drift):
    """drift (3,) = d + eps v of a point; its squared change."""
    own = 0.0
    for i in range(3):
        ahead = batch.d[k, i] + eps * batch.v[k, i]
        own += (ahead - drift[i]) ** 2
        drift[i] = ahead
    return own


@kernel
def _foreseen(s):
    """Whether every motion foreseen is a number: by one that is none, nothing would come near."""
    well = all_finite(view_flat(s.solid.drift))
    for k in range(s.probes.size):
        well = well and all_finite(view_flat(_probe(s, k).drift))
    return well


@kernel
def _carry_over(s, probe):
    """Nodes of a probe in the solid's frame, and how they close in under the forces foreseen; how far."""
    x, drift, turn, origin = probe.nodes.x, probe.drift, s.solid.axes, s.solid.pose.x[0]
    local, closing, along, about = probe.local, probe.closing, s.solid.drift[0], s.solid.drift[1]
    moved, way = 0.0, 0.0
    for m in range(drift.shape[0]):
        own, ahead = 0.0, 0.0
        p0, p1, p2 = x[m, 0] - origin[0], x[m, 1] - origin[1], x[m, 2] - origin[2]
        u0 = drift[m, 0] - along[0] - about[1] * p2 + about[2] * p1
        u1 = drift[m, 1] - along[1] - about[2] * p0 + about[0] * p2
        u2 = drift[m, 2] - along[2] - about[0] * p1 + about[1] * p0
        for i in range(3):
            place = turn[0, i] * p0 + turn[1, i] * p1 + turn[2, i] * p2
            own += (place - local[m, i]) ** 2
            local[m, i] = place
            closing[m, i] = turn[0, i] * u0 + turn[1, i] * u1 + turn[2, i] * u2
            ahead += closing[m, i] ** 2
        moved, way = max(moved, own), max(way, ahead)
    probe.edges.travel[0] += moved**0.5
    return way**0.5


@kernel
def _is_far(probe, f, margin):
    """Whether no point of facet f could come within the margin in this step."""
    corner, place, local, closing = probe.facets.corner, probe.facets.place, probe.local, probe.closing
    moved, way = 0.0, 0.0
    for a in range(3):
        m, own, ahead = corner[f, a], 0.0, 0.0
        for i in range(3):
            own += (local[m, i] - place[f, a, i]) ** 2
            ahead += closing[m, i] ** 2
        moved, way = max(moved, own), max(way, ahead)
    return probe.facets.least[f] - moved**0.5 > margin + way**0.5


@kernel
def _look_at(s, probe, f):
    """Points of facet f, and which of them could come within the margin."""
    c, margin, facets, nodes, weights = (
        s.candidates,
        s.settings[0].margin,
        probe.facets,
        probe.points.nodes,
        probe.points.weights,
    )
    local, asked, told, closing, close = c.local, c.asked, c.told, c.closing, c.close
    place, velocity, least = probe.local, probe.closing, np.inf
    for q in range(facets.start[f], facets.start[f + 1]):
        j = facets.point[q]
        k, moved, way = probe.first + j, 0.0, 0.0
        m0, m1, m2 = nodes[j, 0], nodes[j, 1], nodes[j, 2]
        w0, w1, w2 = weights[j, 0], weights[j, 1], weights[j, 2]
        for i in range(3):
            p = w0 * place[m0, i] + w1 * place[m1, i] + w2 * place[m2, i]
            u = w0 * velocity[m0, i] + w1 * velocity[m1, i] + w2 * velocity[m2, i]
            local[k, i], closing[k, i] = p, u
            moved += (p - asked[k, i]) ** 2
            way += u * u
        bound = told[k] - moved**0.5
        least = min(least, bound)
        close[k] = bound <= margin + way**0.5
    facets.least[f] = least
    for a in range(3):
        for i in range(3):
            facets.place[f, a, i] = place[facets.corner[f, a], i]


@kernel
def _find_near(s, probe, count):
    """Candidates that could come within the margin in this step, after `count` of other probes."""
    margin, close, near, facets = s.settings[0].margin, s.candidates.close, s.candidates.near, probe.facets
    first, last = probe.first, probe.first + probe.points.nodes.shape[0]
    way = _carry_over(s, probe)
    probe.near[0] = count
    for k in range(first, last):
        close[k] = False
    for f in range(facets.corner.shape[0]):
        if not _is_far(probe, f, margin):
            _look_at(s, probe, f)
    look_at_edges(s, probe, margin, way)
    # in their own order, by which equals are chosen: nodes before what lies between
    for k in range(first, last):
        if close[k]:
            near[count] = k
            count += 1
    probe.near[1] = count
    return count


@kernel
def _ask_distances(s, near):
    """Of the near candidates (near,) that have moved since they were asked: they move once in a step."""
    c, count = s.candidates, 0
    local, asked, told, normal = c.local, c.asked, c.told, c.normal
    for j in range(near):
        k = c.near[j]
        still = local[k, 0] == asked[k, 0] and local[k, 1] == asked[k, 1] and local[k, 2] == asked[k, 2]
        if still and told[k] > -np.inf:
            continue
        c.asking[count] = k
        for i in range(3):
            c.where[count, i] = local[k, i]
        count += 1
    evaluate(s.field, c.where, count, c.gap, c.way, s.scratch)
    for j in range(count):
        k = c.asking[j]
        told[k] = c.gap[j]
        for i in range(3):
            asked[k, i], normal[k, i] = c.where[j, i], c.way[j, i]


@inlined
def _seen_gap(gap, correction):
    """The gap as the law of contact sees it."""
    return gap if gap > 0.0 else correction * gap


@kernel
def _touched(s, probe, k, normal):
    """Whether candidate k can be touched along `normal` (3,), out of the solid and in its frame.

    A force that leaves the surface beside a point is not this point's: the facet or the edge there is nearer
    to the solid. An edge of the solid that slides over a facet passes its points so, and would catch on each.
    """
    turn, ways, x = s.solid.axes, probe.ways[k - probe.first], probe.nodes.x
    n0 = turn[0, 0] * normal[0] + turn[0, 1] * normal[1] + turn[0, 2] * normal[2]
    n1 = turn[1, 0] * normal[0] + turn[1, 1] * normal[1] + turn[1, 2] * normal[2]
    n2 = turn[2, 0] * normal[0] + turn[2, 1] * normal[1] + turn[2, 2] * normal[2]
    for p in range(ways.shape[0]):
        i, j = ways[p, 0], ways[p, 1]
        t0, t1, t2 = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
        if -(n0 * t0 + n1 * t1 + n2 * t2) > CONE * (t0 * t0 + t1 * t1 + t2 * t2) ** 0.5:
            return False
    return True


@kernel
def _activate(s, probe):
    """Candidates that the motion foreseen would let come within the margin; how many."""
    c, count, margin, correction = s.candidates, 0, s.settings[0].margin, s.settings[0].correction
    for j in range(probe.near[0], probe.near[1]):
        k = c.near[j]
        n = c.normal[k]
        if n[0] == 0.0 and n[1] == 0.0 and n[2] == 0.0:
            continue  # beyond the distance's band
        c.ahead[k] = min(c.ahead[k], _seen_gap(c.told[k], correction) + dot3(n, c.closing[k]))
        if c.ahead[k] < margin and (k - probe.first >= probe.ways.shape[0] or _touched(s, probe, k, n)):
            probe.active[count] = j
            probe.depth[count] = c.told[k]
            for i in range(3):
                probe.where[count, i] = c.local[k, i]
            count += 1
    return count


@kernel
def _add_contact(s, contacts, probe, j):
    """A contact at near candidate j, from that candidate's own force on; its number, -1 for none."""
    c, i, settings, origin = s.candidates, s.candidates.near[j], s.settings[0], s.solid.pose.x[0]
    k = append(contacts, i, probe.body, s.solid.body)
    if k < 0:
        return k
    found = s.found.count[0]
    s.found.candidate[found], s.found.gap[found] = i, c.told[i]
    s.found.count[0] += 1
    contacts.gap[k] = _seen_gap(c.told[i], settings.correction)
    contacts.mu[k], contacts.restitution[k] = settings.friction, settings.restitution
    contacts.anchored[k] = True
    matvec3(s.solid.axes, c.local[i], c.position[i])
    for d in range(3):
        c.position[i, d] += origin[d]
        contacts.slots[k, 0, d] = probe.points.nodes[i - probe.first, d]
        contacts.weights[k, 0, d] = probe.points.weights[i - probe.first, d]
        contacts.slots[k, 1, d], contacts.weights[k, 1, d] = 0, 1.0 if d == 0 else 0.0
        contacts.arm[k, 1, d] = c.position[i, d] - origin[d]
        contacts.force[k, d] = c.force[i, d]
    frame = contacts.frame[k]
    matvec3(s.solid.axes, c.normal[i], frame[0])
    tangent_basis(frame[0], frame[1], frame[2])
    return k


@kernel
def _choose_clustered(s, contacts, probe, active, most):
    """The deepest point of each cluster, from the forces of all its points."""
    g, c, first = probe.clusters, s.candidates, contacts.count[0].found
    clusters = Clusters(g.centre[:most], g.count, g.label, g.offset2, g.deepest, g.members)
    clusters.count[0].found = min(clusters.count[0].found, most)
    n = update_clusters(clusters, probe.where, probe.depth, active, LLOYD_SWEEPS)
    for k in range(n):
        if _add_contact(s, contacts, probe, probe.active[clusters.deepest[k]]) >= 0:
            contacts.force[first + k] = 0.0
    for a in range(active):
        k = first + clusters.label[a]
        if k < contacts.count[0].found:
            for d in range(3):
                contacts.force[k, d] += c.force[c.near[probe.active[a]], d]


@kernel
def _choose_all(s, contacts, probe, active):
    """Every active point; where there is no room, the deepest."""
    chosen, n = s.found.candidate[s.found.count[0] :], 0
    room = s.found.candidate.size // s.probes.size
    for a in range(active):
        if n < room:
            chosen[n] = a
            n += 1
            continue
        contacts.count[0].lost += 1
        shallow = -1
        for k in range(n):
            if shallow < 0 or probe.depth[chosen[k]] > probe.depth[chosen[shallow]]:
                shallow = k
        if shallow >= 0 and probe.depth[a] < probe.depth[chosen[shallow]]:
            chosen[shallow] = a
    for k in range(n):
        _add_contact(s, contacts, probe, probe.active[chosen[k]])


@kernel
def find(s, contacts, h):
    """Contacts of all probes with the solid, as the newest forces let foresee them."""
    if not s.begun[0]:
        if _locate(s, h) != DONE:
            return NOT_FINITE
        _foresee(s, h)
        s.begun[0] = True
    if not _foreseen(s):
        return NOT_FINITE
    near = 0
    for k in range(s.probes.size):
        probe = _probe(s, k)
        near = _find_near(s, probe, near)
    _ask_distances(s, near)
    s.found.first[0], s.found.count[0], s.active[0] = contacts.count[0].found, 0, 0
    for k in range(s.probes.size):
        probe = _probe(s, k)
        active = _activate(s, probe)
        s.active[0] += active
        if s.settings[0].clusters > 0:
            _choose_clustered(s, contacts, probe, active, s.settings[0].clusters)
        else:
            _choose_all(s, contacts, probe, active)
    return DONE


@kernel
def _remember(s, contacts):
    """Where the next solve starts from."""
    s.candidates.force[:] = 0.0
    for k in range(s.found.count[0]):
        for i in range(3):
            s.candidates.force[s.found.candidate[k], i] = contacts.force[s.found.first[0] + k, i]


@kernel
def missed(s, contacts, h):
    """AGAIN where the forces found let a node or the solid move on by more than the margin that FIND left."""
    if _foresee(s, h) <= s.settings[0].margin:
        return DONE
    _remember(s, contacts)
    return AGAIN


@detector(smallest_field_contacts())
def field_contacts_detector(stage, s, contacts, h):
    """`int32 f(stage, state *, contacts *, h)`: one stage of a FieldContacts."""
    if stage == FIND:
        return find(s, contacts, h)
    if stage == MISSED:
        return missed(s, contacts, h)
    if stage == KEEP:
        _remember(s, contacts)
        s.begun[0] = False
        return DONE
    return NOT_OFFERED
