"""K^-1 on the boundary of a quasi-static body as arrays, and what the servo computes from them.

Slots number the boundary nodes. All arrays are in the body's axes; the compliance has zero rows where a node
is clamped, so that no kernel needs to ask. The Delassus operator of one body is W = H K^-1 H^T, and H of a
contact touches at most three nodes (thesis of N. Talbi, equations 2.48 to 2.52 and 2.67).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from physics.fem.cholesky import FAST


class Boundary(NamedTuple):
    """One body's boundary.

    rest: positions about the centre of the clamped nodes [m], shape (s, 3).
    compliance: K^-1 [m/N], shape (3 s, 3 s), symmetric.
    sag: displacement per gravity along each body axis [s2], shape (3, s, 3).
    """

    rest: NDArray[np.float64]
    compliance: NDArray[np.float64]
    sag: NDArray[np.float64]


class GatherScratch(NamedTuple):
    """Workspace of `add_delassus` for one body and at most c contacts on m distinct nodes.

    place (s,): -1 between calls.  nodes (m,).  slots, weights (3, c), axes (3, 3, c): points by component.
    point, row (3, c): one line of a product by component.  right (3 m, 3, c): K^-1 H^T.
    """

    place: NDArray[np.int32]
    nodes: NDArray[np.int32]
    slots: NDArray[np.int32]
    weights: NDArray[np.float64]
    axes: NDArray[np.float64]
    point: NDArray[np.float64]
    row: NDArray[np.float64]
    right: NDArray[np.float64]


def gather_scratch(n_surface: int, n_contacts: int) -> GatherScratch:
    """Workspace for a body of n_surface boundary nodes in at most n_contacts contacts."""
    c, m = n_contacts, min(n_surface, 3 * n_contacts)
    return GatherScratch(
        np.full(n_surface, -1, dtype=np.int32), np.zeros(m, dtype=np.int32), np.zeros((3, c), dtype=np.int32),
        np.zeros((3, c)), np.zeros((3, 3, c)), np.zeros((3, c)), np.zeros((3, c)), np.zeros((3 * m, 3, c)),
    )  # fmt: skip


@njit(nogil=True, cache=True, fastmath=FAST)
def add_delassus(compliance, count, contact, slots, weights, axes, scratch, w):
    """w (3 n, 3 n) += W of one body [m/N], symmetric to the last bit.

    count: the body's contact points. contact (count,): contact of each point. slots, weights (count, 3): its
    nodes and their interpolation weights, 0 where there are fewer. axes (count, 3, 3): rows n, t1, t2 in the
    body's axes, negative on the body that the normal leaves (body 2).
    """
    _load_points(count, slots, weights, axes, scratch)
    n = _number_nodes(count, slots, weights, scratch)
    for a in range(n):
        for i in range(3):
            _right_row(compliance[3 * scratch.nodes[a] + i], count, scratch, scratch.right[3 * a + i])
    row = scratch.row
    for k in range(count):
        for i in range(3):
            _left_row(k, i, slots, weights, axes, scratch)
            line = 3 * contact[k] + i
            for q in range(k):
                first = 3 * contact[q]
                w[line, first] += row[0, q]
                w[line, first + 1] += row[1, q]
                w[line, first + 2] += row[2, q]
            for q in range(k):
                first = 3 * contact[q]
                w[first, line] += row[0, q]
                w[first + 1, line] += row[1, q]
                w[first + 2, line] += row[2, q]
            for j in range(i + 1):
                w[line, 3 * contact[k] + j] += row[j, k]
                if j < i:
                    w[3 * contact[k] + j, line] += row[j, k]
    for a in range(n):
        scratch.place[scratch.nodes[a]] = -1


@njit(nogil=True, cache=True)
def _load_points(count, slots, weights, axes, scratch):
    """The points by component, so that loops over contacts run along contiguous memory."""
    for k in range(count):
        for c in range(3):
            scratch.slots[c, k], scratch.weights[c, k] = slots[k, c], weights[k, c]
            for j in range(3):
                scratch.axes[c, j, k] = axes[k, c, j]


@njit(nogil=True, cache=True)
def _number_nodes(count, slots, weights, scratch):
    """Number the distinct nodes of the points; returns how many."""
    n = 0
    for k in range(count):
        for c in range(3):
            s = slots[k, c]
            if weights[k, c] != 0.0 and scratch.place[s] < 0:
                scratch.place[s] = n
                scratch.nodes[n] = s
                n += 1
    return n


@njit(nogil=True, cache=True, fastmath=FAST)
def _right_row(line, count, scratch, out):
    """out (3, count) = line (3 s,) of K^-1 times H^T."""
    slots, weights, axes, point = scratch.slots, scratch.weights, scratch.axes, scratch.point
    for k in range(count):
        s, v = 3 * slots[0, k], weights[0, k]
        x, y, z = v * line[s], v * line[s + 1], v * line[s + 2]
        if v != 1.0:
            for c in range(1, 3):
                s, v = 3 * slots[c, k], weights[c, k]
                x += v * line[s]
                y += v * line[s + 1]
                z += v * line[s + 2]
        point[0, k], point[1, k], point[2, k] = x, y, z
    for j in range(3):
        for k in range(count):
            out[j, k] = (
                axes[j, 0, k] * point[0, k] + axes[j, 1, k] * point[1, k] + axes[j, 2, k] * point[2, k]
            )


@njit(nogil=True, cache=True, fastmath=FAST)
def _left_row(k, i, slots, weights, axes, scratch):
    """scratch.row[:, :k + 1] = row i of point k's H times K^-1 H^T."""
    row, right = scratch.row, scratch.right
    row[:, : k + 1] = 0.0
    for c in range(3):
        if weights[k, c] == 0.0:
            continue
        first = 3 * scratch.place[slots[k, c]]
        x, y, z = weights[k, c] * axes[k, i, 0], weights[k, c] * axes[k, i, 1], weights[k, c] * axes[k, i, 2]
        for j in range(3):
            to, a, b, d = row[j], right[first, j], right[first + 1, j], right[first + 2, j]
            for q in range(k + 1):
                to[q] += x * a[q] + y * b[q] + z * d[q]


