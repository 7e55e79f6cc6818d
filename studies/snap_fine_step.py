"""The step of a reference of snap connectors, by other means than the models that it judges (002, V-C).

Nothing is shared with the step of `physics.systems.snap.step` but the matrices of the elements, the hold and
the law of contact: the whole body by a sparse factor, points on both sides, those of the socket against the
plug's triangles and those of the plug against the socket's deformed ones, all contacts that press, without
clusters, solved to 1e-8, at a tenth of the step. `studies.snap_reference` keeps what was computed so.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.bodies.admittance import make_plug, plug_advance, plug_free
from palpo.physics.collision.closest import vector
from palpo.physics.collision.distance_field import exact_field, signed_distance
from palpo.physics.collision.nearest import fit, make_descent, signed_nearest, target
from palpo.physics.collision.surface_points import (
    CONE,
    SurfacePoints,
    edge_points,
    surface_points,
    ways_along,
)
from palpo.physics.contact.problem import ContactProblem
from palpo.physics.contact.solving import solve
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.reduction.cyclic import equal_motions
from palpo.physics.reduction.linear_model import linear_model
from palpo.physics.systems.snap.connectors.connector import Connector, Prong
from palpo.physics.systems.snap.numerics import Numerics
from palpo.studies.reference.midpoint_problem import contact_problem
from palpo.studies.reference.passive_midpoint import LinearBody
from palpo.studies.snap_ring import beside_meridian, felt_of, on_meridian

SPACING = 0.25e-3
"""Of the points on both sides [m]."""
MILLISECOND = 1e-3
TOLERANCE = 1e-8
FINER = 10
"""Steps of the reference in one of the models."""
REACH = 0.5e-3
"""Beyond the interference, up to where distances are known [m]."""
SUNK = 1e-9
"""What a point may be left inside by without becoming a contact [m]."""
FLAT = 0.01
"""Angle between triangles up to which their common edge is none [rad]."""
AT_ONCE, ROUNDS = 60, 40
"""Most points that become contacts in a round; most rounds in a step."""
SWEEPS = 5000


@kernel
def nearest(points, surface, x, reach, out, place, weights, way):
    """`signed_nearest` of points (n, 3), in rows."""
    descent = make_descent()
    fit(surface.boxes, x)
    for k in range(points.shape[0]):
        out[k], place[k] = signed_nearest(
            surface, x, vector(points, k), -1, reach, weights[k], way[k], descent
        )


def faces(x: NDArray[np.float64], ways: NDArray[np.int64], d: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether unit vectors d (n, 3) are in the normal cones of points (n,), within CONE.

    What is not would slide over the edge or the facet beside it: a contact there is none, and a normal that
    points along the surface would stop it.
    """
    t = x[ways[:, :, 1]] - x[ways[:, :, 0]]
    size = np.linalg.norm(t, axis=2)
    return (np.einsum("nki,ni->nk", t, d) <= CONE * size).all(axis=1)


class Hits(NamedTuple):
    """Places of contact at the start of a step, on a prong."""

    gap: NDArray[np.float64]  # (n,) [m]
    normal: NDArray[np.float64]  # (n, 3) from the plug to the prong
    nodes: NDArray[np.int64]  # (n, 3) contact nodes
    weights: NDArray[np.float64]  # (n, 3)
    point: NDArray[np.float64]  # (n, 3) [m]


class How(NamedTuple):
    """How finely a reference is computed."""

    spacing: float = SPACING  # of the points on both sides [m]
    finer: int = FINER  # its steps in one of the models
    ring: int = 1  # equal sectors of the connector, one of which is computed

    @property
    def step(self) -> float:
        """[s]"""
        return MILLISECOND / self.finer


class FinePoints(NamedTuple):
    """Points of the plug, in its frame."""

    x: NDArray[np.float64]  # (n, 3) [m]
    ways: NDArray[np.int64]  # (n, k, 2) as `ways_along` has them


