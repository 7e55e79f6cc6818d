"""The linear tetrahedra of a mesh, as the steps of a body ask for them."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem import tet4
from palpo.physics.fem.assembly import NO_GROUPS, BlockPattern, NodeGroups
from palpo.physics.fem.corotational import (
    add_geometric_stiffness,
    add_internal_forces,
    add_turned_stiffness,
    add_warped_product,
    assemble_warped_stiffness,
    elastic_energy,
    largest_turn,
)
from palpo.physics.fem.element import Element, Floats
from palpo.physics.fem.material import Material
from palpo.physics.mesh.tet import TetMesh


class Tetrahedra:
    """Elements of which all follows from the gradients, see `corotational`; an `Elements`.

    Raises InputError for an element without volume.
    """

    def __init__(self, element: Element, mesh: TetMesh, material: Material) -> None:
        ascending = np.argsort(mesh.tets, axis=1)
        self.volumes, gradients = tet4.gradients(np.asarray(mesh.nodes, dtype=np.float64), mesh.tets)
        if mesh.filled is not None:
            self.volumes *= mesh.filled
        self.cells = np.take_along_axis(mesh.tets, ascending, axis=1).astype(np.int32)
        self.gradients = np.ascontiguousarray(np.take_along_axis(gradients, ascending[:, :, None], axis=1))
        self.weights = self.volumes * material.stiffness_of(len(self.volumes))
        """What of the stiffness of the body's material an element has [m3]."""
        self.lame = material.lame()

    @property
    def groups(self) -> NodeGroups:
        """See Elements: none."""
        return NO_GROUPS

    @property
    def shares(self) -> Floats:
        """See Elements."""
        return np.repeat(self.volumes[:, None] / 4.0, 4, axis=1)

    def part(self, which: NDArray[np.int64]) -> "Tetrahedra":
        """See Elements."""
        out = object.__new__(Tetrahedra)
        out.cells = np.ascontiguousarray(self.cells[which])
        out.gradients, out.lame = self.gradients[which], self.lame
        out.volumes, out.weights = self.volumes[which], self.weights[which]
        return out

    def apart(self) -> "Tetrahedra":
        """See Elements."""
        out = self.part(np.arange(len(self.cells)))
        out.cells = np.arange(self.cells.size, dtype=np.int32).reshape(self.cells.shape)
        return out

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        add_internal_forces(x, self.cells, self.gradients, self.weights, *self.lame, quats, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_turned_stiffness(
            v, self.cells, self.gradients, self.weights, *self.lame, quats, since, scale, force
        )

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_warped_product(v, self.cells, self.gradients, self.weights, *self.lame, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        assemble_warped_stiffness(
            x, self.cells, self.gradients, self.weights, *self.lame, quats, pattern.pair_block, blocks
        )

    def tensions(self, x: Floats, quats: Floats) -> Floats:
        """Stress of each element's trace besides lam tr(eps), as tension [Pa], (m,): none."""
        return np.zeros_like(self.volumes)

    def add_geometric(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        add_geometric_stiffness(
            x, self.cells, self.gradients, self.weights, *self.lame, self.tensions(x, quats), quats,
            pattern.pair_block, blocks,
        )  # fmt: skip

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(largest_turn(x, self.cells, self.gradients, since, quats))

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(elastic_energy(x, self.cells, self.gradients, self.weights, *self.lame, quats))
