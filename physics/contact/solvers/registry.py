"""The contact solvers by name: each takes a `ContactProblem` and a `Stop`; one residual judges them."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from physics.contact.problem import ContactProblem, ContactResult, Stop
from physics.errors import InputError

Solve = Callable[..., ContactResult]
"""solve(problem, stop, **options) -> ContactResult"""


@dataclass(frozen=True)
class Solver:
    """One solver of the family."""

    name: str
    about: str
    """One line: method and source."""
    place: str
    """module:function, imported when it is first used."""
    options: tuple[tuple[str, Any], ...] = ()
    """Keyword arguments that make this member of its family."""
    consistent: bool = True
    """False where the converged answer is not a solution of the problem, as for two printed variants."""

    def solve(self, problem: ContactProblem, stop: Stop | None = None, **options: Any) -> ContactResult:
        """Solve the problem; raises InputError for options that the solver does not know."""
        module, _, function = self.place.partition(":")
        found: Solve = getattr(import_module(module), function)
        return found(problem, stop or Stop(), **{**dict(self.options), **options})


_FAMILY: dict[str, Solver] = {}


def register(*solvers: Solver) -> None:
    """Add solvers; their names must be new."""
    for solver in solvers:
        if solver.name in _FAMILY:
            raise ValueError(f"a solver named {solver.name} is registered already")
        _FAMILY[solver.name] = solver


def solver_names() -> list[str]:
    """All names, in the order of registration."""
    return list(_FAMILY)


def find_solver(name: str) -> Solver:
    """The solver of this name; InputError with the nearest names if there is none."""
    if name in _FAMILY:
        return _FAMILY[name]
    near = difflib.get_close_matches(name, _FAMILY, n=3, cutoff=0.4) or list(_FAMILY)
    raise InputError(f"solver {name}: there is no such solver; did you mean {', '.join(near)}?")
