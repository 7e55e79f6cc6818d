"""Freedoms of single points beside the columns of a basis, at the price of a few rows of what is known.

A contact on a point without a column of its own would meet the compliance of the others alone, and that of
its first instant, which moves nothing: the body's surface would not give way to it. So such a point may be
displaced by itself along a unit vector: a column U that is zero elsewhere. That needs no solution, and its
products with the other columns B are rows of B, M and K. Without rigid motions it is U' = U - R C,
C = (R^T M R)^-1 R^T M U, and

    B^T M U' = B^T M U,    B^T K U' = (K B)^T U - (K B)^T R C                       as R^T M B = 0
    U'^T M U' = U^T M U - U^T M R C
    U'^T K U' = U^T K U - U^T K R C - (U^T K R C)^T + C^T R^T K R C
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.fem.block_product import Neighbours
from palpo.physics.numerics.kernels import kernel

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
    nodes: NDArray[np.int64],
    axes: Floats,
    mass: Floats,
    stiffness: Floats,
    rigid: RigidPart,
) -> tuple[Floats, Floats, Floats]:
    """[B, U'] (n, k + m), and its Gram matrices with M and K, both (k + m, k + m).

    basis (n, k) without rigid motions; mass_gram, stiffness_gram (k, k) its own; pulled: K B; mass (n,): M.
    Nodes (m,) are displaced along unit vectors axes (m, 3), at right angles where a node has several;
    stiffness (m, m): K between them.
    """
    motions, c = rigid.motions, _along(rigid.share.T, nodes, axes).T
    unit = -motions @ c
    for i in range(3):
        unit[3 * nodes + i, np.arange(len(nodes))] += axes[:, i]
    heavy = mass[3 * nodes, None]
    cross = _along(pulled, nodes, axes).T - (pulled.T @ motions) @ c
    turned = _along(rigid.pulled, nodes, axes) @ c
    whole = np.empty((len(basis), basis.shape[1] + len(nodes)))
    _join(basis, unit, whole)
    return (
        whole,
        _bordered(
            mass_gram,
            (heavy * _along(basis, nodes, axes)).T,
            np.diag(mass[3 * nodes]) - (heavy * _along(motions, nodes, axes)) @ c,
        ),
        _bordered(
            stiffness_gram, cross, stiffness - turned - turned.T + c.T @ (rigid.motions.T @ rigid.pulled) @ c
        ),
    )


def _along(fields: Floats, nodes: NDArray[np.int64], axes: Floats) -> Floats:
    """Components (m, k) of nodal vector fields (3 n, k) at nodes (m,) along unit vectors (m, 3)."""
    x, y, z = (axes[:, i, None] * fields[3 * nodes + i] for i in range(3))
    return x + y + z


def _bordered(a: Floats, b: Floats, c: Floats) -> Floats:
    """[[a, b], [b^T, c]], symmetric to the bit where a is."""
    return np.block([[a, b], [b.T, 0.5 * (c + c.T)]])


def stiffness_of(rows: Neighbours, blocks: Floats, nodes: NDArray[np.int64], axes: Floats) -> Floats:
    """U^T K U (m, m) of a matrix of node blocks, U displacing nodes (m,) along vectors axes (m, 3)."""
    out = np.zeros((len(nodes), len(nodes)))
    _between(rows, blocks, nodes, axes, out)
    return out


@kernel
def _between(rows, blocks, nodes, axes, out):
    # the columns of a node are a chain: the last one first
    last, before = np.full(rows.start.size - 1, -1), np.full(nodes.size, -1)
    for a in range(nodes.size):
        before[a] = last[nodes[a]]
        last[nodes[a]] = a
    force = np.empty(3)
    for a in range(nodes.size):
        for e in range(rows.start[nodes[a]], rows.start[nodes[a] + 1]):
            b = last[rows.node[e]]
            if b < 0:
                continue
            block = blocks[rows.block[e]]
            for j in range(3):
                force[j] = 0.0
                for i in range(3):
                    force[j] += axes[a, i] * (block[3 * j + i] if rows.mirrored[e] else block[3 * i + j])
            while b >= 0:
                out[a, b] = force[0] * axes[b, 0] + force[1] * axes[b, 1] + force[2] * axes[b, 2]
                b = before[b]


@kernel
def _join(basis, unit, out):
    """out (n, k + m) = [basis, unit]."""
    for i in range(out.shape[0]):
        for j in range(basis.shape[1]):
            out[i, j] = basis[i, j]
        for j in range(unit.shape[1]):
            out[i, basis.shape[1] + j] = unit[i, j]
