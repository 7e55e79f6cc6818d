"""The steps of the paper of 2008: its paths, its two methods, and what each gives."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.registry import find_solver
from palpo.studies.force_errors import deviation
from palpo.studies.hapco_benches import CM, LEGS_2008, lead, make_interaction, path_2008
from palpo.studies.rows import Row

CLAMPS = {"both ends": "2008-both", "left end": "2008-left"}
METHODS = {
    "global": ("uzawa-global-bipotential-rho_min", False),
    "local": ("uzawa-local-bipotential-rho_min", True),
    "local, warm": ("uzawa-local-bipotential-rho_min", False),
}
"""Solver, and whether a visit starts from r = 0."""
PRINTED = ("global", "local")
KINDS = ("physical", "relative")
REFERENCE = Stop(1e-12, 20000)
LIMIT = Stop(1e-12, 5000, 0.5)
"""The tolerance is out of reach, so that each method ends by its own stop."""


@dataclass(frozen=True)
class StepPlan:
    """How much is computed."""

    mus: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    errors: tuple[float, ...] = (1e-3, 1e-4, 1e-5)
    factors: tuple[float, ...] = (1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0)


QUICK = StepPlan(mus=(0.0, 0.3, 0.6), errors=(1e-3, 1e-4), factors=(1.0, 2.0, 3.0))


@dataclass(frozen=True)
class TimedStep:
    """One problem of the path, and its solution at 1e-12."""

    clamp: str
    mu: float
    number: int
    leg: int
    problem: ContactProblem
    reference: ContactResult
    hand: np.ndarray
    """Of the contacts in world axes to the hand's force: rows n, t1, t2, shape (n, 3, 3)."""

    @property
    def rho(self) -> float:
        """rho_min [N/m]."""
        return 1.0 / float(self.problem.w.diagonal().max())


def record(clamp: str, mu: float) -> Iterator[TimedStep]:
    """The path once, led with an exact solver."""
    interaction = make_interaction(
        CLAMPS[clamp], "green-2008", "red-2008", mu=mu, solver="anderson", stop=REFERENCE
    )
    legs = np.repeat(np.arange(len(LEGS_2008)), LEGS_2008)
    for number, (leg, displacement) in enumerate(zip(legs, path_2008(), strict=True), 1):
        done = lead(interaction, displacement)
        if isinstance(done.problem, ContactProblem):
            problem = replace(done.problem, warm=None)
            yield TimedStep(clamp, mu, number, int(leg), problem, done.result, done.frames)


def solve(step: TimedStep, method: str, kind: str, error: float, factor: float = 1.0) -> Row:
    """One step by one method, with factor rho_min."""
    name, from_zero = METHODS[method]
    result = find_solver(name).solve(
        step.problem, LIMIT, outer=(kind, error), uzawa_error=error, length=CM, from_zero=from_zero,
        factor=factor,
    )  # fmt: skip
    exact, found = (_hand_force(step, r) for r in (step.reference.r, result.r))
    return {
        "clamp": step.clamp,
        "mu": step.mu,
        "step": step.number,
        "leg": step.leg,
        "method": method,
        "kind": kind,
        "error": error,
        "factor": factor,
        "time_ms": 1e3 * result.seconds,
        "iterations": result.iterations,
        "met": result.reason in ("converged", "stalled"),
        "reason": result.reason,
        "force_N": float(np.linalg.norm(found)),
        "exact_force_N": float(np.linalg.norm(exact)),
        "force_error_percent": deviation(found, exact),
    }


def _hand_force(step: TimedStep, r: np.ndarray) -> np.ndarray:
    """Sum of the contact forces in world axes [N], shape (3,)."""
    return np.einsum("kci,kc->i", step.hand, r.reshape(-1, 3))
