"""Small-vector, quaternion and 3x3 kernels that inline into every compiled loop.

Quaternions are (w, x, y, z), unit length, and rotate body axes into world axes. Rotation vectors are
axis times angle [rad]. Every kernel writes into an out argument or returns a scalar tuple; none
allocates. The functions are also plain Python under NUMBA_DISABLE_JIT=1.
"""

import math

from palpo.physics.numerics.kernels import inlined

SMALL_ANGLE = 1e-8
"""Below this angle [rad] the series of sin(a)/a and its inverse are exact to rounding."""


@inlined
def dot3(a, b):
    """Scalar product of two 3-vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def norm3(a):
    """Euclidean length of a 3-vector."""
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@inlined
def cross3(a, b, out):
    """out = a x b; out must not alias a or b."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@inlined
def matvec3(m, a, out):
    """out = m a for a 3x3 matrix; out must not alias a."""
    for i in range(3):
        out[i] = m[i, 0] * a[0] + m[i, 1] * a[1] + m[i, 2] * a[2]


@inlined
def matvec3_transposed(m, a, out):
    """out = m^T a for a 3x3 matrix; out must not alias a."""
    for i in range(3):
        out[i] = m[0, i] * a[0] + m[1, i] * a[1] + m[2, i] * a[2]


@inlined
def quat_multiply(p, q, out):
    """out = p q (first q, then p); out must not alias p or q."""
    out[0] = p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3]
    out[1] = p[0] * q[1] + p[1] * q[0] + p[2] * q[3] - p[3] * q[2]
    out[2] = p[0] * q[2] - p[1] * q[3] + p[2] * q[0] + p[3] * q[1]
    out[3] = p[0] * q[3] + p[1] * q[2] - p[2] * q[1] + p[3] * q[0]


@inlined
def quat_normalise(q):
    """Scale q to unit length in place."""
    s = 1.0 / math.sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    for i in range(4):
        q[i] *= s


@inlined
def quat_from_rotvec(r, out):
    """out = exp(r / 2), the quaternion of the rotation vector r [rad]."""
    angle = math.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
    half = 0.5 * angle
    scale = 0.5 - angle * angle / 48.0 if angle < SMALL_ANGLE else math.sin(half) / angle
    out[0] = math.cos(half)
    for i in range(3):
        out[i + 1] = scale * r[i]


@inlined
def quat_difference(qa, qb, out):
    """out = rotation vector [rad] of q_a q_b^-1: what turns b into a, in world axes."""
    # (w, v) of qa * conj(qb), written out so that no scratch is needed
    w = qa[0] * qb[0] + qa[1] * qb[1] + qa[2] * qb[2] + qa[3] * qb[3]
    x = -qa[0] * qb[1] + qa[1] * qb[0] - qa[2] * qb[3] + qa[3] * qb[2]
    y = -qa[0] * qb[2] + qa[1] * qb[3] + qa[2] * qb[0] - qa[3] * qb[1]
    z = -qa[0] * qb[3] - qa[1] * qb[2] + qa[2] * qb[1] + qa[3] * qb[0]
    sign = 1.0 if w >= 0.0 else -1.0
    s = math.sqrt(x * x + y * y + z * z)
    scale = 2.0 * sign if s < SMALL_ANGLE else 2.0 * math.atan2(s, sign * w) / s * sign
    out[0] = scale * x
    out[1] = scale * y
    out[2] = scale * z


@inlined
def quat_rotate(q, a, out):
    """out = q a q^-1, a vector of body axes seen in world axes; out must not alias a."""
    tx = 2.0 * (q[2] * a[2] - q[3] * a[1])
    ty = 2.0 * (q[3] * a[0] - q[1] * a[2])
    tz = 2.0 * (q[1] * a[1] - q[2] * a[0])
    out[0] = a[0] + q[0] * tx + q[2] * tz - q[3] * ty
    out[1] = a[1] + q[0] * ty + q[3] * tx - q[1] * tz
    out[2] = a[2] + q[0] * tz + q[1] * ty - q[2] * tx


@inlined
def quat_to_matrix(q, out):
    """out = 3x3 rotation matrix of q."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    out[0, 0] = 1.0 - 2.0 * (y * y + z * z)
    out[0, 1] = 2.0 * (x * y - w * z)
    out[0, 2] = 2.0 * (x * z + w * y)
    out[1, 0] = 2.0 * (x * y + w * z)
    out[1, 1] = 1.0 - 2.0 * (x * x + z * z)
    out[1, 2] = 2.0 * (y * z - w * x)
    out[2, 0] = 2.0 * (x * z - w * y)
    out[2, 1] = 2.0 * (y * z + w * x)
    out[2, 2] = 1.0 - 2.0 * (x * x + y * y)


@inlined
def rotate_by(r, q):
    """q <- exp(r/2) q in place: turn the orientation q by the rotation vector r [rad] in world axes."""
    angle = math.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
    half = 0.5 * angle
    scale = 0.5 - angle * angle / 48.0 if angle < SMALL_ANGLE else math.sin(half) / angle
    w = math.cos(half)
    x, y, z = scale * r[0], scale * r[1], scale * r[2]
    a, b, c, d = q[0], q[1], q[2], q[3]
    q[0] = w * a - x * b - y * c - z * d
    q[1] = w * b + x * a + y * d - z * c
    q[2] = w * c - x * d + y * a + z * b
    q[3] = w * d + x * c - y * b + z * a
    quat_normalise(q)


@inlined
def turn_vector(r, a):
    """a <- exp([r]) a in place: turn a by the rotation vector r [rad] (Rodrigues); r must not alias a."""
    angle = math.sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2])
    half = math.sin(0.5 * angle)
    once = 1.0 if angle < SMALL_ANGLE else math.sin(angle) / angle
    twice = 0.5 if angle < SMALL_ANGLE else 2.0 * half * half / (angle * angle)
    x, y, z = r[1] * a[2] - r[2] * a[1], r[2] * a[0] - r[0] * a[2], r[0] * a[1] - r[1] * a[0]
    a[0] += once * x + twice * (r[1] * z - r[2] * y)
    a[1] += once * y + twice * (r[2] * x - r[0] * z)
    a[2] += once * z + twice * (r[0] * y - r[1] * x)


@inlined
def tangent_basis(n, t1, t2):
    """Complete a unit normal n to the right-handed frame (n, t1, t2), continuously almost everywhere.

    Duff et al., Building an orthonormal basis, revisited (JCGT 2017): no branch on the largest entry,
    hence no jump of the tangents while a normal turns, except across n_z = 0.
    """
    sign = 1.0 if n[2] >= 0.0 else -1.0
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    t1[0] = 1.0 + sign * n[0] * n[0] * a
    t1[1] = sign * b
    t1[2] = -sign * n[0]
    t2[0] = b
    t2[1] = sign + n[1] * n[1] * a
    t2[2] = -n[1]
