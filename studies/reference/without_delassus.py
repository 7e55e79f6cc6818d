"""Uzawa's method without the Delassus operator: x is asked of the bodies, never computed as W r + b.

001, N. Talbi's thesis, sections 4.2 and 4.3. In *Gauss-Seidel* order each contact
asks for its own points once those before it have their new forces; in *Jacobi* order (algorithm 4.1) all
contacts answer one x, and a body is asked once a sweep. Where both bodies offer the columns of their K^-1, a
visit in Gauss-Seidel order adds the contact's own ones to the displacements instead of asking for them.

The step rho comes from the bodies alone. In series their compliances add: row by row that is the rho_min of
W; from one rho of each body it is 1 / (1 / rho_1 + 1 / rho_2), where 001 takes the lesser of the two, twice
too much for equal bodies. Jacobi order needs rho < 2 / lambda_max of W, and gets 1 / lambda_max.
"""

import math
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import judge, relative_natural_map, runaway
from palpo.physics.contact.problem import ContactResult, Reason, Stop
from palpo.physics.contact.solvers.block import add_row
from palpo.physics.contact.solvers.family import (
    FORMULATIONS,
    REACHES,
    characteristic_length,
    choose,
    outer_stop,
    positive,
)
from palpo.physics.contact.solvers.relaxation import (
    CHUNK,
    NEAR,
    OFTEN,
    PHYSICAL,
    RELATIVE,
    RESIDUAL,
    STILL,
    UZAWA,
    Local,
    starting_force,
    stiffnesses,
)
from palpo.physics.contact.solvers.uzawa import uzawa_contact
from palpo.physics.numerics.kernels import inlined, kernel
from palpo.studies.reference.unassembled import UnassembledProblem


def solve(
    problem: UnassembledProblem,
    stop: Stop,
    *,
    order: str = "gauss-seidel",
    reach: str = "global",
    formulation: str = "bipotential",
    rho: str | float | None = None,
    factor: float = 1.0,
    from_zero: bool = False,
    uzawa_error: float = 1e-3,
    local_steps: int = 200,
    outer: str | tuple[str, float] = "residual",
    length: float | None = None,
) -> ContactResult:
    """Contact forces between two bodies that are asked how they yield; an iteration is a sweep.

    order: "gauss-seidel" or "jacobi"
    rho: "rho_min" and "rho_alpha", those of W (3.1, 3.2); "series", 1 / (1 / rho_1 + 1 / rho_2); "lesser",
        min(rho_1, rho_2) as 001 prints; "lambda_max", 1 / lambda_max of W; or a number [N/m]; times factor.
        If not given, "rho_min" in Gauss-Seidel order and "lambda_max" in Jacobi order
    The other options are those of `family.uzawa`.

    The residual is that of the assembled problem, on displacements that the bodies are asked for: it cannot
    fall below what their own tolerance leaves. Raises InputError as `family.uzawa` and `ContactProblem`.
    """
    started = perf_counter()
    scales = problem.uncoupled
    characteristic = characteristic_length(scales, length)
    local = Local(
        UZAWA, choose("formulation", formulation, FORMULATIONS)[0], choose("reach", reach, REACHES),
        uzawa_error * characteristic, from_zero, local_steps,
    )  # fmt: skip
    visits = choose("order", order, ORDERS)
    if rho is None:
        rho = "lambda_max" if order == "jacobi" else "rho_min"
    step = _step(problem, rho, factor)
    code, limit = outer_stop(outer, characteristic)
    near = NEAR * stop.tolerance if code == RESIDUAL else 0.0
    ending = Ending(code, limit**2, near**2)
    return _relax(problem, stop, visits(problem, local, step, ending), ending, started)


def _series(problem: UnassembledProblem) -> float:
    return _inverse(sum(problem.softest))


def _lesser(problem: UnassembledProblem) -> float:
    return _inverse(max(problem.softest))


def _lambda_max(problem: UnassembledProblem) -> float:
    return _inverse(problem.largest_compliance())


def _inverse(compliance: float) -> float:
    return 1.0 / compliance if compliance > 0.0 else 1.0


