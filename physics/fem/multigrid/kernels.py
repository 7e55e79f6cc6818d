"""The compiled parts of a multigrid solution of several right sides at once.

A vector field of k columns is an array (3 nodes, k). `lanes` is a tuple of k entries: its length is known to
the compiler, so that a row of numbers takes few instructions, and one block of the matrix, once loaded,
serves all columns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.numerics.kernels import fast_inlined, fast_kernel

TINY = np.float32(1e-30)


class Preconditioner(NamedTuple):
    """What a V-cycle knows of the matrix, in single precision."""

    data: NDArray[np.float32]
    """Blocks of all levels, shape (e, 9)."""
    inverse: NDArray[np.float32]
    """Inverses of the diagonal blocks, shape (nodes, 9)."""
    coarsest: NDArray[np.float32]
    """Inverse of the last level."""


@fast_inlined
def _entries(a):
    return a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]


@fast_inlined
def _add_entries(lanes, node, data, first, last, x, out, i):
    """out += the entries first to last - 1 of a row of A, times x, at node i of out.

    All rows are taken from the two arrays here, or the compiler would have to tell six apart, and would not
    take several columns an instruction.
    """
    p, q, r = out[3 * i], out[3 * i + 1], out[3 * i + 2]
    for e in range(first, last):
        c = 3 * node[e]
        u, v, w = x[c], x[c + 1], x[c + 2]
        a0, a1, a2, a3, a4, a5, a6, a7, a8 = _entries(data[e])
        for k in range(len(lanes)):
            p[k] += a0 * u[k] + a1 * v[k] + a2 * w[k]
            q[k] += a3 * u[k] + a4 * v[k] + a5 * w[k]
            r[k] += a6 * u[k] + a7 * v[k] + a8 * w[k]


@fast_inlined
def _relax(lanes, a, b, i, row, x):
    """x = D^-1 (b - row) at node i, whose D^-1 is a; row (3, k) is overwritten."""
    a0, a1, a2, a3, a4, a5, a6, a7, a8 = a
    for c in range(3):
        given, known = b[3 * i + c], row[c]
        for k in range(len(lanes)):
            known[k] = given[k] - known[k]
    u, v, w = row[0], row[1], row[2]
    p, q, r = x[3 * i], x[3 * i + 1], x[3 * i + 2]
    for k in range(len(lanes)):
        p[k] = a0 * u[k] + a1 * v[k] + a2 * w[k]
        q[k] = a3 * u[k] + a4 * v[k] + a5 * w[k]
        r[k] = a6 * u[k] + a7 * v[k] + a8 * w[k]


@fast_kernel
def product(lanes, rows, data, x, out, dots):
    """out = A x on the mesh's nodes; dots (k,) = x . out."""
    dots[:] = 0.0
    for i in range(rows.level[1]):
        out[3 * i : 3 * i + 3] = 0.0
        _add_entries(lanes, rows.node, data, rows.start[i], rows.start[i + 1], x, out, i)
        for c in range(3):
            a, b = x[3 * i + c], out[3 * i + c]
            for k in range(len(lanes)):
                dots[k] += a[k] * b[k]


@fast_inlined
def _add_scaled(lanes, s, x, i, out, j):
    """out += s x from node i to node j."""
    for c in range(3):
        a, b = x[3 * i + c], out[3 * j + c]
        for k in range(len(lanes)):
            b[k] += s * a[k]


@fast_kernel
def cycle(lanes, rows, known, b, x):
    """x = B b, one V-cycle: block Gauss-Seidel forward, the coarser levels, block Gauss-Seidel backward.

    The second sweep is the adjoint of the first, so B is symmetric and positive (Briggs, Henson & McCormick,
    chapter 5).
    b, x (3 nodes of all levels, k): those of the coarser levels are scratch.
    """
    data, inverse, coarsest = known
    row = np.zeros((3, len(lanes)), np.float32)
    levels = rows.level.size - 1
    for level in range(levels - 1):
        first, last = rows.level[level], rows.level[level + 1]
        b[3 * last : 3 * rows.level[level + 2]] = 0.0
        for i in range(first, last):
            row[:] = 0.0
            _add_entries(lanes, rows.node, data, rows.start[i], rows.diagonal[i], x, row, 0)
            _relax(lanes, _entries(inverse[i]), b, i, row, x)
        # after this sweep the residual of a row is what its later columns give
        for i in range(first, last):
            row[:] = 0.0
            _add_entries(lanes, rows.node, data, rows.diagonal[i] + 1, rows.start[i + 1], x, row, 0)
            for k in range(4):
                if rows.weight[i, k] != 0.0:
                    _add_scaled(lanes, -rows.weight[i, k], row, 0, b, rows.parent[i, k])
    _apply_dense(lanes, coarsest, b, x, 3 * rows.level[levels - 1])
    for level in range(levels - 2, -1, -1):
        first, last = rows.level[level], rows.level[level + 1]
        for i in range(first, last):
            for k in range(4):
                if rows.weight[i, k] != 0.0:
                    _add_scaled(lanes, rows.weight[i, k], x, rows.parent[i, k], x, i)
        for i in range(last - 1, first - 1, -1):
            row[:] = 0.0
            _add_entries(lanes, rows.node, data, rows.start[i], rows.diagonal[i], x, row, 0)
            _add_entries(lanes, rows.node, data, rows.diagonal[i] + 1, rows.start[i + 1], x, row, 0)
            _relax(lanes, _entries(inverse[i]), b, i, row, x)


