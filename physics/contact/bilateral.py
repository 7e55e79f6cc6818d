"""Bilateral rows eliminated exactly, so that the contact solver sees the bodies already joined.

With u_b = 0 on the bilateral rows b and contact rows c,

    W_cc' = W_cc - W_cb W_bb^-1 W_bc,   b_c' = b_c - W_cb W_bb^-1 b_b,   r_b = -W_bb^-1 (b_b + W_bc r_c)

which keeps welds exact in every tick and leaves Gauss-Seidel the rows that need it.
"""

from palpo.physics.numerics.kernels import inlined, kernel

REGULARISATION = 1e-10
"""Relative compliance added to W_bb: two attachments of the same point stay solvable, sharing the force."""

HELD = 1e-6
"""Share of its own normal compliance below which a contact counts as held by the attachments."""


@inlined
def free_row(w, b, i, n):
    """Take row i, whose two next are bilateral, out of a problem of n rows: its force is zero."""
    for j in range(n):
        w[i, j] = 0.0
        w[j, i] = 0.0
    w[i, i] = w[i + 1, i + 1] + w[i + 2, i + 2]
    b[i] = 0.0


@kernel
def _take_off(s, x, out):
    """out -= s x: several entries an instruction, because every array is an argument and starts at 0."""
    for q in range(out.size):
        out[q] -= s * x[q]


@kernel
def eliminate(w, b, n_bilateral, n_rows, factor):
    """In place: the rows from n_bilateral on become the condensed contact problem.

    w (rows, rows), b (rows,): bilateral rows first. Writes the Cholesky factor L of W_bb into
    factor[:n_bilateral, :n_bilateral] and Y = L^-1 W_bc, y = L^-1 b_b over the bilateral rows of w and b.
    A contact whose normal the attachments leave no compliance is taken as open: no force could part it.
    Returns 0, or 1 where W_bb is not positive definite (or not finite).
    """
    m = n_bilateral
    trace = 0.0
    for i in range(m):
        trace += w[i, i]
    shift = REGULARISATION * trace / max(m, 1)
    for i in range(m):
        for j in range(i + 1):
            s = w[i, j] + (shift if i == j else 0.0)
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            if i == j:
                if not s > 0.0:
                    return 1
                factor[i, i] = s**0.5
            else:
                factor[i, j] = s / factor[j, j]
    for i in range(m):
        inverse = 1.0 / factor[i, i]
        for k in range(i):
            f = factor[i, k]
            _take_off(f, w[k, m:n_rows], w[i, m:n_rows])
            b[i] -= f * b[k]
        for c in range(m, n_rows):
            w[i, c] *= inverse
        b[i] *= inverse
    for r in range(m, n_rows):
        alone = w[r, r]
        for i in range(m):
            y = w[i, r]
            if y != 0.0:
                _take_off(y, w[i, m:n_rows], w[r, m:n_rows])
                b[r] -= y * b[i]
        if (r - m) % 3 == 0 and w[r, r] < HELD * alone:
            b[r] = max(b[r], 0.0)
    return 0


@kernel
def recover(w, b, n_bilateral, n_rows, factor, r):
    """r[:n_bilateral] from the contact forces r[n_bilateral:], after `eliminate`."""
    m = n_bilateral
    for i in range(m):
        s = b[i]
        for c in range(m, n_rows):
            s += w[i, c] * r[c]
        r[i] = -s
    for i in range(m - 1, -1, -1):
        s = r[i]
        for k in range(i + 1, m):
            s -= factor[k, i] * r[k]
        r[i] = s / factor[i, i]
