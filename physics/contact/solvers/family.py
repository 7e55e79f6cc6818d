"""The members of 001's family as solvers: what each name stands for, in words, for the one relaxation.

001, N. Talbi's thesis, chapters 2 and 3; 004, Talbi, Joli, Feng and Kheddar at GRAPP 2008, section 3.3.
EQUATIONS.md, section 2, corrects both.
"""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

import numpy as np

from palpo.physics.contact.laws import (
    BIPOTENTIAL,
    BIPOTENTIAL_PRINTED,
    PSEUDOPOTENTIAL,
    PSEUDOPOTENTIAL_PRINTED,
)
from palpo.physics.contact.problem import ContactProblem, ContactResult, Stop
from palpo.physics.contact.solvers.relaxation import (
    NEWTON,
    PHYSICAL,
    RELATIVE,
    RESIDUAL,
    SLIP_FIRST,
    STICK_FIRST,
    UZAWA,
    Local,
    relax,
    stiffnesses,
)
from palpo.physics.contact.solvers.uzawa import DISPLACEMENT, ONCE, PENETRATION
from palpo.physics.numerics.errors import InputError

T = TypeVar("T")

FORMULATIONS = {
    "bipotential": (BIPOTENTIAL, BIPOTENTIAL_PRINTED),
    "pseudopotential": (PSEUDOPOTENTIAL, PSEUDOPOTENTIAL_PRINTED),
}
"""The law by name: right, and as 001 prints it."""

REACHES = {"global": ONCE, "local": DISPLACEMENT, "signorini": PENETRATION}
OUTER_STOPS = {"residual": RESIDUAL, "relative": RELATIVE, "physical": PHYSICAL}
OUTER_ERROR = 1e-4
"""eps of the last two, where none is given."""


def uzawa(
    problem: ContactProblem,
    stop: Stop,
    *,
    reach: str = "global",
    formulation: str = "bipotential",
    rho: str | float = "rho_min",
    factor: float = 1.0,
    printed: bool = False,
    from_zero: bool = False,
    uzawa_error: float = 1e-3,
    local_steps: int = 200,
    outer: str | tuple[str, float] = "residual",
    length: float | None = None,
) -> ContactResult:
    """Gauss-Seidel over the contacts with Uzawa's prediction and correction in each (001, 2.8.2).

    reach: "global", one step a visit; "local", steps until |dr| / rho <= uzawa_error L (3.6); "signorini",
        until x_n >= -uzawa_error L (3.7); at most local_steps
    from_zero: each visit starts from r = 0, as printed; the answer is then as inexact as the local stop
        allows, while a warm visit takes up where the last one ended
    rho: "rho_min" (3.1), "rho_alpha" (3.2, 001's *), or a number [N/m]; times factor
    printed: the law as 001 prints it, which solves another problem: with rho_alpha the bi-potential leaves
        x_n = mu |x_t| (rho_t / rho_n - 1) while sliding; the pseudo-potential's (2.44) turns friction around
    outer: a stop, or the pair of it and its error eps (OUTER_ERROR): "residual", the common one at
        stop.tolerance; "relative", |dr| <= eps |r| (2.72), which a sweep that leaves r = 0 meets; "physical",
        |dr| / rho <= eps L (001, 4.4.2). Whatever ends it, the result is judged by stop.tolerance
    length: L [m], 001's "characteristic length of the scene"; the largest entry of b if not given

    Where rho_n and rho_t differ, (3.6) and the physical stop divide each component of dr by its own.
    Raises InputError for a choice that there is not, and for rho, factor or length that are not positive.
    """
    law = choose("formulation", formulation, FORMULATIONS)[printed]
    characteristic = characteristic_length(problem, length)
    local = Local(
        UZAWA, law, choose("reach", reach, REACHES), uzawa_error * characteristic, from_zero, local_steps
    )
    stiffness = stiffnesses(problem, _rho(rho), positive("factor", factor))
    code, limit = outer_stop(outer, characteristic)
    return relax(problem, stop, local, stiffness, code, limit)


def newton(
    problem: ContactProblem, stop: Stop, *, formulation: str = "bipotential", local_steps: int = 20
) -> ContactResult:
    """Gauss-Seidel over the contacts with Newton's method in each (001, 2.8.1), at most local_steps a visit.

    Pseudo-potential with rho_alpha; bi-potential, which takes one rho, with that of the softest row.
    """
    law, _ = choose("formulation", formulation, FORMULATIONS)
    rho = stiffnesses(problem, "rho_alpha")
    if law == BIPOTENTIAL:
        most = problem.w.diagonal().reshape(-1, 3).max(axis=1, initial=0.0)
        rho = np.where(most > 0.0, 1.0 / np.where(most > 0.0, most, 1.0), rho[:, 0])[:, None].repeat(
            2, axis=1
        )
    return relax(problem, stop, Local(NEWTON, law, steps=local_steps), rho)


def stick_first(problem: ContactProblem, stop: Stop) -> ContactResult:
    """Gauss-Seidel with the blocking force of each contact cut to its cone (001, 2.23 and 2.24)."""
    return relax(problem, stop, Local(STICK_FIRST), stiffnesses(problem, "rho_min"))


def slip_first(problem: ContactProblem, stop: Stop) -> ContactResult:
    """Gauss-Seidel with each contact blocked along its normal and sliding (001, 2.25 and 2.26)."""
    return relax(problem, stop, Local(SLIP_FIRST), stiffnesses(problem, "rho_min"))


def choose(name: str, value: str, table: Mapping[str, T]) -> T:
    """The entry of a value that must be one of a few; InputError with the near ones."""
    if value in table:
        return table[value]
    near = get_close_matches(value, table, n=1) or list(table)
    raise InputError(f"{name} = {value!r}: there is no such choice; choose {' or '.join(near)}")


def outer_stop(outer: str | tuple[str, float], characteristic: float) -> tuple[int, float]:
    """Its number, and its limit as `relaxation.Outer` has it; characteristic: L [m]."""
    name, error = (outer, OUTER_ERROR) if isinstance(outer, str) else outer
    code = choose("outer", name, OUTER_STOPS)
    return code, error * (characteristic if code == PHYSICAL else 1.0)


def _rho(rho: str | float) -> str | float:
    if isinstance(rho, str):
        return choose("rho", rho, {"rho_min": "rho_min", "rho_alpha": "rho_alpha"})
    return positive("rho", rho)


def positive(name: str, value: float) -> float:
    if not (value > 0.0 and math.isfinite(value)):
        raise InputError(f"{name} = {value} must be positive and finite")
    return value


def characteristic_length(problem: ContactProblem, length: float | None) -> float:
    """L [m]: as given, or the largest entry of b."""
    return positive("length", length) if length is not None else float(np.abs(problem.b).max(initial=0.0))
