"""The rotations of linear tetrahedra, a group of elements at a time.

R maximises tr(R^T F) over all proper rotations, which defines it for flat and inverted elements too:
there the smallest stretch counts as zero or negative and the element pushes back. It is found by Newton's
method on the unit quaternion, warm-started from the last step (the iteration of Mueller et al., A robust
method to extract the rotational part of deformations, MIG 2016, with the exact Hessian tr(S) I - S of
Kugelstadt et al., Fast corotated FEM using operator splitting, CGF 2018). A maximum is unique, so a
converged point with a positive definite Hessian is the answer; otherwise the largest eigenvector of
Davenport's 4x4 matrix is taken.

Elements go in groups of LANES: each quantity of a group is a row of a flat array, and loops of that constant
length, without branches, run several elements an instruction. Operations and their order are those of one
element at a time.
"""

import math

import numpy as np

from palpo.physics.numerics.kernels import inlined, kernel

MAX_NEWTON = 8
"""From 60 degrees away Newton needs five iterations; more means a degenerate element."""
CONVERGED = 1e-13
"""Bound on |omega|^2 of the last step; convergence being quadratic, the rotation is exact to rounding."""
LANES = 16
"""Elements that go together: two registers of eight numbers."""
GRADIENT, QUATERNION, STATE, ROTATION = 0, 9, 13, 14
"""First rows of a group's deformation gradient, its rotation as a quaternion, its state, its rotation matrix.

A state is 1 where Newton goes on, 0 where it has converged, -1 where it is not trusted."""
ROWS = 23
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


@inlined
def _newton_step(f, q):
    """A step towards the rotation nearest to F, by nine and four floats: the next quaternion, the square of
    the angle's tangent, and whether this is near a maximum."""
    f0, f1, f2, f3, f4, f5, f6, f7, f8 = f
    w, x, y, z = q
    floor = DEGENERATE * (
        abs(f0) + abs(f1) + abs(f2) + abs(f3) + abs(f4) + abs(f5) + abs(f6) + abs(f7) + abs(f8)
    )
    r0, r1, r2, r3, r4, r5, r6, r7, r8 = matrix_of(w, x, y, z)
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
    oy = gy - l10 * gx
    oz = (gz - l20 * gx - l21 * oy) / d2
    oy = oy / d1 - l21 * oz
    ox = gx / h00 - l10 * oy - l20 * oz
    # Cayley map: q (1, omega / 2), second order exact, no trigonometry
    ox, oy, oz = 0.5 * ox, 0.5 * oy, 0.5 * oz
    nw = w - x * ox - y * oy - z * oz
    nx = x + w * ox + y * oz - z * oy
    ny = y + w * oy + z * ox - x * oz
    nz = z + w * oz + x * oy - y * ox
    s = 1.0 / math.sqrt(nw * nw + nx * nx + ny * ny + nz * nz)
    trusted = (h00 > floor) & (d1 > floor) & (d2 > floor)
    return nw * s, nx * s, ny * s, nz * s, ox * ox + oy * oy + oz * oz, trusted


@inlined
def matrix_of(w, x, y, z):
    """Rotation matrix of a unit quaternion, row by row."""
    return (
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    )


@kernel
def extract_rotation(f, q):
    """Quaternion of the proper rotation nearest to F, starting from q.

    f: F row by row (9 floats); q: unit quaternion (4 floats). Returns 4 floats.
    """
    w, x, y, z = q
    for _ in range(MAX_NEWTON):
        w, x, y, z, step, trusted = _newton_step(f, (w, x, y, z))
        if not trusted:
            break
        if step < CONVERGED:
            return w, x, y, z
    return davenport_rotation(f, q)


@inlined
def nine(a, first, k):
    """Rows first to first + 8 of lane k."""
    i = first * LANES + k
    return (
        a[i], a[i + LANES], a[i + 2 * LANES], a[i + 3 * LANES], a[i + 4 * LANES], a[i + 5 * LANES],
        a[i + 6 * LANES], a[i + 7 * LANES], a[i + 8 * LANES],
    )  # fmt: skip


