"""A soft body with cuts, whose sides part, and bear on each other where they are pressed together.

Both sides have nodes of their own (palpo.physics.mesh.cutting). A node and its copy beyond the cut, which is
where that node is at rest, must not go through each other: where the copy has come below, the two are joined
across the cut by a stiffness, without friction.
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

STIFFER = 10.0
"""Stiffness by which sides bear, by that of an element's side, E h. They go into each other by a tenth of
what an element next to them yields by, and so know from frame to frame that they touch: a hundred times as
stiff they would open and shut by turns."""

BESIDE = 1.0
"""Sides of an element by which a copy is aside of its node, at most, for the two to bear on each other."""


class CutBody(SoftBody):
    """A SoftBody of the elements of a `cut`; what else it takes is as there.

    Points of its surface that are no nodes are inner points, in the order of the cut. fixed: nodes of the
    mesh that was cut, with which their copies are fixed.
    """

    def __init__(
        self, name: str, cut: CutMesh, material: Material, fixed: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0), elements: str | None = None,
    ) -> None:  # fmt: skip
        n, c = len(cut.mesh.nodes), len(cut.copies)
        self.cut = cut
        self._pairs = np.column_stack([cut.copies, n + np.arange(c)]).astype(np.int64)
        """Nodes and their copies, (c, 2)."""
        self._side = float(np.cbrt(6.0 * cut.mesh.volumes.mean()))
        self._bearing = STIFFER * material.youngs_modulus * self._side
        self._faces = cut.triangles[cut.between >= 0]
        self._facing = _facing(cut, self._faces)
        self._links = np.zeros((c, 3, 3))
        """Stiffness of what joins them where they are pressed together, as at the last `linearise` [N/m]."""
        held = np.asarray(fixed, np.int64)
        copies = n + np.flatnonzero(np.isin(cut.copies, held))
        super().__init__(
            name, cut.elements, material, np.concatenate([held, copies]), gravity, links=self._pairs,
            elements=elements,
        )  # fmt: skip
        self.add_inner(*cut.corners.shape)
        self.inner[:], self.inner_weights[:] = cut.corners, cut.weights

    def _join(self) -> Floats:
        """Stiffness across the cut where the sides are pressed together, (c, 3, 3)."""
        apart = self.x[self._pairs[:, 1]] - self.x[self._pairs[:, 0]]
        a, b, c = (self.cut.vertices(self.x)[self._faces[:, i]] for i in range(3))
        normal = self._facing @ np.cross(b - a, c - a)
        normal /= np.maximum(np.linalg.norm(normal, axis=1), np.finfo(float).tiny)[:, None]
        gap = np.einsum("ki,ki->k", apart, normal)
        aside = np.linalg.norm(apart - gap[:, None] * normal, axis=1)
        pressed = (gap < 0.0) & (aside < BESIDE * self._side)
        normal *= pressed[:, None]
        return np.asarray(self._bearing * normal[:, :, None] * normal[:, None, :])

    def linearise(self) -> None:
        """See SoftBody; with what joins the sides."""
        super().linearise()
        self._links = self._join()
        add_links(self._pairs, self._links, self._pattern, self._blocks)

    def rest_stiffness(self) -> Any:
        """See SoftBody; with what joins the sides."""
        blocks = np.zeros((len(self._pattern.rows), 9))
        add_links(self._pairs, self._links, self._pattern, blocks)
        return super().rest_stiffness() + to_csc(self._pattern, blocks)

    def _add_internal(self, force: Floats, h: float) -> None:
        super()._add_internal(force, h)
        add_link_forces(self._pairs, self._links, self.x, force)

    def energy(self) -> float:
        """See SoftBody; with what joins the sides."""
        apart = self.x[self._pairs[:, 1]] - self.x[self._pairs[:, 0]]
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