RHO: dict[str, str | Callable[[UnassembledProblem], float]] = {
    "rho_min": "rho_min",
    "rho_alpha": "rho_alpha",
    "series": _series,
    "lesser": _lesser,
    "lambda_max": _lambda_max,
}
"""What `stiffnesses` knows by name, or how a number is found."""


def _step(problem: UnassembledProblem, rho: str | float, factor: float) -> NDArray[np.float64]:
    """rho_n and rho_t of each contact [N/m], shape (n, 2)."""
    value: str | float | Callable[[UnassembledProblem], float]
    value = choose("rho", rho, RHO) if isinstance(rho, str) else positive("rho", rho)
    if callable(value):
        value = value(problem)
    return stiffnesses(problem.uncoupled, value, positive("factor", factor))


class Ending(NamedTuple):
    """When a sweep is the last, and when its residual is worth computing."""

    outer: int
    limit: float
    """Square of eps of the relative stop, or of eps L [m] of the physical one."""
    near: float
    """|dr|^2 / |r|^2 of a sweep that may have converged."""


class Moves(NamedTuple):
    """What sweeps have done: how many, and of the last one |dr|^2 [N^2], |dr / rho|^2 [m^2], |r|^2 [N^2]."""

    sweeps: int
    change: float
    moved: float
    size: float


@inlined
def _is_last(ending, change, moved, size):
    """Whether a sweep moved nothing but roundings, or met the outer stop (relaxation.relax_sweeps)."""
    if ending.outer == RELATIVE and change <= ending.limit * size:
        return True
    if ending.outer == PHYSICAL and moved <= ending.limit:
        return True
    return change <= STILL * STILL * size


class Order(Protocol):
    """In what order the contacts are visited, and what is known of the bodies in between."""

    def restart(self, r: NDArray) -> None:
        """Ask the bodies anew: r (3 n,) has changed, or roundings have gathered."""
        ...

    def offsets(self, r: NDArray) -> NDArray:
        """x (3 n,) under the forces r that the last sweep, or restart, has left."""
        ...

    def sweep(self, r: NDArray, most: int, deadline: float) -> Moves:
        """Visit all contacts at least once and at most `most` times; r follows.

        Past the deadline, a time of perf_counter(), it ends between two visits, and counts as a whole sweep.
        """
        ...


