"""Elements of any kind that are known by their stiffness at rest, as the steps of a body ask for them.

With R the rotation nearest to the element's mean deformation gradient F = sum_a x_a g_a^T, g_a the mean of
grad N_a, and u = R^T x - X, an element stores E = u^T K0 u / 2, K0 its stiffness at rest (of hexahedra with
the bubbles condensed out, see `hex8`). R turns with x: with m = sum_a u_a x (K0 u)_a and H = tr(S) I - S,
S = R^T F,

    f_a = -dE/dx_a = -R [(K0 u)_a - (H^-1 m) x g_a].

The second term balances the moment that K0 u has about the displaced corners. It is of second order in the
strain and vanishes under a homogeneous one, where the law is the tetrahedra's; without it a bent body would
turn by itself. The stiffness is R K0 R^T, positive semidefinite as theirs. The number of corners is what the
arrays have.
Source: Felippa & Haugen, A unified formulation of small-strain corotational finite elements (CMAME 2005), for
the moment's balance.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from palpo.physics.fem.assembly import NO_GROUPS, BlockPattern, NodeGroups, local_pairs
from palpo.physics.fem.element import Element, Floats
from palpo.physics.fem.element_rotations import DEGENERATE, extract_rotation, squared_chord, turn_over
from palpo.physics.fem.material import Material
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.physics.numerics.math3 import quat_to_matrix


@kernel
def _turn_element(x, cells, gradients, e, quats, f, r):
    """Mean deformation gradient f (3, 3) and rotation r (3, 3) of element e; refreshes its quats."""
    first = cells[e, 0]
    f[:] = 0.0
    for a in range(1, cells.shape[1]):
        for i in range(3):
            d = x[cells[e, a], i] - x[first, i]
            for j in range(3):
                f[i, j] += d * gradients[e, a, j]
    w, p, q, s = extract_rotation(
        (f[0, 0], f[0, 1], f[0, 2], f[1, 0], f[1, 1], f[1, 2], f[2, 0], f[2, 1], f[2, 2]),
        (quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3]),
    )
    quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3] = w, p, q, s
    quat_to_matrix(quats[e], r)


@kernel
def _own_forces(x, cells, rest, k0, e, r, u, own):
    """u = R^T x - X, about corner 0, and own = K0 u of element e, each (3 c,)."""
    first = cells[e, 0]
    for a in range(cells.shape[1]):
        n = cells[e, a]
        dx, dy, dz = x[n, 0] - x[first, 0], x[n, 1] - x[first, 1], x[n, 2] - x[first, 2]
        for i in range(3):
            u[3 * a + i] = r[0, i] * dx + r[1, i] * dy + r[2, i] * dz - (rest[e, a, i] - rest[e, 0, i])
    own[:] = 0.0
    for j in range(3, u.size):
        # K0 is symmetric: its columns are read as rows
        for i in range(u.size):
            own[i] += k0[e, j, i] * u[j]


@inlined
def _moment(u, own):
    """sum_a u_a x own_a."""
    mx, my, mz = 0.0, 0.0, 0.0
    for a in range(0, u.size, 3):
        mx += u[a + 1] * own[a + 2] - u[a + 2] * own[a + 1]
        my += u[a + 2] * own[a] - u[a] * own[a + 2]
        mz += u[a] * own[a + 1] - u[a + 1] * own[a]
    return mx, my, mz


@inlined
def _balance(f, r, m):
    """H^-1 m; nothing of an element that is flat or inverted, whose H is not positive."""
    xx = r[0, 0] * f[0, 0] + r[1, 0] * f[1, 0] + r[2, 0] * f[2, 0]
    yy = r[0, 1] * f[0, 1] + r[1, 1] * f[1, 1] + r[2, 1] * f[2, 1]
    zz = r[0, 2] * f[0, 2] + r[1, 2] * f[1, 2] + r[2, 2] * f[2, 2]
    # R^T F is symmetric to the last step of Newton's method
    xy = r[0, 0] * f[0, 1] + r[1, 0] * f[1, 1] + r[2, 0] * f[2, 1]
    xz = r[0, 0] * f[0, 2] + r[1, 0] * f[1, 2] + r[2, 0] * f[2, 2]
    yz = r[0, 1] * f[0, 2] + r[1, 1] * f[1, 2] + r[2, 1] * f[2, 2]
    h00, h11, h22, h01, h02, h12 = yy + zz, xx + zz, xx + yy, -xy, -xz, -yz
    c00, c01, c02 = h11 * h22 - h12 * h12, h02 * h12 - h01 * h22, h01 * h12 - h02 * h11
    c11, c12, c22 = h00 * h22 - h02 * h02, h01 * h02 - h00 * h12, h00 * h11 - h01 * h01
    determinant = h00 * c00 + h01 * c01 + h02 * c02
    if not (h00 > DEGENERATE and c22 > DEGENERATE and determinant > DEGENERATE):
        return 0.0, 0.0, 0.0
    s = 1.0 / determinant
    return (
        s * (c00 * m[0] + c01 * m[1] + c02 * m[2]),
        s * (c01 * m[0] + c11 * m[1] + c12 * m[2]),
        s * (c02 * m[0] + c12 * m[1] + c22 * m[2]),
    )


@kernel
def add_matrix_forces(x, cells, rest, gradients, k0, quats, force):
    """force += f_int [N], shape (n_nodes, 3), at positions x (n_nodes, 3); refreshes quats (m, 4)."""
    f, r = np.empty((3, 3)), np.empty((3, 3))
    u, own = np.empty(k0.shape[1]), np.empty(k0.shape[1])
    for e in range(cells.shape[0]):
        _turn_element(x, cells, gradients, e, quats, f, r)
        _own_forces(x, cells, rest, k0, e, r, u, own)
        bx, by, bz = _balance(f, r, _moment(u, own))
        for a in range(cells.shape[1]):
            gx, gy, gz = gradients[e, a, 0], gradients[e, a, 1], gradients[e, a, 2]
            px = own[3 * a] - (by * gz - bz * gy)
            py = own[3 * a + 1] - (bz * gx - bx * gz)
            pz = own[3 * a + 2] - (bx * gy - by * gx)
            for i in range(3):
                force[cells[e, a], i] -= r[i, 0] * px + r[i, 1] * py + r[i, 2] * pz


@kernel
def matrix_energy(x, cells, rest, gradients, k0, quats):
    """Sum over elements of u^T K0 u / 2 [J]; refreshes quats."""
    f, r = np.empty((3, 3)), np.empty((3, 3))
    u, own = np.empty(k0.shape[1]), np.empty(k0.shape[1])
    energy = 0.0
    for e in range(cells.shape[0]):
        _turn_element(x, cells, gradients, e, quats, f, r)
        _own_forces(x, cells, rest, k0, e, r, u, own)
        for i in range(u.size):
            energy += 0.5 * u[i] * own[i]
    return energy


@kernel
def largest_matrix_turn(x, cells, gradients, since, quats):
    """Largest angle [rad] of an element's turn from its rotation `since` (m, 4); refreshes quats (m, 4)."""
    f, r = np.empty((3, 3)), np.empty((3, 3))
    chord = 0.0
    for e in range(cells.shape[0]):
        _turn_element(x, cells, gradients, e, quats, f, r)
        chord = max(chord, squared_chord(quats, since, e))
    return turn_over(chord)


