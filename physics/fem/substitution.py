"""Forward and backward substitution with the factor of palpo.physics.fem.cholesky, of one, few or many sides.

A large factor is read from memory once down and once up, which takes most of the time: `solve_few` reads it
as often for three right-hand sides as `solve_one` for one.
"""

import numpy as np

from palpo.physics.numerics.kernels import fast_kernel, kernel

CHUNK = 32
"""Right-hand sides solved together: a row of them is four cache lines."""

FEW = 3
"""Right-hand sides that `solve_few` solves together."""


@fast_kernel
def solve_one(symbolic, panels, b, out, y, t):
    """out = A^-1 b for one right-hand side (3 n,); y (3 n,), t (tallest panel,): scratch; out may be b."""
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    n = symbolic.order.size
    for p in range(n):
        node = symbolic.order[p]
        for i in range(3):
            y[3 * p + i] = b[3 * node + i]
    for s in range(column.size - 1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        silent = True
        for r in range(width):
            t[r] = y[own + r]
            silent &= t[r] == 0.0
        if silent:
            # a panel that no load has come to hands nothing on: forces on a part pass by most of them
            continue
        for r in range(width, ld):
            t[r] = 0.0
        for c in range(0, width, 3):
            c0 = panel[s] + c * ld
            c1, c2 = c0 + ld, c0 + 2 * ld
            p = t[c] / panels[c0 + c]
            q = (t[c + 1] - p * panels[c0 + c + 1]) / panels[c1 + c + 1]
            w = (t[c + 2] - p * panels[c0 + c + 2] - q * panels[c1 + c + 2]) / panels[c2 + c + 2]
            t[c], t[c + 1], t[c + 2] = p, q, w
            for r in range(c + 3, ld):
                t[r] -= p * panels[c0 + r] + q * panels[c1 + r] + w * panels[c2 + r]
        for r in range(width):
            y[own + r] = t[r]
        for k in range(row_ptr[s + 1] - row_ptr[s]):
            row = 3 * rows[row_ptr[s] + k]
            for i in range(3):
                y[row + i] += t[width + 3 * k + i]
    for s in range(column.size - 2, -1, -1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        for r in range(width):
            t[r] = y[own + r]
        for k in range(row_ptr[s + 1] - row_ptr[s]):
            row = 3 * rows[row_ptr[s] + k]
            for i in range(3):
                t[width + 3 * k + i] = y[row + i]
        for c in range(width - 3, -1, -3):
            c0 = panel[s] + c * ld
            c1, c2 = c0 + ld, c0 + 2 * ld
            p, q, w = t[c], t[c + 1], t[c + 2]
            for r in range(c + 3, ld):
                p -= panels[c0 + r] * t[r]
                q -= panels[c1 + r] * t[r]
                w -= panels[c2 + r] * t[r]
            w /= panels[c2 + c + 2]
            q = (q - w * panels[c1 + c + 2]) / panels[c1 + c + 1]
            p = (p - q * panels[c0 + c + 1] - w * panels[c0 + c + 2]) / panels[c0 + c]
            t[c], t[c + 1], t[c + 2] = p, q, w
        for r in range(width):
            y[own + r] = t[r]
    for p in range(n):
        node = symbolic.order[p]
        for i in range(3):
            out[3 * node + i] = y[3 * p + i]


@fast_kernel
def _solve_triple(panels, c0, c1, c2, c, t):
    """(p, q, w) = L^-1 t of the lower triangle of three columns from row c of a panel on; t gets it."""
    p = t[c] / panels[c0 + c]
    q = (t[c + 1] - p * panels[c0 + c + 1]) / panels[c1 + c + 1]
    w = (t[c + 2] - p * panels[c0 + c + 2] - q * panels[c1 + c + 2]) / panels[c2 + c + 2]
    t[c], t[c + 1], t[c + 2] = p, q, w
    return p, q, w


@fast_kernel
def _finish_triple(panels, c0, c1, c2, c, t, p, q, w):
    """t = L^-T (p, q, w) of that triangle."""
    w /= panels[c2 + c + 2]
    q = (q - w * panels[c1 + c + 2]) / panels[c1 + c + 1]
    p = (p - q * panels[c0 + c + 1] - w * panels[c0 + c + 2]) / panels[c0 + c]
    t[c], t[c + 1], t[c + 2] = p, q, w


@fast_kernel
def solve_few(symbolic, panels, b, y, t):
    """b = A^-1 b for FEW right-hand sides, b (FEW, 3 n); y (FEW, 3 n), t (FEW, tallest panel): scratch."""
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    n = symbolic.order.size
    t0, t1, t2 = t[0], t[1], t[2]
    for side in range(FEW):
        for p in range(n):
            node = symbolic.order[p]
            for i in range(3):
                y[side, 3 * p + i] = b[side, 3 * node + i]
    for s in range(column.size - 1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        silent = True
        for side in range(FEW):
            for r in range(width):
                t[side, r] = y[side, own + r]
                silent &= t[side, r] == 0.0
            t[side, width:ld] = 0.0
        if silent:
            continue
        for c in range(0, width, 3):
            c0 = panel[s] + c * ld
            c1, c2 = c0 + ld, c0 + 2 * ld
            p0, q0, w0 = _solve_triple(panels, c0, c1, c2, c, t0)
            p1, q1, w1 = _solve_triple(panels, c0, c1, c2, c, t1)
            p2, q2, w2 = _solve_triple(panels, c0, c1, c2, c, t2)
            for r in range(c + 3, ld):
                x, z, u = panels[c0 + r], panels[c1 + r], panels[c2 + r]
                t0[r] -= p0 * x + q0 * z + w0 * u
                t1[r] -= p1 * x + q1 * z + w1 * u
                t2[r] -= p2 * x + q2 * z + w2 * u
        for side in range(FEW):
            y[side, own : own + width] = t[side, :width]
            for k in range(row_ptr[s + 1] - row_ptr[s]):
                row = 3 * rows[row_ptr[s] + k]
                for i in range(3):
                    y[side, row + i] += t[side, width + 3 * k + i]
    for s in range(column.size - 2, -1, -1):
        own, width = 3 * column[s], 3 * (column[s + 1] - column[s])
        ld = width + 3 * (row_ptr[s + 1] - row_ptr[s])
        for side in range(FEW):
            t[side, :width] = y[side, own : own + width]
            for k in range(row_ptr[s + 1] - row_ptr[s]):
                row = 3 * rows[row_ptr[s] + k]
                for i in range(3):
                    t[side, width + 3 * k + i] = y[side, row + i]
        for c in range(width - 3, -1, -3):
            c0 = panel[s] + c * ld
            c1, c2 = c0 + ld, c0 + 2 * ld
            p0, q0, w0 = t0[c], t0[c + 1], t0[c + 2]
            p1, q1, w1 = t1[c], t1[c + 1], t1[c + 2]
            p2, q2, w2 = t2[c], t2[c + 1], t2[c + 2]
            for r in range(c + 3, ld):
                x, z, u = panels[c0 + r], panels[c1 + r], panels[c2 + r]
                p0 -= x * t0[r]
                q0 -= z * t0[r]
                w0 -= u * t0[r]
                p1 -= x * t1[r]
                q1 -= z * t1[r]
                w1 -= u * t1[r]
                p2 -= x * t2[r]
                q2 -= z * t2[r]
                w2 -= u * t2[r]
            _finish_triple(panels, c0, c1, c2, c, t0, p0, q0, w0)
            _finish_triple(panels, c0, c1, c2, c, t1, p1, q1, w1)
            _finish_triple(panels, c0, c1, c2, c, t2, p2, q2, w2)
        for side in range(FEW):
            y[side, own : own + width] = t[side, :width]
    for side in range(FEW):
        for p in range(n):
            node = symbolic.order[p]
            for i in range(3):
                b[side, 3 * node + i] = y[side, 3 * p + i]


@fast_kernel
def _subtract(panels, p, ld, s, t):
    """t -= P s on three rows of a chunk each, P (3, 3) column-major at p."""
    w0, w1, w2 = panels[p], panels[p + 1], panels[p + 2]
    w3, w4, w5 = panels[p + ld], panels[p + ld + 1], panels[p + ld + 2]
    w6, w7, w8 = panels[p + 2 * ld], panels[p + 2 * ld + 1], panels[p + 2 * ld + 2]
    for k in range(CHUNK):
        x, y, z = s[k], s[CHUNK + k], s[2 * CHUNK + k]
        t[k] -= w0 * x + w3 * y + w6 * z
        t[CHUNK + k] -= w1 * x + w4 * y + w7 * z
        t[2 * CHUNK + k] -= w2 * x + w5 * y + w8 * z


@fast_kernel
def _subtract_transposed(panels, p, ld, s, t):
    """t -= P^T s, as `_subtract`."""
    w0, w1, w2 = panels[p], panels[p + 1], panels[p + 2]
    w3, w4, w5 = panels[p + ld], panels[p + ld + 1], panels[p + ld + 2]
    w6, w7, w8 = panels[p + 2 * ld], panels[p + 2 * ld + 1], panels[p + 2 * ld + 2]
    for k in range(CHUNK):
        x, y, z = s[k], s[CHUNK + k], s[2 * CHUNK + k]
        t[k] -= w0 * x + w1 * y + w2 * z
        t[CHUNK + k] -= w3 * x + w4 * y + w5 * z
        t[2 * CHUNK + k] -= w6 * x + w7 * y + w8 * z


@fast_kernel
def _solve_node(panels, p, ld, t, transposed):
    """t = L^-1 t, or L^-T t, of the lower triangle L (3, 3) at p."""
    d0, d1, d2 = 1.0 / panels[p], 1.0 / panels[p + ld + 1], 1.0 / panels[p + 2 * ld + 2]
    l10, l20, l21 = panels[p + 1], panels[p + 2], panels[p + ld + 2]
    if transposed:
        for k in range(CHUNK):
            z = t[2 * CHUNK + k] * d2
            y = (t[CHUNK + k] - l21 * z) * d1
            t[2 * CHUNK + k] = z
            t[CHUNK + k] = y
            t[k] = (t[k] - l10 * y - l20 * z) * d0
    else:
        for k in range(CHUNK):
            x = t[k] * d0
            y = (t[CHUNK + k] - l10 * x) * d1
            t[k] = x
            t[CHUNK + k] = y
            t[2 * CHUNK + k] = (t[2 * CHUNK + k] - l20 * x - l21 * y) * d2


@fast_kernel
def _forward(symbolic, panels, y, active, parents):
    """y = L^-1 y, a node's three rows of a chunk in a row: slices of a constant length run vectorised."""
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    node = 3 * CHUNK
    for s in range(column.size - 1):
        if not active[s]:
            continue
        active[parents[s]] = True
        first, last = column[s], column[s + 1]
        ld = 3 * (last - first + row_ptr[s + 1] - row_ptr[s])
        for c in range(first, last):
            diagonal = panel[s] + 3 * (c - first) * (ld + 1)
            source = y[node * c : node * (c + 1)]
            _solve_node(panels, diagonal, ld, source, False)
            for r in range(c + 1, last):
                target = y[node * r : node * (r + 1)]
                _subtract(panels, diagonal + 3 * (r - c), ld, source, target)
            below = diagonal + 3 * (last - c)
            for q in range(row_ptr[s + 1] - row_ptr[s]):
                r = rows[row_ptr[s] + q]
                _subtract(panels, below + 3 * q, ld, source, y[node * r : node * (r + 1)])


@fast_kernel
def _backward(symbolic, panels, y):
    """y = L^-T y, as `_forward`."""
    column, row_ptr, rows, panel = symbolic.column, symbolic.row_ptr, symbolic.rows, symbolic.panel
    node = 3 * CHUNK
    for s in range(column.size - 2, -1, -1):
        first, last = column[s], column[s + 1]
        ld = 3 * (last - first + row_ptr[s + 1] - row_ptr[s])
        for c in range(last - 1, first - 1, -1):
            diagonal = panel[s] + 3 * (c - first) * (ld + 1)
            target = y[node * c : node * (c + 1)]
            below = diagonal + 3 * (last - c)
            for q in range(row_ptr[s + 1] - row_ptr[s]):
                r = rows[row_ptr[s] + q]
                _subtract_transposed(panels, below + 3 * q, ld, y[node * r : node * (r + 1)], target)
            for r in range(c + 1, last):
                source = y[node * r : node * (r + 1)]
                _subtract_transposed(panels, diagonal + 3 * (r - c), ld, source, target)
            _solve_node(panels, diagonal, ld, target, True)


@kernel
def solve_many(symbolic, panels, b, out, whole):
    """Many right-hand sides at once, b and out (3 n, k) with rows contiguous; out may be b.

    whole: out = A^-1 b; else out = L^-1 P b, in elimination order, whose products give b^T A^-1 b.
    Subtrees without a non-zero row of b are skipped on the way down.
    """
    n, n_super, total = symbolic.order.size, symbolic.column.size - 1, b.shape[1]
    y = np.empty(3 * n * CHUNK)
    active = np.empty(n_super + 1, dtype=np.bool_)
    parents = np.full(n_super, n_super)
    for s in range(n_super):
        if symbolic.seg_ptr[s + 1] > symbolic.seg_ptr[s]:
            parents[s] = symbolic.seg_target[symbolic.seg_ptr[s]]
    for begin in range(0, total, CHUNK):
        width = min(CHUNK, total - begin)
        active[:] = False
        s = 0
        for p in range(n):
            while p >= symbolic.column[s + 1]:
                s += 1
            for i in range(3):
                source, place = 3 * symbolic.order[p] + i, (3 * p + i) * CHUNK
                for k in range(width):
                    y[place + k] = b[source, begin + k]
                    if b[source, begin + k] != 0.0:
                        active[s] = True
                for k in range(width, CHUNK):
                    y[place + k] = 0.0
        _forward(symbolic, panels, y, active, parents)
        if whole:
            _backward(symbolic, panels, y)
        for p in range(n):
            for i in range(3):
                target = 3 * symbolic.order[p] + i if whole else 3 * p + i
                for k in range(width):
                    out[target, begin + k] = y[(3 * p + i) * CHUNK + k]
