"""Elements of any kind that are known by their stiffness at rest, as the steps of a body ask for them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.fem.assembly import NO_GROUPS, BlockPattern, NodeGroups, local_pairs
from palpo.physics.fem.corotational_matrix import (
    add_matrix_forces,
    add_matrix_product,
    add_turned_matrices,
    assemble_matrices,
    largest_matrix_turn,
    matrix_energy,
)
from palpo.physics.fem.element import Element, Floats
from palpo.physics.fem.element_rotations import DEGENERATE
from palpo.physics.fem.material import Material


class TurnedStiffness:
    """See `corotational_matrix`; an `Elements`. Raises InputError as the Element does."""

    def __init__(self, element: Element, mesh: Any, material: Material) -> None:
        nodes, cells = np.asarray(mesh.nodes, dtype=np.float64), mesh.cells
        c = cells.shape[1]
        k = element.stiffness(nodes, cells, *material.lame()).reshape(-1, c, 3, c, 3)
        order = np.argsort(cells, axis=1)
        each = np.arange(len(cells))[:, None]
        self.cells = cells[each, order].astype(np.int32)
        self.rest = nodes[self.cells]
        self.gradients = np.ascontiguousarray(element.gradients(nodes, cells)[each, order])
        self.shares = element.volumes(nodes, cells)[each, order]
        k = k[each, order].transpose(0, 3, 4, 1, 2)[each, order].reshape(-1, 3 * c, 3 * c)
        # rounding leaves it unsymmetric in the last digit
        self.k0 = 0.5 * (k + k.transpose(0, 2, 1))

    @property
    def groups(self) -> NodeGroups:
        """See Elements: none."""
        return NO_GROUPS

    def part(self, which: NDArray[np.int64]) -> "TurnedStiffness":
        """See Elements."""
        out = object.__new__(TurnedStiffness)
        for name in ("cells", "rest", "gradients", "shares", "k0"):
            setattr(out, name, np.ascontiguousarray(getattr(self, name)[which]))
        return out

    def apart(self) -> "TurnedStiffness":
        """See Elements."""
        out = self.part(np.arange(len(self.cells)))
        out.cells = np.arange(self.cells.size, dtype=np.int32).reshape(self.cells.shape)
        return out

    def add_forces(self, x: Floats, quats: Floats, force: Floats) -> None:
        """See Elements."""
        add_matrix_forces(x, self.cells, self.rest, self.gradients, self.k0, quats, force)

    def add_turned(self, v: Floats, quats: Floats, since: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_turned_matrices(v, self.cells, self.k0, quats, since, scale, force)

    def add_stiff(self, v: Floats, quats: Floats, scale: float, force: Floats) -> None:
        """See Elements."""
        add_matrix_product(v, self.cells, self.k0, quats, scale, force)

    def assemble(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements."""
        assemble_matrices(x, self.cells, self.gradients, self.k0, quats, pattern.pair_block, blocks)

    def add_geometric(self, x: Floats, quats: Floats, pattern: BlockPattern, blocks: Floats) -> None:
        """See Elements. An element that is flat or inverted adds nothing.

        With y = R^T x, q the force over -R, b = H^-1 m and all [.]x by corners: the turn is w = G d of
        d = R^T dx, G = H^-1 [g]x, the strain u changes by d + Y w, Y = [y]x, and

            dq = K0 (d + Y w) + [g]x (H^-1 (dm - dH b)) + w x q.
        """
        self.largest_turn(x, quats.copy(), quats)
        axes = Rotation.from_quat(quats, scalar_first=True).as_matrix()
        at = x[self.cells] - x[self.cells[:, :1]]
        y = at @ axes
        u = y - (self.rest - self.rest[:, :1])
        m, c = self.cells.shape
        p = (self.k0 @ u.reshape(m, -1, 1)).reshape(m, c, 3)
        stretch = y.transpose(0, 2, 1) @ self.gradients
        stretch = 0.5 * (stretch + stretch.transpose(0, 2, 1))
        h = np.trace(stretch, axis1=1, axis2=2)[:, None, None] * np.eye(3) - stretch
        sound = np.linalg.eigvalsh(h)[:, 0] > DEGENERATE
        inverse = np.linalg.inv(np.where(sound[:, None, None], h, np.eye(3)))
        b = (inverse @ np.cross(u, p).sum(axis=1)[:, :, None])[:, :, 0]
        q = p - np.cross(b[:, None], self.gradients)
        g, arm = _cross(self.gradients), _cross(y)
        turn = inverse @ _side(g)
        strained = np.eye(3 * c) + _stack(arm) @ turn
        stress = self.k0 @ strained
        moment = _side(_cross(u)) @ stress - _side(_cross(p)) @ strained
        # dS = sum d_a g_a^T - w x S, whose trace the turn leaves alone
        along = (self.gradients @ b[:, :, None])[:, :, 0]
        grown = np.einsum("ea,ij->eiaj", along, np.eye(3)).reshape(m, 3, -1)
        bulk = b[:, :, None] * self.gradients.reshape(m, 1, -1)
        moment -= bulk - grown - _cross((stretch @ b[:, :, None])[:, None, :, 0])[:, 0] @ turn
        tangent = stress + _stack(g) @ (inverse @ moment) - _stack(_cross(q)) @ turn - self.k0
        tangent[~sound] = 0.0
        whole = np.einsum("eij,eajbk,elk->eabil", axes, tangent.reshape(m, c, 3, c, 3), axes, optimize=True)
        for k, (one, other) in enumerate(local_pairs(c)):
            inside = np.flatnonzero(pattern.pair_block[:, k] >= 0)
            np.add.at(blocks, pattern.pair_block[inside, k], whole[inside, one, other].reshape(-1, 9))

    def largest_turn(self, x: Floats, since: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(largest_matrix_turn(x, self.cells, self.gradients, since, quats))

    def energy(self, x: Floats, quats: Floats) -> float:
        """See Elements."""
        return float(matrix_energy(x, self.cells, self.rest, self.gradients, self.k0, quats))


def _cross(a: Floats) -> Floats:
    """[a]x of vectors (m, c, 3), shape (m, c, 3, 3)."""
    out = np.zeros((*a.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        out[..., i, k], out[..., k, i] = a[..., j], -a[..., j]
    return out


def _side(a: Floats) -> Floats:
    """Blocks (m, c, 3, 3) beside each other, shape (m, 3, 3 c)."""
    return np.ascontiguousarray(a.transpose(0, 2, 1, 3)).reshape(len(a), 3, -1)


def _stack(a: Floats) -> Floats:
    """Blocks (m, c, 3, 3) below each other, shape (m, 3 c, 3)."""
    return a.reshape(len(a), -1, 3)