@kernel
def add_turned_matrices(v, cells, k0, quats, since, scale, force):
    """As `palpo.physics.fem.corotational.add_turned_stiffness`, of these elements."""
    r, u, own = np.empty((3, 3)), np.empty(k0.shape[1]), np.empty(k0.shape[1])
    for e in range(cells.shape[0]):
        _add_product(v, cells, k0, e, quats, scale, r, u, own, force)
        _add_product(v, cells, k0, e, since, -scale, r, u, own, force)


@kernel
def add_matrix_product(v, cells, k0, quats, scale, force):
    """As `palpo.physics.fem.corotational.add_warped_product`, of these elements."""
    r, u, own = np.empty((3, 3)), np.empty(k0.shape[1]), np.empty(k0.shape[1])
    for e in range(cells.shape[0]):
        _add_product(v, cells, k0, e, quats, scale, r, u, own, force)


@inlined
def _add_product(v, cells, k0, e, quats, scale, r, u, own, force):
    """force += scale R K0 R^T v of element e, its rotation in quats (m, 4); r, u, own: scratch."""
    quat_to_matrix(quats[e], r)
    for a in range(cells.shape[1]):
        x, y, z = v[cells[e, a], 0], v[cells[e, a], 1], v[cells[e, a], 2]
        for i in range(3):
            u[3 * a + i] = r[0, i] * x + r[1, i] * y + r[2, i] * z
    own[:] = 0.0
    for j in range(u.size):
        for i in range(u.size):
            own[i] += k0[e, j, i] * u[j]
    for a in range(cells.shape[1]):
        for i in range(3):
            f = r[i, 0] * own[3 * a] + r[i, 1] * own[3 * a + 1] + r[i, 2] * own[3 * a + 2]
            force[cells[e, a], i] += scale * f


@kernel
def assemble_matrices(x, cells, gradients, k0, quats, pair_block, blocks):
    """Lower blocks of the sum of R K0 R^T [N/m], shape (n_blocks, 9); refreshes quats.

    pair_block (m, p): block of local pairs (0,0) (1,0) (1,1) (2,0) ..., or -1 where a node is fixed.
    """
    blocks[:] = 0.0
    f, r, t = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for e in range(cells.shape[0]):
        _turn_element(x, cells, gradients, e, quats, f, r)
        pair = 0
        for a in range(cells.shape[1]):
            for b in range(a + 1):
                k = pair_block[e, pair]
                pair += 1
                if k < 0:
                    continue
                for i in range(3):
                    k_x, k_y, k_z = (
                        k0[e, 3 * a, 3 * b + i],
                        k0[e, 3 * a + 1, 3 * b + i],
                        k0[e, 3 * a + 2, 3 * b + i],
                    )
                    for j in range(3):
                        t[j, i] = r[j, 0] * k_x + r[j, 1] * k_y + r[j, 2] * k_z
                for i in range(3):
                    for j in range(3):
                        blocks[k, 3 * i + j] += t[i, 0] * r[j, 0] + t[i, 1] * r[j, 1] + t[i, 2] * r[j, 2]


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
        self.k0 = 0.5 * (k + k.transpose(0, 2, 1)) * material.stiffness_of(len(cells))[:, None, None]

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
