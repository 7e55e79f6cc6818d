"""How HapCo's contacts are found: which vertices and edges may touch, and from what gap on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.clamped import ClampedBody
from palpo.physics.collision.contact_surface import CREASE
from palpo.physics.numerics.errors import InputError

EDGE_CONTACTS = 64
"""Room for contacts of edges, beside one for each vertex."""


@dataclass(frozen=True)
class Detection:
    """How contacts are found; see palpo.physics.collision.mobile_vertices.

    Raises InputError for a negative tolerance and for a choice that there is not.
    """

    vertices: ArrayLike | None = None
    """Mesh nodes of the mobile body that may touch, shape (v,); all its free boundary nodes if not given."""
    tolerance: float = 2e-3
    """Gap below which a vertex is a contact [m]: the thesis's "DDC tolerance". inf: every vertex is one."""
    edges: bool = True
    """Whether edges touch edges too."""
    normals: Literal["smooth", "faceted"] = "smooth"
    crease: float = CREASE
    """Angle beyond which an edge of the fixed body is not smoothed [rad]."""
    when: Literal["step", "increment"] = "step"
    """Once a step, or again at every linearisation of the bodies (figure 2.12, dashed)."""

    def __post_init__(self) -> None:
        if not self.tolerance >= 0.0:
            raise InputError(f"collision tolerance {self.tolerance} m must not be negative")
        for name, value, known in (
            ("normals", self.normals, ("smooth", "faceted")),
            ("when", self.when, ("step", "increment")),
        ):
            if value not in known:
                raise InputError(f"detection's {name} is {value!r}; choose {' or '.join(known)}")


def contact_slots(body: ClampedBody, vertices: ArrayLike | None) -> NDArray[np.int32]:
    """Slots of mesh nodes that may touch, or of all free boundary nodes; InputError for one inside."""
    if vertices is None:
        return body.slot[np.setdiff1d(body.surface_nodes, () if body.rigid else body.clamped)]
    nodes = np.asarray(vertices, dtype=np.int32)
    if nodes.size and not 0 <= nodes.min() <= nodes.max() < body.slot.size:
        raise InputError(
            f"body {body.name!r}: contact vertices must be among its nodes 0 to {body.slot.size - 1}; "
            f"got {nodes.min()} to {nodes.max()}."
        )
    inside = nodes[body.slot[nodes] < 0]
    if inside.size:
        raise InputError(f"body {body.name!r}: contact vertex {inside[0]} lies inside; name boundary nodes.")
    return body.slot[nodes]


def edge_reach(fixed: ClampedBody, tolerance: float) -> float:
    """Gap below which edges are contacts [m]: the tolerance, but at most half the fixed body's mean edge."""
    ends = fixed.surface.vertices[fixed.surface.edges]
    return min(tolerance, 0.5 * float(np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1).mean()))
