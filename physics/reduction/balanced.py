"""Balanced reduction of a second-order model (002, II-C and III-B; EQUATIONS.md, 3).

Second-order gramians of displacement with free velocity (Meyer and Srinivasan, Balancing and model reduction
for second-order form linear systems, IEEE TAC 1996): the position blocks of the gramians of the first-order
form (7). Input: forces at the contact and coupling nodes; output: all displacements. The basis spans the
first columns of T = R^T U Lambda^-1/2 of (8), and the projection is one-sided (Galerkin), V^T M V and
V^T K V: an oblique one destroys passivity.

Rayleigh damping leaves the modes uncoupled, where the Lyapunov equations solve themselves entry by entry.
With g_i the answer of mode i to an impulse, c_i = alpha + beta w_i^2 and h_i = g_i' + c_i g_i its answer to a
displacement,

    int g_i g_j = 1 / (c_i w_j^2 + c_j w_i^2 + (w_j^2 - w_i^2)^2 / (c_i + c_j))

so that one symmetric eigenproblem replaces Bartels and Stewart's method for twice the freedoms. Rigid motions
have no gramian: they are kept, the rest is balanced beside them. An undamped model has none either; its
gramians are those of a small damping, and only they: the basis depends on it, towards modal truncation as it
vanishes.
"""

import numpy as np
import scipy.linalg as sl
from numpy.typing import ArrayLike, NDArray

from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.error_norm import error_norm
from palpo.physics.reduction.linear_model import Basis, LinearModel, VibrationModes, galerkin, require_order

GRAMIAN_DAMPING = (1e-4, 1e-5)
"""alpha [1/s] and beta [s] for the gramians of an undamped model: the paper's small damping (002, V-A)."""


def gramian_damping(model: LinearModel) -> tuple[float, float]:
    """alpha and beta that the gramians of a model see: its own, or GRAMIAN_DAMPING if it has none."""
    return (model.alpha, model.beta) if model.alpha > 0.0 or model.beta > 0.0 else GRAMIAN_DAMPING


def gramians(
    w2: NDArray, damping: NDArray, inputs: NDArray, outputs: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Position gramians of controllability and observability in modal coordinates, each (n, n).

    w2 (n,) [1/s2], damping c (n,) [1/s], inputs (n, k) and outputs (m, n) of the modes.
    """
    c, d = damping[:, None], damping
    difference = w2 - w2[:, None]
    gg = 1.0 / (c * w2 + d * w2[:, None] + difference**2 / (c + d))
    dg = difference * gg / (c + d)  # int g_i' g_j
    dd = (1.0 - difference * dg) / (c + d)  # int g_i' g_j'
    hh = dd + (d - c) * dg + c * d * gg
    return (inputs @ inputs.T) * gg, (outputs.T @ outputs) * hh


def balanced(
    model: LinearModel,
    modes: VibrationModes,
    inputs: ArrayLike,
    order: int | None = None,
    tolerance: float | None = None,
    damping: tuple[float, float] | None = None,
    least: int = 1,
) -> Basis:
    """Balanced basis of a model for forces at the nodes `inputs`, shape (m,).

    Either of `order` columns, rigid motions included, or of as few as keep the H-infinity error of the error
    system below `tolerance` times the norm of the model [-], tried from `least` on in steps of an eighth:
    a norm at resonance, far above what the model yields at rest. damping: alpha [1/s] and beta [s] of the
    gramians, by default those of `gramian_damping`. Raises InputError for an order or tolerance out of range.
    """
    if (order is None) == (tolerance is None):
        raise InputError("a balanced basis needs either an order or a tolerance.")
    alpha, beta = gramian_damping(model) if damping is None else damping
    n, rigid = len(modes.stiffness), modes.rigid
    w2, vectors = modes.stiffness[rigid:], modes.vectors[:, rigid:]
    P, Q = gramians(w2, alpha + beta * w2, vectors[model.dofs_of(inputs)].T, vectors)
    R, Z = _factor(P), _factor(Q)
    _, hankel, Vt = np.linalg.svd(Z.T @ R)
    T = np.zeros((n, n))
    T[:rigid, :rigid] = np.eye(rigid)
    T[rigid:, rigid:] = R @ Vt.T
    T /= np.linalg.norm(T, axis=0)

    def basis(order: int) -> Basis:
        return galerkin(model, modes, T[:, :order], "balanced", hankel)

    if order is not None:
        require_order(order, modes, "balanced")
        return basis(order)
    if tolerance is None or not 0.0 < tolerance < 1.0:
        raise InputError(f"balanced: the tolerance is {tolerance}, expected a number between 0 and 1.")
    order = min(n, max(least, rigid))
    while order < n:
        found = error_norm(model, modes, basis(order), inputs, alpha, beta)
        if found.error <= tolerance * found.size:
            break
        order = min(n, order + max(1, order // 8))
    return basis(order)


def _factor(gramian: NDArray) -> NDArray[np.float64]:
    """R with R R^T = gramian; scaled to unit diagonal first, its entries spanning many decades."""
    scale = np.sqrt(np.diag(gramian))
    values, vectors = sl.eigh(gramian / scale / scale[:, None])
    return scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