def _relax(
    problem: UnassembledProblem, stop: Stop, order: Order, ending: Ending, started: float
) -> ContactResult:
    """Sweep until the outer stop; it ends as `relaxation.relax` does, and for the same reasons."""
    scales = problem.uncoupled
    bound, deadline = runaway(scales), started + stop.seconds
    r, scratch = starting_force(scales), np.zeros((2, 3))
    best, least, done = r.copy(), math.inf, 0
    reason: Reason = "iterations"

    def residual() -> float:
        x = order.offsets(r)
        return float(relative_natural_map(scales.w, scales.b, problem.mu, r, x, 0, len(r) // 3, scratch)[0])

    order.restart(r)
    while done < stop.max_iterations:
        if done and perf_counter() >= deadline:
            reason = "time"
            break
        most = min(OFTEN - done % OFTEN, stop.max_iterations - done)
        sweeps, change, moved, size = order.sweep(r, most, deadline)
        done += sweeps
        if not size <= bound * bound:
            reason = "diverged"
            break
        last = _is_last(ending, change, moved, size)
        if last or change <= ending.near * size or done % OFTEN == 0:
            error = residual()
            if error <= stop.tolerance and ending.outer == RESIDUAL:
                order.restart(r)
                error = residual()
                if error <= stop.tolerance:
                    reason = "converged"
                    break
            if error < least:
                best, least = r.copy(), error
            if last:
                reason = "stalled"
                break
    if reason == "diverged" or (reason in ("iterations", "time") and not residual() <= least):
        r = best
    x = problem.offsets(r)
    if not np.isfinite(x).all():  # a body has broken down: nothing can be judged any more
        none = np.zeros(len(problem.mu), np.int32)
        return ContactResult(r, none, done, least, False, "diverged", perf_counter() - started)
    return judge(scales, stop, r, done, reason, started, x)


@inlined
def _visit(local, block, x, mu, rho_n, rho_t, own, work):
    """own = a contact's force after an Uzawa visit, its x (3,) being that of the force that it had.

    block: its W_aa, on which further steps of a local iteration go; the first one needs x alone.
    """
    if block[0, 0] <= 0.0:  # nothing yields along the normal: no force could part it
        own[:] = 0.0
        return
    free = work[0]
    for c in range(3):
        free[c] = x[c] - block[c, 0] * own[0] - block[c, 1] * own[1] - block[c, 2] * own[2]
    if local.from_zero:
        own[:] = 0.0
    uzawa_contact(local, block, free, mu, rho_n, rho_t, own, work[1], work[2], work[3])


@kernel
def _visit_rows(local, w, x, mu, rho, k, r, work):
    """Contact k's force in r (3 n,) after a visit at x (3,); work[5] = by how much it changed.

    w (3 n, 3 n): of which W_aa is read. Returns the squares of the change, of the same over rho, and of the
    force.
    """
    i = 3 * k
    own, step = work[4], work[5]
    for c in range(3):
        own[c] = r[i + c]
    _visit(local, w[i : i + 3, i : i + 3], x, mu[k], rho[k, 0], rho[k, 1], own, work)
    change, moved, size = 0.0, 0.0, 0.0
    for c in range(3):
        step[c] = own[c] - r[i + c]
        r[i + c] = own[c]
        change += step[c] ** 2
        moved += (step[c] / rho[k, min(c, 1)]) ** 2
        size += own[c] ** 2
    return change, moved, size


class _AllAtOnce:
    """Jacobi: every contact answers the same x (001, algorithm 4.1)."""

    def __init__(self, problem: UnassembledProblem, local: Local, rho: NDArray, ending: Ending) -> None:
        self.problem, self.local, self.rho = problem, local, rho
        self.x, self.work = problem.gap, np.zeros((6, 3))

    def restart(self, r: NDArray) -> None:
        self.x = self.problem.offsets(r)

    def offsets(self, r: NDArray) -> NDArray:
        return self.x

    def sweep(self, r: NDArray, most: int, deadline: float) -> Moves:
        w, mu = self.problem.uncoupled.w, self.problem.mu
        change, moved, size = _answer_at_once(self.local, w, self.x, mu, self.rho, r, self.work)
        self.x = self.problem.offsets(r)
        return Moves(1, change, moved, size)


@kernel
def _answer_at_once(local, w, x, mu, rho, r, work):
    change, moved, size = 0.0, 0.0, 0.0
    for k in range(mu.shape[0]):
        c, m, s = _visit_rows(local, w, x[3 * k : 3 * k + 3], mu, rho, k, r, work)
        change, moved, size = change + c, moved + m, size + s
    return change, moved, size


class _AskedInTurn:
    """Gauss-Seidel on bodies of any kind: each is asked for the contact's own points at every visit."""

    def __init__(self, problem: UnassembledProblem, local: Local, rho: NDArray, ending: Ending) -> None:
        self.problem, self.local, self.rho = problem, local, rho
        self.forces = [np.zeros((H.points.size, 3)) for H in problem.maps]
        self.work = np.zeros((6, 3))

    def restart(self, r: NDArray) -> None:
        self.forces = [H.forces(r) for H in self.problem.maps]

    def offsets(self, r: NDArray) -> NDArray:
        return self.problem.offsets(r)

    def sweep(self, r: NDArray, most: int, deadline: float) -> Moves:
        problem, w = self.problem, self.problem.uncoupled.w
        sides = list(zip(problem.bodies, problem.maps, self.forces, strict=True))
        change, moved, size = 0.0, 0.0, 0.0
        for k in range(len(problem.mu)):
            if k and perf_counter() >= deadline:
                return Moves(1, math.inf, math.inf, float(r @ r))
            x = problem.gap[3 * k : 3 * k + 3].copy()
            for body, H, forces in sides:
                at, weights = H.own(k)
                x += H.axes[k] @ (weights @ body.displacements(H.points, forces, H.points[at]))
            c, m, s = _visit_rows(self.local, w, x, problem.mu, self.rho, k, r, self.work)
            change, moved, size = change + c, moved + m, size + s
            for _, H, forces in sides:
                at, weights = H.own(k)
                np.add.at(forces, at, np.outer(weights, self.work[5] @ H.axes[k]))
        return Moves(1, change, moved, size)


class _ColumnsInTurn:
    """Gauss-Seidel on bodies that offer their columns: a visit adds the contact's own ones to u."""

    def __init__(self, problem: UnassembledProblem, local: Local, rho: NDArray, ending: Ending) -> None:
        assert problem.columns is not None
        self.problem, self.local, self.rho, self.ending = problem, local, rho, ending
        self.sides, self.work = problem.columns, np.zeros((7, 3))
        self.u = tuple(np.zeros(len(side.compliance)) for side in problem.columns)
        freedoms = sum(u.size for u in self.u)
        self.chunk = max(1, int(CHUNK / (9 * len(problem.mu) * freedoms + 1)))

    def restart(self, r: NDArray) -> None:
        u = self.problem.displacements(r)
        self.u = tuple((own @ side.rotation).ravel() for own, side in zip(u, self.sides, strict=True))

    def offsets(self, r: NDArray) -> NDArray:
        x = self.problem.gap.copy()
        _add_offsets(self.sides, self.u, x)
        return x

    def sweep(self, r: NDArray, most: int, deadline: float) -> Moves:
        problem = self.problem
        if deadline < math.inf:
            most = min(most, self.chunk)
        found = _sweep_columns(
            self.local, self.ending, most, self.sides, self.u, problem.gap, problem.uncoupled.w, problem.mu,
            self.rho, r, self.work,
        )  # fmt: skip
        return Moves(*found)


@inlined
def _add_offset(side, k, u, x):
    """x (3,) += axes B u of contact k on one body, u (3 m,) in its axes."""
    for c in range(3):
        weight = side.weights[k, c]
        if weight != 0.0:
            p = 3 * side.place[k, c]
            for i in range(3):
                a = side.axes[k, i]
                x[i] += weight * (a[0] * u[p] + a[1] * u[p + 1] + a[2] * u[p + 2])


@inlined
def _add_columns(side, k, step, u):
    """u (3 m,) += K^-1 H_a^T step: the columns of contact k, whose force changes by step (3,)."""
    for c in range(3):
        weight = side.weights[k, c]
        if weight != 0.0:
            p = 3 * side.place[k, c]
            for j in range(3):
                a = side.axes[k]
                force = weight * (a[0, j] * step[0] + a[1, j] * step[1] + a[2, j] * step[2])
                add_row(u, side.compliance[p + j], force)


@kernel
def _add_offsets(sides, u, x):
    """x (3 n,) += H1 u1 + H2 u2."""
    for k in range(sides[0].place.shape[0]):
        _add_offset(sides[0], k, u[0], x[3 * k : 3 * k + 3])
        _add_offset(sides[1], k, u[1], x[3 * k : 3 * k + 3])


@kernel
def _sweep_columns(local, ending, most, sides, u, gap, w, mu, rho, r, work):
    """Up to `most` sweeps, fewer where the last one may have converged; Moves, as a plain tuple."""
    step, x = work[5], work[6]
    change, moved, size = 0.0, 0.0, 0.0
    for sweep in range(most):
        change, moved, size = 0.0, 0.0, 0.0
        for k in range(mu.shape[0]):
            for c in range(3):
                x[c] = gap[3 * k + c]
            _add_offset(sides[0], k, u[0], x)
            _add_offset(sides[1], k, u[1], x)
            c2, m2, s2 = _visit_rows(local, w, x, mu, rho, k, r, work)
            change, moved, size = change + c2, moved + m2, size + s2
            if c2 != 0.0:
                _add_columns(sides[0], k, step, u[0])
                _add_columns(sides[1], k, step, u[1])
        if change <= ending.near * size or _is_last(ending, change, moved, size) or not np.isfinite(size):
            return sweep + 1, change, moved, size
    return most, change, moved, size


def _in_turn(problem: UnassembledProblem, local: Local, rho: NDArray, ending: Ending) -> Order:
    kind = _AskedInTurn if problem.columns is None else _ColumnsInTurn
    return kind(problem, local, rho, ending)


ORDERS: dict[str, Callable[[UnassembledProblem, Local, NDArray, Ending], Order]] = {
    "gauss-seidel": _in_turn,
    "jacobi": _AllAtOnce,
}
