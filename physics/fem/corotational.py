"""Corotational linear tetrahedra: internal forces and the warped stiffness.

With R the rotation nearest to the deformation gradient F (`element_rotations`), the force of an element is
f_e = -R K0 (R^T x - X) and its stiffness R K0 R^T, without the geometric term so that it stays positive
semidefinite (EQUATIONS.md, section 1). For the linear tetrahedron both follow from the gradients alone:
f_a = -V R sigma(R^T F - I) g_a, and R K0 R^T is K0 written with the turned gradients R g_a.
"""

import numpy as np

from palpo.physics.fem.element_rotations import (
    DEGENERATE,
    GRADIENT,
    LANES,
    ROTATION,
    ROWS,
    STATE,
    deformation,
    find_rotations,
    matrix_of,
    nine,
    put_nine,
    squared_chord,
    turn_over,
)
from palpo.physics.numerics.kernels import inlined, kernel


@inlined
def _stretch(f, r):
    """sym(R^T F) of a gradient F in the unrotated element's axes, as (xx, yy, zz, xy, xz, yz)."""
    xx = r[0] * f[0] + r[3] * f[3] + r[6] * f[6]
    yy = r[1] * f[1] + r[4] * f[4] + r[7] * f[7]
    zz = r[2] * f[2] + r[5] * f[5] + r[8] * f[8]
    xy = 0.5 * (r[0] * f[1] + r[3] * f[4] + r[6] * f[7] + r[1] * f[0] + r[4] * f[3] + r[7] * f[6])
    xz = 0.5 * (r[0] * f[2] + r[3] * f[5] + r[6] * f[8] + r[2] * f[0] + r[5] * f[3] + r[8] * f[6])
    yz = 0.5 * (r[1] * f[2] + r[4] * f[5] + r[7] * f[8] + r[2] * f[1] + r[5] * f[4] + r[8] * f[7])
    return xx, yy, zz, xy, xz, yz


@inlined
def _strain(f, r):
    """Small strain of the unrotated element, sym(R^T F) - I, as (xx, yy, zz, xy, xz, yz)."""
    xx, yy, zz, xy, xz, yz = _stretch(f, r)
    return xx - 1.0, yy - 1.0, zz - 1.0, xy, xz, yz


@inlined
def _turned_stress(strain, r, lam, mu, share):
    """share R sigma of a strain in the unrotated element's axes, row by row."""
    xx, yy, zz, xy, xz, yz = strain
    s, p = 2.0 * mu * share, (lam * (xx + yy + zz)) * share
    xx, yy, zz, xy, xz, yz = s * xx + p, s * yy + p, s * zz + p, s * xy, s * xz, s * yz
    return (
        r[0] * xx + r[1] * xy + r[2] * xz,
        r[0] * xy + r[1] * yy + r[2] * yz,
        r[0] * xz + r[1] * yz + r[2] * zz,
        r[3] * xx + r[4] * xy + r[5] * xz,
        r[3] * xy + r[4] * yy + r[5] * yz,
        r[3] * xz + r[4] * yz + r[5] * zz,
        r[6] * xx + r[7] * xy + r[8] * xz,
        r[6] * xy + r[7] * yy + r[8] * yz,
        r[6] * xz + r[7] * yz + r[8] * zz,
    )


@kernel
def _stresses(a, volumes, first, lam, mu):
    """-V R sigma of a group of elements, in place of their deformation gradients."""
    last = volumes.size - 1
    for k in range(LANES):
        # elements that repeat the last one are not added
        a[STATE * LANES + k] = volumes[min(first + k, last)]
    for k in range(LANES):
        r, volume = nine(a, ROTATION, k), a[STATE * LANES + k]
        stress = _turned_stress(_strain(nine(a, GRADIENT, k), r), r, lam, mu, -volume)
        put_nine(a, GRADIENT, k, stress)


@kernel
def add_internal_forces(x, tets, g, volumes, lam, mu, quats, force):
    """force += f_int [N], shape (n_nodes, 3), at positions x (n_nodes, 3); refreshes quats (m, 4)."""
    a = np.empty(ROWS * LANES)
    for first in range(0, tets.shape[0], LANES):
        find_rotations(x, tets, g, quats, first, a)
        _stresses(a, volumes, first, lam, mu)
        for k in range(min(LANES, tets.shape[0] - first)):
            e = first + k
            for i in range(3):
                row = 3 * i * LANES + k
                add_line(force, tets, g, e, i, a[row], a[row + LANES], a[row + 2 * LANES])


