"""A soft body with cuts: those that are open, and those whose sides hold together until something parts them.

Both sides of a cut have nodes of their own from the beginning (palpo.physics.mesh.cutting). Where it is not
open yet, each further node is bonded to the one that it is a copy of, by a stiffness against which that of
the material is small. To part them takes no other elements and no other pattern: the bond goes.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.links import add_link_forces, add_links
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.assembly import to_csc
from palpo.physics.fem.material import Material
from palpo.physics.mesh.cutting import CutMesh

Floats = NDArray[np.float64]

STIFFER = 1e3
"""Stiffness of a bond by that of an element's side, E h: what it opens by is as little to what the element
next to it yields by."""


class CutBody(SoftBody):
    """A SoftBody of the elements of a `cut`; what else it takes is as there.

    Points of its surface that are no nodes are inner points, in the order of the cut. fixed: nodes of the mesh
    that was cut, with which their copies are fixed. bonded (c,): which of the cut's copies hold to their nodes
    at first, none if not given.
    """

    def __init__(
        self, name: str, cut: CutMesh, material: Material, fixed: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0), bonded: NDArray[np.bool_] | None = None,
        elements: str | None = None,
    ) -> None:  # fmt: skip
        n, c = len(cut.mesh.nodes), len(cut.copies)
        self.cut = cut
        self.bonds = np.column_stack([cut.copies, n + np.arange(c)]).astype(np.int64)
        """Nodes and copies that a bond joins, (c, 2)."""
        self.bonded = np.zeros(c, np.bool_) if bonded is None else bonded.copy()
        """Which of them still do, (c,)."""
        side = float(np.cbrt(6.0 * cut.mesh.volumes.mean()))
        self._bond = STIFFER * material.youngs_modulus * side
        held = np.asarray(fixed, np.int64)
        copies = n + np.flatnonzero(np.isin(cut.copies, held))
        super().__init__(
            name, cut.elements, material, np.concatenate([held, copies]), gravity, links=self.bonds,
            elements=elements,
        )  # fmt: skip
        self.add_inner(*cut.corners.shape)
        self.inner[:], self.inner_weights[:] = cut.corners, cut.weights
        self.parted = 0
        """How often bonds have gone."""

    def part(self, which: NDArray[np.intp]) -> None:
        """Bonds `which` are no more; from the next `linearise` on the stiffness is without them."""
        self.bonded[which] = False
        self.parted += 1

    def _stiffness(self) -> Floats:
        return np.where(self.bonded, self._bond, 0.0)[:, None, None] * np.eye(3)

    def linearise(self) -> None:
        """See SoftBody; with the bonds."""
        super().linearise()
        add_links(self.bonds, self._stiffness(), self._pattern, self._blocks)

    def rest_stiffness(self) -> Any:
        """See SoftBody; with the bonds."""
        blocks = np.zeros((len(self._pattern.rows), 9))
        add_links(self.bonds, self._stiffness(), self._pattern, blocks)
        return super().rest_stiffness() + to_csc(self._pattern, blocks)

    def _add_internal(self, force: Floats, h: float) -> None:
        super()._add_internal(force, h)
        add_link_forces(self.bonds, self._stiffness(), self.x, force)

    def energy(self) -> float:
        """See SoftBody; with the bonds."""
        apart = self.x[self.bonds[:, 0]] - self.x[self.bonds[:, 1]]
        return super().energy() + 0.5 * self._bond * float((apart[self.bonded] ** 2).sum())

    def facet_yield(self, triangles: NDArray[np.int32]) -> Floats:
        """See SoftBody: nothing, since facets of a cut end inside of elements."""
        return np.zeros(len(triangles))
