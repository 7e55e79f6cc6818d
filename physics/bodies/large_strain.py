"""A quasi-static body of St Venant-Kirchhoff tetrahedra: large displacements and rotations."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.newton_body import NewtonBody
from palpo.physics.errors import InputError
from palpo.physics.fem import tet4
from palpo.physics.fem.assembly import block_pattern
from palpo.physics.fem.material import Material
from palpo.physics.fem.saint_venant_kirchhoff import add_internal_forces, assemble_tangent, elastic_energy
from palpo.physics.mesh.tet import TetMesh


class LargeStrainBody(NewtonBody):
    """Total Lagrangian tetrahedra of the St Venant-Kirchhoff law (001, N. Talbi's thesis, 1.4.2.3).

    See NewtonBody. Raises InputError as it does, for hexahedra, and for an element without volume.
    """

    mesh: TetMesh

    def __init__(
        self,
        name: str,
        mesh: TetMesh,
        material: Material,
        clamped: ArrayLike,
        gravity: ArrayLike = (0.0, -9.81, 0.0),
        tolerance: float = 1e-9,
        max_iterations: int = 100,
    ) -> None:
        if not isinstance(mesh, TetMesh):
            raise InputError(f"body {name!r}: large strains are for tetrahedra; cut its hexahedra into them.")
        super().__init__(name, mesh, material, clamped, gravity, tolerance, max_iterations)
        self._lame = material.lame()

    def _pattern_of(self) -> tuple[NDArray, NDArray]:
        # ascending nodes in each element make every local pair a lower block
        ascending = np.argsort(self.mesh.tets, axis=1)
        self._volumes, gradients = tet4.gradients(self.mesh.nodes, self.mesh.tets)
        self._tets = np.take_along_axis(self.mesh.tets, ascending, axis=1).astype(np.int32)
        self._gradients = np.ascontiguousarray(np.take_along_axis(gradients, ascending[:, :, None], axis=1))
        pattern = block_pattern(len(self.mesh.nodes), self._tets, self.clamped)
        self._pair_block = pattern.pair_block
        return pattern.rows, pattern.cols

    def energy(self, u: NDArray) -> float:
        """Elastic energy [J] of displacements u (n, 3) [m], body axes."""
        return elastic_energy(u, self._tets, self._gradients, self._volumes, *self._lame)

    def internal_force(self, u: NDArray) -> NDArray:
        """-dU/du [N], shape (n, 3)."""
        force = np.zeros_like(u)
        add_internal_forces(u, self._tets, self._gradients, self._volumes, *self._lame, force)
        return force

    def _assemble(self, u: NDArray, convex: bool, blocks: NDArray) -> None:
        assemble_tangent(
            u, self._tets, self._gradients, self._volumes, *self._lame, convex, self._pair_block, blocks
        )
