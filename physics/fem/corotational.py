"""Corotational linear tetrahedra: element rotations, internal forces and the warped stiffness.

With R the rotation nearest to the deformation gradient F, the force of an element is
f_e = -R K0 (R^T x - X) and its stiffness R K0 R^T, without the geometric term so that it stays positive
semidefinite (EQUATIONS.md, section 1). For the linear tetrahedron both follow from the gradients alone:
f_a = -V R sigma(R^T F - I) g_a, and R K0 R^T is K0 written with the turned gradients R g_a.

R maximises tr(R^T F) over all proper rotations, which defines it for flat and inverted elements too:
there the smallest stretch counts as zero or negative and the element pushes back. It is found by Newton's
method on the unit quaternion, warm-started from the last step (the iteration of Mueller et al., A robust
method to extract the rotational part of deformations, MIG 2016, with the exact Hessian tr(S) I - S of
Kugelstadt et al., Fast corotated FEM using operator splitting, CGF 2018). A maximum is unique, so a
converged point with a positive definite Hessian is the answer; otherwise the largest eigenvector of
Davenport's 4x4 matrix is taken.
"""

import math

import numpy as np

from palpo.physics.kernels import inlined, kernel

MAX_NEWTON = 8
"""From 60 degrees away Newton needs five iterations; more means a degenerate element."""
CONVERGED = 1e-13
"""Bound on |omega|^2 of the last step; convergence being quadratic, the rotation is exact to rounding."""
DEGENERATE = 1e-7
"""Smallest pivot of the Hessian, relative to the size of F, that Newton is trusted with."""


@kernel
def davenport_rotation(f, q):
    """Quaternion (4 scalars) of the rotation that maximises tr(R^T F), or q where F gives no direction.

    f: nine entries of F, row by row. Keeps q if its trace is already the largest to rounding, since in a
    degenerate element the maximiser is not unique and must not jump.
    """
    a, b, c, d, e, g, h, i, j = f
    n = np.empty((4, 4))
    n[0, 0], n[1, 1], n[2, 2], n[3, 3] = a + e + j, a - e - j, e - a - j, j - a - e
    n[0, 1] = n[1, 0] = i - g
    n[0, 2] = n[2, 0] = c - h
    n[0, 3] = n[3, 0] = d - b
    n[1, 2] = n[2, 1] = b + d
    n[1, 3] = n[3, 1] = c + h
    n[2, 3] = n[3, 2] = g + i
    size = np.abs(n).max()
    if not (size > 0.0 and size < math.inf):
        return q
    values, vectors = np.linalg.eigh(n)
    now = 0.0
    for r in range(4):
        for s in range(4):
            now += q[r] * n[r, s] * q[s]
    if now >= values[3] - 1e-14 * size:
        return q
    return vectors[0, 3], vectors[1, 3], vectors[2, 3], vectors[3, 3]


@kernel
def extract_rotation(f, q):
    """Quaternion of the proper rotation nearest to F, starting from q.

    f: F row by row (9 floats); q: unit quaternion (4 floats). Returns 4 floats.
    """
    f0, f1, f2, f3, f4, f5, f6, f7, f8 = f
    w, x, y, z = q
    floor = DEGENERATE * (
        abs(f0) + abs(f1) + abs(f2) + abs(f3) + abs(f4) + abs(f5) + abs(f6) + abs(f7) + abs(f8)
    )
    for _ in range(MAX_NEWTON):
        r0, r1, r2 = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
        r3, r4, r5 = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
        r6, r7, r8 = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
        b00 = r0 * f0 + r3 * f3 + r6 * f6
        b01 = r0 * f1 + r3 * f4 + r6 * f7
        b02 = r0 * f2 + r3 * f5 + r6 * f8
        b10 = r1 * f0 + r4 * f3 + r7 * f6
        b11 = r1 * f1 + r4 * f4 + r7 * f7
        b12 = r1 * f2 + r4 * f5 + r7 * f8
        b20 = r2 * f0 + r5 * f3 + r8 * f6
        b21 = r2 * f1 + r5 * f4 + r8 * f7
        b22 = r2 * f2 + r5 * f5 + r8 * f8
        h00, h11, h22 = b11 + b22, b00 + b22, b00 + b11
        h01, h02, h12 = -0.5 * (b01 + b10), -0.5 * (b02 + b20), -0.5 * (b12 + b21)
        gx, gy, gz = b21 - b12, b02 - b20, b10 - b01
        # omega = H^-1 g by LDL^T, whose pivots tell whether this is near a maximum
        l10, l20 = h01 / h00, h02 / h00
        d1 = h11 - l10 * h01
        l21 = (h12 - l20 * h01) / d1
        d2 = h22 - l20 * h02 - l21 * l21 * d1
        if not (h00 > floor and d1 > floor and d2 > floor):
            break
        oy = gy - l10 * gx
        oz = (gz - l20 * gx - l21 * oy) / d2
        oy = oy / d1 - l21 * oz
        ox = gx / h00 - l10 * oy - l20 * oz
        # Cayley map: q (1, omega / 2), second order exact, no trigonometry
        ox, oy, oz = 0.5 * ox, 0.5 * oy, 0.5 * oz
        step = ox * ox + oy * oy + oz * oz
        nw = w - x * ox - y * oy - z * oz
        nx = x + w * ox + y * oz - z * oy
        ny = y + w * oy + z * ox - x * oz
        nz = z + w * oz + x * oy - y * ox
        s = 1.0 / math.sqrt(nw * nw + nx * nx + ny * ny + nz * nz)
        w, x, y, z = nw * s, nx * s, ny * s, nz * s
        if step < CONVERGED:
            return w, x, y, z
    return davenport_rotation(f, q)


