"""Whether W is positive semidefinite: whoever sends a problem from outside has it looked at once.

Contacts of bodies have such a W by what it is; a solver that looked again would pay as for a solve.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cholesky, eigvalsh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, splu

from palpo.physics.contact.symmetry import own_scales
from palpo.physics.numerics.errors import InputError

ROUNDED = 1e-6
"""Least eigenvalue, over minus the largest, that is excused: single precision leaves some 1e-7."""


def require_semidefinite(w: Any, excused: float = ROUNDED) -> None:
    """Raises InputError, one sentence with the eigenvalues, where W (N, N), symmetric, has one below 0.

    w: dense or sparse; excused: how far below, over the largest. One Cholesky factor of W, scaled to a
    diagonal of ones, so that nothing stiff hides what is soft, and shifted by that much of a bound of its
    eigenvalues; scaling keeps their signs, and a sparse factor's pivots have them (Sylvester).
    """
    if w.shape[0] == 0 or not abs(w).max() > 0.0:
        return
    inverse = 1.0 / own_scales(w)
    if sp.issparse(w):
        scaled = sp.csr_array(sp.diags_array(inverse) @ w @ sp.diags_array(inverse))
    else:
        scaled = inverse[:, None] * w * inverse
    bound = float(abs(scaled).sum(axis=1).max())
    if (_sparse_pivots if sp.issparse(w) else _has_cholesky)(scaled, excused * bound):
        return
    for matrix, how in ((w, ""), (scaled, ", scaled to a diagonal of ones,")):
        least, most = _sparse_ends(matrix) if sp.issparse(w) else _dense_ends(matrix)
        if least < -excused * max(most, -least):
            raise InputError(
                f"W must be positive semidefinite, but its least eigenvalue{how} is {least:.3g} "
                f"and its largest {most:.3g}"
            )


def _has_cholesky(w: Any, shift: float) -> bool:
    try:
        cholesky(w + shift * np.eye(len(w)), lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _sparse_pivots(w: Any, shift: float) -> bool:
    """Whether all pivots of W + shift I, taken along its diagonal, are positive."""
    shifted = sp.csc_array(w + shift * sp.eye_array(w.shape[0]))
    try:
        factor = splu(
            shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
    except RuntimeError:
        return False
    return bool((factor.perm_r == factor.perm_c).all() and (factor.U.diagonal() > 0.0).all())


def _dense_ends(w: Any) -> tuple[float, float]:
    values = eigvalsh(w, check_finite=False)
    return float(values[0]), float(values[-1])


def _sparse_ends(w: Any) -> tuple[float, float]:
    """The extreme eigenvalues by Lanczos's method."""
    bound = float(abs(w).sum(axis=1).max())
    if w.shape[0] < 3:
        return _dense_ends(w.toarray())
    start = np.cos(np.arange(w.shape[0]))
    ends = []
    for which in ("SA", "LA"):
        try:
            ends.append(float(eigsh(w, 1, which=which, v0=start, tol=1e-4, return_eigenvectors=False)[0]))
        except ArpackNoConvergence:
            ends.append(-bound if which == "SA" else bound)
    return ends[0], ends[1]
