"""A snap connector made ready for the step of `physics.systems.snap`: its numerics, constants and state.

Source: M. Lee, J. Lee, J. Yoon, D. Lee, Real-Time Physically-Accurate Simulation of Robotic Snap Connection
Process (002). Its four models are combinations of `Numerics` and of the distance's kind:

    1  whole body                 segments = 1                     exact distance
    2  + learned distance         segments = 1                     learned (or grid) distance
    3  + segments                 segments = 2                     learned distance
    4  + balanced reduction       segments = 2, orders = (6, 25)   learned distance
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.collision.clusters import Clusters, make_clusters
from palpo.physics.collision.distance_field import DistanceField, DistanceScratch, exact_field, make_scratch
from palpo.physics.collision.surface_points import SurfacePoints, surface_points
from palpo.physics.contact.solvers.maximal_dissipation import Progress, make_progress
from palpo.physics.dynamics.admittance import PlugModel, PlugState, make_plug
from palpo.physics.errors import InputError
from palpo.physics.exchange.handle import Handle
from palpo.physics.exchange.snap_frame import (
    ENERGIES,
    MAXIMAL_DISSIPATION,
    SET_CLUSTERS,
    SET_CORRECTION,
    SET_FRICTION,
    SET_LIVE,
    SET_RESTITUTION,
    SET_SOLVER,
    SET_SWEEPS,
    SET_TOLERANCE,
    SETTINGS,
)
from palpo.physics.mesh.connectors.connector import Connector, Prong
from palpo.physics.reduction.balanced import balanced
from palpo.physics.reduction.joining import RIGID_MOTIONS, coupling_nodes, cut, join, nodal_map
from palpo.physics.reduction.linear_model import Basis, LinearModel, vibration_modes
from palpo.physics.reduction.partition import by_graph, surface_and_inside
from palpo.physics.reduction.segments import (
    SegmentedModel,
    SegmentedState,
    SegmentedWork,
    make_state,
    make_work,
)

STIFF = 1e3
"""k_c over a node's stiffness, E times the edge: segments part by a thousandth of what the mesh yields."""

MOST_CLUSTERS = 32
"""Of one prong."""

# Entries of SnapState.counter
STEPS, CONTACTS, ACTIVE, ROUNDS, SWEEPS, LOST, CODE = range(7)
"""Steps done; of the last, its contacts, its active points, its rounds of detection and solution, and their
sweeps; points without room since the start; how the last solve ended
(palpo.physics.contact.solvers.maximal_dissipation)."""


