"""Blocks of contacts that a rigid body joins, as cups on one partner: they know each other by its motion.

    W = blockdiag(W_block) + F M F^T between the blocks,    F = [Y, w_1, ..., w_m],    Y = h J_p M_p^-1/2

with Y (N, 6), M_p what the partner's velocity meets in the step. Without springs M is the identity. One that
is eliminated (palpo.physics.suction.border_springs) acts on its block's rows by w_c, what that block yields
to it, and on all rows by Y p_c, what the partner does: with G the inverse of what the springs give way by,

    M = [[1 - p G p^T, -p G], [-G p^T, -G]],    W_q = F [p; 1].

w_c is nothing on the rows of other blocks, so a block has six columns and one for each spring of its own. Its
own part stands in W; between two blocks nothing is formed: a sweep visits block after block and hands on
what all its forces do to the others, 6 + m numbers. For m blocks of n contacts a sweep so costs m n^2 in
place of m^2 n^2, and gives the same forces to rounding.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.solvers.anderson import sweep
from palpo.physics.contact.solvers.block import add_row
from palpo.physics.contact.solvers.products import dot
from palpo.physics.numerics.kernels import inlined, kernel


class JoinedBlocks(NamedTuple):
    """b blocks of contacts in the order of their rows; N rows."""

    span: NDArray[np.int64]
    """(b + 1,) where each block's contacts begin; the last is their number, N / 3."""
    half: NDArray[np.float64]
    """(N, 6 + s) what is not 0 of F: Y [m^1/2 N^-1/2], and w of up to s springs of a row's own block."""
    column: NDArray[np.int64]
    """(b, 6 + s) columns of F that these are. Where a block has fewer springs, any, and its `half` is 0."""
    middle: NDArray[np.float64]
    """(6 + m, 6 + m) M."""
    seen: NDArray[np.float64]
    """(b, 6 + m) M F^T r that the u of each block has in it."""
    moved: NDArray[np.float64]
    """(6 + m,) M F^T r of all."""
    single: NDArray[np.float32]
    """The blocks of W in single precision, one after the other in one piece: half of what a sweep reads. None
    where it is to read W. What sweeps so find is judged by W, and where it is not yet right they go on."""
    place: NDArray[np.int64]
    """(b + 1,) where each begins in it."""


class Springs(NamedTuple):
    """m eliminated springs: their blocks (m,), own (N, m) and partner (6, m), w and p; weight (m, m), G."""

    block: NDArray[np.int64]
    own: NDArray[np.float64]
    partner: NDArray[np.float64]
    weight: NDArray[np.float64]


def places_of(span: NDArray[np.int64]) -> NDArray[np.int64]:
    """(b + 1,) where each block of these contacts begins, one after the other in one piece."""
    return np.concatenate([[0], np.cumsum(9 * np.diff(span) ** 2)]).astype(np.int64)


@kernel
def pack(w, span, out):
    """out (9 m^2,) = the block of w of the contacts from span[0] to span[1], m of them."""
    first, past, at = 3 * span[0], 3 * span[1], 0
    for i in range(first, past):
        row = w[i, first:past]
        line = out[at : at + row.shape[0]]
        for j in range(row.shape[0]):
            line[j] = row[j]
        at += row.shape[0]


def make_blocks(
    span: NDArray[np.int64],
    half: NDArray[np.float64],
    springs: Springs | None = None,
    single: NDArray[np.float32] | None = None,
) -> JoinedBlocks:
    """Of spans, Y (N, 6) and the springs, if there are some.

    single: what `pack` has made of each block, at `places_of` them.
    """
    count = len(span) - 1
    column, middle = np.tile(np.arange(6), (count, 1)), np.eye(6)
    if springs is not None:
        handed_on = springs.partner @ springs.weight
        middle = np.block(
            [[middle - handed_on @ springs.partner.T, -handed_on], [-handed_on.T, -springs.weight]]
        )
        of_block = [np.flatnonzero(springs.block == c) for c in range(count)]
        more = max(len(own) for own in of_block)
        column = np.hstack([column, np.zeros((count, more), np.int64)])
        half = np.hstack([half, np.zeros((len(half), more))])
        for c, own in enumerate(of_block):
            column[c, 6 : 6 + len(own)] = 6 + own
            half[3 * span[c] : 3 * span[c + 1], 6 : 6 + len(own)] = springs.own[
                3 * span[c] : 3 * span[c + 1], own
            ]
    n = len(middle)
    return JoinedBlocks(
        span,
        np.ascontiguousarray(half),
        column,
        np.ascontiguousarray(middle),
        np.zeros((count, n)),
        np.zeros(n),
        np.zeros(0, np.float32) if single is None else single,
        places_of(span),
    )


