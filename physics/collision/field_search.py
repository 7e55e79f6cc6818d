"""What finding contacts with a solid's distance field reads and writes (`collision.field_contacts`)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.clusters import Clusters, make_clusters
from palpo.physics.collision.distance_field import EXACT, DistanceField, DistanceScratch, make_scratch
from palpo.physics.collision.grid_distance import no_grid_distance
from palpo.physics.collision.learned_distance import no_learned_distance
from palpo.physics.collision.near_band import everywhere
from palpo.physics.collision.nearest import Descent, Target, make_descent, target
from palpo.physics.collision.signed_distance import no_exact_distance
from palpo.physics.collision.surface_points import (
    SurfacePoints,
    border_of,
    facets_of,
    surface_points,
    ways_along,
)
from palpo.physics.compliance.fixed import FIXED, make_fixed
from palpo.physics.contract.stages import ROTATION, Batch, Body, make_batch
from palpo.physics.exchange.handle import Handle, of_process
from palpo.physics.mesh.surface import SurfaceMesh

MOST_CLUSTERS = 32
"""Of one probe."""

SETTINGS = np.dtype(
    [("margin", np.float64), ("clusters", np.int64), ("correction", np.float64), ("friction", np.float64),
     ("restitution", np.float64)]
)  # fmt: skip
"""Points that would come nearer than the margin [m] within the step may be contacts; most contacts of a
probe, chosen by k-means, 0 for every touching point; share of a penetration that the law of contact sees,
which takes half of it away in a step at restitution 1 [-]; mu and eps of the contacts."""


class Facets(NamedTuple):
    """m triangles that share a probe's candidates out: none of their points moves further than a corner."""

    corner: NDArray[np.int64]  # (m, 3) nodes
    start: NDArray[np.int64]  # (m + 1,) where the points of each begin
    point: NDArray[np.int64]  # (N,) these
    place: NDArray[np.float64]  # (m, 3, 3) corners in the solid's frame when its points were looked at [m]
    least: NDArray[np.float64]  # (m,) what none of their distances was below then [m]


class Edges(NamedTuple):
    """E points of the solid's edges, which touch the facets of a probe: its last candidates."""

    place: NDArray[np.float64]  # (E, 3) in the solid's frame [m]
    ways: NDArray[np.float64]  # (E, q, 3) unit vectors that leave it along the solid's surface, or 0
    border: NDArray[
        np.bool_
    ]  # (m, 3) whether the probe's surface ends at a facet's edge across from a corner
    reach: NDArray[np.float64]  # (1,) up to which the distance is known [m]
    travel: NDArray[np.float64]  # (1,) that the probe's nodes went at most in the solid's frame so far [m]
    asked: NDArray[np.float64]  # (E,) and had gone when the distance was asked last [m]
    target: Target  # the probe's surface
    descent: Descent
    way: NDArray[np.float64]  # (3,) scratch


@of_process("address")
class Probe(NamedTuple):
    """One body of k surface nodes and N candidates: points between its nodes, then the solid's edges'."""

    address: NDArray[np.int64]  # (2,) of its unit and of its state
    body: int  # its number
    points: SurfacePoints  # of the solid's edges as of now
    ways: NDArray[np.int64]  # (N - E, k, 2) of palpo.physics.collision.surface_points.ways_along
    facets: Facets
    edges: Edges
    first: int  # of its candidates among those of all probes
    nodes: Batch  # (k,) where they are at the step's start, and how they move
    local: NDArray[np.float64]  # (k, 3) these in the solid's frame [m]
    closing: NDArray[np.float64]  # (k, 3) motion foreseen, relative to the solid [m], its frame
    drift: NDArray[np.float64]  # (k, 3) T (v+ + eps v) as it was foreseen when contacts were found last [m]
    clusters: Clusters
    near: NDArray[np.int64]  # (2,) first of its near candidates, and that of the next probe
    active: NDArray[np.int64]  # (N,) near candidates that may become contacts
    where: NDArray[np.float64]  # (N, 3) where these are, in the solid's frame [m]
    depth: NDArray[np.float64]  # (N,) and their gaps [m]