@inlined
def add_line(force, tets, g, e, i, p0, p1, p2):
    """force[:, i] += (p0, p1, p2) . g_a at each node of element e, with its gradients g_a."""
    fa = p0 * g[e, 1, 0] + p1 * g[e, 1, 1] + p2 * g[e, 1, 2]
    fb = p0 * g[e, 2, 0] + p1 * g[e, 2, 1] + p2 * g[e, 2, 2]
    fc = p0 * g[e, 3, 0] + p1 * g[e, 3, 1] + p2 * g[e, 3, 2]
    force[tets[e, 0], i] -= fa + fb + fc
    force[tets[e, 1], i] += fa
    force[tets[e, 2], i] += fb
    force[tets[e, 3], i] += fc


@kernel
def largest_turn(x, tets, g, since, quats):
    """Largest angle [rad] of an element's turn from its rotation `since` (m, 4); refreshes quats (m, 4)."""
    chord, a = 0.0, np.empty(ROWS * LANES)
    for e in range(tets.shape[0]):
        if e % LANES == 0:
            find_rotations(x, tets, g, quats, e, a)
        chord = max(chord, squared_chord(quats, since, e))
    return turn_over(chord)


@kernel
def add_turned_stiffness(v, tets, g, volumes, lam, mu, quats, since, scale, force):
    """force += scale (K - K_0) v, K and K_0 the sums of R K0 R^T at rotations quats and `since` (m, 4).

    v (n_nodes, 3): any field; neither matrix is formed, and no rotation is found anew.
    """
    for e in range(tets.shape[0]):
        grown = deformation(v, tets, g, e)
        # a field's gradient has no rest state to take away
        now = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        then = matrix_of(since[e, 0], since[e, 1], since[e, 2], since[e, 3])
        p = _turned_stress(_stretch(grown, now), now, lam, mu, scale * volumes[e])
        o = _turned_stress(_stretch(grown, then), then, lam, mu, scale * volumes[e])
        for i in range(3):
            p0, p1, p2 = p[3 * i] - o[3 * i], p[3 * i + 1] - o[3 * i + 1], p[3 * i + 2] - o[3 * i + 2]
            add_line(force, tets, g, e, i, p0, p1, p2)