class FineSide:
    """A prong of the reference, and the points that may touch: its own, then the plug's."""

    def __init__(
        self, prong: Prong, connector: Connector, numerics: Numerics, how: How, plug: FinePoints
    ) -> None:
        material = replace(connector.material, alpha=numerics.alpha, beta=numerics.beta)
        model = linear_model(prong.body, material, prong.clamped)
        self.shapes = equal_motions(prong.mesh.nodes[model.nodes], how.ring)
        M, D, K = (self.shapes.T @ (A @ self.shapes) for A in (model.M, model.D, model.K))
        self.body = LinearBody(M, D, K, how.step)
        self.base, self.beta, self.prong = model.base @ self.shapes, model.beta, prong
        self.copies = how.ring
        self.contact = beside_meridian(prong.mesh.nodes, prong.contact, how.ring)
        self.surface = self.shapes[model.dofs_of(self.contact)]
        self.free = (3 * model.nodes[:, None] + np.arange(3)).ravel()
        self.rest = prong.mesh.nodes[self.contact]
        self.compliance = self.copies * (self.surface @ self.body.velocity_of(self.surface.T.toarray()))
        self.compliance = 0.5 * (self.compliance + self.compliance.T)
        near = np.isin(prong.contact_triangles, self.contact).all(axis=1)
        own = np.searchsorted(self.contact, prong.contact_triangles[near])
        points = surface_points(self.rest, own, how.spacing)
        place = np.einsum("na,nai->ni", points.weights, self.rest[points.nodes])
        here = on_meridian(place, how.ring)
        self.points = SurfacePoints(points.nodes[here], points.weights[here])
        boundary = prong.mesh.surface().triangles
        self.ways = ways_along(
            boundary, SurfacePoints(self.contact[self.points.nodes].astype(np.int64), self.points.weights)
        )
        self.plug, self.own = plug, len(self.points.nodes)
        n = self.own + len(plug.x)
        self.told, self.asked = np.full(n, -np.inf), np.zeros((n, 3))
        self.way, self.asked_way = 0.0, np.zeros(n)
        self.force = np.zeros((n, 3))
        self.hits = Hits(
            np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3), int), np.zeros((n, 3)), np.zeros((n, 3))
        )
        self.fresh = np.zeros(n, bool)
        self.skin = self._skin()
        self.target = target(SurfaceMesh.patch(prong.mesh.nodes, self.skin))

    def _skin(self) -> NDArray[np.int32]:
        """Triangles of the boundary about the contact surface, which tell where it ends."""
        triangles = self.prong.mesh.surface().triangles
        low, high = self.rest.min(axis=0) - REACH, self.rest.max(axis=0) + REACH
        x = self.prong.mesh.nodes[triangles]
        return np.ascontiguousarray(triangles[((x.max(axis=1) > low) & (x.min(axis=1) < high)).all(axis=1)])

    def begin(self) -> None:
        """The motion without contact, at the contact nodes: vh and v (k, 3) [m/s]."""
        self.vf, field = self.body.free_velocity(), self.surface
        self.vh0, self.v0 = (field @ self.vf).reshape(-1, 3), (field @ self.body.v).reshape(-1, 3)
        self.now = self.rest + (field @ self.body.x).reshape(-1, 3)
        self.fresh[:] = False
        nodes, weights = self.points
        self.place = np.einsum("na,nai->ni", weights, self.now[nodes])

    def nodes(self) -> NDArray[np.float64]:
        """Where all nodes are at the start of the step [m]."""
        x = self.prong.mesh.nodes.copy()
        x.reshape(-1)[self.free] += self.shapes @ self.body.x
        return x

    def nodal(self) -> NDArray[np.float64]:
        """Forces on the contact nodes [N], (k, 3), of all contacts of a sector."""
        out, at = np.zeros_like(self.rest), np.flatnonzero(self.force.any(axis=1))
        for a in range(3):
            np.add.at(out, self.hits.nodes[at, a], self.hits.weights[at, a, None] * self.force[at])
        return out

    def end(self) -> NDArray[np.float64]:
        """Make the step; the force on the floor [N]."""
        f = self.copies * (self.surface.T @ self.nodal().ravel())
        vh = self.vf + self.body.velocity_of(f) if f.any() else self.vf
        T = self.body.step_size
        floor = -(self.base @ (self.body.x + (0.5 * T + self.beta) * vh))
        self.way += T * float(np.linalg.norm((self.shapes @ vh).reshape(-1, 3), axis=1).max())
        self.body.advance(vh)
        return floor


