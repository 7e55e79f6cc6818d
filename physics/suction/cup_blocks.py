"""Several cups on one rigid partner: their contacts know each other only through its motion.

    W = blockdiag(W_cup) + Y Y^T between the blocks,    Y = h J_p M_p^-1/2    (N, 6)

with M_p what the partner's velocity meets in the step. A cup's own block holds its share of Y Y^T; between
two blocks nothing else stands, so it is never formed: a sweep visits cup after cup, each in its own block,
and hands on what all its forces moved the partner by, six numbers. For m cups of n contacts a sweep so costs
m n^2 in place of m^2 n^2, and gives the same forces to rounding.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.solvers.anderson import sweep
from palpo.physics.contact.solvers.block import add_row
from palpo.physics.kernels import inlined, kernel


class CupBlocks(NamedTuple):
    """m blocks of contacts, the cups' and the ground's, in the order of their rows."""

    span: NDArray[np.int64]
    """(m + 1,) where each block's contacts begin; the last is their number."""
    half: NDArray[np.float64]
    """(N, 6) Y [m^1/2 N^-1/2], N = 3 n."""
    seen: NDArray[np.float64]
    """(m, 6) Y^T r that the u of each block has in it."""
    moved: NDArray[np.float64]
    """(6,) Y^T r of all."""


def make_blocks(span: NDArray[np.int64], half: NDArray[np.float64]) -> CupBlocks:
    """Of these; see CupBlocks."""
    return CupBlocks(span, half, np.zeros((len(span) - 1, half.shape[1])), np.zeros(half.shape[1]))


@inlined
def _catch_up(u, blocks, c):
    """u of block c gets what the others have moved the partner by since it was last visited."""
    span, half, seen, moved = blocks
    d0, d1, d2 = moved[0] - seen[c, 0], moved[1] - seen[c, 1], moved[2] - seen[c, 2]
    d3, d4, d5 = moved[3] - seen[c, 3], moved[4] - seen[c, 4], moved[5] - seen[c, 5]
    for i in range(3 * span[c], 3 * span[c + 1]):
        y = half[i]
        u[i] += y[0] * d0 + y[1] * d1 + y[2] * d2 + y[3] * d3 + y[4] * d4 + y[5] * d5
    seen[c] = moved


@kernel
def sweep_cups(w, mu, x, u, step, before, blocks):
    """One sweep as palpo.physics.contact.solvers.anderson.sweep, over all blocks and the rows after them.

    x, u (N + k,): contacts, then cavities, whose rows of W are whole. Returns (|g - x|^2, |g|^2).
    """
    span, half = blocks.span, blocks.half
    first, last = 3 * mu.shape[0], u.shape[0]
    move, size = 0.0, 0.0
    for c in range(span.shape[0] - 1):
        lo, hi = span[c], span[c + 1]
        if lo == hi:
            continue
        _catch_up(u, blocks, c)
        start, end = 3 * lo, 3 * hi
        moved, force = sweep(w, mu[lo:hi], x, u[start:end], start, step[lo:hi], before[start:end])
        move += moved
        size += force
        for i in range(start, end):
            d = x[i] - before[i]
            if d != 0.0:
                for a in range(6):
                    blocks.moved[a] += d * half[i, a]
                add_row(u[first:last], w[i, first:last], d)
        blocks.seen[c] = blocks.moved
    for c in range(span.shape[0] - 1):
        _catch_up(u, blocks, c)
    return move, size


@kernel
def offset_cups(w, b, x, u, blocks):
    """u = W x + b."""
    span, half, first, last = blocks.span, blocks.half, 3 * blocks.span[-1], u.shape[0]
    blocks.moved[:] = 0.0
    u[:] = b
    for c in range(span.shape[0] - 1):
        start, end = 3 * span[c], 3 * span[c + 1]
        blocks.seen[c] = 0.0
        for i in range(start, end):
            if x[i] != 0.0:
                add_row(u[start:end], w[i, start:end], x[i])
                add_row(u[first:last], w[i, first:last], x[i])
                for a in range(6):
                    blocks.seen[c, a] += x[i] * half[i, a]
                    blocks.moved[a] += x[i] * half[i, a]
    for i in range(first, last):
        if x[i] != 0.0:
            add_row(u, w[i, :last], x[i])
    for c in range(span.shape[0] - 1):
        _catch_up(u, blocks, c)


def whole(w: NDArray[np.float64], blocks: CupBlocks) -> NDArray[np.float64]:
    """W with what stands between its blocks; what w has there is of no account."""
    out, n = w.copy(), 3 * int(blocks.span[-1])
    out[:n, :n] = blocks.half @ blocks.half.T
    for lo, hi in pairwise((3 * blocks.span).tolist()):
        out[lo:hi, lo:hi] = w[lo:hi, lo:hi]
    return out
