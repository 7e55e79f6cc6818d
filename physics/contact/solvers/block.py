"""One contact's part in a sweep: the offset it sees from the others, and its force handed to all of them.

Gauss-Seidel over contacts (001, N. Talbi's thesis, 2.68 to 2.71; Jean & Moreau 1992) keeps u = W r + b up to
date, so that the offset of a contact costs nine products, and a contact whose force does not change costs
the others nothing.
"""

from palpo.physics.numerics.kernels import inlined


@inlined
def open_block(block, r, u, i, own, free):
    """own = r[i : i + 3], free = x_ab of (2.69): u without the contact's own force; block = W_aa (3, 3)."""
    for c in range(3):
        own[c] = r[i + c]
    for c in range(3):
        free[c] = u[i + c] - block[c, 0] * own[0] - block[c, 1] * own[1] - block[c, 2] * own[2]


@inlined
def close_block(w, r, ahead, i, first, last, own, change):
    """r[i : i + 3] = own, and `ahead`, u over the rows first to last, follows. Returns change + |step|^2."""
    for c in range(3):
        step = own[c] - r[i + c]
        if step != 0.0:
            change += step * step
            r[i + c] = own[c]
            add_row(ahead, w[i + c, first:last], step)
    return change


@inlined
def add_row(u, row, factor):
    """u += factor row. W is symmetric: its row serves as its column, and lies in one piece.

    Both start at 0, so that no index can be negative and the loop takes several columns an instruction.
    """
    for j in range(row.shape[0]):
        u[j] += factor * row[j]


@inlined
def set_offset(w, b, r, u, first, last):
    """u = W r + b over the rows first to last."""
    for i in range(first, last):
        u[i] = b[i]
    ahead = u[first:last]
    for i in range(first, last):
        if r[i] != 0.0:
            add_row(ahead, w[i, first:last], r[i])
