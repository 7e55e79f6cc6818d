"""How the nodes of a body have turned since an earlier shape, and what is turned with them.

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
