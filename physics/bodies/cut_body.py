"""A soft body with cuts: those that are open, and those whose sides hold together until something parts them.

Both sides of a cut have nodes of their own from the beginning (palpo.physics.mesh.cutting). Where it is not
open yet, each further node is bonded to the one that it is a copy of, by a stiffness against which that of
the material is small. To part them takes no other elements and no other pattern: the bond goes. Where
open sides are pressed together again they bear on each other, without friction, by the same stiffness across
the cut.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
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

BESIDE = 1.0
"""Sides of an element by which a copy is aside of its node, at most, for the two to bear on each other."""


class CutBody(SoftBody):
    """A SoftBody of the elements of a `cut`; what else it takes is as there.

    Points of its surface that are no nodes are inner points, in the order of the cut. fixed: nodes of the
    mesh that was cut, with which their copies are fixed. bonded (c,): which of the cut's copies hold to their
    nodes at first, none if not given.
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
        self._side = float(np.cbrt(6.0 * cut.mesh.volumes.mean()))
        self._bond = STIFFER * material.youngs_modulus * self._side
        self._faces = cut.triangles[cut.between >= 0]
        self._facing = _facing(cut, self._faces)
        self._links = np.zeros((c, 3, 3))
        """Stiffness of what joins them, as at the last `linearise` [N/m]."""
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

    def _join(self) -> Floats:
        """Stiffness of the bonds, and across the cut where open sides are pressed together, (c, 3, 3)."""
        apart = self.x[self.bonds[:, 1]] - self.x[self.bonds[:, 0]]
        a, b, c = (self.cut.vertices(self.x)[self._faces[:, i]] for i in range(3))
        normal = self._facing @ np.cross(b - a, c - a)
        normal /= np.maximum(np.linalg.norm(normal, axis=1), np.finfo(float).tiny)[:, None]
        gap = np.einsum("ki,ki->k", apart, normal)
        aside = np.linalg.norm(apart - gap[:, None] * normal, axis=1)
        pressed = ~self.bonded & (gap < 0.0) & (aside < BESIDE * self._side)
        across = normal[:, :, None] * normal[:, None, :]
        weights = np.where(self.bonded[:, None, None], np.eye(3), pressed[:, None, None] * across)
        return np.asarray(self._bond * weights)

    def linearise(self) -> None:
        """See SoftBody; with what joins the sides."""
        super().linearise()
        self._links = self._join()
        add_links(self.bonds, self._links, self._pattern, self._blocks)

    def rest_stiffness(self) -> Any:
        """See SoftBody; with the bonds."""
        blocks = np.zeros((len(self._pattern.rows), 9))
        add_links(self.bonds, self._links, self._pattern, blocks)
        return super().rest_stiffness() + to_csc(self._pattern, blocks)

    def _add_internal(self, force: Floats, h: float) -> None:
        super()._add_internal(force, h)
        add_link_forces(self.bonds, self._links, self.x, force)

    def energy(self) -> float:
        """See SoftBody; with the bonds."""
        apart = self.x[self.bonds[:, 1]] - self.x[self.bonds[:, 0]]
        return super().energy() + 0.5 * float(np.einsum("ki,kij,kj->", apart, self._links, apart))

    def facet_yield(self, triangles: NDArray[np.int32]) -> Floats:
        """See SoftBody: nothing, since facets of a cut end inside of elements."""
        return np.zeros(len(triangles))


def _facing(cut: CutMesh, faces: NDArray[np.int32]) -> sp.csr_array:
    """Which facets (t, 3) that a cut has made are of material of each copied node, (c, t): beyond them is
    that of the copy."""
    first = len(cut.nodes)
    node = cut.corners[np.maximum(faces - first, 0)]  # (t, 3, 4)
    used = (cut.weights[np.maximum(faces - first, 0)] > 0.0) & (faces >= first)[:, :, None]
    facet, _, _ = np.nonzero(used)
    of = sp.csr_array((np.ones(len(facet)), (node[used], facet)), shape=(first, len(faces)))
    return of[cut.copies].sign()
