"""The low-rate bodies as members of a scene: their points among the scene's, and forces on those points.

A member answers for a contiguous range of global points: its nodes (or frames, or surface points) and,
where it has frames, their rotations after them. Everything here is per member and at low rate.
"""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.chain_body import BeamBody, RigidBody
from palpo.physics.bodies.soft import SoftBody
from palpo.physics.numerics.kernels import kernel
from palpo.physics.numerics.math3 import quat_to_matrix
from palpo.physics.numerics.rows3 import cross_rows
from palpo.physics.reduction.rational_krylov import rigid_motions


class Past(NamedTuple):
    """What the servo did to a member in the ticks of a period."""

    forces: NDArray[np.float64]
    """(ticks, k, 3) [N] on its points `local`."""
    local: NDArray[np.intp]
    """(k,)"""
    heard: NDArray[np.bool_]
    """(k,) whether the last frame's model took part in that force: points with a slot in it."""
    tail: int
    """Ticks at the end that the full body makes itself."""
    work: float
    """[J] what the forces did to the model in all these ticks."""


class Member(Protocol):
    """A low-rate body of a scene. Local numbers count from `first`."""

    @property
    def body(self) -> SoftBody | BeamBody | RigidBody:
        """The body itself."""
        ...

    number: int
    """Body number in the topology."""
    first: int
    count: int
    """Points and rotations."""
    floating: bool
    """Moves as a whole: its reduced model has rigid motions of its own."""
    rigid: bool
    """Never changes its shape."""

    def positions(self) -> NDArray[np.float64]:
        """World positions [m] of the points, zeros for rotations, (count, 3)."""
        ...

    def velocities(self) -> NDArray[np.float64]:
        """Velocities [m/s] or [rad/s], (count, 3)."""
        ...

    def orientations(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        """Orientation of each rotation, (k, 4); the identity for points."""
        ...

    def turns(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        """1 where a local number is a rotation, (k,)."""
        ...

    def columns(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        """J^T of unit forces on those points, (n_dof, 3 k)."""
        ...

    def load(self, local: NDArray[np.intp], forces: NDArray[np.float64]) -> NDArray[np.float64]:
        """J^T of forces (k, 3) [N] on those points, (n_dof,)."""
        ...

    def gather(
        self, local: NDArray[np.intp], fields: NDArray[np.float64], columns: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        """J fields, (3 k, m), of velocity fields (n_dof, m): what they are at those points.

        columns (m,): of these fields, in this order.
        """
        ...


class TetMember:
    """Tetrahedra: every node is a point; free bodies float."""

    rigid = False

    def __init__(self, body: SoftBody, number: int, first: int) -> None:
        self.body, self.number, self.first = body, number, first
        self.count = len(body.x)
        self.floating = body.floating
        self.mass_free: NDArray[np.float64] = body.node_mass[body.free].astype(np.float64)
        self.damping = (body.material.alpha, body.material.beta)

    def positions(self) -> NDArray[np.float64]:
        return self.body.x

    def velocities(self) -> NDArray[np.float64]:
        return self.body.node_velocities()

    def orientations(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.tile([1.0, 0.0, 0.0, 0.0], (len(local), 1))

    def turns(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        return np.zeros(len(local), np.int32)

    def columns(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        return unit_columns(self.body.n_dof, self.body.dofs_of(local))

    def load(self, local: NDArray[np.intp], forces: NDArray[np.float64]) -> NDArray[np.float64]:
        return sum_at(self.body.n_dof, self.body.dofs_of(local), forces)

    def gather(
        self, local: NDArray[np.intp], fields: NDArray[np.float64], columns: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        return rows_at(fields, self.body.dofs_of(local), columns)

    def rigid_state(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Centre of mass [m], velocity [m/s], spin [rad/s] and inertia about the centre [kg m2]."""
        m, x = self.mass_free, self.body.x
        total = m.sum()
        centre = m @ x / total
        r = x - centre
        p = (self.body.M @ self.body.v).reshape(-1, 3)
        inertia = np.eye(3) * (m * (r * r).sum(axis=1)).sum() - (m[:, None] * r).T @ r
        spin = np.linalg.solve(inertia, cross_rows(r, p).sum(axis=0))
        return centre, p.sum(axis=0) / total, spin, inertia


class BeamMember:
    """A beam: a point and a rotation for each frame. It never floats: its modes carry all of its motion."""

    floating = rigid = False

    def __init__(self, body: BeamBody, number: int, first: int) -> None:
        self.body, self.number, self.first = body, number, first
        self.n = len(body.x)
        self.count = 2 * self.n
        self.damping = (body.model.alpha, body.model.beta)

    def positions(self) -> NDArray[np.float64]:
        return np.vstack([self.body.x, np.zeros((self.n, 3))])

    def velocities(self) -> NDArray[np.float64]:
        return np.vstack([self.body.state.v, self.body.state.w])

    def orientations(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        return self.body.q[local % self.n]

    def turns(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        return (local >= self.n).astype(np.int32)

    def _dofs(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        dofs = self.body.dofs_of(local % self.n).reshape(-1, 2, 3)
        return dofs[np.arange(len(local)), self.turns(local)]

    def columns(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        return unit_columns(self.body.n_dof, self._dofs(local))

    def load(self, local: NDArray[np.intp], forces: NDArray[np.float64]) -> NDArray[np.float64]:
        return sum_at(self.body.n_dof, self._dofs(local), forces)

    def gather(
        self, local: NDArray[np.intp], fields: NDArray[np.float64], columns: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        return rows_at(fields, self._dofs(local), columns)

    def integrate(self, h: float, forces: NDArray[np.float64], local: NDArray[np.intp]) -> None:
        """Steps of size h under forces (n_steps, k, 3) [N] on those points."""
        wrench = np.zeros((len(forces), self.n, 2, 3))
        for k, (frame, turn) in enumerate(zip(local % self.n, self.turns(local), strict=True)):
            wrench[:, frame, turn] += forces[:, k]
        self.body.substeps(None, h, wrench.reshape(len(forces), self.n, 6), np.arange(self.n))


class RigidMember:
    """A rigid body: its surface points, then the one rotation."""

    floating = rigid = True

    def __init__(self, body: RigidBody, number: int, first: int) -> None:
        self.body, self.number, self.first = body, number, first
        assert body.vertices is not None
        self.points: NDArray[np.float64] = body.vertices
        self.count = len(self.points) + 1

    def _axes(self) -> NDArray[np.float64]:
        out = np.empty((3, 3))
        quat_to_matrix(self.body.q[0], out)
        return out

    def positions(self) -> NDArray[np.float64]:
        return np.vstack([self.body.x[0] + self.points @ self._axes().T, np.zeros((1, 3))])

    def velocities(self) -> NDArray[np.float64]:
        v, w = self.body.state.v[0], self.body.state.w[0]
        return np.vstack([v + cross_rows(w, self.points @ self._axes().T), w])

    def orientations(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.where(self.turns(local)[:, None] == 1, self.body.q[0], np.array([1.0, 0.0, 0.0, 0.0]))

    def turns(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        return (local == len(self.points)).astype(np.int32)

    def columns(self, local: NDArray[np.intp]) -> NDArray[np.float64]:
        out = np.zeros((6, len(local), 3))
        arms = np.vstack([self.points @ self._axes().T, np.zeros((1, 3))])[local]
        fields = rigid_motions(arms).reshape(len(local), 3, 6)
        out[:] = np.moveaxis(fields, 2, 0)
        turning = self.turns(local) == 1
        out[:, turning] = 0.0
        out[3:, turning] = np.eye(3)[:, None]
        return np.ascontiguousarray(out.reshape(6, -1))

    def load(self, local: NDArray[np.intp], forces: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.columns(local) @ forces.reshape(-1)

    def gather(
        self, local: NDArray[np.intp], fields: NDArray[np.float64], columns: NDArray[np.intp] | None = None
    ) -> NDArray[np.float64]:
        return self.columns(local).T @ (fields if columns is None else fields[:, columns])

    def integrate(self, h: float, forces: NDArray[np.float64], local: NDArray[np.intp]) -> None:
        """Steps of size h under forces (n_steps, k, 3) [N] on those points."""
        for step in forces:
            wrench = self.load(local, step)
            self.body.substeps(None, h, wrench.reshape(1, 1, 6), np.zeros(1, np.int32))

    def rigid_state(self) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Centre of mass [m], velocity [m/s], spin [rad/s] and inertia in body axes [kg m2]."""
        state = self.body.state
        return state.x[0].copy(), state.v[0].copy(), state.w[0].copy(), self.body.model.inertia[0].copy()


def unit_columns(n_dof: int, dofs: NDArray[np.int32]) -> NDArray[np.float64]:
    """(n_dof, 3 k) with a one at each freedom of dofs (k, 3); zero columns where it is -1 (fixed)."""
    out = np.zeros((n_dof, dofs.size))
    flat = dofs.reshape(-1)
    kept = np.flatnonzero(flat >= 0)
    out[flat[kept], kept] = 1.0
    return out


def rows_at(
    fields: NDArray[np.float64], dofs: NDArray[np.int32], columns: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
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


def sum_at(n_dof: int, dofs: NDArray[np.int32], forces: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of forces (k, 3) at dofs (k, 3), as (n_dof,); what falls on a fixed freedom (-1) is dropped."""
    flat = dofs.reshape(-1)
    kept = flat >= 0
    return np.bincount(flat[kept], forces.reshape(-1)[kept], minlength=n_dof).astype(np.float64)
