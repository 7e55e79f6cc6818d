"""What may be touched of a soft body, and how forces there act on its freedoms.

Points are its nodes; after them come numbers for the cavities that it may wall, its *fields*: the force of a
field's unit, its pressure, is dV/dx of the nodes, which is also what it measures of a motion. The last ones
are its *inner* points: places in its material, each of which moves with the nodes of the element that it lies
in, by their weights.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from palpo.physics.exchange.constraint_frame import IS_FIELD
from palpo.physics.fem.material import Material
from palpo.physics.numerics.arrays import cross_rows
from palpo.physics.numerics.kernels import kernel

Floats = NDArray[np.float64]


def unit_columns(n_dof: int, dofs: NDArray[np.int32]) -> Floats:
    """(n_dof, 3 k) with a one at each freedom of dofs (k, 3); zero columns where it is -1 (fixed)."""
    out = np.zeros((n_dof, dofs.size))
    flat = dofs.reshape(-1)
    kept = np.flatnonzero(flat >= 0)
    out[flat[kept], kept] = 1.0
    return out


def rows_at(fields: Floats, dofs: NDArray[np.int32], columns: NDArray[np.intp] | None = None) -> Floats:
    """Rows of fields (n_dof, m) at dofs (k, 3), as (3 k, m); zero where a freedom is -1 (fixed).

    columns (m,): of these fields, in this order.
    """
    if columns is None:
        columns = np.arange(fields.shape[1])
    out = np.empty((dofs.size, len(columns)))
    take(fields, dofs.reshape(-1), columns, out)
    return out


@kernel
def take(fields, rows, columns, out):
    """out (k, m) = fields at rows (k,) and columns (m,); zero where a row is negative."""
    for i in range(rows.size):
        if rows[i] < 0:
            out[i] = 0.0
            continue
        row = fields[rows[i]]
        for j in range(columns.size):
            out[i, j] = row[columns[j]]


def sum_at(n_dof: int, dofs: NDArray[np.int32], forces: Floats) -> Floats:
    """Sum of forces (k, 3) at dofs (k, 3), as (n_dof,); what falls on a fixed freedom (-1) is dropped."""
    flat = dofs.reshape(-1)
    kept = flat >= 0
    return np.bincount(flat[kept], forces.reshape(-1)[kept], minlength=n_dof).astype(np.float64)


def rigid_motions(x: Floats) -> Floats:
    """Velocity fields of the six rigid motions about the origin, (3 n, 6), at positions x (n, 3)."""
    fields = np.zeros((len(x), 3, 6))
    for axis in range(3):
        after, before = (axis + 1) % 3, (axis + 2) % 3
        fields[:, axis, axis] = 1.0
        fields[:, after, 3 + axis] = -x[:, before]
        fields[:, before, 3 + axis] = x[:, after]
    return fields.reshape(3 * len(x), 6)


Points = NDArray[np.intp]


class SoftPoints:
    """Those of a SoftBody with `fields` of cavities.

    Written by who finds the cavities: wall (k, n, 3) [m2], dV/dx of the nodes, world axes, 0 where there is
    none; volume (k,) [m3], the share of the cavity's that this body is booked with. By who places inner
    points: inner (m, w), the nodes that each moves with, and inner_weights (m, w) theirs.
    """

    rigid = False
    x: Floats
    v: Floats
    M: Any
    n_dof: int
    free: NDArray[np.int32]
    floating: bool
    node_mass: Any
    material: Material

    def __init__(self, n: int, fields: int) -> None:
        self.nodes, self.count = n, n + fields
        self.inner, self.inner_weights = np.zeros((0, 1), np.int32), np.zeros((0, 1))
        self.wall, self.volume = np.zeros((fields, n, 3)), np.zeros(fields)

    def dofs_of(self, nodes: ArrayLike) -> NDArray[np.int32]:
        """Freedoms of nodes (k,), shape (k, 3), -1 where a node is fixed."""
        raise NotImplementedError

    def node_velocities(self) -> Floats:
        """Velocities of all nodes [m/s], shape (n_nodes, 3), zero where fixed."""
        raise NotImplementedError

    @property
    def rides(self) -> bool:
        """Whether it moves as a whole beside its modes."""
        return self.floating

    @property
    def damping(self) -> tuple[float, float]:
        """Rayleigh's alpha [1/s] and beta [s]."""
        return self.material.alpha, self.material.beta

    @cached_property
    def mass_free(self) -> Floats:
        """Masses of the free nodes [kg], lumped."""
        mass: Floats = self.node_mass[self.free].astype(np.float64)
        return mass

    def add_inner(self, points: int, corners: int) -> None:
        """So many inner points, without a place yet, in elements of so many nodes; before anything is made of
        the body's points."""
        self.count += points
        self.inner, self.inner_weights = np.zeros((points, corners), np.int32), np.zeros((points, corners))

    @property
    def first_inner(self) -> int:
        """Number of the first inner point."""
        return self.nodes + len(self.volume)

    def positions(self) -> Floats:
        """World positions [m] of the nodes, then the fields' volumes and the inner points, (count, 3)."""
        if self.count == self.nodes:
            return self.x
        return np.vstack([self.x, _first(self.volume), self._inner_of(self.x)])

    def velocities(self) -> Floats:
        """Velocities [m/s] of the nodes, then the volumes' rates and the inner points', (count, 3)."""
        v = self.node_velocities()
        if self.count == self.nodes:
            return v
        return np.vstack([v, _first(np.einsum("kni,ni->k", self.wall, v)), self._inner_of(v)])

    def _inner_of(self, nodal: Floats) -> Floats:
        return np.asarray(np.einsum("mw,mwi->mi", self.inner_weights, nodal[self.inner]))

    def orientations(self, local: Points) -> Floats:
        """The identity, (k, 4)."""
        return np.tile([1.0, 0.0, 0.0, 0.0], (len(local), 1))

    def turns(self, local: Points) -> NDArray[np.int32]:
        """IS_FIELD for a field, 0 for any other point, (k,)."""
        return np.where(self.are_fields(local), IS_FIELD, 0).astype(np.int32)

    def are_fields(self, local: Points) -> NDArray[np.bool_]:
        """Which points are fields, (k,)."""
        found: NDArray[np.bool_] = (local >= self.nodes) & (local < self.first_inner)
        return found

    def nodes_at(self, local: Points) -> Points:
        """Nodes that points move with, without fields, each once, in the order of the points: of an inner one
        the heaviest come first."""
        local = local[~self.are_fields(local)]
        nodes = np.full((len(local), max(1, self.inner.shape[1])), -1, np.int64)
        inner = local >= self.first_inner
        nodes[~inner, 0] = local[~inner]
        points = local[inner] - self.first_inner
        weights = self.inner_weights[points]
        order = np.argsort(-weights, axis=1, kind="stable")
        nodes[inner] = np.take_along_axis(np.where(weights != 0.0, self.inner[points], -1), order, axis=1)
        each = nodes[nodes >= 0]
        return each[np.sort(np.unique(each, return_index=True)[1])].astype(np.intp)

    def columns(self, local: Points) -> Floats:
        """J^T of unit forces on points, (n_dof, 3 k); of a field the first one is of its pressure."""
        if self.count == self.nodes:
            return unit_columns(self.n_dof, self.dofs_of(local))
        out, (node, field, inner) = np.zeros((self.n_dof, len(local), 3)), self._sorted(local)
        out[:, node] = unit_columns(self.n_dof, self.dofs_of(local[node])).reshape(self.n_dof, -1, 3)
        out[:, field, 0] = self._walls(local[field]).T
        for k in inner:
            point = local[k] - self.first_inner
            loads = unit_columns(self.n_dof, self.dofs_of(self.inner[point])).reshape(self.n_dof, -1, 3)
            out[:, k] = np.einsum("dwi,w->di", loads, self.inner_weights[point])
        return out.reshape(self.n_dof, -1)

    def applied(self, local: Points, forces: Floats) -> Floats:
        """J^T of forces (k, 3) [N] on points, (n_dof,); of a field the first is its pressure [Pa]."""
        if self.count == self.nodes:
            return sum_at(self.n_dof, self.dofs_of(local), forces)
        node, field, inner = self._sorted(local)
        nodal = sum_at(self.n_dof, self.dofs_of(local[node]), forces[node])
        points = local[inner] - self.first_inner
        shared = self.inner_weights[points][:, :, None] * forces[inner][:, None]
        nodal += sum_at(self.n_dof, self.dofs_of(self.inner[points].reshape(-1)), shared.reshape(-1, 3))
        return np.asarray(nodal + forces[field, 0] @ self._walls(local[field]))

    def gather(self, local: Points, fields: Floats, columns: Points | None = None) -> Floats:
        """J fields, (3 k, m), of velocity fields (n_dof, m): what they are at points.

        columns (m,): of these fields, in this order.
        """
        if self.count == self.nodes:
            return rows_at(fields, self.dofs_of(local), columns)
        if columns is not None:
            fields = np.take(fields, columns, axis=1)
        node, field, inner = self._sorted(local)
        out = np.zeros((len(local), 3, fields.shape[1]))
        out[node] = rows_at(fields, self.dofs_of(local[node])).reshape(-1, 3, fields.shape[1])
        out[field, 0] = self._walls(local[field]) @ fields
        points = local[inner] - self.first_inner
        corners = rows_at(fields, self.dofs_of(self.inner[points].reshape(-1)))
        corners = corners.reshape(*self.inner[points].shape, 3, fields.shape[1])
        out[inner] = np.einsum("kw,kwim->kim", self.inner_weights[points], corners)
        return out.reshape(-1, fields.shape[1])

    def alone(self, local: Points, own: Floats) -> Floats:
        """By how much points yield whose freedoms yield by own (n_dof,) and know of no others, (3 k,); by
        nothing a field."""
        corners = np.zeros((len(local), self.inner.shape[1]), np.int32)
        weights = np.zeros(corners.shape)
        node, _, inner = self._sorted(local)
        points = local[inner] - self.first_inner
        corners[node, 0], weights[node, 0] = local[node], 1.0
        corners[inner], weights[inner] = self.inner[points], self.inner_weights[points]
        each = rows_at(own[:, None], self.dofs_of(corners.reshape(-1))).reshape(*corners.shape, 3)
        return np.asarray(np.einsum("kw,kwi->ki", weights**2, each)).reshape(-1)

    def on_nodes(self, local: Points, forces: Floats) -> tuple[Points, Floats]:
        """Nodes (m,), ascending, and what forces (..., k, 3) [N] on points are there, (..., m, 3), without
        those of fields."""
        node, _, inner = self._sorted(local)
        points = local[inner] - self.first_inner
        nodes, at = np.unique(
            np.concatenate([local[node], self.inner[points].reshape(-1)]), return_inverse=True
        )
        out = np.zeros((*forces.shape[:-2], len(nodes), 3))
        shared = self.inner_weights[points][:, :, None] * forces[..., inner, None, :]
        each = [forces[..., node, :], shared.reshape(*forces.shape[:-2], -1, 3)]
        per_node = np.moveaxis(out, -2, 0)  # a view
        np.add.at(per_node, at.reshape(-1), np.moveaxis(np.concatenate(each, axis=-2), -2, 0))
        return nodes.astype(np.intp), out

    def _sorted(self, local: Points) -> tuple[Points, Points, Points]:
        """Which points are nodes, fields and inner ones."""
        inner = local >= self.first_inner
        node = local < self.nodes
        return np.flatnonzero(node), np.flatnonzero(~node & ~inner), np.flatnonzero(inner)

    def _walls(self, local: Points) -> Floats:
        """dV/dx of the freedoms (k, n_dof), of fields."""
        dofs = self.dofs_of(np.arange(self.nodes)).reshape(-1)
        out, kept = np.zeros((len(local), self.n_dof)), dofs >= 0
        out[:, dofs[kept]] = self.wall[local - self.nodes].reshape(len(local), 3 * self.nodes)[:, kept]
        return out

    def pulls(self, local: Points, centre: Floats, axes: Floats) -> Floats:
        """Force and moment about the centre of a unit pressure (k, 6), in those axes; 0 for nodes."""
        out, arm = np.zeros((len(local), 6)), self.x - centre
        for k in np.flatnonzero(self.are_fields(local)):
            wall = self.wall[local[k] - self.nodes]
            out[k, :3], out[k, 3:] = wall.sum(axis=0) @ axes, np.cross(arm, wall).sum(axis=0) @ axes
        return out

    def rigid_state(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Centre of mass [m], velocity [m/s], spin [rad/s] and inertia about the centre [kg m2]."""
        m, x = self.mass_free, self.x
        total = m.sum()
        centre = m @ x / total
        r = x - centre
        p = (self.M @ self.v).reshape(-1, 3)
        inertia = np.eye(3) * (m * (r * r).sum(axis=1)).sum() - (m[:, None] * r).T @ r
        spin = np.linalg.solve(inertia, cross_rows(r, p).sum(axis=0))
        return centre, p.sum(axis=0) / total, spin, inertia


def _first(values: Floats) -> Floats:
    """(k, 3) of which values (k,) are the first."""
    return np.column_stack([values, np.zeros((len(values), 2))])
