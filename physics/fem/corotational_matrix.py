"""Corotational elements that are known by their stiffness at rest: internal forces and the warped stiffness.

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

import numpy as np

from palpo.physics.fem.element_rotations import DEGENERATE, extract_rotation, squared_chord, turn_over
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
