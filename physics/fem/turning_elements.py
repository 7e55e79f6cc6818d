"""The corotational elements of a soft body, tetrahedra or hexahedra, as its steps ask for them."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem import hex8, tet4
from palpo.physics.fem.corotational import (
    add_internal_forces,
    add_turned_stiffness,
    add_warped_product,
    assemble_warped_stiffness,
    elastic_energy,
    largest_turn,
)
from palpo.physics.fem.corotational_hex import (
    add_hexahedral_forces,
    add_hexahedral_product,
    add_turned_hexahedral_stiffness,
    assemble_hexahedral_stiffness,
    hexahedral_energy,
    largest_hexahedral_turn,
)
from palpo.physics.fem.material import Material
from palpo.physics.mesh.hex import HexMesh
from palpo.physics.mesh.tet import TetMesh

Floats = NDArray[np.float64]


class Elements(Protocol):
    """m elements of c corners. Rotations are quaternions `quats` (m, 4), where the search for them starts and
    what it finds; positions x (n, 3) [m] are those of all nodes."""

    cells: NDArray[np.int32]
    """Corners, ascending in each element, so that every local pair is a lower block; shape (m, c)."""
    gradients: Floats
    """Mean of the shape functions' gradients over the element [1/m], shape (m, c, 3)."""

    @property
    def shares(self) -> Floats:
        """Volume of each corner [m3], shape (m, c)."""
        ...

    def part(self, which: NDArray[np.int64]) -> "Elements":
        """Some of the elements."""
        ...

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """force (n, 3) += f_int(x) [N]."""
        ...

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """force (n, 3) += scale (K - K_0) v of a field v (n, 3), K and K_0 at rotations quats and `since`."""
        ...

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """force (n, 3) += scale K v of a field v (n, 3), K at rotations quats."""
        ...

    def assemble(self, x: Floats, quats: Floats, pair_block: NDArray[np.int32], blocks: Floats) -> None:
        """blocks (b, 9) = the sum of R K0 R^T [N/m], in lower blocks."""
        ...

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """Largest angle [rad] of an element's turn from its rotation `since` (m, 4)."""
        ...

    def energy(self, x: Floats, quats: Floats) -> float:
        """Elastic energy [J]."""
        ...


class Tetrahedra:
    """Linear tetrahedra, see `corotational`. Raises InputError for an element without volume."""

    def __init__(self, mesh: TetMesh, material: Material) -> None:
        ascending = np.argsort(mesh.tets, axis=1)
        self.volumes, gradients = tet4.gradients(np.asarray(mesh.nodes, dtype=np.float64), mesh.tets)
        self.cells = np.take_along_axis(mesh.tets, ascending, axis=1).astype(np.int32)
        self.gradients = np.ascontiguousarray(np.take_along_axis(gradients, ascending[:, :, None], axis=1))
        self.lame = material.lame()

    @property
    def shares(self) -> Floats:
        """See Elements."""
        return np.repeat(self.volumes[:, None] / 4.0, 4, axis=1)

    def part(self, which: NDArray[np.int64]) -> "Tetrahedra":
        """See Elements."""
        out = object.__new__(Tetrahedra)
        out.cells = np.ascontiguousarray(self.cells[which])
        out.gradients, out.volumes, out.lame = self.gradients[which], self.volumes[which], self.lame
        return out

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        add_internal_forces(x, self.cells, self.gradients, self.volumes, *self.lame, quats, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_turned_stiffness(
            v, self.cells, self.gradients, self.volumes, *self.lame, quats, since, scale, force
        )

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_warped_product(v, self.cells, self.gradients, self.volumes, *self.lame, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pair_block: NDArray[np.int32], blocks: Floats) -> None:
        """See Elements."""
        assemble_warped_stiffness(
            x, self.cells, self.gradients, self.volumes, *self.lame, quats, pair_block, blocks
        )

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(largest_turn(x, self.cells, self.gradients, since, quats))

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(elastic_energy(x, self.cells, self.gradients, self.volumes, *self.lame, quats))


class Hexahedra:
    """Hexahedra with incompatible modes, see `corotational_hex`. Raises InputError for a folded element."""

    def __init__(self, mesh: HexMesh, material: Material) -> None:
        nodes, hexes = np.asarray(mesh.nodes, dtype=np.float64), mesh.hexes
        w, g = hex8.gradients(nodes, hexes)
        k = hex8.stiffness(nodes, hexes, *material.lame(), "incompatible").reshape(-1, 8, 3, 8, 3)
        order = np.argsort(hexes, axis=1)
        each = np.arange(len(hexes))[:, None]
        self.cells = hexes[each, order].astype(np.int32)
        self.rest = nodes[self.cells]
        mean = np.einsum("eq,eqai->eai", w, g) / w.sum(axis=1)[:, None, None]
        self.gradients = np.ascontiguousarray(mean[each, order])
        self.shares = hex8.lumped_volumes(nodes, hexes)[each, order]
        k = k[each, order].transpose(0, 3, 4, 1, 2)[each, order].reshape(-1, 24, 24)
        # rounding leaves it unsymmetric in the last digit
        self.k0 = 0.5 * (k + k.transpose(0, 2, 1))

    def part(self, which: NDArray[np.int64]) -> "Hexahedra":
        """See Elements."""
        out = object.__new__(Hexahedra)
        for name in ("cells", "rest", "gradients", "shares", "k0"):
            setattr(out, name, np.ascontiguousarray(getattr(self, name)[which]))
        return out

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        add_hexahedral_forces(x, self.cells, self.rest, self.gradients, self.k0, quats, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_turned_hexahedral_stiffness(v, self.cells, self.k0, quats, since, scale, force)

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_hexahedral_product(v, self.cells, self.k0, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pair_block: NDArray[np.int32], blocks: Floats) -> None:
        """See Elements."""
        assemble_hexahedral_stiffness(x, self.cells, self.gradients, self.k0, quats, pair_block, blocks)

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(largest_hexahedral_turn(x, self.cells, self.gradients, since, quats))

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(hexahedral_energy(x, self.cells, self.rest, self.gradients, self.k0, quats))


def turning_elements(mesh: TetMesh | HexMesh, material: Material) -> Elements:
    """The elements of a mesh; raises InputError for one without volume."""
    return Hexahedra(mesh, material) if isinstance(mesh, HexMesh) else Tetrahedra(mesh, material)
