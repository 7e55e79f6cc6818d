"""Whether a matrix that ought to be symmetric is: measured where it acts, and mirrored where half is stored.

A skew entry is measured against sqrt(A_ii A_jj), which bounds |A_ij| of a semidefinite A: over the largest
entry of all, a stiff penalty elsewhere would hide that a coupling is missing.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.numerics.errors import InputError

UNSYMMETRIC = 1e-8
"""Largest |A_ij - A_ji| over sqrt(A_ii A_jj) that rounding excuses."""

SKEW = 5e-3
"""The same up to which a matrix from outside is read as its symmetric part."""

LEAST = 1e-14
"""Least A_ii over the largest that counts: of what is less, roundings are all that is known."""

BLOCKS = (1, 2, 3, 6)
"""Rows of the blocks on the diagonal that are whole where only one triangle of a matrix is stored."""


def own_scales(matrix: Any) -> NDArray[np.float64]:
    """sqrt(A_ii), shape (N,), no less than LEAST of the largest allows; ones where A vanishes."""
    diagonal = np.abs(matrix.diagonal())
    most = float(diagonal.max(initial=0.0))
    if most == 0.0:
        return np.full(len(diagonal), 1.0)
    return np.asarray(np.sqrt(np.maximum(diagonal, LEAST * most)))


def worst_skew(matrix: Any) -> tuple[float, int, int]:
    """(|A_ij - A_ji| / sqrt(A_ii A_jj), i, j) of the pair i < j for which it is greatest; dense or sparse."""
    scales = own_scales(matrix)
    if sp.issparse(matrix):
        apart = sp.coo_array(matrix - matrix.T)
        if not apart.nnz:
            return 0.0, 0, 0
        i, j = apart.coords
        shares = np.abs(apart.data) / (scales[i] * scales[j])
        worst = int(shares.argmax())
        first, second = int(i[worst]), int(j[worst])
        return float(shares[worst]), min(first, second), max(first, second)
    shares = np.abs(matrix - matrix.T)
    shares /= scales[:, None]
    shares /= scales
    first, second = divmod(int(shares.argmax()), len(scales)) if shares.size else (0, 0)
    return float(shares.max(initial=0.0)), min(first, second), max(first, second)


def stored_triangle(matrix: Any) -> str:
    """'lower' or 'upper' where all else of A is empty but blocks on its diagonal; '' where it is not so."""
    entries = sp.coo_array(matrix)
    entries.eliminate_zeros()
    i, j = entries.coords
    for size in BLOCKS:
        if matrix.shape[0] % size:
            continue
        apart = i // size - j // size
        for name, filled, empty in (("lower", apart > 0, apart < 0), ("upper", apart < 0, apart > 0)):
            if not filled.any() or empty.any():
                continue
            own = apart == 0
            blocks = sp.csr_array((entries.data[own], (i[own], j[own])), matrix.shape)
            if worst_skew(blocks)[0] <= UNSYMMETRIC:
                return name
    return ""


def mirrored(matrix: Any) -> Any:
    """The whole of a symmetric matrix of which one triangle is stored, as `stored_triangle` finds."""
    whole = sp.csr_array(matrix)
    both = whole + whole.T - whole.multiply(whole.T != 0)
    return sp.csc_array(both) if sp.issparse(matrix) else both.toarray()


def require_symmetric(matrix: Any, key: str) -> None:
    """Raises InputError, one sentence with the worst pair, where A is not symmetric to rounding."""
    share, i, j = worst_skew(matrix)
    if not share <= UNSYMMETRIC:
        half = stored_triangle(matrix)
        raise InputError(
            f"{key} must be symmetric, but {pair(matrix, key, i, j)}: {share:.2g} of sqrt({key}_ii {key}_jj) "
            "apart" + (f"; only its {half} triangle is there, give both" if half else "")
        )


def pair(matrix: Any, key: str, i: int, j: int) -> str:
    """The two entries in words."""
    return f"{key}[{i}, {j}] = {matrix[i, j]:.6g} and {key}[{j}, {i}] = {matrix[j, i]:.6g}"
