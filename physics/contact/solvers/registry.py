"""The contact solvers by name: each takes a `ContactProblem` and a `Stop`; one residual judges them."""

import difflib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from palpo.physics.contact.each import solve_each
from palpo.physics.contact.problem import AnyProblem, ContactResult, SparseProblem, Stop, thinned
from palpo.physics.numerics.errors import InputError

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
    sure: bool = True
    """False where it may stall far from a solution, and then says so: made to go on from another's force."""
    sparse: bool = False
    """Whether a W that is sparse stays so."""
    short: str = ""
    """Another name, as in the tables of 001, N. Talbi's thesis."""

    def solve(self, problem: AnyProblem, stop: Stop | None = None, **options: Any) -> ContactResult:
        """Solve the problem, of a dense W whose pattern is sparse as a sparse one where the solver can.

        Numbers that overflow on the way warn nobody: the residual and the reason say what is wrong.
        Raises InputError for options that the solver does not know, and for a large sparse W where it needs a
        dense one.
        """
        if self.sparse:
            problem = thinned(problem)
        if isinstance(problem, SparseProblem) and not self.sparse and problem.small:
            problem = problem.dense()
        if isinstance(problem, SparseProblem) and not self.sparse:
            able = " or ".join(other.name for other in _FAMILY.values() if other.sparse)
            raise InputError(
                f"{self.name} needs W dense, which for {problem.n_contacts} contacts takes "
                f"{8e-9 * problem.w.shape[0] ** 2:.1f} GB; {able} keeps it sparse"
            )
        module, _, function = self.place.partition(":")
        found: Solve = getattr(import_module(module), function)
        known = list(inspect.signature(found).parameters)[2:]
        for key in options:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=3) or known
                raise InputError(f"{self.name} has no option {key}; it has {', '.join(near) or 'none'}")
        stop, settings = stop or Stop(), {**dict(self.options), **options}
        with np.errstate(all="ignore"):
            if stop.each:
                return solve_each(problem, stop, lambda held, until: found(held, until, **settings))
            return found(problem, stop, **settings)


_FAMILY: dict[str, Solver] = {}


def register(*solvers: Solver) -> None:
    """Add solvers; their names, the short ones too, must be new."""
    for solver in solvers:
        for name in filter(None, (solver.name, solver.short)):
            if any(name in (other.name, other.short) for other in _FAMILY.values()):
                raise ValueError(f"a solver named {name} is registered already")
        _FAMILY[solver.name] = solver


def solver_names() -> list[str]:
    """All names, in the order of registration."""
    return list(_FAMILY)


def find_solver(name: str) -> Solver:
    """The solver of this name or short name; InputError with the nearest names if there is none."""
    for solver in _FAMILY.values():
        if name in (solver.name, solver.short):
            return solver
    near = difflib.get_close_matches(name, _FAMILY, n=3, cutoff=0.4) or list(_FAMILY)
    raise InputError(f"solver {name}: there is no such solver; did you mean {', '.join(near)}?")


_HERE, _REFERENCE = "palpo.physics.contact.solvers", "palpo.physics.contact.reference"


def _uzawas() -> Iterator[Solver]:
    """Uzawa's members: reach, formulation, rho and, last, whether the law is as printed."""
    reaches = {
        "global": ("one step a visit", ""),
        "local": ("steps to |dr|/rho <= eps L (3.6)", "L"),
        "signorini": ("steps to x_n >= -eps L (3.7)", "LS"),
    }
    for reach, (said, letter) in reaches.items():
        for formulation in ("bipotential", "pseudopotential"):
            for rho in ("rho_min", "rho_alpha"):
                for printed in (False, True):
                    if printed and (formulation, rho) == ("bipotential", "rho_min"):
                        continue  # with one rho the printed projection is the right one
                    options = {"reach": reach, "formulation": formulation, "rho": rho, "printed": printed}
                    yield Solver(
                        f"uzawa-{reach}-{formulation}-{rho}" + ("-printed" if printed else ""),
                        f"Gauss-Seidel, Uzawa {reach}: {said}, {formulation}, {rho}"
                        + (", as printed" if printed else "") + " (001, 2.8.2)",
                        f"{_HERE}.family:uzawa",
                        tuple(options.items()),
                        consistent=not printed,
                        short=_symbol(letter, formulation, rho, printed),
                    )  # fmt: skip


def _symbol(letter: str, formulation: str, rho: str, printed: bool) -> str:
    """001's symbol: GB, G*B, L, LS*, with P for the pseudo-potential; a prime where 001 prints otherwise."""
    star = "*" if rho == "rho_alpha" else ""
    right = "" if printed or (formulation, rho) == ("bipotential", "rho_min") else "'"
    if letter:
        return f"{letter}{star}{'' if formulation == 'bipotential' else 'P'}{right}"
    return f"G{star}{'B' if formulation == 'bipotential' else 'P'}{right}"


