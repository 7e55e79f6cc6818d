"""A soft body with cuts: sides part, bear on each other where they are pressed together, or have to tear.

Both sides have nodes of their own (palpo.physics.mesh.cutting). A node and its copy beyond the cut, which is
where that node is at rest, must not go through each other: where the copy has come below, the two are joined
across the cut by a stiffness, without friction. Elements that share their change of volume share it as they
did before the cut, so that a cut that goes on leaves the body's energy as it is.

Where a cut is to be torn first, a bond joins them in all directions, a cohesive law: up to a stress it is
stiff, then the stress falls in proportion to the opening, to nothing where the work over the bond's area has
come to the toughness. Once worn a bond stays so. Source: Camacho & Ortiz, Computational modelling of impact
damage in brittle materials (Int. J. Solids Structures 33, 1996), with one toughness for all directions.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from palpo.physics.bodies.links import add_link_forces, add_links
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.assembly import to_csc
from palpo.physics.fem.material import Material
from palpo.physics.mesh.cut_surface import CutRoom, CutSurface
from palpo.physics.mesh.cutting import CutMesh
from palpo.physics.mesh.patches import patches_of
from palpo.physics.mesh.tet import TetMesh

Floats = NDArray[np.float64]

STIFFER = 10.0
"""Stiffness by which sides bear, by that of an element's side, E h. They go into each other by a tenth of
what an element next to them yields by, and so know from frame to frame that they touch: a hundred times as
stiff they would open and shut by turns."""

BOND = 1e3
"""The same of a bond before it wears, whose opening is to be small to the elements'."""

ELASTIC = 0.56
"""Stiffness of what a bond holds, by E h: two half spaces that a disc of the area h^2 pulls apart, each of
2 a E (K. L. Johnson, Contact Mechanics, 1985, section 3.6)."""

ZONE = 3.0
"""Sides of elements over which a tear gives way at once: by this its stress follows from the toughness, as
sqrt(E G / l) of a length l (Rice 1968), since what is shorter than elements is nothing to a mesh."""

CORNERS = 8
"""Nodes that an inner point on both sides of a cut rides on."""

BESIDE = 1.0
"""Sides of an element by which a copy is aside of its node, at most, for the two to bear on each other."""


