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
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import eigsh, splu

from palpo.physics.numerics.errors import InputError
from palpo.physics.reduction.linear_model import Basis, LinearModel

METHOD = "static"
VIBRATIONS = 10
"""Lowest vibration modes that are kept beside the static ones."""


def static_modes(
    model: LinearModel,
    inputs: ArrayLike,
    tolerance: float,
    even: sp.csr_array | None = None,
    loads: NDArray[np.float64] | None = None,
) -> Basis:
    """Basis that yields as the model does to forces at the nodes `inputs`, shape (m,), at rest.

    As few static modes as leave out at most the share `tolerance` [-] of the mean compliance of these nodes.
    even (3 m, k): loads that are answered in full, such as those that are the same all around a ring. It is
    stiff to these, so that by the mean alone they come after what hardly matters; no other eigenvector of C
    may have a share of them. loads (3 m, j): all that the nodes are loaded with,
    orthonormal, any load by default; vibrations that move the nodes in other ways are left out.
    Raises InputError for a tolerance out of range and for a body that floats.
    """
    if not 0.0 < tolerance < 1.0:
        raise InputError(f"static: the tolerance is {tolerance}, expected a number between 0 and 1.")
    if not model.base.nnz:
        raise InputError("static: the body floats, so that forces on it have no answer at rest; clamp it.")
    rows, n = model.dofs_of(inputs), model.n_dof
    space = np.eye(rows.size) if loads is None else loads
    load = np.zeros((n, space.shape[1]))
    load[rows] = space
    answer = splu(sp.csc_matrix(model.K)).solve(load)
    compliance = space.T @ answer[rows]
    compliance = 0.5 * (compliance + compliance.T)
    whole = np.trace(compliance)
    kept = load[:0].T if even is None else np.linalg.qr(space.T @ even.toarray())[0]
    rest = compliance - kept @ (kept.T @ compliance)
    values, vectors = sl.eigh(0.5 * (rest + rest.T))
    values, vectors = values[::-1], vectors[:, ::-1]
    left = 1.0 - (np.trace(kept.T @ compliance @ kept) + np.cumsum(values)) / whole
    keep = 1 + int(np.argmax(left <= tolerance))
    few = min(VIBRATIONS, n - keep - kept.shape[1])
    lowest = (
        eigsh(model.K.tocsc(), few, model.M.tocsc(), sigma=0.0, v0=np.ones(n))[1] if few > 0 else load[:, :0]
    )
    told = np.linalg.norm(space.T @ lowest[rows], axis=0) >= 0.5 * np.linalg.norm(lowest[rows], axis=0)
    span = np.hstack([lowest[:, told], answer @ kept, answer @ vectors[:, :keep]])
    # the mass is lumped: with its root as a measure, orthogonal columns have V^T M V = 1
    root = np.sqrt(model.M.diagonal())[:, None]
    q = np.linalg.qr(root * (span / np.linalg.norm(span, axis=0)))[0] / root
    stiffness, turn = sl.eigh(q.T @ (model.K @ q))
    return Basis(q @ turn, stiffness, METHOD, 0, np.zeros(0))