@dataclass(frozen=True)
class Numerics:
    """How a connector is computed. What is None is the connector's own or follows from the rest.

    Raises InputError for numbers out of range.
    """

    step: float = 1e-3
    """T [s]."""
    segments: int = 2
    """Of each prong: 1 whole, 2 surface and inside, more by graph partitioning."""
    orders: tuple[int, ...] | None = None
    """Columns of each segment's balanced basis, or None for unreduced segments."""
    error: float | None = None
    """Instead of orders: H-infinity error of each basis relative to its segment [-]."""
    coupling_stiffness: float | None = None
    """k_c [N/m]; by default `STIFF` times E times the edge."""
    coupling_damping: float | None = None
    """d_c [N s/m]; by default k_c T / 2, with which a stretched coupling does not ring."""
    alpha: float = 1e-4
    """Rayleigh damping [1/s]; 002's for its comparison, as is beta."""
    beta: float = 1e-5
    """[s]"""
    spacing: float = 1e-3
    """Of the candidate points on the prongs [m]."""
    margin: float = 2e-4
    """Points that would come nearer than this within the step under the last forces may be contacts [m]."""
    clusters: int = 4
    """Most contacts of a prong, chosen by k-means; 0 makes every touching point a contact."""
    capacity: int = 48
    """Most contacts of a prong in any case."""
    friction: float | None = None
    """mu [-]."""
    restitution: float = 1.0
    """eps [-]. At 1 the contact law is on the mean velocity of the step, and contacts feed nothing in,
    whatever rings in the prongs; the plug does not bounce, for what bounces is a prong's light skin. Below 1
    skins that ring at the step's own frequency are pumped up (`palpo.physics.systems.snap`)."""
    correction: float = 1.0
    """Share of a penetration that the contact law takes away within a step [-]: 1 in 002, 0 for none."""
    solver: int = MAXIMAL_DISSIPATION
    """MAXIMAL_DISSIPATION or GAUSS_SEIDEL of palpo.physics.exchange.snap_frame."""
    tolerance: float = 1e-4
    """Natural-map residual at which the solver ends."""
    sweeps: int = 100
    """After which it ends in any case."""

    def __post_init__(self) -> None:
        for name, valid, expected in (
            ("segments", self.segments >= 1, "at least 1"),
            ("margin", self.margin >= 0.0, "zero or positive [m]"),
            ("clusters", 0 <= self.clusters <= MOST_CLUSTERS, f"0 to {MOST_CLUSTERS}"),
            ("capacity", self.capacity >= max(1, self.clusters), "at least 1 and the clusters"),
            ("restitution", 0.0 <= self.restitution <= 1.0, "0 to 1"),
            ("correction", 0.0 <= self.correction <= 1.0, "0 to 1"),
            ("tolerance", self.tolerance > 0.0, "positive"),
            ("sweeps", self.sweeps >= 1, "at least 1"),
            ("friction", self.friction is None or self.friction >= 0.0, "zero or positive"),
            (
                "orders",
                self.orders is None or len(self.orders) == self.segments,
                f"one for each of the {self.segments} segments",
            ),
            ("error", self.error is None or self.orders is None, "absent where orders are given"),
        ):
            if not valid:
                raise InputError(f"snap: {name} is {getattr(self, name)}, expected {expected}.")

    @property
    def reduced(self) -> bool:
        """Whether segments are reduced."""
        return self.orders is not None or self.error is not None


class SegmentedProng(NamedTuple):
    """One prong of n coordinates, k contact nodes and N candidate points."""

    model: SegmentedModel
    state: SegmentedState
    work: SegmentedWork
    points: SurfacePoints  # candidates, of the contact nodes
    first: int  # of the candidates among those of all prongs
    x: NDArray[np.float64]  # (k, 3) displacement of the contact nodes [m]
    v: NDArray[np.float64]  # (k, 3) their velocity at the step's start [m/s]
    vh: NDArray[np.float64]  # (k, 3) and in its middle without contact
    push: NDArray[np.float64]  # (k, 3) the newest contact forces [N]
    drift: NDArray[np.float64]  # (k, 3) T (2 vh - (1 - eps) v) under the forces that detection foresaw [m]
    after: NDArray[np.float64]  # (k, 3) and under the newest
    clusters: Clusters
    near: NDArray[np.int64]  # (2,) first of this prong's near candidates, and that of the next
    active: NDArray[np.int64]  # (N,) near candidates that may become contacts
    place: NDArray[np.float64]  # (N, 3) where these are, in the plug's frame [m]
    depth: NDArray[np.float64]  # (N,) and their gaps [m]
    contact: NDArray[np.int64]  # (2,) first contact of this prong, and that of the next
    floor: NDArray[np.float64]  # (3,) force on the clamped nodes in the last step [N]
    energy: NDArray[np.float64]  # (segments + 1, 2) [J]


class Candidates(NamedTuple):
    """The N points of all prongs at the step's start."""

    position: NDArray[np.float64]  # (N, 3) [m]
    local: NDArray[np.float64]  # (N, 3) in the plug's frame [m]
    closing: NDArray[np.float64]  # (N, 3) T (2 vh - (1 - eps) v) relative to the plug [m], its frame
    ahead: NDArray[np.float64]  # (N,) least gap that is foreseen in this step [m]
    asked: NDArray[np.float64]  # (N, 3) where in the plug's frame the distance was asked last [m]
    told: NDArray[np.float64]  # (N,) and what it was [m]
    near: NDArray[np.int64]  # (N,) candidates whose distance is asked in this step
    where: NDArray[np.float64]  # (N, 3) these in the plug's frame [m]
    gap: NDArray[np.float64]  # (N,) their distance to the plug [m]
    normal: NDArray[np.float64]  # (N, 3) out of the plug, in its frame
    force: NDArray[np.float64]  # (N, 3) of the last step [N], world axes: where the next one starts