@njit(nogil=True, cache=True, fastmath=FAST)
def free_displacement(boundary, gravity, slots, out):
    """out (k, 3) = displacement [m] of slots (k,) under gravity (3,) [m/s2], body axes, without contact."""
    for k in range(slots.size):
        for j in range(3):
            out[k, j] = 0.0
            for i in range(3):
                out[k, j] += gravity[i] * boundary.sag[i, slots[k], j]


@njit(nogil=True, cache=True, fastmath=FAST)
def add_displacement(compliance, slots, forces, at, out):
    """out (k, 3) += displacement [m] of slots `at` (k,) under forces (j, 3) [N] at slots (j,), body axes."""
    for k in range(at.size):
        for i in range(3):
            line = compliance[3 * at[k] + i]
            total = 0.0
            for a in range(slots.size):
                s = 3 * slots[a]
                total += line[s] * forces[a, 0] + line[s + 1] * forces[a, 1] + line[s + 2] * forces[a, 2]
            out[k, i] += total


@njit(nogil=True, cache=True, fastmath=FAST)
def add_surface_displacement(compliance, slots, forces, out):
    """out (3 s,) += displacement [m] of the whole boundary under forces (j, 3) [N] at slots (j,), body axes.

    The compliance being symmetric, the columns needed are read as rows, which lie contiguous.
    """
    for a in range(slots.size):
        s = 3 * slots[a]
        x, y, z = compliance[s], compliance[s + 1], compliance[s + 2]
        fx, fy, fz = forces[a, 0], forces[a, 1], forces[a, 2]
        for j in range(out.size):
            out[j] += fx * x[j] + fy * y[j] + fz * z[j]
