"""Contact solvers of others, where they can be imported, on the same problems, judged by the same residual.

Pinocchio (`pip install pin`, version 4): its ADMM and projected Gauss-Seidel on a dense W. Siconos (no wheel
on PyPI; its Python interface comes with a build of its own): its nonsmooth Gauss-Seidel, by its manual
and not run yet. Their tolerances are not ours: each is called with tighter ones, WITHIN apart, until our
residual is met or gets no better. Only the last call is timed, and only the call itself. Each is called in a
process of its own: one that crashes on a problem has not solved it, and takes nothing else with it.
"""

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge
from palpo.physics.contact.problem import AnyProblem, ContactProblem, ContactResult, SparseProblem, Stop
from palpo.physics.contact.solvers.relaxation import project_cones
from palpo.physics.numerics.errors import InputError

Array = NDArray[np.float64]
Call = Callable[[Array, Array, Array, float, int], tuple[Array, int, float]]
"""call(W, b, mu, tolerance, iterations) -> force, iterations, seconds of the thread's processor; W and b are
scaled to a mean diagonal and a largest entry of 1."""

FIRST, WITHIN, CALLS = 1e-2, 0.1, 8
"""The first tolerance over ours, the factor to the next one, and how many there are."""


@dataclass(frozen=True)
class Peer:
    """A solver of somebody else, as the table sees it."""

    name: str
    call: Call
    consistent: bool = True

    def solve(self, problem: AnyProblem, stop: Stop, **options: Any) -> ContactResult:
        """As our solvers; `seconds` is its own call's. InputError for a large sparse W and for options."""
        if isinstance(problem, SparseProblem) and problem.small:
            problem = problem.dense()
        if not isinstance(problem, ContactProblem):
            raise InputError(f"{self.name} is given dense problems only, and this one is large")
        if options:
            raise InputError(f"{self.name} takes no options from here")
        scale = float(problem.w.diagonal().mean()) or 1.0
        unit = float(np.abs(problem.b).max(initial=0.0)) or 1.0
        w, b = problem.w / scale, problem.b / unit
        best: ContactResult | None = None
        for k in range(CALLS):
            r, count, seconds = self.call(
                w, b, problem.mu, FIRST * stop.tolerance * WITHIN**k, stop.max_iterations
            )
            r = np.nan_to_num(r * unit / scale)
            project_cones(problem.mu, r)
            found = replace(judge(problem, stop, r, count, "iterations", 0.0), seconds=seconds)
            if best is not None and found.residual >= best.residual and not found.converged:
                break
            best = found
            if found.converged:
                break
        assert best is not None
        return best


class Apart:
    """A peer's calls, made in a process of its own, which starts at the first of them.

    make: a function of a module that gives the call in that process. The call raises InputError where the
    process has ended under it; the next one starts another.
    """

    def __init__(self, name: str, make: Callable[..., Call], *given: Any) -> None:
        self.name, self.make, self.given = name, make, given
        self.process: Any = None

    def __call__(
        self, w: Array, b: Array, mu: Array, tolerance: float, most: int
    ) -> tuple[Array, int, float]:
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_serve, args=(theirs, self.make, self.given), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self.pipe.send((w, b, mu, tolerance, most))
            answer: tuple[Array, int, float] | str = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code, self.process = self.process.exitcode, None
            how = f"signal {-code}" if code < 0 else f"code {code}"
            raise InputError(f"{self.name} crashed on this problem: its process ended with {how}") from None
        if isinstance(answer, str):
            raise InputError(f"{self.name} failed on this problem: {answer}")
        return answer


def _serve(pipe: Connection, make: Callable[..., Call], given: tuple[Any, ...]) -> None:
    call = make(*given)
    while True:
        try:
            asked = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(call(*asked))
        except Exception as error:  # somebody else's code: any
            pipe.send(f"{type(error).__name__}: {error}")


PINOCCHIO = {"pinocchio-admm": "ADMM", "pinocchio-pgs": "PGS"}
"""Names here, and how those of its classes begin."""


def peers() -> list[Peer]:
    """Those that are installed here."""
    found = []
    if _has("pinocchio", *(f"{kind}ConstraintSolver" for kind in PINOCCHIO.values())):
        found += [Peer(name, Apart(name, pinocchio_call, kind)) for name, kind in PINOCCHIO.items()]
    if _has("siconos.numerics", "SICONOS_FRICTION_3D_NSGS"):
        found.append(Peer("siconos-nsgs", Apart("siconos-nsgs", siconos_call)))
    return found


def _has(module: str, *names: str) -> bool:
    try:
        found = import_module(module)
    except ImportError:
        return False
    return all(hasattr(found, name) for name in names)


def pinocchio_call(kind: str) -> Call:
    """Pinocchio's solver of that kind, as its classes' names begin."""
    pin: Any = import_module("pinocchio")
    solver, settings, result = (
        getattr(pin, kind + what) for what in ("ConstraintSolver", "SolverSettings", "SolverResult")
    )

    def call(w: Array, b: Array, mu: Array, tolerance: float, most: int) -> tuple[Array, int, float]:
        # its rows are (t1, t2, n)
        order = np.arange(len(b)).reshape(-1, 3)[:, [1, 2, 0]].ravel()
        model = pin.Model()
        model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "any")
        models, data = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
        for friction in mu:
            point = pin.PointContactConstraintModel(model, 1)
            point.setFriction(float(friction))
            models.append(pin.ConstraintModel(point))
            data.append(models[len(models) - 1].createData())
        how, found, own = settings(), result(), solver(len(b))
        how.max_iterations = most
        how.relative_feasibility_tol = how.relative_complementarity_tol = 0.0
        how.absolute_feasibility_tol = how.absolute_complementarity_tol = tolerance
        delassus, free = pin.DelassusOperatorDense(np.asfortranarray(w[np.ix_(order, order)])), b[order]
        begun = time.thread_time()
        own.solve(delassus, free, models, data, how, found)
        seconds = time.thread_time() - begun
        r = np.zeros(len(b))
        r[order] = found.retrieveConstraintImpulses()
        iterations = found.iterations
        return r, int(iterations() if callable(iterations) else iterations), seconds

    return call


def siconos_call() -> Call:
    """Siconos' nonsmooth Gauss-Seidel."""
    numerics: Any = import_module("siconos.numerics")
    kind = numerics.SICONOS_FRICTION_3D_NSGS

    def call(w: Array, b: Array, mu: Array, tolerance: float, most: int) -> tuple[Array, int, float]:
        problem = numerics.FrictionContactProblem(3, len(mu), np.asfortranarray(w), b, mu)
        options = numerics.SolverOptions(kind)
        options.dparam[numerics.SICONOS_DPARAM_TOL] = tolerance
        options.iparam[numerics.SICONOS_IPARAM_MAX_ITER] = most
        r, u = np.zeros(len(b)), np.zeros(len(b))
        begun = time.thread_time()
        numerics.fc3d_driver(problem, r, u, options)
        seconds = time.thread_time() - begun
        return r, int(options.iparam[numerics.SICONOS_IPARAM_ITER_DONE]), seconds

    return call
