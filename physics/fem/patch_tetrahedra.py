"""Linear tetrahedra that change their volume in patches, as the steps of a body ask for them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern, NodeGroups
from palpo.physics.fem.element import Element, Floats
from palpo.physics.fem.material import Material
from palpo.physics.fem.patch_volume import add_patch_stiffness, add_patch_tension, patch_changes
from palpo.physics.fem.tetrahedra import Tetrahedra
from palpo.physics.mesh.patches import patches_of
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError


class PatchTetrahedra(Tetrahedra):
    """See `patch_volume`; an `Elements`. patch (m,): of each element, palpo.physics.mesh.patches.

    Raises InputError for an element without volume.
    """

    def __init__(self, element: Element, mesh: TetMesh, material: Material) -> None:
        super().__init__(element, mesh, material)
        self.patch = patches_of(mesh.nodes, mesh.tets)
        self.bulk, shear = material.lame()
        self.lame = (0.0, shear)
        self.whole = np.bincount(self.patch, self.volumes)
        self._group(len(mesh.nodes))

    def _group(self, n: int) -> None:
        """The nodes of the patches, of n, and where each element has its own among them (m, 4)."""
        pairs, place = np.unique(self.patch[:, None].astype(np.int64) * n + self.cells, return_inverse=True)
        start = np.searchsorted(pairs, np.arange(len(self.whole) + 1) * n)
        self._nodes, self.places = NodeGroups(start, (pairs % n).astype(np.int32)), place.reshape(-1, 4)

    @property
    def groups(self) -> NodeGroups:
        """See Elements."""
        return self._nodes

    def part(self, which: NDArray[np.int64]) -> "PatchTetrahedra":
        """See Elements. Of whole patches, or of elements on whose others a field does nothing."""
        out = object.__new__(PatchTetrahedra)
        for name in ("cells", "gradients", "volumes", "patch"):
            setattr(out, name, np.ascontiguousarray(getattr(self, name)[which]))
        out.lame, out.bulk, out.whole = self.lame, self.bulk, self.whole
        out._group(int(self.cells.max()) + 1)
        return out

    def _changes(self, field: Floats, rest: float, quats: Floats) -> Floats:
        """theta of the patches (k,) in a field; rest as `patch_changes`."""
        theta = np.empty(len(self.whole))
        patch_changes(
            field, rest, self.cells, self.gradients, self.volumes, self.patch, self.whole, quats, theta
        )
        return theta

    def _add(self, field: Floats, rest: float, quats: Floats, scale: float, force: Floats) -> None:
        """force += scale times that of the patches' tensions in a field."""
        tension = scale * self.bulk * self._changes(field, rest, quats)
        add_patch_tension(self.cells, self.gradients, self.volumes, self.patch, quats, tension, force)

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        super().add_forces(x, quats, force)
        self._add(x, 3.0, quats, -1.0, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        super().add_turned(v, quats, since, scale, force)
        self._add(v, 0.0, quats, scale, force)
        self._add(v, 0.0, since, -scale, force)

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        super().add_stiff(v, quats, scale, force)
        self._add(v, 0.0, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        super().assemble(x, quats, pattern, blocks)
        add_patch_stiffness(
            self.cells, self.gradients, self.volumes, self.patch, self.whole, self.bulk, quats,
            self._nodes.start, self.places, pattern.group_block, blocks,
        )  # fmt: skip

    def tensions(self, x: Floats, quats: Floats) -> Floats:
        """See Tetrahedra."""
        self.largest_turn(x, quats.copy(), quats)
        return np.asarray(self.bulk * self._changes(x, 3.0, quats)[self.patch])

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        shear, theta = super().energy(x, quats), self._changes(x, 3.0, quats)
        return shear + float(0.5 * self.bulk * self.whole @ (theta * theta))


def no_own_stiffness(nodes: Floats, cells: NDArray[np.int32], lam: float, mu: float) -> Any:
    """For Element.stiffness: such an element yields with its patch. Raises InputError."""
    raise InputError(
        "elements that change their volume in patches have no stiffness of their own, which this body needs: "
        "use others, such as tet4."
    )
