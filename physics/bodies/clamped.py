"""A quasi-static body that hangs on clamped nodes, which follow an imposed rigid motion.

The global corotational frame (001, N. Talbi's thesis, equation 1.8) is attached to the clamped nodes, so a
point stands at  x = p + R (X - X_c + u),  X_c the centre of the clamped nodes at rest and p where it is
now. Only u, in the body's axes, is elastic; forces enter as R^T F.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import node_volumes
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError
from palpo.physics.numerics.math3 import quat_normalise, quat_to_matrix

ON_A_LINE = 1e-6
"""Width over length below which clamped nodes lie on a line, about which the body could turn [-]."""


class ClampedBody:
    """Shape, clamps, weight and pose that all quasi-static bodies share.

    mesh: at rest, in the world. clamped: indices of the clamped nodes; all of them make the body rigid.
    gravity [m/s2], shape (3,), world axes; may be written at any time.
    Raises InputError for an index out of range and for clamps that leave the body free to move or turn.

    surface_nodes: indices of the boundary nodes, ascending, shape (s,); slot: their place there, shape (n,),
    -1 inside. free: indices of the nodes that are not clamped, ascending. u: elastic displacement of all
    nodes [m], shape (n, 3), body axes.
    """

    def __init__(
        self,
        name: str,
        mesh: TetMesh | HexMesh,
        material: Material,
        clamped: ArrayLike,
        gravity: ArrayLike = (0.0, -9.81, 0.0),
    ) -> None:
        self.name, self.mesh, self.material = name, mesh, material
        n = len(mesh.nodes)
        self.clamped = np.unique(np.asarray(clamped, dtype=np.int32))
        _refuse_loose(name, mesh.nodes, self.clamped)
        self.free = np.setdiff1d(np.arange(n, dtype=np.int32), self.clamped)
        self.surface = mesh.surface(name)
        self.surface_nodes = mesh.boundary_nodes
        self.slot = np.full(n, -1, dtype=np.int32)
        self.slot[self.surface_nodes] = np.arange(self.surface_nodes.size)
        self.gravity = np.array(gravity, dtype=np.float64)
        self.volumes = node_volumes(mesh)
        self.centre = mesh.nodes[self.clamped].mean(axis=0)
        self.position = self.centre.copy()
        self.rotation = np.eye(3)
        self.u = np.zeros((n, 3))

    @property
    def rigid(self) -> bool:
        """True if every node is clamped."""
        return self.free.size == 0

    @property
    def mass(self) -> float:
        """[kg]"""
        return float(self.material.density * self.volumes.sum())

    def place(self, position: ArrayLike, orientation: ArrayLike) -> None:
        """Move the clamped nodes: their centre to `position` [m], the frame to the quaternion (w, x, y, z).

        The body's rest pose is (centre, identity). u stays as it is in the body's axes.
        """
        q = np.array(orientation, dtype=np.float64)
        quat_normalise(q)
        self.position = np.array(position, dtype=np.float64)
        quat_to_matrix(q, self.rotation)

    def to_world(self, vectors: NDArray) -> NDArray:
        """Vectors (..., 3) of the body's axes in world axes."""
        return vectors @ self.rotation.T

    def to_body(self, vectors: ArrayLike) -> NDArray:
        """Vectors (..., 3) of world axes in the body's axes."""
        return np.asarray(vectors, dtype=np.float64) @ self.rotation

    def rest_positions(self, nodes: ArrayLike | None = None) -> NDArray:
        """Where nodes (k,), or all, stand undeformed in the present pose [m], shape (k, 3)."""
        rest = self.mesh.nodes if nodes is None else self.mesh.nodes[np.asarray(nodes)]
        return self.position + self.to_world(rest - self.centre)

    def positions(self, nodes: ArrayLike | None = None) -> NDArray:
        """Where nodes (k,), or all, stand with the displacement u of the last solve [m], shape (k, 3)."""
        u = self.u if nodes is None else self.u[np.asarray(nodes)]
        return self.rest_positions(nodes) + self.to_world(u)

    def weight(self) -> NDArray:
        """Own weight of the nodes in the body's axes [N], shape (n, 3)."""
        return self.material.density * self.volumes[:, None] * self.to_body(self.gravity)

    def load(self, nodes: ArrayLike, forces: ArrayLike) -> NDArray:
        """Weight plus forces (k, 3) [N], world axes, at nodes (k,); all nodes, body axes, shape (n, 3)."""
        load = self.weight()
        np.add.at(load, np.asarray(nodes, dtype=np.intp), self.to_body(np.reshape(forces, (-1, 3))))
        return load


def usual_elements(mesh: TetMesh | HexMesh) -> str:
    """The elements of quasi-static bodies where nothing is said: hexahedra are those of mean divergence."""
    return "hex8-bbar" if isinstance(mesh, HexMesh) else "tet4"


def _refuse_loose(name: str, nodes: NDArray, clamped: NDArray) -> None:
    """InputError unless the clamped nodes exist and hold the body."""
    if clamped.size == 0:
        raise InputError(
            f"body {name!r} has no clamped node, so its stiffness is singular and a force would move it "
            "without end: clamp a region of it, or make it a dynamic body."
        )
    if not 0 <= clamped[0] <= clamped[-1] < len(nodes):
        wrong = clamped[0] if clamped[0] < 0 else clamped[-1]
        raise InputError(f"body {name!r} clamps node {wrong} but its nodes are 0 to {len(nodes) - 1}.")
    extent = np.linalg.svd(nodes[clamped] - nodes[clamped].mean(axis=0), compute_uv=False)
    if clamped.size < 3 or extent[1] <= ON_A_LINE * extent[0]:
        raise InputError(
            f"body {name!r} is clamped at {clamped.size} nodes that lie on one line, about which it can "
            "still turn: clamp at least three nodes that span a plane."
        )
