"""A problem of contacts and cavities by itself, checked, and solved by palpo.physics.gas.pressure."""

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import RUNAWAY, contact_statuses, natural_map_norm, relative_error
from palpo.physics.contact.problem import ContactProblem, Reason, Stop
from palpo.physics.contact.solvers.anderson import (
    CHUNK,
    CONTINUE,
    CONVERGED,
    DIVERGED,
    REASONS,
    STALLED,
)
from palpo.physics.contact.solvers.relaxation import project_cones
from palpo.physics.contact.symmetry import UNSYMMETRIC
from palpo.physics.gas.law import OutsideAir
from palpo.physics.gas.pressure import SOLVED, advance, begin, finish, make_gas, make_workspace
from palpo.physics.numerics.errors import InputError

FIXED_SWEEPS = Stop(tolerance=0.0, max_iterations=50)
"""The thesis's stop: 50 sweeps, whatever they have reached."""


@dataclass(frozen=True, eq=False)
class PressureProblem:
    """n contacts, rows (n, t1, t2) each, and k cavities, one row each.

    palpo.physics.gas.pressure says what W and b are.

    Raises InputError for shapes that do not agree, values that are not finite, a W that is not symmetric or
    has a negative diagonal, a negative mu or amount, and a pressure that is not positive.
    """

    w: NDArray[np.float64]
    """(3 n + k, 3 n + k), symmetric positive semidefinite [m/N, m/Pa, m3/Pa]."""
    b: NDArray[np.float64]
    """(3 n + k,) gaps and offsets [m], then volumes [m3], at x = 0: no contact, the atmosphere inside."""
    mu: NDArray[np.float64]
    """(n,) friction coefficient of each contact."""
    amount: NDArray[np.float64]
    """(k,) n [mol] at the step's start; of no account where active."""
    pressure: NDArray[np.float64]
    """(k,) p [Pa], absolute: given where active, a start elsewhere."""
    active: NDArray[np.bool_]
    """(k,) whether the pressure is given."""
    air: OutsideAir
    warm: NDArray[np.float64] | None = None
    """(3 n,) force to start from [N]."""

    def __post_init__(self) -> None:
        k, rows = self.n_cavities, 3 * self.n_contacts
        shapes = (self.w.shape, self.b.shape, self.pressure.shape, self.active.shape)
        if shapes != ((rows + k, rows + k), (rows + k,), (k,), (k,)):
            raise InputError(
                f"a problem of {self.n_contacts} contacts and {k} cavities needs W and b of {rows + k} rows, "
                f"pressure and active of shape {(k,)}; got {', '.join(str(s) for s in shapes)}"
            )
        if not np.isfinite(self.b[rows:]).all() or not np.isfinite(self.w[rows:]).all():
            raise InputError("the rows of the cavities must be finite; they hold NaN or infinity")
        ContactProblem(self.w[:rows, :rows], self.b[:rows], self.mu, self.warm)
        for name, block, mirrored in (
            ("W_pc", self.w[rows:, :rows], self.w[:rows, rows:].T),
            ("W_pp", self.w[rows:, rows:], self.w[rows:, rows:].T),
        ):
            if np.abs(block - mirrored).max(initial=0.0) > UNSYMMETRIC * np.abs(block).max(initial=0.0):
                raise InputError(f"W must be symmetric, but {name} differs from its mirror image")
        if k and self.w.diagonal()[rows:].min() < 0.0:
            raise InputError(f"W_pp = {self.w.diagonal()[rows:].min():.3g} m3/Pa is negative")
        if k and not (np.isfinite(self.amount).all() and self.amount.min() >= 0.0):
            raise InputError(f"a cavity holds {self.amount.min():.3g} mol of air; it must be 0 or more")
        if k and not (np.isfinite(self.pressure).all() and self.pressure.min() > 0.0):
            raise InputError(f"a cavity's pressure is {self.pressure.min():.6g} Pa; it must be positive")
        stiff = (self.w.diagonal()[rows:] <= 0.0) & (self.b[rows:] <= 0.0) & ~np.asarray(self.active, bool)
        if stiff.any():
            raise InputError(
                f"cavity {stiff.argmax()} has a volume of {self.b[rows:][stiff][0]:.3g} m3 and walls that do "
                "not yield; its volume must be positive"
            )

    @property
    def n_contacts(self) -> int:
        """Number of contacts."""
        return len(self.mu)

    @property
    def n_cavities(self) -> int:
        """Number of cavities."""
        return len(self.amount)


@dataclass(frozen=True, eq=False)
class PressureResult:
    """What `solve` found; finite and in the cones, and its pressures solve their laws, whatever ended it."""

    r: NDArray[np.float64]
    """Contact forces [N], shape (3 n,), order (n, t1, t2)."""
    status: NDArray[np.int32]
    """OPEN, STICK or SLIP of each contact, shape (n,)."""
    pressure: NDArray[np.float64]
    """p [Pa], absolute, shape (k,)."""
    volume: NDArray[np.float64]
    """V [m3] at the step's end, shape (k,), as u = W x + b has it; negative where walls pass each other."""
    amount: NDArray[np.float64]
    """n + dn [mol] at the step's end, shape (k,)."""
    iterations: int
    """Sweeps."""
    residual: float
    """Relative natural-map residual of the contacts."""
    gas_residual: float
    """Largest |p V - n R T| / n R T of the passive cavities."""
    converged: bool
    reason: Reason
    seconds: float


def solve(problem: PressureProblem, stop: Stop, *, accelerated: bool = True) -> PressureResult:
    """Sweep until the contacts' residual is at most `stop.tolerance` and each gas law's at most SOLVED.

    accelerated: extrapolate from the last sweeps; else plain block Gauss-Seidel, which with FIXED_SWEEPS is
    the thesis's algorithm 2 but for dn. Gives back the x of the least residual, whatever ended it.
    """
    started = perf_counter()
    n, k, mu = problem.n_contacts, problem.n_cavities, problem.mu
    rows = 3 * n
    w, b = np.array(problem.w, float, order="C"), np.array(problem.b, float)
    x, u = np.zeros(rows + k), np.zeros(rows + k)
    if problem.warm is not None:
        x[:rows] = problem.warm
        project_cones(mu, x)
    gas = make_gas(problem.air, problem.amount, problem.pressure, problem.active)
    a = make_workspace(n, k)
    bound = begin(w, b, mu, x, u, gas, accelerated, a)
    chunk = stop.max_iterations
    if math.isfinite(stop.seconds):
        chunk = max(1, int(CHUNK / (rows + k + 1) ** 2))
    code, done = CONTINUE, 0
    reason: Reason = "iterations"
    while code == CONTINUE and done < stop.max_iterations:
        if done and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        sweeps = min(chunk, stop.max_iterations - done)
        code = advance(w, b, mu, x, u, gas, stop.tolerance, bound, sweeps, a)
        done = a.state["sweeps"].item()
    gas_error = finish(w, b, mu, x, u, gas, a)
    error, size = natural_map_norm(w, mu, x, u, 0, n, a.scratch)
    error = relative_error(error, size, bound / RUNAWAY)
    converged = code != DIVERGED and error <= stop.tolerance and gas_error <= SOLVED
    if converged:
        reason = "converged"
    elif code in (STALLED, DIVERGED):
        reason = REASONS[code]
    elif code == CONVERGED:
        reason = "stalled"
    status = np.zeros(n, np.int32)
    contact_statuses(w, mu, x, u, status)
    return PressureResult(
        x[:rows], status, gas.pressure, gas.volume, gas.amount, done, error, gas_error, converged, reason,
        perf_counter() - started,
    )  # fmt: skip
