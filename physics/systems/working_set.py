"""The contacts that a tick of HapCo solves for: those that bore in the last equilibrium or sink in now.

Of the contacts that are found most are open. A contact that is left out has no force, which is the solution
for it as long as it does not sink in under the forces of the others: the bodies' shapes tell, which are
computed anyway. So W is gathered and solved for the set alone; contacts that sink in beyond what the solver's
tolerance allows join it, and it is solved once more, from the forces found so far.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from palpo.physics.kernels import kernel

SOLVES = 3
"""Most solves of a tick; what sinks in after the last is in the residual, and in the next tick's set."""

NEWCOMERS = 64
"""Most contacts that join at once: of a flat face that lands all sink in, and few bear."""

# Entries of WorkingSet.count
SIZE, SPENT, READ_AT = range(3)


class WorkingSet(NamedTuple):
    """Up to c contacts out of those found, in their order, as a problem of its own."""

    count: NDArray[np.int64]  # type: ignore[assignment]  # (3,) contacts, sweeps of this tick, those at which the clock was read
    inside: NDArray[np.bool_]  # (c,) of each contact that was found
    member: NDArray[np.int32]  # (c,) number of each contact of the set among those found
    slots: NDArray[np.int32]  # (2, c, 3) see palpo.physics.collision.mobile_vertices.Contacts
    weights: NDArray[np.float64]  # (2, c, 3)
    rows: NDArray[np.float64]  # (6, 3 c) see physics.systems.hapco_tick.Coupling
    b: NDArray[np.float64]  # (3 c,) [m]
    mu: NDArray[np.float64]  # (c,)
    r: NDArray[np.float64]  # (3 c,) [N]
    u: NDArray[np.float64]  # (3 c,) [m]
    pose: NDArray[np.float64]  # (16,) of the mobile frame before it yields


def make_working_set(capacity: int) -> WorkingSet:
    """An empty one."""
    c = capacity
    return WorkingSet(
        np.zeros(3, np.int64), np.zeros(c, np.bool_), np.zeros(c, np.int32), np.zeros((2, c, 3), np.int32),
        np.zeros((2, c, 3)), np.zeros((6, 3 * c)), np.zeros(3 * c), np.zeros(c), np.zeros(3 * c),
        np.zeros(3 * c), np.zeros(16),
    )  # fmt: skip


@kernel
def start_set(force, n, part):
    """A tick's first set, with nothing spent yet: those of the n contacts that have a force (n, 3) so far."""
    part.count[SIZE] = 0
    part.count[SPENT] = 0
    part.count[READ_AT] = -1
    for k in range(n):
        part.inside[k] = force[k, 0] != 0.0 or force[k, 1] != 0.0 or force[k, 2] != 0.0


@kernel
def gather_rows(n, b, mu, r, part):
    """The set's own problem but for W, out of that of the n contacts found."""
    m = 0
    for k in range(n):
        if not part.inside[k]:
            continue
        part.member[m], part.mu[m] = k, mu[k]
        for i in range(3):
            part.b[3 * m + i], part.r[3 * m + i] = b[3 * k + i], r[3 * k + i]
        m += 1
    part.count[SIZE] = m


@kernel
def gather_points(contacts, rows, part):
    """The points of the set's contacts, and the coupling's rows."""
    for m in range(part.count[SIZE]):
        k = part.member[m]
        for side in range(2):
            for i in range(3):
                part.slots[side, m, i] = contacts.slots[side, k, i]
                part.weights[side, m, i] = contacts.weights[side, k, i]
        for c in range(6):
            for i in range(3):
                part.rows[c, 3 * m + i] = rows[c, 3 * k + i]


@kernel
def gather_matrix(whole, part, w):
    """w (3 m, 3 m) of the set out of that of all contacts found."""
    for p in range(part.count[SIZE]):
        for i in range(3):
            source, out = whole[3 * part.member[p] + i], w[3 * p + i]
            for q in range(part.count[SIZE]):
                k = 3 * part.member[q]
                out[3 * q], out[3 * q + 1], out[3 * q + 2] = source[k], source[k + 1], source[k + 2]


@kernel
def scatter(n, part, r, u):
    """r and u (3 n,) of all contacts found: the set's, and no force on the others, whose u stays."""
    for i in range(3 * n):
        r[i] = 0.0
    for m in range(part.count[SIZE]):
        k = part.member[m]
        for i in range(3):
            r[3 * k + i], u[3 * k + i] = part.r[3 * m + i], part.u[3 * m + i]


@kernel
def sunk(n, w, part, u):
    """(|r - Proj(r - rho u)|, |r|) [N] over the contacts outside the set, whose normal offsets are in u.

    That is their share of the natural map's residual of all n contacts; rho is the set's, w (3 m, 3 m).
    """
    rows, trace, size, error = 3 * part.count[SIZE], 0.0, 0.0, 0.0
    for i in range(rows):
        trace += w[i, i]
        size += part.r[i] ** 2
    rho = rows / trace if trace > 0.0 else 1.0
    for k in range(n):
        if not part.inside[k] and u[3 * k] < 0.0:
            error += (rho * u[3 * k]) ** 2
    return error**0.5, size**0.5


@kernel
def admit(n, gap, step, part):
    """What sinks in outside the set joins it: all of it, or NEWCOMERS evenly out of more."""
    sinking = 0
    for k in range(n):
        sinking += not part.inside[k] and gap[step * k] < 0.0
    share = 0
    for k in range(n):
        if part.inside[k] or not gap[step * k] < 0.0:
            continue
        share += NEWCOMERS
        if share >= sinking:
            share -= sinking
            part.inside[k] = True
