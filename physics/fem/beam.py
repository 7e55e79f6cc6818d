"""Corotational Timoshenko beam element between two six-freedom frames.

The element frame E has e1 along the chord and its roll from the mean of the two node orientations. The
deformation left in it is the stretch u and the two rotation vectors theta_1, theta_2 of the nodes, linear
elastic with shear:
    N = EA u / l0,  m_1 = k_ii theta_1 + k_ij theta_2,  m_2 = k_ij theta_1 + k_ii theta_2,
    k_ii = EI (4 + phi) / (l0 (1 + phi)),  k_ij = EI (2 - phi) / (l0 (1 + phi)),  phi = 12 EI / (k G A l0^2).
Shear forces follow from the moments and the present chord, so that force and moment balance exactly.
Source: the beams of Dervaux et al. (IROS 2013) are those of Duriez et al., New approaches to catheter
navigation (CAS 2006); Przemieniecki, Theory of Matrix Structural Analysis, section 5.6, for the local
stiffness; Crisfield, A consistent co-rotational formulation for 3-D beam elements (CMAME 1990).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.material import Material
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import SMALL_ANGLE

MIN_CHORD = 1e-6
"""A chord shorter than this part of its rest length has no direction of its own; the node axes give it."""

STRING_ONSET = 64.0
"""The string term is whole from h^2 N / l = m / 64 on; explicitly it is stable to m. A wire under 1,600 times
its weight hangs still at every h with 64; with 4 it chatters at 2 and 5 ms, slack and taut by turns."""


@dataclass(frozen=True)
class Section:
    """Cross section: area [m2], second moments about the local y and z axes and torsion constant [m4].

    shear_y, shear_z: Timoshenko's shear correction factors for deflection along y and z [-].
    """

    area: float
    second_moment_y: float
    second_moment_z: float
    torsion: float
    shear_y: float
    shear_z: float


def circular_section(radius: float, poisson_ratio: float) -> Section:
    """Solid circle; shear factor 6 (1 + nu) / (7 + 6 nu) (Cowper, J. Appl. Mech. 1966)."""
    second = math.pi * radius**4 / 4.0
    shear = 6.0 * (1.0 + poisson_ratio) / (7.0 + 6.0 * poisson_ratio)
    return Section(math.pi * radius**2, second, second, 2.0 * second, shear, shear)


def element_constants(length: float, section: Section, material: Material) -> NDArray[np.float64]:
    """(EA/l, GJ/l, k_ii about y, k_ij about y, k_ii about z, k_ij about z), [N/m] then [N m]."""
    e, (_, g) = material.youngs_modulus, material.lame()
    constants = [e * section.area / length, g * section.torsion / length]
    for second, shear in (
        (section.second_moment_y, section.shear_z),
        (section.second_moment_z, section.shear_y),
    ):
        phi = 12.0 * e * second / (shear * g * section.area * length**2)
        unit = e * second / (length * (1.0 + phi))
        constants += [unit * (4.0 + phi), unit * (2.0 - phi)]
    return np.array(constants)


@kernel
def log_quaternion(w, x, y, z):
    """Rotation vector (3 floats) of a unit quaternion, angle at most pi."""
    s = math.sqrt(x * x + y * y + z * z)
    sign = 1.0 if w >= 0.0 else -1.0
    scale = 2.0 * sign if s < SMALL_ANGLE else 2.0 * sign * math.atan2(s, sign * w) / s
    return scale * x, scale * y, scale * z


@kernel
def product(a, b):
    """Quaternion a b of two 4-tuples."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@kernel
def conjugate_moment(theta, m):
    """Moment conjugate to the spin of a node with rotation vector theta: J_l(theta)^-T m (3 floats)."""
    a, b, c = theta
    squared = a * a + b * b + c * c
    # (1 - (t/2) cot(t/2)) / t^2, by series where the quotient cancels
    if squared < 1e-4:
        factor = 1.0 / 12.0 + squared / 720.0
    else:
        half = 0.5 * math.sqrt(squared)
        factor = (1.0 - half / math.tan(half)) / squared
    cx, cy, cz = b * m[2] - c * m[1], c * m[0] - a * m[2], a * m[1] - b * m[0]
    dx, dy, dz = b * cz - c * cy, c * cx - a * cz, a * cy - b * cx
    return (
        m[0] + 0.5 * cx + factor * dx,
        m[1] + 0.5 * cy + factor * dy,
        m[2] + 0.5 * cz + factor * dz,
    )


@kernel
def deformation(x1, x2, q1, q2, c1, c2, length):
    """Element frame and what is left in it.

    x1, x2 [m], q1, q2: the two nodes; c1, c2: quaternions from the node's axes to the element's at rest;
    length: rest length l0 [m]. Returns the element quaternion, theta_1, theta_2 [rad], chord [m], e1.
    """
    a = product((q1[0], q1[1], q1[2], q1[3]), (c1[0], c1[1], c1[2], c1[3]))
    b = product((q2[0], q2[1], q2[2], q2[3]), (c2[0], c2[1], c2[2], c2[3]))
    sign = 1.0 if a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] >= 0.0 else -1.0
    w, x, y, z = a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2], a[3] + sign * b[3]
    s = 1.0 / math.sqrt(w * w + x * x + y * y + z * z)
    w, x, y, z = s * w, s * x, s * y, s * z
    # axis and normal of the mean frame
    m = (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y))
    dx, dy, dz = x2[0] - x1[0], x2[1] - x1[1], x2[2] - x1[2]
    chord = math.sqrt(dx * dx + dy * dy + dz * dz)
    if chord <= MIN_CHORD * length:
        e = m
        chord = MIN_CHORD * length
    else:
        # also for NaN, which must reach the factorisation and be found there
        e = (dx / chord, dy / chord, dz / chord)
    along = m[0] * e[0] + m[1] * e[1] + m[2] * e[2]
    if along > -1.0 + 1e-9:
        # the shortest turn that brings the mean axis onto the chord
        s = 1.0 / math.sqrt(2.0 * (1.0 + along))
        turn = (
            s * (1.0 + along),
            s * (m[1] * e[2] - m[2] * e[1]),
            s * (m[2] * e[0] - m[0] * e[2]),
            s * (m[0] * e[1] - m[1] * e[0]),
        )
    else:
        # folded back: half a turn about the mean frame's second axis
        turn = (0.0, 2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x))
    frame = product(turn, (w, x, y, z))
    back = (frame[0], -frame[1], -frame[2], -frame[3])
    r1, r2 = product(back, a), product(back, b)
    theta1 = log_quaternion(r1[0], r1[1], r1[2], r1[3])
    theta2 = log_quaternion(r2[0], r2[1], r2[2], r2[3])
    return frame, theta1, theta2, chord, e


