"""A snap connector: deformable prongs, each its own model clamped at its base, and the rigid plug they catch.

Source: M. Lee, J. Lee, J. Yoon, D. Lee, Real-Time Physically-Accurate Simulation of Robotic Snap Connection
Process (002), section II-A: the prongs barely affect each other, so each is a separate linear model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.collision.solid import require_solid
from palpo.physics.fem.elements import SolidMesh
from palpo.physics.fem.material import Material
from palpo.physics.mesh.checks import as_cells, as_points
from palpo.physics.mesh.surface import SurfaceMesh
from palpo.physics.mesh.tet import TetMesh, validate_tets
from palpo.physics.mesh.winding_numbers import winding_numbers
from palpo.physics.numerics.errors import InputError

GIVE = 1e-3
"""How far a generated connector's plug lags behind its target at the peak force: sets K_ad [m]."""

RESPONSE = 400.0
"""Natural frequency of the held plug, sets M_ad: slow beside a step of 1 ms, fast beside a hand [rad/s]."""


@dataclass(frozen=True, eq=False)
class Prong:
    """One deformable part. Its nodes fall into three disjoint groups: clamped, contact and inner.

    mesh: tetrahedra at rest [m], in the connector's frame.
    clamped: nodes held for ever, shape (k,), ascending.
    contact_triangles: outward triangles of the boundary that the plug can touch, shape (t, 3); none of their
    nodes is clamped.
    body: the elements that its stiffness and mass are of, on the nodes of the mesh.
    sectors: about y that it consists of, each equal to the next one turned; 1 where it is no ring.
    stands_out: distance of a ring's corners from the axis over the round one's, which its faces touch.
    """

    mesh: TetMesh
    clamped: NDArray[np.int32]
    contact_triangles: NDArray[np.int32]
    body: SolidMesh
    sectors: int = 1
    stands_out: float = 1.0

    @cached_property
    def contact(self) -> NDArray[np.int32]:
        """Nodes of the contact triangles, shape (c,), ascending."""
        return np.unique(self.contact_triangles)

    @cached_property
    def free(self) -> NDArray[np.int32]:
        """Nodes that move, shape (f,), ascending."""
        return np.setdiff1d(np.arange(len(self.mesh.nodes), dtype=np.int32), self.clamped)

    @cached_property
    def inner(self) -> NDArray[np.int32]:
        """Free nodes that no contact reaches, shape (f - c,), ascending."""
        return np.setdiff1d(self.free, self.contact)

    @property
    def freedoms(self) -> int:
        """3 f, the dimension that Table I of 002 counts."""
        return 3 * self.free.size


@dataclass(frozen=True)
class Admittance:
    """M_ad, D_ad and K_ad (002, eq. 5), diagonals (6,) or matrices (6, 6): translation, then rotation.

    mass [kg, kg m2], damping [N s/m, N m s/rad], stiffness [N/m, N m/rad].
    """

    mass: NDArray[np.float64]
    damping: NDArray[np.float64]
    stiffness: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Connector:
    """Prongs and plug, placed for an insertion. Lengths in metres, y up.

    plug: closed surface with outward triangles in the plug's own frame, whose origin is the centre of mass of
    the solid. The plug starts at rest_position (3,), its axes along those of the connector, clear of contact,
    and travels `stroke` along the unit vector `push` (3,); there it is latched. friction: between prongs and
    plug [-]. interference: how far the plug would enter a prong that did not yield, measured across the push.
    """

    prongs: tuple[Prong, ...]
    plug: SurfaceMesh
    material: Material
    friction: float
    push: NDArray[np.float64]
    rest_position: NDArray[np.float64]
    stroke: float
    interference: float
    admittance: Admittance

    @property
    def freedoms(self) -> int:
        """Free freedoms of all prongs."""
        return sum(prong.freedoms for prong in self.prongs)

    def plug_at(self, travel: float) -> SurfaceMesh:
        """The plug after `travel` [m] from its rest pose, in the connector's frame."""
        return self.plug.with_vertices(self.plug.vertices + self.rest_position + travel * self.push)


def with_true_corners(connector: Connector) -> Connector:
    """The same, rings drawn in: their corners, and not the middles of their faces, are on the round one.

    What looks for contacts on meridians through the corners then finds the round ring there.
    """
    return replace(connector, prongs=tuple(_drawn_in(prong) for prong in connector.prongs))


def _drawn_in(prong: Prong) -> Prong:
    if prong.stands_out == 1.0:
        return prong
    nodes = prong.mesh.nodes * np.array([1.0 / prong.stands_out, 1.0, 1.0 / prong.stands_out])
    mesh, body = replace(prong.mesh, nodes=nodes), replace(prong.body, nodes=nodes)
    return replace(prong, mesh=mesh, body=body, stands_out=1.0)


