"""K^-1 on the boundary of a quasi-static body as arrays, and what the servo computes from them.

Slots number the boundary nodes. All arrays are in the body's axes; the compliance has zero rows where a node
is clamped, so that no kernel needs to ask. The Delassus operator of one body is W = H K^-1 H^T, and H of a
contact touches at most three nodes (001, N. Talbi's thesis, 2.48 to 2.52 and 2.67).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import fast_kernel, kernel


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

    place (s,): -1 between calls.  nodes (m,); last (m,): the last point that uses each.
    slots, weights (3, c), axes (3, 3, c): points by component.  point (3, c), rows (3, 3, c): lines of a
    product by component.  right (3 m, 3, c): K^-1 H^T.
    """

    place: NDArray[np.int32]
    nodes: NDArray[np.int32]
    last: NDArray[np.int32]
    slots: NDArray[np.int32]
    weights: NDArray[np.float64]
    axes: NDArray[np.float64]
    point: NDArray[np.float64]
    rows: NDArray[np.float64]
    right: NDArray[np.float64]


def gather_scratch(n_surface: int, n_contacts: int) -> GatherScratch:
    """Workspace for a body of n_surface boundary nodes in at most n_contacts contacts."""
    c, m = n_contacts, min(n_surface, 3 * n_contacts)
    return GatherScratch(
        place=np.full(n_surface, -1, dtype=np.int32),
        nodes=np.zeros(m, dtype=np.int32),
        last=np.zeros(m, dtype=np.int32),
        slots=np.zeros((3, c), dtype=np.int32),
        weights=np.zeros((3, c)),
        axes=np.zeros((3, 3, c)),
        point=np.zeros((3, c)),
        rows=np.zeros((3, 3, c)),
        right=np.zeros((3 * m, 3, c)),
    )


@fast_kernel
def add_delassus(compliance, count, contact, slots, weights, axes, scratch, w):
    """w (3 n, 3 n) += W of one body [m/N], symmetric to the last bit.

    count: the body's contact points. contact (count,): contact of each point. slots, weights (count, 3): its
    nodes and their interpolation weights, 0 where there are fewer. axes (count, 3, 3): rows n, t1, t2 in the
    body's axes, negative on the body that the normal leaves (body 2).
    """
    _add_gathered(compliance, count, contact, slots, weights, axes, scratch, True, w)


@fast_kernel
def add_lower_delassus(compliance, count, contact, slots, weights, axes, scratch, w):
    """As `add_delassus`, to the lower triangle of w alone, for points whose contacts do not fall."""
    _add_gathered(compliance, count, contact, slots, weights, axes, scratch, False, w)


@fast_kernel
def _add_gathered(compliance, count, contact, slots, weights, axes, scratch, mirrored, w):
    """w += H K^-1 H^T: the block of each point with those before it, and its mirror if that is wanted.

    Two points of one contact, one a side, have their block's mirror in any case.
    """
    _load_points(count, slots, weights, axes, scratch)
    n = _number_nodes(count, slots, weights, scratch)
    for a in range(n):
        # W is symmetric: a node's rows are wanted up to the last point that uses it
        for i in range(3):
            line = compliance[3 * scratch.nodes[a] + i]
            _right_row(line, scratch.last[a] + 1, scratch, scratch.right[3 * a + i])
    rows = scratch.rows
    for k in range(count):
        _left_rows(k, slots[k], weights[k], axes[k], scratch)
        first = 3 * contact[k]
        same = k - 1 if k > 0 and contact[k - 1] == contact[k] else k
        for i in range(3):
            for q in range(k):
                other = 3 * contact[q]
                w[first + i, other] += rows[i, 0, q]
                w[first + i, other + 1] += rows[i, 1, q]
                w[first + i, other + 2] += rows[i, 2, q]
            for q in range(0 if mirrored else same, k):
                other = 3 * contact[q]
                w[other, first + i] += rows[i, 0, q]
                w[other + 1, first + i] += rows[i, 1, q]
                w[other + 2, first + i] += rows[i, 2, q]
            w[first + i, first + i] += rows[i, i, k]
            for j in range(i):
                w[first + i, first + j] += rows[i, j, k]
                w[first + j, first + i] += rows[i, j, k]
    for a in range(n):
        scratch.place[scratch.nodes[a]] = -1


