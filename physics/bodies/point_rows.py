"""Where a body's points meet its freedoms: columns of unit forces, sums of forces, rows of fields."""

import numpy as np
from numpy.typing import NDArray

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
