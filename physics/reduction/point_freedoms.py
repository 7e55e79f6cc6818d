"""Freedoms of single points beside the columns of a basis, at the price of a few rows of what is known.

A contact on a point without a column of its own would meet the compliance of the others alone, and that of
its first instant, which moves nothing: the body's surface would not give way to it. So such a point may be
displaced by itself, as in the finite elements: a unit column U. That needs no solution, and its products with
the other columns B are rows of B, M and K. Without rigid motions it is U' = U - R C,
C = (R^T M R)^-1 R^T M U, and

    B^T M U' = B^T M U,    B^T K U' = (K B)^T U - (K B)^T R C                       as R^T M B = 0
    U'^T M U' = U^T M U - U^T M R C
    U'^T K U' = U^T K U - U^T K R C - (U^T K R C)^T + C^T R^T K R C
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.block_product import Neighbours

Floats = NDArray[np.float64]


class RigidPart(NamedTuple):
    """What takes rigid motions out of a column; without any where nothing floats."""

    motions: Floats  # (n, r) R
    share: Floats  # (r, n) (R^T M R)^-1 R^T M
    pulled: Floats  # (n, r) K R


def append_freedoms(
    basis: Floats,
    mass_gram: Floats,
    stiffness_gram: Floats,
    pulled: Floats,
    freedoms: NDArray[np.int64],
    mass: Floats,
    stiffness: Floats,
    rigid: RigidPart,
) -> tuple[Floats, Floats, Floats]:
    """[B, U'] (n, k + m), and its Gram matrices with M and K, both (k + m, k + m).

    basis (n, k) without rigid motions; mass_gram, stiffness_gram (k, k) its own; pulled: K B; mass (n,): M;
    stiffness (m, m): K on the freedoms (m,).
    """
    c = rigid.share[:, freedoms]
    unit = -rigid.motions @ c
    unit[freedoms, np.arange(len(freedoms))] += 1.0
    heavy = mass[freedoms, None]
    cross = pulled[freedoms].T - (pulled.T @ rigid.motions) @ c
    turned = rigid.pulled[freedoms] @ c
    return (
        np.hstack([basis, unit]),
        _bordered(
            mass_gram,
            (heavy * basis[freedoms]).T,
            np.diag(mass[freedoms]) - (heavy * rigid.motions[freedoms]) @ c,
        ),
        _bordered(
            stiffness_gram, cross, stiffness - turned - turned.T + c.T @ (rigid.motions.T @ rigid.pulled) @ c
        ),
    )


def _bordered(a: Floats, b: Floats, c: Floats) -> Floats:
    """[[a, b], [b^T, c]], symmetric to the bit where a is."""
    return np.block([[a, b], [b.T, 0.5 * (c + c.T)]])


def stiffness_of(rows: Neighbours, blocks: Floats, nodes: NDArray[np.int64]) -> Floats:
    """The part (3 k, 3 k) of a matrix of node blocks that is between the nodes (k,)."""
    place = np.full(rows.start.size - 1, -1)
    place[nodes] = np.arange(len(nodes))
    out = np.zeros((len(nodes), 3, len(nodes), 3))
    for i, node in enumerate(nodes):
        entries = slice(rows.start[node], rows.start[node + 1])
        at = place[rows.node[entries]]
        met = at >= 0
        near = blocks[rows.block[entries][met]].reshape(-1, 3, 3)
        turned = rows.mirrored[entries][met][:, None, None]
        out[i][:, at[met]] = np.where(turned, near.transpose(0, 2, 1), near).transpose(1, 0, 2)
    return out.reshape(3 * len(nodes), -1)