@kernel
def local_moments(k, theta1, theta2):
    """Elastic end moments (m_1, m_2) [N m] of rotation vectors theta_1, theta_2 in the element frame."""
    return (
        (
            k[1] * (theta1[0] - theta2[0]),
            k[2] * theta1[1] + k[3] * theta2[1],
            k[4] * theta1[2] + k[5] * theta2[2],
        ),
        (
            k[1] * (theta2[0] - theta1[0]),
            k[3] * theta1[1] + k[2] * theta2[1],
            k[5] * theta1[2] + k[4] * theta2[2],
        ),
    )


@kernel
def beam_energy(x1, x2, q1, q2, c1, c2, length, k):
    """Elastic energy of one element [J]; k: its constants (6,)."""
    _, t1, t2, chord, _ = deformation(x1, x2, q1, q2, c1, c2, length)
    m1, m2 = local_moments(k, t1, t2)
    bending = t1[0] * m1[0] + t1[1] * m1[1] + t1[2] * m1[2] + t2[0] * m2[0] + t2[1] * m2[1] + t2[2] * m2[2]
    return 0.5 * (k[0] * (chord - length) ** 2 + bending)


@kernel
def add_beam(x, q, c1, c2, length, k, weight, h, mass, d, u, f):
    """Add one element: f_int to f (2, 6), weight K + its string term to d (2, 6, 6); sets u (6, 6).

    x (2, 3), q (2, 4): of its two nodes; d: the blocks on the diagonal, u: the one beside them.

    K = B^T K_l B is the warped stiffness without geometric term. A taut wire needs one piece of that term,
    the string stiffness h^2 N / l (I - e1 e1^T) of a tensile N: without it a step longer than the string's
    shortest period diverges. With a = h^2 N / l and the mean nodal mass m [kg] it enters as a min(1,
    STRING_ONSET a / m): whole where the step is long, and of order h^4 where it is short and the explicit
    treatment stable by itself, since it does not vanish on rigid rotations and costs angular momentum.
    Positive semidefinite either way.
    """
    d1, d2, f1, f2 = d[0], d[1], f[0], f[1]
    frame, t1, t2, chord, e = deformation(x[0], x[1], q[0], q[1], c1, c2, length)
    m1, m2 = local_moments(k, t1, t2)
    m1, m2 = conjugate_moment(t1, m1), conjugate_moment(t2, m2)
    w, x, y, z = frame
    r = (
        (e[0], 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (e[1], 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (e[2], 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )
    normal = k[0] * (chord - length)
    # moments that do work on the common roll are shared by the two nodes; the rest is balanced by shear
    roll = 0.5 * (m1[0] + m2[0])
    shear_y, shear_z = -(m1[2] + m2[2]) / chord, (m1[1] + m2[1]) / chord
    for i in range(3):
        force = r[i][0] * normal + r[i][1] * shear_y + r[i][2] * shear_z
        f1[i] += force
        f2[i] -= force
        f1[3 + i] -= r[i][0] * (m1[0] - roll) + r[i][1] * m1[1] + r[i][2] * m1[2]
        f2[3 + i] -= r[i][0] * (m2[0] - roll) + r[i][1] * m2[1] + r[i][2] * m2[2]

    sy, sz = weight * (k[2] + k[3]), weight * (k[4] + k[5])
    string = h * h * max(normal, 0.0) / chord
    string *= min(1.0, STRING_ONSET * string / mass)
    tx, ty, tz = weight * k[0], 2.0 * sz / chord**2 + string, 2.0 * sy / chord**2 + string
    xyz, xzy = sz / chord, -sy / chord
    wx, wy, wz = weight * k[1], weight * k[2], weight * k[4]
    vy, vz = weight * k[3], weight * k[5]
    for i in range(3):
        for j in range(3):
            a, b, c = r[i][0] * r[j][0], r[i][1] * r[j][1], r[i][2] * r[j][2]
            t = tx * a + ty * b + tz * c
            cross = xyz * r[i][1] * r[j][2] + xzy * r[i][2] * r[j][1]
            own = wx * a + wy * b + wz * c
            d1[i, j] += t
            d2[i, j] += t
            u[i, j] = -t
            d1[i, 3 + j] += cross
            d1[3 + j, i] += cross
            d2[i, 3 + j] -= cross
            d2[3 + j, i] -= cross
            u[i, 3 + j] = cross
            u[3 + j, i] = -cross
            d1[3 + i, 3 + j] += own
            d2[3 + i, 3 + j] += own
            u[3 + i, 3 + j] = -wx * a + vy * b + vz * c
