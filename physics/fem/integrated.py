"""Elements of any law, integrated at points: what the steps of a body ask of them.

With gradients g_a of the shape functions at the points, of weights w, F = sum_a x_a g_a^T,

    E = sum w Psi(F),    f_a = -sum w P(F) g_a,    K_ab = sum w g_a . dP/dF . g_b.

Steps are made with dP/dF without its negative part, point by point, so that the matrix is never negative
(Teran, Sifakis, Irving & Fedkiw, Robust quasistatic finite elements and flesh simulation, SCA 2005).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern, local_pairs
from palpo.physics.fem.element import Element, Floats
from palpo.physics.fem.laws import Law
from palpo.physics.fem.material import Material
from palpo.physics.fem.turned_stiffness import TurnedStiffness


class Integrated(TurnedStiffness):
    """An `Elements`. How far elements have turned, and products with a kept stiffness, are those of their
    stiffness at rest, which turns with them. Raises InputError as the Element does."""

    def __init__(self, element: Element, mesh: Any, material: Material, law: Law) -> None:
        super().__init__(element, mesh, material)
        assert element.points is not None
        self.law = law
        order = np.argsort(mesh.cells, axis=1)
        weights, slopes = element.points(np.asarray(mesh.nodes, dtype=np.float64), mesh.cells)
        self.weights, self.slopes = weights, np.take_along_axis(slopes, order[:, None, :, None], axis=2)

    def part(self, which: NDArray[np.int64]) -> "Integrated":
        """See Elements."""
        out = object.__new__(Integrated)
        out.law = self.law
        for name in ("cells", "rest", "gradients", "shares", "k0", "weights", "slopes"):
            setattr(out, name, np.ascontiguousarray(getattr(self, name)[which]))
        return out

    def _deformation(self, x: Floats) -> Floats:
        """F at all points, (m q, 3, 3)."""
        at = x[self.cells] - x[self.cells[:, :1]]
        return (at.transpose(0, 2, 1)[:, None] @ self.slopes).reshape(-1, 3, 3)

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        stress = self.law.stress(self._deformation(x)).reshape(*self.weights.shape, 3, 3)
        pulled = np.einsum("eq,eqij,eqaj->eai", self.weights, stress, self.slopes, optimize=True)
        np.subtract.at(force, self.cells, pulled)

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(self.weights.ravel() @ self.law.energy(self._deformation(x)))

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        self.largest_turn(x, quats.copy(), quats)
        blocks[:] = 0.0
        self._add(self._parts(x)[0], pattern.pair_block, blocks)

    def add_geometric(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        self._add(self._parts(x)[1], pattern.pair_block, blocks)

    def _parts(self, x: Floats) -> tuple[Floats, Floats]:
        """dP/dF without its negative part, and that, each (m q, 9, 9)."""
        tangent = self.law.tangent(self._deformation(x))
        values, shapes = np.linalg.eigh(tangent)
        below = (shapes * np.minimum(values, 0.0)[:, None, :]) @ shapes.transpose(0, 2, 1)
        return tangent - below, below

    def _add(self, moduli: Floats, pair_block: NDArray[np.int32], blocks: Floats) -> None:
        """blocks += the sum over elements of w g_a . D . g_b, D (m q, 9, 9)."""
        d = moduli.reshape(*self.weights.shape, 3, 3, 3, 3)
        near = np.einsum("eq,eqaj,eqijkl->eqaikl", self.weights, self.slopes, d, optimize=True)
        whole = np.einsum("eqaikl,eqbl->eabik", near, self.slopes, optimize=True)
        for k, (one, other) in enumerate(local_pairs(self.cells.shape[1])):
            inside = np.flatnonzero(pair_block[:, k] >= 0)
            np.add.at(blocks, pair_block[inside, k], whole[inside, one, other].reshape(-1, 9))
