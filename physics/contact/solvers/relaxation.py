"""Successive balances (001, N. Talbi's thesis, 2.7): sweeps over the contacts under a choice of local laws.

One compiled kernel holds the sweep, the residual and the outer stops for the whole family; a member is a
`Local`.
"""

import math
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import (
    BIPOTENTIAL,
    diagonal_only,
    judge,
    project_cone,
    relative_natural_map,
    relative_residual,
    runaway,
    solve_contact,
)
from palpo.physics.contact.problem import AnyProblem, ContactResult, Reason, Stop
from palpo.physics.contact.solvers.block import open_block
from palpo.physics.contact.solvers.formulations import slip_first, stick_first
from palpo.physics.contact.solvers.newton import newton_contact
from palpo.physics.contact.solvers.operator import close_block, entries, operator, own_entries, set_offset
from palpo.physics.contact.solvers.uzawa import ONCE, uzawa_contact
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel

EXACT, UZAWA, NEWTON, STICK_FIRST, SLIP_FIRST = range(5)
"""Methods of the local problem."""

RESIDUAL, RELATIVE, PHYSICAL = range(3)
"""Outer stops: the common residual; |dr| <= eps |r| (2.72); |dr| / rho <= eps L (001, section 4.4.2)."""

CONTINUE, CONVERGED, SETTLED, DIVERGED = range(4)
REASONS: dict[int, Reason] = {CONVERGED: "converged", SETTLED: "stalled", DIVERGED: "diverged"}

STILL = 1e-15
"""|dr| / |r| of a sweep that moves nothing but roundings."""

NEAR, OFTEN = 10.0, 10
"""The residual is asked after a sweep that changes less than NEAR tolerances, and after every tenth."""

CHUNK = 2e5
"""Products between two looks at the clock, about 0.1 ms, where a solve is limited in time; whole tens of
sweeps, so that the residual is asked before each."""

SLENDER = 1e-3
"""Least lmin / lmax of W_tt in rho_t: a singular W_tt would give rho_t = 0, and friction would never move."""


class Local(NamedTuple):
    """What is done at a contact in one visit."""

    method: int = EXACT
    formulation: int = BIPOTENTIAL
    rule: int = ONCE
    """Stop of the local Uzawa iteration."""
    limit: float = 0.0
    """eps_Uzawa L of that stop [m]."""
    from_zero: bool = False
    """Each visit starts from r = 0, as 001 prints, not from the force of the last one."""
    steps: int = 1
    """Most steps of a visit."""


class Outer(NamedTuple):
    """When sweeps end."""

    stop: int
    """RESIDUAL, RELATIVE or PHYSICAL."""
    limit: float
    """eps of the relative stop, eps L [m] of the physical one."""
    tolerance: float
    """Of the common residual."""
    bound: float
    """|r| [N] beyond which the sweeps have diverged."""


@inlined
def _visit(local, block, free, mu, rho_n, rho_t, own, work):
    """own = the force of one contact after a visit of its local law."""
    if block[0, 0] <= 0.0:  # nothing yields along the normal: no force could part it
        own[:] = 0.0
        return
    if local.from_zero:
        own[:] = 0.0
    if local.method == EXACT:
        solve_contact(block, free, mu, own)
    elif local.method == UZAWA:
        uzawa_contact(local, block, free, mu, rho_n, rho_t, own, work[2], work[3], work[4])
    elif local.method == NEWTON:
        newton_contact(local.formulation, local.steps, block, free, mu, rho_n, rho_t, own, work[2:])
    elif local.method == STICK_FIRST:
        stick_first(block, free, mu, own)
    else:
        slip_first(block, free, mu, own)


@kernel
def relax_sweeps(w, b, mu, rho, local, outer, sweeps, r, u, best, least, work):
    """Up to `sweeps` sweeps on r (3 n,). Returns (why it ended, sweeps done, least residual so far).

    w (3 n, 3 n) or block rows, b and u = W r + b (3 n,), mu (n,), rho (n, 2); work (15, 3). best (3 n,) is
    the force of the least residual. DIVERGED where |r| passes the bound, and r is of no use then.
    """
    n, held = mu.shape[0], own_entries(w)
    last = 3 * n
    own, free = work[0], work[1]
    set_offset(w, b, r, u, 0, last)
    for sweep in range(sweeps):
        change, moved, size = 0.0, 0.0, 0.0
        for k in range(n):
            i = 3 * k
            block = held[i : i + 3, i : i + 3]
            open_block(block, r, u, i, own, free)
            _visit(local, block, free, mu[k], rho[k, 0], rho[k, 1], own, work)
            for c in range(3):
                size += own[c] ** 2
            if outer.stop == PHYSICAL:
                for c in range(3):
                    moved += ((own[c] - r[i + c]) / rho[k, min(c, 1)]) ** 2
            change = close_block(w, r, u, i, 0, last, own, change)
        if not size <= outer.bound * outer.bound:
            return DIVERGED, sweep + 1, least
        still = change <= STILL * STILL * size
        if outer.stop == RELATIVE:
            still = still or change <= outer.limit * outer.limit * size
        elif outer.stop == PHYSICAL:
            still = still or moved <= outer.limit * outer.limit
        if still or change <= (NEAR * outer.tolerance) ** 2 * size or sweep % OFTEN == OFTEN - 1:
            error = relative_natural_map(held, b, mu, r, u, 0, n, work[2:])[0]
            if error <= outer.tolerance and outer.stop == RESIDUAL:
                # u has gathered roundings: judge by a fresh one
                set_offset(w, b, r, u, 0, last)
                error = relative_natural_map(held, b, mu, r, u, 0, n, work[2:])[0]
                if error <= outer.tolerance:
                    return CONVERGED, sweep + 1, error
            if error < least:
                least = error
                copy(r, best)
            if still:
                return SETTLED, sweep + 1, least
    return CONTINUE, sweeps, least


