"""Elements of any law, integrated at points: what the steps of a body ask of them.

With gradients g_a of the shape functions at the points, of weights w, F = sum_a x_a g_a^T,

    E = sum w Psi(F),    f_a = -sum w P(F) g_a,    K_ab = sum w g_a . dP/dF . g_b.

Steps are made with dP/dF without its negative part, point by point, so that the matrix is never negative
(Teran, Sifakis, Irving & Fedkiw, Robust quasistatic finite elements and flesh simulation, SCA 2005).
Where elements change their volume in patches, lam / 2 (J - 1)^2 of the law's energy is of the patch's mean
of J, as in `patch_volume`, with b_p = sum_e V_e dJ_e/dx / V_p.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.assembly import BlockPattern, NodeGroups
from palpo.physics.fem.element import Element, Elements, Floats
from palpo.physics.fem.law import IsotropicLaw
from palpo.physics.fem.material import Material
from palpo.physics.fem.patch_tetrahedra import PatchTetrahedra
from palpo.physics.fem.patch_volume import add_pair_products
from palpo.physics.fem.point_stiffness import (
    add_point_forces,
    add_point_stiffness,
    patch_slopes,
    point_gradients,
)
from palpo.physics.fem.principal import ENERGY, RESPONSE, add_volume_change, decompose


class Integrated:
    """An `Elements`. How far elements have turned, and products with a kept stiffness, are those of the same
    elements under Hooke's law. Raises InputError as the Element does."""

    def __init__(self, element: Element, mesh: Any, material: Material, law: IsotropicLaw) -> None:
        assert element.points is not None
        order = np.argsort(mesh.cells, axis=1)
        weights, slopes = element.points(np.asarray(mesh.nodes, dtype=np.float64), mesh.cells)
        slopes = np.ascontiguousarray(np.take_along_axis(slopes, order[:, None, :, None], axis=2))
        self._take(law, element.moving(element, mesh, material), weights, slopes)

    def _take(self, law: IsotropicLaw, hooke: Elements, weights: Floats, slopes: Floats) -> None:
        self.law, self.hooke, self.weights, self.slopes = law, hooke, weights, slopes
        self.cells, self.gradients = hooke.cells, hooke.gradients
        k, self._at = weights.size, np.zeros((0, 3))
        self._f, self._u, self._v = np.empty((k, 3, 3)), np.empty((k, 3, 3)), np.empty((k, 3, 3))
        self._s, self._response, self._tension = np.empty((k, 3)), np.empty((k, RESPONSE)), np.empty(k)

    @property
    def groups(self) -> NodeGroups:
        """See Elements."""
        return self.hooke.groups

    @property
    def shares(self) -> Floats:
        """See Elements."""
        return self.hooke.shares

    def part(self, which: NDArray[np.int64]) -> "Integrated":
        """See Elements."""
        out = object.__new__(type(self))
        weights, slopes = np.ascontiguousarray(self.weights[which]), np.ascontiguousarray(self.slopes[which])
        out._take(self.law, self.hooke.part(which), weights, slopes)
        return out

    def apart(self) -> "Integrated":
        """See Elements."""
        out = object.__new__(type(self))
        out._take(self.law, self.hooke.apart(), self.weights, self.slopes)
        return out

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        self._respond(x)
        add_point_forces(self.cells, self.slopes, self.weights, self._u, self._v, self._response, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        self.hooke.add_turned(v, quats, since, scale, force)

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        self.hooke.add_stiff(v, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        self.hooke.largest_turn(x, quats, quats)
        blocks[:] = 0.0
        self._respond(x)
        self._add_stiffness(False, pattern, blocks)

    def add_geometric(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        self._respond(x)
        self._add_stiffness(True, pattern, blocks)

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """See Elements."""
        return self.hooke.largest_turn(x, since, quats)

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        self._respond(x)
        return float(self.weights.ravel() @ self._response[:, ENERGY])

    def _respond(self, x: Floats) -> None:
        """What the law says at all points; known where no node has moved since."""
        if np.array_equal(x, self._at):
            return
        self._at = x.copy()
        point_gradients(x, self.cells, self.slopes, self._f)
        decompose(self._f, self._u, self._v, self._s)
        self.law.response(self.law.constants, self._s, self._response)
        self._add_volume_change()

    def _add_volume_change(self) -> None:
        self._tension[:] = -self.law.pull
        add_volume_change(self._s, self.law.bulk, self._tension, self._response)

    def _add_stiffness(self, negative: bool, pattern: BlockPattern, blocks: Floats) -> None:
        add_point_stiffness(
            self.cells, self.slopes, self.weights, self._u, self._v, self._response, negative,
            pattern.pair_block, blocks,
        )  # fmt: skip


class PatchIntegrated(Integrated):
    """The same of linear tetrahedra that change their volume in patches."""

    hooke: PatchTetrahedra

    def _changes(self) -> Floats:
        """Mean of J - 1 of the patches (k,)."""
        shares = self.weights[:, 0] * (self._s.prod(axis=1) - 1.0)
        return np.bincount(self.hooke.patch, shares, len(self.hooke.whole)) / self.hooke.whole

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        own, grown = super().energy(x, quats), self._changes()
        # forces are those of elements under the tension of their patch, whose energy is half of its work
        return own - 0.5 * self.law.lam * float(self.hooke.whole @ grown**2)

    def _add_volume_change(self) -> None:
        self._tension[:] = self.law.lam * self._changes()[self.hooke.patch] - self.law.pull
        add_volume_change(self._s, self.law.bulk - self.law.lam, self._tension, self._response)

    def _add_stiffness(self, negative: bool, pattern: BlockPattern, blocks: Floats) -> None:
        super()._add_stiffness(negative, pattern, blocks)
        if not negative:
            start, places = self.hooke.groups.start, self.hooke.places
            b = np.empty((start[-1], 3))
            patch_slopes(self.cells, self.slopes, self.weights, self._u, self._v, self._s, places, b)
            add_pair_products(b, self.law.lam / self.hooke.whole, start, pattern.group_block, blocks)
