"""Static modes: a basis whose compliance at the interface is the body's own, within a tolerance.

The responses K^-1 f at rest to loads f on the interface nodes are what a body does while it is slow. A basis
of r columns keeps r of their combinations; the best are those of the leading eigenvectors of the compliance
C = B^T K^-1 B, for then B^T V (V^T K V)^-1 V^T B is C's best approximation of rank r: what is left out is
the sum of the other eigenvalues. Vibration modes are added from the lowest on, as Craig and Bampton do.
Sources: Craig and Chang, On the use of attachment modes in substructure coupling (AIAA 1977); Craig and
Hale, Block-Krylov component synthesis method (J. Guidance 1988).
"""

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from palpo.physics.errors import InputError
from palpo.physics.reduction.linear_model import Basis, LinearModel, Modes, galerkin

METHOD = "static"
VIBRATIONS = 10
"""Lowest vibration modes that are kept beside the static ones."""


def static_modes(model: LinearModel, modes: Modes, inputs: ArrayLike, tolerance: float) -> Basis:
    """Basis that yields as the model does to forces at the nodes `inputs`, shape (m,), at rest.

    As few static modes as leave out at most the share `tolerance` [-] of the mean compliance of these nodes.
    Raises InputError for a tolerance out of range and for a body that floats.
    """
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"static: the tolerance is {tolerance}, expected a number between 0 and 1.")
    if modes.rigid:
        raise InputError("static: the body floats, so that forces on it have no answer at rest; clamp it.")
    load = modes.vectors[model.dofs_of(inputs)].T
    answer = load / modes.stiffness[:, None]
    values, vectors = sl.eigh(load.T @ answer)
    values, vectors = values[::-1], vectors[:, ::-1]
    left = 1.0 - np.cumsum(values) / values.sum()
    keep = 1 + int(np.argmax(left <= tolerance))
    lowest = np.eye(len(modes.stiffness), min(VIBRATIONS, len(modes.stiffness)))
    span = np.hstack([lowest, answer @ vectors[:, :keep]])
    span = span[:, : len(modes.stiffness)] / np.linalg.norm(span[:, : len(modes.stiffness)], axis=0)
    return galerkin(model, modes, span, METHOD)