class Reference:
    """The socket and plug of a connector; `step` leads the target on."""

    def __init__(self, connector: Connector, numerics: Numerics, how: How) -> None:
        self.connector, self.T = connector, how.step
        a = connector.admittance
        self.model, self.plug = make_plug(a.mass, a.damping, a.stiffness, self.T, connector.rest_position)
        self.field = exact_field(connector.plug, connector.interference + REACH)
        points = edge_points(connector.plug, how.spacing, FLAT)
        on_plug = np.einsum("na,nai->ni", points.weights, connector.plug.vertices[points.nodes])
        here, ways = on_meridian(on_plug, how.ring), ways_along(connector.plug.triangles, points)
        self.on_plug = FinePoints(on_plug[here], ways[here])
        self.copies, self.felt = how.ring, felt_of(how.ring, connector.push)
        self.sides = [FineSide(p, connector, numerics, how, self._of(p)) for p in connector.prongs]
        self.mu = connector.friction if numerics.friction is None else numerics.friction
        self.axes, self.contacts, self.worst = np.eye(3), 0, 0.0
        self.solves, self.short = 0, 0

    def _of(self, prong: Prong) -> FinePoints:
        """Points of the plug whose way passes this prong's contact surface."""
        c = self.connector
        skin, slack = prong.mesh.nodes[prong.contact], c.interference + REACH
        x, way = self.on_plug.x + c.rest_position, c.stroke * c.push
        low, high = np.minimum(x, x + way), np.maximum(x, x + way)
        near = ((high > skin.min(axis=0) - slack) & (low < skin.max(axis=0) + slack)).all(axis=1)
        return FinePoints(self.on_plug.x[near], self.on_plug.ways[near])

    def step(self, target: NDArray[np.float64]) -> NDArray[np.float64]:
        """The target goes to (3,) [m]; the force on the floor (3,) [N]."""
        up = np.array([1.0, 0.0, 0.0, 0.0])
        plug_free(self.model, self.plug, target, up, np.zeros(6))
        quat_to_matrix(self.plug.orientation, self.axes)
        self.v_plug = self.plug.velocity.copy()
        for side in self.sides:
            side.begin()
        members = [np.flatnonzero(side.force.any(axis=1)) for side in self.sides]
        for i, side in enumerate(self.sides):
            self._ask(side, members[i])
            members[i] = members[i][side.hits.normal[members[i]].any(axis=1)]
            side.force[~np.isin(np.arange(side.told.size), members[i])] = 0.0
        for k in range(ROUNDS):
            sunk = [self._sunk(side, own) for side, own in zip(self.sides, members, strict=True)]
            if k > 0 and not any(s.size for s in sunk):
                break
            members = [np.union1d(own, s) for own, s in zip(members, sunk, strict=True)]
            self._solve(members)
        else:
            raise RuntimeError(f"contacts are still missing after {ROUNDS} rounds")
        floor = np.sum([side.end() for side in self.sides], axis=0)
        plug_advance(self.model, self.plug, self._wrench())
        return floor

    def _wrench(self) -> NDArray[np.float64]:
        total = np.zeros(6)
        for side in self.sides:
            at = np.flatnonzero(side.force.any(axis=1))
            f = -side.force[at]
            total[:3] += f.sum(axis=0)
            total[3:] += np.cross(side.hits.point[at] - self.plug.position, f).sum(axis=0)
        return self.copies * (self.felt @ total)

    def _places(self, side: FineSide) -> NDArray[np.float64]:
        return np.concatenate([side.place, self.plug.position + side.plug.x @ self.axes.T])

    def _ask(self, side: FineSide, at: NDArray[np.int64]) -> None:
        """Distances of candidates that are not known yet in this step."""
        at = at[~side.fresh[at]]
        own, theirs, h = at[at < side.own], at[at >= side.own], side.hits
        if own.size:
            p = side.place[own]
            local = (p - self.plug.position) @ self.axes
            h.gap[own], normal = signed_distance(self.field, local, threads=1)
            normal = normal @ self.axes.T
            normal[~faces(side.nodes(), side.ways[own], -normal)] = 0.0
            h.normal[own], h.point[own] = normal, p
            h.nodes[own], h.weights[own] = side.points.nodes[own], side.points.weights[own]
            side.asked[own] = local
        if theirs.size:
            self._ask_plug(side, theirs)
        side.asked_way[at], side.told[at], side.fresh[at] = side.way, h.gap[at], True

    def _ask_plug(self, side: FineSide, at: NDArray[np.int64]) -> None:
        h = side.hits
        p = self.plug.position + side.plug.x[at - side.own] @ self.axes.T
        x = side.nodes()
        n, reach = at.size, self.connector.interference + REACH
        gap, place, weights, way = np.zeros(n), np.zeros(n, np.int64), np.zeros((n, 3)), np.zeros((n, 3))
        nearest(p, side.target, x, reach, gap, place, weights, way)
        nodes = side.skin[np.maximum(place, 0)]
        slot = np.minimum(np.searchsorted(side.contact, nodes), len(side.contact) - 1)
        used = (side.contact[slot] == nodes) | (weights == 0.0)
        touching = (place >= 0) & used.all(axis=1)
        touching &= faces(self.connector.plug.vertices, side.plug.ways[at - side.own], -way @ self.axes)
        h.gap[at], h.normal[at], h.weights[at] = gap, np.where(touching[:, None], -way, 0.0), weights
        h.nodes[at], h.point[at], side.asked[at] = np.where(used, slot, 0), p, p

    def _sunk(self, side: FineSide, members: NDArray[np.int64]) -> NDArray[np.int64]:
        """Candidates that the present forces let sink in, the deepest of each half millimetre."""
        T, f = self.T, side.nodal()
        vh = side.vh0 + (side.compliance @ f.ravel()).reshape(-1, 3)
        V = self.plug.free + self.model.inverse @ self._wrench()
        place = self._places(side)
        speed = np.linalg.norm(V[:3] + np.cross(V[3:], place - self.plug.position), axis=1)
        speed += float(np.linalg.norm(vh, axis=1).max())
        own = slice(0, side.own)
        local = (side.place - self.plug.position) @ self.axes
        moved = np.linalg.norm(place - side.asked, axis=1) + side.way - side.asked_way
        moved[own] = np.linalg.norm(local - side.asked[own], axis=1)
        near = np.flatnonzero(side.told - moved < 2.0 * T * speed)
        self._ask(side, near)
        h = side.hits
        moving = np.einsum("na,nai->ni", h.weights[near], vh[h.nodes[near]])
        moving -= V[:3] + np.cross(V[3:], h.point[near] - self.plug.position)
        u = h.gap[near] + 2.0 * T * np.einsum("ni,ni->n", h.normal[near], moving)
        u[~h.normal[near].any(axis=1) | np.isin(near, members)] = np.inf
        deep = np.flatnonzero(u < -SUNK)
        deep = deep[np.argsort(u[deep], kind="stable")]
        cells = np.floor(h.point[near[deep]] / 0.5e-3).astype(np.int64)
        _, first = np.unique(cells, axis=0, return_index=True)
        return near[deep[np.sort(first)[:AT_ONCE]]]

    def _solve(self, members: list[NDArray[np.int64]]) -> None:
        """Forces of these contacts, none on others."""
        count = [own.size for own in members]
        n = sum(count)
        C, middle, now = np.zeros((3 * n, 3 * n)), np.zeros(3 * n), np.zeros(3 * n)
        gap, warm, theirs = np.zeros(n), np.zeros(3 * n), np.zeros((3 * n, 6))
        frames, first = [], 0
        for side, own in zip(self.sides, members, strict=True):
            m, h = own.size, side.hits
            frame, span = _frames(h.normal[own]), slice(3 * first, 3 * (first + m))
            rows = _rows(frame, h.nodes[own], h.weights[own], len(side.rest))
            C[span, span] = (rows @ (rows @ side.compliance).T).T
            arm = h.point[own] - self.plug.position
            theirs[span, :3] = -frame.reshape(-1, 3)
            theirs[span, 3:] = -np.cross(np.repeat(arm, 3, axis=0), frame.reshape(-1, 3))
            middle[span], now[span] = rows @ side.vh0.ravel(), rows @ side.v0.ravel()
            gap[first : first + m] = h.gap[own]
            warm[span] = np.einsum("nij,nj->ni", frame, side.force[own]).ravel()
            frames.append(frame)
            first += m
        C += self.copies * (theirs @ (self.felt @ self.model.inverse @ self.felt) @ theirs.T)
        middle += theirs @ self.plug.free
        now += theirs @ self.v_plug
        r = np.zeros(3 * n)
        if n:
            C = 0.5 * (C + C.T)
            problem = contact_problem(C, middle, now, gap, np.full(n, self.mu), self.T, 1.0, warm)
            r = self._forces(problem)
        self.contacts, first = n, 0
        for side, own, frame in zip(self.sides, members, frames, strict=True):
            side.force[:] = 0.0
            span = slice(3 * first, 3 * (first + own.size))
            side.force[own] = np.einsum("nij,ni->nj", frame, r[span].reshape(-1, 3))
            first += own.size

    def _forces(self, problem: ContactProblem) -> NDArray[np.float64]:
        """By sweeps; where these do not end, as of more points than freedoms, by Newton from there."""
        found = solve(problem, "anderson", tolerance=TOLERANCE, max_iterations=SWEEPS)
        if not found.converged:
            other = solve(
                problem, "semi-smooth-newton", tolerance=TOLERANCE, guess=found.r, max_iterations=50
            )
            found = min(found, other, key=lambda result: result.residual)
        self.worst = max(self.worst, found.residual)
        self.solves += 1
        self.short += not found.converged
        return found.r


def _frames(normal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows (n, t1, t2) of each normal (n, 3); shape (n, 3, 3)."""
    other = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    t1 = np.cross(normal, other)
    t1 /= np.linalg.norm(t1, axis=1)[:, None]
    return np.stack([normal, t1, np.cross(normal, t1)], axis=1)


def _rows(frame: NDArray, nodes: NDArray, weights: NDArray, n_nodes: int) -> sp.csr_array:
    """Velocities of contact points in their frames, from those of the contact nodes; (3 n, 3 k)."""
    n = len(frame)
    values = weights[:, None, :, None] * frame[:, :, None, :]
    columns = np.broadcast_to(3 * nodes[:, None, :, None] + np.arange(3), values.shape)
    rows = np.broadcast_to(np.arange(3 * n).reshape(n, 3, 1, 1), values.shape)
    return sp.csr_array((values.ravel(), (rows.ravel(), columns.ravel())), shape=(3 * n, 3 * n_nodes))
