"""Contact, friction and the pressures of cavities in one block Gauss-Seidel (000, section 3.3.4).

One row a cavity follows the contacts' rows. With x = (r, p - P_atm), forces [N] and gauge pressures [Pa],

    u = W x + b = (gaps and offsets [m], volumes [m3] at the step's end),    b = (b_c, V_free)
    W_cc = h^2 H_c A^-1 H_c^T [m/N],   W_cp = h^2 H_c A^-1 H_p^T [m/Pa],   W_pp = h^2 H_p A^-1 H_p^T [m3/Pa]

and H_p = dV/dx, so that W is symmetric. The contacts obey Signorini's and Coulomb's laws, a passive cavity

    p V = (n + dn) R T,    0 <= P_max - p  perp  -dn >= 0    (3.8, 3.14; EQUATIONS.md, section 4)

and an active one has its p given. Where air gets by under rims (palpo.physics.gas.rim_flow) it does so
implicitly, at the pressures of the step's end, s = h G [m3/Pa] with G those of its start:

    p_i V_i + sum_j s_ij (p_i^2 - p_j^2) = n_i R T

with the outside as one more j: a stiffer law of the same form. Without friction
and flow this minimises the convex function x W x / 2 + b x - sum n R T log p.

A sweep visits each contact, then all cavities until their laws hold together: whatever ends a solve, its
pressures solve their equations. Where the sweeps run out, the x is given back whose relative residual was
the least, but one that is larger than what the problem asks for counts by its residual in newtons: sweeps
that swing about with strong friction pass through forces of 1e5 N whose residual is a tenth of that.
dn follows from the n of the step's start and the last volume, in `finish`
alone: carried from sweep to sweep, as algorithm 2 prints it, it would let transients leak air for ever. The
sweeps are extrapolated as in palpo.physics.contact.solvers.anderson.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.contact.laws import RUNAWAY, natural_map_norm, relative_error
from palpo.physics.contact.solvers.anderson import (
    ASK,
    BACK,
    CONTINUE,
    CONVERGED,
    DIVERGED,
    REST,
    STALLED,
    STILL,
    STOP,
    Acceleration,
    forget,
    go_on,
    make_acceleration,
    prepare,
    sweep,
    weigh,
)
from palpo.physics.contact.solvers.block import add_row, set_offset
from palpo.physics.contact.solvers.joined_blocks import offset_joined, sweep_joined
from palpo.physics.gas.law import OutsideAir, gas_law_error, held_amount, pressure_root
from palpo.physics.numerics.arrays import copy
from palpo.physics.numerics.kernels import inlined, kernel

SOLVED = 1e-10
"""Relative error of the gas law p V = n R T at which a pressure solves it."""

VISITS = 50
"""Most visits to each cavity in a sweep: cavities that share walls settle in a few."""


class Gas(NamedTuple):
    """The cavities of a solve, k of them, and their air."""

    active: NDArray[np.bool_]
    """(k,) whether the pressure is given."""
    pressure: NDArray[np.float64]
    """(k,) [Pa], absolute: given where active, else start and result."""
    amount: NDArray[np.float64]
    """(k,) n [mol] at the step's start; `finish` makes it that of the step's end."""
    volume: NDArray[np.float64]
    """(k,) [m3] at the step's end, written by `finish`."""
    area: NDArray[np.float64]
    """(k,) [m2] by which rows are divided during a solve: force and displacement of an equal piston."""
    seeping: NDArray[np.float64]
    """(k + 1, k + 1) s = h G [m3/Pa] between cavities and, last, the outside; no diagonal."""
    atmosphere: float
    """P_atm [Pa]."""
    largest: float
    """P_max [Pa]."""
    rt: float
    """R T [J/mol]."""


def make_gas(
    air: OutsideAir, amount: NDArray, pressure: NDArray, active: NDArray, seeping: NDArray | None = None
) -> Gas:
    """Fresh arrays of k cavities from n [mol], p [Pa] and whether p is given, all (k,).

    seeping: as in `Gas`, none by default.
    """
    k = len(amount)
    return Gas(
        np.array(active, bool), np.array(pressure, float), np.array(amount, float), np.zeros(k), np.ones(k),
        np.zeros((k + 1, k + 1)) if seeping is None else seeping,
        float(air.atmosphere), float(air.largest), air.rt,
    )  # fmt: skip


