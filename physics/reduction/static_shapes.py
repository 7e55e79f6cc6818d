"""Guyan's reduction: what a clamped body does at rest, exactly, for forces on some of its nodes.

Source: R. J. Guyan, Reduction of stiffness and mass matrices, AIAA Journal 3 (1965). The span of the static
answers to motions of the input nodes; at rest nothing of the full model is lost, however few columns.
"""

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike
from scipy.sparse.linalg import splu

from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.linear_model import RIGID, Basis, LinearModel

STATIC = "static"
LOOSE = "static shapes: the clamped nodes do not hold the body."


def static_shapes(model: LinearModel, inputs: ArrayLike) -> Basis:
    """Basis of three columns for each of the nodes `inputs`, shape (m,), of a clamped model.

    Raises InputError for a model that these nodes and its clamps do not hold.
    """
    boundary = model.dofs_of(inputs)
    inside = np.setdiff1d(np.arange(model.n_dof), boundary)
    shapes = np.zeros((model.n_dof, boundary.size))
    shapes[boundary] = np.eye(boundary.size)
    if inside.size:
        K = model.K.tocsr()[inside]
        try:
            shapes[inside] = -splu(K[:, inside].tocsc()).solve(K[:, boundary].toarray())
        except RuntimeError as singular:
            raise InputError(LOOSE) from singular
    K_s, M_s = shapes.T @ (model.K @ shapes), shapes.T @ (model.M @ shapes)
    stiffness, turn = sl.eigh(0.5 * (K_s + K_s.T), 0.5 * (M_s + M_s.T))
    # a motion that costs nothing is one to rounding
    if stiffness[0] < RIGID * float((model.K.diagonal() / model.M.diagonal()).max()):
        raise InputError(LOOSE)
    return Basis(shapes @ turn, stiffness, STATIC, 0, np.zeros(0))