class CutBody(SoftBody):
    """A SoftBody of the elements of a `cut`; what else it takes is as there.

    Points of its surface that are no nodes are inner points, in the order of `surface`. fixed: nodes of the
    mesh that was cut, with which their copies are fixed. toughness (c,): of the bonds of the cut's copies
    [J/m2], 0 where it is open, as it is everywhere if not given. room: for a cut that goes on (`cut_on`); of
    its nodes those that are no copies yet are fixed, and of no element. beside: further inner points, which
    may ride on both sides of a cut.
    """

    def __init__(
        self, name: str, cut: CutMesh, material: Material, fixed: ArrayLike = (),
        gravity: ArrayLike = (0.0, -9.81, 0.0), elements: str | None = None,
        toughness: Floats | None = None, room: CutRoom | None = None, beside: int = 0,
    ) -> None:  # fmt: skip
        self.surface = CutSurface(cut, room)
        self._held, self._kind = np.asarray(fixed, np.int64), elements
        self.side = float(np.cbrt(6.0 * cut.mesh.volumes.mean()))
        """Side of a cube of which its elements are parts, in the mean [m]."""
        self._spring = material.youngs_modulus * self.side
        self.toughness = np.zeros(len(cut.copies)) if toughness is None else toughness
        self.bonded = self.toughness > 0.0
        """Which copies hold to their nodes, (c,)."""
        self._widest = np.zeros(len(cut.copies))
        """By how much their bonds have been open so far [m]."""
        self._patches = patches_of(cut.mesh.nodes, cut.mesh.tets)
        self._make(name, cut, material, gravity)
        self.add_inner(len(self.surface.corners) + beside, CORNERS if beside else 4)
        self._place_surface()

    def _make(self, name: str, cut: CutMesh, material: Material, gravity: ArrayLike) -> None:
        """All that follows from a cut, at rest."""
        n, c, nodes = len(cut.mesh.nodes), len(cut.copies), self.surface.nodes
        self.cut = cut
        self._pairs = np.column_stack([cut.copies, n + np.arange(c)]).astype(np.int64)
        """Nodes and their copies, (c, 2)."""
        self.areas = _areas(cut)
        """What of the cut's area is a copy's [m2], (c,)."""
        self._faces = cut.triangles[cut.between >= 0]
        self._facing = _facing(cut, self._faces)
        self._links = np.zeros((c, 3, 3))
        """Stiffness of what joins them, as at the last `linearise` [N/m]."""
        copies, unused = n + np.flatnonzero(np.isin(cut.copies, self._held)), np.arange(n + c, nodes)
        whole = cut.elements
        rest = np.vstack([whole.nodes, np.repeat(whole.nodes[:1], len(unused), axis=0)])
        super().__init__(
            name, TetMesh(rest, whole.tets, whole.filled, patches=self._patches[cut.element]), material,
            np.concatenate([self._held, copies, unused]), gravity, links=self._pairs, elements=self._kind,
        )  # fmt: skip

    def _place_surface(self) -> None:
        points, width = self.surface.corners.shape
        self.inner[:points, :width], self.inner_weights[:points, :width] = (
            self.surface.corners, self.surface.weights,
        )  # fmt: skip

    def at_rest(self) -> Floats:
        """Where its points are at rest [m], (count, 3)."""
        return self.with_inner(self.mesh.nodes)

    def with_inner(self, nodes: Floats) -> Floats:
        """Nodes (n, 3) [m], and the inner points among them, (count, 3)."""
        return np.vstack([nodes, self._inner_of(nodes)])

    def cut_on(
        self, cut: CutMesh, fits: Callable[[NDArray[np.int32]], bool] | None = None
    ) -> NDArray[np.int64] | None:
        """The body after a cut that goes on from its own: where it is, and as it moves.

        What has parted is open, and begins where it was. Returns for each node (n,) the one that it was
        before; None, and nothing is changed, where there is no room for it: see CutSurface.follow.
        """
        if not self.surface.follow(cut, fits):
            return None
        was = _sources(cut, self.cut, self.surface.nodes)
        x, v, more = self.x[was], self.node_velocities()[was], len(cut.copies) - len(self.cut.copies)
        gravity, count, inner = self.gravity, self.count, (self.inner, self.inner_weights)
        opened = np.zeros(more)
        self.toughness, self._widest = np.append(self.toughness, opened), np.append(self._widest, opened)
        self.bonded = np.append(self.bonded, np.zeros(more, bool))
        for kept in ("_symbolic", "mass_free"):
            self.__dict__.pop(kept, None)
        self._make(self.name, cut, self.material, gravity)
        self.count, (self.inner, self.inner_weights) = count, inner
        self._place_surface()
        self.x, self.v = x, v[self.free].reshape(-1)
        self.linearise()
        return was

    def _law(self) -> tuple[Floats, Floats, Floats]:
        """Of each bond what it bears at most [N], and how far open it wears from and is gone at [m]."""
        held = np.maximum(self.toughness, np.finfo(float).tiny)
        stress = np.sqrt(self.material.youngs_modulus * held / (ZONE * self.side))
        most = stress * self.areas
        return most, most / (BOND * self._spring), 2.0 * held / stress

    def _bonds(self) -> Floats:
        """Stiffness of the bonds [N/m], (c,), as they are worn."""
        most, first, last = self._law()
        widest = np.maximum(self._widest, first)
        return np.where(self.bonded, most * (last - widest) / ((last - first) * widest), 0.0)

    def remember(self, h: float) -> None:
        """See SoftBody; bonds are worn by how far they are open now.

        What a bond bore beyond its law it gives to the elements beside it, which open it on as it falls.
        """
        super().remember(h)
        most, first, last = self._law()
        opening = np.linalg.norm(self.x[self._pairs[:, 1]] - self.x[self._pairs[:, 0]], axis=1)
        slope = most / (last - first)
        beyond = self._bonds() * opening - slope * (last - opening)
        left = ELASTIC * self._spring - slope
        on = np.where(left > 0.0, beyond / np.where(left > 0.0, left, 1.0), np.inf)
        wears = (opening > np.maximum(self._widest, first)) & (beyond > 0.0)
        wide = np.where(wears, opening + on, opening)
        np.maximum(self._widest, np.minimum(wide, last), out=self._widest)
        self.bonded &= self._widest < last

    def _join(self) -> Floats:
        """Stiffness of what joins the sides, (c, 3, 3)."""
        apart = self.x[self._pairs[:, 1]] - self.x[self._pairs[:, 0]]
        vertices = self.cut.vertices(self.x[: len(self.cut.nodes)])
        a, b, c = (vertices[self._faces[:, i]] for i in range(3))
        normal = self._facing @ np.cross(b - a, c - a)
        normal /= np.maximum(np.linalg.norm(normal, axis=1), np.finfo(float).tiny)[:, None]
        gap = np.einsum("ki,ki->k", apart, normal)
        aside = np.linalg.norm(apart - gap[:, None] * normal, axis=1)
        pressed = (gap < 0.0) & (aside < BESIDE * self.side)
        normal *= pressed[:, None]
        across = STIFFER * self._spring * normal[:, :, None] * normal[:, None, :]
        return np.asarray(across + self._bonds()[:, None, None] * np.eye(3))

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


def _sources(cut: CutMesh, before: CutMesh, nodes: int) -> NDArray[np.int64]:
    """For each of so many nodes the one that stood in its place before the cut went on."""
    was, first = np.arange(nodes), len(before.mesh.nodes) + len(before.copies)
    earlier = np.broadcast_to(cut.mesh.tets[cut.split].astype(np.int64)[:, None], cut.numbers.shape).copy()
    known = np.flatnonzero(np.isin(cut.split, before.split))
    earlier[known] = before.numbers[np.searchsorted(before.split, cut.split[known])]
    new = cut.numbers >= first
    was[cut.numbers[new]] = earlier[new]
    return was


def _facing(cut: CutMesh, faces: NDArray[np.int32]) -> sp.csr_array:
    """Which facets (t, 3) that a cut has made are of material of each copied node, (c, t): beyond them is
    that of the copy."""
    first = len(cut.nodes)
    node = cut.corners[np.maximum(faces - first, 0)]  # (t, 3, 4)
    used = (cut.weights[np.maximum(faces - first, 0)] > 0.0) & (faces >= first)[:, :, None]
    facet, _, _ = np.nonzero(used)
    of = sp.csr_array((np.ones(len(facet)), (node[used], facet)), shape=(first, len(faces)))
    return of[cut.copies].sign()


def _areas(cut: CutMesh) -> Floats:
    """Half the area of the cut's two sides, shared out among the copies in each element, (c,) [m2]."""
    n, inside = len(cut.mesh.nodes), cut.between >= 0
    a, b, c = (cut.vertices(cut.nodes)[cut.triangles[inside][:, i]] for i in range(3))
    area = 0.25 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    of = np.bincount(np.searchsorted(cut.split, cut.between[inside]), area, len(cut.split))
    out = np.zeros(len(cut.copies))
    for share, numbers in zip(of, cut.numbers, strict=True):
        copies = np.unique(numbers[numbers >= n]) - n
        out[copies] += share / max(1, len(copies))
    return out
