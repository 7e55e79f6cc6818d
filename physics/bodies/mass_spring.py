"""A quasi-static mass-spring body: the springs of a mesh's edges (001, N. Talbi's thesis, 1.4.1).

An element of volume V shares 6 E V among its springs as k l^2, which gives Young's modulus E in the mean over
directions: an isotropic network of central forces has lam = mu = sum k l^2 / 15 V, hence E = 5 mu / 2; its
Poisson ratio is 1/4 whatever the material says. For tetrahedra that is k = E V / l^2 (van Gelder, Approximate
simulation of elastic membranes by triangulated spring meshes, JGT 1998). For hexahedra an edge takes a
quarter of the k l^2 of a face diagonal, with which a lattice of cubes is isotropic.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.newton_body import NewtonBody
from palpo.physics.fem import hex8
from palpo.physics.fem.material import Material
from palpo.physics.kernels import kernel
from palpo.physics.mesh.hex import NEIGHBOURS, OUTWARD_FACES, HexMesh
from palpo.physics.mesh.tet import TetMesh

TET_EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])
HEX_EDGES = np.array([[a, b] for a in range(8) for b in NEIGHBOURS[a] if a < b])
HEX_DIAGONALS = np.concatenate([OUTWARD_FACES[:, [0, 2]], OUTWARD_FACES[:, [1, 3]]])


class MassSpringBody(NewtonBody):
    """Springs of force k (|d| - l) along the edges; of the material only E and the density count.

    springs: node pairs, shape (s, 2). stiffnesses [N/m], lengths at rest [m], shape (s,). See NewtonBody.
    """

    def __init__(
        self,
        name: str,
        mesh: TetMesh | HexMesh,
        material: Material,
        clamped: ArrayLike,
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        tolerance: float = 1e-9,
        max_iterations: int = 100,
    ) -> None:
        self.springs, share = spring_network(mesh)
        d = mesh.nodes[self.springs[:, 1]] - mesh.nodes[self.springs[:, 0]]
        self.lengths = np.linalg.norm(d, axis=1)
        self.stiffnesses = material.youngs_modulus * share / self.lengths**2
        super().__init__(name, mesh, material, clamped, gravity, tolerance, max_iterations)

    def _pattern_of(self) -> tuple[NDArray, NDArray]:
        slots = np.full(len(self.mesh.nodes), -1, dtype=np.int32)
        slots[self.free] = np.arange(self.free.size)
        ends = slots[self.springs]
        inner = (ends >= 0).all(axis=1)
        self._ends = ends
        self._pair = np.where(inner, self.free.size + np.cumsum(inner) - 1, -1)
        diagonal = np.arange(self.free.size)
        rows = np.concatenate([diagonal, ends[inner].max(axis=1)])
        return rows, np.concatenate([diagonal, ends[inner].min(axis=1)])

    def energy(self, u: NDArray) -> float:
        """Sum of k (|d| - l)^2 / 2 [J] over the springs at displacements u (n, 3) [m], body axes."""
        return 0.5 * float(self.stiffnesses @ (self._present(u)[1] - self.lengths) ** 2)

    def internal_force(self, u: NDArray) -> NDArray:
        """-dU/du [N], shape (n, 3)."""
        d, now = self._present(u)
        pull = (self.stiffnesses * (now - self.lengths) / now)[:, None] * d
        force = np.zeros_like(u)
        np.add.at(force, self.springs[:, 0], pull)
        np.add.at(force, self.springs[:, 1], -pull)
        return force

    def _present(self, u: NDArray) -> tuple[NDArray, NDArray]:
        x = self.mesh.nodes + u
        d = x[self.springs[:, 1]] - x[self.springs[:, 0]]
        # a spring of no length has no direction to push in
        return d, np.maximum(np.linalg.norm(d, axis=1), 1e-12 * self.lengths)

    def _assemble(self, u: NDArray, convex: bool, blocks: NDArray) -> None:
        d, now = self._present(u)
        slack = 1.0 - self.lengths / now
        _assemble_springs(d / now[:, None], self.stiffnesses, slack, convex, self._ends, self._pair, blocks)


def spring_network(mesh: TetMesh | HexMesh) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Node pairs of the springs, shape (s, 2), and k l^2 / E of each [m3], shape (s,)."""
    if isinstance(mesh, HexMesh):
        volumes = hex8.gradients(mesh.nodes, mesh.hexes)[0].sum(axis=1)
        pairs = mesh.hexes[:, np.concatenate([HEX_EDGES, HEX_DIAGONALS])]
        parts = np.repeat([0.1, 0.4], [len(HEX_EDGES), len(HEX_DIAGONALS)])
    else:
        volumes, pairs, parts = mesh.volumes, mesh.tets[:, TET_EDGES], np.ones(len(TET_EDGES))
    springs, owner = np.unique(np.sort(pairs.reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    shares = np.zeros(len(springs))
    np.add.at(shares, owner.reshape(-1), np.outer(volumes, parts).ravel())
    return springs, shares


@kernel
def _assemble_springs(directions, stiffnesses, slack, convex, ends, pair, blocks):
    """blocks of the tangent k [n n^T + (1 - l/|d|) (I - n n^T)]; slack (s,) is 1 - l/|d|.

    convex: a compressed spring, whose slack is negative, does not push sideways.
    """
    blocks[:] = 0.0
    for s in range(stiffnesses.size):
        across = max(slack[s], 0.0) if convex else slack[s]
        a, b = ends[s, 0], ends[s, 1]
        for i in range(3):
            for j in range(3):
                entry = (1.0 - across) * directions[s, i] * directions[s, j] + (across if i == j else 0.0)
                entry *= stiffnesses[s]
                if a >= 0:
                    blocks[a, 3 * i + j] += entry
                if b >= 0:
                    blocks[b, 3 * i + j] += entry
                if pair[s] >= 0:
                    blocks[pair[s], 3 * i + j] -= entry
