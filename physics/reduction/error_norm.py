"""H-infinity norm of what a reduced model gets wrong, by search over frequencies.

G(s) = (M s^2 + D s + K)^-1 B, displacements [m] of all nodes per force [N] at the input nodes. No a-priori
bound holds for a one-sided projection, so that the error of a basis is computed: the largest singular value
of G - G_r at the frequencies where it can peak, which are the natural ones of both models. The passive
midpoint rule maps frequencies and keeps peaks, so that this is also the worst that a simulation at any step
shows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import LinearOperator, svds

from palpo.physics.reduction.linear_model import Basis, LinearModel, VibrationModes

CANDIDATES = 60
"""Natural frequencies of the full model at which the error is looked at: the peaks least represented."""


class ErrorNorm(NamedTuple):
    """The error of a basis, its frequency and its input; rigid motions, which are exact, are left out."""

    error: float  # H-infinity norm of G - G_r [m/N]
    size: float  # H-infinity norm of G [m/N]
    frequency: float  # where the error peaks [rad/s]
    force: NDArray[
        np.complex128
    ]  # (k,) unit input that meets it: amplitudes and phases at the input freedoms


def error_norm(
    model: LinearModel, modes: VibrationModes, basis: Basis, inputs: ArrayLike, alpha: float, beta: float
) -> ErrorNorm:
    """Error of a basis under a positive D = alpha M + beta K [1/s, s]; inputs: nodes, shape (m,)."""
    w2, vectors = modes.stiffness[modes.rigid :], modes.vectors[:, modes.rigid :]
    B = vectors[model.dofs_of(inputs)].T
    r2 = basis.stiffness[basis.rigid :]
    Y = vectors.T @ (model.M @ basis.vectors[:, basis.rigid :])
    C = Y.T @ B

    def worst(w: float, reduced: bool) -> tuple[float, NDArray]:
        full = 1.0 / (w2 - w * w + 1j * w * (alpha + beta * w2))
        less = (1.0 / (r2 - w * w + 1j * w * (alpha + beta * r2))) * reduced

        def forward(f: NDArray) -> NDArray:
            return vectors @ (full * (B @ f.ravel()) - Y @ (less * (C @ f.ravel())))

        def backward(x: NDArray) -> NDArray:
            q = vectors.T @ x.ravel()
            return B.T @ (full.conj() * q) - C.T @ (less.conj() * (Y.T @ q))

        shape = (len(vectors), B.shape[1])
        start = np.ones(min(shape), dtype=complex)
        operator = LinearOperator(shape, forward, backward, dtype=complex)
        _, value, right = svds(operator, 1, v0=start, tol=1e-8)
        return float(value[0]), right[0].conj()

    def peak(frequencies: NDArray, reduced: bool) -> float:
        """Frequency of the largest value, refined between its neighbours."""
        frequencies = np.unique(frequencies)
        best = frequencies[int(np.argmax([worst(w, reduced)[0] for w in frequencies]))]
        width = 0.5 * (alpha + beta * best * best) + 1e-3 * best
        found = minimize_scalar(
            lambda w: -worst(w, reduced)[0], bounds=(max(0.0, best - width), best + width), method="bounded"
        )
        return float(found.x if -found.fun > worst(best, reduced)[0] else best)

    damping = alpha + beta * w2
    height = np.linalg.norm(B, axis=1) * np.linalg.norm(vectors, axis=0) / (damping * np.sqrt(w2))
    missed = height * (1.0 - np.minimum(1.0, (Y * Y).sum(axis=1)))
    natural, own = np.sqrt(w2), np.sqrt(r2)
    likely = natural[np.argsort(missed)[-CANDIDATES:]]
    at = peak(np.concatenate([[0.0], likely, own, natural[:10]]), True)
    error, force = worst(at, True)
    size, _ = worst(peak(np.concatenate([[0.0], natural[np.argsort(height)[-5:]]]), False), False)
    return ErrorNorm(error, size, at, force)
