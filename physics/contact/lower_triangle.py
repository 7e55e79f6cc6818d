"""A symmetric matrix that is summed up in its lower triangle, then mirrored once.

W of hundreds of contacts is larger than a processor's caches: what a sum costs is how often W passes through
them. Its upper triangle, written along columns, would be the dearest half.
"""

from palpo.physics.numerics.kernels import fast_kernel, kernel

TILE = 32
"""Rows and columns that are mirrored together: a tile fits in the first cache."""


@kernel
def clear_lower(w, span):
    """Lower triangles = 0 of the diagonal blocks of w that begin at each of span (b + 1,), and end there."""
    for block in range(span.shape[0] - 1):
        for i in range(span[block], span[block + 1]):
            w[i, span[block] : i + 1] = 0.0


@fast_kernel
def add_lower_products(w, span, rows, sign):
    """w += sign Y Y^T in the lower triangles of those blocks; rows: Y^T (k, n), C-contiguous."""
    count = rows.shape[0]
    for block in range(span.shape[0] - 1):
        first = span[block]
        for i in range(first, span[block + 1]):
            out = w[i, first : i + 1]
            for a in range(0, count - 2, 3):
                p, q, r = rows[a, first : i + 1], rows[a + 1, first : i + 1], rows[a + 2, first : i + 1]
                x, y, z = sign * rows[a, i], sign * rows[a + 1, i], sign * rows[a + 2, i]
                for j in range(out.shape[0]):
                    out[j] += x * p[j] + y * q[j] + z * r[j]
            for a in range(count - count % 3, count):
                p, x = rows[a, first : i + 1], sign * rows[a, i]
                for j in range(out.shape[0]):
                    out[j] += x * p[j]


@kernel
def fill_upper(w, span):
    """The upper triangles of those blocks = their lower ones."""
    for block in range(span.shape[0] - 1):
        first, past = span[block], span[block + 1]
        for top in range(first, past, TILE):
            for left in range(first, top + 1, TILE):
                for j in range(left, min(left + TILE, past)):
                    for i in range(max(top, j + 1), min(top + TILE, past)):
                        w[j, i] = w[i, j]
