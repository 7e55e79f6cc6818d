"""Edges of a rigid solid against the facets of a body that yields, seen from the solid's side.

An edge that presses on a facet lies between the facet's points: these see the solid's faces on both sides of
it, along which the facet cannot be touched. So points of the solid's convex edges are candidates too. The
facet that is nearest to such a point says where on the body it is, and which way is out.
"""

from palpo.physics.collision.box_tree import box_distance2
from palpo.physics.collision.closest import vector
from palpo.physics.collision.nearest import fit, signed_nearest
from palpo.physics.collision.surface_points import CONE
from palpo.physics.numerics.kernels import inlined, kernel

ROUNDS = 4
"""Of a normal over the directions that leave a point: they lie askew to each other."""


@inlined
def _may_touch(edges, j, weights, facet, way):
    """Whether the solid can be pressed there: not beside the end of the body's surface, and along a normal
    of the edge itself."""
    if facet < 0:
        return False
    for a in range(3):
        if weights[a] == 0.0 and edges.border[facet, a]:
            return False
    for q in range(edges.ways.shape[1]):
        t = edges.ways[j, q]
        if -(way[0] * t[0] + way[1] * t[1] + way[2] * t[2]) > CONE:
            return False
    return True


@inlined
def _keep_between(edges, j, way):
    """Turns a normal that is a little beyond those of the edge's two faces back among them."""
    for _ in range(ROUNDS):
        for q in range(edges.ways.shape[1]):
            t = edges.ways[j, q]
            beyond = way[0] * t[0] + way[1] * t[1] + way[2] * t[2]
            if beyond < 0.0:
                rest = (1.0 - beyond * beyond) ** -0.5
                for i in range(3):
                    way[i] = rest * (way[i] - beyond * t[i])


@kernel
def _ask(s, probe, j):
    """Distance of the solid's point j to the body, where on it that is, and its normal if it can touch."""
    edges, own = probe.edges, probe.ways.shape[0]
    c, k, p = s.candidates, probe.first + own + j, vector(edges.place, j)
    weights, way, nodes = edges.descent.weights, edges.way, probe.points.nodes
    edges.asked[j] = edges.travel[0]
    c.normal[k] = 0.0
    c.told[k] = box_distance2(edges.target.boxes.tree.box, 0, p, p) ** 0.5
    if c.told[k] > edges.reach[0]:
        return
    c.told[k], facet = signed_nearest(
        edges.target, probe.local, p, -1, edges.reach[0], weights, way, edges.descent
    )
    if _may_touch(edges, j, weights, facet, way):
        _keep_between(edges, j, way)
        for i in range(3):
            nodes[own + j, i] = probe.facets.corner[facet, i]
            probe.points.weights[own + j, i] = weights[i]
            c.normal[k, i] = -way[i]


@kernel
def look_at_edges(s, probe, margin, way):
    """Which of the solid's points could come within the margin [m] of a probe in this step.

    way: the longest way [m] that a node is foreseen to go.
    """
    edges, own, c = probe.edges, probe.ways.shape[0], s.candidates
    nodes, weights = probe.points.nodes, probe.points.weights
    fitted = False
    for j in range(edges.place.shape[0]):
        k = probe.first + own + j
        if c.told[k] - (edges.travel[0] - edges.asked[j]) > margin + way:
            continue
        if edges.asked[j] != edges.travel[0]:
            if not fitted:
                fit(edges.target.boxes, probe.local)
                fitted = True
            _ask(s, probe, j)
        if c.normal[k, 0] == 0.0 and c.normal[k, 1] == 0.0 and c.normal[k, 2] == 0.0:
            continue
        ahead = 0.0
        for i in range(3):
            u = 0.0
            for a in range(3):
                u += weights[own + j, a] * probe.closing[nodes[own + j, a], i]
            c.closing[k, i] = u
            ahead += u * u
        c.close[k] = c.told[k] <= margin + ahead**0.5