def make_prong(
    mesh: TetMesh,
    clamped: ArrayLike,
    contact_triangles: ArrayLike,
    source: str = "prong",
    body: SolidMesh | None = None,
) -> Prong:
    """A prong of a tetrahedral mesh [m], clamped nodes (k,), and contact triangles (t, 3) of its boundary.

    body: other elements on the same nodes, which its stiffness is to be of.
    Raises InputError for a mesh that `validate_tets` refuses, an empty or wrong group, a contact triangle
    that is no outward triangle of the boundary, and one with a clamped node.
    """
    validate_tets(mesh.nodes, mesh.tets, source)
    n = len(mesh.nodes)
    held = np.unique(np.asarray(clamped))
    if held.size == 0 or held.size == n:
        raise InputError(f"{source}: {held.size} of its {n} nodes are clamped, expected some but not all.")
    if not np.issubdtype(held.dtype, np.integer) or held[0] < 0 or held[-1] >= n:
        raise InputError(f"{source}: clamped nodes are {held[[0, -1]].tolist()}, expected 0 to {n - 1}.")
    triangles = as_cells(contact_triangles, 3, n, "contact triangle", source)
    turned = {tuple(np.roll(t, -int(np.argmin(t)))) for t in mesh.surface(source).triangles}
    for i, t in enumerate(triangles):
        if tuple(np.roll(t, -int(np.argmin(t)))) not in turned:
            raise InputError(
                f"{source}: contact triangle {i} (counted from 0) with nodes {t.tolist()} is no outward "
                "triangle of the boundary."
            )
    shared = np.intersect1d(held, triangles)
    if shared.size:
        raise InputError(
            f"{source}: node {shared[0]} (counted from 0) is clamped and belongs to the contact surface "
            f"({shared.size} such nodes); a node takes one of the two."
        )
    return Prong(mesh, held.astype(np.int32), triangles, mesh if body is None else body)


def make_connector(
    prongs: Sequence[Prong],
    plug: SurfaceMesh,
    material: Material,
    friction: float,
    push: ArrayLike,
    stroke: float,
    admittance_stiffness: float,
    interference: float = 0.0,
) -> Connector:
    """A connector of any prongs and any closed plug [m], given in one frame, the plug at its rest pose.

    push: direction (3,) of any length. stroke [m]. The plug is held with admittance_stiffness [N/m], a mass
    that gives it the natural frequency `RESPONSE`, and critical damping; against rotation with the same times
    the square of its radius of gyration. Raises InputError for a plug that is open, inward or crosses itself,
    a plug that overlaps a prong at its rest pose, no prong, and numbers out of range.
    """
    if not prongs:
        raise InputError("connector: it has no prongs, expected at least one.")
    require_solid(plug, "plug")
    along = as_points(np.reshape(push, (1, -1)), "push direction")[0]
    for name, value, valid, expected in (
        ("friction", friction, 0.0 <= friction < np.inf, "zero or positive"),
        ("push direction", along.tolist(), bool(along.any()), "a direction"),
        ("stroke", stroke, 0.0 < stroke < np.inf, "a positive length [m]"),
        ("interference", interference, 0.0 <= interference < np.inf, "zero or positive [m]"),
        ("admittance stiffness", admittance_stiffness, 0.0 < admittance_stiffness < np.inf, "positive [N/m]"),
    ):
        if not valid:
            raise InputError(f"connector: {name} is {value}, expected {expected}.")
    mass, centre, inertia = plug.mass_properties(1.0)
    for i, prong in enumerate(prongs):
        _refuse_overlap(prong, plug, i)
    gyration = np.trace(inertia) / (3.0 * mass)
    held = admittance_stiffness * np.repeat([1.0, gyration], 3)
    return Connector(
        tuple(prongs),
        plug.with_vertices(plug.vertices - centre),
        material,
        float(friction),
        along / np.linalg.norm(along),
        centre,
        float(stroke),
        float(interference),
        Admittance(held / RESPONSE**2, 2.0 * held / RESPONSE, held),
    )


def overlap(prong: Prong, plug: SurfaceMesh) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Boundary nodes of the prong inside the plug, and vertices of the plug inside the prong, both at rest.

    Edges that cross without a node inside are not seen.
    """
    surface = prong.mesh.surface()
    skin = surface.used_vertices
    entered = skin[winding_numbers(prong.mesh.nodes[skin], plug) > 0.5]
    return entered, np.flatnonzero(winding_numbers(plug.vertices, surface) > 0.5)


def _refuse_overlap(prong: Prong, plug: SurfaceMesh, i: int) -> None:
    entered, inside = overlap(prong, plug)
    if entered.size:
        raise InputError(
            f"connector: at its rest pose the plug holds {entered.size} nodes of prong {i}, the first "
            f"is node {entered[0]} (counted from 0); start it clear of the prongs."
        )
    if inside.size:
        raise InputError(
            f"connector: at its rest pose {inside.size} vertices of the plug lie inside prong {i}, the first "
            f"is vertex {inside[0]} (counted from 0); start it clear of the prongs."
        )