class Contacts(NamedTuple):
    """Up to c contacts, prong by prong; body 1 is the prong, body 2 the plug."""

    near: NDArray[np.int64]  # (c,) among the near candidates
    candidate: NDArray[np.int64]  # (c,)
    nodes: NDArray[np.int64]  # (c, 3)
    weights: NDArray[np.float64]  # (c, 3)
    point: NDArray[np.float64]  # (c, 3) [m] at the step's start
    frame: NDArray[np.float64]  # (c, 3, 3) rows n, t1, t2; n points out of the plug
    arm: NDArray[np.float64]  # (c, 3) from the plug's origin [m]
    force: NDArray[np.float64]  # (c, 3) on the prong [N], world axes
    status: NDArray[np.int32]  # (c,) OPEN, STICK or SLIP


class ContactSystem(NamedTuple):
    """u = W r + b of (27) and (28); W is packed in the first 9 n^2 entries."""

    w: NDArray[np.float64]  # (9 c^2,) [m/N]
    b: NDArray[np.float64]  # (3 c,) [m]
    mu: NDArray[np.float64]  # (c,)
    r: NDArray[np.float64]  # (3 c,) [N]
    u: NDArray[np.float64]  # (3 c,) [m]
    gap: NDArray[np.float64]  # (c,) that the law sees [m]
    middle: NDArray[np.float64]  # (3 c,) relative velocity in the middle without contact [m/s]
    now: NDArray[np.float64]  # (3 c,) at the step's start
    lever: NDArray[np.float64]  # (3 c, 6) J_p
    give: NDArray[np.float64]  # (3 c, 6) J_p Mh_p^-1
    progress: Progress
    scratch: NDArray[np.float64]  # (4, 3)


class SnapState(NamedTuple):
    """Everything that a step reads and writes."""

    prong: SegmentedProng  # the first; the layout of all
    prongs: NDArray[np.int64]  # (p,) addresses of their handles
    plug: PlugModel
    motion: PlugState
    turn: NDArray[np.float64]  # (3, 3) the plug's axes at the step's start
    load: NDArray[np.float64]  # (6,) on the plug besides hold and contacts [N], [N m]
    field: DistanceField
    scratch: DistanceScratch
    candidates: Candidates
    contacts: Contacts
    system: ContactSystem
    live: NDArray[np.float64]  # (SETTINGS,) in force
    margin: float  # [m]
    drift: NDArray[np.float64]  # (6,) T (2 V - (1 - eps) V_k) of the plug as detection foresaw it [m], [rad]
    wrench: NDArray[np.float64]  # (6,) of the contacts on the plug [N], [N m]
    stretch: NDArray[np.float64]  # (6,) of the hold in the middle of the step [m], [rad]
    hand: NDArray[np.float64]  # (6,) of the hold on the hand [N], [N m]
    floor: NDArray[np.float64]  # (3,) of all prongs on what they stand on [N]
    books: NDArray[np.float64]  # (ENERGIES,) [J], see palpo.physics.exchange.snap_frame
    counter: NDArray[np.int64]
    residual: NDArray[np.float64]  # (1,) of the last solve


def segment_models(prong: Prong, connector: Connector, numerics: Numerics) -> list[LinearModel]:
    """The linear models of a prong's segments, the contact segment first. Raises InputError as `cut`."""
    mesh = prong.mesh
    if numerics.segments == 1:
        segment_of = np.zeros(len(mesh.tets), np.int64)
    elif numerics.segments == 2:
        segment_of = surface_and_inside(mesh, prong.contact)
    else:
        segment_of = by_graph(mesh, prong.contact, numerics.segments)
    material = replace(connector.material, alpha=numerics.alpha, beta=numerics.beta)
    return cut(mesh, material, prong.clamped, segment_of)


