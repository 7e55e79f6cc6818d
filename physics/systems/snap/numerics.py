"""How a snap connector is computed: numbers, the segments of its prongs, and their bases.

Source: M. Lee, J. Lee, J. Yoon, D. Lee, Real-Time Physically-Accurate Simulation of Robotic Snap Connection
Process (002). Its four models are combinations of `Numerics` and of the distance's kind:

    1  whole body                 segments = 1                     exact distance
    2  + learned distance         segments = 1                     learned (or grid) distance
    3  + segments                 segments = 2                     learned distance
    4  + balanced reduction       segments = 2, orders = (6, 25)   learned distance
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from palpo.physics.collision.field_search import MOST_CLUSTERS
from palpo.physics.exchange.snap_frame import MAXIMAL_DISSIPATION, VALUES
from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.balanced import balanced
from palpo.physics.reduction.cyclic import equal_motions, low_motions
from palpo.physics.reduction.joining import RIGID_MOTIONS, coupling_nodes, cut
from palpo.physics.reduction.linear_model import Basis, LinearModel, vibration_modes
from palpo.physics.reduction.static_modes import by_graph, static_modes, surface_and_inside
from palpo.physics.systems.snap.connectors.connector import Connector, Prong, with_true_corners

STIFF = 1e3
"""k_c over a node's stiffness, E times the edge: segments part by a thousandth of what the mesh yields."""


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
    static: float | None = None
    """Instead, of a whole prong: share of the contact surface's compliance at rest that is left out [-]."""
    coupling_stiffness: float | None = None
    """k_c [N/m]; by default `STIFF` times E times the edge."""
    coupling_damping: float | None = None
    """d_c [N s/m]; by default k_c T / 2, with which a stretched coupling does not ring."""
    alpha: float = 1e-4
    """Rayleigh damping [1/s]; 002's for its comparison, as is beta."""
    beta: float = 1e-5
    """[s]"""
    settling: float = 1.0
    """Share of the damping of reduced vibrations that the step cannot follow [-]; 0 in 002, with which prongs
    chatter after the click (`palpo.physics.reduction.joining.unresolved_damping`)."""
    spacing: float = 1e-3
    """Of the candidate points on the prongs [m]."""
    margin: float = 2e-4
    """Points that would come nearer than this within the step under the last forces may be contacts [m]."""
    clusters: int = 4
    """Most contacts of a prong, chosen by k-means; 0 makes every touching point a contact."""
    capacity: int = 48
    """Most contacts of a prong in any case."""
    meridians: int | None = None
    """Of a ring: where around it contacts are looked for, a divisor of its sectors. Its basis keeps the
    cyclic orders that these tell apart."""
    edges: bool = False
    """Whether the plug's edges are held against the prongs' facets, too."""
    friction: float | None = None
    """mu [-]."""
    restitution: float = 1.0
    """eps [-]. At 1 the contact law is on the mean velocity of the step, and contacts feed nothing in,
    whatever rings in the prongs; the plug does not bounce, for what bounces is a prong's light skin. Below 1
    skins that ring at the step's own frequency are pumped up (`palpo.physics.systems.snap.step`)."""
    correction: float = 1.0
    """Share of a penetration that the contact law sees [-]: 1 in 002, 0 for none. With restitution 1 the law
    is on the mean velocity, 2 T vh_n >= -g, and takes away half of what it sees within a step."""
    solver: int = MAXIMAL_DISSIPATION
    """MAXIMAL_DISSIPATION, GAUSS_SEIDEL or ANDERSON of palpo.physics.exchange.snap_frame."""
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
            ("settling", 0.0 <= self.settling <= 1.0, "0 to 1"),
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
            (
                "static",
                self.static is None or (self.segments == 1 and self.orders is None and self.error is None),
                "absent where there are segments, orders or an error",
            ),
            # a whole ring would yield to what presses on meridians alone
            ("meridians", self.meridians is None or self.static is not None, "absent without static"),
        ):
            if not valid:
                raise InputError(f"snap: {name} is {getattr(self, name)}, expected {expected}.")

    @property
    def reduced(self) -> bool:
        """Whether segments are reduced."""
        return self.orders is not None or self.error is not None or self.static is not None


def as_touched(connector: Connector, numerics: Numerics) -> Connector:
    """The connector whose rings have their corners where contacts are looked for: on the round ones."""
    return connector if numerics.meridians is None else with_true_corners(connector)


def segment_models(prong: Prong, connector: Connector, numerics: Numerics) -> list[LinearModel]:
    """The linear models of a prong's segments, the contact segment first. Raises InputError as `cut`."""
    mesh = prong.body
    if numerics.segments == 1:
        segment_of = np.zeros(len(mesh.cells), np.int64)
    elif numerics.segments == 2:
        segment_of = surface_and_inside(mesh, prong.contact)
    else:
        segment_of = by_graph(mesh, prong.contact, numerics.segments)
    material = replace(connector.material, alpha=numerics.alpha, beta=numerics.beta)
    return cut(mesh, material, prong.clamped, segment_of)


def reduced_bases(prong: Prong, models: Sequence[LinearModel], numerics: Numerics) -> list[Basis | None]:
    """Bases of a prong's segments; None where not reduced.

    Static modes of a whole prong, or balanced ones, whose inputs are at contact and coupling nodes.
    """
    if not numerics.reduced:
        return [None] * len(models)
    if numerics.static is not None:
        nodes, n, even, loads = prong.mesh.nodes[prong.contact], prong.sectors, None, None
        if n > 1:
            even = equal_motions(nodes, n)
        if numerics.meridians is not None:
            loads = low_motions(nodes, n, numerics.meridians)
        return [static_modes(models[0], prong.contact, numerics.static, even, loads)]
    orders = numerics.orders or (None,) * len(models)
    bases: list[Basis | None] = []
    least = RIGID_MOTIONS if len(models) > 1 else 1  # a neighbour that floats is held by no fewer shapes
    for model, joints, order in zip(models, coupling_nodes(models), orders, strict=True):
        inputs = np.union1d(np.intersect1d(prong.contact, model.nodes), joints)
        bases.append(balanced(model, vibration_modes(model), inputs, order, numerics.error, least=least))
    return bases


def default_settings(connector: Connector, numerics: Numerics) -> NDArray[np.void]:
    """Values (1,) of palpo.physics.exchange.snap_frame.VALUES."""
    n, values = numerics, np.zeros(1, VALUES)
    friction = connector.friction if n.friction is None else n.friction
    values[0] = friction, n.restitution, n.correction, n.solver, n.tolerance, n.sweeps, n.clusters
    return values