register(
    Solver(
        "portfolio",
        "accelerated sweeps, Newton, interior point and alternating directions, as the problem needs",
        f"{_HERE}.portfolio:solve",
        sparse=True,
        short="best",
    ),
    Solver(
        "interior-point",
        "primal-dual interior point on the cones, Mehrotra (Acary et al. 2024)",
        f"{_HERE}.interior_point:solve",
        sparse=True,
    ),
    Solver(
        "semi-smooth-newton",
        "Newton on all contacts at once (Alart & Curnier 1991), from a warm start",
        f"{_HERE}.semi_smooth_newton:solve",
        sure=False,
    ),
    Solver(
        "admm",
        "alternating directions with a spectral step (Carpentier et al. 2024)",
        f"{_HERE}.admm:solve",
        sparse=True,
    ),
    Solver(
        "lifting",
        "the solution followed from where nothing touches, by changes of status (Allgower & Georg 2003)",
        f"{_HERE}.lifting:solve",
        sure=False,
    ),
    Solver(
        "homotopy",
        "the central path by its arc length, round its folds (Allgower & Georg 2003)",
        f"{_HERE}.homotopy:solve",
        sure=False,
    ),
    Solver(
        "anderson",
        "Gauss-Seidel, extrapolated from its last sweeps (Anderson 1965)",
        f"{_HERE}.anderson:solve",
        sparse=True,
    ),
    Solver(
        "gauss-seidel",
        "block Gauss-Seidel, exact local law",
        f"{_HERE}.gauss_seidel:solve",
        sparse=True,
    ),
    Solver(
        "maximal-dissipation",
        "over-relaxation, each contact by bisection (002, IV-B; Hwangbo et al. 2018)",
        f"{_HERE}.maximal_dissipation:solve",
    ),
    Solver(
        "maximal-dissipation-printed",
        "the same, each contact the least of 002 (28) on its ellipse",
        f"{_HERE}.maximal_dissipation:solve",
        (("printed", True),),
        consistent=False,
    ),
    *_uzawas(),
    Solver(
        "newton-bipotential",
        "Gauss-Seidel, Newton on the local equations, bi-potential (001, 2.8.1)",
        f"{_HERE}.family:newton",
        (("formulation", "bipotential"),),
        short="NB",
    ),
    Solver(
        "newton-pseudopotential",
        "Gauss-Seidel, Newton on the local equations, pseudo-potential (001, 2.8.1)",
        f"{_HERE}.family:newton",
        (("formulation", "pseudopotential"),),
        short="NP",
    ),
    *(
        Solver(
            f"lemke-{facets}",
            f"cone of {facets} facets as a linear complementarity problem, Lemke (001, 2.4.2.3)",
            f"{_REFERENCE}.lemke:solve",
            (("facets", facets),),
            consistent=False,
        )
        for facets in (4, 8, 16)
    ),
    Solver(
        "penalty-implicit",
        "springs at the contacts, balanced with the bodies (001, 2.19 and 2.20)",
        f"{_REFERENCE}.penalty:implicit",
        consistent=False,
    ),
    Solver(
        "penalty-explicit",
        "springs on the free displacement, nothing solved (001, 2.21 and 2.22)",
        f"{_REFERENCE}.penalty:explicit",
        consistent=False,
    ),
    Solver(
        "acary-cadoux",
        "fixed point on the convex relaxation (Acary, Cadoux, Lemarechal & Malick 2011)",
        f"{_REFERENCE}.cadoux:fixed_point",
        sure=False,
        sparse=True,
    ),
    Solver(
        "convex-relaxation",
        "the associated law: what slides also lifts off (Acary, Cadoux, Lemarechal & Malick 2011)",
        f"{_REFERENCE}.cadoux:relaxation",
        consistent=False,
        sparse=True,
    ),
    Solver(
        "tresca-coulomb",
        "fixed point on Tresca's law, friction up to a held force (Panagiotopoulos 1975; Haslinger 1983)",
        f"{_REFERENCE}.tresca:fixed_point",
        sure=False,
    ),
    Solver(
        "tresca",
        "friction up to mu times the normal force that there would be without friction",
        f"{_REFERENCE}.tresca:tresca",
        consistent=False,
    ),
    Solver(
        "stick-first",
        "Gauss-Seidel, blocking force cut to the cone (001, 2.23 and 2.24)",
        f"{_HERE}.family:stick_first",
        consistent=False,
    ),
    Solver(
        "slip-first",
        "Gauss-Seidel, normal blocked, tangent sliding (001, 2.25 and 2.26)",
        f"{_HERE}.family:slip_first",
        consistent=False,
    ),
)
