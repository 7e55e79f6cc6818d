"""A snap connector made ready for `physics.systems.snap.step`: its bodies, its contacts, its state."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.admittance import make_plug
from palpo.physics.collision.distance_field import DistanceField, exact_field
from palpo.physics.collision.field_contacts import field_contacts_detector
from palpo.physics.collision.field_search import (
    Edges,
    FieldContacts,
    make_edges,
    make_field_contacts,
    make_probe,
    make_solid,
)
from palpo.physics.collision.surface_points import SurfacePoints, edge_points, surface_points, ways_along
from palpo.physics.compliance.midpoint_held import MIDPOINT_HELD, MidpointHeld, make_midpoint_held
from palpo.physics.compliance.midpoint_modal import MIDPOINT_MODAL, MidpointModal, make_midpoint_modal
from palpo.physics.contract.stages import Hand, make_hand
from palpo.physics.engine.build import Bound, make_engine
from palpo.physics.engine.dissipating import maximal_dissipation_unit
from palpo.physics.engine.relaxing import anderson_unit
from palpo.physics.engine.sweeping import gauss_seidel_unit
from palpo.physics.engine.table import Engine
from palpo.physics.exchange.handle import Handle, of_process
from palpo.physics.exchange.snap_frame import ENERGY
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.reduction.cyclic import on_meridians
from palpo.physics.reduction.joining import join, nodal_map
from palpo.physics.reduction.linear_model import Basis, LinearModel
from palpo.physics.systems.snap.connectors.connector import Connector, Prong
from palpo.physics.systems.snap.numerics import (
    STIFF,
    Numerics,
    as_touched,
    default_settings,
    reduced_bases,
    segment_models,
)
from palpo.physics.systems.snap.step import take_settings

SOLVERS = maximal_dissipation_unit, gauss_seidel_unit, anderson_unit
"""By MAXIMAL_DISSIPATION, GAUSS_SEIDEL and ANDERSON of palpo.physics.exchange.snap_frame."""

SHARP = np.radians(10.0)
"""Angle by which the plug's surface is bent at an edge that is held against the prongs' facets [rad]: as far
as a point of these is touched beside its own normals, so that what is flatter is seen by them."""


@of_process("prongs")
class SnapState(NamedTuple):
    """Everything that a step reads and writes. Bodies are the prongs, then the plug."""

    engine: Engine
    aim: Hand  # the target, and what the hand feels
    prong: MidpointModal  # the first; the layout of all
    prongs: NDArray[np.int64]  # (p,) addresses of their handles
    plug: MidpointHeld
    search: FieldContacts
    floor: NDArray[np.float64]  # (3,) of all prongs on what they stand on [N]
    books: NDArray[np.void]  # (1,) of palpo.physics.exchange.snap_frame.ENERGY
    way: NDArray[np.float64]  # (3,) scratch


class SnapModel:
    """A connector ready to be stepped by `palpo.physics.systems.snap.step.step`.

    field: distance of the plug in its own frame; exact by default, within a band of the interference and
    twice the spacing. bases: of each prong's segments, as `reduced_bases` gives and computes them by default.

    state: SnapState. handle: what compiled code takes. prongs: MidpointModal of each. orders: coordinates of
    each segment of each prong. Raises InputError as its parts do.
    """

    def __init__(
        self,
        connector: Connector,
        numerics: Numerics | None = None,
        field: DistanceField | None = None,
        bases: Sequence[Sequence[Basis | None]] | None = None,
    ) -> None:
        numerics = numerics or Numerics()
        connector = as_touched(connector, numerics)
        self.connector, self.numerics = connector, numerics
        if field is None:
            field = exact_field(connector.plug, connector.interference + 2.0 * numerics.spacing)
        self.start, self.upright = connector.rest_position.copy(), np.array([1.0, 0.0, 0.0, 0.0])
        self.maps: list[sp.csr_array] = []
        self.prongs: list[MidpointModal] = []
        for i, part in enumerate(connector.prongs):
            models = segment_models(part, connector, numerics)
            basis = reduced_bases(part, models, numerics) if bases is None else list(bases[i])
            self.prongs.append(self._prong(part, models, basis))
            self.maps.append(nodal_map(models, basis, len(part.mesh.nodes)))
        a, hand, capacity = connector.admittance, make_hand(), numerics.capacity * len(self.prongs)
        plug = make_midpoint_held(
            *make_plug(a.mass, a.damping, a.stiffness, numerics.step, self.start, self.upright)
        )
        bodies = [MIDPOINT_MODAL.bind(prong) for prong in self.prongs] + [MIDPOINT_HELD.bind(plug)]
        self.probes, first = [], 0
        for i, part in enumerate(connector.prongs):
            triangles = np.searchsorted(part.contact, part.contact_triangles)
            rest = self.prongs[i].model.rest
            points = surface_points(rest, triangles, numerics.spacing)
            if numerics.meridians is not None:
                points = _on_meridians(points, rest, numerics.meridians)
            edges = self._edges(part, triangles) if numerics.edges else None
            self.probes.append(Handle(make_probe(bodies[i], i, triangles, points, first, edges)))
            first += len(self.probes[-1].state.active)
        solid = make_solid(bodies[-1], len(self.prongs))
        search = make_field_contacts(self.probes, solid, field, capacity)
        search.settings["margin"] = numerics.margin
        self.built = make_engine(
            bodies, SOLVERS, capacity, numerics.step, [Bound.bind(field_contacts_detector, search)],
            hands={len(self.prongs): hand},
        )  # fmt: skip
        self.built.engine.solver.settings["at_once"] = capacity
        self.built.engine.wants["d"] = 1
        self.built.engine.bodies.whole[:] = 0  # the search asks for places itself, once a step
        self.state = SnapState(
            engine=self.built.engine,
            aim=hand,
            prong=self.prongs[0],
            prongs=np.array([body.handle.address for body in bodies[:-1]], np.int64),
            plug=plug,
            search=search,
            floor=np.zeros(3),
            books=np.zeros(1, ENERGY),
            way=np.zeros(3),
        )
        self.handle = Handle(self.state)
        take_settings(self.handle, default_settings(connector, numerics), 0)

    def _prong(
        self, part: Prong, models: Sequence[LinearModel], bases: Sequence[Basis | None]
    ) -> MidpointModal:
        n, mesh = self.numerics, part.mesh
        edges = mesh.nodes[mesh.tets] - mesh.nodes[np.roll(mesh.tets, 1, axis=1)]
        node = self.connector.material.youngs_modulus * float(np.median(np.linalg.norm(edges, axis=2)))
        stiffness = n.coupling_stiffness
        if stiffness is None:
            stiffness = STIFF * node
        damping = 0.5 * n.step * stiffness if n.coupling_damping is None else n.coupling_damping
        joined = join(part.body, models, part.contact, n.step, stiffness, damping, bases, settling=n.settling)
        return make_midpoint_modal(joined)

    def _edges(self, part: Prong, triangles: NDArray[np.integer]) -> Edges:
        """Points of the plug's edges that may pass a prong's contact surface, against that."""
        c, n = self.connector, self.numerics
        points = edge_points(c.plug, n.spacing, SHARP)
        place = np.einsum("na,nai->ni", points.weights, c.plug.vertices[points.nodes])
        surface, near = part.mesh.nodes[part.contact], c.interference + 2.0 * n.spacing
        first, last = place + self.start, place + self.start + c.stroke * c.push
        keep = (np.maximum(first, last) > surface.min(axis=0) - near).all(axis=1)
        keep &= (np.minimum(first, last) < surface.max(axis=0) + near).all(axis=1)
        if n.meridians is not None:
            keep &= on_meridians(place + self.start, n.meridians)
        pairs = ways_along(c.plug.triangles, points)[keep]
        ways = c.plug.vertices[pairs[..., 1]] - c.plug.vertices[pairs[..., 0]]
        return make_edges(place[keep], ways, SurfaceMesh.patch(surface, triangles), near)

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
        m, q = self.state.plug.motion, np.asarray(orientation, float)
        m.position[:] = m.target_position[:] = position
        m.orientation[:] = m.target_orientation[:] = q / np.linalg.norm(q)
        for array in (m.velocity, m.target_velocity, m.error):
            array[:] = 0.0


def _on_meridians(points: SurfacePoints, rest: NDArray[np.float64], meridians: int) -> SurfacePoints:
    """Those of the points between nodes rest (k, 3) [m] that lie on a meridian."""
    here = on_meridians(np.einsum("na,nai->ni", points.weights, rest[points.nodes]), meridians)
    return SurfacePoints(points.nodes[here], points.weights[here])