@fast_inlined
def _apply_dense(lanes, matrix, b, x, first):
    """x = matrix b for the rows from `first` on."""
    for i in range(len(matrix)):
        out = x[first + i]
        out[:] = 0.0
        for j in range(len(matrix)):
            s, given = matrix[i, j], b[first + j]
            for k in range(len(lanes)):
                out[k] += s * given[k]


@fast_kernel
def conjugate_gradients(lanes, rows, fine, known, x, r, z, vectors, single, tolerance, most, left):
    """Solve A x = b by conjugate gradients under `cycle`; returns the steps made.

    fine: the mesh's blocks in the precision of x; known: a `Preconditioner`.
    x (3 n, k): where to begin, and the solution.  r: holds b at the start.  z, vectors (2, 3 n, k): scratch.
    single (2, 3 nodes of all levels, k): scratch in single precision, which r and z may be parts of.
    left (k,): |b - A x| / |b| of each column at the end.  It stops when all are within `tolerance`, or after
    `most` steps.  Source: Hestenes & Stiefel (1952), as in Golub & Van Loan, Matrix Computations, 11.5.
    """
    n = len(lanes)
    p, q = vectors[0], vectors[1]
    given, dots, before, share = (
        np.zeros_like(left),
        np.zeros_like(left),
        np.zeros_like(left),
        np.zeros_like(left),
    )
    product(lanes, rows, fine, x, q, dots)
    dots[:] = 0.0
    for i in range(len(x)):
        ri, qi, pi = r[i], q[i], p[i]
        for k in range(n):
            given[k] += ri[k] * ri[k]
            ri[k] -= qi[k]
            dots[k] += ri[k] * ri[k]
            pi[k] = 0.0
    step = 0
    while True:
        worst = 0.0
        for k in range(n):
            left[k] = np.sqrt(dots[k] / (given[k] + TINY))
            # a column that is not a number must end this as well
            worst = max(worst, left[k]) if left[k] == left[k] else np.inf
        if step >= most or not worst > tolerance or worst == np.inf:
            return step
        if r.itemsize != single.itemsize:
            single[0, : len(x)] = r
        cycle(lanes, rows, known, single[0], single[1])
        if r.itemsize != single.itemsize:
            z[:] = single[1, : len(x)]
        dots[:] = 0.0
        for i in range(len(x)):
            ri, zi = r[i], z[i]
            for k in range(n):
                dots[k] += ri[k] * zi[k]
        for k in range(n):
            share[k] = dots[k] / (before[k] + TINY) if step > 0 else 0.0
            before[k] = dots[k]
        for i in range(len(x)):
            pi, zi = p[i], z[i]
            for k in range(n):
                pi[k] = zi[k] + share[k] * pi[k]
        product(lanes, rows, fine, p, q, dots)
        for k in range(n):
            share[k] = before[k] / (dots[k] + TINY)
        dots[:] = 0.0
        for i in range(len(x)):
            xi, ri, pi, qi = x[i], r[i], p[i], q[i]
            for k in range(n):
                xi[k] += share[k] * pi[k]
                ri[k] -= share[k] * qi[k]
                dots[k] += ri[k] * ri[k]
        step += 1


@fast_kernel
def combined(held, pull, mass, stiffness, out):
    """out (m, 9) = held M + pull K for scalars mass (m,) and blocks stiffness (m, 9)."""
    for e in range(mass.size):
        for i in range(9):
            out[e, i] = pull * stiffness[e, i] + (held * mass[e] if i % 4 == 0 else 0.0)


@fast_kernel
def invert_diagonal(diagonal, data, out):
    """out (nodes, 9): inverses of the symmetric diagonal blocks."""
    for i in range(diagonal.size):
        d = data[diagonal[i]]
        a, b, c = np.float64(d[0]), np.float64(d[1]), np.float64(d[2])
        e, f, g = np.float64(d[4]), np.float64(d[5]), np.float64(d[8])
        u, v, w = e * g - f * f, c * f - b * g, b * f - c * e
        scale = 1.0 / (a * u + b * v + c * w)
        out[i, 0] = u * scale
        out[i, 1] = out[i, 3] = v * scale
        out[i, 2] = out[i, 6] = w * scale
        out[i, 4] = (a * g - c * c) * scale
        out[i, 5] = out[i, 7] = (b * c - a * f) * scale
        out[i, 8] = (a * e - b * b) * scale
