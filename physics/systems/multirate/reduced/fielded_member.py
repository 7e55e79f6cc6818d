"""A soft body that has walls of cavities: after its nodes, a number for each cavity that it may wall."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.exchange.constraint_frame import IS_FIELD
from palpo.physics.systems.multirate.reduced.members import TetMember

Floats = NDArray[np.float64]


class FieldedMember(TetMember):
    """Tetrahedra: every node is a point, and k fields come after them.

    Written by who finds the cavities: wall (k, n, 3) [m2], dV/dx of the nodes, world axes, 0 where there is
    none; volume (k,) [m3], the share of the cavity's that this body is booked with.
    """

    def __init__(self, body: SoftBody, number: int, first: int, fields: int) -> None:
        super().__init__(body, number, first)
        self.nodes = len(body.x)
        self.count = self.nodes + fields
        self.wall, self.volume = np.zeros((fields, self.nodes, 3)), np.zeros(fields)
        self._dofs = body.dofs_of(np.arange(self.nodes)).reshape(-1)

    def _free(self, local: NDArray[np.intp]) -> Floats:
        """dV/dx of the freedoms (k, n_dof), of fields."""
        out = np.zeros((len(local), self.body.n_dof))
        kept = self._dofs >= 0
        out[:, self._dofs[kept]] = self.wall[local - self.nodes].reshape(len(local), 3 * self.nodes)[:, kept]
        return out

    def positions(self) -> Floats:
        return np.vstack([self.body.x, _first(self.volume)])

    def velocities(self) -> Floats:
        v = self.body.node_velocities()
        return np.vstack([v, _first(np.einsum("kni,ni->k", self.wall, v))])

    def turns(self, local: NDArray[np.intp]) -> NDArray[np.int32]:
        return np.where(local < self.nodes, 0, IS_FIELD).astype(np.int32)

    def columns(self, local: NDArray[np.intp]) -> Floats:
        out, field = np.zeros((self.body.n_dof, len(local), 3)), local >= self.nodes
        out[:, ~field] = super().columns(local[~field]).reshape(self.body.n_dof, -1, 3)
        out[:, field, 0] = self._free(local[field]).T
        return out.reshape(self.body.n_dof, -1)

    def load(self, local: NDArray[np.intp], forces: Floats) -> Floats:
        field = local >= self.nodes
        return super().load(local[~field], forces[~field]) + forces[field, 0] @ self._free(local[field])

    def gather(
        self, local: NDArray[np.intp], fields: Floats, columns: NDArray[np.intp] | None = None
    ) -> Floats:
        if columns is not None:
            fields = np.take(fields, columns, axis=1)
        out, field = np.zeros((len(local), 3, fields.shape[1])), local >= self.nodes
        out[~field] = super().gather(local[~field], fields).reshape(-1, 3, fields.shape[1])
        out[field, 0] = self._free(local[field]) @ fields
        return out.reshape(-1, fields.shape[1])

    def pulls(self, local: NDArray[np.intp], centre: Floats, axes: Floats) -> Floats:
        """Force and moment about the centre of a unit pressure (k, 6), in those axes; 0 for nodes."""
        out, arm = np.zeros((len(local), 6)), self.body.x - centre
        for k in np.flatnonzero(local >= self.nodes):
            wall = self.wall[local[k] - self.nodes]
            out[k, :3], out[k, 3:] = wall.sum(axis=0) @ axes, np.cross(arm, wall).sum(axis=0) @ axes
        return out

    def nodal(self, local: NDArray[np.intp], forces: Floats) -> tuple[NDArray[np.intp], Floats]:
        """The nodes under forces (t, k, 3) on nodes and fields, and the forces there (t, nodes, 3) [N]."""
        field = local >= self.nodes
        if not field.any():
            return local, forces
        whole = np.einsum("tk,kni->tni", forces[:, field, 0], self.wall[local[field] - self.nodes])
        for k in np.flatnonzero(~field):
            whole[:, local[k]] += forces[:, k]
        under = np.flatnonzero(whole.any(axis=(0, 2)))
        return under, np.ascontiguousarray(whole[:, under])


def _first(values: Floats) -> Floats:
    """(k, 3) of which values (k,) are the first."""
    return np.column_stack([values, np.zeros((len(values), 2))])