@kernel
def project_cones(mu, r):
    """r (3 n,) = its projection on the product of the cones."""
    for k in range(mu.shape[0]):
        project_cone(r[3 * k : 3 * k + 3], mu[k], r[3 * k : 3 * k + 3])


def starting_force(problem: AnyProblem) -> NDArray[np.float64]:
    """A fresh array with the problem's warm start, brought into the cones, or zeros; shape (3 n,)."""
    if problem.warm is None:
        return np.zeros(3 * problem.n_contacts)
    r = np.array(problem.warm, float)
    project_cones(problem.mu, r)
    return r


@kernel
def least_stiffness(w):
    """rho_min = min 1 / W_ii [N/m] over all rows (3.1); 1 where nothing yields."""
    most = 0.0
    for i in range(w.shape[0]):
        most = max(most, w[i, i])
    return 1.0 / most if most > 0.0 else 1.0


def stiffnesses(problem: AnyProblem, rho: str | float, factor: float = 1.0) -> NDArray[np.float64]:
    """rho_n and rho_t of each contact [N/m], shape (n, 2), times `factor`.

    "rho_min": min 1 / W_ii over all rows (3.1); "rho_alpha": 1 / W_nn and lmin / lmax^2 of W_tt (3.2), the
    two eigenvalues of its symmetric part, lmin taken no smaller than SLENDER lmax; a number is imposed.
    """
    n = problem.n_contacts
    least = least_stiffness(diagonal_only(problem.w))
    if rho != "rho_alpha":
        return np.full((n, 2), factor * (least if rho == "rho_min" else float(rho)))
    i = 3 * np.arange(n)
    w_nn, w_11, w_22 = problem.w.diagonal().reshape(n, 3).T
    half, spread = 0.5 * (w_11 + w_22), np.hypot(0.5 * (w_11 - w_22), np.asarray(problem.w[i + 1, i + 2]))
    l_max = half + spread
    l_min = np.maximum(half - spread, SLENDER * l_max)
    out = np.full((n, 2), least)
    np.divide(1.0, w_nn, out=out[:, 0], where=w_nn > 0.0)
    np.divide(l_min, l_max**2, out=out[:, 1], where=l_max > 0.0)
    return factor * out


def relax(
    problem: AnyProblem,
    stop: Stop,
    local: Local,
    rho: NDArray[np.float64],
    outer: int = RESIDUAL,
    limit: float = 0.0,
) -> ContactResult:
    """Sweep with the local law until the outer stop, whose limit is that of `Outer`.

    Stopped short (iterations, time, diverged) it gives back the force of the least residual that it met, its
    last one among them. It
    ends "stalled", with its own last force, where it no longer moves, or its own stop is met, but the
    residual is above the tolerance.
    """
    started = perf_counter()
    w, b, mu = operator(problem), problem.b, problem.mu
    n, r = problem.n_contacts, starting_force(problem)
    u, best, work = np.zeros(3 * n), r.copy(), np.zeros((15, 3))
    ends = Outer(outer, limit, stop.tolerance, runaway(problem))
    chunk = stop.max_iterations
    if math.isfinite(stop.seconds):
        chunk = OFTEN * max(1, int(CHUNK / (OFTEN * (entries(problem) + 1))))
    code, done, least = CONTINUE, 0, math.inf
    reason: Reason = "iterations"
    while code == CONTINUE and done < stop.max_iterations:
        if done and perf_counter() - started >= stop.seconds:
            reason = "time"
            break
        code, sweeps, least = relax_sweeps(
            w, b, mu, rho, local, ends, min(chunk, stop.max_iterations - done), r, u, best, least, work
        )  # fmt: skip
        done += sweeps
    if code == DIVERGED or (code == CONTINUE and not relative_residual(problem, r) < least):
        r = best
    return judge(problem, stop, r, done, REASONS.get(code, reason), started)
