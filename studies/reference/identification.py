"""Material constants from quasi-static measurements: Young's modulus and the coefficient of friction.

Source: 002, section V-C1. Displacements under known forces are linear in 1/E and the force at first slip is
linear in mu, so both are the slope of a straight line through the origin, found by least squares in closed
form where the paper minimises iteratively.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import splu

from palpo.physics.fem.material import Material
from palpo.physics.fem.rest_stiffness import rest_stiffness
from palpo.physics.mesh.tet import TetMesh
from palpo.physics.numerics.errors import InputError


class Estimate(NamedTuple):
    """value and standard_error have the unit of the constant, `residual` that of the measurements.

    residual: root mean square of what the fit leaves. n: how many measurements went in.
    """

    value: float
    standard_error: float
    residual: float
    n: int


def youngs_modulus(
    mesh: TetMesh, clamped: ArrayLike, poisson_ratio: float, forces: ArrayLike, displacements: ArrayLike
) -> Estimate:
    """E [Pa] that minimises |x - K^-1 f| over all samples (002, section V-C1), nu being known.

    clamped: nodes (k,). forces [N] and displacements [m] of the nodes: shape (n_samples, n, 3), or (n, 3) for
    one sample; a displacement that was not measured is NaN. With x1 = K^-1 f at E = 1 Pa the model is
    x = x1 / E; its slope 1/E has the variance residual^2 / (x1.x1), which the standard error carries over to
    E. Raises InputError for shapes that do not match the mesh, fewer than two measurements, forces that move
    none of the measured nodes, and displacements that run against the forces.
    """
    n = len(mesh.nodes)
    f, x = (np.asarray(a, dtype=np.float64) for a in (forces, displacements))
    f, x = (a[None] if a.ndim == 2 else a for a in (f, x))
    for name, array in (("forces", f), ("displacements", x)):
        if array.ndim != 3 or array.shape[1:] != (n, 3) or len(array) != len(f):
            raise InputError(f"{name} have shape {array.shape}, expected ({len(f)}, {n}, 3), samples first.")
    if not np.isfinite(f).all():
        raise InputError("forces hold a value that is not finite; a node without force has zeros.")

    free = np.setdiff1d(np.arange(n), clamped)
    dofs = (3 * free[:, None] + np.arange(3)).ravel()
    unit = Material(1.0, poisson_ratio, density=1.0)
    K1 = rest_stiffness(mesh, unit)[dofs][:, dofs].tocsc()
    x1 = splu(K1).solve(f.reshape(len(f), -1)[:, dofs].T).T
    measured = x.reshape(len(x), -1)[:, dofs]
    slope = _slope(x1, measured, "displacements", "forces")
    value = 1.0 / slope.value
    return slope._replace(value=value, standard_error=value**2 * slope.standard_error)


def friction(slip_forces: ArrayLike, weights: ArrayLike) -> Estimate:
    """mu = f_h / W of horizontal forces at first slip and weights [N], shapes (n,), n >= 2, or one weight."""
    f_h, W = np.broadcast_arrays(np.asarray(slip_forces, np.float64), np.asarray(weights, np.float64))
    return _slope(W, f_h, "slip forces", "weights")


def _slope(x: NDArray, y: NDArray, measured: str, known: str) -> Estimate:
    """Least squares of y = slope x where y is finite, with the standard error of the slope."""
    seen = np.isfinite(y)
    x, y = x[seen], y[seen]
    if y.size < 2:
        raise InputError(f"{y.size} {measured} were measured, expected at least two.")
    square = float(x @ x)
    if not square > 0.0:
        raise InputError(f"the {known} have no effect on any of the measured {measured}.")
    slope = float(x @ y) / square
    if not slope > 0.0:
        raise InputError(f"the {measured} run against the {known}; check the sign of both.")
    left = y - slope * x
    variance = float(left @ left) / (y.size - 1)
    return Estimate(slope, float(np.sqrt(variance / square)), float(np.sqrt(left @ left / y.size)), y.size)