@inlined
def _catch_up(u, blocks, c):
    """u of block c gets what the forces of others have done since it was last visited."""
    span, half, column, seen, moved = blocks.span, blocks.half, blocks.column, blocks.seen, blocks.moved
    d0, d1, d2 = moved[0] - seen[c, 0], moved[1] - seen[c, 1], moved[2] - seen[c, 2]
    d3, d4, d5 = moved[3] - seen[c, 3], moved[4] - seen[c, 4], moved[5] - seen[c, 5]
    for i in range(3 * span[c], 3 * span[c + 1]):
        y = half[i]
        u[i] += y[0] * d0 + y[1] * d1 + y[2] * d2 + y[3] * d3 + y[4] * d4 + y[5] * d5
    for a in range(6, half.shape[1]):
        d = moved[column[c, a]] - seen[c, column[c, a]]
        for i in range(3 * span[c], 3 * span[c + 1]):
            u[i] += half[i, a] * d
    seen[c] = moved


@inlined
def _hand_on(given, blocks, c):
    """moved += M F^T r of forces of block c by which its own columns of F give (6 + s,)."""
    for a in range(given.shape[0]):
        add_row(blocks.moved, blocks.middle[blocks.column[c, a]], given[a])


@kernel
def sweep_joined(w, mu, x, u, step, before, blocks):
    """One sweep as palpo.physics.contact.solvers.anderson.sweep, over all blocks and the rows after them.

    x, u (N + k,): contacts, then cavities, whose rows of W are whole. Returns (|g - x|^2, |g|^2).
    """
    span, half = blocks.span, blocks.half
    first, last = 3 * mu.shape[0], u.shape[0]
    move, size = 0.0, 0.0
    given, change = np.empty(half.shape[1]), np.empty(first)
    for c in range(span.shape[0] - 1):
        lo, hi = span[c], span[c + 1]
        if lo == hi:
            continue
        _catch_up(u, blocks, c)
        start, end = 3 * lo, 3 * hi
        now, then, ahead = x[start:end], before[start:end], u[start:end]
        if blocks.single.shape[0] > 0:
            own = blocks.single[blocks.place[c] : blocks.place[c + 1]].reshape(end - start, end - start)
            moved, force = sweep(own, mu[lo:hi], now, ahead, 0, step[lo:hi], then)
        else:
            moved, force = sweep(w, mu[lo:hi], x, ahead, start, step[lo:hi], then)
        move += moved
        size += force
        given[:] = 0.0
        d = change[: end - start]
        for i in range(end - start):
            d[i] = now[i] - then[i]
            if d[i] != 0.0:
                add_row(given, half[start + i], d[i])
        for i in range(first, last):
            u[i] += dot(w[i, start:end], d)
        _hand_on(given, blocks, c)
        blocks.seen[c] = blocks.moved
    for c in range(span.shape[0] - 1):
        _catch_up(u, blocks, c)
    return move, size


@kernel
def offset_joined(w, b, x, u, blocks):
    """u = W x + b."""
    span, half, first, last = blocks.span, blocks.half, 3 * blocks.span[-1], u.shape[0]
    blocks.moved[:] = 0.0
    u[:] = b
    given = np.empty(half.shape[1])
    for c in range(span.shape[0] - 1):
        start, end = 3 * span[c], 3 * span[c + 1]
        given[:] = 0.0
        for i in range(start, end):
            if x[i] != 0.0:
                add_row(u[start:end], w[i, start:end], x[i])
                add_row(u[first:last], w[i, first:last], x[i])
                add_row(given, half[i], x[i])
        # what is its own stands in its block of W
        blocks.seen[c] = -blocks.moved
        _hand_on(given, blocks, c)
        blocks.seen[c] += blocks.moved
    for i in range(first, last):
        if x[i] != 0.0:
            add_row(u, w[i, :last], x[i])
    for c in range(span.shape[0] - 1):
        _catch_up(u, blocks, c)


def whole(w: NDArray[np.float64], blocks: JoinedBlocks) -> NDArray[np.float64]:
    """W with what stands between its blocks; what w has there is of no account."""
    out = w.copy()
    spans = list(pairwise((3 * blocks.span).tolist()))
    for c, (lo, hi) in enumerate(spans):
        for other, (start, end) in enumerate(spans[:c]):
            middle = blocks.middle[np.ix_(blocks.column[c], blocks.column[other])]
            between = blocks.half[lo:hi] @ middle @ blocks.half[start:end].T
            out[lo:hi, start:end], out[start:end, lo:hi] = between, between.T
    return out
