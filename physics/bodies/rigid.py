"""Free rotation of a rigid body over one step of any size.

Euler's equations by the backward Euler scheme of the rotation group: with L = I W in body axes,
    I W1 = exp(-h W1) L0.
The angular momentum in world axes is kept exactly, for the body turns by exp(h W1) in the same step; and
W1 . (I W1 - I W0) = 0 because exp(-h W1) leaves W1 alone, hence
    E1 - E0 = -1/2 (W1 - W0) . I (W1 - W0) <= 0
at every h. The explicit gyroscopic torque -w x I w gains energy instead. First order in h.
Compare Catto, Numerical methods (GDC 2015), whose implicit torque has the same energy law but loses momentum.
"""

import math

from palpo.physics.numerics.kernels import kernel

MAX_ITERATIONS = 20
TOLERANCE = 1e-14
"""Residual over |L| at which the spin is exact to rounding."""


@kernel
def _turned_back(h, w, m):
    """exp(-h w) m for tuples w [rad/s] and m; returns 3 floats."""
    rx, ry, rz = -h * w[0], -h * w[1], -h * w[2]
    squared = rx * rx + ry * ry + rz * rz
    angle = math.sqrt(squared)
    if squared < 1e-8:
        s, c = 1.0 - squared / 6.0, 0.5 - squared / 24.0
    else:
        s, c = math.sin(angle) / angle, (1.0 - math.cos(angle)) / squared
    ax, ay, az = ry * m[2] - rz * m[1], rz * m[0] - rx * m[2], rx * m[1] - ry * m[0]
    bx, by, bz = ry * az - rz * ay, rz * ax - rx * az, rx * ay - ry * ax
    return m[0] + s * ax + c * bx, m[1] + s * ay + c * by, m[2] + s * az + c * bz


@kernel
def _multiply(inertia, w):
    return (
        inertia[0, 0] * w[0] + inertia[0, 1] * w[1] + inertia[0, 2] * w[2],
        inertia[1, 0] * w[0] + inertia[1, 1] * w[1] + inertia[1, 2] * w[2],
        inertia[2, 0] * w[0] + inertia[2, 1] * w[1] + inertia[2, 2] * w[2],
    )


@kernel
def _newton_step(inertia, h, w, y, r):
    """d with (I - h [y]x J_l(-h w)) d = -r, y = exp(-h w) L; returns 3 floats."""
    rx, ry, rz = -h * w[0], -h * w[1], -h * w[2]
    squared = rx * rx + ry * ry + rz * rz
    if squared < 1e-6:
        a, b = 0.5, 1.0 / 6.0
    else:
        angle = math.sqrt(squared)
        a, b = (1.0 - math.cos(angle)) / squared, (angle - math.sin(angle)) / (squared * angle)
    # J_l = (1 - b |r|^2) I + a [r]x + b r r^T
    d = 1.0 - b * squared
    j00, j01, j02 = d + b * rx * rx, b * rx * ry - a * rz, b * rx * rz + a * ry
    j10, j11, j12 = b * rx * ry + a * rz, d + b * ry * ry, b * ry * rz - a * rx
    j20, j21, j22 = b * rx * rz - a * ry, b * ry * rz + a * rx, d + b * rz * rz
    m00 = inertia[0, 0] - h * (y[1] * j20 - y[2] * j10)
    m01 = inertia[0, 1] - h * (y[1] * j21 - y[2] * j11)
    m02 = inertia[0, 2] - h * (y[1] * j22 - y[2] * j12)
    m10 = inertia[1, 0] - h * (y[2] * j00 - y[0] * j20)
    m11 = inertia[1, 1] - h * (y[2] * j01 - y[0] * j21)
    m12 = inertia[1, 2] - h * (y[2] * j02 - y[0] * j22)
    m20 = inertia[2, 0] - h * (y[0] * j10 - y[1] * j00)
    m21 = inertia[2, 1] - h * (y[0] * j11 - y[1] * j01)
    m22 = inertia[2, 2] - h * (y[0] * j12 - y[1] * j02)
    c00, c01, c02 = m11 * m22 - m12 * m21, m02 * m21 - m01 * m22, m01 * m12 - m02 * m11
    c10, c11, c12 = m12 * m20 - m10 * m22, m00 * m22 - m02 * m20, m02 * m10 - m00 * m12
    c20, c21, c22 = m10 * m21 - m11 * m20, m01 * m20 - m00 * m21, m00 * m11 - m01 * m10
    s = -1.0 / (m00 * c00 + m01 * c10 + m02 * c20)
    return (
        s * (c00 * r[0] + c01 * r[1] + c02 * r[2]),
        s * (c10 * r[0] + c11 * r[1] + c12 * r[2]),
        s * (c20 * r[0] + c21 * r[1] + c22 * r[2]),
    )


@kernel
def free_spin(inertia, w0, h):
    """Angular velocity [rad/s] after a free step of h [s], in the body axes of the step's start.

    inertia (3, 3) [kg m2] in body axes; w0: 3 floats. Returns 3 floats, of no more energy than w0.
    """
    momentum = _multiply(inertia, w0)
    size = momentum[0] ** 2 + momentum[1] ** 2 + momentum[2] ** 2
    w = w0
    error = math.inf
    for _ in range(MAX_ITERATIONS):
        y = _turned_back(h, w, momentum)
        now = _multiply(inertia, w)
        r = (now[0] - y[0], now[1] - y[1], now[2] - y[2])
        error = r[0] ** 2 + r[1] ** 2 + r[2] ** 2
        if not error > TOLERANCE**2 * size:
            return w
        step = _newton_step(inertia, h, w, y, r)
        scale = 1.0
        for _ in range(8):
            trial = (w[0] + scale * step[0], w[1] + scale * step[1], w[2] + scale * step[2])
            y = _turned_back(h, trial, momentum)
            now = _multiply(inertia, trial)
            if (now[0] - y[0]) ** 2 + (now[1] - y[1]) ** 2 + (now[2] - y[2]) ** 2 < error:
                w = trial
                break
            scale *= 0.5
        else:
            break
    # Newton stalled (a spin of several turns a step): keep the direction found, never more energy
    now = _multiply(inertia, w)
    before = w0[0] * momentum[0] + w0[1] * momentum[1] + w0[2] * momentum[2]
    after = w[0] * now[0] + w[1] * now[1] + w[2] * now[2]
    s = math.sqrt(before / after) if after > before else 1.0
    return s * w[0], s * w[1], s * w[2]