def make_workspace(n_contacts: int, n_cavities: int) -> Acceleration:
    """Room for a solve of up to that many contacts and cavities."""
    return make_acceleration(n_contacts + -(-n_cavities // 3))


@inlined
def _offset(w, b, x, u, last, blocks):
    """u = W x + b."""
    if blocks is None:
        set_offset(w, b, x, u, 0, last)
    else:
        offset_joined(w, b, x, u[:last], blocks)


@kernel
def begin(w, b, mu, x, u, gas, accelerated, a, blocks=None):
    """Start a solve of n contacts and k cavities; returns the |r| past which it has diverged [N].

    w (3 n + k, 3 n + k), b, x and u (3 n + k,), contiguous; mu (n,). x[:3 n] is the force to start from, in
    the cones. The cavities' rows of w and b are divided by gas.area until `finish`: a power of two, so that
    it gives them back to the bit. blocks: JoinedBlocks where W is made of them, here
    and in `advance` and `finish`.
    """
    n, k = mu.shape[0], gas.area.shape[0]
    first, last = 3 * n, 3 * n + k
    _choose_areas(w, n, gas.area)
    for j in range(k):
        _scale_row(w, b, first + j, last, 1.0 / gas.area[j])
        x[first + j] = gas.area[j] * (gas.pressure[j] - gas.atmosphere)
    prepare(w, mu, x, 0, a)
    if not accelerated:
        a.state[0].wait = np.iinfo(np.int64).max
    trace, free, size = 0.0, 0.0, 0.0
    for i in range(first):
        trace += w[i, i]
        free += b[i] * b[i]
    for j in range(k):
        # at the least a pascal, so that a problem at rest asks for something
        size += (gas.area[j] * max(abs(gas.pressure[j] - gas.atmosphere), 1.0)) ** 2
    _offset(w, b, x, u, last, blocks)
    copy(x, a.best[:last])
    copy(x[first:last], a.before[first:last])
    _balance(w, x, u, first, gas, a.before)
    asked = free**0.5 * (first / trace if trace > 0.0 else 1.0) + size**0.5
    _residual(w, mu, x, u, gas, 0.0, asked, a)
    return RUNAWAY * asked


@kernel
def advance(w, b, mu, x, u, gas, tolerance, bound, sweeps, a, blocks=None):
    """Up to `sweeps` sweeps more after `begin`.

    Returns CONVERGED where the contacts' natural map has a relative residual of at most `tolerance` and each
    gas law one of at most SOLVED, STALLED where a sweep moves nothing and they have not, DIVERGED past
    `bound`, else CONTINUE. a.best is the x of the least residual.
    """
    first, last = 3 * mu.shape[0], 3 * mu.shape[0] + gas.area.shape[0]
    force, ahead = x[:last], u[:last]
    for done in range(1, sweeps + 1):
        copy(x[first:last], a.before[first:last])
        if blocks is None:
            move, size = sweep(w, mu, x, ahead, 0, a.step, a.before)
        else:
            move, size = sweep_joined(w, mu, x, ahead, a.step, a.before, blocks)
        pushed, pushing = _balance(w, x, u, first, gas, a.before)
        move += pushed
        size += pushing
        then = weigh(move, size, tolerance, bound, done == sweeps, force, ahead, a)
        if then == STOP:
            return DIVERGED
        if then in (ASK, REST):
            if _residual(w, mu, x, u, gas, tolerance, bound / RUNAWAY, a) <= tolerance:
                # u has gathered roundings: judge by a fresh one
                _offset(w, b, x, u, last, blocks)
                a.state[0].residual = np.inf
                if _residual(w, mu, x, u, gas, tolerance, bound / RUNAWAY, a) <= tolerance:
                    return CONVERGED
            if then == REST:
                return STALLED
        if then != BACK:
            go_on(force, ahead, move, a)
    return CONTINUE


@kernel
def resume(w, b, mu, x, u, gas, tolerance, bound, a):
    """Go on after `begin` from other contact forces, x[:3 n], in the cones: the pressures follow them."""
    first, last = 3 * mu.shape[0], 3 * mu.shape[0] + gas.area.shape[0]
    set_offset(w, b, x, u, 0, last)
    copy(x[first:last], a.before[first:last])
    _balance(w, x, u, first, gas, a.before)
    forget(a)
    _residual(w, mu, x, u, gas, tolerance, bound / RUNAWAY, a)


@kernel
def finish(w, b, mu, x, u, gas, a, blocks=None):
    """End a solve with the x of the least residual: x, u, gas.pressure, gas.volume, and n + dn.

    x[3 n:] is then p - P_atm [Pa] and u[3 n:] the volume [m3], negative where the walls have passed each
    other: such a cavity holds no air. Returns the largest relative error of the gas law.
    """
    first, k = 3 * mu.shape[0], gas.area.shape[0]
    last = first + k
    copy(a.best, x[:last])
    _offset(w, b, x, u, last, blocks)
    copy(x[first:last], a.before[first:last])
    _balance(w, x, u, first, gas, a.before)
    error = _gas_error(u, first, gas)
    for j in range(k):
        i = first + j
        p, volume = gas.pressure[j], gas.area[j] * u[i]
        if gas.active[j] or gas.seeping[j].any():
            gas.amount[j] = max(0.0, p * volume / gas.rt)
        else:
            gas.amount[j] = held_amount(p, volume, gas.amount[j], gas.largest, gas.rt)
        gas.volume[j] = volume
        x[i], u[i] = p - gas.atmosphere, volume
        _scale_row(w, b, i, last, gas.area[j])
    return error


@kernel
def _choose_areas(w, n, area):
    """area (k,) = the piston as yielding as the contacts' normals, sqrt(W_pp / mean W_nn), to a power of two.

    In newtons on such pistons pressures weigh as much as contact forces do, which the extrapolation needs.
    """
    mean = 0.0
    for i in range(0, 3 * n, 3):
        mean += w[i, i] / n
    for j in range(area.shape[0]):
        own = w[3 * n + j, 3 * n + j]
        area[j] = 2.0 ** np.rint(0.5 * math.log2(own / mean)) if own > 0.0 and mean > 0.0 else 1.0


@inlined
def _scale_row(w, b, i, last, factor):
    b[i] *= factor
    for c in range(last):
        w[i, c] *= factor
        w[c, i] *= factor


@kernel
def _balance(w, x, u, first, gas, before):
    """Solve the gas laws of all passive cavities with the contact forces held; u = W x + b follows.

    The cavities see each other through W: visit after visit, as for contacts. The contacts' rows follow once.
    Returns the squares of the change since `before` and of the result, as forces on the pistons [N^2].
    """
    k = gas.area.shape[0]
    for _ in range(VISITS):
        largest_step = 0.0
        for j in range(k):
            if gas.active[j]:
                continue
            i, s = first + j, gas.area[j]
            own = w[i, i]
            others = u[i] - own * x[i]
            through, come = passing(gas, j)
            p = min(
                gas.largest,
                pressure_root(
                    own * s * s + through, s * (others - own * s * gas.atmosphere),
                    gas.amount[j] * gas.rt + come,
                ),
            )  # fmt: skip
            if not p < np.inf:  # NaN, or walls that never yield: the error tells
                continue
            gas.pressure[j] = p
            step = s * (p - gas.atmosphere) - x[i]
            if step != 0.0:
                x[i] += step
                for m in range(first, first + k):
                    u[m] += step * w[i, m]
                largest_step = max(largest_step, abs(step) / (s * p) if p > 0.0 else 0.0)
        if largest_step <= STILL or k == 1:
            break
    move, size = 0.0, 0.0
    ahead = u[:first]
    for i in range(first, first + k):
        step = x[i] - before[i]
        size += x[i] * x[i]
        if step != 0.0:
            move += step * step
            add_row(ahead, w[i, :first], step)
    return move, size


@inlined
def passing(gas, j):
    """Of what gets by under the rims of cavity j: sum s [m3/Pa], and what comes in, sum s p^2 [J]."""
    k = gas.area.shape[0]
    through, come = gas.seeping[j, k], gas.seeping[j, k] * gas.atmosphere**2
    for m in range(k):
        through += gas.seeping[j, m]
        come += gas.seeping[j, m] * gas.pressure[m] ** 2
    return through, come


@inlined
def _gas_error(u, first, gas):
    """Largest relative error of the gas law over the passive cavities."""
    worst = 0.0
    for j in range(gas.area.shape[0]):
        if not gas.active[j]:
            through, come = passing(gas, j)
            nrt, p = gas.amount[j] * gas.rt + come, gas.pressure[j]
            error = gas_law_error(p, gas.area[j] * u[first + j] + through * p, nrt, gas.largest)
            if nrt > 0.0 and not error <= worst * nrt:
                worst = error / nrt if error < np.inf else np.inf
    return worst


@inlined
def _residual(w, mu, x, u, gas, tolerance, asked, a):
    """The contacts' relative residual, or the gas laws' in its measure if that is worse; keeps the best x.

    asked: size of the forces that contacts and cavities ask for [N].
    """
    first = 3 * mu.shape[0]
    error, size = natural_map_norm(w, mu, x, u, 0, mu.shape[0], a.scratch)
    error = max(relative_error(error, size, asked), _gas_error(u, first, gas) * tolerance / SOLVED)
    if error < a.state[0].residual:
        a.state[0].residual = error
        for i in range(first + gas.area.shape[0]):
            a.best[i] = x[i]
    return error