def reduced_bases(prong: Prong, models: Sequence[LinearModel], numerics: Numerics) -> list[Basis | None]:
    """Balanced bases of a prong's segments, inputs at contact and coupling nodes; None where not reduced."""
    if not numerics.reduced:
        return [None] * len(models)
    orders = numerics.orders or (None,) * len(models)
    bases: list[Basis | None] = []
    least = RIGID_MOTIONS if len(models) > 1 else 1  # a neighbour that floats is held by no fewer shapes
    for model, joints, order in zip(models, coupling_nodes(models), orders, strict=True):
        inputs = np.union1d(np.intersect1d(prong.contact, model.nodes), joints)
        bases.append(balanced(model, vibration_modes(model), inputs, order, numerics.error, least=least))
    return bases


def default_settings(connector: Connector, numerics: Numerics) -> NDArray[np.float64]:
    """Values of palpo.physics.exchange.snap_frame.SnapSettings, shape (SETTINGS,)."""
    values = np.full(SETTINGS, np.nan)
    values[SET_FRICTION] = connector.friction if numerics.friction is None else numerics.friction
    values[SET_RESTITUTION], values[SET_CORRECTION] = numerics.restitution, numerics.correction
    values[SET_SOLVER], values[SET_CLUSTERS] = numerics.solver, numerics.clusters
    values[SET_TOLERANCE], values[SET_SWEEPS] = numerics.tolerance, numerics.sweeps
    values[SET_LIVE : SET_LIVE + 2] = np.nan
    return values