@kernel
def add_rows(field, count, contact, slots, weights, axes, out):
    """out (3 n,) += H field: what a field of vectors (s, 3) on one body's nodes is in the contacts' rows.

    Points as in `add_delassus`. Displacements give offsets [m]; h^2 A^-1 H_p^T gives a column of W_cp.
    """
    for k in range(count):
        x, y, z = 0.0, 0.0, 0.0
        for c in range(3):
            if weights[k, c] != 0.0:
                s = slots[k, c]
                x += weights[k, c] * field[s, 0]
                y += weights[k, c] * field[s, 1]
                z += weights[k, c] * field[s, 2]
        for i in range(3):
            out[3 * contact[k] + i] += axes[k, i, 0] * x + axes[k, i, 1] * y + axes[k, i, 2] * z


@kernel
def _load_points(count, slots, weights, axes, scratch):
    """The points by component, so that loops over contacts run along contiguous memory."""
    for k in range(count):
        for c in range(3):
            scratch.slots[c, k], scratch.weights[c, k] = slots[k, c], weights[k, c]
            for j in range(3):
                scratch.axes[c, j, k] = axes[k, c, j]


@kernel
def _number_nodes(count, slots, weights, scratch):
    """Number the distinct nodes of the points and note the last point of each; returns how many."""
    n = 0
    for k in range(count):
        for c in range(3):
            s = slots[k, c]
            if weights[k, c] == 0.0:
                continue
            if scratch.place[s] < 0:
                scratch.place[s] = n
                scratch.nodes[n] = s
                n += 1
            scratch.last[scratch.place[s]] = k
    return n


@fast_kernel
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


@fast_kernel
def _left_rows(k, slots, weights, axes, scratch):
    """scratch.rows[..., :k + 1] = point k's H, of slots and weights (3,) and axes (3, 3), times K^-1 H^T."""
    rows, right = scratch.rows, scratch.right
    rows[:, :, : k + 1] = 0.0
    for c in range(3):
        v = weights[c]
        if v == 0.0:
            continue
        first = 3 * scratch.place[slots[c]]
        nx, ny, nz = v * axes[0, 0], v * axes[0, 1], v * axes[0, 2]
        sx, sy, sz = v * axes[1, 0], v * axes[1, 1], v * axes[1, 2]
        tx, ty, tz = v * axes[2, 0], v * axes[2, 1], v * axes[2, 2]
        for j in range(3):
            a, b, d = right[first, j], right[first + 1, j], right[first + 2, j]
            n, s, t = rows[0, j], rows[1, j], rows[2, j]
            for q in range(k + 1):
                x, y, z = a[q], b[q], d[q]
                n[q] += nx * x + ny * y + nz * z
                s[q] += sx * x + sy * y + sz * z
                t[q] += tx * x + ty * y + tz * z


@fast_kernel
def free_displacement(boundary, gravity, slots, out):
    """out (k, 3) = displacement [m] of slots (k,) under gravity (3,) [m/s2], body axes, without contact."""
    for k in range(slots.size):
        for j in range(3):
            out[k, j] = 0.0
            for i in range(3):
                out[k, j] += gravity[i] * boundary.sag[i, slots[k], j]


@fast_kernel
def place_surface(rest, u, position, rotation, out):
    """out (s, 3) = p + R (rest + u) [m] of the whole boundary, world axes.

    rest, u (s, 3) in the body's axes. position p (3,) [m], rotation R (3, 3).
    """
    for s in range(rest.shape[0]):
        x, y, z = rest[s, 0] + u[s, 0], rest[s, 1] + u[s, 1], rest[s, 2] + u[s, 2]
        for i in range(3):
            out[s, i] = position[i] + rotation[i, 0] * x + rotation[i, 1] * y + rotation[i, 2] * z


@fast_kernel
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


@fast_kernel
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