@inlined
def put_nine(a, first, k, values):
    i = first * LANES + k
    a[i], a[i + LANES], a[i + 2 * LANES] = values[0], values[1], values[2]
    a[i + 3 * LANES], a[i + 4 * LANES], a[i + 5 * LANES] = values[3], values[4], values[5]
    a[i + 6 * LANES], a[i + 7 * LANES], a[i + 8 * LANES] = values[6], values[7], values[8]


@inlined
def _put_quaternion(a, k, w, x, y, z):
    i = QUATERNION * LANES + k
    a[i], a[i + LANES], a[i + 2 * LANES], a[i + 3 * LANES] = w, x, y, z


@inlined
def _quaternion(a, k):
    i = QUATERNION * LANES + k
    return a[i], a[i + LANES], a[i + 2 * LANES], a[i + 3 * LANES]


@inlined
def deformation(x, tets, g, e):
    """Deformation gradient of element e, row by row."""
    n0, n1, n2, n3 = tets[e, 0], tets[e, 1], tets[e, 2], tets[e, 3]
    x0, y0, z0 = x[n0, 0], x[n0, 1], x[n0, 2]
    ax, ay, az = x[n1, 0] - x0, x[n1, 1] - y0, x[n1, 2] - z0
    bx, by, bz = x[n2, 0] - x0, x[n2, 1] - y0, x[n2, 2] - z0
    cx, cy, cz = x[n3, 0] - x0, x[n3, 1] - y0, x[n3, 2] - z0
    a0, a1, a2 = g[e, 1, 0], g[e, 1, 1], g[e, 1, 2]
    b0, b1, b2 = g[e, 2, 0], g[e, 2, 1], g[e, 2, 2]
    c0, c1, c2 = g[e, 3, 0], g[e, 3, 1], g[e, 3, 2]
    return (
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


@kernel
def _step_of_all(a):
    """A Newton step of every lane that goes on; whether any still does."""
    for k in range(LANES):
        w, x, y, z = _quaternion(a, k)
        nw, nx, ny, nz, step, trusted = _newton_step(nine(a, GRADIENT, k), (w, x, y, z))
        state = a[STATE * LANES + k]
        goes = (state == 1.0) & trusted
        _put_quaternion(a, k, nw if goes else w, nx if goes else x, ny if goes else y, nz if goes else z)
        left = 0.0 if step < CONVERGED else 1.0
        a[STATE * LANES + k] = left if goes else (-1.0 if state == 1.0 else state)
    goes_on = False
    for k in range(LANES):
        goes_on |= a[STATE * LANES + k] == 1.0
    return goes_on


@kernel
def find_rotations(x, tets, g, quats, first, a):
    """Deformation gradients and rotations of the elements from `first` on as rows of a (ROWS LANES,).

    Refreshes their quats. Lanes beyond the last element repeat it.
    """
    last = tets.shape[0] - 1
    for k in range(LANES):
        e = min(first + k, last)
        put_nine(a, GRADIENT, k, deformation(x, tets, g, e))
        _put_quaternion(a, k, quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
        a[STATE * LANES + k] = 1.0
    for _ in range(MAX_NEWTON):
        if not _step_of_all(a):
            break
    for k in range(min(LANES, last + 1 - first)):
        e = first + k
        if a[STATE * LANES + k] != 0.0:
            q = (quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3])
            w, x_, y_, z_ = davenport_rotation(nine(a, GRADIENT, k), q)
            _put_quaternion(a, k, w, x_, y_, z_)
        quats[e, 0], quats[e, 1], quats[e, 2], quats[e, 3] = _quaternion(a, k)
    for k in range(LANES):
        w, x_, y_, z_ = _quaternion(a, k)
        put_nine(a, ROTATION, k, matrix_of(w, x_, y_, z_))


@inlined
def squared_chord(quats, since, e):
    """|q - q_0|^2 of an element's unit quaternions in quats and since (m, 4); of the nearer of q and -q."""
    near, far = 0.0, 0.0
    for i in range(4):
        near += (quats[e, i] - since[e, i]) ** 2
        far += (quats[e, i] + since[e, i]) ** 2
    return min(near, far)


@inlined
def turn_over(chord):
    """The angle [rad] of the turn over a squared chord."""
    return 4.0 * math.asin(min(1.0, 0.5 * math.sqrt(chord)))
