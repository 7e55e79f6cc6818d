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

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.fem.assembly import Neighbours
from palpo.physics.numerics.arrays import cross_rows
from palpo.physics.numerics.kernels import kernel
from palpo.physics.reduction.energy_law import spin_as
from palpo.physics.reduction.interface_model import InterfaceState

LEAST_POINTS = 32
"""So many points may be displaced in all directions at least, those without columns by themselves; where more
than that bear, points share this many freedoms. See `physics.reduction.point_freedoms`."""


class PointShare:
    """Of a body with so many points: those that bear, and those that get freedoms of their own."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.free = np.zeros(0, np.intp)
        """Points that the next model can displace in all directions, those with columns first."""
        self.bearing, self.load = np.zeros(0, np.intp), np.zeros((0, 3))
        """Points that bore in the last period, and the sum of the forces on each [N], world axes."""

    def choose(self, near: NDArray[np.intp], columns: int, most: int) -> NDArray[np.intp]:
        """`free` of a model that has columns of so many points, and displaces at most so many.

        These are the likeliest of `near`. Where more bear, a of b among them all over the patch; the others
        move along their load, and 3 a + (b - a) freedoms are no more than before.
        """
        bearing = near[among(near, self.bearing, self.count)]
        b = len(bearing)
        if b <= most:
            self.free = near[:most]
        else:
            chosen = _spread(bearing, max(0, (3 * most - b) // 2))
            first = _spread(chosen, min(columns, len(chosen)))
            self.free = np.concatenate([first, np.setdiff1d(chosen, first)])
        return self.free

    def alone(
        self,
        dofs_of: Callable[[NDArray[np.intp]], NDArray[Any]],
        columns: int,
        most: int,
        axes: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """At most so many freedoms of single points: free nodes (m,), and along what (m, 3), body axes.

        Of points that bear, and can otherwise not be displaced, along their load; then of those without
        columns, in all directions. dofs_of: see palpo.physics.bodies.soft.SoftBody.
        """
        bearing = self.bearing
        size = np.linalg.norm(self.load, axis=1)
        first = dofs_of(bearing)[:, 0]
        moved = among(bearing, self.free, self.count)
        kept = np.flatnonzero((size > 0.0) & (first >= 0) & ~moved)
        kept = np.sort(kept[np.argsort(-size[kept], kind="stable")[:most]])
        rest = dofs_of(self.free[columns:])[:, 0]
        rest = rest[rest >= 0][: (most - len(kept)) // 3]
        along = self.load[kept] @ axes / size[kept, None]
        nodes = np.concatenate([first[kept], np.repeat(rest, 3)]).astype(np.int64) // 3
        return nodes, np.vstack([along, np.tile(np.eye(3), (len(rest), 1))])


def among(numbers: NDArray[Any], chosen: NDArray[Any], below: int) -> NDArray[np.bool_]:
    """Which numbers are among the chosen ones, all of them not negative and less than `below`."""
    mask = np.zeros(below, bool)
    mask[chosen] = True
    return mask[numbers]


def _spread(points: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """So many of some points, evenly along their order."""
    return points[np.arange(count) * len(points) // max(count, 1)]


Floats = NDArray[np.float64]


def set_body(
    body: SoftBody, field: Floats, base: Floats, inertia: Floats, model: InterfaceState, low: int
) -> None:
    """Places x = c + R (X + V z) and their rate.

    field (n_dof, 2): V z [m] and its rate [m/s] of body `low`, in the model's axes as is X, base (free nodes,
    3) [m]; inertia (3, 3) [kg m2] in them, too, which the model keeps over its frame: the body gets its
    momentum, not its spin.
    """
    moved, rate = field[:, 0].reshape(-1, 3), field[:, 1].reshape(-1, 3)
    if not body.rides:
        body.x[body.free] = base + moved
        body.v = rate.ravel()
        return
    axes, spin = model.axes[low], model.spin[low]
    arm = (base + moved) @ axes.T
    body.x[body.free] = model.centre[low] + arm
    body.v = (model.velocity[low] + cross_rows(spin, arm) + rate @ axes.T).ravel()
    spin_as(body, axes @ inertia @ axes.T @ spin)


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