@inlined
def _gradient_and_rotation(x, n0, n1, n2, n3, g, quats, e):
    """F (9 floats) of element e, its rotation matrix (9 floats); refreshes quats[e]."""
    x0, y0, z0 = x[n0, 0], x[n0, 1], x[n0, 2]
    ax, ay, az = x[n1, 0] - x0, x[n1, 1] - y0, x[n1, 2] - z0
    bx, by, bz = x[n2, 0] - x0, x[n2, 1] - y0, x[n2, 2] - z0
    cx, cy, cz = x[n3, 0] - x0, x[n3, 1] - y0, x[n3, 2] - z0
    a0, a1, a2 = g[e, 1, 0], g[e, 1, 1], g[e, 1, 2]
    b0, b1, b2 = g[e, 2, 0], g[e, 2, 1], g[e, 2, 2]
    c0, c1, c2 = g[e, 3, 0], g[e, 3, 1], g[e, 3, 2]
    f = (
        ax * a0 + bx * b0 + cx * c0,
        ax * a1 + bx * b1 + cx * c1,
        ax * a2 + bx * b2 + cx * c2,
        ay * a0 + by * b0 + cy * c0,
        ay * a1 + by * b1 + cy * c1,
        ay * a2 + by * b2 + cy * c2,
        az * a0 + bz * b0 + cz * c0,
        az * a1 + bz * b1 + cz * c1,
        az * a2 + bz * b2 + cz * c2,
    )
    w, x_, y_, z_ = extract_rotation(f, (quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3]))
    quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3] = w, x_, y_, z_
    r = (
        1.0 - 2.0 * (y_ * y_ + z_ * z_),
        2.0 * (x_ * y_ - w * z_),
        2.0 * (x_ * z_ + w * y_),
        2.0 * (x_ * y_ + w * z_),
        1.0 - 2.0 * (x_ * x_ + z_ * z_),
        2.0 * (y_ * z_ - w * x_),
        2.0 * (x_ * z_ - w * y_),
        2.0 * (y_ * z_ + w * x_),
        1.0 - 2.0 * (x_ * x_ + y_ * y_),
    )
    return f, r


@inlined
def _strain(f, r):
    """Small strain of the unrotated element, sym(R^T F) - I, as (xx, yy, zz, xy, xz, yz)."""
    xx = r[0] * f[0] + r[3] * f[3] + r[6] * f[6] - 1.0
    yy = r[1] * f[1] + r[4] * f[4] + r[7] * f[7] - 1.0
    zz = r[2] * f[2] + r[5] * f[5] + r[8] * f[8] - 1.0
    xy = 0.5 * (r[0] * f[1] + r[3] * f[4] + r[6] * f[7] + r[1] * f[0] + r[4] * f[3] + r[7] * f[6])
    xz = 0.5 * (r[0] * f[2] + r[3] * f[5] + r[6] * f[8] + r[2] * f[0] + r[5] * f[3] + r[8] * f[6])
    yz = 0.5 * (r[1] * f[2] + r[4] * f[5] + r[7] * f[8] + r[2] * f[1] + r[5] * f[4] + r[8] * f[7])
    return xx, yy, zz, xy, xz, yz


