"""Modal truncation: the vibration modes of lowest frequency, as a measure of balanced reduction."""

import numpy as np

from palpo.physics.reduction.linear_model import Basis, LinearModel, VibrationModes, galerkin, require_order


def modal(model: LinearModel, modes: VibrationModes, order: int) -> Basis:
    """The `order` lowest modes, rigid motions included. Raises InputError for an order out of range."""
    require_order(order, modes, "modal")
    return galerkin(model, modes, np.eye(len(modes.stiffness), order), "modal")
