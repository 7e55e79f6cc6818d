"""A body of tetrahedra set to the state that the servo's model of it has."""

import numpy as np
from numpy.typing import NDArray

from palpo.physics.bodies.soft import SoftBody
from palpo.physics.numerics.rows3 import cross_rows
from palpo.physics.reduction.energy_law import spin_as
from palpo.physics.reduction.interface_model import InterfaceState

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