@kernel
def add_internal_forces(x, tets, g, volumes, lam, mu, quats, force):
    """force += f_int [N], shape (n_nodes, 3), at positions x (n_nodes, 3); refreshes quats (m, 4)."""
    for e in range(tets.shape[0]):
        n0, n1, n2, n3 = tets[e, 0], tets[e, 1], tets[e, 2], tets[e, 3]
        f, r = _gradient_and_rotation(x, n0, n1, n2, n3, g, quats, e)
        xx, yy, zz, xy, xz, yz = _strain(f, r)
        pressure = lam * (xx + yy + zz)
        s = -2.0 * mu * volumes[e]
        p = -pressure * volumes[e]
        xx, yy, zz, xy, xz, yz = s * xx + p, s * yy + p, s * zz + p, s * xy, s * xz, s * yz
        for i in range(3):
            # row i of -V R sigma
            p0 = r[3 * i] * xx + r[3 * i + 1] * xy + r[3 * i + 2] * xz
            p1 = r[3 * i] * xy + r[3 * i + 1] * yy + r[3 * i + 2] * yz
            p2 = r[3 * i] * xz + r[3 * i + 1] * yz + r[3 * i + 2] * zz
            fa = p0 * g[e, 1, 0] + p1 * g[e, 1, 1] + p2 * g[e, 1, 2]
            fb = p0 * g[e, 2, 0] + p1 * g[e, 2, 1] + p2 * g[e, 2, 2]
            fc = p0 * g[e, 3, 0] + p1 * g[e, 3, 1] + p2 * g[e, 3, 2]
            force[n0, i] -= fa + fb + fc
            force[n1, i] += fa
            force[n2, i] += fb
            force[n3, i] += fc


@kernel
def largest_turn(x, tets, g, since, quats):
    """Largest angle [rad] of an element's turn from its rotation `since` (m, 4); refreshes quats (m, 4)."""
    chord = 0.0
    for e in range(tets.shape[0]):
        _gradient_and_rotation(x, tets[e, 0], tets[e, 1], tets[e, 2], tets[e, 3], g, quats, e)
        near, far = 0.0, 0.0
        for i in range(4):
            near += (quats[e, i] - since[e, i]) ** 2
            far += (quats[e, i] + since[e, i]) ** 2
        chord = max(chord, min(near, far))
    return 4.0 * math.asin(min(1.0, 0.5 * math.sqrt(chord)))


@kernel
def elastic_energy(x, tets, g, volumes, lam, mu, quats):
    """Sum over elements of V (mu eps:eps + lam/2 tr(eps)^2) [J]; refreshes quats."""
    energy = 0.0
    for e in range(tets.shape[0]):
        f, r = _gradient_and_rotation(x, tets[e, 0], tets[e, 1], tets[e, 2], tets[e, 3], g, quats, e)
        xx, yy, zz, xy, xz, yz = _strain(f, r)
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
    t = np.empty((4, 3))
    for e in range(tets.shape[0]):
        _, r = _gradient_and_rotation(x, tets[e, 0], tets[e, 1], tets[e, 2], tets[e, 3], g, quats, e)
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
def add_geometric_stiffness(x, tets, g, volumes, lam, mu, quats, pair_block, blocks):
    """blocks += what R K0 R^T leaves out of the exact tangent -df_int/dx: the turning of R with x.

    With P = R sigma(S - I), S = R^T F, H = tr(S) I - S and a the axial vector of skew(R^T dF), the rotation
    changes by dR = R [2 H^-1 a]x and the exact dP exceeds the warped one by R [G a]x,
    G = 2 mu I + 2 (lam tr(S - I) - 2 mu) H^-1. The sum is symmetric but may be indefinite. Elements whose H
    is not positive (inverted) add nothing.
    """
    t, h, inverse, turned = np.empty((4, 3)), np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    left, block = np.empty((3, 3)), np.empty((3, 3))
    for e in range(tets.shape[0]):
        f, r = _gradient_and_rotation(x, tets[e, 0], tets[e, 1], tets[e, 2], tets[e, 3], g, quats, e)
        xx, yy, zz, xy, xz, yz = _strain(f, r)
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
        factor = 2.0 * (lam * (xx + yy + zz) - 2.0 * mu) / determinant
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