@of_process("address")
class FieldSolid(NamedTuple):
    """The body whose distance is asked."""

    address: NDArray[np.int64]  # (2,) of its unit and of its state
    body: int  # its number
    pose: Batch  # its origin, and its turning
    axes: NDArray[np.float64]  # (3, 3) from its frame to the world
    drift: NDArray[np.float64]  # (2, 3) of origin and turning, as probes' [m], [rad]


class Candidates(NamedTuple):
    """The N points of all probes at the step's start; of facets that are far away, when they were near."""

    position: NDArray[np.float64]  # (N, 3) of contacts [m]
    local: NDArray[np.float64]  # (N, 3) in the solid's frame [m]
    closing: NDArray[np.float64]  # (N, 3) motion foreseen, relative to the solid [m], its frame
    ahead: NDArray[np.float64]  # (N,) least gap that is foreseen in this step [m]
    asked: NDArray[np.float64]  # (N, 3) where in the solid's frame the distance was asked last [m]
    told: NDArray[np.float64]  # (N,) and what it was [m]
    normal: NDArray[np.float64]  # (N, 3) and the normal, out of the solid, in its frame
    close: NDArray[np.bool_]  # (N,) whether it could come within the margin in this step
    near: NDArray[np.int64]  # (N,) those that could
    asking: NDArray[np.int64]  # (N,) those of them whose distance is not known yet
    where: NDArray[np.float64]  # (N, 3) these in the solid's frame [m]
    gap: NDArray[np.float64]  # (N,) their distance to the solid [m]
    way: NDArray[np.float64]  # (N, 3) and its normal
    force: NDArray[np.float64]  # (N, 3) of the last step [N], world axes: where the next one starts


class ProbeContacts(NamedTuple):
    """The contacts of a step, probe by probe: up to c."""

    first: NDArray[np.int64]  # (1,) of them among the contacts of all detectors
    # shadows tuple.count, which nobody asks of a state
    count: NDArray[np.int64]  # type: ignore[assignment]  # (1,)
    candidate: NDArray[np.int64]  # (c,)
    gap: NDArray[np.float64]  # (c,) [m]


@of_process("probes")
class FieldContacts(NamedTuple):
    """All that finding contacts reads and writes."""

    probe: Probe  # the first; the layout of all
    probes: NDArray[np.int64]  # (p,) addresses of their handles
    solid: FieldSolid
    field: DistanceField
    scratch: DistanceScratch
    settings: NDArray[np.void]  # (1,) of SETTINGS
    candidates: Candidates
    found: ProbeContacts
    active: NDArray[np.int64]  # (1,) points that touch, before clustering
    begun: NDArray[np.bool_]  # (1,) whether it has looked for contacts in this step


def make_probe(
    body: Body, number: int, triangles: NDArray, points: SurfacePoints, first: int, edges: Edges | None = None
) -> Probe:
    """A body whose candidates are `points` of its surface, triangles (m, 3), and come after `first` others.

    number: of the body among the engine's. edges: of the solid, none by default.
    """
    edges = edges or no_edges()
    of, ways, m = facets_of(triangles, points), ways_along(triangles, points), len(triangles)
    order = np.argsort(of, kind="stable")
    facets = Facets(
        np.ascontiguousarray(triangles, np.int64), np.searchsorted(of[order], np.arange(m + 1)), order,
        np.zeros((m, 3, 3)), np.full(m, -np.inf),
    )  # fmt: skip
    last = len(edges.place)
    points = SurfacePoints(
        np.concatenate([points.nodes, np.zeros((last, 3), np.int64)]),
        np.concatenate([points.weights, np.zeros((last, 3))]),
    )
    size, nodes = len(points.nodes), body.kind.points(body.state)
    batch = make_batch(nodes)
    batch.count[0] = nodes
    batch.slots[:, 0], batch.weights[:, 0] = np.arange(nodes), 1.0
    return Probe(
        _addresses(body), number, points, ways, facets, edges, first, batch, np.zeros((nodes, 3)),
        np.zeros((nodes, 3)), np.zeros((nodes, 3)), make_clusters(MOST_CLUSTERS, size),
        np.zeros(2, np.int64), np.zeros(size, np.int64), np.zeros((size, 3)), np.zeros(size),
    )  # fmt: skip


