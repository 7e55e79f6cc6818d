"""The contact problem that every solver gets, and the result that every solver gives back."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from physics.errors import InputError


@dataclass(frozen=True)
class ContactProblem:
    """u = W r + b with r in the product of Coulomb cones; rows (n, t1, t2) of each contact."""

    w: NDArray[np.float64]
    """Delassus operator [m/N], shape (3 n, 3 n), symmetric positive semidefinite."""
    b: NDArray[np.float64]
    """Gap and tangential offset at the end of the step without contact force [m], shape (3 n,)."""
    mu: NDArray[np.float64]
    """Friction coefficient of each contact, shape (n,)."""
    warm: NDArray[np.float64] | None = None
    """Force to start from [N], shape (3 n,)."""

    def __post_init__(self) -> None:
        n = len(self.mu)
        if self.w.shape != (3 * n, 3 * n) or self.b.shape != (3 * n,):
            raise InputError(
                f"a contact problem of {n} contacts needs W of shape {(3 * n, 3 * n)} and b of shape "
                f"{(3 * n,)}; got {self.w.shape} and {self.b.shape}"
            )
        if not (np.isfinite(self.w).all() and np.isfinite(self.b).all() and np.isfinite(self.mu).all()):
            raise InputError("a contact problem must be finite; W, b or mu holds NaN or infinity")
        if n and self.mu.min() < 0.0:
            worst = int(self.mu.argmin())
            raise InputError(f"friction coefficient mu[{worst}] = {self.mu[worst]} is negative")

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return len(self.mu)


@dataclass(frozen=True)
class Stop:
    """When a solver ends."""

    tolerance: float = 1e-8
    """Relative natural-map residual (physics.contact.residual) at which it has converged."""
    max_iterations: int = 5000
    """In the solver's own unit: sweeps, Newton steps, pivots."""
    seconds: float = math.inf
    """Wall time after which it gives back the best force that it has [s]."""


Reason = Literal["converged", "iterations", "time", "stalled", "diverged"]


@dataclass(frozen=True)
class ContactResult:
    """What a solver found; `r` is finite and in the cones whatever the reason for which it ended."""

    r: NDArray[np.float64]
    """Contact forces [N], shape (3 n,), order (n, t1, t2)."""
    status: NDArray[np.int32]
    """OPEN, STICK or SLIP of each contact, shape (n,)."""
    iterations: int
    residual: float
    """Relative natural-map residual of r."""
    converged: bool
    """Whether the residual is at most the tolerance, whatever the solver's own criterion says."""
    reason: Reason = "converged"
    """Why it ended."""
    seconds: float = 0.0
    """Wall time of the solve [s]."""
