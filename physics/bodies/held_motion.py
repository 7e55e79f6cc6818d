"""What a body on a handle does to all of its nodes in each step: a call each, not a dozen small ones.

How the nodes of a body have turned since an earlier shape, and what is turned with them.

A node turns as its elements do in the mean. On a mesh that is fine beside the waves in which it bends, an
element then turns little against its nodes however far all of them turn together: R K R^T, R the turns of
the nodes, is nearly the stiffness of the present shape.
"""

import math

import numpy as np

from palpo.physics.fem.element_rotations import turn_over
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_to_matrix


@kernel
def turn_nodes(cells, shares, quats, since, turns):
    """turns (n, 3, 3): rotation of each node from `since` (m, 4) to quats (m, 4), of elements cells (m, c).

    shares (m, c): weights of the mean. Returns the largest angle [rad] by which an element has turned against
    one of its nodes.
    """
    n, (m, corners) = turns.shape[0], cells.shape
    mean, own = np.zeros((n, 4)), np.empty((m, 4))
    for e in range(m):
        a, b, c, d = quats[e]
        w, x, y, z = since[e]
        # q q_0^-1; of the two quaternions of a turn the one near no turn
        p, q = a * w + b * x + c * y + d * z, b * w - a * x - c * z + d * y
        r, s = c * w - a * y - d * x + b * z, d * w - a * z - b * y + c * x
        sign = -1.0 if p < 0.0 else 1.0
        own[e, 0], own[e, 1], own[e, 2], own[e, 3] = sign * p, sign * q, sign * r, sign * s
        for k in range(corners):
            for i in range(4):
                mean[cells[e, k], i] += shares[e, k] * own[e, i]
    for node in range(n):
        size = math.sqrt(mean[node, 0] ** 2 + mean[node, 1] ** 2 + mean[node, 2] ** 2 + mean[node, 3] ** 2)
        if size > 0.0:
            mean[node] /= size
        else:
            # of no element
            mean[node, 0] = 1.0
        quat_to_matrix(mean[node], turns[node])
    chord = 0.0
    for e in range(m):
        for k in range(corners):
            node = mean[cells[e, k]]
            near, far = 0.0, 0.0
            for i in range(4):
                near += (own[e, i] - node[i]) ** 2
                far += (own[e, i] + node[i]) ** 2
            chord = max(chord, min(near, far))
    return turn_over(chord)


@kernel
def turned_part(matrix, places, turns, out):
    """out (3 k, 3 k) = R P R^T, P the symmetric matrix's blocks at places (k,), R turns (k, 3, 3)."""
    half = np.empty((3, 3))
    for a in range(places.size):
        r, row = turns[a], 3 * places[a]
        for b in range(a + 1):
            t, column = turns[b], 3 * places[b]
            for i in range(3):
                for j in range(3):
                    half[i, j] = (
                        r[i, 0] * matrix[row, column + j]
                        + r[i, 1] * matrix[row + 1, column + j]
                        + r[i, 2] * matrix[row + 2, column + j]
                    )
            for i in range(3):
                for j in range(3):
                    value = half[i, 0] * t[j, 0] + half[i, 1] * t[j, 1] + half[i, 2] * t[j, 2]
                    if a > b or i >= j:
                        out[3 * a + i, 3 * b + j] = value
                        out[3 * b + j, 3 * a + i] = value


@kernel
def spread(y, w, free, held, twist, out):
    """out (n, 3) = y (3 k,) at the k free nodes, T w at those held; T: twist (n, 3, 6), w (6,)."""
    for k in range(free.size):
        for i in range(3):
            out[free[k], i] = y[3 * k + i]
    for node in held:
        for i in range(3):
            v = 0.0
            for c in range(6):
                v += twist[node, i, c] * w[c]
            out[node, i] = v


@kernel
def move_held(held, x, position, w, v):
    """v (n, 3) [m/s] = velocities of the held nodes, at x (n, 3) [m], as the handle at `position` has w."""
    for node in held:
        a, b, c = x[node, 0] - position[0], x[node, 1] - position[1], x[node, 2] - position[2]
        v[node, 0] = w[0] + w[4] * c - w[5] * b
        v[node, 1] = w[1] + w[5] * a - w[3] * c
        v[node, 2] = w[2] + w[3] * b - w[4] * a


@kernel
def speed_and_change(moving, v, free, node_mass):
    """m v^2 [J] of the free nodes at velocities (n, 3) against their centre, and of the change from v."""
    mass, m0, m1, m2 = 0.0, 0.0, 0.0, 0.0
    for node in free:
        m = node_mass[node]
        mass += m
        m0, m1, m2 = m0 + m * moving[node, 0], m1 + m * moving[node, 1], m2 + m * moving[node, 2]
    m0, m1, m2 = m0 / mass, m1 / mass, m2 / mass
    speed, change = 0.0, 0.0
    for k in range(free.size):
        x, y, z = moving[free[k], 0], moving[free[k], 1], moving[free[k], 2]
        p, q, r = x - v[3 * k], y - v[3 * k + 1], z - v[3 * k + 2]
        speed += node_mass[free[k]] * ((x - m0) ** 2 + (y - m1) ** 2 + (z - m2) ** 2)
        change += node_mass[free[k]] * (p * p + q * q + r * r)
    return speed, change


@kernel
def add_held(held, x, position, node_mass, force, mass, wrench):
    """mass (6, 6) += that of the held nodes about `position`, wrench (6,) += of force (n, 3) [N] on them."""
    for node in held:
        m = node_mass[node]
        a, b, c = x[node, 0] - position[0], x[node, 1] - position[1], x[node, 2] - position[2]
        f, g, k = force[node, 0], force[node, 1], force[node, 2]
        wrench[0] += f
        wrench[1] += g
        wrench[2] += k
        wrench[3] += b * k - c * g
        wrench[4] += c * f - a * k
        wrench[5] += a * g - b * f
        for i in range(3):
            mass[i, i] += m
        mass[0, 4] += m * c
        mass[0, 5] -= m * b
        mass[1, 3] -= m * c
        mass[1, 5] += m * a
        mass[2, 3] += m * b
        mass[2, 4] -= m * a
        mass[3, 3] += m * (b * b + c * c)
        mass[4, 4] += m * (a * a + c * c)
        mass[5, 5] += m * (a * a + b * b)
        mass[3, 4] -= m * a * b
        mass[3, 5] -= m * a * c
        mass[4, 5] -= m * b * c
    for i in range(6):
        for j in range(i):
            mass[i, j] = mass[j, i]


@kernel
def add_velocities(x, v, h, free):
    """x (n, 3) [m] += h v (3 k,) at the free nodes (k,)."""
    for k in range(free.size):
        for i in range(3):
            x[free[k], i] += h * v[3 * k + i]


@kernel
def gather(values, factor, free, out):
    """out (3 k,) = factor times the values (n, 3) of the free nodes (k,)."""
    for k in range(free.size):
        for i in range(3):
            out[3 * k + i] = factor * values[free[k], i]
