"""What a body of a state feels at each of its vertices, as arrays and as meshes that other programs take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from trimesh.triangles import closest_point, points_to_barycentric

from palpo.app.runtime.rigs import CavityReading, Solid
from palpo.config.words import Refusal, choose
from palpo.physics.fem.nodal_fields import nodal_loads
from palpo.physics.mesh.io import meshio_of

if TYPE_CHECKING:
    from palpo.app.library.state import Contacts, State

Floats = NDArray[np.float64]

REACH = 0.01
"""Share of the scene's length within which a contact is on a body's surface: facets of round shapes lie as
far inside them."""
SURE = 1e-9
"""Least part of a force along a normal by which it presses a triangle."""
ALIKE = 1e-3
"""Of the reach: distances of triangles that share an edge differ by less."""


class Fields(NamedTuple):
    """A body at the n vertices of its mesh; of a soft body those inside it, too."""

    positions: Floats
    """[m], shape (n, 3)."""
    displacement: Floats
    """Since the scene was built [m], shape (n, 3)."""
    triangles: NDArray[np.int32]
    """Its surface, outward, shape (m, 3)."""
    strain: Floats | None
    """V - 1, with F = V R, in the scene's axes [-], shape (n, 3, 3); None where its inside is not known."""
    stress: Floats | None
    """Elastic stress in the scene's axes [Pa], shape (n, 3, 3); None likewise."""
    contact_pressure: Floats
    """Normal part of the contact forces over each vertex's share of the surface [Pa], shape (n,)."""
    cavity_pressure: Floats
    """Of the cavity whose wall a vertex is on, above the atmosphere's [Pa], shape (n,); 0 outside."""

    @property
    def areas(self) -> Floats:
        """Of the surface, each vertex's third of the triangles around it [m2], shape (n,)."""
        return vertex_areas(self.positions, self.triangles)

    @property
    def von_mises(self) -> Floats | None:
        """Equivalent stress [Pa], shape (n,)."""
        if self.stress is None:
            return None
        deviator = self.stress - np.trace(self.stress, axis1=1, axis2=2)[:, None, None] / 3.0 * np.eye(3)
        return np.asarray(np.sqrt(1.5 * np.einsum("nij,nij->n", deviator, deviator)))


def fields_of(state: State, name: str) -> Fields:
    """The fields of a body; Refusal for a name that the scene has not."""
    drawn, known = state.positions, state.model.rest
    if name not in drawn:
        raise Refusal(f"{name}: the scene has no such body; {choose(name, list(drawn))}")
    triangles, now, rest = state.model.triangles[name], drawn[name], known[name]
    pressure = _pressed(state, name, drawn)
    sucked = np.zeros(len(now))
    for cavity in state.cavities:
        sucked[cavity.vertices.get(name, [])] = cavity.pressure
    solid = state.rig.solids().get(name)
    if solid is None:
        return Fields(now, now - rest, triangles, None, None, pressure, sucked)
    x = now if solid.x is None else solid.x.copy()
    nodes = solid.drawn if solid.drawn is not None else np.arange(len(x), dtype=np.int32)
    strain, stress = nodal_loads(solid.elements, solid.material, x)

    def at_nodes(values: Floats) -> Floats:
        out = np.zeros(len(x))
        out[nodes] = values
        return out

    return Fields(
        x, x - solid.mesh.nodes, nodes[triangles], strain, stress, at_nodes(pressure), at_nodes(sucked)
    )


def meshio_mesh(state: State, name: str) -> Any:
    """A `meshio.Mesh` of a body where it is now, with its fields as data of its points."""
    found = fields_of(state, name)
    data: dict[str, Floats] = {"displacement": found.displacement}
    if found.strain is not None and found.stress is not None and found.von_mises is not None:
        data |= {"strain": found.strain.reshape(-1, 9), "stress": found.stress.reshape(-1, 9)}
        data["von_mises"] = found.von_mises
    data |= {"contact_pressure": found.contact_pressure, "cavity_pressure": found.cavity_pressure}
    solid: Solid | None = state.rig.solids().get(name)
    return meshio_of(solid.mesh if solid else None, found.positions, found.triangles, data)


def vertex_areas(x: Floats, triangles: NDArray[np.integer]) -> Floats:
    """A third of the triangles (m, 3) around each of the vertices (n, 3) [m], shape (n,) [m2]."""
    a, b, c = (x[triangles[:, k]] for k in range(3))
    areas = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return np.bincount(triangles.ravel(), np.repeat(areas / 3.0, 3), len(x)).astype(np.float64)


class _Place(NamedTuple):
    """Where a contact presses a surface."""

    distance: float
    """[m], infinite for nowhere."""
    corners: NDArray[np.integer] = np.zeros(0, int)
    weights: Floats = np.zeros(0)
    force: float = 0.0
    """Along the inward normal [N]."""


def _pressed(state: State, name: str, drawn: dict[str, Floats]) -> Floats:
    """Contact pressure at a body's vertices (n,) [Pa].

    A contact is between the nearest body that its force on body 1 presses into, and the nearest that the
    opposite force does.
    """
    contacts: Contacts = state.contacts
    surfaces = {body: _Surface(drawn[body], t) for body, t in state.model.triangles.items() if len(t)}
    out = np.zeros(len(drawn[name]))
    if name not in surfaces:
        return out
    reach = REACH * state.rig.visual.geometry.length
    for point, force in zip(contacts.points, contacts.forces, strict=True):
        if not force.any():
            continue
        for on in (force, -force):
            mine = surfaces[name].pressed(point, on, reach)
            if mine.distance < np.inf and all(
                mine.distance <= other.pressed(point, on, reach).distance
                for body, other in surfaces.items()
                if body != name
            ):
                np.add.at(out, mine.corners, mine.force * mine.weights)
    areas = vertex_areas(drawn[name], surfaces[name].triangles)
    return np.divide(out, areas, out=np.zeros_like(out), where=areas > 0.0)


class _Surface:
    """Triangles (m, 3) of vertices (n, 3) [m] that may be pressed."""

    def __init__(self, x: Floats, triangles: NDArray[np.integer]) -> None:
        self.triangles, self._x = triangles, x[triangles]
        a, b, c = self._x.transpose(1, 0, 2)
        normals = np.cross(b - a, c - a)
        sizes = np.linalg.norm(normals, axis=1, keepdims=True)
        self._normals = np.divide(normals, sizes, out=np.zeros_like(normals), where=sizes > 0.0)
        self._low, self._high = self._x.min(axis=1), self._x.max(axis=1)

    def pressed(self, point: Floats, force: Floats, reach: float) -> _Place:
        """Where a force [N] at a point [m] presses it: of the triangles as near as the nearest that it
        presses, as at an edge, the one that it presses most."""
        near = ((point > self._low - reach) & (point < self._high + reach)).all(axis=1)
        inward = -self._normals @ force
        near &= inward > SURE * np.linalg.norm(force)
        some = np.flatnonzero(near)
        if not some.size:
            return _Place(np.inf)
        places = closest_point(self._x[some], np.broadcast_to(point, (len(some), 3)))
        distance = np.linalg.norm(places - point, axis=1)
        least = float(distance.min())
        if least > reach:
            return _Place(np.inf)
        best = int(np.argmax(np.where(distance <= least + ALIKE * reach, inward[some], -np.inf)))
        t = some[best]
        weights = np.clip(points_to_barycentric(self._x[t][None], places[best][None])[0], 0.0, None)
        return _Place(least, self.triangles[t], weights / weights.sum(), float(inward[t]))


__all__ = ["CavityReading", "Fields", "fields_of", "meshio_mesh", "vertex_areas"]