def make_edges(
    place: NDArray[np.float64], ways: NDArray[np.float64], surface: SurfaceMesh, reach: float
) -> Edges:
    """Points (E, 3) [m] of a solid's edges against the surface of a probe's nodes, known up to `reach` [m].

    ways (E, q, 3): directions that leave each along the solid's surface, of any length; 0 for none.
    """
    size = np.linalg.norm(ways, axis=2, keepdims=True)
    return Edges(
        np.ascontiguousarray(place, float), ways / np.where(size > 0.0, size, 1.0),
        border_of(surface.triangles), np.array([reach]), np.zeros(1), np.full(len(place), -1.0),
        target(surface), make_descent(), np.zeros(3),
    )  # fmt: skip


def no_edges() -> Edges:
    """Nothing of the solid is seen from its own side."""
    anything = SurfaceMesh.patch(np.eye(3), np.array([[0, 1, 2]]))
    return make_edges(np.zeros((0, 3)), np.zeros((0, 1, 3)), anything, 0.0)


def make_solid(body: Body, number: int) -> FieldSolid:
    """A rigid body, whose slot 0 is the origin of its distance's frame; number: among the engine's."""
    pose = make_batch(2)
    pose.count[0], pose.weights[:, 0], pose.what[1] = 2, 1.0, ROTATION
    return FieldSolid(_addresses(body), number, pose, np.eye(3), np.zeros((2, 3)))


def make_field_contacts(
    probes: list[Handle], solid: FieldSolid, field: DistanceField, capacity: int
) -> FieldContacts:
    """Nothing found yet between the probes behind handles and a solid; at most `capacity` contacts.

    The settings are the caller's to fill.
    """
    n = sum(len(handle.state.active) for handle in probes)
    position, local, closing, asked, where, normal, way, force = (np.zeros((n, 3)) for _ in range(8))
    one, candidate = [np.zeros(1, np.int64) for _ in range(3)], np.zeros(capacity, np.int64)
    for handle in probes:
        probe = handle.state
        last = slice(probe.first + len(probe.ways), probe.first + len(probe.active))
        local[last] = asked[last] = probe.edges.place
    return FieldContacts(
        probes[0].state, np.array([handle.address for handle in probes], np.int64), solid, field,
        make_scratch(),
        np.zeros(1, SETTINGS),
        Candidates(
            position, local, closing, np.zeros(n), asked, np.full(n, -np.inf), normal, np.zeros(n, np.bool_),
            np.zeros(n, np.int64), np.zeros(n, np.int64), where, np.zeros(n), way, force,
        ),
        ProbeContacts(one[0], one[1], candidate, np.zeros(capacity)), one[2], np.zeros(1, np.bool_),
    )  # fmt: skip


def _addresses(body: Body) -> NDArray[np.int64]:
    return np.array([body.kind.unit.address, body.handle.address], np.int64)


def smallest_field_contacts() -> FieldContacts:
    """One point of nobody near nothing: the least that the detector can be laid out for."""
    field = DistanceField(
        EXACT, everywhere(np.zeros((1, 3))), no_exact_distance(), no_grid_distance(), no_learned_distance()
    )
    corners = np.eye(3)
    body, one = FIXED.bind(make_fixed(corners)), np.array([[0, 1, 2]])
    probe = make_probe(body, 0, one, surface_points(corners, one, 2.0), 0)
    return make_field_contacts([Handle(probe)], make_solid(body, 1), field, 1)
