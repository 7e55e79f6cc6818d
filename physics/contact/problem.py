"""The contact problem that every solver gets, and the result that every solver gives back."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from palpo.physics.contact.symmetry import require_symmetric
from palpo.physics.numerics.errors import InputError

SMALL = 3000
"""Rows of a sparse W up to which solvers that need a dense one get it: 72 MB."""

MANY, THIN = 120, 0.15
"""Contacts from which, and the share of pairs of contacts that move each other up to which, a W that comes
dense is kept sparse: from there on that is quicker, and 20 times so for 450 bricks."""


@dataclass(frozen=True)
class ContactProblem:
    """u = W r + b with r in the product of Coulomb cones; rows (n, t1, t2) of each contact.

    Raises InputError for shapes that do not agree, values that are not finite, negative mu, and a W that is
    not symmetric or has a negative diagonal; its eigenvalues are `semidefinite.require_semidefinite`'s.
    """

    w: NDArray[np.float64]
    """Delassus operator [m/N], shape (3 n, 3 n), symmetric positive semidefinite."""
    b: NDArray[np.float64]
    """Gap and tangential offset at the end of the step without contact force [m], shape (3 n,)."""
    mu: NDArray[np.float64]
    """Friction coefficient of each contact, shape (n,)."""
    warm: NDArray[np.float64] | None = None
    """Force to start from [N], shape (3 n,)."""

    def __post_init__(self) -> None:
        n = self.mu.size
        if self.mu.shape != (n,) or self.w.shape != (3 * n, 3 * n) or self.b.shape != (3 * n,):
            raise InputError(
                f"a contact problem of {n} contacts needs W of shape {(3 * n, 3 * n)}, b of shape {(3 * n,)} "
                f"and mu of shape {(n,)}; got {self.w.shape}, {self.b.shape} and {self.mu.shape}"
            )
        for name, values in (("W", self.w), ("b", self.b), ("mu", self.mu)):
            if not np.isfinite(values).all():
                raise InputError(f"a contact problem must be finite; {name} holds NaN or infinity")
        if self.warm is not None and not (self.warm.shape == (3 * n,) and np.isfinite(self.warm).all()):
            raise InputError(f"the warm start must be {3 * n} finite forces; got shape {self.warm.shape}")
        if n:
            _check_friction(self.mu)
            _check_compliance(self.w)

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return len(self.mu)


@dataclass(frozen=True)
class SparseProblem:
    """A `ContactProblem` whose W is kept sparse, for the solvers that can use that.

    Raises InputError as `ContactProblem` does.
    """

    w: sp.csr_array
    """[m/N], shape (3 n, 3 n)."""
    b: NDArray[np.float64]
    mu: NDArray[np.float64]
    warm: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        n = self.mu.size
        if self.w.shape != (3 * n, 3 * n) or self.b.shape != (3 * n,):
            raise InputError(
                f"a contact problem of {n} contacts needs W of shape {(3 * n, 3 * n)} and b of shape "
                f"{(3 * n,)}; got {self.w.shape} and {self.b.shape}"
            )
        if not (np.isfinite(self.w.data).all() and np.isfinite(self.b).all() and np.isfinite(self.mu).all()):
            raise InputError("a contact problem must be finite; W, b or mu holds NaN or infinity")
        if n:
            _check_friction(self.mu)
            _check_compliance(self.w)

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return len(self.mu)

    @property
    def small(self) -> bool:
        """Whether its W, dense, is no burden."""
        return bool(self.w.shape[0] <= SMALL)

    def dense(self) -> ContactProblem:
        """The same problem with all of W."""
        return ContactProblem(self.w.toarray(), self.b, self.mu, self.warm)


AnyProblem = ContactProblem | SparseProblem


def thinned(problem: AnyProblem) -> AnyProblem:
    """The problem with its W sparse where most of a large dense one is zero; the same problem otherwise."""
    n = problem.n_contacts
    if isinstance(problem, SparseProblem) or n < MANY:
        return problem
    coupled = problem.w.reshape(n, 3, n, 3).any(axis=(1, 3))
    if np.count_nonzero(coupled) > THIN * n * n:
        return problem
    return SparseProblem(sp.csr_array(problem.w), problem.b, problem.mu, problem.warm)


def _check_friction(mu: NDArray[np.float64]) -> None:
    worst = int(mu.argmin())
    if mu[worst] < 0.0:
        raise InputError(f"friction coefficient mu[{worst}] = {mu[worst]} is negative")


def _check_diagonal(diagonal: NDArray[np.float64]) -> None:
    worst = int(diagonal.argmin())
    if diagonal[worst] < 0.0:
        raise InputError(
            f"W must be positive semidefinite, but W[{worst}, {worst}] = {diagonal[worst]:.3g} is negative"
        )


def _check_compliance(w: Any) -> None:
    _check_diagonal(w.diagonal())
    require_symmetric(w, "W")


@dataclass(frozen=True)
class Stop:
    """When a solver ends."""

    tolerance: float = 1e-8
    """Relative natural-map residual (palpo.physics.contact.laws) at which it has converged."""
    max_iterations: int = 5000
    """In the solver's own unit: sweeps, Newton steps, pivots."""
    seconds: float = math.inf
    """Wall time after which it gives back the best force that it has [s]."""
    each: bool = False
    """Whether each contact's error over its own force (palpo.physics.contact.errors) must be within the
    tolerance, too: `Solver.solve` sees to it."""


@dataclass(frozen=True)
class Infeasible:
    """Why no forces solve a problem (palpo.physics.contact.feasibility)."""

    certificate: NDArray[np.float64]
    """p (n,), >= 0 and 1 at most: normal forces that W answers by nothing."""
    depth: float
    """p . b_n [m], below zero: what is left of the free offset whatever the forces."""
    answer: float
    """The largest |(W p)_i| / sqrt(W_ii) over that of its terms: rounding, 1e-14 at most."""
    violation: NDArray[np.float64]
    """s (n,) [m], >= 0: the least by which normals have to give."""

    @property
    def contacts(self) -> NDArray[np.int64]:
        """Those that the certificate weighs, those that weigh most first."""
        order = np.argsort(-self.certificate, kind="stable")
        return np.asarray(order[self.certificate[order] > 1e-6])


@dataclass(frozen=True)
class Wedge:
    """Why a problem may have no solution (palpo.physics.contact.wedging)."""

    certificate: NDArray[np.float64]
    """s (3 n,), in the cones, the largest normal force 1: forces that W answers by nothing."""
    depth: float
    """s . b [m], below zero: whatever solves the problem has sum mu s_n |u_t| >= -depth."""
    answer: float
    """The largest |(W s)_i| / sqrt(W_ii) over that of its terms: rounding, 1e-12 at most."""

    @property
    def contacts(self) -> NDArray[np.int64]:
        """Those that bear in it, those that bear most first."""
        normal = self.certificate[::3]
        order = np.argsort(-normal, kind="stable")
        return np.asarray(order[normal[order] > 1e-6])


Reason = Literal["converged", "iterations", "time", "stalled", "diverged", "infeasible"]


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
    infeasible: Infeasible | None = None
    """Why no forces solve the problem, where that was found out."""
    wedge: Wedge | None = None
    """Why there may be none, where that was found out."""