class SnapModel:
    """A connector ready to be stepped by `palpo.physics.systems.snap.step`.

    field: distance of the plug in its own frame; exact by default, within a band of the interference and
    twice the spacing. bases: of each prong's segments, as `reduced_bases` gives and computes them by default.

    state: SnapState. handle: what compiled code takes. orders: coordinates of each segment of each prong.
    Raises InputError as its parts do.
    """

    def __init__(
        self,
        connector: Connector,
        numerics: Numerics | None = None,
        field: DistanceField | None = None,
        bases: Sequence[Sequence[Basis | None]] | None = None,
    ) -> None:
        numerics = numerics or Numerics()
        self.connector, self.numerics = connector, numerics
        if field is None:
            field = exact_field(connector.plug, connector.interference + 2.0 * numerics.spacing)
        self.maps: list[sp.csr_array] = []
        prongs: list[SegmentedProng] = []
        first = 0
        for i, part in enumerate(connector.prongs):
            models = segment_models(part, connector, numerics)
            basis = reduced_bases(part, models, numerics) if bases is None else list(bases[i])
            prongs.append(self._prong(part, models, basis, first))
            self.maps.append(nodal_map(models, basis, len(part.mesh.nodes)))
            first += len(prongs[-1].active)
        self.prongs = prongs
        self._prong_handles = [Handle(prong) for prong in prongs]
        a = connector.admittance
        self.start, self.upright = connector.rest_position.copy(), np.array([1.0, 0.0, 0.0, 0.0])
        plug, motion = make_plug(a.mass, a.damping, a.stiffness, numerics.step, self.start, self.upright)
        capacity = numerics.capacity * len(prongs)
        self.state = SnapState(
            prong=prongs[0],
            prongs=np.array([h.address for h in self._prong_handles], np.int64),
            plug=plug,
            motion=motion,
            turn=np.eye(3),
            load=np.zeros(6),
            field=field,
            scratch=make_scratch(),
            candidates=_candidates(first),
            contacts=_contacts(capacity),
            system=_system(capacity),
            live=default_settings(connector, numerics),
            margin=float(numerics.margin),
            drift=np.zeros(6),
            wrench=np.zeros(6),
            stretch=np.zeros(6),
            hand=np.zeros(6),
            floor=np.zeros(3),
            books=np.zeros(ENERGIES),
            counter=np.zeros(7, np.int64),
            residual=np.zeros(1),
        )
        self.handle = Handle(self.state)

    def _prong(
        self, part: Prong, models: Sequence[LinearModel], bases: Sequence[Basis | None], first: int
    ) -> SegmentedProng:
        n, mesh = self.numerics, part.mesh
        edges = mesh.nodes[mesh.tets] - mesh.nodes[np.roll(mesh.tets, 1, axis=1)]
        node = self.connector.material.youngs_modulus * float(np.median(np.linalg.norm(edges, axis=2)))
        stiffness = n.coupling_stiffness
        if stiffness is None:
            stiffness = STIFF * node
        damping = 0.5 * n.step * stiffness if n.coupling_damping is None else n.coupling_damping
        model = join(mesh, models, part.contact, n.step, stiffness, damping, bases)
        points = surface_points(model.rest, np.searchsorted(part.contact, part.contact_triangles), n.spacing)
        k, size = len(model.rest), len(points.nodes)
        return SegmentedProng(
            model, make_state(model), make_work(model), points, first,
            np.zeros((k, 3)), np.zeros((k, 3)), np.zeros((k, 3)), np.zeros((k, 3)), np.zeros((k, 3)),
            np.zeros((k, 3)), make_clusters(MOST_CLUSTERS, size), np.zeros(2, np.int64),
            np.zeros(size, np.int64), np.zeros((size, 3)), np.zeros(size), np.zeros(2, np.int64), np.zeros(3),
            np.zeros((len(models) + 1, 2)),
        )  # fmt: skip

    @property
    def orders(self) -> list[list[int]]:
        """Coordinates of each segment of each prong, as Table I counts them."""
        return [np.diff(prong.model.segment_start).tolist() for prong in self.prongs]

    @property
    def coordinates(self) -> NDArray[np.float64]:
        """Coordinates of all prongs, one after the other, as SnapPicture has them."""
        return np.concatenate([prong.state.x for prong in self.prongs])

    def positions(self, coordinates: NDArray[np.float64] | None = None) -> list[NDArray[np.float64]]:
        """Nodes (n, 3) [m] of each prong now, or for the given coordinates of all prongs."""
        x = self.coordinates if coordinates is None else coordinates
        found, first = [], 0
        for part, place in zip(self.connector.prongs, self.maps, strict=True):
            own = x[first : first + place.shape[1]]
            found.append(part.mesh.nodes + (place @ own).reshape(-1, 3))
            first += place.shape[1]
        return found

    def place(self, position: ArrayLike, orientation: ArrayLike) -> None:
        """Put the plug (3,) [m], (4,) at rest on its target there, the prongs as they are."""
        m, q = self.state.motion, np.asarray(orientation, float)
        m.position[:] = m.target_position[:] = position
        m.orientation[:] = m.target_orientation[:] = q / np.linalg.norm(q)
        for array in (m.velocity, m.target_velocity, m.error):
            array[:] = 0.0


def _candidates(n: int) -> Candidates:
    position, local, closing, asked, where, normal, force = (np.zeros((n, 3)) for _ in range(7))
    ahead, told, near, gap = np.zeros(n), np.full(n, -np.inf), np.zeros(n, np.int64), np.zeros(n)
    return Candidates(position, local, closing, ahead, asked, told, near, where, gap, normal, force)


def _contacts(c: int) -> Contacts:
    return Contacts(
        np.zeros(c, np.int64), np.zeros(c, np.int64), np.zeros((c, 3), np.int64), np.zeros((c, 3)),
        np.zeros((c, 3)), np.zeros((c, 3, 3)), np.zeros((c, 3)), np.zeros((c, 3)), np.zeros(c, np.int32),
    )  # fmt: skip


def _system(c: int) -> ContactSystem:
    return ContactSystem(
        np.zeros(9 * c * c), np.zeros(3 * c), np.zeros(c), np.zeros(3 * c), np.zeros(3 * c), np.zeros(c),
        np.zeros(3 * c), np.zeros(3 * c), np.zeros((3 * c, 6)), np.zeros((3 * c, 6)), make_progress(c),
        np.zeros((4, 3)),
    )  # fmt: skip
