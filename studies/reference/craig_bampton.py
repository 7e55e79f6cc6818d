"""Craig-Bampton reduction (Coupling of substructures for dynamic analyses, AIAA Journal 1968).

The span of what the body does statically when its input nodes move, and of the modes with those nodes held.
A small order holds neither all constraint modes nor any held ones, so that the former enter as their own
modes of lowest frequency (Castanier, Tan and Pierre, Characteristic constraint modes for component mode
synthesis, AIAA Journal 2001): of both families together, the `order` of lowest frequency are taken.
"""

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike

from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.linear_model import Basis, LinearModel, VibrationModes, galerkin, require_order


def craig_bampton(model: LinearModel, modes: VibrationModes, inputs: ArrayLike, order: int) -> Basis:
    """Basis of `order` columns with boundary nodes `inputs`, shape (m,).

    Raises InputError for an order out of range, and for boundary nodes that leave none inside or do not hold
    the body.
    """
    require_order(order, modes, "Craig-Bampton")
    boundary = model.dofs_of(inputs)
    inside = np.setdiff1d(np.arange(model.n_dof), boundary)
    if not inside.size:
        raise InputError("Craig-Bampton: every node is a boundary node; name fewer.")
    M, K = model.M.toarray(), model.K.toarray()
    try:
        held = sl.cho_factor(K[np.ix_(inside, inside)])
    except np.linalg.LinAlgError as error:
        raise InputError(
            f"Craig-Bampton: {len(boundary) // 3} boundary nodes do not hold the body."
        ) from error
    constraint = np.zeros((model.n_dof, boundary.size))
    constraint[boundary] = np.eye(boundary.size)
    constraint[inside] = -sl.cho_solve(held, K[np.ix_(inside, boundary)])
    static, shapes = sl.eigh(constraint.T @ K @ constraint, constraint.T @ M @ constraint)
    dynamic, normal = sl.eigh(K[np.ix_(inside, inside)], M[np.ix_(inside, inside)])
    columns = np.zeros((model.n_dof, model.n_dof))
    columns[:, : boundary.size] = constraint @ shapes
    columns[inside, boundary.size :] = normal
    lowest = np.argsort(np.concatenate([static, dynamic]), kind="stable")[:order]
    return galerkin(model, modes, modes.vectors.T @ (M @ columns[:, lowest]), "Craig-Bampton")