@kernel
def add_warped_product(v, tets, g, volumes, lam, mu, quats, scale, force):
    """force += scale K v, K the sum of R K0 R^T at rotations quats (m, 4); v (n_nodes, 3): any field."""
    for e in range(tets.shape[0]):
        now = matrix_of(quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        grown = deformation(v, tets, g, e)
        p = _turned_stress(_stretch(grown, now), now, lam, mu, scale * volumes[e])
        for i in range(3):
            add_line(force, tets, g, e, i, p[3 * i], p[3 * i + 1], p[3 * i + 2])


@kernel
def elastic_energy(x, tets, g, volumes, lam, mu, quats):
    """Sum over elements of V (mu eps:eps + lam/2 tr(eps)^2) [J]; refreshes quats."""
    energy, a = 0.0, np.empty(ROWS * LANES)
    for e in range(tets.shape[0]):
        if e % LANES == 0:
            find_rotations(x, tets, g, quats, e, a)
        lane = e % LANES
        xx, yy, zz, xy, xz, yz = _strain(nine(a, GRADIENT, lane), nine(a, ROTATION, lane))
        trace = xx + yy + zz
        squares = xx * xx + yy * yy + zz * zz + 2.0 * (xy * xy + xz * xz + yz * yz)
        energy += volumes[e] * (mu * squares + 0.5 * lam * trace * trace)
    return energy


@kernel
def assemble_warped_stiffness(x, tets, g, volumes, lam, mu, quats, pair_block, blocks):
    """Lower blocks of the sum of R K0 R^T [N/m], shape (n_blocks, 9); refreshes quats.

    pair_block (m, 10): block of local pairs (0,0) (1,0) (1,1) (2,0) ... (3,3), or -1 where a node is fixed.
    """
    blocks[:] = 0.0
    t, group = np.empty((4, 3)), np.empty(ROWS * LANES)
    for e in range(tets.shape[0]):
        if e % LANES == 0:
            find_rotations(x, tets, g, quats, e, group)
        r = nine(group, ROTATION, e % LANES)
        for a in range(4):
            for i in range(3):
                t[a, i] = r[3 * i] * g[e, a, 0] + r[3 * i + 1] * g[e, a, 1] + r[3 * i + 2] * g[e, a, 2]
        vl, vm = volumes[e] * lam, volumes[e] * mu
        pair = 0
        for a in range(4):
            a0, a1, a2 = t[a, 0], t[a, 1], t[a, 2]
            for b in range(a + 1):
                k = pair_block[e, pair]
                pair += 1
                if k < 0:
                    continue
                b0, b1, b2 = t[b, 0], t[b, 1], t[b, 2]
                dot = vm * (a0 * b0 + a1 * b1 + a2 * b2)
                both = vl + vm
                blocks[k, 0] += both * a0 * b0 + dot
                blocks[k, 1] += vl * a0 * b1 + vm * b0 * a1
                blocks[k, 2] += vl * a0 * b2 + vm * b0 * a2
                blocks[k, 3] += vl * a1 * b0 + vm * b1 * a0
                blocks[k, 4] += both * a1 * b1 + dot
                blocks[k, 5] += vl * a1 * b2 + vm * b1 * a2
                blocks[k, 6] += vl * a2 * b0 + vm * b2 * a0
                blocks[k, 7] += vl * a2 * b1 + vm * b2 * a1
                blocks[k, 8] += both * a2 * b2 + dot


@kernel
def add_geometric_stiffness(x, tets, g, volumes, lam, mu, tensions, quats, pair_block, blocks):
    """blocks += what R K0 R^T leaves out of the exact tangent -df_int/dx: the turning of R with x.

    With P = R sigma(S - I), S = R^T F, H = tr(S) I - S and a the axial vector of skew(R^T dF), the rotation
    changes by dR = R [2 H^-1 a]x and the exact dP exceeds the warped one by R [G a]x,
    G = 2 mu I + 2 (lam tr(S - I) + p - 2 mu) H^-1. The sum is symmetric but may be indefinite. Elements whose
    H is not positive (inverted) add nothing. tensions (m,): p, what the trace's stress has besides [Pa].
    """
    t, h, inverse, turned = np.empty((4, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    left, block, group = np.empty((3, 3)), np.empty((3, 3)), np.empty(ROWS * LANES)
    for e in range(tets.shape[0]):
        if e % LANES == 0:
            find_rotations(x, tets, g, quats, e, group)
        r = nine(group, ROTATION, e % LANES)
        xx, yy, zz, xy, xz, yz = _strain(nine(group, GRADIENT, e % LANES), r)
        h[0, 0], h[1, 1], h[2, 2] = 2.0 + yy + zz, 2.0 + xx + zz, 2.0 + xx + yy
        h[0, 1] = h[1, 0] = -xy
        h[0, 2] = h[2, 0] = -xz
        h[1, 2] = h[2, 1] = -yz
        for i in range(3):
            for j in range(3):
                p, q, u, v = (i + 1) % 3, (i + 2) % 3, (j + 1) % 3, (j + 2) % 3
                inverse[i, j] = h[p, u] * h[q, v] - h[p, v] * h[q, u]
        determinant = h[0, 0] * inverse[0, 0] + h[0, 1] * inverse[0, 1] + h[0, 2] * inverse[0, 2]
        if not (h[0, 0] > DEGENERATE and inverse[2, 2] > DEGENERATE and determinant > DEGENERATE):
            continue
        factor = 2.0 * (lam * (xx + yy + zz) + tensions[e] - 2.0 * mu) / determinant
        for i in range(3):
            for j in range(3):
                s = 0.0
                for p in range(3):
                    for q in range(3):
                        s += r[3 * i + p] * inverse[p, q] * r[3 * j + q]
                turned[i, j] = factor * s + (2.0 * mu if i == j else 0.0)
        for a in range(4):
            for i in range(3):
                t[a, i] = r[3 * i] * g[e, a, 0] + r[3 * i + 1] * g[e, a, 1] + r[3 * i + 2] * g[e, a, 2]
        pair = 0
        for a in range(4):
            for j in range(3):
                # row i of [t_a]x G
                left[0, j] = t[a, 1] * turned[2, j] - t[a, 2] * turned[1, j]
                left[1, j] = t[a, 2] * turned[0, j] - t[a, 0] * turned[2, j]
                left[2, j] = t[a, 0] * turned[1, j] - t[a, 1] * turned[0, j]
            for b in range(a + 1):
                k = pair_block[e, pair]
                pair += 1
                if k < 0:
                    continue
                for i in range(3):
                    # columns of ([t_a]x G) [t_b]x
                    block[i, 0] = left[i, 1] * t[b, 2] - left[i, 2] * t[b, 1]
                    block[i, 1] = left[i, 2] * t[b, 0] - left[i, 0] * t[b, 2]
                    block[i, 2] = left[i, 0] * t[b, 1] - left[i, 1] * t[b, 0]
                for i in range(3):
                    for j in range(3):
                        blocks[k, 3 * i + j] -= 0.5 * volumes[e] * block[i, j]
